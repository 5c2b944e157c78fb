"""Sums of vectors with a single 1 are the numbers of the reports: as after a shuffle."""

from __future__ import annotations

from typing import Final

from hushuffle.curves.question import Feature, Question, Rule, Same
from hushuffle.mechanisms.shufflers import Reveals


def _reduce(question: Question) -> Same:
    return Same(question=question.about(view=Reveals.MULTISET))


RULE: Final = Rule(
    name="single ones counted",
    statement="Sums of vectors with a single 1 are the counts of the reports, which a shuffle reveals as well.",
    page="secure-sums.md, Theorem 1",
    on=frozenset({Feature.SUMS}),
    beside=frozenset({Feature.REPORTS}),
    applies=lambda question: question.law.one_hot is None,
    reduce=_reduce,
)
