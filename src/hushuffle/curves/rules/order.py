"""A noisy order of the reports reveals more than their numbers and less than their senders."""

from __future__ import annotations

from typing import Final

from hushuffle.curves.question import Between, Feature, Question, Rule
from hushuffle.mechanisms.shufflers import Reveals


def _reduce(question: Question) -> Between:
    return Between(above=question.about(view=Reveals.SENDERS, sources=()), below=question.about(view=Reveals.MULTISET))


RULE: Final = Rule(
    name="between senders and counts",
    statement="The order is computed from the reports with their senders, and the counts are computed from the order.",
    page="order.md, Theorem 1",
    on=frozenset({Feature.ORDER}),
    beside=frozenset({Feature.GROUPS}),
    reduce=_reduce,
)
