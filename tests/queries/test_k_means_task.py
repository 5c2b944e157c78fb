"""K-means as nodes know it: points as bytes, and where a centroid moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.plans.centroids import means, nearest, noisy_means
from hushuffle.randomness import reproducible
from hushuffle_network.queries import KMeans
from hushuffle_network.queries.k_means import Noise

INITIAL = ((0.0, 0.0, 0.0), (1.0, 1.0, 0.0))
KINDS: list[Any] = [None, "gaussian", "laplace"]


def query(kind: Any, *, radius: float = 1.0, scale: float = 0.5) -> KMeans:
    noise = None if kind is None else Noise(kind=kind, radius=radius, scale=scale)
    return KMeans(initial=INITIAL, noise=noise)


@pytest.mark.parametrize("kind", KINDS)
def test_points_come_back_and_are_short_enough(kind: Any) -> None:
    task = query(kind)
    points = np.random.default_rng(1).normal(size=(300, 3)) * np.geomspace(0.01, 100, 300)[:, None]
    contents = task.pack(1, points)
    for content in contents:
        assert len(content) == task.size(1) == 24
        task.check(1, 0, content)
    found = task.points(b"".join(contents))
    if kind is None:
        assert np.array_equal(found, points)
        return
    norms = np.linalg.norm(found, axis=1) if kind == "gaussian" else np.abs(found).sum(axis=1)
    assert norms.max() <= 1.0
    short = (np.linalg.norm(points, axis=1) if kind == "gaussian" else np.abs(points).sum(axis=1)) <= 1.0
    assert 10 < short.sum() < 290
    assert np.array_equal(found[short], points[short])
    assert norms[~short] == pytest.approx(1.0, abs=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_goes_to_the_centroid_that_is_nearest_to_what_is_sent(kind: Any) -> None:
    task, centroids = query(kind), np.array(INITIAL)
    for point in np.random.default_rng(2).normal(size=(100, 3)) * 3:
        sent = task.points(task.pack(1, point[None, :])[0])[0]
        distances = np.linalg.norm(sent - centroids, axis=1)
        assert task.own(1, point[None, :], centroids)[0] == int(np.argmin(distances))


@pytest.mark.parametrize(
    ("kind", "point", "words"),
    [
        (None, [0.5, 0.5], "is not a point"),
        (None, [0.5, 0.5, 0.5, 0.5], "is not a point"),
        (None, [], "is not a point"),
        (None, [0.5, np.nan, 0.5], "not finite"),
        (None, [0.5, np.inf, 0.5], "not finite"),
        ("gaussian", [0.8, 0.8, 0.0], "norm exceeds the radius"),
        ("gaussian", [0.8, -np.inf, 0.0], "not finite"),
        ("laplace", [0.5, -0.6, 0.0], "norm exceeds the radius"),
        ("laplace", [1e308, 1e308, 1e308], "not finite or exceed the largest possible value"),
        (None, [0.0, -1e101, 0.0], "not finite or exceed the largest possible value"),
        ("gaussian", [1e99, 1e99, 1e99], "norm exceeds the radius"),
    ],
)
def test_what_is_no_point_is_refused_without_showing_it(kind: Any, point: list[float], words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        query(kind).check(1, 0, np.array(point, dtype="<f8").tobytes())
    assert "0.8" not in str(caught.value)
    assert "0.6" not in str(caught.value)


def test_a_point_that_is_long_for_one_noise_is_short_for_the_other() -> None:
    content = np.array([0.5, 0.6, 0.0]).tobytes()
    query("gaussian").check(1, 0, content)
    with pytest.raises(DataError, match="radius"):
        query("laplace").check(1, 0, content)


def moved(task: KMeans, contents: list[bytes], previous: Any, *, used: list[bool] | None = None, seed: int = 1) -> Any:
    """Return where the first centroid moves, its points in two batches."""
    counts, merged = used or [True] * len(contents), task.empty(1)
    for part in (slice(None, 2), slice(2, None)):
        merged = task.merge(1, merged, contents[part], counts[part])
    here = task.model_copy(update={"initial": (tuple(previous), *task.initial[1:])})
    return here.tell(1, 0, merged, reproducible(seed))


def test_parts_and_what_is_shown_are_finite_centroids() -> None:
    task = query(None)
    assert task.part(1, 0, np.array([1.0, -1e99, 2.5])).tolist() == [1.0, -1e99, 2.5]
    for number in (np.nan, np.inf, -1e200):
        with pytest.raises(DataError, match="a centroid that is not finite"):
            task.part(1, 0, np.array([number, 0.0, 0.0]))


@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_a_centroid_moves_to_the_mean(n: int) -> None:
    points, previous = np.random.default_rng(n).normal(size=(n, 3)), np.array([9.0, 8.0, 7.0])
    task = query(None)
    found = moved(task, task.pack(1, points), previous)
    expected = [sum(column) / n for column in points.T.tolist()] if n else previous.tolist()
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [0.01, 5.0])
def test_a_centroid_moves_as_the_plan_says_with_noise(kind: Any, scale: float) -> None:
    chosen = query(kind, radius=1.5, scale=scale)
    assert chosen.noise is not None
    noise = chosen.noise.build()
    for seed in range(20):
        generator = np.random.default_rng(seed)
        points = noise.shorten(generator.normal(size=(int(generator.integers(0, 30)), 3)))
        previous = generator.normal(size=3)
        sums, counts = points.sum(axis=0, keepdims=True), np.array([float(len(points))])
        expected = noisy_means(sums, counts, previous[None, :], noise=noise, rng=reproducible(seed))[0]
        assert moved(chosen, chosen.pack(1, points), previous, seed=seed) == pytest.approx(expected, rel=1e-9)


def test_all_centroids_together_move_as_one_after_the_other() -> None:
    points, centroids = np.random.default_rng(7).normal(size=(200, 3)), np.array(INITIAL)
    own = nearest(points, centroids)
    sums = np.stack([points[own == place].sum(axis=0) for place in range(2)])
    together = means(sums, np.bincount(own, minlength=2).astype(float), centroids)
    task = query(None)
    apart = [moved(task, task.pack(1, points[own == place]), centroids[place]) for place in range(2)]
    assert np.stack(apart) == pytest.approx(together, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_dummies_are_computed_with_and_do_not_count(kind: Any) -> None:
    task = query(kind, radius=2.0)
    task.check(1, 0, task.sample(1, 0))
    contents = task.pack(1, np.random.default_rng(3).normal(size=(9, 3)))
    used = [True, False, True, True, False, False, True, True, True]
    mixed = [content if counts else task.sample(1, 0) for content, counts in zip(contents, used, strict=True)]
    previous = np.array([0.5, 0.5, 0.5])
    found = moved(task, mixed, previous, used=used, seed=4)
    alone = [content for content, counts in zip(contents, used, strict=True) if counts]
    assert found == pytest.approx(moved(task, alone, previous, seed=4), abs=1e-12)


def test_a_point_outside_the_public_ranges_is_refused() -> None:
    task = KMeans(initial=INITIAL, largest=1.0)
    task.check(1, 0, task.sample(1, 0))
    task.check(1, 0, np.array([1.0, -1.0, 0.5]).tobytes())
    for outside in (1.0000001, -1e50):
        with pytest.raises(DataError, match="exceed the largest possible value"):
            task.check(1, 0, np.array([0.0, outside, 0.0]).tobytes())
