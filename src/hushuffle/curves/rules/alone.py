"""If senders are seen, a report is protected by its own noise only."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hushuffle.curves.question import Feature, Question, Rule, Same


def _reduce(question: Question) -> Same:
    (target,) = question.targets
    return Same(question=replace(question, release=question.release.alone(target), targets=(0,)))


RULE: Final = Rule(
    name="other groups seen",
    statement="If senders are seen, other people's reports do not depend on the target's value.",
    page="index.md",
    on=frozenset({Feature.GROUPS, Feature.SENDERS}),
    reduce=_reduce,
)
