"""Colluding people: what they reveal depends on no other person's value, so they are left out of the crowd."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hushuffle.curves.question import Feature, Question, Rule, Same
from hushuffle.mechanisms.release import Group
from hushuffle.mechanisms.shufflers import Source


def _reduce(question: Question) -> Same:
    release = question.release
    assert release.honest is not None
    (group,) = release.groups
    left = max(release.honest, question.reports)
    sources = tuple(_of_honest(source, left, group.people) for source in release.sources)
    honest = question.about(groups=(Group(people=left, device=group.device),), sources=sources, honest=None)
    return Same(question=honest)


def _of_honest(source: Source, people: int, of: int) -> Source:
    """The messages that `people` of the `of` people send; those of the shuffler stay."""
    return replace(source, count=source.trials.over(people, of)) if source.from_people else source


RULE: Final = Rule(
    name="colluding people left out",
    statement="The adversary subtracts the messages of colluding people; only those of honest people hide the target.",
    page="histograms.md, Corollary 3",
    on=frozenset({Feature.COLLUDING}),
    beside=frozenset({Feature.REPORTS, Feature.OWN, Feature.EACH}),
    reduce=_reduce,
)
