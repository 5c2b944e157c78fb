"""Whose a report is, asked by somebody to whom all but the honest people tell which reports are theirs."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.assessment import findings
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.shufflers import Shuffler

TRUTH = hs.RandomizedResponse(k=3, epsilon=math.inf)
SOME = [hs.BlanketMessages(p=0.3, honest=0.4), hs.FakesPerValue(p=0.2, honest=0.4)]


def named(n: int, dishonest: int, k: int) -> Fraction:
    """Return how often the sender is named at best, honest people sending equally often, every link gone through.

    The reports of the dishonest are struck out: they say which ones are theirs. Reports are values.
    """
    honest = n - dishonest
    return max(
        sum((Fraction(1, honest) for _ in set(values)), Fraction(0))  # one of each value's holders is named
        for values in itertools.product(range(k), repeat=honest)
    )


@pytest.mark.parametrize("shuffler", SOME)
@pytest.mark.parametrize("n", [5, 10, 15])
def test_the_sender_is_one_of_the_honest_people(shuffler: Shuffler, n: int) -> None:
    survey = hs.Protocol(randomizer=TRUTH, shuffler=shuffler, n=n)
    expected = 1 - named(n, n * 3 // 5, 3)
    assert hs.pie.bayes_error(survey).lower == pytest.approx(float(expected), abs=1e-15)
    assert hs.pie.alpha(survey).upper == pytest.approx(math.log2(min(n * 2 // 5, 3)))
    assert hs.pie.composed_error(survey, reports=1).lower <= float(expected) + 1e-15
    assert hs.pie.composed_alpha(survey, reports=9).upper == pytest.approx(math.log2(n * 2 // 5))


@pytest.mark.parametrize("ask", [hs.pie.bayes_error, hs.pie.alpha, hs.pie.published_alpha, hs.pie.rr_alpha])
def test_it_is_the_question_about_so_many_people(ask: object) -> None:
    noisy = hs.RandomizedResponse(k=40, epsilon=2.0)
    some = hs.Protocol(randomizer=noisy, shuffler=hs.BlanketMessages(p=0.3, honest=0.02), n=1000)
    alone = hs.Protocol(randomizer=noisy, shuffler=hs.BlanketMessages(p=0.3), n=20)
    assert ask(some) == ask(alone)  # type: ignore[operator]


def test_noise_is_chosen_for_them_and_a_prior_is_theirs() -> None:
    noisy = hs.RandomizedResponse(k=40, epsilon=2.0)
    some = hs.Protocol(randomizer=noisy, shuffler=hs.BlanketMessages(p=0.3, honest=0.02), n=1000)
    alone = replace(some, shuffler=hs.BlanketMessages(p=0.3), n=20)
    routes = [[route.epsilon for route in hs.pie.calibrate(one, bayes_error=0.5)] for one in (some, alone)]
    assert routes[0] == routes[1]
    prior = np.arange(1, 21) / 210
    assert hs.pie.bayes_error(some, prior=prior) == hs.pie.bayes_error(alone, prior=prior)
    with pytest.raises(InvalidInputError):
        hs.pie.bayes_error(some, prior=np.full(1000, 1e-3))


def test_an_assessment_names_whoever_is_honest_alone() -> None:
    alone = hs.Protocol(randomizer=TRUTH, shuffler=hs.BlanketMessages(p=0.3, honest=0.001), n=1000)
    row = findings.identified(alone)
    assert (row.bound.lower, row.shown and row.shown.upper) == (0.0, 1.0)
    assert "100 % by blind guessing among honest people" in row.sentence
    with pytest.raises(UnsupportedProtocolError, match="Only one person is honest"):
        findings.identity_information(alone)
    ten = replace(alone, shuffler=hs.BlanketMessages(p=0.3, honest=0.01))
    assert (
        "about its sender; identifying one of 10 honest people takes 3.322 bits"
        in findings.identity_information(ten).sentence
    )
