from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.estimation import estimate, keep_significant, predicted_standard_error, project_on_simplex
from hushuffle.mechanisms.shufflers import UniformShuffle
from oracles.rr_simplex import nearest, optimality_gap
from oracles.rr_statistics import estimate_moments
from plain_protocols import Opaque


@dataclass(frozen=True, kw_only=True)
class WithDummies(UniformShuffle):
    """A uniform shuffle with dummies."""

    count: int

    @property
    def dummies(self) -> int:
        return self.count


def survey(*, k: int, epsilon: float, n: int, dummies: int = 0) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=WithDummies(count=dummies), n=n)


def made(raw: list[float], *, intercept: float = 1e-4, slope: float = 0.0) -> hs.Estimate:
    array = np.array(raw)
    return hs.Estimate(frequencies=array, raw=array, n=100, variance_intercept=intercept, variance_slope=slope)


@pytest.mark.parametrize(
    ("k", "values", "dummies"),
    [(2, [0, 0, 1, 1, 1], 0), (3, [0, 1, 1], 0), (2, [1, 1], 3), (3, [2, 2], 2), (4, [0, 3], 1), (5, [1], 0)],
)
def test_mean_and_variance_by_enumeration(k: int, values: list[int], dummies: int) -> None:
    n = len(values)
    protocol = survey(k=k, epsilon=1.0, n=n, dummies=dummies)
    law = hs.RandomizedResponse(k=k, epsilon=1.0).law()
    channel = [[law.truth if x == y else law.lie for y in range(k)] for x in range(k)]
    for target in range(k):
        mean, variance = estimate_moments(channel, values, target, dummies=dummies)
        share = values.count(target) / n
        assert mean == Fraction(values.count(target), n)
        error = float(predicted_standard_error(protocol, frequency=share))
        assert error**2 == pytest.approx(float(variance), rel=1e-12)


@pytest.mark.parametrize(("k", "epsilon", "p"), [(2, 1.0, 0.3), (5, 2.0, 0.0), (100, 0.5, 1.0)])
def test_variance_agrees_with_the_published_form(k: int, epsilon: float, p: float) -> None:
    n, growth = 1000, math.expm1(epsilon)
    published = (k + growth - 1) / (n * growth**2) + p * (k - 2) / (n * growth)
    predicted = predicted_standard_error(survey(k=k, epsilon=epsilon, n=n), frequency=p)
    assert float(predicted) ** 2 == pytest.approx(published, rel=1e-12)


def test_predicted_errors_keep_their_shape() -> None:
    protocol = survey(k=3, epsilon=1.0, n=50)
    assert predicted_standard_error(protocol, frequency=0.5).shape == ()
    assert predicted_standard_error(protocol, frequency=[[0.0, 1.0]]).shape == (1, 2)
    assert predicted_standard_error(protocol, frequency=[]).shape == (0,)
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(
            InvalidInputError, match=r"`frequency` must be in \[0, 1\], got frequency=<a value outside>"
        ):
            predicted_standard_error(protocol, frequency=[0.2, wrong])


def test_transcript_reports_and_counts_give_the_same() -> None:
    protocol = survey(k=3, epsilon=1.0, n=40, dummies=5)
    transcript = protocol.collect(np.arange(40) % 3, rng=hs.reproducible(1))
    counts = hs.Histogram(counts=np.bincount(transcript.reports, minlength=3))
    found = [estimate(given, protocol=protocol) for given in (transcript, transcript.reports, counts)]
    for other in found[1:]:
        assert np.array_equal(found[0].frequencies, other.frequencies)
    assert found[0].frequencies.sum() == pytest.approx(1.0)
    assert found[0].n == 40
    assert found[0].postprocessing == ()
    expected = predicted_standard_error(protocol, frequency=np.clip(found[0].raw, 0, 1))
    assert found[0].standard_errors[0] == pytest.approx(expected[0])


def test_without_noise_the_estimate_is_the_truth() -> None:
    protocol = survey(k=4, epsilon=math.inf, n=8)
    found = estimate(protocol.collect([0, 0, 0, 0, 1, 1, 3, 3]), protocol=protocol)
    assert found.frequencies.tolist() == [0.5, 0.25, 0.0, 0.25]
    assert found.standard_errors.tolist() == [0.0] * 4
    assert found.interval(0.99).tolist() == [[0.5, 0.5], [0.25, 0.25], [0.0, 0.0], [0.25, 0.25]]


def test_wrong_reports_are_refused() -> None:
    protocol = survey(k=3, epsilon=1.0, n=4, dummies=2)
    with pytest.raises(InvalidInputError, match=r"`reports` must be n \+ dummies = 6 reports, got reports=4"):
        estimate(np.array([0, 1, 2, 0]), protocol=protocol)
    with pytest.raises(InvalidInputError, match=r"`reports` must be counts of 3 values, got reports=2"):
        estimate(hs.Histogram(counts=[3, 3]), protocol=protocol)
    with pytest.raises(InvalidInputError, match=r"`reports` must be integers from 0 to 2"):
        estimate(np.array([0, 1, 2, 0, 3, 3]), protocol=protocol)
    other = hs.Protocol(randomizer=Opaque(), shuffler=hs.NoShuffle(), n=2)
    message = r"Frequency estimation needs reports that support values, which Opaque does not offer"
    with pytest.raises(UnsupportedProtocolError, match=message):
        estimate(np.array([0, 1]), protocol=other)
    with pytest.raises(UnsupportedProtocolError, match=message):
        predicted_standard_error(other, frequency=0.5)


# Intervals: coverage by the exact law of the count, not by simulation.


def coverage(*, k: int, epsilon: float, n: int, p: float, confidence: float) -> float:
    law = hs.RandomizedResponse(k=k, epsilon=epsilon).law()
    truth, lie, holders = float(law.truth), float(law.lie), round(n * p)
    yes = stats.binom(holders, truth).pmf(np.arange(holders + 1))
    no = stats.binom(n - holders, lie).pmf(np.arange(n - holders + 1))
    weights = np.convolve(yes, no)
    raw = (np.arange(n + 1) / n - lie) / (truth - lie)
    intercept = lie * (1 - lie) / (n * (truth - lie) ** 2)
    slope = (truth * (1 - truth) - lie * (1 - lie)) / (n * (truth - lie) ** 2)
    intervals = made(raw.tolist(), intercept=intercept, slope=slope).interval(confidence)
    inside = (intervals[:, 0] <= holders / n + 1e-12) & (holders / n - 1e-12 <= intervals[:, 1])
    return float(weights[inside].sum())


@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.5), (2, 3.0), (10, 1.0), (10, 5.0)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_score_intervals_cover(k: int, epsilon: float, p: float, confidence: float) -> None:
    found = coverage(k=k, epsilon=epsilon, n=4000, p=p, confidence=confidence)
    tolerance = 0.15 * (1 - confidence) + 0.004
    assert found > confidence - tolerance
    if 0 < p < 1:  # at the ends of [0, 1] the interval can miss on one side only
        assert found < confidence + tolerance


def test_interval_solves_its_inequality() -> None:
    found = made([0.02, 0.4, 0.9], intercept=4e-4, slope=1e-3)
    z = NormalDist().inv_cdf(0.975)
    for raw, (low, high) in zip(found.raw, found.interval(0.95), strict=True):
        for end in (low, high):
            if 0 < end < 1:
                assert abs(raw - end) == pytest.approx(z * math.sqrt(4e-4 + 1e-3 * end), rel=1e-9)
    assert np.all(found.interval(0.5)[:, 0] >= found.interval(0.99)[:, 0])


# Post-processing.


def test_only_significant_frequencies_are_kept() -> None:
    found = made([0.5, 0.024, 0.02, -0.3], intercept=1e-4)
    kept = keep_significant(found)  # cut at 0.01 times the normal quantile of 1 - 0.05/4, 2.2414
    assert kept.frequencies.tolist() == [0.5, 0.024, 0.0, 0.0]
    assert kept.raw is found.raw
    assert kept.postprocessing == ("significant at 0.05",)
    assert keep_significant(found, level=0.5).frequencies.tolist() == [0.5, 0.024, 0.02, 0.0]
    for level in (0.0, 1.0):
        with pytest.raises(InvalidInputError, match=r"`level` must be in \(0, 1\)"):
            keep_significant(found, level=level)


def test_absent_values_are_kept_as_rarely_as_said() -> None:
    n, k = 5000, 20
    law = hs.RandomizedResponse(k=k, epsilon=2.0).law()
    truth, lie = float(law.truth), float(law.lie)
    counts = np.arange(n + 1)
    intercept = lie * (1 - lie) / (n * (truth - lie) ** 2)
    raw = ((counts / n - lie) / (truth - lie))[1:].reshape(-1, k)  # n counts, k at a time
    kept = np.concatenate([keep_significant(made(row.tolist(), intercept=intercept)).frequencies > 0 for row in raw])
    false_alarm = float(stats.binom(n, lie).pmf(counts[1:])[kept].sum())
    assert 0.8 * 0.05 / k < false_alarm < 1.3 * 0.05 / k


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=12))
def test_projection_is_the_nearest_point(values: list[float]) -> None:
    projected = project_on_simplex(made(values))
    assert projected.frequencies == pytest.approx(nearest(values), abs=1e-9)
    assert optimality_gap(values, projected.frequencies.tolist()) < 1e-12
    assert projected.postprocessing == ("simplex projection",)
    assert projected.raw.tolist() == values


def test_a_distribution_is_its_own_projection() -> None:
    assert project_on_simplex(made([0.25, 0.5, 0.25])).frequencies.tolist() == [0.25, 0.5, 0.25]


def test_projection_of_enormous_estimates() -> None:
    assert project_on_simplex(made([1e17, -1e17])).frequencies.tolist() == [1.0, 0.0]


def test_postprocessing_is_remembered_in_order() -> None:
    both = project_on_simplex(keep_significant(made([0.9, 0.001])))
    assert both.postprocessing == ("significant at 0.05", "simplex projection")
    assert both.frequencies.tolist() == pytest.approx([0.95, 0.05])
    assert "significant at 0.05" in repr(both)
