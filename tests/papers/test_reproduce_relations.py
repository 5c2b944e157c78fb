"""Relations of channels and the introduction's two mechanisms (Jurado et al. 2023)."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from hushuffle_papers.diagram import LabelRelation, drawn
from hushuffle_papers.jurado2023.relations import Relation, channels, mechanism
from papers.rendered import rendered

P = Fraction(3, 4)


@pytest.mark.parametrize("name", ["section-1", "figure-1", "figure-8", "figure-9"])
def test_every_relation_is_confirmed_and_drawn(name: str) -> None:
    study = rendered(f"jurado2023/{name}")
    assert {claim.verdict for claim in study.claims} == {"confirmed"}
    for diagram in study.diagrams:
        assert len(diagram.text.splitlines()) == len(study.claims)


def test_what_does_not_hold_is_seen() -> None:
    found = channels(2, 2)
    for first, how, second in (("N", "=", "NS"), ("N", "equivalent", "NS"), ("NS", "refined by", "N")):
        assert not Relation(first=first, how=how, second=second, where="nowhere", quote="", study="").holds(found)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_two_mechanisms_by_counting(n: int) -> None:
    """Every dataset of n bits: what is reported of the last one, and what that says if nothing else is known."""
    datasets = list(itertools.product((0, 1), repeat=n))
    for parity in (False, True):
        matrix = mechanism(n, P, parity=parity).matrix
        for row, data in zip(matrix, datasets, strict=True):
            turned = parity and sum(data[:-1]) % 2 == 1
            assert row[data[-1]] == (1 - P if turned else P)
            assert row[0] + row[1] == 1
        by_last = [sum(row[y] for row, data in zip(matrix, datasets, strict=True) if data[-1] == y) for y in (0, 1)]
        assert sum(by_last) / 2**n == (Fraction(1, 2) if parity else P)


def test_a_drawing_says_what_it_shows() -> None:
    lines = [LabelRelation(start="A", end="B", kind=kind) for kind in ("equal", "arrow", "link")]
    picture = drawn("d", "Three", "", {"A": (0, 0), "B": (0, 1)}, lines, marked=("A",))
    assert picture.text == "A = B\nA -> B\nA -- B"
    assert picture.svg.count("<line") == 4  # an equality is two lines, one on the other
    assert picture.svg.count("#e3ecf7") == 1
