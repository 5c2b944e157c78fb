"""Flipped columns in small crowds: a privacy blanket that depends on the dataset, against enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.laws.flipped_likeness import LikenessBlankets, alike
from oracles import bloom_enumeration as oracle
from oracles.dp_enumeration import add_report, hockey_stick
from oracles.likeness_enumeration import likeness_bound


def test_a_blanket_chosen_for_the_dataset_bounds_it() -> None:
    """In rationals: random channels, up to three others, every reference and any part of what it shares."""
    rng, closest = np.random.default_rng(3), 0.0
    for case in range(600):
        size, outputs = int(rng.integers(2, 4)), int(rng.integers(2, 4))
        drawn = rng.integers(1, 20, size=(size + 1, outputs))
        rows = [[Fraction(int(mass), int(row.sum())) for mass in row] for row in drawn]
        reference = rows.pop() if case % 2 else rows[int(rng.integers(size))]
        others = [int(z) for z in rng.integers(0, size, size=int(rng.integers(0, 4)))]
        part = Fraction(int(rng.integers(1, 5)), 4)
        likeness = [part * min(mass / shared for mass, shared in zip(rows[z], reference, strict=True)) for z in others]
        a, b = (int(z) for z in rng.choice(size, size=2, replace=False))
        growth = 1 + Fraction(int(rng.integers(0, 30)), 10)
        base = oracle.release(rows, others)
        first, second = (add_report(base, list(rows[value])) for value in (a, b))
        exact = Fraction(hockey_stick(first, second, growth))
        bound = likeness_bound((rows[a], rows[b]), growth, reference, likeness)
        assert exact <= bound, (case, others, a, b)
        closest = max(closest, float(exact / bound) if others and bound else 0.0)
    assert closest == 1.0


def test_every_dataset_reaches_a_threshold() -> None:
    """Some bit pattern has enough columns that report as it does, whatever the others' bit patterns are."""
    rng = np.random.default_rng(5)
    for _ in range(15):
        width, people = int(rng.integers(1, 4)), int(rng.integers(1, 200))
        flip = Fraction(int(rng.integers(1, 10)), 20)
        blankets = LikenessBlankets(width=width, flip=flip, people=people, level=10.0 ** -rng.integers(2, 7))
        blankets.upper(0.1)
        ratio = float(flip / (1 - flip))
        for distance, (_, references) in blankets.cache.items():
            thresholds = np.zeros(1 << width)
            for each in references:
                ones, apart = int(each.family.ones[0]), int(each.family.apart[0])
                for y in range(1 << width):
                    if (y & ((1 << distance) - 1)).bit_count() == ones and (y >> distance).bit_count() == apart:
                        thresholds[y] = each.threshold
            assert (thresholds > 0).all()
            for _ in range(20):
                held = rng.multinomial(people, rng.dirichlet(np.full(1 << width, rng.choice([0.05, 0.3, 2.0]))))
                like = [
                    sum(int(number) * ratio ** (y ^ z).bit_count() for z, number in enumerate(held))
                    for y in range(1 << width)
                ]
                assert (np.array(like) >= thresholds).any()


def test_no_sum_of_trials_with_the_mean_is_worse() -> None:
    rng = np.random.default_rng(6)
    for _ in range(300):
        people = int(rng.integers(1, 60))
        chances = rng.choice([0.0, 1.0, *rng.random(3)], size=people)
        mean = float(chances.sum())
        if mean == 0:
            continue
        law = np.ones(1)
        for chance in chances:
            law = np.convolve(law, [1 - chance, chance])
        falling = np.sort(rng.random(people + 2) ** rng.integers(1, 9))[::-1]
        numbers, weights = alike(people, mean * float(rng.choice([1.0, 0.7])))
        assert law @ falling[1:] <= weights @ falling[numbers.astype(int)] + 1e-12


@pytest.mark.parametrize(("width", "n"), [(1, 2), (1, 4), (2, 1), (2, 3), (2, 4)])
def test_no_divergence_exceeds_the_bound(width: int, n: int) -> None:
    for tenths, growth in ((1, Fraction(3, 2)), (1, Fraction(6)), (3, Fraction(2))):
        worst = oracle.worst(width, n, Fraction(tenths, 10), growth)[0]
        for level in (1e-6, 0.1):
            blankets = LikenessBlankets(width=width, flip=Fraction(tenths, 10), people=n - 1, level=level)
            assert float(worst) <= blankets.upper(math.log(growth)) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("width", "p", "n", "delta", "wide"),
    [(3, 0.15, 100, 1e-6, 0.44), (4, 0.2, 100, 1e-6, 0.85), (3, 0.1, 200, 1e-4, 0.27), (6, 0.1, 10_000, 1e-6, 0.26)],
)
def test_brackets_of_rare_reports(width: int, p: float, n: int, delta: float, wide: float) -> None:
    """Before this bound, the widths were 0.69, 1.14, 0.61 and 1.53."""
    flipping = hs.BitFlipping(width=width, p=p)
    figure = hs.dp.epsilon(hs.Protocol(randomizer=flipping, shuffler=hs.UniformShuffle(), n=n), delta=delta)
    assert figure.upper < (1 + wide) * figure.lower


def test_more_columns_only_lower_the_bound() -> None:
    bounds = [
        LikenessBlankets(width=3, flip=Fraction(1, 10), people=people, level=1e-4).upper(4.6)
        for people in (100, 200, 400)
    ]
    assert bounds == sorted(bounds, reverse=True)
