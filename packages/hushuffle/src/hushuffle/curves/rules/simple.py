"""Rules that need no curve of their own: each replaces a question by simpler questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hushuffle.curves.question import Between, Feature, Question, Rounds, Rule, Same
from hushuffle.mechanisms.release import ReleaseGroup
from hushuffle.mechanisms.shufflers import Reveals, Source

ROUNDS: Final = Rule(
    name="rounds composed",
    statement="The losses of rounds with fresh randomness add up, even if values depend on earlier releases.",
    page="composition.md, Theorem 3",
    on=frozenset({Feature.ROUNDS}),
    beside=frozenset(Feature) - {Feature.ROUNDS, Feature.MEMORY},
    reduce=lambda question: Rounds(question=replace(question, rounds=1), times=question.rounds),
)

SINGLE_ONES: Final = Rule(
    name="single ones counted",
    statement="Sums of vectors with a single 1 are the counts of the reports, which a shuffle reveals as well.",
    page="secure-sums.md, Theorem 1",
    on=frozenset({Feature.SUMS}),
    beside=frozenset({Feature.REPORTS}),
    applies=lambda question: question.law.one_hot is None,
    reduce=lambda question: Same(question=question.about(view=Reveals.MULTISET)),
)

OTHER_GROUPS: Final = Rule(
    name="other groups seen",
    statement="If senders are seen, other groups' reports can be set aside: they do not depend on the target's value.",
    page="index.md",
    on=frozenset({Feature.GROUPS, Feature.SENDERS}),
    reduce=lambda question: Same(question=question.alone()),
)


ORDER: Final = Rule(
    name="between senders and counts",
    statement="The order is computed from the reports with their senders, and the counts are computed from the order.",
    page="order.md, Theorem 1",
    on=frozenset({Feature.ORDER}),
    beside=frozenset({Feature.GROUPS}),
    reduce=lambda question: Between(
        above=question.about(view=Reveals.SENDERS, sources=()), below=question.about(view=Reveals.MULTISET)
    ),
)


def _as_dummies(question: Question) -> Same:
    """Messages that people send in addition are as many dummies: their total has a binomial distribution."""
    sources = tuple(replace(source, from_people=False) for source in question.release.sources)
    return Same(question=question.about(sources=sources))


OWN_MESSAGES: Final = Rule(
    name="messages of all people together",
    statement="After the shuffle no additional message can be linked to a person: together they are dummies.",
    page="histograms.md, Theorem 2",
    on=frozenset({Feature.OWN}),
    beside=frozenset({Feature.GROUPS}),
    reduce=_as_dummies,
)


def _among_honest(question: Question) -> Same:
    """Leave out colluding people: what they reveal depends on no other person's value. The shuffler's messages stay."""
    release = question.release
    assert release.honest is not None
    (group,) = release.groups
    left = max(release.honest, question.reports)

    def honest(source: Source) -> Source:
        return replace(source, count=source.trials.over(left, group.people)) if source.from_people else source

    crowd, sources = ReleaseGroup(people=left, device=group.device), tuple(map(honest, release.sources))
    return Same(question=question.about(groups=(crowd,), sources=sources, honest=None))


COLLUDING: Final = Rule(
    name="colluding people left out",
    statement="The adversary subtracts the messages of colluding people; only those of honest people hide the target.",
    page="histograms.md, Corollary 3",
    on=frozenset({Feature.COLLUDING}),
    beside=frozenset({Feature.REPORTS, Feature.OWN, Feature.EACH}),
    reduce=_among_honest,
)
