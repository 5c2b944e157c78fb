"""Messages that people send in addition are as many dummies: their total has a binomial distribution."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hushuffle.curves.question import Feature, Question, Rule, Same


def _reduce(question: Question) -> Same:
    sources = tuple(replace(source, from_people=False) for source in question.release.sources)
    return Same(question=question.about(sources=sources))


RULE: Final = Rule(
    name="messages of all people together",
    statement="After the shuffle no additional message can be linked to a person: together they are dummies.",
    page="histograms.md, Theorem 2",
    on=frozenset({Feature.OWN}),
    beside=frozenset({Feature.GROUPS}),
    reduce=_reduce,
)
