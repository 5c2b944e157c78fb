"""The inference attack against plain loops; who votes, ties, and the published rule."""

from __future__ import annotations

import numpy as np
import pytest

from hushuffle.attacks import inference
from hushuffle.attacks.inference import choose_voters, success_rates, vulnerable
from hushuffle.errors import InvalidInputError
from hushuffle.model.groups import Groups
from oracles.order_attack import most_similar, right


def neighbourhoods(n: int, rng: np.random.Generator) -> Groups:
    return Groups.of([np.union1d([i], rng.choice(n, rng.integers(1, n), replace=False)) for i in range(n)], n=n)


@pytest.mark.parametrize("levels", [2, 5, 1000])
@pytest.mark.parametrize("block", [10, 4_000_000])
def test_voters_are_the_most_similar(levels: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "_BLOCK", block)
    rng = np.random.default_rng(levels)
    for size in (1, 3, 8, 30):
        near, known = neighbourhoods(20, rng), rng.integers(0, levels, 20).astype(float)
        voters = choose_voters(near, known, size=size, seed=size)
        for person in range(20):
            sure, rest = most_similar(person, near[person].tolist(), known.tolist(), size)
            chosen = voters[person][voters[person] >= 0].tolist()
            assert len(chosen) == len(set(chosen)) == min(size, len(sure | rest))
            assert sure <= set(chosen) <= sure | rest


def test_people_of_one_group_and_equal_attributes_get_voters_of_their_own() -> None:
    # Each of 40 people picks 5 of 39: that two given rows agree has probability 1/C(39,5) < 2e-6.
    groups = Groups(offsets=np.array([0, 40]), members=np.arange(40), n=40, group_of=np.zeros(40, dtype=np.int64))
    voters = np.sort(choose_voters(groups, size=5), axis=1)
    assert len(np.unique(voters, axis=0)) > 30
    assert not np.any(voters == np.arange(40)[:, np.newaxis])
    # 200 choices in all, each person with mean 5: a count above 25 has probability below 1e-8 each.
    assert np.bincount(voters.reshape(-1), minlength=40).max() <= 25


def test_a_group_without_people_of_its_own_is_passed_over() -> None:
    groups = Groups(offsets=np.array([0, 1, 3]), members=np.array([0, 0, 1]), n=2, group_of=np.array([1, 1]))
    assert choose_voters(groups, size=1).tolist() == [[1], [0]]


@pytest.mark.parametrize("k", [2, 3, 8])
def test_rates_against_loops(k: int) -> None:
    rng = np.random.default_rng(k)
    n, draws = 30, 400
    values, released = rng.integers(0, k, n), rng.integers(0, k, (n, 3))
    voters = choose_voters(neighbourhoods(n, rng), size=6, seed=k)
    for column in range(3):
        one = np.repeat(released[:, column : column + 1], draws, axis=1)
        rates = success_rates(one, values, voters, k=k, seed=column)
        for person in range(n):
            chance = float(
                right(released[:, column].tolist(), int(values[person]), list(voters[person][voters[person] >= 0]), k)
            )
            if chance in {0, 1}:
                assert rates[person] == chance
            else:  # Hoeffding: 0.16 at 400 draws is exceeded with probability 2 exp(-2 * 400 * 0.16**2) < 3e-9
                assert abs(rates[person] - chance) < 0.16


def test_without_voters_the_guess_is_blind() -> None:
    rates = success_rates(np.zeros((1, 2000), dtype=int), [1], [[-1]], k=4)
    assert abs(rates[0] - 0.25) < 0.07  # Hoeffding: 2 exp(-2 * 2000 * 0.07**2) < 1e-8


def test_vulnerable_from_the_level_on() -> None:
    assert vulnerable(np.array([44, 45, 50]) / 50).tolist() == [False, True, True]
    assert vulnerable([0.5], level=0.5).tolist() == [True]
    with pytest.raises(InvalidInputError, match="level"):
        vulnerable([0.5], level=0)


def test_what_is_refused() -> None:
    loose = Groups.of([[0, 1]], n=2)
    with pytest.raises(InvalidInputError, match="one group for each person"):
        choose_voters(loose)
    near = Groups.of([[0, 1], [0, 1]])
    for known in ([1.0], [1.0, np.nan], np.zeros((2, 1, 1))):
        with pytest.raises(InvalidInputError, match="privileged"):
            choose_voters(near, known)
    for released, voters in (
        ([0, 1], [[1], [0]]),
        ([[0], [1]], [1, 0]),
        ([[0]], [[1], [0]]),
        (np.zeros((2, 0)), [[1], [0]]),
    ):
        with pytest.raises(InvalidInputError, match="rows"):
            success_rates(released, [0, 1], voters, k=2)
    with pytest.raises(InvalidInputError, match="voters"):
        success_rates([[0], [1]], [0, 1], [[2], [0]], k=2)
    with pytest.raises(InvalidInputError, match="released"):
        success_rates([[0], [2]], [0, 1], [[1], [0]], k=2)
