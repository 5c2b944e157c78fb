"""Symmetries of a channel leave one pair of values for each orbit, and change no figure."""

from __future__ import annotations

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.mechanisms.randomizers.report_law import Matrix
from hushuffle.mechanisms.randomizers.value_laws import different_pairs, orbits, ring_symmetries


def noise(k: int, *, ring: bool) -> np.ndarray:
    """Return probabilities that fall with the distance of report and value, on a ring or on a line."""
    distance = np.abs(np.arange(k)[:, None] - np.arange(k))
    weights = np.exp2(-np.minimum(distance, k - distance) if ring else -distance).astype(np.float64)
    table: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return table


@pytest.mark.parametrize("ring", [True, False])
@pytest.mark.parametrize("k", [2, 3, 6, 9])
def test_one_pair_of_each_orbit_is_as_good_as_all_pairs(k: int, ring: bool) -> None:
    matrix = noise(k, ring=ring)
    every, few = different_pairs(matrix), different_pairs(matrix, symmetries=ring_symmetries(k))
    assert len(few) == len(every)

    def spread(a: int, b: int) -> list[float]:
        return sorted(np.abs(matrix[a] - matrix[b]).round(12))

    assert sorted(spread(*pair) for pair in few) == sorted(spread(*pair) for pair in every)


def test_orbits_of_a_ring_are_its_distances() -> None:
    rotation, reversal = ring_symmetries(7)
    assert len(list(orbits(7, [rotation]))) == 6
    assert len(list(orbits(7, [rotation, reversal]))) == 3
    assert len(list(orbits(7, []))) == 42
    assert len(list(orbits(5, [np.array([1, 0, 3, 4, 2])]))) == 5  # one and two in the cycles, two between


def test_a_permutation_that_does_more_than_rename_reports_is_not_used() -> None:
    matrix = np.random.default_rng(1).dirichlet(np.ones(4), size=4)
    claimed = [np.array([1, 0, 2, 3]), *ring_symmetries(4)]
    assert different_pairs(matrix, symmetries=claimed) == different_pairs(matrix)
    other = noise(4, ring=True)  # the same reports must be renamed for both groups of people
    moved = other[:, [1, 0, 2, 3]]
    assert len(different_pairs(other, moved, symmetries=ring_symmetries(4))) == len(different_pairs(other, moved))
    assert len(different_pairs(other, matrix[:3], symmetries=ring_symmetries(4))) == 12  # of another number of values


def test_a_ring_with_one_entry_perturbed_has_no_symmetry() -> None:
    matrix = noise(7, ring=True)
    matrix[2, 3] *= 1 + 1e-9
    assert different_pairs(matrix, symmetries=ring_symmetries(7)) == different_pairs(matrix)
    assert len(different_pairs(matrix)) > len(different_pairs(noise(7, ring=True)))


def test_figures_are_those_without_symmetries(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = hs.Protocol(randomizer=hs.MatrixRandomizer(noise(6, ring=True)), shuffler=hs.UniformShuffle(), n=50)
    found = hs.dp.epsilon(protocol, delta=1e-3)
    monkeypatch.setattr(Matrix, "symmetries", ())
    plain = hs.dp.epsilon(protocol, delta=1e-3)
    assert (found.lower, found.upper) == pytest.approx((plain.lower, plain.upper), rel=1e-9)
