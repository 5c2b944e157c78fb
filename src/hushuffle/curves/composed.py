"""The privacy curve of several releases about the same value of each person."""

from __future__ import annotations

from dataclasses import dataclass, field

from hushuffle.curves.base import Laws, PrivacyCurve
from hushuffle.curves.composition import Cache, composed_delta, composed_epsilon, total_pure
from hushuffle.curves.dominating import DOMINATING, DOTS
from hushuffle.model import Bound, Citation, Witness


@dataclass(frozen=True, kw_only=True, eq=False)
class ComposedCurve(PrivacyCurve):
    """Privacy curve of the composition of all runs of all mechanisms in `laws`, at least two runs in total."""

    laws: Laws
    cache: Cache = field(default_factory=dict, repr=False)
    proof = "dominating pairs composed (upper bound), explicit datasets composed (lower bound)"

    @property
    def sources(self) -> tuple[Citation, ...]:  # type: ignore[override]
        own = (source for law, _ in self.laws for source in law.sources)
        return tuple(dict.fromkeys([DOMINATING.at("Theorem 10"), DOTS, *own]))

    @property
    def pure(self) -> float:
        return total_pure(self.laws)

    def upper(self, epsilon: float) -> float:
        return self.delta(epsilon).upper

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        bound = self.delta(epsilon)
        return bound.lower, bound.witness or self.laws[0][0].lower(0.0)[1]

    def epsilon(self, delta: float) -> Bound:
        return composed_epsilon(self.laws, delta=delta)

    def delta(self, epsilon: float) -> Bound:
        return composed_delta(self.laws, epsilon=epsilon, cache=self.cache)
