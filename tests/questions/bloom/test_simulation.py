"""The published simulations: around the exact quantiles, and the corrected sign."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import InvalidInputError
from hushuffle.questions import bloom
from oracles import bloom_enumeration as oracle


def test_the_sign_of_the_first_quantile() -> None:
    """m = 20, p = 0.1, no ones, delta = 0.01: the printed figure is 1.02, the corrected one 2.20."""
    p, delta = Fraction(1, 10), Fraction(1, 100)
    printed = oracle.published_figure(20, 0, p, delta, sign=1)
    corrected = oracle.published_figure(20, 0, p, delta, sign=-1)
    assert (round(printed, 2), round(corrected, 2)) == (1.02, 2.20)
    # The printed figure is not even what it says it is: the corrected one's loss is exceeded with probability > delta.
    simulated = bloom.evaluate_privacy_for_one_bloom_filter(count_input_ones=0, bits=20, p=0.1, delta=0.01)
    assert simulated.point == pytest.approx(corrected, rel=1e-12)
    exact = bloom.filling_epsilon(bits=20, p=0.1, delta=0.01, ones=0)
    assert exact.upper <= corrected  # it is sufficient, not tight
    assert exact.lower > printed


@pytest.mark.parametrize(("bits", "ones", "p", "delta"), [(15, 4, 0.2, 0.05), (30, 29, 0.3, 0.02), (12, 6, 0.05, 0.1)])
def test_one_filter_around_the_exact_quantiles(bits: int, ones: int, p: float, delta: float) -> None:
    exact = oracle.published_figure(bits, ones, Fraction(p), Fraction(delta), sign=-1)
    found = bloom.evaluate_privacy_for_one_bloom_filter(
        count_input_ones=ones, bits=bits, p=p, delta=delta, n_simu=20_000, seed=3
    )
    assert found.interval.lower - 1e-9 <= exact <= found.interval.upper + 1e-9


def test_the_sign_of_the_first_quantile_of_several_filters() -> None:
    """k = 2, m = 20, p = 0.1, delta = 0.01, every release: printed 2.51, corrected 4.39; the pair needs 3.27."""
    p, delta = Fraction(1, 10), Fraction(1, 100)
    printed = oracle.published_pair_figure(2, 20, p, delta, sign=1)
    corrected = oracle.published_pair_figure(2, 20, p, delta, sign=-1)
    assert (round(printed, 2), round(corrected, 2)) == (2.51, 4.39)
    exact = bloom.published_pair_epsilon(filters=2, bits=20, p=0.1, delta=0.01)
    assert printed < exact.lower
    assert exact.upper < corrected
    simulated = bloom.evaluate_privacy_for_bloom_filter(filters=2, bits=20, p=0.1, delta=0.01, n_simu=20_000, seed=3)
    assert corrected in simulated.interval


def test_several_filters_around_a_large_simulation() -> None:
    """The interval of a small run holds the point of one a hundred times as large."""
    small = bloom.evaluate_privacy_for_bloom_filter(filters=3, bits=500, p=0.2, delta=0.01, n_simu=5_000, seed=1)
    large = bloom.evaluate_privacy_for_bloom_filter(filters=3, bits=500, p=0.2, delta=0.01, n_simu=500_000, seed=2)
    assert large.point in small.interval
    assert large.standard_error < small.standard_error / 5
    assert small.draws == 5_000
    assert "standard error" in str(small)
    assert small.interval.kind == "estimate"


def test_several_filters_with_one_filter_is_one_filter() -> None:
    several = bloom.evaluate_privacy_for_bloom_filter(filters=1, bits=400, p=0.1, delta=0.02, n_simu=200_000)
    one = bloom.evaluate_privacy_for_one_bloom_filter(
        count_input_ones=0, bits=400, p=0.1, delta=0.02, n_simu=200_000, seed=5
    )
    assert several.point == pytest.approx(one.point, rel=0.05)


def test_the_exact_figure_lies_below_the_simulated_one() -> None:
    """Probabilistic differential privacy implies differential privacy, at a larger epsilon."""
    simulated = bloom.evaluate_privacy_for_bloom_filter(filters=2, bits=1000, p=0.25, delta=0.01)
    exact = bloom.published_pair_epsilon(filters=2, bits=1000, p=0.25, delta=0.01)
    assert exact.upper < simulated.interval.lower


@pytest.mark.parametrize(("filters", "bits", "delta"), [(6, 10**4, 1e-4), (8, 10**5, 1e-3)])
def test_the_quantile_figure_is_below_the_certified_lower_bound(filters: int, bits: int, delta: float) -> None:
    """With p = 0.1 the document's figure is no privacy parameter: some pair of datasets has a larger epsilon."""
    drawn = bloom.evaluate_privacy_for_bloom_filter(filters=filters, bits=bits, p=0.1, delta=delta, n_simu=100_000)
    columns = hs.Protocol(randomizer=hs.BitFlipping(width=filters, p=0.1), shuffler=hs.UniformShuffle(), n=bits)
    place = drawn.interval.upper + 0.05  # a lower bound at one point needs no search
    assert privacy_curve(columns).contenders(place).lower(place)[0] > delta


def test_the_intervals_cover() -> None:
    """At least 95 % each (two quantiles share the error); of 200, 175 or fewer has probability 1e-5 at exactly 95 %."""
    exact = oracle.published_figure(40, 10, Fraction(1, 5), Fraction(1, 10), sign=-1)
    covered = 0
    for seed in range(200):
        found = bloom.evaluate_privacy_for_one_bloom_filter(
            count_input_ones=10, bits=40, p=0.2, delta=0.1, n_simu=300, seed=seed
        )
        covered += found.interval.lower - 1e-9 <= exact <= found.interval.upper + 1e-9
    assert covered > 175


def test_too_few_draws_say_so() -> None:
    found = bloom.evaluate_privacy_for_bloom_filter(filters=2, bits=50, p=0.25, delta=1e-4, n_simu=100)
    assert found.interval.upper == math.inf
    assert found.standard_error == math.inf
    few = bloom.evaluate_privacy_for_bloom_filter(filters=2, bits=50, p=0.25, delta=0.999, n_simu=100)
    assert few.interval.lower == -math.inf or np.isfinite(few.interval.lower)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"p": 0.5}, "p"), ({"p": 0.0}, "p"), ({"delta": 0.0}, "delta"), ({"n_simu": 1}, "n_simu"), ({"bits": 0}, "bits")],
)
def test_arguments_out_of_range(arguments: dict[str, object], message: str) -> None:
    whole: dict[str, object] = {"bits": 10, "p": 0.1, "delta": 0.01, **arguments}
    with pytest.raises(InvalidInputError, match=message):
        bloom.evaluate_privacy_for_bloom_filter(filters=2, **whole)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=message):
        bloom.evaluate_privacy_for_one_bloom_filter(count_input_ones=0, **whole)  # type: ignore[arg-type]
