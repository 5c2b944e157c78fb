"""Replay with equal randomness catches leaks of the code around a randomizer, and passes all our randomizers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.attacks.replay import assert_replay, differences
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import Mechanism

RESPONSE = hs.RandomizedResponse(k=4, epsilon=1.0)
VOTES = np.arange(60) % 4


def one_by_one(values: Any, rng: Any) -> Any:
    return RESPONSE.randomize(np.asarray(values), rng=rng)


def without_outliers(values: Any, rng: Any) -> Any:
    """Reports only of values that several people hold."""
    values = np.asarray(values)
    frequent = np.bincount(values, minlength=4)[values] > 1
    return np.where(frequent, RESPONSE.randomize(values, rng=rng), 0)


def in_order_of_values(values: Any, rng: Any) -> Any:
    return RESPONSE.randomize(np.sort(np.asarray(values)), rng=rng)


def with_a_total(values: Any, rng: Any) -> Any:
    return {"reports": RESPONSE.randomize(np.asarray(values), rng=rng), "yes": int(np.count_nonzero(values))}


def without_refused_rows(values: Any, rng: Any) -> Any:
    return RESPONSE.randomize(np.asarray(values), rng=rng)[np.asarray(values) > 0]


def scaled_by_the_largest(values: Any, rng: Any) -> Any:
    largest = int(np.max(values)) + 1
    return RESPONSE.randomize(np.asarray(values) * 4 // largest % 4, rng=rng)


@pytest.mark.parametrize(
    ("collect", "records"),
    [
        (without_outliers, [0, 0, 1, 1, 2, 2, 3, 0]),
        (in_order_of_values, VOTES),
        (with_a_total, VOTES),
        (without_refused_rows, VOTES),
        (scaled_by_the_largest, np.array([0, 1, 1, 0, 1, 0, 1, 0, 0, 3])),
    ],
)
def test_leaks_are_caught(collect: Callable[..., Any], records: Any) -> None:
    with pytest.raises(AssertionError, match="With equal randomness") as caught:
        assert_replay(collect, records, positions=range(len(records)))
    assert "record" in str(caught.value)


@pytest.mark.parametrize(
    "randomizer",
    [
        RESPONSE,
        hs.LocalHashing(k=30, g=4, epsilon=1.0),
        hs.SubsetSelection(k=10, w=3, epsilon=1.0),
        hs.UnaryEncoding(k=8, epsilon=1.0, encoding="symmetric"),
        hs.HadamardResponse(k=10, epsilon=1.0),
        hs.MatrixRandomizer(np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]])),
    ],
    ids=lambda randomizer: type(randomizer).__name__,
)
def test_our_randomizers_pass(randomizer: Mechanism) -> None:
    records = np.arange(200) % randomizer.inputs
    assert_replay(lambda values, rng: randomizer.randomize(np.asarray(values), rng=rng), records)


def test_a_shuffle_passes_and_so_does_a_sorted_release() -> None:
    survey = hs.Protocol(randomizer=RESPONSE, shuffler=hs.UniformShuffle(), n=60)

    def released(values: Any, rng: Any) -> Any:
        return survey.collect(values, rng=rng).reports

    assert_replay(released, VOTES, per_record=False)

    def filtered(values: Any, rng: Any) -> Any:
        return one_by_one(values[values > 0], rng)

    with pytest.raises(AssertionError, match="the number or the value of 'reports'"):
        assert_replay(filtered, VOTES, per_record=False)
    assert_replay(lambda values, rng: np.sort(one_by_one(values, rng)), VOTES, shuffled=True)
    with pytest.raises(AssertionError):
        assert_replay(lambda values, rng: np.sort(one_by_one(values, rng)), VOTES)


def test_global_generators_are_seeded_and_restored() -> None:
    state = random.getstate()

    def theirs(values: Any, _: Any) -> list[int]:
        return [value if random.random() < 0.5 else random.randrange(4) for value in values]  # noqa: S311

    found = list(differences(theirs, [0, 1, 2, 3], keys=1))
    assert len(found) == 4 * 3
    assert random.getstate() == state


def test_several_reports_of_one_person_may_change() -> None:
    def doubled(values: Any, rng: Any) -> Any:
        return np.tile(one_by_one(values, rng), 2)

    assert_replay(doubled, VOTES, reports_per_person=2)
    with pytest.raises(AssertionError, match="2 reports"):
        assert_replay(doubled, VOTES)


def test_what_cannot_be_replayed_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="repeats its output"):
        assert_replay(lambda values, _: one_by_one(values, hs.secure()), VOTES)
    with pytest.raises(InvalidInputError, match="two records"):
        assert_replay(one_by_one, [1])
    with pytest.raises(InvalidInputError, match="two different values"):
        assert_replay(one_by_one, [1, 1])
