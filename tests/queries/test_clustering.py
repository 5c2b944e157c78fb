"""K-means under a plan against plain loops, and on the digits of MNIST."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.plans import CentroidNoise, k_means
from hushuffle.plans.centroids import nearest
from hushuffle.randomness import reproducible
from hushuffle.tables.published import load_digits
from hushuffle_network.queries import plain_k_means, rand_index, run_k_means
from oracles.plan_queries import centroid_means, closest, pairs_agreeing

NOISE = CentroidNoise(kind="gaussian", radius=12.0, scale=2.0)


def points(seed: int, count: int) -> Any:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(count, 2)) + 3 * (np.arange(count) % 3)[:, None]


def test_without_sampling_it_is_plain_k_means() -> None:
    data, initial = points(1, 60), points(2, 3)
    expected = initial.tolist()
    plan = k_means(people=60, centroids=3, iterations=4, variant="hidden", sigma=0.0, dummies=2, batch=20)
    run, plain = run_k_means(plan, data, initial), plain_k_means(data, initial, iterations=4)
    for number in range(5):
        assert run.centroids[number] == pytest.approx(np.array(expected))
        assert plain[number] == pytest.approx(np.array(expected))
        expected = centroid_means(data.tolist(), [True] * 60, expected)
    assert run.used == (60,) * 4


def test_lost_tuples_are_left_out_and_feed_back() -> None:
    data, initial = points(3, 50), points(4, 3)
    plan = k_means(people=50, centroids=3, iterations=5, variant="public-centroids", sigma=0.6)
    run = run_k_means(plan, data, initial, rng=reproducible(5))
    for number, one in enumerate(run.exchanges):
        codes = [closest(point, run.centroids[number].tolist()) for point in data.tolist()]
        assert one.used.tolist() == [int(seen[0]) == code for seen, code in zip(one.graph, codes, strict=True)]
        expected = centroid_means(data.tolist(), one.used.tolist(), run.centroids[number].tolist())
        assert run.centroids[number + 1] == pytest.approx(np.array(expected))


def test_private_centroids_use_honest_messages_only_and_noise() -> None:
    data, initial = points(6, 30_000), points(7, 3)
    plan = k_means(
        people=30_000,
        centroids=3,
        iterations=3,
        variant="private-centroids",
        sigma=0.9,
        noise=NOISE,
        dummies=5,
        batch=50,
    )
    run = run_k_means(plan, data, initial, noise=NOISE, rng=reproducible(8))
    # Standard error 52: 5 of them, three times: false alarms below 2e-6; with lucky messages 12,000 would arrive.
    assert all(abs(used - 3_000) < 270 for used in run.used)
    plain = plain_k_means(data, initial, iterations=3)
    assert np.abs(run.centroids[-1] - plain[-1]).max() < 0.2
    assert not np.array_equal(run.centroids[1], plain[1])


@pytest.mark.parametrize(
    ("data", "initial", "noise", "message"),
    [
        (points(1, 9), points(2, 3), None, "`points` must be 10, one for each person"),
        (points(1, 10), points(2, 2), None, r"`initial` must be of shape \(3, 2\)"),
        (points(1, 10), points(2, 3), NOISE, "`noise` must be that of the plan"),
    ],
)
def test_inputs_that_do_not_fit(data: Any, initial: Any, noise: Any, message: str) -> None:
    plan = k_means(people=10, centroids=3, iterations=1, variant="hidden", sigma=0.5)
    with pytest.raises(InvalidInputError, match=message):
        run_k_means(plan, data, initial, noise=noise)


def test_a_private_plan_needs_its_noise() -> None:
    plan = k_means(people=10, centroids=3, iterations=1, variant="private-centroids", sigma=0.5, noise=NOISE)
    other = CentroidNoise(kind="gaussian", radius=12.0, scale=20.0)
    for noise in (None, other):
        with pytest.raises(InvalidInputError, match="`noise` must be that of the plan"):
            run_k_means(plan, points(1, 10), points(2, 3), noise=noise)


def test_iterations_are_counted_from_one() -> None:
    with pytest.raises(InvalidInputError, match="`iterations` must be an integer >= 1"):
        plain_k_means(points(1, 10), points(2, 3), iterations=0)


@pytest.mark.parametrize("seed", range(20))
def test_the_rand_index_counts_pairs(seed: int) -> None:
    generator = np.random.default_rng(seed)
    one, other = generator.integers(1 + seed % 5, size=15), generator.integers(4, size=15)
    assert rand_index(one, other) == pytest.approx(pairs_agreeing(one.tolist(), other.tolist()))
    assert rand_index(one, one) == 1


def test_labels_that_do_not_fit() -> None:
    with pytest.raises(InvalidInputError, match="of the same 2 or more items"):
        rand_index([0, 1], [0, 1, 2])
    with pytest.raises(InvalidInputError, match="of the same 2 or more items"):
        rand_index([0], [0])
    with pytest.raises(InvalidInputError, match="`first` must be integers from 0"):
        rand_index([-1, 0], [0, 1])


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif("HUSHUFFLE_DATA" not in os.environ, reason="HUSHUFFLE_DATA does not name a folder of data sets")
def test_sampling_hardly_changes_the_clusters_of_mnist() -> None:
    folder = Path(os.environ["HUSHUFFLE_DATA"], "mnist")
    train, test = load_digits(folder), load_digits(folder, part="t10k")
    images, known = (one.images.astype(np.float32) / 255 for one in (train, test))
    initial = known[np.random.default_rng(0).choice(10_000, 10, replace=False)]
    plain = plain_k_means(images, initial, iterations=10)
    plan = k_means(
        people=60_000, centroids=10, iterations=10, variant="public-centroids", sigma=0.9, dummies=50, batch=100
    )
    run = run_k_means(plan, images, initial, rng=reproducible(0))
    found = [rand_index(test.labels, nearest(known, one[-1])) for one in (plain, run.centroids)]
    assert found == pytest.approx([0.883, 0.883], abs=0.005)
