"""Connected pieces of a random pairing: enumerated, by power series, and as the page of theory prints them."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from hushuffle.numerics.random_pairing import colourings
from oracles.split_and_mix import excess, pieces, spread

PAGE = Path(__file__).parents[2] / "docs" / "theory" / "split-and-mix.md"


@pytest.mark.parametrize(("nodes", "places"), [(2, 3), (3, 2), (2, 4)])
@pytest.mark.parametrize("colours", [2, 3, 16])
def test_the_series_is_that_of_all_pairings(nodes: int, places: int, colours: int) -> None:
    if nodes * places > 6 and colours > 2:
        return
    many = Counter(len(found) for found in pieces(nodes, places))
    mean = sum((Fraction(times) * colours ** (count - 1) for count, times in many.items()), Fraction(0))
    assert mean / math.factorial(nodes * places) - 1 == excess(nodes, places, colours)


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 8, 13, 40, 70])
@pytest.mark.parametrize("colours", [2, 3, 2**10, 2**40])
def test_the_bound_is_above_the_exact_mean_and_near_it(nodes: int, colours: int) -> None:
    for places in (3, 4, 7, 12, 20, 30):
        exact, bound = excess(nodes, places, colours), colourings(nodes, places, colours)
        assert bound >= exact
        if 0 < exact < 1e-6:
            assert bound <= (2.5 if nodes < 4 else 1.01) * exact


@pytest.mark.parametrize(("nodes", "places", "colours"), [(2, 5, 4), (3, 4, 3), (4, 4, 3), (5, 3, 4), (6, 3, 3)])
def test_few_changed_nodes_are_bounded_by_their_number(nodes: int, places: int, colours: int) -> None:
    bound = colourings(nodes, places, colours, near=True)
    for changed in range(2, nodes + 1):
        assert spread(nodes, places, colours, changed) <= changed**2 * bound
    assert bound <= colourings(nodes, places, colours)


def test_what_no_bound_helps_is_infinite_and_what_is_tiny_is_not_zero() -> None:
    assert colourings(30, 3, 2**60) == math.inf
    assert colourings(2, 3, 2**1024) == math.inf
    assert 0 < colourings(10**9, 64, 4) < 1e-300


def test_the_page_prints_how_many_messages_are_needed() -> None:
    def needed(nodes: int, colours: int, *, near: bool) -> int:
        factor = 100 * colours / (2 * (colours - 2)) if near else 1
        return next(m for m in range(3, 99) if factor * colourings(nodes, m, colours, near=near) <= 2.0**-80)

    text = PAGE.read_text(encoding="utf-8")
    for nodes in (100, 1_000, 10_000, 100_000, 1_000_000, 10**9):
        cells = (f"{needed(nodes, 1 << b, near=False)}, {needed(nodes, 1 << b, near=True)}" for b in (16, 24, 32, 48))
        assert f"| {nodes:,} | {' | '.join(cells)} |" in text
