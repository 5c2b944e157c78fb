"""Central DP where the order of release says something, but not all: between the uniform shuffle and none.

Shuffling the release uniformly is a post-processing, and so is releasing from the reports with their senders: the
uniform shuffle's lower end and the local upper end both hold, whatever the law of the order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hushuffle.laws.base import Divergence, between
from hushuffle.model import Bound, Citation, Witness


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyOrder(Divergence):
    """`hidden` is the divergence of the same reports shuffled uniformly, `seen` that of one seen with its sender."""

    hidden: Divergence
    seen: Divergence
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

    def contenders(self, epsilon: float) -> Divergence:
        return replace(self, hidden=self.hidden.contenders(epsilon))
