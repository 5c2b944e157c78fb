"""A noisy order of the reports reveals more than their numbers and less than their senders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hushuffle.curves.base import PrivacyCurve, bracket
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.question import Between, Feature, Question, Rule, Solve
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Citation, Witness


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyOrder(PrivacyCurve):
    """Bounds for a shuffler whose order of reports reveals something about the senders.

    The lower bounds are those of `hidden`, the curve of the same reports shuffled uniformly. The upper bounds are those
    of `seen`, the curve of one report seen with its sender.
    """

    hidden: PrivacyCurve
    seen: PrivacyCurve
    proof = "post-processing: a uniform shuffle hides more, the reports with their senders say more"

    @property
    def sources(self) -> tuple[Citation, ...]:  # type: ignore[override]
        return self.hidden.sources

    @property
    def pure(self) -> float:
        return self.seen.pure

    def pure_bound(self) -> Bound:
        hidden = self.hidden.pure_bound()
        return bracket(
            hidden.lower,
            self.pure,
            unit="nats",
            sources=self.sources,
            witness=hidden.witness,
            exact=hidden.lower == self.pure,
        )

    def upper(self, epsilon: float) -> float:
        return self.seen.upper(epsilon)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return self.hidden.lower(epsilon)

    def epsilon(self, delta: float) -> Bound:
        hidden, high = self.hidden.epsilon(delta), self.pure
        exact = hidden.lower == high
        return bracket(hidden.lower, high, unit="nats", sources=self.sources, witness=hidden.witness, exact=exact)

    def delta(self, epsilon: float) -> Bound:
        hidden, high = self.hidden.delta(epsilon), self.seen.delta(epsilon).upper
        return bracket(hidden.lower, high, unit="probability", sources=self.sources, witness=hidden.witness)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        return self.hidden.datasets(log_tail=log_tail)


def _reduce(question: Question) -> Between:
    return Between(above=question.about(view=Reveals.SENDERS, sources=()), below=question.about(view=Reveals.MULTISET))


def _build(question: Question, solve: Solve) -> PrivacyCurve:
    question.certify()
    ends = _reduce(question)
    return NoisyOrder(hidden=solve(ends.below), seen=solve(ends.above))


RULE: Final = Rule(
    name="between senders and counts",
    statement="The order is computed from the reports with their senders, and the counts are computed from the order.",
    page="order.md, Theorem 1",
    on=frozenset({Feature.ORDER}),
    beside=frozenset({Feature.GROUPS}),
    reduce=_reduce,
    build=_build,
    exact=False,
)
