from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from hypothesis import given, settings
from hypothesis import strategies as st

from hushuffle.errors import NumericalError
from hushuffle.numerics import loss_sum
from hushuffle.numerics.loss_sum import LossLattice, LossSum, best_tilt

STEP = 0.125
PART = LossLattice(step=STEP, first=-3, mass=np.array([0.1, 0.0, 0.2, 0.15, 0.05, 0.3, 0.15]), infinity=0.05)


def direct(parts: list[tuple[LossLattice, int]], epsilon: float) -> float:
    """The divergence of the composition, output by output."""
    every = [part for part, times in parts for _ in range(times)]
    total = 1 - math.prod(1 - part.infinity for part in every)
    for chosen in itertools.product(*[range(part.mass.size) for part in every]):
        loss = sum(part.losses[i] for part, i in zip(every, chosen, strict=True))
        mass = math.prod(part.mass[i] for part, i in zip(every, chosen, strict=True))
        total += mass * max(0.0, 1 - math.exp(epsilon - loss))
    return total


@pytest.mark.parametrize("tilt", [1e-3, 1.0, 7.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 1.4])
def test_both_ends_hold_the_direct_sum_whatever_the_tilt(epsilon: float, tilt: float) -> None:
    other = LossLattice(step=STEP, first=0, mass=np.array([0.5, 0.5]))
    parts = [(PART, 3), (other, 2)]
    table = LossSum.of(parts, tilt=tilt)
    finite = [(LossLattice(step=STEP, first=part.first, mass=part.mass), times) for part, times in parts]
    exact, rest = direct(parts, epsilon), direct(finite, epsilon)
    assert table.lower(epsilon) <= rest * (1 + 1e-14)
    assert exact <= table.upper(epsilon) * (1 + 1e-14)
    assert table.upper(epsilon) <= rest + 0.15 + 1e-9
    if tilt <= 1:
        assert table.lower(epsilon) == pytest.approx(rest, rel=1e-9)


@pytest.mark.parametrize("times", [10, 1000])
def test_a_published_library_agrees(times: int) -> None:
    """dp-accounting, whose transform is not tilted: its absolute error is about 1e-13 here."""
    masses = {-20: 0.3, -3: 0.1, 4: 0.2, 21: 0.4 - 1e-9}
    pmf = pld_pmf.create_pmf(masses, 1e-3, 1e-9, pessimistic_estimate=True).to_dense_pmf().self_compose(times, 0.0)
    mass = np.zeros(42)
    for place, weight in masses.items():
        mass[place + 20] = weight
    part = LossLattice(step=1e-3, first=-20, mass=mass, infinity=1e-9)
    table = LossSum.of([(part, times)], tilt=best_tilt([(part, times)], delta=1e-5))
    epsilon = table.epsilon_above(1e-5, high=math.inf)
    theirs = float(pmf.get_delta_for_epsilon(epsilon))
    assert table.upper(epsilon) == pytest.approx(theirs, rel=1e-7)
    assert table.lower(epsilon) + part.infinity * times >= 0.999999 * theirs
    assert table.upper(epsilon) <= 1e-5


@settings(max_examples=20)
@given(chance=st.floats(0.05, 0.95), times=st.integers(1, 400), log_delta=st.floats(-250, -1))
def test_binomial_tails_far_out(chance: float, times: int, log_delta: float) -> None:
    """Losses 0 and 1 only: the sum is binomial, summed here in logarithms."""
    part = LossLattice(step=1.0, first=0, mass=np.array([1 - chance, chance]))
    table = LossSum.of([(part, times)], tilt=best_tilt([(part, times)], delta=math.exp(log_delta)))
    epsilon = table.epsilon_above(math.exp(log_delta), high=float(times))
    below = table.epsilon_below(math.exp(log_delta))
    assert 0 <= below <= epsilon <= times
    # Where half of the largest loss is asked for, delta is far above underflow.
    level = max(epsilon - 1.5, 0.0)
    table = LossSum.of([(part, times)], tilt=best_tilt([(part, times)], epsilon=level))
    exact = sum(
        math.exp(
            math.lgamma(times + 1)
            - math.lgamma(ones + 1)
            - math.lgamma(times - ones + 1)
            + ones * math.log(chance)
            + (times - ones) * math.log1p(-chance)
        )
        * -math.expm1(level - ones)
        for ones in range(math.floor(level) + 1, times + 1)
    )
    assert table.lower(level) <= exact * (1 + 1e-9)
    assert exact <= table.upper(level) * (1 + 1e-9)
    assert table.upper(level) <= exact * (1 + 1e-6) + 1e-300


def test_doubt_is_counted_and_common_factors_cost_only_a_share() -> None:
    clear = LossLattice(step=STEP, first=PART.first, mass=PART.mass)
    doubtful = LossLattice(step=STEP, first=PART.first, mass=PART.mass, doubt=1e-3)
    scaled = LossLattice(step=STEP, first=PART.first, mass=PART.mass, common=1e-3)
    sums = [LossSum.of([(part, 2)], tilt=1.0) for part in (clear, doubtful, scaled)]
    first, second, third = (table.lower(0.1) for table in sums)
    assert second < first - 2e-3 * first
    assert third == pytest.approx(first * math.exp(-2.02e-3), rel=1e-9)


def test_no_lower_end_where_none_is_found() -> None:
    table = LossSum.of([(PART, 2)], tilt=1.0)
    assert table.epsilon_below(0.99) == 0.0
    assert table.epsilon_above(0.999, high=5.0) == 0.0
    assert table.epsilon_above(0.05, high=2.5) == 2.5


def test_a_single_loss_needs_no_window() -> None:
    sure = LossLattice(step=1.0, first=2, mass=np.array([1.0]))
    table = LossSum.of([(sure, 5)], tilt=best_tilt([(sure, 5)], delta=1e-3))
    assert table.upper(9.0) == pytest.approx(1 - math.exp(-1), rel=1e-9)
    assert table.lower(9.0) == pytest.approx(1 - math.exp(-1), rel=1e-9)


def test_too_long_a_sum_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_sum, "_LONGEST", 64)
    with pytest.raises(NumericalError, match="Compose fewer rounds"):
        LossSum.of([(PART, 1000)], tilt=1.0)
