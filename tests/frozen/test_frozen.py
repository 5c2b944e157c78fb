"""What must not change unnoticed: figures, documents, schemas, exit codes, the reports of a key.

`PYTHONPATH=tests python tests/frozen/test_frozen.py` writes `snapshots.json` anew; say in the commit why each line
changed.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from frozen import documents, figures
from hushuffle.cli.console import Exit

SNAPSHOTS: Final = Path(__file__).with_name("snapshots.json")
FROZEN: Final[dict[str, Any]] = json.loads(SNAPSHOTS.read_text(encoding="utf-8")) if SNAPSHOTS.exists() else {}

PARTS: Final = 4
"""The figures are compared in so many tests, so that they can run side by side."""

_CENTRAL: Final = re.compile(r"(epsilon|delta).*BitFlipping\(width=4.*(Uniform|dummies)")
_ROUNDS: Final = re.compile(r"compose\(.*(BitFlipping|LocalHashing)")
LONG: Final = [each for each in figures.EXPRESSIONS if _CENTRAL.search(each) or _ROUNDS.search(each)]
"""Figures that take seconds each: three bits in a round, and the rounds of a matrix, stay among the others."""


def differences(now: Any, then: Any, path: str) -> list[str]:
    """Return where two figures differ by more than one part in 10**12."""
    if isinstance(then, dict) and isinstance(now, dict) and now.keys() == then.keys():
        return [line for key in then for line in differences(now[key], then[key], f"{path}.{key}")]
    if isinstance(then, list) and isinstance(now, list) and len(now) == len(then):
        return [
            line
            for place, pair in enumerate(zip(now, then, strict=True))
            for line in differences(*pair, f"{path}[{place}]")
        ]
    if isinstance(then, float) and isinstance(now, float):
        same = bool(np.isclose(now, then, rtol=1e-12, atol=1e-15))
    else:
        same = now == then
    return [] if same else [f"{path}: {then!r} became {now!r}"]


def test_every_figure_has_a_snapshot() -> None:
    assert len(figures.EXPRESSIONS) >= 200
    assert len(set(figures.EXPRESSIONS)) == len(figures.EXPRESSIONS)
    assert list(FROZEN["figures"]) == figures.EXPRESSIONS


@pytest.mark.parametrize("part", [*range(PARTS), pytest.param(None, marks=pytest.mark.slow)])
def test_figures_stay_to_one_part_in_a_trillion(part: int | None) -> None:
    short, moved = [each for each in figures.EXPRESSIONS if each not in LONG], list[str]()
    for expression in LONG if part is None else short[part::PARTS]:
        moved += differences(figures.answer(expression), FROZEN["figures"][expression], expression)
    assert not moved, "\n".join(moved)


def test_documents_keep_their_keys(tmp_path: Path) -> None:
    now = documents.documents(tmp_path)
    for name, paths in FROZEN["documents"].items():
        assert not set(paths) - set(now[name]), f"{name} lost keys; they may be added, never removed"


def test_schemas_keep_their_names() -> None:
    now = documents.schemas()
    for name, names in FROZEN["schemas"].items():
        assert not set(names) - set(now[name]), f"the schema of {name} lost names"


def test_exit_codes_stay() -> None:
    assert {code.name: code.value for code in Exit} == FROZEN["exit codes"]


def test_brackets_of_every_mechanism_behind_every_shuffler_stay() -> None:
    """To one part in a trillion; say in the commit which became tighter."""
    moved = differences(documents.brackets(), FROZEN["brackets"], "central epsilon")
    assert not moved, "\n".join(moved)


def test_public_names_and_their_arguments_stay() -> None:
    assert not set(FROZEN["public names"]) - set(documents.public_names())  # names may be added


def test_a_key_gives_the_same_reports() -> None:
    now = documents.keyed_reports()
    assert {name: now.get(name) for name in FROZEN["keyed reports"]} == FROZEN["keyed reports"]  # a new one may come


def _write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = {
            "figures": {expression: figures.answer(expression) for expression in figures.EXPRESSIONS},
            "documents": documents.documents(Path(folder)),
            "schemas": documents.schemas(),
            "exit codes": {code.name: code.value for code in Exit},
            "keyed reports": documents.keyed_reports(),
            "brackets": documents.brackets(),
            "public names": documents.public_names(),
        }
    SNAPSHOTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _write()
