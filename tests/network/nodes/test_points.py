"""Points and released centroids as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.network.nodes.document import KMeans, Noise
from hushuffle.network.nodes.points import PointCodec, Released, ReleasedCodec, moved
from hushuffle.plans.centroids import means, nearest, noisy_means
from hushuffle.randomness import reproducible

INITIAL = ((0.0, 0.0, 0.0), (1.0, 1.0, 0.0))
KINDS: list[Any] = [None, "gaussian", "laplace"]


def query(kind: Any, *, radius: float = 1.0, scale: float = 0.5) -> KMeans:
    noise = None if kind is None else Noise(kind=kind, radius=radius, scale=scale)
    return KMeans(initial=INITIAL, noise=noise)


@pytest.mark.parametrize("kind", KINDS)
def test_points_come_back_and_are_short_enough(kind: Any) -> None:
    codec = PointCodec(query=query(kind))
    points = np.random.default_rng(1).normal(size=(300, 3)) * np.geomspace(0.01, 100, 300)[:, None]
    contents = [codec.pack(point) for point in points]
    for content in contents:
        assert len(content) == codec.size == 24
        codec.check(content)
    found = codec.unpack(contents)
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
    codec, centroids = PointCodec(query=query(kind)), np.array(INITIAL)
    for point in np.random.default_rng(2).normal(size=(100, 3)) * 3:
        sent = codec.unpack([codec.pack(point)])[0]
        distances = np.linalg.norm(sent - centroids, axis=1)
        assert codec.own(point, centroids) == int(np.argmin(distances))


@pytest.mark.parametrize(
    ("kind", "point", "words"),
    [
        (None, [0.5, 0.5], "not hold a point"),
        (None, [0.5, 0.5, 0.5, 0.5], "not hold a point"),
        (None, [], "not hold a point"),
        (None, [0.5, np.nan, 0.5], "not finite"),
        (None, [0.5, np.inf, 0.5], "not finite"),
        ("gaussian", [0.8, 0.8, 0.0], "longer than the radius"),
        ("gaussian", [0.8, -np.inf, 0.0], "not finite"),
        ("laplace", [0.5, -0.6, 0.0], "longer than the radius"),
        ("laplace", [1e308, 1e308, 1e308], "not finite, or larger than they can be"),
        (None, [0.0, -1e101, 0.0], "not finite, or larger than they can be"),
        ("gaussian", [1e99, 1e99, 1e99], "longer than the radius"),
    ],
)
def test_what_is_no_point_is_refused_without_showing_it(kind: Any, point: list[float], words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        PointCodec(query=query(kind)).check(np.array(point, dtype="<f8").tobytes())
    assert "0.8" not in str(caught.value)
    assert "0.6" not in str(caught.value)


def test_a_point_that_is_long_for_one_noise_is_short_for_the_other() -> None:
    content = np.array([0.5, 0.6, 0.0]).tobytes()
    PointCodec(query=query("gaussian")).check(content)
    with pytest.raises(DataError, match="radius"):
        PointCodec(query=query("laplace")).check(content)


@pytest.mark.parametrize("room", [7, 40, 56, 1000])
def test_released_centroids_come_back_in_as_many_messages_whatever_they_are(room: int) -> None:
    codec = ReleasedCodec(query=query(None), head=32, room=room)
    for sources, place in ((0, 0.0), (2**40, -1e99)):
        counts = ((sources, 3), (0, 0))
        released = Released(iteration=3, centroid=np.array([place, 1.0, 2.5]), counts=counts)
        contents = codec.pack(released)
        assert len(contents) == -(-64 // room)
        assert max(map(len, contents)) <= room
        found = codec.unpack(contents)
        assert found.centroid.tolist() == [place, 1.0, 2.5]
        assert (found.iteration, found.counts) == (3, counts)


def test_what_is_no_released_centroid_is_refused() -> None:
    codec = ReleasedCodec(query=query(None), head=16, room=1000)
    whole = codec.pack(Released(iteration=1, centroid=np.array([np.nan, 0, 0]), counts=((1, 1),)))
    with pytest.raises(DataError, match="no finite centroid"):
        codec.unpack(whole)
    for wrong in ([whole[0][:-1]], [*whole, b"x"], []):
        with pytest.raises(DataError, match="no centroid of this plan"):
            codec.unpack(wrong)


def test_the_board_comes_back_whole_or_not_at_all() -> None:
    codec, centroids = ReleasedCodec(query=query(None), room=20), np.arange(6.0).reshape(2, 3)
    assert np.array_equal(codec.read_board(codec.cut(centroids.tobytes())), centroids)
    for wrong in (b"", centroids.tobytes()[:-1], centroids.tobytes() + b"0"):
        with pytest.raises(DataError, match="not the centroids of this plan"):
            codec.read_board([wrong])
    for number in (np.nan, np.inf, -1e200):
        centroids[1, 1] = number
        with pytest.raises(DataError, match="no finite centroids"):
            codec.read_board([centroids.tobytes()])


@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_a_centroid_moves_to_the_mean(n: int) -> None:
    points, previous = np.random.default_rng(n).normal(size=(n, 3)), np.array([9.0, 8.0, 7.0])
    found = moved(points, previous, query(None), rng=reproducible(1))
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
        points = noise.shorten(generator.normal(size=(int(generator.integers(0, 30)), 3))).astype(np.float64)
        previous = generator.normal(size=3)
        sums, counts = points.sum(axis=0, keepdims=True), np.array([float(len(points))])
        expected = noisy_means(sums, counts, previous[None, :], noise=noise, rng=reproducible(seed))[0]
        assert np.array_equal(moved(points, previous, chosen, rng=reproducible(seed)), expected)


def test_all_centroids_together_move_as_one_after_the_other() -> None:
    points, centroids = np.random.default_rng(7).normal(size=(200, 3)), np.array(INITIAL)
    own = nearest(points, centroids)
    sums = np.stack([points[own == place].sum(axis=0) for place in range(2)])
    together = means(sums, np.bincount(own, minlength=2).astype(float), centroids)
    apart = [moved(points[own == place], centroids[place], query(None), rng=reproducible(1)) for place in range(2)]
    assert np.stack(apart) == pytest.approx(together, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_dummies_are_computed_with_and_do_not_count(kind: Any) -> None:
    chosen = query(kind, radius=2.0)
    codec = PointCodec(query=chosen)
    codec.check(codec.sample)
    contents = [codec.pack(one) for one in np.random.default_rng(3).normal(size=(9, 3))]
    used = [True, False, True, True, False, False, True, True, True]
    mixed = [content if counts else codec.sample for content, counts in zip(contents, used, strict=True)]
    previous = np.array([0.5, 0.5, 0.5])
    found = moved(codec.unpack(mixed), previous, chosen, used=used, rng=reproducible(4))
    alone = codec.unpack([content for content, counts in zip(contents, used, strict=True) if counts])
    assert found == pytest.approx(moved(alone, previous, chosen, rng=reproducible(4)), abs=1e-12)


def test_a_point_outside_the_public_ranges_is_refused() -> None:
    codec = PointCodec(query=KMeans(initial=INITIAL, largest=1.0))
    codec.check(codec.sample)
    codec.check(np.array([1.0, -1.0, 0.5]).tobytes())
    for outside in (1.0000001, -1e50):
        with pytest.raises(DataError, match="larger than they can be"):
            codec.check(np.array([0.0, outside, 0.0]).tobytes())
