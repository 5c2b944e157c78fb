from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.shufflers import UniformShuffle


@dataclass(frozen=True, kw_only=True)
class WithDummies(UniformShuffle):
    """A uniform shuffle with dummies."""

    count: int

    @property
    def dummies(self) -> int:
        return self.count


def survey(n: int = 4, **changes: Any) -> hs.Protocol:
    parts = {"randomizer": hs.RandomizedResponse(k=3, epsilon=1.0), "shuffler": hs.UniformShuffle(), "n": n}
    return hs.Protocol(**{**parts, **changes})


def test_collect_randomizes_then_shuffles() -> None:
    rng, by_hand = hs.reproducible(1), hs.reproducible(1)
    values = np.array([0, 1, 2, 2])
    transcript = survey().collect(values, rng=rng)
    reports = hs.RandomizedResponse(k=3, epsilon=1.0).randomize(values, rng=by_hand)
    assert np.array_equal(transcript.reports, reports[by_hand.permutation(4)])
    assert (transcript.people, transcript.dummies) == (4, 0)


def test_collect_adds_the_shufflers_dummies() -> None:
    exact = hs.RandomizedResponse(k=3, epsilon=math.inf)
    transcript = survey(randomizer=exact, shuffler=WithDummies(count=300)).collect([2, 2, 2, 2], rng=hs.reproducible(2))
    assert transcript.reports.shape == (304,)
    assert (transcript.people, transcript.dummies) == (4, 300)
    assert set(transcript.reports.tolist()) == {0, 1, 2}


def test_collect_is_secure_by_default() -> None:
    wide = survey(n=64, randomizer=hs.RandomizedResponse(k=2, epsilon=0.01))
    runs = {tuple(wide.collect(np.zeros(64, dtype=int)).reports.tolist()) for _ in range(3)}
    assert len(runs) == 3  # equal with probability 2e-19


def test_keyed_coins_serve_the_randomizer_but_not_the_shuffler() -> None:
    records = hs.keyed(key=bytes(32), records=np.arange(4))
    local = survey(shuffler=hs.NoShuffle())
    assert local.collect([0, 1, 2, 0], rng=records).reports.shape == (4,)
    with pytest.raises(InvalidInputError, match=r"Use secure\(\) for the shuffle; only the randomizer may use keyed"):
        survey().collect([0, 1, 2, 0], rng=hs.keyed(key=bytes(32), records=np.arange(4)))


def test_values_are_checked_and_not_shown() -> None:
    with pytest.raises(InvalidInputError, match=r"`values` must be n = 4 values, got values=<3 values>"):
        survey().collect([0, 1, 2])
    with pytest.raises(InvalidInputError, match=r"<1 of 4 values outside>") as caught:
        survey().collect([0, 1, 2, 777_777])
    assert "777" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, r"`n` must be an integer >= 1, got n=0"),
        ({"n": 2.5}, r"`n` must be an integer >= 1, got n=2.5"),
        ({"randomizer": "rr"}, r"`randomizer` must be a Mechanism, got randomizer='rr'. For example Randomized"),
        ({"shuffler": hs.UniformShuffle}, r"`shuffler` must be a Shuffler, got .* For example UniformShuffle\(\)."),
    ],
)
def test_bad_parts(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        survey(**changes)


def test_a_protocol_is_a_value() -> None:
    assert survey(n=np.int64(4)) == survey()  # type: ignore[arg-type]
    assert type(survey(n=np.int64(4)).n) is int  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        survey().n = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        hs.Protocol(hs.RandomizedResponse(k=2, epsilon=1.0), hs.UniformShuffle(), 4)  # type: ignore[call-arg]


def test_description_is_one_sentence() -> None:
    said = survey(n=33_000).describe()
    assert said.startswith("33,000 people: every person reports one of 3 values, the true one with probability 0.5761")
    assert said.endswith("a shuffler releases the reports in a uniformly random order.")


def test_adversaries_know_what_they_say() -> None:
    known = hs.Histogram(counts=[2, 1])
    assert hs.Informed(m=3, known=known).known == known
    assert hs.Informed(m=0).known is None
    assert hs.Strong().others is None
    assert hs.Uninformed() == hs.Uninformed()
    with pytest.raises(
        InvalidInputError, match=r"`known` must be a histogram that adds up to m = 4 people, got known=3"
    ):
        hs.Informed(m=4, known=known)
    with pytest.raises(InvalidInputError, match=r"`m` must be an integer >= 0, got m=-1"):
        hs.Informed(m=-1)
