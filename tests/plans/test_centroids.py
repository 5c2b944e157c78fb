"""Centroids against plain loops; their noise against its stated law and sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.plans import CentroidNoise
from hushuffle.plans.centroids import means, nearest, noisy_means, sums_and_counts
from hushuffle.randomness import reproducible, secure
from oracles.plan_queries import centroid_means, closest

Floats = np.ndarray[Any, np.dtype[np.float64]]


def points(seed: int, count: int, dimensions: int) -> Floats:
    return np.random.default_rng(seed).normal(size=(count, dimensions))


@pytest.mark.parametrize(("seed", "count", "dimensions", "k"), [(1, 30, 2, 3), (2, 9, 1, 4), (3, 50, 5, 2)])
def test_one_step_is_that_of_plain_loops(seed: int, count: int, dimensions: int, k: int) -> None:
    data, centroids = points(seed, count, dimensions), points(seed + 10, k, dimensions)
    used = np.random.default_rng(seed).random(count) < 0.6
    codes = nearest(data, centroids)
    assert codes.tolist() == [closest(point, centroids.tolist()) for point in data.tolist()]
    sums, counts = sums_and_counts(data, codes, k, used=used)
    expected = centroid_means(data.tolist(), used.tolist(), centroids.tolist())
    assert means(sums, counts, centroids) == pytest.approx(np.array(expected))


def test_large_tables_go_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    data, centroids = points(1, 100, 3), points(2, 4, 3)
    codes = nearest(data, centroids)
    sums, counts = sums_and_counts(data, codes, 4)
    monkeypatch.setattr("hushuffle.plans.centroids._BLOCK", 30)
    assert nearest(data, centroids).tolist() == codes.tolist()
    again, _ = sums_and_counts(data, codes, 4)
    assert again == pytest.approx(sums)
    assert counts.sum() == 100


def test_shapes_must_fit() -> None:
    with pytest.raises(InvalidInputError, match="two matrices with as many columns"):
        nearest(points(1, 3, 2), points(1, 3, 1))


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_one_replaced_point_changes_no_more_than_stated(kind: Any) -> None:
    noise = CentroidNoise(kind=kind, radius=2.0, scale=1.0)
    order, limit = (2, 2 * noise.radius) if kind == "gaussian" else (1, 4 * noise.radius)
    largest = 0.0
    for seed in range(200):
        pair = noise.shorten(points(seed, 2, 3) * 10 ** (seed % 4 - 1))
        assert np.linalg.norm(pair, ord=order, axis=1).max() <= noise.radius
        for codes in ((0, 0), (0, 1)):
            for arrives in ((True, True), (True, False), (False, True)):
                values = []
                for row in (0, 1):
                    sums, counts = sums_and_counts(
                        pair[[row]], np.array([codes[row]]), 2, used=np.array([arrives[row]])
                    )
                    values.append(np.concatenate([sums.ravel(), noise.radius * counts]))
                largest = max(largest, float(np.linalg.norm(values[0] - values[1], ord=order)))
    assert 0.9 * limit < largest <= limit


def test_releases_are_rounded_up() -> None:
    for radius, scale in ((10.0, 200.0), (1.0, 3.0), (0.1, 0.7)):
        share = Fraction(radius) / Fraction(scale)
        gaussian = CentroidNoise(kind="gaussian", radius=radius, scale=scale).release(name="c", start="u").rho
        laplace = CentroidNoise(kind="laplace", radius=radius, scale=scale).release(name="c", start="u").epsilon
        assert gaussian is not None
        assert laplace is not None
        assert 0 <= Fraction(gaussian) - 2 * share**2 <= Fraction(math.ulp(gaussian))
        assert 0 <= Fraction(laplace) - 4 * share <= Fraction(math.ulp(laplace))


def test_noise_has_its_law() -> None:
    # Kolmogorov-Smirnov: P(D > 2.7/sqrt(n)) <= 2 exp(-2 * 2.7^2) = 9.3e-7, each.
    size = 100_001
    laws: dict[Any, Callable[[float], float]] = {
        "gaussian": lambda x: 0.5 * math.erfc(-x / math.sqrt(2)),
        "laplace": lambda x: math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2,
    }
    for kind, law in laws.items():
        noise = CentroidNoise(kind=kind, radius=1.0, scale=3.0)
        drawn = np.sort(noise.draw(size, rng=reproducible(4))) / 3.0
        expected = np.array([law(x) for x in drawn.tolist()])
        steps = np.arange(size + 1) / size
        assert max(np.abs(expected - steps[1:]).max(), np.abs(expected - steps[:-1]).max()) < 2.7 / math.sqrt(size)


def test_noisy_means_without_points_stay_and_are_never_long() -> None:
    noise = CentroidNoise(kind="gaussian", radius=1.0, scale=1e-9)
    previous = np.array([[0.5], [0.25]])
    assert noisy_means(
        np.array([[300.0], [0.0]]), np.array([400.0, 0.0]), previous, noise=noise, rng=secure()
    ) == pytest.approx(np.array([[0.75], [0.25]]))
    wild = CentroidNoise(kind="laplace", radius=1.0, scale=100.0)
    for seed in range(20):
        result = noisy_means(np.zeros((2, 1)), np.full(2, 50.0), previous, noise=wild, rng=reproducible(seed))
        assert np.abs(result).max() <= 1.0
    assert noisy_means(np.zeros((2, 1)), np.zeros(2), previous, noise=wild).shape == (2, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "uniform"}, "`kind` must be gaussian or laplace"),
        ({"radius": 0.0}, "`radius` must be finite and > 0"),
        ({"scale": -1.0}, "`scale` must be finite and > 0"),
    ],
)
def test_noise_that_does_not_fit(changes: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"kind": "gaussian", "radius": 1.0, "scale": 1.0}
    with pytest.raises(InvalidInputError, match=message):
        CentroidNoise(**(values | changes))
