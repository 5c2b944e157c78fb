"""Several rounds with fresh randomness: each round's dominating pair replaces its datasets, and the pairs compose."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hushuffle.curves.question import Feature, Question, Rounds, Rule


def _reduce(question: Question) -> Rounds:
    return Rounds(question=replace(question, rounds=1), times=question.rounds)


RULE: Final = Rule(
    name="rounds composed",
    statement="The losses of rounds with fresh randomness add up, even if values depend on earlier releases.",
    page="composition.md, Theorem 3",
    on=frozenset({Feature.ROUNDS}),
    beside=frozenset(Feature) - {Feature.ROUNDS, Feature.MEMORY},
    reduce=_reduce,
)
