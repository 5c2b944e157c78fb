"""The page that says what is tight: its cheap rows, computed anew."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import hushuffle as hs

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("tight", ROOT / "benchmarks" / "tight.py")
assert SPEC is not None
assert SPEC.loader is not None
tight = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tight)
CASES = list(tight.cases())
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "reference" / "what-is-tight.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| mechanism")
]


def test_every_case_has_a_row() -> None:
    written = [(row[0], row[1].replace(",", ""), float(row[2])) for row in ROWS]
    assert written == [(name, str(n), delta) for name, _, n, _, delta in CASES]


@pytest.mark.parametrize("place", [1, 4, 9, 12, 13, 15, 20, 22])
def test_rows_are_what_the_library_prints(place: int) -> None:
    _, randomizer, n, dummies, delta = CASES[place]
    shuffler = hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()
    bound = hs.dp.epsilon(hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n), delta=delta)
    assert ROWS[place][3:5] == [f"{bound.lower:.5g}", f"{bound.upper:.5g}"]
