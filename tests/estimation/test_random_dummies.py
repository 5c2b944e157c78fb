"""Frequencies where the number of dummies is random: it is counted."""

from __future__ import annotations

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.estimation import heavy_hitters, predicted_standard_error

LAW = hs.DummyLaw.of({0: 0.5, 400: 0.5})
SURVEY = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.Scrambler(dummies=LAW), n=300)
VALUES = np.repeat([0, 1, 2], [150, 90, 60])


def test_an_estimate_is_that_of_the_number_that_is_counted() -> None:
    for seed in range(6):
        released = SURVEY.collect(VALUES, rng=hs.reproducible(seed))
        given = SURVEY.with_dummies(released.dummies)
        for reports in (released, released.reports):
            drawn, fixed = (hs.estimate(reports, protocol=protocol) for protocol in (SURVEY, given))
            assert np.array_equal(drawn.frequencies, fixed.frequencies)
            assert drawn.variance_intercept == fixed.variance_intercept


def test_estimates_are_unbiased_and_as_accurate_as_predicted() -> None:
    # Six standard errors of a mean of 600 runs: false alarms below 1e-8 each.
    rng, runs = hs.reproducible(5), 600
    found = np.array([hs.estimate(SURVEY.collect(VALUES, rng=rng), protocol=SURVEY).frequencies for _ in range(runs)])
    predicted = predicted_standard_error(SURVEY, frequency=[0.5, 0.3, 0.2])
    assert np.all(abs(found.mean(axis=0) - [0.5, 0.3, 0.2]) < 6 * predicted / np.sqrt(runs))
    assert found.std(axis=0) == pytest.approx(predicted, rel=0.2)
    less, more = (predicted_standard_error(SURVEY.with_dummies(d), frequency=0.5) for d in (0, 400))
    assert predicted[0] ** 2 == pytest.approx((less**2 + more**2) / 2, rel=1e-12)


def test_a_number_that_never_occurs_is_refused() -> None:
    with pytest.raises(
        InvalidInputError, match=r"`reports` must be n = 300 reports plus a number of dummies possible under DummyLaw"
    ):
        hs.estimate(np.zeros(301, dtype=np.int64), protocol=SURVEY)


def test_counts_and_heavy_hitters_need_the_number_said() -> None:
    released = SURVEY.collect(VALUES, rng=hs.reproducible(3))
    given = SURVEY.with_dummies(released.dummies)
    counts = SURVEY.randomizer.counts(released.reports)
    with pytest.raises(UnsupportedProtocolError, match=r"protocol\.with_dummies"):
        hs.estimate(counts, protocol=SURVEY)
    estimated = hs.estimate(counts, protocol=given)
    with pytest.raises(UnsupportedProtocolError, match=r"protocol\.with_dummies"):
        heavy_hitters(estimated, protocol=SURVEY)
    assert 0 in heavy_hitters(estimated, protocol=given).values
