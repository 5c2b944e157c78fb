"""`dp.explain`: the theorems behind a figure, from the description of the release down to the laws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hushuffle as hs
from hushuffle.curves.question import Question
from hushuffle.curves.rules import RULES
from hushuffle.curves.search import LAWS, trail
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.shufflers import Shuffler

THEORY = Path(__file__).parents[3] / "docs" / "theory"
RESPONSE = hs.RandomizedResponse(k=5, epsilon=2.0)


def survey(shuffler: Shuffler, n: int = 3000) -> hs.Protocol:
    return hs.Protocol(randomizer=RESPONSE, shuffler=shuffler, n=n)


def test_every_step_of_several_reports_with_messages_of_honest_people() -> None:
    explained = hs.dp.explain(survey(hs.BlanketMessages(p=0.1, honest=0.9)), reports_per_person=3)
    names, relations = [], []
    while True:
        names.append(explained.name)
        relations.append(explained.relation)
        if not explained.parts:
            break
        (explained,) = explained.parts
    assert names == [
        "colluding people left out",
        "a batch for each report",
        "messages of all people together",
        "number of dummies seen",
        "k-ary randomized response, shuffled",
    ]
    assert relations == ["=", "<= 3 times:", "=", "mean:", ""]
    assert explained.release == "900 reports; 90 dummies; seen: multiset"


def test_figures_of_the_steps_are_those_of_their_releases() -> None:
    explained = hs.dp.explain(survey(hs.UniformShuffle(), 900), reports_per_person=3, delta=1e-6)
    (batch,) = explained.parts
    assert explained.epsilon == hs.dp.epsilon(survey(hs.UniformShuffle(), 900), delta=1e-6, reports_per_person=3)
    assert batch.epsilon == hs.dp.epsilon(survey(hs.UniformShuffle(), 300), delta=1e-6)
    assert f"epsilon {batch.epsilon}" in re.sub(r"\s+", " ", str(explained))


def test_an_order_lies_between_two_releases() -> None:
    explained = hs.dp.explain(survey(hs.MallowsShuffle(reference=range(40), theta=0.1), 40))
    assert explained.relation == "between:"
    assert [part.release for part in explained.parts] == ["40 reports; seen: senders", "40 reports; seen: multiset"]


def test_everyone_of_two_groups() -> None:
    groups = hs.MixedProtocol(
        groups=[(90, RESPONSE), (10, hs.RandomizedResponse(k=5, epsilon=4.0))], shuffler=hs.UniformShuffle()
    )
    explained = hs.dp.explain(groups)
    assert explained.relation == "largest:"
    assert [part.release.rpartition("; ")[2] for part in explained.parts] == [
        "the target is one of the 90",
        "the target is one of the 10",
    ]


def test_rounds_are_explained_as_they_are_composed() -> None:
    once, smaller = survey(hs.UniformShuffle(), 900), survey(hs.UniformShuffle(), 90)
    explained = hs.dp.explain([(once, 12)], delta=1e-6, reports_per_person=3)
    trips = hs.dp.per_person(once, reports=3)
    assert (explained.relation, explained.name) == ("<= 12 times:", "rounds composed")
    assert explained.epsilon == hs.dp.compose([(trips, 12)], delta=1e-6)
    assert explained.parts[0] == hs.dp.explain(once, delta=1e-6, reports_per_person=3)
    both = hs.dp.explain([(once, 2), smaller, trips], delta=1e-6)
    assert both.epsilon == hs.dp.compose([(once, 2), smaller, trips], delta=1e-6)
    assert [part.name for part in both.parts] == ["rounds composed", "k-ary randomized response, shuffled", "given"]
    assert both.release.startswith(
        "900 reports; seen: multiset; 2 rounds; then 90 reports; seen: multiset; then a given"
    )
    assert hs.dp.explain([(once, 2), smaller]).epsilon is None
    assert hs.dp.explain([once]) == hs.dp.explain(once)


def test_memoized_reports_are_explained_by_the_theorems_of_both_bounds() -> None:
    once, coin = survey(hs.UniformShuffle(), 900), hs.RandomizedResponse(k=5, epsilon=0.5)
    still = hs.dp.explain(once, waves=12, delta=1e-6)
    assert (still.relation, still.name, still.beside) == ("=", "memoized reports shuffled once", ())
    assert still.epsilon == still.parts[0].epsilon == hs.dp.epsilon(once, delta=1e-6)
    changing = hs.dp.explain(once, waves=12, changes=1, delta=1e-6)
    assert changing.name == "memoized reports revealed"
    assert [part.release for part in changing.parts] == [
        "1 reports; seen: senders; 2 rounds",
        "900 reports; seen: multiset",
    ]
    assert changing.epsilon == hs.dp.waves(once, waves=12, changes=1, delta=1e-6)
    twice = hs.dp.explain(once, waves=12, instantaneous=coin, delta=1e-6)
    assert [step.name for step in (twice, *twice.beside)] == [
        "memoized reports shuffled once",
        "memoized reports given",
    ]
    assert twice.epsilon == hs.dp.waves(once, waves=12, instantaneous=coin, delta=1e-6)
    assert str(twice).count("between: memoized reports") == 2
    for rounds in ([(once, 2)], [once, survey(hs.UniformShuffle(), 90)], hs.dp.per_person(once, reports=2)):
        with pytest.raises(InvalidInputError, match=r"waves|`protocol` must be a Protocol"):
            hs.dp.explain(rounds, waves=3)


def test_what_has_no_bound_is_refused_with_the_release() -> None:
    groups = hs.MixedProtocol(
        groups=[(9, RESPONSE), (1, hs.RandomizedResponse(k=5, epsilon=4.0))], shuffler=hs.Scrambler(dummies=2, cap=10)
    )
    with pytest.raises(
        UnsupportedProtocolError, match=r"without a cap .*9 reports; 1 reports; 2 dummies; seen: capped"
    ):
        hs.dp.explain(groups)
    with pytest.raises(InvalidInputError, match="reports_per_person"):
        hs.dp.explain(survey(hs.UniformShuffle()), reports_per_person=0)


def test_every_page_of_a_rule_or_law_has_its_statement() -> None:
    for answer in (*RULES, *LAWS):
        page, _, statement = answer.page.partition(", ")
        text = (THEORY / page).read_text(encoding="utf-8")
        assert not statement or f"## {statement}\n" in text, answer.page


def test_the_trail_names_every_theorem_once() -> None:
    steps = trail(Question.of(survey(hs.MallowsShuffle(reference=range(40), theta=0.1), 40))).split("), ")
    assert len(steps) == len(set(steps)) == 3


def test_a_certificate_of_a_large_matrix_is_refused() -> None:
    hashes = hs.Protocol(randomizer=hs.HadamardResponse(k=70, epsilon=1.0), shuffler=hs.UniformShuffle(), n=50)
    with pytest.raises(UnsupportedProtocolError, match=r"a matrix of 8,960 probabilities, more than 4,096"):
        hs.dp.certificate(hashes, delta=1e-3)
