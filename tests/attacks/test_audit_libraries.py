"""Audits of other libraries: the script runs on what is installed, and on a client that is written down here."""

from __future__ import annotations

import importlib.util
import math
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("audit_libraries", ROOT / "benchmarks" / "audit_libraries.py")
assert SPEC is not None
assert SPEC.loader is not None
LIBRARIES: Any = importlib.util.module_from_spec(SPEC)
sys.modules["audit_libraries"] = LIBRARIES
SPEC.loader.exec_module(LIBRARIES)


def subset(code: int, k: int, epsilon: float, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return an array as `SS_Client` of multi-freq-ldpy 0.2.5 does: the own value, if it is there, stands first."""
    size = max(1, round(k / (math.exp(epsilon) + 1)))
    kept = size * math.exp(epsilon) / (size * math.exp(epsilon) + k - size)
    others = np.delete(np.arange(k), code)
    if rng.random() <= kept:
        return np.concatenate([[code], rng.choice(others, size=size - 1, replace=False)])
    return rng.choice(others, size=size, replace=False)


@pytest.mark.parametrize(("ordered", "refuted"), [(True, True), (False, False)])
def test_an_array_with_the_own_value_first_tells_it_and_a_sorted_one_does_not(*, ordered: bool, refuted: bool) -> None:
    rng = np.random.default_rng(1)

    def report(code: int) -> Any:
        made = LIBRARIES.plain(subset(code, 8, 1.0, rng))
        return made if ordered else tuple(sorted(made))

    found = LIBRARIES.Case(library="", what="", claimed=1.0, report=report).audit(20_000)
    assert found.refuted == refuted
    assert (found.epsilon.lower > 4) == refuted


@pytest.mark.parametrize(
    ("name", "cases"), [("pure-ldp", "pure_ldp"), ("multi-freq-ldpy", "multi_freq_ldpy"), ("opendp", "opendp")]
)
def test_clients_of_libraries_that_are_installed_are_audited(name: str, cases: str) -> None:
    try:
        version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    refuted = {case.what for case in getattr(LIBRARIES, cases)() if case.audit(4000).refuted}
    assert refuted <= {"SS_Client, as returned"}


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def nowhere(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(LIBRARIES, "version", nowhere)
    LIBRARIES.main(100)
    assert capsys.readouterr().out.count("is not installed: pip install") == 3
