from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

import hushuffle as hs
from hushuffle.collection.kept import KeyRounds
from hushuffle.collection.ledger import LedgerBatch
from hushuffle.collection.request import rounds_of
from hushuffle.errors import NumericalError
from hushuffle.mechanisms.shufflers import Shuffler
from hushuffle.model import Bound
from hushuffle.questions import dp
from hushuffle.specification import parse

DELTA = 1e-6


def batch(
    scope: str | None, people: int, *, epsilon: str = "1.0", shuffler: str = '{ kind = "uniform" }'
) -> LedgerBatch:
    specification = parse(f"""
        population = {{ n = {people}, categories = ["a", "b", "c"] }}
        randomizer = {{ kind = "randomized-response", epsilon = {epsilon} }}
        shuffler = {shuffler}
        targets = {{ delta = 1e-6 }}
    """)
    return LedgerBatch(
        digest="00",
        people=people,
        scope=scope,
        shuffler=repr(specification.shuffler.build()),
        specification=specification.effective(),
    )


def protocol(n: int, *, epsilon: float = 1.0, shuffler: Shuffler | None = None) -> hs.Protocol:
    randomizer = hs.RandomizedResponse(k=3, epsilon=epsilon)
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler or hs.UniformShuffle(), n=n)


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[list[hs.Protocol]]:
    """What was to be composed, without the work."""
    seen: list[list[hs.Protocol]] = []

    def compose(rounds: list[hs.Protocol], *, delta: float) -> Bound:
        assert delta == DELTA
        seen.append(rounds)
        return Bound.exact(1.0, unit="nats")

    monkeypatch.setattr(dp, "compose", compose)
    return seen


def test_the_figure_is_that_of_the_composition() -> None:
    rounds = rounds_of([batch("a", 40), batch("b", 40)], delta=DELTA)
    figure = dp.compose([(protocol(40), 2)], delta=DELTA)
    assert rounds == KeyRounds(
        collections=2, epsilon=Bound(lower=0.0, upper=figure.upper, kind="upper", unit="nats"), delta=DELTA
    )
    assert rounds.facts()["epsilon"]["upper"] == figure.upper
    one = rounds_of([batch("a", 40)], delta=DELTA)
    assert one.epsilon.upper == dp.epsilon(protocol(40), delta=DELTA).upper < rounds.epsilon.upper


def test_batches_of_one_collection_have_different_people(composed: list[list[hs.Protocol]]) -> None:
    """The smallest counts; batches that were made otherwise count besides."""
    scrambler = '{ kind = "scrambler", dummies = 9 }'
    batches = [batch("a", 500), batch("a", 80), batch("a", 90, epsilon="2.0"), batch("a", 70, shuffler=scrambler)]
    assert rounds_of(batches, delta=DELTA).collections == 1
    shuffled = protocol(70, shuffler=hs.Scrambler(dummies=9))
    assert sorted(composed[0], key=lambda each: each.n) == [shuffled, protocol(80), protocol(90, epsilon=2.0)]


def test_many_sizes_are_made_few(composed: list[list[hs.Protocol]]) -> None:
    """Smaller ones stand for larger ones, close ones first."""
    sizes = [100, 101, 150, 151, 152, 1000, 1001, 9000]
    rounds_of([batch(str(place), size) for place, size in enumerate(sizes)], delta=DELTA)
    assert [each.n for each in composed[0]] == [100, 100, 150, 150, 150, 1000, 1000, 9000]
    shufflers = [f'{{ kind = "scrambler", dummies = {number} }}' for number in range(1, 7)]
    rounds_of([batch(text, 100, shuffler=text) for text in shufflers], delta=DELTA)
    assert len(composed[1]) == 6  # nothing stands for anything


def test_a_smaller_batch_stands_for_a_larger_one() -> None:
    """What makes it sound: more people, a smaller epsilon."""
    figures = [dp.epsilon(protocol(n), delta=DELTA) for n in (50, 100, 101, 400)]
    assert all(more.upper <= fewer.upper for fewer, more in pairwise(figures))


def test_what_an_earlier_version_collected_is_not_known(composed: list[list[hs.Protocol]]) -> None:
    old = LedgerBatch(digest="00", people=7)
    rounds = rounds_of([old, batch("a", 100)], delta=DELTA)
    assert (rounds.collections, rounds.unknown, len(composed[0])) == (1, 1, 1)
    assert rounds_of([old], delta=DELTA).epsilon.upper == 0.0


def test_where_nothing_better_is_known_local_epsilons_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Bound:
        raise NumericalError

    monkeypatch.setattr(dp, "compose", refuse)
    rounds = rounds_of([batch("a", 100), batch("b", 100, epsilon="2.0")], delta=DELTA)
    assert rounds.epsilon.upper == pytest.approx(3.0, rel=1e-12)
    assert rounds_of([batch("a", 100, epsilon='"inf"')], delta=DELTA).epsilon.upper == math.inf
