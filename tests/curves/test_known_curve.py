"""Ends between points, against pairs of laws whose every output is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushuffle.curves.pairs.known_curve import KnownCurve
from hushuffle.numerics.normal_pair import excess
from oracles import pairs_of_laws as oracle

LEVELS = np.concatenate([np.linspace(0.0, 3.0, 61), [5.0, 9.0]])
SHARES = np.concatenate([[0.0, 1e-9, 1e-4], np.linspace(0.01, 0.99, 33), [1.0]])


def drawn(rng: np.random.Generator) -> list[list[tuple[float, float]]]:
    """Some pairs, each both ways, as neighbours are; now and then an output that only one of them has."""
    pairs: list[list[tuple[float, float]]] = []
    for _ in range(int(rng.integers(1, 4))):
        outputs = int(rng.integers(2, 7))
        p, q = (rng.dirichlet(np.ones(outputs)) for _ in range(2))
        near = rng.random() ** 3
        q = p * near + q * (1 - near)
        if rng.random() < 0.2:
            p, q = np.append(p * 0.99, [0.01, 0.0]), np.append(q * 0.99, [0.0, 0.01])
        pair = list(zip(p.tolist(), q.tolist(), strict=True))
        pairs += [pair, [(second, first) for first, second in pair]]
    return pairs


def known(
    pairs: list[list[tuple[float, float]]], levels: np.ndarray, rng: np.random.Generator, doubt: float
) -> KnownCurve:
    true = np.array([oracle.delta(pairs, math.exp(level)) for level in levels])
    lower, upper = true * (1 - doubt * rng.random(true.size)), true * (1 + doubt * rng.random(true.size))
    return KnownCurve(epsilons=levels, lower=lower * (1 - 1e-14), upper=np.minimum(upper * (1 + 1e-14), 1.0))


def points(rng: np.random.Generator) -> np.ndarray:
    inner = np.sort(rng.uniform(0, 4, int(rng.integers(1, 12))))
    if rng.random() < 0.3:  # two points next to each other tell nothing about the slope
        inner = np.sort(np.append(inner, inner[0] * (1 + 1e-9)))
    return np.append(0.0, inner)


@pytest.mark.parametrize("doubt", [0.0, 1e-3, 0.5])
def test_ends_hold_everywhere(doubt: float) -> None:
    rng = np.random.default_rng(11)
    widest = 0.0
    for _ in range(120):
        pairs = drawn(rng)
        curve = known(pairs, points(rng), rng, doubt)
        lower, upper = curve.delta(LEVELS)
        true = np.array([oracle.delta(pairs, math.exp(level)) for level in LEVELS])
        assert np.all(lower <= true + 1e-15)
        assert np.all(true <= upper * (1 + 1e-12) + 1e-15)
        least, most = curve.epsilon(true[:40])
        assert np.all(least <= LEVELS[:40] * (1 + 1e-9) + 1e-12)
        flat = true[:40] <= oracle.delta(pairs, math.exp(9.0)) * (1 + 1e-9)  # there a smaller epsilon does as well
        assert np.all((most >= LEVELS[:40] * (1 - 1e-9) - 1e-12) | flat)
        low, high = curve.false_negatives(SHARES)
        best = np.array([oracle.false_negatives(pairs, share) for share in SHARES])
        assert np.all(low <= best + 2e-15)
        assert np.all(best <= high + 2e-15)
        widest = max(widest, float((upper - lower)[:41].max()))
    assert widest < 0.9


def test_all_outputs_known_leave_no_doubt() -> None:
    """Randomized response has one bend: two points and the pure epsilon say all."""
    p = 1 / (1 + math.exp(-1.0))
    pairs = [[(p, 1 - p), (1 - p, p)]]
    curve = known(pairs, np.array([0.0, 0.5, 1.0, 1.5]), np.random.default_rng(0), 0.0)
    lower, upper = curve.delta(LEVELS)
    np.testing.assert_allclose(lower, upper, atol=1e-12)
    low, high = curve.false_negatives(SHARES)
    np.testing.assert_allclose(low, high, atol=1e-12)


def test_more_points_only_narrow() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        pairs = drawn(rng)
        few = points(rng)
        curve = known(pairs, few, rng, 0.05)
        more = np.unique(np.concatenate([few, rng.uniform(0, 4, 5)]))
        finer = known(pairs, more, rng, 0.05)
        # The points that both know have the same ends.
        place = np.searchsorted(more, few)
        finer.lower[place], finer.upper[place] = curve.lower, curve.upper
        for before, after in (
            (curve.delta(LEVELS), finer.delta(LEVELS)),
            (curve.false_negatives(SHARES), finer.false_negatives(SHARES)),
        ):
            assert np.all(after[0] >= before[0] - 1e-12)
            assert np.all(after[1] <= before[1] + 1e-12)


@pytest.mark.parametrize("doubt", [0.0, 0.05])
def test_gaussian_pairs_on_both_sides(doubt: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        pairs = drawn(rng)
        levels = np.append(0.0, np.sort(rng.uniform(0, 2, 8)))
        curve = known(pairs, levels, rng, doubt)
        last = float(rng.uniform(0.2, 2.0))
        below, above = curve.gaussians(last)
        inside = np.linspace(0.0, last, 50)
        true = np.array([oracle.delta(pairs, math.exp(level)) for level in inside])
        assert np.all(excess(below, inside) <= true + 1e-12)
        assert np.all(true <= excess(above, inside) + 1e-12)


def test_a_gaussian_is_nearest_to_itself() -> None:
    levels = np.linspace(0.0, 6.0, 121)
    true = excess(1.0, levels)
    curve = KnownCurve(epsilons=levels, lower=true * (1 - 1e-9), upper=true * (1 + 1e-9))
    below, above = curve.gaussians(5.0)
    assert 0.997 < below <= 1.0 <= above < 1.003


def test_losses_beyond_the_one_named_are_rare() -> None:
    rng = np.random.default_rng(8)
    for _ in range(80):
        pairs = drawn(rng)
        curve = known(pairs, points(rng), rng, 0.05)
        for delta in (0.3, 0.05, 1e-3):
            loss, prior = curve.loss(delta), float(rng.uniform(0.01, 0.99))
            belief = 1.0 if math.isinf(loss) else 1 / (1 + math.exp(-loss) * (1 - prior) / prior)
            assert oracle.believed(pairs, prior, belief * (1 + 1e-9)) <= delta * (1 + 1e-9)
