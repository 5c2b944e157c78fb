"""Shuffled releases inside dp-accounting have our figures, and compose with its events."""

from __future__ import annotations

import dp_accounting
import pytest
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import pld_privacy_accountant, privacy_loss_distribution

import hushuffle as hs
from hushuffle.integrations.dp_accounting import (
    ChannelDpEvent,
    ShuffledReleaseDpEvent,
    ShufflePLDAccountant,
    UnaryEncodingDpEvent,
    protocol_of,
)

SURVEY = ShuffledReleaseDpEvent(10_000, dp_event.RandomizedResponseDpEvent(0.3, 10))
MATRIX = ((0.7, 0.2, 0.1), (0.15, 0.7, 0.15), (0.1, 0.2, 0.7))
EVENTS = (
    SURVEY,
    ShuffledReleaseDpEvent(2000, ChannelDpEvent(MATRIX)),
    ShuffledReleaseDpEvent(5000, UnaryEncodingDpEvent(20, 2.0), num_dummies=500),
)


@pytest.mark.parametrize("event", [*EVENTS[:2], pytest.param(EVENTS[2], marks=pytest.mark.slow)])
def test_the_accountant_is_as_tight_as_ours(event: ShuffledReleaseDpEvent) -> None:
    accountant = ShufflePLDAccountant()
    accountant.compose(event, 3)
    ours = hs.dp.compose([(protocol_of(event), 3)], delta=1e-6)
    assert ours.lower <= accountant.get_epsilon(1e-6) <= 1.005 * ours.upper
    assert accountant.get_delta(ours.upper) <= 1.1e-6


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event.event).__name__)
def test_an_event_survives_its_named_tuple(event: ShuffledReleaseDpEvent) -> None:
    assert dp_event.DpEvent.from_named_tuple(event.to_named_tuple()) == event


def test_a_survey_composes_with_a_gaussian() -> None:
    accountant = ShufflePLDAccountant()
    accountant.compose(dp_event.ComposedDpEvent([SURVEY, dp_event.GaussianDpEvent(10.0)]))
    relation = privacy_accountant.NeighboringRelation.REPLACE_ONE
    noise = privacy_loss_distribution.from_gaussian_mechanism(10.0, neighboring_relation=relation)
    ours = hs.dp.compose([protocol_of(SURVEY), hs.dp.from_pld(noise)], delta=1e-6)
    assert accountant.get_epsilon(1e-6) == pytest.approx(ours.upper, rel=5e-3)


def test_noise_is_calibrated_by_their_search() -> None:
    noise = dp_accounting.calibrate_dp_mechanism(
        lambda: ShufflePLDAccountant(1e-3),
        lambda parameter: ShuffledReleaseDpEvent(10_000, dp_event.RandomizedResponseDpEvent(parameter, 10)),
        0.2,
        1e-6,
        dp_accounting.ExplicitBracketInterval(0.05, 0.9),
        tol=1e-3,
    )
    found = ShuffledReleaseDpEvent(10_000, dp_event.RandomizedResponseDpEvent(noise, 10))
    assert 0.195 < hs.dp.epsilon(protocol_of(found), delta=1e-6).upper <= 0.2


def test_several_reports_of_one_person_count_each() -> None:
    """The accountant of dp-accounting 0.6.0 composes this event once, whatever the count."""
    report, relation = dp_event.RandomizedResponseDpEvent(0.3, 10), privacy_accountant.NeighboringRelation.REPLACE_ONE
    accountant = ShufflePLDAccountant()
    accountant.compose(report, 4)
    once = privacy_loss_distribution.from_randomized_response(0.3, 10, neighboring_relation=relation)
    truth = once.self_compose(4).get_epsilon_for_delta(1e-6)
    assert accountant.get_epsilon(1e-6) == pytest.approx(truth, rel=1e-6)
    theirs = pld_privacy_accountant.PLDAccountant(relation)
    theirs.compose(report, 4)
    assert truth == pytest.approx(12.77, rel=1e-3)
    assert theirs.get_epsilon(1e-6) in (pytest.approx(3.1919, rel=1e-3), pytest.approx(truth, rel=1e-3))


@pytest.mark.parametrize(
    "event",
    [
        ShuffledReleaseDpEvent(100, dp_event.LaplaceDpEvent(1.0)),
        ShuffledReleaseDpEvent(100, dp_event.RandomizedResponseDpEvent(0.0, 10)),
        ShuffledReleaseDpEvent(0, dp_event.RandomizedResponseDpEvent(0.3, 10)),
    ],
)
def test_what_is_not_analysed_is_not_supported(event: ShuffledReleaseDpEvent) -> None:
    accountant = ShufflePLDAccountant()
    assert not accountant.supports(event)
    with pytest.raises(privacy_accountant.UnsupportedEventError):
        accountant.compose(event)
