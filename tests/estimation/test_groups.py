"""Estimates for groups of people with different randomizers, against the enumeration of all datasets and reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.estimation import heavy_hitters, predicted_standard_error
from hushuffle.estimation.readout import ByGroups, frequency_variance
from hushuffle.randomness import Randomness

Floats = npt.NDArray[np.float64]
SIZES = (2, 1)


def crowd(k: int, *, sizes: tuple[int, ...] = SIZES, dummies: int = 0) -> hs.MixedProtocol:
    parts = [(n, hs.RandomizedResponse(k=k, epsilon=1.0 + 2 * place)) for place, n in enumerate(sizes)]
    return hs.MixedProtocol(groups=parts, shuffler=hs.Scrambler(dummies=dummies))


def rows(k: int) -> list[Floats]:
    """The probabilities of reports (column) of each person, by the person's value (row)."""
    people = [1.0 + 2 * place for place, n in enumerate(SIZES) for _ in range(n)]
    return [(np.ones((k, k)) + (math.exp(each) - 1) * np.eye(k)) / (math.exp(each) + k - 1) for each in people]


def moments(k: int, dummies: int) -> Iterator[tuple[tuple[int, ...], Floats, Floats]]:
    """Every dataset, with mean and variance of the estimates over all reports and dummies."""
    survey, laws, n = crowd(k, dummies=dummies), rows(k), sum(SIZES)
    for data in product(range(k), repeat=n):
        mean, square = np.zeros(k), np.zeros(k)
        for reports in product(range(k), repeat=n + dummies):
            chance = math.prod(law[value, report] for law, value, report in zip(laws, data, reports[:n], strict=True))
            made = hs.estimate(np.array(reports), protocol=survey).frequencies
            mean += chance / k**dummies * made
            square += chance / k**dummies * made**2
        yield data, mean, square - mean**2


@pytest.mark.parametrize(("k", "dummies"), [(2, 0), (3, 0), (2, 2)])
def test_the_estimate_is_unbiased_for_the_weighted_frequencies_and_its_variance_is_bounded(
    k: int, dummies: int
) -> None:
    survey = crowd(k, dummies=dummies)
    weights = ByGroups.of(survey.groups).weights
    bound = frequency_variance(survey)
    for data, mean, variance in moments(k, dummies):
        first, second = np.bincount(data[:2], minlength=k) / 2, np.bincount(data[2:], minlength=k)
        wanted = weights[0] * first + weights[1] * second
        np.testing.assert_allclose(mean, wanted, atol=1e-12)
        limit = bound.at(wanted)
        assert np.all(variance <= limit + 1e-12)
        if k == 2:
            np.testing.assert_allclose(variance, limit, atol=1e-12)


def test_the_bias_is_attained_by_groups_of_which_all_or_none_have_the_value() -> None:
    read = ByGroups.of(crowd(4, sizes=(7, 2, 4)).groups)
    shares = np.array([7, 2, 4]) / 13
    differences = [abs(float((np.array(read.weights) - shares) @ held)) for held in product((0.0, 1.0), repeat=3)]
    assert read.bias == pytest.approx(max(differences), rel=1e-12)
    assert ByGroups.of(crowd(4, sizes=(7, 0, 0)).groups).bias == 0


def test_counts_estimate_the_weighted_frequency_without_bias_but_no_group_alone() -> None:
    # A row for each dataset: the distribution of the number of reports of value 1.
    laws, weights = rows(2), ByGroups.of(crowd(2).groups).weights
    datasets = list(product((0, 1), repeat=3))
    law = np.zeros((len(datasets), 4))
    for place, data in enumerate(datasets):
        for reports in product((0, 1), repeat=3):
            law[place, sum(reports)] += math.prod(each[x, y] for each, x, y in zip(laws, data, reports, strict=True))
    own = np.array([[sum(data[:2]) / 2, data[2]] for data in datasets])

    def residual(wanted: Floats) -> float:
        return float(np.abs(law @ np.linalg.lstsq(law, wanted, rcond=None)[0] - wanted).max())

    assert residual(own @ np.array(weights)) < 1e-12
    assert residual(own[:, 0]) > 0.05
    assert residual(own[:, 1]) > 0.05
    assert residual(np.array([sum(data) / 3 for data in datasets])) > 0.05


@pytest.mark.parametrize("dummies", [0, 7])
def test_a_value_of_no_person_is_rarely_significant(dummies: int) -> None:
    survey = crowd(5, sizes=(30, 10, 5), dummies=dummies)
    law = np.ones(1)
    for n, each in survey.groups:
        for _ in range(n):
            support = each.law().support
            assert support is not None
            law = np.convolve(law, [1 - support.false, support.false])
    for _ in range(dummies):
        law = np.convolve(law, [0.8, 0.2])
    read = ByGroups.of(survey.parts)
    for chance in (0.3, 0.05, 1e-4):
        least = read.thresholds(n=45, dummies=dummies, chance=chance)[0] - read.slack / 45
        count = np.arange(law.size)
        made = read.frequencies(count, n=45, dummies=dummies)
        assert law[made > least].sum() <= chance


def test_sybil_clients_gain_most_in_the_group_that_helps_them_most() -> None:
    survey = crowd(3, sizes=(60, 40))
    gain, n = hs.poisoning_gain(survey, fakes=5), 100
    read = ByGroups.of(survey.parts)
    apart = read.law.true - read.law.false
    moves = []
    for _, law in read.groups:
        # A Sybil client of a group: its report counts, and the estimator subtracts the share of its group.
        moves.append([(y - law.false) / (n * apart) for y in (0.0, 1.0, law.true)])
    assert gain.raised.upper == pytest.approx(5 * max(each[1] for each in moves))
    assert gain.lowered.upper == pytest.approx(-5 * min(each[0] for each in moves))
    assert gain.honest.upper == pytest.approx(5 * max(each[2] for each in moves))


def collected(survey: hs.MixedProtocol, values: npt.NDArray[np.int64], rng: Randomness) -> npt.NDArray[np.int64]:
    parts = np.split(values, np.cumsum([n for n, _ in survey.groups])[:-1])
    return np.concatenate([each.randomize(own, rng=rng) for (_, each), own in zip(survey.groups, parts, strict=True)])


def test_simulated_collections_agree_with_the_prediction() -> None:
    survey = crowd(3, sizes=(400, 200))
    values = np.repeat([0, 1, 2, 0], [250, 150, 50, 150])
    rng = hs.reproducible(5)
    made = np.array([hs.estimate(collected(survey, values, rng), protocol=survey).frequencies for _ in range(400)])
    weights = ByGroups.of(survey.groups).weights
    wanted = weights[0] * np.array([250, 150, 0]) / 400 + weights[1] * np.array([150, 0, 50]) / 200
    errors = np.sqrt(frequency_variance(survey).at(wanted))
    assert np.all(np.abs(made.mean(axis=0) - wanted) < 4 * errors / 20)
    assert np.all(made.std(axis=0) < 1.2 * errors)
    assert float(predicted_standard_error(survey, frequency=0.0)) <= errors.max()
    last = hs.estimate(collected(survey, values, rng), protocol=survey)
    assert heavy_hitters(last, protocol=survey).values[0] == 0


def test_one_group_is_the_protocol_of_its_randomizer() -> None:
    noisy = hs.UnaryEncoding(k=4, epsilon=1.5)
    plain = hs.Protocol(randomizer=noisy, shuffler=hs.UniformShuffle(), n=9)
    one = hs.MixedProtocol(groups=[(4, noisy), (5, noisy)], shuffler=hs.UniformShuffle())
    counts = hs.Histogram(counts=np.array([3, 5, 2, 7]))
    for protocol in (plain, one):
        assert hs.estimate(counts, protocol=protocol).frequencies.tolist() == pytest.approx(
            hs.estimate(counts, protocol=plain).frequencies.tolist()
        )
    assert hs.poisoning_gain(one, fakes=1) == hs.poisoning_gain(plain, fakes=1)


def test_groups_without_common_counts_are_refused() -> None:
    shuffler = hs.UniformShuffle()
    numbers = [(5, hs.DiscreteLaplace(levels=4, epsilon=each)) for each in (1.0, 2.0)]
    with pytest.raises(UnsupportedProtocolError, match="reports that support values"):
        hs.estimate(np.zeros(10, dtype=np.int64), protocol=hs.MixedProtocol(groups=numbers, shuffler=shuffler))
    mixed = [(5, hs.RandomizedResponse(k=8, epsilon=1.0)), (5, hs.HadamardResponse(k=4, epsilon=1.0))]
    with pytest.raises(UnsupportedProtocolError, match="one mechanism for all groups"):
        hs.estimate(np.zeros(10, dtype=np.int64), protocol=hs.MixedProtocol(groups=mixed, shuffler=shuffler))
    tiny = [(5, hs.RandomizedResponse(k=2, epsilon=each)) for each in (1e-17, 1.0)]
    with pytest.raises(NumericalError, match="larger epsilon for this group"):
        hs.estimate(np.zeros(10, dtype=np.int64), protocol=hs.MixedProtocol(groups=tiny, shuffler=shuffler))
