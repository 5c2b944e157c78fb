"""Central DP where the order of release says something, but not all: between the uniform shuffle and none.

Shuffling the release uniformly is a post-processing, and so is releasing from the reports with their senders: the
uniform shuffle's lower end and the local upper end both hold, whatever the law of the order.
"""

from __future__ import annotations

from dataclasses import dataclass

from hushuffle.curves.base import PrivacyCurve, between
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.model import Bound, Citation, Witness


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyOrder(PrivacyCurve):
    """`hidden` is the divergence of the same reports shuffled uniformly, `seen` that of one seen with its sender."""

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
        return between(
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
        return between(hidden.lower, high, unit="nats", sources=self.sources, witness=hidden.witness, exact=exact)

    def delta(self, epsilon: float) -> Bound:
        hidden, high = self.hidden.delta(epsilon), self.seen.delta(epsilon).upper
        return between(hidden.lower, high, unit="probability", sources=self.sources, witness=hidden.witness)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        return self.hidden.datasets(log_tail=log_tail)
