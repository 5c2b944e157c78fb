"""Frequencies from true reports among dummies: unbiased, with the predicted variance; what fake users can do."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.estimation import estimate_values, heavy_hitters, predicted_standard_error
from hushuffle.mechanisms.shufflers import Shuffler
from oracles import several_messages as oracle

TRUTH = hs.RandomizedResponse(k=4, epsilon=math.inf)
VALUES = np.repeat([0, 1, 2], [100, 70, 30])
SHARES = np.array([0.5, 0.35, 0.15, 0.0])
SHUFFLERS = [
    hs.BlanketMessages(p=0.3),
    hs.BlanketMessages(p=0.5, trials=3),
    hs.FakesPerValue(p=0.1),
    hs.AugmentedShuffle(each=hs.DummyLaw.binomial(trials=60, p=0.5), kept=0.8),
    hs.AugmentedShuffle.pure(epsilon=1.0),
]


@pytest.mark.parametrize("shuffler", SHUFFLERS, ids=repr)
def test_estimates_are_unbiased_and_as_accurate_as_predicted(shuffler: Shuffler) -> None:
    # Six standard errors of a mean of 800 runs: false alarms below 1e-8 each.
    survey, rng, runs = hs.Protocol(randomizer=TRUTH, shuffler=shuffler, n=200), hs.reproducible(7), 800
    found = np.array([hs.estimate(survey.collect(VALUES, rng=rng), protocol=survey).frequencies for _ in range(runs)])
    predicted = predicted_standard_error(survey, frequency=SHARES)
    assert np.all(abs(found.mean(axis=0) - SHARES) < 6 * predicted / math.sqrt(runs))
    assert found.std(axis=0) == pytest.approx(predicted, rel=0.16)


def test_the_variance_is_that_of_every_outcome() -> None:
    n, k, p = 3, 3, Fraction(1, 4)
    truth = hs.RandomizedResponse(k=k, epsilon=math.inf)
    held = [0, 0, 2]
    fakes = oracle.together((oracle.person(value, k, extra=oracle.fakes(k, p)) for value in held), k)
    survey = hs.Protocol(randomizer=truth, shuffler=hs.FakesPerValue(p=float(p)), n=n)
    for (mean, variance), share in zip(oracle.moments(fakes, k), (2 / 3, 0, 1 / 3), strict=True):
        assert (float(mean) - n * float(p)) / n == pytest.approx(share)
        error = predicted_standard_error(survey, frequency=share)
        assert float(variance) / n**2 == pytest.approx(float(error) ** 2)
    besides = oracle.uniform_messages(k, Fraction(1), 2)  # a fixed number of uniform messages
    fixed = oracle.together((oracle.person(value, k, extra=besides) for value in held), k)
    survey = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=1.0, trials=2), n=n)
    for (mean, variance), share in zip(oracle.moments(fixed, k), (2 / 3, 0, 1 / 3), strict=True):
        assert (float(mean) - 2 * n / k) / n == pytest.approx(share)
        assert float(variance) / n**2 == pytest.approx(float(predicted_standard_error(survey, frequency=share)) ** 2)


@pytest.mark.parametrize("shuffler", SHUFFLERS, ids=repr)
def test_intervals_hold_and_values_nobody_holds_are_rarely_listed(shuffler: Shuffler) -> None:
    survey, rng = hs.Protocol(randomizer=TRUTH, shuffler=shuffler, n=200), hs.reproducible(9)
    covered = listed = 0
    for _ in range(300):
        released = survey.collect(VALUES, rng=rng)
        given = survey if survey.shuffler.dummy_law is None else survey.with_dummies(released.dummies)
        estimate = hs.estimate(released, protocol=survey)
        low, high = estimate.interval(0.95).T
        covered += int(np.sum((low <= SHARES) & (high >= SHARES)))
        listed += 3 in heavy_hitters(estimate, protocol=given, level=0.2).values
    # Each is binomial at worst; below 1e-6 by chance. Intervals are normal ones.
    assert covered > 0.9 * 1200
    assert listed <= 300 * 0.05 + 6 * math.sqrt(300 * 0.05)


@pytest.mark.parametrize(
    ("shuffler", "besides"),
    [
        (hs.BlanketMessages(p=0.25, trials=1), 1),
        (hs.BlanketMessages(p=0.5, trials=2), 2),
        (hs.FakesPerValue(p=0.25), 3),
    ],
)
def test_fake_users_reach_both_ends(shuffler: Shuffler, besides: int) -> None:
    """One of three sends up to `besides` messages besides the report: every choice is tried, means are in fractions."""
    n, k = 3, 3
    p = Fraction(shuffler.p)  # type: ignore[attr-defined]
    honest = [0, 1]
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=math.inf), shuffler=shuffler, n=n)
    gain, moved = hs.poisoning_gain(survey, fakes=1), []
    for target, size in itertools.product(range(k), range(besides + 2)):
        for sent in itertools.combinations_with_replacement(range(k), size):
            if besides == 3:  # fakes of each value: their mean is subtracted
                mean = honest.count(target) + 2 * p + sent.count(target) - n * p
            else:
                trials = Fraction(shuffler.trials)  # type: ignore[attr-defined]
                number = 2 + 2 * trials * p + size - n
                mean = honest.count(target) + 2 * trials * p / k + sent.count(target) - number / k
            moved.append((mean - honest.count(target)) / n)
    assert gain.raised.upper == pytest.approx(float(max(moved)))
    assert gain.lowered.upper == pytest.approx(-float(min(moved)))
    assert gain.honest.upper == pytest.approx(1 / 3)


def test_fake_users_gain_nothing_where_the_shuffler_adds_the_dummies() -> None:
    survey = hs.Protocol(randomizer=TRUTH, shuffler=hs.AugmentedShuffle.pure(epsilon=0.5), n=200)
    gain = hs.poisoning_gain(survey, fakes=20)
    assert (gain.raised.upper, gain.lowered.upper) == (0.1, 0.0)


def test_matrices_are_moved_by_further_messages_too() -> None:
    matrix = hs.MatrixRandomizer(channel=hs.RandomizedResponse(k=3, epsilon=1.0).channel())
    same = hs.RandomizedResponse(k=3, epsilon=1.0)
    ends = [
        hs.poisoning_gain(hs.Protocol(randomizer=one, shuffler=hs.BlanketMessages(p=0.2), n=50), fakes=5)
        for one in (matrix, same)
    ]
    assert ends[0].raised.upper == pytest.approx(ends[1].raised.upper)
    assert ends[0].lowered.upper == pytest.approx(ends[1].lowered.upper)


def test_fewer_reports_than_people_are_refused_where_all_are_kept() -> None:
    survey = hs.Protocol(randomizer=TRUTH, shuffler=hs.FakesPerValue(p=0.1), n=200)
    with pytest.raises(InvalidInputError, match="n = 200 reports and up to 800 additional messages"):
        hs.estimate(np.zeros(199, dtype=np.int64), protocol=survey)
    counts = survey.randomizer.counts(survey.collect(VALUES, rng=hs.reproducible(1)).reports)
    assert hs.estimate(counts, protocol=survey).frequencies.shape == (4,)


@pytest.mark.parametrize("p", [0.5, 1.0])
@pytest.mark.parametrize("silent", [0.1, 1.0])
def test_people_who_send_nothing_besides_change_no_estimate(p: float, silent: float) -> None:
    """Far fewer messages than all coins would show, all of them uniform: unbiased, within six standard errors."""
    n, rng = 10_000, hs.reproducible(3)
    survey = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=3, epsilon=math.inf), shuffler=hs.BlanketMessages(p=p, honest=0.9), n=n
    )
    values = np.repeat([0, 1, 2], [5000, 3000, 2000])
    coins = int((1 - silent) * n)
    heads = int(np.count_nonzero(rng.integers(2, size=coins))) if p < 1 else coins
    reports = np.concatenate([values, rng.integers(3, size=heads)])
    found = hs.estimate(reports, protocol=survey)
    error = math.sqrt(heads * 2 / 9) / n
    assert np.all(abs(found.frequencies - [0.5, 0.3, 0.2]) <= 6 * error + 1e-12)
    assert found.standard_errors == pytest.approx([error] * 3)


def test_more_messages_than_people_may_send_are_refused() -> None:
    blanket = hs.Protocol(randomizer=TRUTH, shuffler=hs.BlanketMessages(p=0.2, trials=2), n=100)
    assert hs.estimate(np.zeros(300, dtype=np.int64), protocol=blanket).n == 100
    fakes = hs.Protocol(randomizer=TRUTH, shuffler=hs.FakesPerValue(p=0.2), n=100)
    assert hs.estimate(np.zeros(500, dtype=np.int64), protocol=fakes).n == 100
    for survey, size, most in ((blanket, 301, 200), (blanket, 99, 200), (fakes, 501, 400), (fakes, 99, 400)):
        reports = np.zeros(size, dtype=np.int64)
        with pytest.raises(InvalidInputError, match=f"up to {most} additional messages"):
            hs.estimate(reports, protocol=survey)
    for size in (99, 501):
        counts = fakes.randomizer.counts(np.zeros(size, dtype=np.int64))
        with pytest.raises(InvalidInputError, match="up to 400 additional messages"):
            hs.estimate(counts, protocol=fakes)


@pytest.mark.parametrize(("g", "trials"), [(5, 2), (20, 4), (16, 1)])
def test_estimates_from_hashed_messages_are_unbiased_with_the_predicted_variance(g: int, trials: int) -> None:
    """Over the draw of hashes, of who holds the same bucket by chance, and of the messages besides."""
    n, k, runs = 400, 50, 1500
    hashing = hs.LocalHashing(k=k, g=g, epsilon=math.inf)
    survey = hs.Protocol(randomizer=hashing, shuffler=hs.BlanketMessages(p=1.0, trials=trials), n=n)
    held = np.repeat([0, 1, 2, 7], [200, 100, 60, 40])  # a heavy value collides no more than others
    shares = np.bincount(held, minlength=k) / n
    rng = hs.reproducible(24)
    found = np.array([hs.estimate(survey.collect(held, rng=rng), protocol=survey).raw for _ in range(runs)])
    errors = predicted_standard_error(survey, frequency=shares)
    assert np.all(abs(found.mean(axis=0) - shares) < 5 * errors / math.sqrt(runs))
    assert np.all(abs(found.var(axis=0) / errors**2 - 1) < 0.25)
    collision = float(hashing.collision)
    variance = (n * (1 - shares) * collision * (1 - collision) + n * trials / g * (1 - 1 / g)) / (
        n * (1 - collision)
    ) ** 2
    assert errors**2 == pytest.approx(variance)


def test_public_functions_add_the_squares_of_what_others_hold() -> None:
    """Every draw of two functions of three values to two buckets, and of who uses which: the variance is as stated."""
    people, rows, half = (0, 1, 1, 2), 2, Fraction(1, 2)
    counts = [
        sum(row[value] == row[0] for row, value in zip(used, people, strict=True))
        for functions in itertools.product(itertools.product(range(2), repeat=3), repeat=rows)
        for used in itertools.product(functions, repeat=len(people))
    ]
    mean = Fraction(sum(counts), len(counts))
    variance = Fraction(sum(count**2 for count in counts), len(counts)) - mean**2
    assert mean == 1 + 3 * half
    assert variance == sum(half * (1 - half) * (held + Fraction(held * (held - 1), rows)) for held in (2, 1))


def test_fake_users_of_hashed_messages_count_as_often_as_they_may_send() -> None:
    hashing = hs.LocalHashing(k=1000, g=40, epsilon=math.inf)
    survey = hs.Protocol(randomizer=hashing, shuffler=hs.BlanketMessages(p=0.5, trials=3), n=500)
    gain, collision = hs.poisoning_gain(survey, fakes=5), hashing.collision
    assert gain.raised.upper == pytest.approx(5 / 500 * (1 + 3 * (1 - 1 / 40) / (1 - float(collision))))


@pytest.mark.parametrize("shuffler", SHUFFLERS, ids=repr)
def test_some_values_are_estimated_as_all_are(shuffler: Shuffler) -> None:
    survey = hs.Protocol(randomizer=TRUTH, shuffler=shuffler, n=200)
    released = survey.collect(VALUES, rng=hs.reproducible(3))
    every, some = hs.estimate(released, protocol=survey), estimate_values(released, values=[3, 1], protocol=survey)
    assert some.raw.tolist() == every.raw[[3, 1]].tolist()
    assert some.standard_errors.tolist() == every.standard_errors[[3, 1]].tolist()
    again = estimate_values(released.reports, values=[1], protocol=survey)
    assert again.raw.tolist() == every.raw[[1]].tolist()


def test_some_values_of_hashes_and_what_is_refused() -> None:
    hashing = hs.LocalHashing(k=100, g=6, epsilon=2.0)
    survey = hs.Protocol(randomizer=hashing, shuffler=hs.Scrambler(dummies=9), n=3000)
    released = survey.collect(np.arange(3000) % 100, rng=hs.reproducible(3))
    every = hs.estimate(released, protocol=survey)
    with patch("hushuffle.estimation.frequency._CELLS", 64):  # in many parts
        some = estimate_values(released, values=[0, 99, 5], protocol=survey)
    assert some.raw.tolist() == every.raw[[0, 99, 5]].tolist()
    with pytest.raises(InvalidInputError, match="values"):
        estimate_values(released, values=[100], protocol=survey)
    with pytest.raises(InvalidInputError, match="`reports` must be n"):
        estimate_values(released.reports[:7], values=[1], protocol=survey)
    matrix = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.75, 0.25], [0.5, 0.5]]))
    with pytest.raises(UnsupportedProtocolError, match="An estimate of frequencies needs reports that support"):
        estimate_values(
            np.zeros(3, dtype=np.int64),
            values=[0],
            protocol=hs.Protocol(randomizer=matrix, shuffler=hs.UniformShuffle(), n=3),
        )
