"""Certified ends of E max_x Z_x for mixtures with too many histograms to look at (see `mixture`).

Let 1 be the commonest value and Y_x = Z_x - Z_1, a sum of n independent steps whose law is known.

Lower bound: the larger of f_1 (guess it and do not look), a guesser who tells only some reports apart
(data processing), and one who guesses 1 or x: E max(Z_1, Z_x) = (f_1 + f_x + E|Y_x|)/2 with
E|Y| >= E[Y**2]**1.5 / E[Y**4]**0.5 (Hoelder).

Upper bound: f_1 + E max_x [Y_x]_+, by the smallest of
- sum_x min(E[Y_x]_+ <= (E Y_x + E[Y_x**2]**0.5)/2, E e**(s Y_x)/(e s)): [y]_+ <= e**(s y)/(e s);
- ln(1 + sum_x E e**(s Y_x))/s, by Jensen, for the best s > 0;
and of ln(sum_x E e**(s Z_x))/s, and of what the target's report alone would tell.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from hushuffle.numerics.binomial import EPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hushuffle.numerics.binomial import Floats
    from hushuffle.questions.qif.mixture import Mixture

ROUNDING: Final = 1e-11
"""Relative error allowed for in all ends; the ends are moved outward by it."""

_ENTRIES: Final = 1_500_000
_FARTHEST: Final = 400.0  # steps are at most 1, and e**400 is a float


def lower_end(mixture: Mixture) -> float:
    """Return a lower bound of E max_x Z_x, rounded down.

    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from hushuffle.questions.qif.mixture import Mixture
    >>> from hushuffle.mechanisms.randomizers import Symmetric
    >>> law = Symmetric(k=3, truth=Fraction(1, 2), lie=Fraction(1, 4))
    >>> mixture = Mixture.of(law, 100, np.array([0.4, 0.3, 0.3]))
    >>> lower_end(mixture) <= mixture.expected_best() <= upper_end(mixture)
    True
    """
    first = int(np.argmax(mixture.frequencies))
    singles = mixture.affordable_singles(_ENTRIES)
    some = mixture.merged(singles).expected_best() if singles else 0.0
    mean, second, fourth = _moments(mixture, first)
    spread = np.where(fourth > 0, second**1.5 / np.sqrt(np.where(fourth > 0, fourth, 1.0)), 0.0)
    size = np.maximum(np.abs(mean), spread)
    pairs = mixture.frequencies[first] + (mean + size) / 2
    return max(float(mixture.frequencies[first]), some, float(pairs.max())) * (1 - ROUNDING)


def upper_end(mixture: Mixture) -> float:
    """Return an upper bound of E max_x Z_x, rounded up; at most 1."""
    first = int(np.argmax(mixture.frequencies))
    base = float(mixture.frequencies[first])
    if base == 1.0:
        return 1.0
    mean, second, _ = _moments(mixture, first)
    spread = np.delete((mean + np.sqrt(second)) / 2, first)
    steps = _differences(mixture, first)
    jensen = _smallest(mixture, lambda s: float(logsumexp(_log_moments(mixture, steps, s))) / s)[0]
    best = _smallest(mixture, lambda s: float(logsumexp(_exponential(mixture, steps, first, s))) - math.log(s))[1]
    tails = np.exp(np.minimum(_exponential(mixture, steps, first, best) - 1, 700.0)) / best
    plain = _smallest(mixture, lambda s: float(logsumexp(_log_moments(mixture, mixture.posteriors, s))) / s)[0]
    excess = min(jensen, float(np.minimum(spread, tails).sum()))
    return min(1.0, min(base + excess, plain, mixture.alone) * (1 + ROUNDING))


def beyond(mixture: Mixture) -> tuple[float, float]:
    """Return a level L and a bound of E[max_x Y_x - L]_+ that is small beside it; rounded up."""
    first = int(np.argmax(mixture.frequencies))
    steps = _differences(mixture, first)
    value, slope = _smallest(mixture, lambda s: float(logsumexp(_log_moments(mixture, steps, s))) / s)
    level = value + 20 / slope
    tails = [
        math.exp(min(700.0, float(logsumexp(_exponential(mixture, steps, first, s))) - s * level - 1)) / s
        for s in (slope, 2 * slope, 4 * slope)
    ]
    return level, min(tails) * (1 + ROUNDING)


def _differences(mixture: Mixture, first: int) -> Floats:
    """Return n times the step of each Y_x for each report, shape (values, outputs)."""
    return np.asarray(mixture.posteriors - mixture.posteriors[first])


def _exponential(mixture: Mixture, steps: Floats, first: int, s: float) -> Floats:
    """Return ln E e**(s Y_x) for every value but the first, shape (values - 1,)."""
    return np.delete(_log_moments(mixture, steps, s), first)


def _log_moments(mixture: Mixture, steps: Floats, s: float) -> Floats:
    """Return n ln sum_r q_r e**(s steps[x, r]/n), rounded up, shape (values,); s is at most `_FARTHEST` n."""
    turned = np.expm1(steps * (s / mixture.n))
    rounding = EPS * (512 + mixture.reports.size)  # upwards
    mean = turned @ mixture.reports + rounding * (np.abs(turned) @ mixture.reports)
    return np.asarray(mixture.n * np.log1p(np.maximum(mean, -1 + EPS)))


def _moments(mixture: Mixture, first: int) -> tuple[Floats, Floats, Floats]:
    """Return E Y, E Y**2, E Y**4, shape (values,) each."""
    n, steps = mixture.n, _differences(mixture, first)
    mean = mixture.frequencies - mixture.frequencies[first]
    centred = steps - mean[:, None]
    two, three, four = ((centred**power) @ mixture.reports for power in (2, 3, 4))
    variance, skew = two / n, three / n**2
    tail = 3 * variance**2 + (four - 3 * two**2) / n**3
    second = mean**2 + variance
    return mean, second, np.maximum(mean**4 + 6 * mean**2 * variance + 4 * mean * skew + tail, second**2)


def _smallest(mixture: Mixture, bound: Callable[[float], float]) -> tuple[float, float]:
    """Return about the smallest of a bound over s > 0, and where; any s gives a bound."""
    ends = math.log(mixture.n) / 2 - 5, math.log(_FARTHEST / 4 * mixture.n)
    found = minimize_scalar(lambda log: bound(math.exp(log)), bounds=ends, method="bounded")
    return float(found.fun), math.exp(float(found.x))
