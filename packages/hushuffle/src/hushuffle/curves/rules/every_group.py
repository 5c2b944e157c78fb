"""A guarantee for the people of several groups is the worst of the groups' guarantees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from hushuffle.curves.base import PrivacyCurve, bracket
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.question import Feature, Question, Rule, Worst
from hushuffle.model import Bound, Citation, Witness


@dataclass(frozen=True, kw_only=True, eq=False)
class WorstCurve(PrivacyCurve):
    """The maximum of several privacy curves: bounds that hold for the people of every group."""

    curves: tuple[PrivacyCurve, ...]

    @property
    def sources(self) -> tuple[Citation, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(source for curve in self.curves for source in curve.sources))

    @property
    def proof(self) -> str:  # type: ignore[override]
        return f"the largest over groups: {self.curves[0].proof}"

    @property
    def pure(self) -> float:
        return max(curve.pure for curve in self.curves)

    @property
    def certain(self) -> float:  # type: ignore[override]
        return max(curve.certain for curve in self.curves)

    def pure_bound(self) -> Bound:
        return self._worst(lambda curve: curve.pure_bound())

    def upper(self, epsilon: float) -> float:
        return max(curve.upper(epsilon) for curve in self.curves)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return max((curve.lower(epsilon) for curve in self.curves), key=lambda end: end[0])

    def epsilon(self, delta: float) -> Bound:
        return self._worst(lambda curve: curve.epsilon(delta))

    def within(self, delta: float, tolerance: float, guess: float | None = None) -> Bound:
        return self._worst(lambda curve: curve.within(delta, tolerance, guess))

    def delta(self, epsilon: float) -> Bound:
        return self._worst(lambda curve: curve.delta(epsilon))

    def near(self, delta: float, *, often: bool = False) -> WorstCurve:
        return WorstCurve(curves=tuple(curve.near(delta, often=often) for curve in self.curves))

    def likely(self, epsilon: float) -> float:
        return max(curve.likely(epsilon) for curve in self.curves)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        return tuple(pair for curve in self.curves for pair in curve.datasets(log_tail=log_tail))

    def _worst(self, read: Callable[[PrivacyCurve], Bound]) -> Bound:
        figures = [read(curve) for curve in self.curves]
        worst = max(figures, key=lambda figure: figure.lower)
        upper = max(figure.upper for figure in figures)
        if upper == worst.upper:
            return worst
        return bracket(worst.lower, upper, unit=worst.unit, sources=self.sources, witness=worst.witness)


def _reduce(question: Question) -> Worst:
    return Worst(parts=tuple(replace(question, targets=(target,)) for target in question.targets))


RULE: Final = Rule(
    name="every group",
    statement="A guarantee for everyone is the weakest of the guarantees for the people of each group.",
    page="pool.md, Corollary 7",
    on=frozenset({Feature.TARGETS}),
    beside=frozenset({Feature.GROUPS, Feature.SENDERS, Feature.ORDER, Feature.OWN, Feature.RANDOM}),
    reduce=_reduce,
    build=lambda question, solve: WorstCurve(curves=tuple(solve(part) for part in _reduce(question).parts)),
)
