"""Generated people: where the labels lie, and that they are separate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from hushuffle.errors import InvalidInputError
from hushuffle_papers.meehan2022.data import LABELS, coarse, crescents


def test_labels_are_even_and_named_after_where_they_lie() -> None:
    people = crescents(8000)
    counts = np.bincount(people.labels, minlength=8)
    assert np.abs(counts - 1000).max() < 160  # 5.4 standard deviations: probability below 1e-6
    middle = np.array([people.points[people.labels == label].mean(axis=0) for label in range(8)])
    for label, name in enumerate(LABELS):
        assert ("cool" in name) == (middle[label, 0] > 2.5)
        other = middle[label ^ 1]
        assert ("left" in name) == (middle[label, 0] < other[0])
        assert ("upper" in name) == (middle[label, 1] > middle[label ^ 2, 1])


def test_gaps_grow_with_granularity() -> None:
    people = crescents(20_000)

    def gap(ways: int) -> float:
        classes = people.coarse(ways)
        trees = [cKDTree(people.points[classes == label]) for label in range(ways)]
        return float(min(np.min(trees[a].query(trees[b].data)[0]) for a in range(ways) for b in range(a)))

    halves, parts, clusters = gap(8), gap(4), gap(2)
    assert 0 < halves < parts < clusters


def test_the_same_seed_gives_the_same_people() -> None:
    one, other = crescents(50, seed=3), crescents(50, seed=3)
    assert np.array_equal(one.points, other.points)
    assert np.array_equal(one.labels, other.labels)
    assert not np.array_equal(one.labels, crescents(50, seed=4).labels)


def test_coarse_labels() -> None:
    assert coarse(np.arange(8), 8).tolist() == list(range(8))
    assert coarse(np.arange(8), 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert coarse(np.arange(8), 2).tolist() == [0] * 4 + [1] * 4
    with pytest.raises(InvalidInputError, match="ways"):
        coarse([0], 3)
    with pytest.raises(InvalidInputError, match="labels"):
        coarse([8], 2)
