from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model.groups import Groups
from hushuffle.questions.order.groups import (
    column_groups,
    nearest_groups,
    on_sphere,
    path_groups,
    points,
    radius_groups,
)
from oracles import order_groups as oracle


def own(groups: Groups) -> list[list[int]]:
    """Each person's own group."""
    assert groups.group_of is not None
    return [groups[group].tolist() for group in groups.group_of.tolist()]


@pytest.mark.parametrize("shape", [(1, 2), (40, 1), (60, 2), (50, 3)])
def test_one_radius(shape: tuple[int, int]) -> None:
    places = np.random.default_rng(shape[0]).random(shape)
    for radius in (0.0, 0.2, 5.0):
        assert own(radius_groups(places, radius)) == oracle.within(places.tolist(), [radius] * shape[0])


def test_one_radius_for_each_person() -> None:
    rng = np.random.default_rng(1)
    places, radii = rng.random((50, 2)), rng.random(50) * 0.5
    assert own(radius_groups(places, radii)) == oracle.within(places.tolist(), radii.tolist())
    crowded = rng.integers(0, 4, (60, 2))
    radii = rng.integers(0, 3, 60).astype(float)
    groups = radius_groups(crowded, radii)
    assert own(groups) == oracle.within(crowded.tolist(), radii.tolist())
    assert len(groups) < 60


def test_people_at_one_place_share_a_group() -> None:
    ages = np.random.default_rng(2).integers(17, 91, 400)
    groups = radius_groups(ages, 1)
    assert len(groups) == len(np.unique(ages))
    assert len(groups.members) <= 3 * 400
    assert own(groups) == oracle.within(ages.reshape(-1, 1).tolist(), [1.0] * 400)


def test_great_circle() -> None:
    rng = np.random.default_rng(3)
    places = np.column_stack([rng.uniform(-90, 90, 60), rng.uniform(-180, 180, 60)])
    places[:4] = [[0.0, 179.9], [0.0, -179.9], [90.0, 0.0], [90.0, 120.0]]
    for radius in (25.0, 3000.0, 15000.0, 30000.0):
        expected = [[j for j in range(60) if oracle.arc(places[i], places[j]) <= radius] for i in range(60)]
        assert own(radius_groups(places, radius, metric="great-circle")) == expected
    assert np.allclose(np.linalg.norm(on_sphere(places), axis=1), 1)


def test_nearest() -> None:
    places = np.random.default_rng(4).random((40, 2))
    for size in (1, 2, 7, 40):
        for person, group in enumerate(own(nearest_groups(places, size))):
            far = np.linalg.norm(places - places[person], axis=1)
            assert group == sorted(np.argsort(far)[:size].tolist())


def test_nearest_keeps_the_person_in_a_crowd() -> None:
    groups = nearest_groups(np.zeros((20, 2)), 3)
    assert groups.sizes.tolist() == [3] * 20
    assert all(person in group for person, group in enumerate(own(groups)))
    paris, london, york = [48.86, 2.35], [51.51, -0.13], [40.71, -74.01]
    assert own(nearest_groups([paris, london, york], 2, metric="great-circle"))[2] == [1, 2]


def test_paths() -> None:
    rng = np.random.default_rng(5)
    edges = rng.integers(30, size=(28, 2))
    for radius in (0, 1, 2, 3, 40):
        expected = []
        for person in range(32):
            far = oracle.steps(edges.tolist(), 32, person)
            expected.append(sorted(other for other, steps in far.items() if steps <= radius))
        assert own(path_groups(edges, n=32, radius=radius)) == expected
    assert own(path_groups([], n=3, radius=2)) == [[0], [1], [2]]


def test_column() -> None:
    labels = ["b", "a", "b", "c", "a", "b"]
    groups = column_groups(labels)
    assert own(groups) == [[j for j, other in enumerate(labels) if other == label] for label in labels]
    assert len(groups.members) == 6


def test_explicit_groups() -> None:
    groups = Groups.of([[2, 0], [1], [1, 2]])
    assert own(groups) == [[0, 2], [1], [1, 2]]
    assert repr(groups) == "Groups(3 groups, 5 memberships, 3 people)"
    assert Groups.of(groups) is groups
    assert Groups.of(groups, n=3) is groups
    assert Groups.of([[0, 3]]).group_of is None
    assert Groups.of([[0, 1], [0, 2], [1, 2]]).group_of is None  # person 1 is not in group 1
    assert Groups.of([[0, 1]], n=5).n == 5
    offsets, members = np.array([0, 1, 3]), np.array([0, 1, 0])
    pair = Groups.of((offsets, members))
    assert [pair[0].tolist(), pair[1].tolist()] == [[0], [0, 1]]
    assert members.tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="read-only"):
        pair.members[0] = 1
    with pytest.raises(InvalidInputError, match=r"`group` must be an integer from 0 to 1"):
        pair[2]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], r"`groups` must be a list of one-dimensional arrays"),
        ([[[0]]], r"`groups` must be a list of one-dimensional arrays"),
        ([[0], []], r"`members` must be integers from 0 to 0|`groups` must be non-empty"),
        ((np.array([0, 1, 1]), np.array([0])), r"`groups` must be non-empty, got groups=<1 of 2 empty>"),
        ([[0, 0]], r"`groups` must be without repeated members in one group"),
        ([[0.5]], r"`members` must be integers"),
        ([[-1]], r"`members` must be integers"),
        (([0, 2], [0]), r"`offsets` must be from 0 to 1"),
        (([0], []), r"`offsets` must be integers, one more"),
        (([0.0, 1.0], [0]), r"`offsets` must be integers, one more"),
        (([[0, 1]], [0]), r"`offsets` must be integers, one more"),
    ],
)
def test_bad_groups(groups: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Groups.of(groups)  # type: ignore[arg-type]


def test_bad_owners() -> None:
    offsets, members = np.array([0, 2, 3]), np.array([0, 1, 2])
    assert own(Groups(offsets=offsets, members=members, n=3, group_of=np.array([0, 0, 1]))) == [[0, 1], [0, 1], [2]]
    with pytest.raises(InvalidInputError, match=r"`group_of` must be one group for each of 3 people"):
        Groups(offsets=offsets, members=members, n=3, group_of=np.array([0, 1]))
    with pytest.raises(
        InvalidInputError, match=r"`group_of` must be a group that contains the person, got .*<1 people"
    ):
        Groups(offsets=offsets, members=members, n=3, group_of=np.array([0, 1, 1]))
    with pytest.raises(InvalidInputError, match=r"`n` must be an integer >= 1"):
        Groups(offsets=offsets, members=members, n=0)


def test_bad_input() -> None:
    wrong: Any
    for wrong, message in (
        (["a"], "numbers, shape"),
        (np.zeros((2, 0)), "numbers, shape"),
        (np.zeros((2, 2, 2)), "numbers, shape"),
        ([[np.nan]], "finite"),
    ):
        with pytest.raises(InvalidInputError, match=rf"`coordinates` must be {message}"):
            points(wrong)
    for radius, message in (
        (-1, "finite and >= 0, got radius=-1"),
        ([1.0, np.inf], "finite and >= 0, got radius=<nan"),
        ("x", "finite and >= 0"),
        ([1.0, 1.0, 1.0], "one number or one for each of 2 people"),
        ([[1.0, 1.0]], "one number or one for each person"),
    ):
        with pytest.raises(InvalidInputError, match=rf"`radius` must be {message}"):
            radius_groups([0.0, 1.0], radius)
    with pytest.raises(InvalidInputError, match=r"`metric` must be 'euclidean' or 'great-circle', got metric='cos'"):
        radius_groups([0.0], 1, metric="cos")  # type: ignore[arg-type]
    for places in ([0.0], [[91.0, 0.0]], [[0.0, 400.0]]):
        with pytest.raises(InvalidInputError, match=r"`coordinates` must be latitude"):
            on_sphere(places)
    with pytest.raises(InvalidInputError, match=r"`size` must be an integer from 1 to 2"):
        nearest_groups([0.0, 1.0], 3)
    for edges, message in (([[0, 1, 2]], "pairs of people"), ([[0, 5]], "integers from 0 to 2")):
        with pytest.raises(InvalidInputError, match=rf"`edges` must be {message}"):
            path_groups(edges, n=3, radius=1)
    for labels in ([], [["a"]]):
        with pytest.raises(InvalidInputError, match=r"`labels` must be one label for each person"):
            column_groups(labels)


def test_a_hundred_thousand_people() -> None:
    n = 100_000
    places = np.random.default_rng(6).random((n, 2))
    groups = radius_groups(places, float(np.sqrt(50 / np.pi / n)))
    assert groups.n == len(groups) == n
    assert 45 * n < len(groups.members) < 52 * n
    for person in itertools.islice(range(n), 0, n, 20_000):
        far = np.linalg.norm(places - places[person], axis=1)
        assert groups[person].tolist() == np.flatnonzero(far <= np.sqrt(50 / np.pi / n)).tolist()
