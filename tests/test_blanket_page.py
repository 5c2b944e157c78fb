"""The note on the blanket: its cheap figures, computed anew."""

from __future__ import annotations

from pathlib import Path

import pytest

import hushuffle as hs
from scripts import script

ROOT = Path(__file__).parent.parent
blanket = script("benchmarks/blanket")
PAGE = (ROOT / "docs" / "theory" / "below-the-blanket.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
SMALL = {(int(row[0]), float(row[1])): row[2:] for row in ROWS if row[0].isdigit()}
LARGE = {row[0]: row[1:] for row in ROWS if len(row) == 5 and row[4].endswith("%")}


def test_every_dataset_is_below_the_pooled_bound_and_this_below_the_blanket() -> None:
    assert tuple(SMALL) == blanket.CROWDS
    for exact, pooled, plain in SMALL.values():
        assert float(exact) < float(pooled) < float(plain)
    figures = blanket.small_crowd(*blanket.CROWDS[0])
    assert SMALL[blanket.CROWDS[0]] == [f"{figure:.4g}" for figure in figures]


@pytest.mark.slow
@pytest.mark.parametrize("crowd", blanket.CROWDS[1:])
def test_other_crowds_are_as_printed(crowd: tuple[int, float]) -> None:
    assert SMALL[crowd] == [f"{figure:.4g}" for figure in blanket.small_crowd(*crowd)]


def test_mechanisms_are_as_printed() -> None:
    known = dict(blanket.mechanisms())
    assert list(LARGE) == list(known)
    for name in ("subset selection, k = 10, w = 3, epsilon_0 = 1", "Hadamard response, k = 1,000, epsilon_0 = 1"):
        figures = blanket.large_crowd(known[name])
        assert LARGE[name][:3] == [f"{figure:.5g}" for figure in figures]


def test_pools_in_sequence_are_the_smaller_bound_in_the_smallest_crowds() -> None:
    curve = blanket.shuffled(hs.MatrixRandomizer(channel=hs.Channel(matrix=blanket.ROWS)), 20)
    assert f"δ(0.2) ≤ {curve.upper(0.2):.4f}, not {curve.blanket(0.2):.4f}." in PAGE
