"""A guess from several releases together: the bound of docs/theory/guessing.md, Theorem 13, in whole fractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest

from hushuffle.questions.qif.guessing import guarantee_vulnerability

Law = Mapping[object, Fraction]


def shuffled(rows: Sequence[Sequence[Fraction]], value: int, others: Sequence[int]) -> dict[object, Fraction]:
    """Return the law of the shuffled reports of one round."""
    law: dict[object, Fraction] = {}
    for reports in itertools.product(range(len(rows[0])), repeat=1 + len(others)):
        chances = (rows[held][sent] for held, sent in zip((value, *others), reports, strict=True))
        seen = tuple(sorted(reports))
        law[seen] = law.get(seen, Fraction(0)) + math.prod(chances, start=Fraction(1))
    return law


def twice(law: Law) -> dict[object, Fraction]:
    return {(first, second): p * q for first, p in law.items() for second, q in law.items()}


def delta(laws: Sequence[Law], ratio: Fraction) -> Fraction:
    """Return the smallest delta of the guarantee with e**epsilon = ratio."""
    return max(
        sum((max(p - ratio * other.get(seen, Fraction(0)), Fraction(0)) for seen, p in law.items()), Fraction(0))
        for law, other in itertools.permutations(laws, 2)
    )


def success(laws: Sequence[Law]) -> Fraction:
    seen = {place for law in laws for place in law}
    right = sum((max(law.get(place, Fraction(0)) for law in laws) for place in seen), Fraction(0))
    return right / len(laws)


def limit(k: int, ratio: Fraction, small: Fraction) -> Fraction:
    return (ratio + (k - 1) * small) / (ratio + k - 1)


def response(k: int, truth: Fraction) -> list[list[Fraction]]:
    lie = (1 - truth) / (k - 1)
    return [[truth if sent == held else lie for sent in range(k)] for held in range(k)]


@pytest.mark.parametrize("others", [(0, 0), (0, 1), (1, 2)])
@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(5, 4), Fraction(2), Fraction(6)])
def test_no_guess_from_two_shuffled_rounds_beats_the_bound(others: tuple[int, ...], ratio: Fraction) -> None:
    rows = response(3, Fraction(2, 3))
    laws = [twice(shuffled(rows, value, others)) for value in range(3)]
    small = delta(laws, ratio)
    assert success(laws) <= limit(3, ratio, small)
    shown = guarantee_vulnerability(3, epsilon=math.log(ratio), delta=float(small))
    assert success(laws) <= Fraction(shown.upper)
    assert shown.upper == pytest.approx(float(limit(3, ratio, small)), rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("small", [Fraction(0), Fraction(1, 10)])
def test_no_smaller_bound_is_true_of_every_mechanism(k: int, small: Fraction) -> None:
    """With probability delta the value is told, else randomized response answers."""
    ratio = Fraction(3)
    rows = response(k, ratio / (ratio + k - 1))
    laws: list[Law] = [
        {("told", held): small, **{sent: (1 - small) * p for sent, p in enumerate(rows[held])}} for held in range(k)
    ]
    assert delta(laws, ratio) == small
    assert success(laws) == limit(k, ratio, small)


def test_the_ends_of_the_bound() -> None:
    assert guarantee_vulnerability(4, epsilon=math.inf, delta=0.0).upper == 1.0
    assert guarantee_vulnerability(4, epsilon=1000.0, delta=1e-6).upper == 1.0
    assert guarantee_vulnerability(4, epsilon=0.0, delta=0.0).upper == pytest.approx(0.25, rel=1e-12)
    assert guarantee_vulnerability(4, epsilon=0.0, delta=1.0).upper == 1.0
