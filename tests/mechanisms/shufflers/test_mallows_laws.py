"""The samplers follow their laws. Statistical tests: false-alarm rate below 1e-6 each, fixed seeds."""

from __future__ import annotations

import importlib.util
import itertools
import math
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.shufflers import _decoding, _mallows_laws, sample_mallows
from hushuffle.mechanisms.shufflers.mallows import Distance
from hushuffle.randomness import Randomness
from oracles import mallows_enumeration as oracle
from oracles.rr_statistics import chi_square_excess

DISTANCES: tuple[Distance, ...] = ("kendall", "hamming")
LARGEST_Z = 5.4  # two-sided 7e-8


class Scripted(Randomness):
    """Words given in advance."""

    def __init__(self, words: list[int]) -> None:
        self.left = words

    def words(self, size: int, *, at: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint64]:
        assert at is None
        taken, self.left = self.left[:size], self.left[size:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize(
    "theta", [0.0, pytest.param(1e-9, marks=pytest.mark.slow), pytest.param(0.1, marks=pytest.mark.slow), 0.7, 2.0]
)
@pytest.mark.parametrize("distance", DISTANCES)
def test_all_permutations_of_five_have_their_probability(distance: Distance, theta: float) -> None:
    law, rng, draws = oracle.law(5, theta, distance), hs.reproducible(1), 4_000
    place = {tau: number for number, tau in enumerate(law)}
    seen = np.zeros(len(law))
    for _ in range(draws):
        seen[place[tuple(sample_mallows(5, theta=theta, distance=distance, rng=rng).tolist())]] += 1
    assert chi_square_excess(seen, draws * np.array(list(law.values()))) < 0


@pytest.mark.parametrize("theta", [1e-300, 1e-7, pytest.param(1e-3, marks=pytest.mark.slow), 0.05, 1.0, 20.0])
def test_inversions_at_a_thousand_have_their_mean_and_variance(theta: float) -> None:
    n, draws, rng = 1000, 250, hs.reproducible(2)
    limits = _mallows_laws.digit_limits(theta, 10)
    totals = np.array([_mallows_laws.inversion_counts(n, limits, rng).sum() for _ in range(draws)])
    mean, variance = oracle.kendall_moments(n, theta)
    assert abs(totals.mean() - mean) <= LARGEST_Z * math.sqrt(variance / draws) + 1e-9
    if variance > 1:
        # A sum of 1000 independent counts: nearly normal, so that the empirical variance has deviation sqrt(2/draws).
        assert abs(totals.var() / variance - 1) <= (LARGEST_Z + 0.6) * math.sqrt(2 / draws)


@pytest.mark.parametrize("theta", [1e-9, 3.0, 6.9, 9.0])
def test_displaced_items_at_a_thousand_have_their_law(theta: float) -> None:
    n, draws, rng = 1000, 2000, hs.reproducible(3)
    seen = np.zeros(n + 1)
    for _ in range(draws):
        seen[np.count_nonzero(sample_mallows(n, theta=theta, distance="hamming", rng=rng) != np.arange(n))] += 1
    law = np.array(_long_hamming_law(n, theta))
    assert chi_square_excess(seen, draws * law) < 0


def _long_hamming_law(n: int, theta: float) -> list[float]:
    """The oracle's sum with long exponents."""
    logs, moved = [], 1
    for h in range(n + 1):
        moved = 1 if h == 0 else h * moved + (-1) ** h
        logs.append(float(mpmath.log(math.comb(n, h) * moved)) - theta * h if moved else -math.inf)
    top = max(logs)
    weights = [math.exp(value - top) for value in logs]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def test_codes_are_counts_of_the_list() -> None:
    for code in itertools.product(*(range(size) for size in range(1, 6))):
        items = oracle.insertion(code)
        assert oracle.distance(items, "kendall") == sum(code)
        assert _decoding.by_merging(np.array(code)).tolist() == items
        assert _decoding.by_walking(np.array(code)).tolist() == items


@pytest.mark.parametrize("n", [0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 1000, 3001])
def test_both_paths_decode_alike(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_decoding, "_CHUNK", 256)
    rng = np.random.default_rng(n)
    for longest in (1, 4, 100, 10**4):
        code = (rng.random(n) * np.minimum(np.arange(n) + 1, longest)).astype(np.int64)
        expected = oracle.insertion(code.tolist())
        assert _decoding.by_merging(code).tolist() == expected
        assert _decoding.by_walking(code).tolist() == expected


def test_long_lists_take_the_compiled_path_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(_decoding, "_LONG", 1000)
    walk = _decoding.accelerator()
    assert walk is not None
    n, rng = 20_011, np.random.default_rng(0)
    code = (rng.random(n) * (np.arange(n) + 1)).astype(np.int64)
    assert np.array_equal(_decoding.decode(code), _decoding.by_merging(code))


def test_without_numba_lists_of_any_length_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> None:
        assert name == "numba"

    monkeypatch.setattr(_decoding, "_LONG", 10)
    monkeypatch.setattr(importlib.util, "find_spec", nowhere)
    _decoding.accelerator.cache_clear()
    try:
        assert _decoding.accelerator() is None
        assert _decoding.decode(np.zeros(50, dtype=np.int64)).tolist() == list(range(50))
    finally:
        _decoding.accelerator.cache_clear()


@pytest.mark.parametrize("theta", [5e-324, 1e-30, 1e-9, 0.013, 1.0, 40.0, 1e300])
def test_digit_probabilities_are_within_two_to_the_minus_eighty(theta: float) -> None:
    limits = _mallows_laws.digit_limits(theta, 30)
    with mpmath.workdps(120):
        for digit in range(30):
            exponent = mpmath.mpf(theta) * 2**digit
            wanted = 1 / (1 + mpmath.exp(exponent)) if exponent < 1e6 else mpmath.mpf(0)
            got = limits[digit] if digit < len(limits) else 0
            assert 0 <= wanted - mpmath.mpf(got) / 2**80 <= mpmath.mpf(2) ** -80


def test_a_coin_looks_further_where_sixteen_bits_do_not_decide() -> None:
    limit = (5 << 64) + 77
    short = int(np.array([4, 5, 5, 6], dtype=np.uint16).view(np.uint64)[0])
    coins = _mallows_laws._coins(limit, 4, Scripted([short, 76, 77]))
    assert coins.tolist() == [True, True, False, False]


@pytest.mark.parametrize("n", [1, 2, 7, 300])
@pytest.mark.parametrize("theta", [0.0, 5e-324, 1e-12, 0.5, 4.0, 30.0, 299.0])
def test_frozen_items_have_the_cut_poisson_law(n: int, theta: float) -> None:
    first, cumulative = _mallows_laws.frozen_law(n, theta)
    weights = np.diff([0, *cumulative])
    with mpmath.workdps(400):
        x = mpmath.expm1(mpmath.mpf(theta)) if theta else mpmath.mpf(0)
        exact = [x**f / mpmath.factorial(f) for f in range(n + 1)]
        total = sum(exact)
        apart = sum(
            abs(
                exact[f] / total
                - mpmath.mpf(int(weights[f - first]) if 0 <= f - first < len(weights) else 0) / cumulative[-1]
            )
            for f in range(n + 1)
        )
        assert apart < mpmath.mpf(2) ** -150


def test_frozen_items_give_the_law_of_displaced_items() -> None:
    """Fixed points of the free items included: the identity behind the sampler."""
    for n, theta in itertools.product(range(1, 8), (0.0, 0.4, 2.5)):
        x = math.expm1(theta)
        weights = [x**f / math.factorial(f) for f in range(n + 1)]
        total = math.fsum(weights)
        law = [0.0] * (n + 1)
        for f, weight in enumerate(weights):
            free = n - f
            for h in range(free + 1):
                chance = math.comb(free, h) * oracle.derangements(h) / math.factorial(free)
                law[h] += weight / total * chance
        assert law == pytest.approx(oracle.hamming_law(n, theta), abs=1e-14)


def test_the_ticket_finds_its_number_of_frozen_items() -> None:
    first, cumulative = _mallows_laws.frozen_law(4, 1.0)
    bottom, top = [0] * 4, [2**64 - 1] * 4
    assert _mallows_laws.frozen(4, 1.0, Scripted(bottom)) == first == 0
    assert _mallows_laws.frozen(4, 1.0, Scripted(top)) == first + len(cumulative) - 1 == 4
    rng, draws = hs.reproducible(7), 20_000
    seen = np.bincount([_mallows_laws.frozen(4, 1.0, rng) for _ in range(draws)], minlength=5)
    law = np.diff([0, *cumulative]).astype(np.float64) / cumulative[-1]
    assert chi_square_excess(seen, draws * law) < 0


@pytest.mark.parametrize("distance", DISTANCES)
def test_infinite_and_huge_theta_keep_the_order(distance: Distance) -> None:
    for theta in (math.inf, 1e300, 400.0):
        assert sample_mallows(50, theta=theta, distance=distance).tolist() == list(range(50))
    assert sample_mallows(1, theta=0.3, distance=distance).tolist() == [0]


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_seed_repeats_and_secure_randomness_works(distance: Distance) -> None:
    first, second = (sample_mallows(200, theta=0.1, distance=distance, rng=hs.reproducible(5)) for _ in range(2))
    assert np.array_equal(first, second)
    assert sorted(sample_mallows(200, theta=0.1, distance=distance, rng=hs.secure()).tolist()) == list(range(200))
    assert sample_mallows(200, theta=0.1, distance=distance).dtype == np.int64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0, "theta": 1.0}, r"`n` must be an integer from 1 to 1000000000, got n=0"),
        ({"n": 3, "theta": -0.1}, r"`theta` must be finite and >= 0, got theta=-0.1. math.inf keeps the order."),
        ({"n": 3, "theta": math.nan}, r"`theta` must be"),
        (
            {"n": 3, "theta": 1.0, "distance": "footrule"},
            r"`distance` must be 'kendall' or 'hamming', .*No sampler of proven",
        ),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        sample_mallows(**arguments)


@pytest.mark.parametrize("theta", [0.0, 1.0, math.inf])
@pytest.mark.parametrize("distance", DISTANCES)
def test_keyed_randomness_is_refused(distance: Distance, theta: float) -> None:
    rng = hs.keyed(key=bytes(32), records=np.arange(4))
    with pytest.raises(InvalidInputError, match=r"`rng` must be secure\(\) or reproducible\(seed\)"):
        sample_mallows(4, theta=theta, distance=distance, rng=rng)


def test_many_inversions_are_drawn_in_blocks() -> None:
    n, theta = (1 << 16) + 5000, 1e-3
    counts = _mallows_laws.inversion_counts(n, _mallows_laws.digit_limits(theta, 17), hs.reproducible(6))[0]
    assert np.all((counts >= 0) & (counts <= np.arange(n)))
    late, mean = counts[20_000:], 1 / math.expm1(theta)
    assert abs(late.mean() - mean) < LARGEST_Z * mean / math.sqrt(late.size)
