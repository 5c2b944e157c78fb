"""Closed forms of sets, Hadamard responses and one-hot bits against their channels, written anew."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.randomizers.hadamard_response import Halves
from hushuffle.mechanisms.randomizers.subset_selection import Sets
from hushuffle.mechanisms.randomizers.unary_encoding import OneHotReports
from hushuffle.model.prior import Prior
from oracles.finite_enumeration import every_delta
from oracles.one_hot import hadamard_rows, one_hot_rows, worst_delta_with
from oracles.pie_hashing import best_success_with_prior
from oracles.pie_information import capacity, mutual_information, through
from oracles.subset_selection import subset_law

F = Fraction
Rows = list[list[Fraction]]
GROWTHS: Final = (F(3, 2), F(4), F(60))
CHANCES: Final = ((F(1, 2), F(1, 4)), (F(3, 4), F(1, 4)), (F(9, 10), F(1, 50)))


def sets(k: int, w: int, growth: Fraction) -> tuple[Any, Rows]:
    chosen = list(itertools.combinations(range(k), w))
    rows = [[subset_law(x, k, w, growth)[each] for each in chosen] for x in range(k)]
    return Sets(k=k, w=w, own=growth * w / (growth * w + k - w)), rows


def halves(k: int, growth: Fraction) -> tuple[Any, Rows]:
    return Halves(k=k, theta=(growth - 1) / (growth + 1)), hadamard_rows(k, growth)


def bits(k: int, p: Fraction, q: Fraction) -> tuple[Any, Rows]:
    return OneHotReports(k=k, own=p, raised=q), one_hot_rows(k, p, q)


SETS: Final = [sets(k, w, growth) for k in (3, 4, 5) for w in range(2, k) for growth in GROWTHS]
BITS: Final = [bits(k, *chances) for k in (2, 3, 4) for chances in CHANCES]
FEW: Final = [
    *(sets(k, 2, growth) for k in (3, 4) for growth in GROWTHS),
    *(halves(k, growth) for k in (2, 3) for growth in GROWTHS),
    *(bits(k, *chances) for k in (2, 3) for chances in CHANCES),
]


@pytest.mark.parametrize(("law", "rows"), [*SETS, *BITS])
def test_capacity_against_blahut_arimoto(law: Any, rows: Rows) -> None:
    channel = [[float(entry) for entry in row] for row in rows]
    for people in range(1, len(rows) + 2):
        low, high = law.capacity(people)
        assert low == high
        assert float(high) == pytest.approx(capacity(channel[: min(people, len(rows))], gap=1e-11), abs=1e-10)


@pytest.mark.parametrize(("law", "rows"), FEW)
def test_naming_the_sender_against_every_assignment(law: Any, rows: Rows) -> None:
    for n in (1, 2, len(rows)):
        skewed = [F(2 * u + 1, n * n) for u in range(n)]
        two = [F(1, 2)] * 2 + [F(0)] * (n - 2) if n > 1 else [F(1)]
        for weights in ([F(1, n)] * n, skewed, two):
            blocks = tuple((weight, weights.count(weight)) for weight in sorted(set(weights), reverse=True))
            success, attained = law.bayes(Prior(blocks=blocks))
            assert attained
            assert float(success) == pytest.approx(float(best_success_with_prior(rows, weights)), abs=1e-15)
        assert float(law.gain(n)) == pytest.approx(float(n * best_success_with_prior(rows, [F(1, n)] * n)), abs=1e-14)


@pytest.mark.parametrize(("law", "rows"), [sets(4, 2, F(4)), halves(4, F(4)), bits(3, *CHANCES[0])])
def test_contraction_holds_and_is_nearly_attained(law: Any, rows: Rows) -> None:
    rng, k = np.random.default_rng(1), len(rows)
    channel = [[float(entry) for entry in row] for row in rows]
    eta, smallest = law.contraction()
    assert smallest
    for _ in range(200):
        joint = rng.dirichlet(np.full(2 * k, rng.choice([0.05, 1.0]))).reshape(2, k).tolist()
        assert mutual_information(through(joint, channel)) <= float(eta) * mutual_information(joint) + 1e-12
    rest = [0.0] * (k - 2)  # two nearly equal laws over two values: the smallest constant is approached
    joint = [[0.2505, 0.2495, *rest], [0.2495, 0.2505, *rest]]
    reached = mutual_information(through(joint, channel)) / mutual_information(joint)
    assert reached == pytest.approx(float(eta), rel=1e-4)


OPTIMIZED: Final = {"epsilon": math.log(3), "encoding": "optimized"}
RESPONSES: Final = [(hs.HadamardResponse(k=k, epsilon=math.log(3)), hadamard_rows(k, F(3))) for k in (2, 3, 4, 5)]
ENCODINGS: Final = [
    (hs.UnaryEncoding(k=k, **OPTIMIZED), one_hot_rows(k, F(1, 2), F(1, 4)))  # type: ignore[arg-type]
    for k in (2, 3)
]


@pytest.mark.parametrize(("randomizer", "rows"), [*RESPONSES, *ENCODINGS])
@pytest.mark.parametrize("growth", [F(6, 5), F(2)])
def test_classes_lose_nothing_of_what_is_released(randomizer: Mechanism, rows: Rows, growth: Fraction) -> None:
    n = 2 if len(rows) == 5 else 3
    truth = max(float(found[0]) for found in every_delta(rows, n, growth))
    bound = hs.dp.delta(hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=n), epsilon=math.log(growth))
    assert bound.lower <= truth * (1 + 1e-9)
    assert bound.upper >= truth * (1 - 1e-9)


@pytest.mark.parametrize(
    ("randomizer", "rows", "n", "dummy"),
    [(*RESPONSES[1], 2, [F(1, 4)] * 4), (*ENCODINGS[0], 3, one_hot_rows(2, F(1, 4), F(1, 4))[0])],
)
@pytest.mark.parametrize("growth", [F(6, 5), F(2)])
def test_dummies_are_what_is_shuffled_in(
    randomizer: Mechanism, rows: Rows, n: int, dummy: list[Fraction], growth: Fraction
) -> None:
    truth = worst_delta_with(rows, n, growth, [dummy] * 2)
    protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=2), n=n)
    bound = hs.dp.delta(protocol, epsilon=math.log(growth))
    assert bound.lower <= truth * (1 + 1e-9)
    assert bound.upper >= truth * (1 - 1e-9)


@pytest.mark.parametrize(
    ("randomizer", "n", "near"),
    [(hs.HadamardResponse(k=k, epsilon=1.5), 1000, 1e-2) for k in (3, 4, 6)]
    + [(hs.UnaryEncoding(k=5, epsilon=1.0, encoding="optimized"), 2000, 1e-3)],
)
def test_classes_say_what_the_matrix_says(randomizer: Mechanism, n: int, near: float) -> None:
    ours, theirs = (
        hs.dp.epsilon(hs.Protocol(randomizer=each, shuffler=hs.UniformShuffle(), n=n), delta=1e-5)
        for each in (randomizer, hs.MatrixRandomizer(channel=randomizer.channel()))
    )
    assert ours.lower == pytest.approx(theirs.lower, rel=1e-3)
    assert theirs.lower <= ours.upper == pytest.approx(theirs.upper, rel=near)
