"""Rényi divergence of a release: its upper bound from the dominating pair, its lower bound from explicit datasets.

The moment of a pair (P, Q) is sum P**alpha Q**(1 - alpha) = 1 + alpha (alpha - 1) times the integral over x > 0 of
x**(alpha - 2) (h(x) - [1 - x]_+), where h(x) = sum [P - x Q]_+. So it grows with h, and a dominating pair has the
largest. Rényi divergences of independent rounds add up.

Source: docs/theory/curves.md, Lemma 10.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from hushuffle.curves.base import Laws, PrivacyCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.pairs.dominating import TabulatedCurve, common_step
from hushuffle.numerics.binomial import EPS

_DEPTHS: Final = (1e-9, 1e-300)
"""A curve is tuned to a delta: the first until it falls to that delta, the second beyond."""

_POINTS: Final = 200
"""Largest number of points beyond the first depth."""

_COMMON: Final = 50.0
"""At alpha near 1, events rarer than e**-50 are left out of lower bounds."""


def renyi_bounds(laws: Laws, alpha: float) -> tuple[float, float]:
    """Return (lower, upper) bounds on the Rényi divergence (nats) of order `alpha` > 1 of all rounds together.

    >>> import hushuffle as hs
    >>> from hushuffle.curves.search import privacy_curve
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
    >>> [round(end, 6) for end in renyi_bounds([(privacy_curve(local), 3)], 2.0)]
    [2.205977, 2.205977]
    """
    lower = sum(times * _attained(law, alpha) for law, times in laws)
    upper = sum(times * _dominating(law, alpha) for law, times in laws)
    return min(lower, upper), upper


def _dominating(law: PrivacyCurve, alpha: float) -> float:
    if not np.isfinite(law.pure):
        return float(np.inf)
    pair = _whole(law, common_step([(law, 1)])).pair()
    if pair.infinity > 0:
        return law.pure
    losses, masses = pair.support
    moment = float(np.logaddexp.reduce((alpha - 1) * losses + masses))
    return min(max(moment + EPS * (64 + 64 * losses.size), 0.0) / (alpha - 1), law.pure)


def _whole(law: PrivacyCurve, step: float) -> TabulatedCurve:
    """Tabulate the curve at multiples of `step` (nats) until delta is 0."""
    near, deep = TabulatedCurve.of(law, step=step, negligible=_DEPTHS[0]), law.near(_DEPTHS[1], often=True)
    last = float(np.ceil(law.pure / step * (1 - 4 * EPS)))
    if near.deltas[-1] == 0 or near.index[-1] >= last:
        return near
    index = np.unique(np.ceil(np.geomspace(near.index[-1] + 1, last, _POINTS)))
    epsilons = step * index * (1 - 4 * EPS)
    deltas = [0.0 if level >= law.pure else deep.upper(level) for level in epsilons.tolist()]
    places, bounds = np.append(near.index, index), np.append(near.deltas, deltas)
    return replace(near, index=places, deltas=np.minimum.accumulate(np.minimum(bounds, 1.0)))


def _attained(law: PrivacyCurve, alpha: float) -> float:
    """Return the largest divergence of the explicit datasets, in both directions; 0 if none are given."""
    tail = -min(_COMMON + (alpha - 1) * law.pure, 700.0)
    pairs = law.datasets(log_tail=tail)
    return max((_divergence(each, alpha) for pair in pairs for each in (pair, pair.swapped())), default=0.0)


def _divergence(pair: DatasetPair, alpha: float) -> float:
    least, most = pair.p - pair.p_error, pair.q + pair.q_error
    sound = (least > 0) & (most > 0)
    powers = alpha * (np.log(least[sound]) - pair.doubt) + (1 - alpha) * (np.log(most[sound]) + pair.doubt)
    rounding = EPS * (16 + least.size + 1600 * alpha)
    return max((float(np.logaddexp.reduce(powers)) - pair.common - rounding) / (alpha - 1), 0.0)
