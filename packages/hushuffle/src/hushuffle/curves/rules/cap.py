"""A scrambler that sends at most n messages to a target: exact pure epsilon, certified (epsilon, delta).

n sources send one message each: to their own target with probability mu, to any other target with probability nu.
Then d dummies follow one by one, each uniform over the targets with fewer than n messages. Proofs are in the
documentation, docs/theory/traffic.md, Theorems 3 to 5. In short, for d < n at most one target can be full, and

- if the target t of an output is full, the likelihood ratio of t against t' is at most
  (mu A + nu B)/(nu A + nu B), A = E w_u, B = E w_(u+1), w_u = (T-1)**u P(Bin(d, 1/T) >= u), where u, the number of
  other sources that are not at t, has weights C(n-1, u) mu**u nu**(n-1-u) if all others are at one third target
  and is stochastically smaller for any other input; w is log-concave, so B/A is smallest there;
- if no target is full, the ratio is at most 1 + (theta/nu) E[D]/(d + 1), where D is the number of dummies at t (with
  the target's own message); it is largest with n - 1 messages at t;
- if another target is full, the bound of the first case holds with mu and nu exchanged, and A and B exchanged.

More dummies can be added after d without use of the sources' messages: epsilon at d >= n is at most epsilon at
d = n - 1. A cap only hides more, since the capped scrambler is a post-processing of the uncapped one: cut the uncapped
counts at n, and draw the missing dummies again, rejecting those for full targets, until there are d dummies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from hushuffle.curves.base import PrivacyCurve, bracket
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.local import local_divergence
from hushuffle.curves.question import Feature, Question, Rule, Same, Solve
from hushuffle.mechanisms.randomizers import Symmetric, symmetric_law
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Citation, Witness
from hushuffle.model.citation import LADJEL
from hushuffle.numerics.binomial import Floats

_SLACK = 1e-11
"""Relative error allowed for sums of positive terms, which are accurate to about 1e-13 per thousand terms."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Capped(PrivacyCurve):
    """Privacy curve of n sources behind a scrambler with d dummies and at most n messages for each target.

    `uncapped` is the privacy curve of the same scrambler without the cap.
    """

    law: Symmetric
    local_epsilon: float
    n: int
    dummies: int
    uncapped: PrivacyCurve
    proof = "a cap is a post-processing; largest likelihood ratio of an output; what a cap can change (lower bound)"

    @property
    def sources(self) -> tuple[Citation, ...]:  # type: ignore[override]
        return (LADJEL.at("Theorem 3, corrected"), *self.uncapped.sources)

    @property
    def attained(self) -> bool:
        """Whether the likelihood ratio of some output equals e**`pure`."""
        return self.dummies < self.n

    @cached_property
    def pure(self) -> float:
        """The epsilon of pure differential privacy, rounded up; exact if `attained`, else an upper bound.

        >>> from fractions import Fraction
        >>> law = Symmetric(k=3, truth=Fraction(2, 3), lie=Fraction(1, 6))
        >>> from hushuffle.curves.laws.symmetric import Kary
        >>> kary = Kary(law=law, local_epsilon=math.log(4), n=5, dummies=3)
        >>> round(Capped(law=law, local_epsilon=math.log(4), n=5, dummies=3, uncapped=kary).pure, 4)
        1.2332
        """
        if self.dummies == (self.law.k - 1) * self.n:
            return 0.0  # every target is full, for all values of the sources
        if self.law.lie == 0:
            return math.inf
        return min(math.log(max(self._cases())) * (1 + _SLACK) + _SLACK * 1e-3, self.local_epsilon)

    def pure_bound(self) -> Bound:
        """Exact (up to rounding) for d < n dummies, an upper bound for d >= n."""
        if self.attained or self.pure == 0:
            lower = max(self.pure * (1 - 3 * _SLACK) - 3e-3 * _SLACK, 0.0) if math.isfinite(self.pure) else math.inf
            witness = self.lower(0.0)[1]
            return bracket(lower, self.pure, unit="nats", sources=self.sources, witness=witness, exact=True)
        return Bound(lower=0.0, upper=self.pure, kind="upper", unit="nats", sources=self.sources)

    def _cases(self) -> tuple[float, float, float]:
        """The largest likelihood ratio if target t is full, if no target is, and if another target is."""
        t, d, excess = self.law.k, min(self.dummies, self.n - 1), float(self.law.theta / self.law.lie)
        weights = _full_weights(d, t)
        often, seldom = (self._spread(d, tilt) for tilt in (self._odds, -self._odds))
        here, there = _pair(often, weights), _pair(seldom, weights)[::-1]
        up = np.arange(min(self.n - 1, d + 1) + 1, dtype=np.float64)
        logs = self._spread(d + 1, self._odds) + _log_choose(d + 1)[: up.size]
        shares = np.exp(logs - logs.max())
        hidden = np.asarray(shares / shares.sum())
        mixed = float(hidden @ up) / (d + 1), float(hidden @ (d + 1 - up)) / (d + 1)
        return self._ratio(*here, excess), self._ratio(*mixed, excess), self._ratio(*there, excess)

    def _ratio(self, at: float, elsewhere: float, excess: float) -> float:
        """Likelihood ratio if a share `at` of the weight is at t, and `elsewhere` at t' (used for T = 2)."""
        return (1 + excess * at) / (1 + excess * elsewhere) if self.law.k == 2 else 1 + excess * at

    @property
    def _odds(self) -> float:
        return math.log(self.law.truth / self.law.lie)

    def _spread(self, most: int, tilt: float) -> Floats:
        """Return ln(C(n-1, u) e**(tilt u)) for u = 0 .. min(most, n - 1)."""
        u = np.arange(min(most, self.n - 1), dtype=np.float64)
        steps = np.log(self.n - 1 - u) - np.log(u + 1) + tilt
        return np.concatenate([[0.0], np.cumsum(steps)])

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        cap = local_divergence(self.law, epsilon)
        if math.isfinite(self.pure):  # binary randomized response with the same pure epsilon has the largest delta
            cap = min(cap, -math.expm1(epsilon - self.pure) / (1 + math.exp(-self.pure)) * (1 + 1e-15))
        return max(min(cap, self.uncapped.upper(epsilon)), 5e-324)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        value, witness = self.uncapped.lower(epsilon)
        if epsilon >= self.pure:
            return 0.0, witness
        # The capped and the uncapped scrambler agree until an uncapped dummy falls on a full target.
        return max(value - min(1.0, self._binding) * (1 + math.exp(min(epsilon, 700.0))), 0.0), witness

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """Datasets without the cap; the error bounds of their probabilities cover what the cap can change."""
        pairs = self.uncapped.datasets(log_tail=log_tail)
        return tuple(
            replace(pair, p_error=pair.p_error + self._binding, q_error=pair.q_error + self._binding) for pair in pairs
        )

    def guess(self) -> float:
        return min(self.uncapped.guess(), self.pure / 2)

    def near(self, delta: float, *, often: bool = False) -> PrivacyCurve:
        del often
        return replace(self, uncapped=self.uncapped.near(delta))

    @cached_property
    def _binding(self) -> float:
        """Upper bound on P(some target has more than n messages without a cap), for all sources' values.

        At most one target is the own target of more than half of the sources.
        """
        half = self.n // 2
        return self._overfull(self.n) + (self.law.k - 1) * self._overfull(half)

    def _overfull(self, own: int) -> float:
        """Chernoff's bound on P(a target has more than n messages) if `own` sources have it as own target."""
        truth, lie, share = float(self.law.truth), float(self.law.lie), 1 / self.law.k
        tilts = np.linspace(0.0, 8.0, 4001)[1:]
        grown = np.expm1(tilts)
        exponents = (
            own * np.log1p(truth * grown)
            + (self.n - own) * np.log1p(lie * grown)
            + self.dummies * np.log1p(share * grown)
            - tilts * (self.n + 1)
        )
        return min(1.0, math.exp(min(float(exponents.min()), 0.0)) * (1 + 1e-9))


def _full_weights(d: int, targets: int) -> Floats:
    """Return ln w_u for u = 0 .. d + 1, where w_u = (T-1)**u P(Bin(d, 1/T) >= u); -inf at u = d + 1."""
    u = np.arange(d + 1, dtype=np.float64)
    masses = _log_choose(d) - u * math.log(targets - 1)
    tails = np.logaddexp.accumulate(masses[::-1])[::-1]
    return np.concatenate([tails - tails[0] + u * math.log(targets - 1), [-math.inf]])


def _log_choose(d: int) -> Floats:
    """Return ln C(d, u), u = 0 .. d."""
    u = np.arange(d, dtype=np.float64)
    return np.concatenate([[0.0], np.cumsum(np.log(d - u) - np.log(u + 1))])


def _pair(spread: Floats, weights: Floats) -> tuple[float, float]:
    """A/(A + B) and B/(A + B): A sums e**(spread + weights) with the weights at u, B with those at u + 1."""
    size = spread.size
    own, next_one = spread + weights[:size], spread + weights[1 : size + 1]
    top = max(own.max(), next_one.max())
    a, b = float(np.exp(own - top).sum()), float(np.exp(next_one - top).sum())
    return a / (a + b), b / (a + b)


def _reduce(question: Question) -> Same:
    return Same(question=question.about(view=Reveals.MULTISET))


def _build(question: Question, solve: Solve) -> PrivacyCurve:
    question.certify()
    release = question.release
    law = symmetric_law(question.device, for_what="A scrambler with a cap")
    uncapped = solve(_reduce(question).question)
    pure = question.device.local_epsilon
    return Capped(law=law, local_epsilon=pure, n=release.n, dummies=release.dummies, uncapped=uncapped)


RULE: Final = Rule(
    name="cap removed",
    statement="The capped counts are computed from the uncapped ones, so a cap only hides more.",
    page="traffic.md, Theorem 3",
    on=frozenset({Feature.CAP}),
    reduce=_reduce,
    build=_build,
    exact=False,
)
