"""Audits of other libraries: the script runs on what is installed, and on a client that is written down here."""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts import script

ROOT = Path(__file__).parents[2]
LIBRARIES: Any = script("benchmarks/audit_libraries")


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


REFUTED = {
    "RAPPORClient, 2 hashes",
    "SS_Client, as returned",
    "dp_randomized_response_kary_array, a category of one person",
    "dp_exponential_array, a category of one person",
    "nprr(x, r_from_G_eps(G, eps), G)",
}


@pytest.mark.parametrize("name", LIBRARIES.LIBRARIES)
def test_clients_of_libraries_that_are_installed_are_audited(name: str) -> None:
    try:
        version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    refuted = {case.what for case in LIBRARIES.LIBRARIES[name](8, 1.0) if case.audit(2000).refuted}
    assert refuted <= REFUTED


def test_replay_tells_columns_that_depend_on_each_other_from_clients_that_do_not() -> None:
    def total(codes: Any) -> list[int]:
        return [sum(codes)] * len(codes)

    def own(code: int) -> float:
        return code + np.random.random()  # noqa: NPY002 - seeded by the test

    assert LIBRARIES.Case(library="", what="", claimed=1.0, column=total).replay(4) == "leak"
    assert LIBRARIES.Case(library="", what="", claimed=1.0, report=own).replay(4) == "passes"
    fresh = LIBRARIES.Case(
        library="", what="", claimed=1.0, report=lambda code: code + np.random.default_rng().random()
    )
    assert fresh.replay(4) == "own randomness"


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def nowhere(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(LIBRARIES, "version", nowhere)
    LIBRARIES.main(100, 1, write=False)
    assert capsys.readouterr().out.count("is not installed: pip install") == len(LIBRARIES.LIBRARIES)
