"""Privacy loss distributions for dp-accounting and from it: they dominate, or are dominated, whatever is composed."""

from __future__ import annotations

import itertools
import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, MissingDependencyError, UnsupportedProtocolError
from oracles import dp_composition as oracle

library = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

LEVELS = np.linspace(-1.5, 2.5, 41)


def survey(k: int, epsilon: float, n: int, shuffler: Any = None) -> hs.Protocol:
    return hs.Protocol(
        randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=shuffler or hs.UniformShuffle(), n=n
    )


def every_pair(protocol: hs.Protocol) -> list[oracle.Pair]:
    rows = protocol.randomizer.law().channel().matrix
    return oracle.round_pairs(protocol.n, rows.shape[0], float(Fraction(float(rows[0, 0]))))


def delta(pld: Any, level: float) -> float:
    return float(pld.get_delta_for_epsilon(level))


@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 4), (3, 3)])
@pytest.mark.parametrize("interval", [0.2, 0.03])
def test_one_round_by_every_dataset(k: int, n: int, interval: float) -> None:
    """Neighbours are neighbours both ways, so every pair is listed in both directions; negative levels as well."""
    protocol = survey(k, 1.2, n)
    pairs = every_pair(protocol)
    above = hs.dp.to_pld(protocol, interval=interval, delta=1e-3)
    below = hs.dp.to_pld(protocol, interval=interval, delta=1e-3, optimistic=True)
    closest = math.inf
    for level in LEVELS:
        worst = max(float(oracle.hockey_stick([pair], math.exp(level))) for pair in pairs)
        assert delta(below, level) - 1e-14 <= worst <= delta(above, level) + 1e-14
        closest = min(closest, delta(above, level) - worst)
    assert delta(below, 0.0) > 0


@pytest.mark.parametrize("times", [2, 3])
def test_rounds_by_every_dataset_chosen_as_one_goes(times: int) -> None:
    protocol = survey(2, 0.9, 2)
    pairs = every_pair(protocol)
    above, below = (
        hs.dp.to_pld([(protocol, times)], interval=0.02, delta=1e-3, optimistic=way) for way in (False, True)
    )
    again = hs.dp.to_pld(protocol, interval=0.02, delta=1e-3).self_compose(times)
    for level in np.linspace(0.0, 2.5, 11):
        adaptive = float(oracle.worst_adaptive([pairs] * times, math.exp(level)))
        fixed = float(oracle.worst_fixed([pairs] * times, math.exp(level)))
        assert adaptive <= delta(above, level) + 1e-13
        assert delta(below, level) <= fixed + 1e-13
        assert delta(again, level) == pytest.approx(delta(above, level), abs=1e-9)
    assert delta(below, 0.5) > 0.7 * delta(above, 0.5)


@pytest.mark.parametrize(
    ("rounds", "interval"),
    [
        ([survey(2, 1.0, 300)], 2e-3),
        ([(survey(3, 1.5, 40), 3), survey(2, 1.0, 100)], 1e-2),
        ([survey(4, 1.0, 50, hs.Scrambler(dummies=20))], 4e-3),
    ],
)
def test_they_hold_our_figures_between_them(rounds: Any, interval: float) -> None:
    above, below = (hs.dp.to_pld(rounds, interval=interval, optimistic=way) for way in (False, True))
    for level in (0.0, 0.12, 0.3):
        ours = hs.dp.compose_delta(rounds, epsilon=level)
        assert delta(below, level) <= ours.upper * (1 + 1e-9)
        assert ours.lower * (1 - 1e-9) <= delta(above, level)
        assert delta(above, level) <= ours.upper * 1.03 + 1e-11
    epsilon = hs.dp.compose(rounds, delta=1e-6)
    least, most = (pld.get_epsilon_for_delta(1e-6) for pld in (below, above))
    assert epsilon.lower * 0.9 < least <= epsilon.upper
    assert epsilon.lower <= most < epsilon.upper * 1.01


def test_a_finer_interval_only_lowers_the_dominating_one() -> None:
    protocol = survey(3, 2.0, 200)
    coarse, finer = (hs.dp.to_pld(protocol, interval=interval) for interval in (0.08, 0.04))
    falls = [delta(coarse, level) - delta(finer, level) for level in np.linspace(0, 0.8, 17)]
    assert min(falls) > -1e-12
    assert max(falls) > 1e-5


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_with_a_noisy_release(noise: str) -> None:
    """Composed by dp-accounting and by us; and no less than what explicit datasets attain together."""
    interval, protocol = 4e-3, survey(2, 1.0, 100)

    def release(*, pessimistic: bool) -> Any:
        make = library.from_gaussian_mechanism if noise == "gaussian" else library.from_laplace_mechanism
        return make(4.0, value_discretization_interval=interval, pessimistic_estimate=pessimistic)

    theirs = hs.dp.to_pld([(protocol, 2)], interval=interval).compose(release(pessimistic=True))
    least = hs.dp.to_pld([(protocol, 2)], interval=interval, optimistic=True).compose(
        release(pessimistic=False), tail_mass_truncation=0
    )
    ours = hs.dp.compose([(protocol, 2), hs.dp.from_pld(release(pessimistic=True))], delta=1e-6)
    alone = hs.dp.compose([(protocol, 2)], delta=1e-6)
    low, high = (pld.get_epsilon_for_delta(1e-6) for pld in (least, theirs))
    assert low <= ours.upper
    assert ours.upper == pytest.approx(high, rel=2e-3)
    assert ours.upper < low * 1.06
    assert alone.lower * (1 - 1e-3) <= ours.lower < low
    profile = hs.dp.profile([(protocol, 2), hs.dp.from_pld(release(pessimistic=True))], points=3, least=1e-6)
    assert profile.delta(ours.upper)[()].upper == pytest.approx(1e-6, rel=0.05)


def test_there_and_back() -> None:
    protocol = survey(3, 1.0, 100)
    pld = hs.dp.to_pld(protocol, interval=4e-3)
    back = hs.dp.from_pld(pld)
    for level in (0.0, 0.05, 0.1234, 0.3, 1.0, 5.0):
        assert back.upper(level) == pytest.approx(delta(pld, level), rel=1e-9, abs=1e-30)
    ours = hs.dp.compose([back], delta=1e-6)
    assert (ours.kind, ours.lower) == ("upper", 0.0)
    assert ours.upper == pytest.approx(pld.get_epsilon_for_delta(1e-6), rel=1e-6)
    assert hs.dp.compose_delta([back], epsilon=0.1).upper == pytest.approx(delta(pld, 0.1), rel=1e-9)
    assert hs.dp.parallel([back], delta=1e-6) == ours
    assert hs.dp.compose([back], delta=0.0).upper == math.inf  # some mass stands at infinity
    ends = [back.upper(level) for level in np.linspace(0, 0.3, 9)]
    assert all(first >= second for first, second in itertools.pairwise(ends))
    finite = hs.dp.from_pld(library.from_randomized_response(0.5, 2))
    assert hs.dp.compose([(finite, 2)], delta=0.0).upper == pytest.approx(2 * math.log(3), rel=1e-3)


def test_datasets_that_nobody_lists_say_nothing() -> None:
    """A round without known datasets is left out of the optimistic distribution: post-processing."""
    noisy = hs.dp.from_pld(library.from_gaussian_mechanism(1.0))
    assert delta(hs.dp.to_pld([noisy], optimistic=True), 0.0) == 0.0
    both = hs.dp.to_pld([survey(2, 1.0, 100), noisy], interval=1e-2, optimistic=True)
    one = hs.dp.to_pld(survey(2, 1.0, 100), interval=1e-2, optimistic=True)
    assert delta(both, 0.1) == delta(one, 0.1)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: hs.dp.to_pld(survey(2, 1.0, 5), interval=0.0), "`interval` must be finite and > 0"),
        (lambda: hs.dp.to_pld(survey(2, 1.0, 5), delta=0.5), r"`delta` must be in \(0, 0.5\)"),
        (lambda: hs.dp.to_pld([]), "`rounds` must be at least one protocol"),
        (lambda: hs.dp.from_pld(3), "`pld` must be a PrivacyLossDistribution of dp-accounting, got pld=<int>"),
        (
            lambda: hs.dp.from_pld(library.from_gaussian_mechanism(1.0, pessimistic_estimate=False)),
            "`pld` must be a pessimistic distribution",
        ),
    ],
)
def test_bad_arguments(ask: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ask()


@pytest.mark.parametrize("optimistic", [False, True])
def test_a_round_without_noise_has_no_distribution(optimistic: bool) -> None:
    open_book = hs.MatrixRandomizer([[1.0, 0.0], [0.0, 1.0]])
    bare = hs.Protocol(randomizer=open_book, shuffler=hs.UniformShuffle(), n=2)
    noisy = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=2)
    both: list[Any] = [[bare], [noisy, (bare, 2)]]
    for rounds in both:
        with pytest.raises(UnsupportedProtocolError, match="shows for certain which of two datasets"):
            hs.dp.to_pld(rounds, optimistic=optimistic)


def test_what_needs_a_protocol_refuses_a_distribution() -> None:
    noisy = hs.dp.from_pld(library.from_gaussian_mechanism(1.0))
    with pytest.raises(UnsupportedProtocolError, match="not several randomizers, imported distributions"):
        hs.dp.approximate([noisy], delta=1e-6)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library.__name__, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'hushuffle\[accounting\]'"):
        hs.dp.to_pld(survey(2, 1.0, 5))
