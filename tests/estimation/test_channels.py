"""Frequencies from reports that support no values: by the inverse of the matrix, or by weighted least squares."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.estimation import estimate, heavy_hitters, keep_significant, predicted_standard_error, standard_errors_at
from hushuffle.estimation.readout import frequency_variance, readout

SQUARE = [[0.5, 0.2, 0.3], [0.1, 0.7, 0.2], [0.25, 0.25, 0.5]]
WIDE = [[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.3, 0.5], [0.2, 0.5, 0.2, 0.1]]


def protocol(matrix: Any, n: int, dummies: int = 0) -> hs.Protocol:
    shuffler = hs.Scrambler(dummies=dummies)
    return hs.Protocol(randomizer=hs.MatrixRandomizer(channel=hs.Channel(matrix=matrix)), shuffler=shuffler, n=n)


def weights_of(survey: hs.Protocol) -> npt.NDArray[np.float64]:
    """Return what each report adds to the count of each value, shape (reports, values)."""
    lone = np.eye(survey.randomizer.counted, dtype=np.int64)
    read = readout(survey.randomizer)
    return np.array([read.frequencies(counts, n=1, dummies=0) for counts in lone])


def moments(survey: hs.Protocol, values: list[int]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return mean and variance of the estimate by going through all reports of all people and dummies."""
    matrix = survey.randomizer.channel().matrix
    laws = [*(matrix[value] for value in values)]
    laws += [survey.randomizer.law().blanket().law] * survey.shuffler.dummies
    mean, square = np.zeros(matrix.shape[0]), np.zeros(matrix.shape[0])
    for reports in itertools.product(range(matrix.shape[1]), repeat=len(laws)):
        chance = np.prod([law[report] for law, report in zip(laws, reports, strict=True)])
        made = estimate(np.array(reports), protocol=survey).raw
        mean += chance * made
        square += chance * made**2
    return mean, square - mean**2


@pytest.mark.parametrize("matrix", [SQUARE, WIDE])
@pytest.mark.parametrize("dummies", [0, 2])
def test_mean_and_variance_are_those_of_all_reports(matrix: list[list[float]], dummies: int) -> None:
    values = [0, 0, 2]
    survey = protocol(matrix, len(values), dummies)
    mean, variance = moments(survey, values)
    truth = np.bincount(values, minlength=3) / len(values)
    assert mean == pytest.approx(truth, abs=1e-10)
    assert variance == pytest.approx(standard_errors_at(survey, frequencies=truth) ** 2, rel=1e-9)


def test_randomized_response_reads_the_same_by_its_matrix() -> None:
    plain = hs.Protocol(randomizer=hs.RandomizedResponse(k=4, epsilon=1.0), shuffler=hs.Scrambler(dummies=7), n=50)
    table = protocol(plain.randomizer.channel().matrix, 50, 7)
    counts = hs.Histogram(counts=[20, 10, 12, 15])
    first, second = estimate(counts, protocol=plain), estimate(counts, protocol=table)
    assert second.raw == pytest.approx(first.raw)
    assert second.standard_errors == pytest.approx(first.standard_errors)
    assert second.interval(0.9) == pytest.approx(first.interval(0.9))
    shares = np.array([0.0, 0.3, 1.0])
    assert predicted_standard_error(table, frequency=shares) == pytest.approx(
        predicted_standard_error(plain, frequency=shares)
    )


def test_the_predicted_error_is_the_largest_over_values_and_others() -> None:
    survey, rng = protocol(WIDE, 100), np.random.default_rng(1)
    variance = frequency_variance(survey)
    for share in (0.0, 0.2, 1.0):
        largest = float(variance.worst(share))
        seen = 0.0
        for value in range(3):
            corners = []
            for other in set(range(3)) - {value}:
                frequencies = np.zeros(3)
                frequencies[value], frequencies[other] = share, 1 - share
                corners.append(frequencies)
            mixed = rng.dirichlet(np.ones(len(corners))) @ np.array(corners)
            seen = max(seen, *(float(variance.at(corner)[value]) for corner in corners))
            assert variance.at(mixed)[value] <= largest * (1 + 1e-12)
        assert seen == pytest.approx(largest)


def test_more_reports_than_values_are_weighted_for_the_least_variance() -> None:
    survey = protocol(WIDE, 100)
    least = frequency_variance(survey).at(np.full(3, 1 / 3)).sum()
    weights, free = weights_of(survey), np.linalg.svd(np.array(WIDE))[2][-1]
    for step in (-0.1, 0.1):
        other = weights + step * free[:, None]
        assert np.array(WIDE) @ other == pytest.approx(np.eye(3), abs=1e-9)
        spread = np.full(3, 1 / 3) @ np.array(WIDE) @ other**2
        assert (spread - 1 / 3).sum() / 100 > least


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_hold_the_truth_as_often_as_they_say(confidence: float) -> None:
    survey, rng = protocol(WIDE, 2000), hs.reproducible(5)
    values = np.repeat([0, 1, 2], [1600, 360, 40])
    truth, inside, runs = np.bincount(values) / 2000, np.zeros(3), 400
    for _ in range(runs):
        ends = estimate(survey.collect(values, rng=rng), protocol=survey).interval(confidence)
        inside += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    spread = np.sqrt(confidence * (1 - confidence) / runs)
    assert np.abs(inside / runs - confidence).max() < 4.5 * spread


def test_a_value_that_nobody_holds_is_rarely_listed() -> None:
    survey, rng = protocol(SQUARE, 300, 20), hs.reproducible(6)
    values = np.repeat([0, 1], [200, 100])
    found = [
        heavy_hitters(estimate(survey.collect(values, rng=rng), protocol=survey), protocol=survey, level=0.2)
        for _ in range(300)
    ]
    assert sum(2 in one.values for one in found) <= 0.2 / 3 * 300
    assert sum(0 in one.values for one in found) == 300


@pytest.mark.parametrize("matrix", [SQUARE, WIDE])
@pytest.mark.parametrize("dummies", [0, 2])
def test_thresholds_are_reached_no_more_often_than_they_say(matrix: list[list[float]], dummies: int) -> None:
    survey = protocol(matrix, 4, dummies)
    read, table = readout(survey.randomizer), survey.randomizer.channel().matrix
    blanket, weights = survey.randomizer.law().blanket().law, weights_of(survey)
    everybody = list(itertools.product(range(table.shape[1]), repeat=4 + dummies))
    totals = (weights[everybody].sum(axis=1) - dummies * blanket @ weights) / 4
    for value, others in itertools.product(range(3), itertools.combinations_with_replacement(range(3), 4)):
        if value in others:
            continue
        laws = [*(table[other] for other in others), *[blanket] * dummies]
        chances = np.prod(
            [law[list(place)] for law, place in zip(laws, zip(*everybody, strict=True), strict=True)], axis=0
        )
        for chance in (0.3, 0.05, 0.001):
            reached = totals[:, value] >= read.thresholds(n=4, dummies=dummies, chance=chance)[value]
            assert chances[reached].sum() <= chance


def test_only_significant_values_are_kept() -> None:
    survey = protocol(WIDE, 10_000)
    made = estimate(survey.collect(np.repeat([0, 1], [9000, 1000]), rng=hs.reproducible(1)), protocol=survey)
    assert (keep_significant(made).frequencies > 0).tolist() == [True, True, False]


@pytest.mark.parametrize("matrix", [SQUARE, WIDE])
def test_fake_users_move_a_share_as_far_as_the_weights_say(matrix: list[list[float]]) -> None:
    survey = protocol(matrix, 6)
    gain = hs.poisoning_gain(survey, fakes=6)
    moved = np.array([estimate(np.full(6, report), protocol=survey).raw for report in range(len(matrix[0]))])
    assert [-gain.lowered.upper, gain.raised.upper] == pytest.approx([moved.min(), moved.max()])
    assert (gain.honest.upper, gain.at_once) == (1.0, 1)


def test_rows_that_depend_on_each_other_are_refused() -> None:
    survey = protocol([[0.5, 0.5], [0.2, 0.8], [0.35, 0.65]], 10)
    with pytest.raises(NumericalError, match="do not distinguish all values"):
        estimate(np.zeros(10, dtype=np.int64), protocol=survey)
    same = protocol([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]], 10)
    with pytest.raises(NumericalError, match="do not distinguish all values"):
        predicted_standard_error(same, frequency=0.5)


def test_a_report_that_never_occurs_changes_nothing() -> None:
    plain, more = protocol(SQUARE, 10), protocol([[*row[:1], 0.0, *row[1:]] for row in SQUARE], 10)
    first = estimate(hs.Histogram(counts=[5, 3, 2]), protocol=plain)
    assert estimate(hs.Histogram(counts=[5, 0, 3, 2]), protocol=more).raw == pytest.approx(first.raw)


def test_wrong_counts_and_matrices_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="`reports` must be counts of 4 different reports"):
        estimate(hs.Histogram(counts=[1, 2, 3]), protocol=protocol(WIDE, 6))
    with pytest.raises(InvalidInputError, match=r"`variance_matrix` must be a \(k, k\) array"):
        hs.Estimate(
            frequencies=np.zeros(2),
            raw=np.zeros(2),
            n=3,
            variance_intercept=0.0,
            variance_slope=0.0,
            variance_matrix=np.zeros((3, 3)),
        )
