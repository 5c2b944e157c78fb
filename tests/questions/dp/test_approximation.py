"""The Gaussian approximation: its information by pseudo-inverses, its error against certified brackets, refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.model import Guarantee


def protocol(randomizer: Any, n: int, dummies: int = 0) -> hs.Protocol:
    shuffler: Any = hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n)


def matrix(rows: np.ndarray) -> hs.MatrixRandomizer:
    return hs.MatrixRandomizer(channel=hs.Channel(matrix=rows))


def falling(k: int, epsilon: float) -> hs.MatrixRandomizer:
    rows = np.exp(-epsilon * np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / (k - 1))
    return matrix(rows / rows.sum(axis=1, keepdims=True))


def by_covariances(rows: np.ndarray, n: int, dummies: int) -> float:
    """What the counts of reports say about the target: v times the pseudo-inverse of their covariance times v."""
    blanket = rows.min(axis=0) / rows.min(axis=0).sum()
    best = 0.0
    for a, b, x in itertools.product(range(len(rows)), repeat=3):
        covariance = sum(
            count * (np.diag(law) - np.outer(law, law)) for count, law in ((n, rows[x]), (dummies, blanket)) if count
        )
        differ = rows[a] - rows[b]
        best = max(best, float(differ @ np.linalg.pinv(covariance, rcond=1e-12) @ differ))
    return best


@pytest.mark.parametrize("dummies", [0, 7, 300])
def test_information_is_that_of_the_counts(dummies: int) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        k, outputs, n = (int(rng.integers(*ends)) for ends in ((2, 5), (2, 6), (2, 200)))
        rows = rng.dirichlet(np.ones(outputs) * 3, size=k) * 0.9 + 0.1 / outputs
        rows /= rows.sum(axis=1, keepdims=True)
        found = hs.dp.information(protocol(matrix(rows), n, dummies))
        assert found == pytest.approx(by_covariances(rows, n, dummies), rel=1e-9)


def test_information_of_closed_forms_is_that_of_their_matrix() -> None:
    for randomizer in (
        hs.RandomizedResponse(k=4, epsilon=1.5),
        hs.BitFlipping(width=2, p=0.2),
        hs.SubsetSelection(k=5, w=2, epsilon=1.0),
    ):
        rows = np.asarray(randomizer.channel().matrix)
        assert hs.dp.information(protocol(randomizer, 50)) == pytest.approx(by_covariances(rows, 50, 0), rel=1e-9)


def cases() -> list[tuple[Any, int]]:
    randomizers = [
        *(hs.RandomizedResponse(k=k, epsilon=epsilon) for k in (2, 10) for epsilon in (0.5, 2.0, 5.0, 8.0)),
        hs.BitFlipping(width=2, p=0.25),
    ]
    return [(randomizer, n) for randomizer in randomizers for n in (30, 1000, 10**5)]


def test_what_is_not_refused_is_within_four_per_cent() -> None:
    worst, asked, answered, reasons = 0.0, 0, 0, set()
    for randomizer, n in cases():
        for delta in (1e-4, 1e-8):
            survey, asked = protocol(randomizer, n), asked + 1
            try:
                drawn = hs.dp.approximate(survey, delta=delta)
            except UnsupportedProtocolError as refusal:
                reasons.add(str(refusal)[:60])
                continue
            assert (drawn.kind, drawn.lower) == ("approximation", drawn.upper)
            bracket = hs.dp.epsilon(survey, delta=delta)
            error = max(bracket.lower / drawn.upper, drawn.upper / bracket.upper) - 1
            worst, answered = max(worst, error), answered + 1
    assert worst < 0.04
    assert answered >= asked / 5
    assert all(reason.startswith("The approximation is too inaccurate: a single report changes") for reason in reasons)


@pytest.mark.parametrize(
    "randomizer",
    [
        hs.RandomizedResponse(k=3, epsilon=0.5),
        hs.RandomizedResponse(k=10, epsilon=1.0),
        hs.RandomizedResponse(k=100, epsilon=3.0),
    ],
)
def test_three_digits_at_a_hundred_thousand(randomizer: Any) -> None:
    survey = protocol(randomizer, 10**5)
    drawn, bracket = hs.dp.approximate(survey, delta=1e-6).upper, hs.dp.epsilon(survey, delta=1e-6)
    assert bracket.lower * 0.999 < drawn < bracket.upper * 1.001


def test_hashed_values_hash_on_their_own() -> None:
    """All functions of three values into g buckets, listed."""
    g, epsilon, n = 4, 2.0, 1000
    mu, nu = math.exp(epsilon) / (math.exp(epsilon) + g - 1), 1 / (math.exp(epsilon) + g - 1)
    total = dict.fromkeys((0, 1, 2), 0.0)
    for hashed in itertools.product(range(g), repeat=3):
        for report in range(g):
            a, b, *_ = laws = [mu if place == report else nu for place in hashed]
            for held in total:
                total[held] += (a - b) ** 2 / (n * laws[held]) / g**3
    found = hs.dp.information(protocol(hs.LocalHashing(k=50, g=g, epsilon=epsilon), n))
    assert found == pytest.approx(max(total.values()), rel=1e-9)
    assert hs.dp.information(protocol(hs.LocalHashing(k=50, g=2, epsilon=1.0), n)) < math.tanh(0.5) ** 2 / n * 8


def test_wide_bits_are_looked_at_in_classes() -> None:
    """As many bits as no matrix holds: others at the pair's first value, bit by bit."""
    p, n = 0.3, 10**6
    each = (1 - p) ** 2 / p + p**2 / (1 - p)
    for width in (9, 13):
        found = hs.dp.information(protocol(hs.BitFlipping(width=width, p=p), n))
        assert found == pytest.approx((each**width - 1) / n, rel=1e-9)


def test_rounds_add_up() -> None:
    survey = protocol(hs.RandomizedResponse(k=2, epsilon=1.0), 20_000)
    drawn = hs.dp.approximate([(survey, 3)], delta=1e-6).upper
    bracket = hs.dp.compose([(survey, 3)], delta=1e-6)
    assert bracket.lower * 0.99 < drawn < bracket.upper * 1.01
    assert hs.dp.approximate([survey], delta=1e-6) == hs.dp.approximate(survey, delta=1e-6)
    # With a large delta nothing is left; and no approximation is above the plain sum of the local figures.
    assert hs.dp.approximate(survey, delta=0.3).upper == 0.0


def test_no_difference_no_loss() -> None:
    rows = np.array([[0.5, 0.5], [0.5, 0.5]])
    assert hs.dp.approximate(protocol(matrix(rows), 10), delta=1e-6).upper == 0.0


@pytest.mark.parametrize(
    ("survey", "message"),
    [
        (
            protocol(matrix(np.array([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25]])), 10**6),
            "for any number of people, some report proves that its sender does not have a certain value",
        ),
        (
            protocol(hs.RandomizedResponse(k=2, epsilon=math.inf), 10**6),
            "for any number of people, some report proves that its sender does not have a certain value",
        ),
        (protocol(hs.RandomizedResponse(k=2, epsilon=math.log(1000)), 1000), "Too few reports are equal"),
        (protocol(hs.RandomizedResponse(k=2, epsilon=1.0), 5), "Too few reports are equal"),
        (
            hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=9),
            "supports only shuffled reports; here",
        ),
    ],
)
def test_it_is_refused_where_it_fails(survey: hs.Protocol, message: str) -> None:
    with pytest.raises(UnsupportedProtocolError, match=message):
        hs.dp.approximate(survey, delta=1e-6)


def test_it_makes_no_guarantee() -> None:
    drawn = hs.dp.approximate(protocol(hs.RandomizedResponse(k=2, epsilon=1.0), 10**5), delta=1e-6)
    with pytest.raises(InvalidInputError, match="`epsilon` must be exact, a bound or an estimate"):
        Guarantee(epsilon=drawn, delta=1e-6)
    with pytest.raises(InvalidInputError, match="`delta` must be in"):
        hs.dp.approximate(protocol(hs.RandomizedResponse(k=2, epsilon=1.0), 10**5), delta=0.0)
