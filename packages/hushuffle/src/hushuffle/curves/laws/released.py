"""Upper bounds for noisy releases without messages, and for shuffled reports if it is public who was truthful."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context, Decimal, localcontext

import numpy as np

from hushuffle.curves.base import PrivacyCurve, ReportCurve, UpperCurve
from hushuffle.curves.laws.blanket_bound import BlanketBound
from hushuffle.curves.laws.local import local_divergence
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Citation
from hushuffle.model.citation import BLANKET

BUN_STEINKE = Citation(
    key="bun2016",
    text="M. Bun, T. Steinke, Concentrated differential privacy: simplifications, extensions, and lower bounds, "
    "TCC (2016)",
)
CANONNE = Citation(
    key="canonne2020",
    text="C. L. Canonne, G. Kamath, T. Steinke, The discrete Gaussian for differential privacy, NeurIPS (2020)",
)
KAIROUZ_OH = Citation(
    key="kairouz2015",
    text="P. Kairouz, S. Oh, P. Viswanath, The composition theorem for differential privacy, ICML (2015)",
)

_UP = Context(prec=40, rounding=ROUND_CEILING)


@dataclass(frozen=True, kw_only=True, eq=False)
class PureRelease(UpperCurve):
    """Upper bound for an epsilon-DP release (pure): delta(x) <= (e**epsilon - e**x)/(e**epsilon + 1)."""

    promised: float
    sources = (KAIROUZ_OH,)
    proof = "binary randomized response dominates every mechanism with the same pure guarantee"

    @property
    def pure(self) -> float:
        return self.promised

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.promised:
            return 0.0
        with localcontext(_UP):
            own, level = Decimal(self.promised).exp(), Decimal(epsilon).exp()
            value = float((own - level * (1 - Decimal(10) ** -38)) / (own * (1 - Decimal(10) ** -38) + 1))
        return min(math.nextafter(value, math.inf), 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConcentratedRelease(UpperCurve):
    """Upper bound for a rho-zCDP release: delta(x) <= min over a > 1 of e**((a - 1)(a rho - x)) (1 - 1/a)**a / (a - 1).

    >>> round(ConcentratedRelease(rho=0.005).upper(0.5), 9)
    3.4e-08
    """

    rho: float
    sources = (BUN_STEINKE, CANONNE.at("Corollary 13"))
    proof = "zero-concentrated differential privacy, converted at the best order"
    _orders: np.ndarray = field(init=False, repr=False, default_factory=lambda: 1 + np.geomspace(1e-4, 1e7, 2200))

    @property
    def pure(self) -> float:
        return math.inf

    def upper(self, epsilon: float) -> float:
        above = self._orders - 1
        logs = above * (self._orders * self.rho - epsilon) + self._orders * np.log1p(-1 / self._orders) - np.log(above)
        least = float(logs.min())
        return min(1.0, math.exp(min(least + 1e-9 * (1 + abs(least)), 0.0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class CoinsKnown(ReportCurve, UpperCurve):
    """Upper bound for shuffled randomized response if the adversary may know which other people answered truthfully.

    The privacy-blanket bound holds for such an adversary. `law` is the distribution of one report, without a cap.
    """

    law: Symmetric
    blanket: BlanketBound
    sources = (BLANKET,)
    proof = "privacy blanket: the others' truthful reports are known"

    @classmethod
    def of(cls, *, law: Symmetric, local_epsilon: float, n: int, dummies: int) -> CoinsKnown:
        truth, lie, theta = float(law.truth), float(law.lie), float(law.theta)
        blanket = BlanketBound.of(k=law.k, n=n, truth=truth, lie=lie, dummies=dummies, theta=theta)
        return cls(law=law, local_epsilon=local_epsilon, blanket=blanket)

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        return max(min(self.blanket.upper(epsilon), local_divergence(self.law, epsilon)), 5e-324)

    def near(self, delta: float, *, often: bool = False) -> PrivacyCurve:
        near = self.blanket.without_traces(delta)
        return replace(self, blanket=near.tabulated() if often else near)
