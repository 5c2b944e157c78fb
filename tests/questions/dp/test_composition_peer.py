"""Several rounds next to dp-accounting, to one part in a million, where it can express them.

It knows no worst case over datasets: rounds whose senders are seen, one pair of datasets, and the pairs that
dominate a round.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution

import hushuffle as hs
from hushuffle.curves.dataset_pair import inscribed
from hushuffle.curves.pairs.composition import Tables
from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.numerics.loss_sum import LossLattice, LossSum, best_tilt

EXACT = 1e-6


def local(k: int, epsilon: float) -> Protocol:
    return Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.NoShuffle(), n=5)


def shuffled(k: int, epsilon: float, n: int) -> Protocol:
    return Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


def answers(k: int, epsilon: float, interval: float) -> pld_pmf.PLDPmf:
    """Randomized response there: the truth, the other value of the pair, any other, all on the grid of losses."""
    lie, reach = 1 / (k + math.expm1(epsilon)), round(epsilon / interval)
    masses = {reach: math.exp(epsilon) * lie, -reach: lie, 0: (k - 2) * lie}
    return pld_pmf.create_pmf(masses, interval, 0.0, pessimistic_estimate=True).to_dense_pmf()


@pytest.mark.parametrize(
    "rounds",
    [[(2, 0.5, 2)], [(2, 0.1, 100)], [(5, 0.5, 10)], [(2, 0.5, 3), (3, 0.25, 8)], [(2, 1.0, 2), (20, 0.5, 6)]],
    ids=str,
)
def test_rounds_whose_senders_are_seen(rounds: list[tuple[int, float, int]]) -> None:
    interval = (0.1 if rounds[0][1] == 0.1 else 0.25) / 64
    theirs = sum_of([(answers(k, epsilon, interval), times) for k, epsilon, times in rounds])
    ours = [(local(k, epsilon), times) for k, epsilon, times in rounds]
    # One largest loss is on the lattice of dominating pairs, or both are.
    width = 1e-4 if 0.25 in {epsilon for _, epsilon, _ in rounds} else EXACT
    for delta in (1e-2, 1e-5):
        bound, other = hs.dp.compose(ours, delta=delta), theirs.get_epsilon_for_delta(delta)
        assert bound.lower == pytest.approx(other, rel=EXACT)
        assert other * (1 - EXACT) <= bound.upper <= other * (1 + width)
    bound = hs.dp.compose_delta(ours, epsilon=1.0)
    other = float(theirs.get_delta_for_epsilon(1.0))
    assert bound.lower == pytest.approx(other, rel=EXACT)
    assert other * (1 - EXACT) <= bound.upper <= other * (1 + 50 * width)


def sum_of(parts: list[tuple[pld_pmf.PLDPmf, int]]) -> pld_pmf.PLDPmf:
    composed = [part.self_compose(times, 0.0) for part, times in parts]
    return functools.reduce(lambda one, other: one.compose(other, 0.0), composed)


def as_theirs(part: LossLattice) -> pld_pmf.PLDPmf:
    masses = {part.first + int(i): float(part.mass[i]) for i in np.flatnonzero(part.mass)}
    return pld_pmf.create_pmf(masses, part.step, part.infinity, pessimistic_estimate=True).to_dense_pmf()


@pytest.mark.parametrize(
    "rounds",
    [
        [(shuffled(2, 2.0, 200), 10)],
        [(shuffled(5, 2.0, 100), 4), (shuffled(2, 1.0, 50), 3)],
        [(shuffled(3, 1.0, 100), 2), (local(2, 0.2), 5)],
    ],
    ids=["alike", "different", "one in the open"],
)
def test_dominating_pairs_add_up_to_the_same(rounds: list[tuple[Protocol, int]]) -> None:
    """Their sum of the pairs that the upper end is made of; its transform's absolute error is about 1e-13."""
    delta, times = 1e-5, [count for _, count in rounds]
    tables = Tables([(privacy_curve(protocol), count) for protocol, count in rounds], delta=delta)
    parts = [(profile.pair(), count) for profile, count in tables.curves(times)]
    theirs = sum_of([(as_theirs(part), count) for part, count in parts])
    ours = LossSum.of(parts, tilt=best_tilt(parts, delta=delta)).epsilon_above(delta, high=math.inf)
    other = float(theirs.get_epsilon_for_delta(delta))
    assert ours == pytest.approx(other, rel=EXACT)
    assert hs.dp.compose(rounds, delta=delta).upper <= ours * (1 + EXACT)


@pytest.mark.parametrize("times", [2, 7])
def test_one_pair_of_datasets_on_a_fine_lattice(times: int) -> None:
    """Thirty people, all others at the target's value; both libraries put losses on a grid, from either side."""
    pair = privacy_curve(shuffled(2, 1.0, 30)).datasets(log_tail=-80.0)[0]
    step, delta = 2e-5, 1e-5
    ours = LossSum.of([(inscribed(pair, step=step), times)], tilt=10.0).epsilon_below(delta)
    ends = [
        privacy_loss_distribution.from_two_probability_mass_functions(
            dict(enumerate(np.log(pair.q).tolist())),
            dict(enumerate(np.log(pair.p).tolist())),
            value_discretization_interval=step,
            pessimistic_estimate=pessimistic,
            symmetric=True,
        )
        .self_compose(times)
        .get_epsilon_for_delta(delta)
        for pessimistic in (False, True)
    ]
    assert ends[0] * (1 - EXACT) <= ours <= ends[1] * (1 + EXACT)
