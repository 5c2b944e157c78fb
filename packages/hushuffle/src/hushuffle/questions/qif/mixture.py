"""Posteriors of an adversary who knows the frequencies of values, from one report and from shuffled reports.

Every released report is equally likely to be the target's. So after a shuffle the adversary's posterior of the
target's value is the mean of the posteriors from the single reports,

    Z_x = (1/n) sum_r h_r w[x, r],   w[x, r] = f_x Q(r|x)/q_r,   q_r = sum_x f_x Q(r|x),   h ~ Multinomial(n; q),

and the vulnerability is E max_x Z_x. E Z_x = f_x.

Certified upper bounds on E max_x Z_x for mixtures with too many histograms to enumerate; `shuffled` has more.

Let 1 be the most frequent value and Y_x = Z_x - Z_1, a sum of n independent steps of known distribution.

Upper bound: f_1 + E max_x [Y_x]_+, by the smallest of
- sum_x min(E[Y_x]_+ <= (E Y_x + E[Y_x**2]**0.5)/2, E e**(s Y_x)/(e s)): [y]_+ <= e**(s y)/(e s);
- ln(1 + sum_x E e**(s Y_x))/s, by Jensen, for the best s > 0;
and of ln(sum_x E e**(s Z_x))/s, and of the value for the target's unshuffled report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import scipy  # scipy loads its modules on first use

from hushuffle.errors import NumericalError
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats

if TYPE_CHECKING:
    from collections.abc import Callable

    from hushuffle.mechanisms.randomizers import Symmetric

ROUNDING: Final = 1e-11
"""Relative error allowed in all bounds, which are widened by it."""

_log_sum: Final = np.logaddexp.reduce

_FARTHEST: Final = 400.0  # steps are at most 1, and e**400 is a float


def upper_end(mixture: Mixture) -> float:
    """Return an upper bound on the vulnerability E max_x Z_x of a mixture, rounded up; at most 1."""
    first = int(np.argmax(mixture.frequencies))
    base = float(mixture.frequencies[first])
    if base == 1.0:
        return 1.0
    mean, second = _moments(mixture, first)
    spread = np.delete((mean + np.sqrt(second)) / 2, first)
    steps = _differences(mixture, first)
    jensen = _smallest(mixture, lambda s: float(_log_sum(_log_moments(mixture, steps, s))) / s)[0]
    best = _smallest(mixture, lambda s: float(_log_sum(_exponential(mixture, steps, first, s))) - math.log(s))[1]
    tails = np.exp(np.minimum(_exponential(mixture, steps, first, best) - 1, 700.0)) / best
    plain = _smallest(mixture, lambda s: float(_log_sum(_log_moments(mixture, mixture.posteriors, s))) / s)[0]
    excess = min(jensen, float(np.minimum(spread, tails).sum()))
    return min(1.0, min(base + excess, plain, mixture.alone) * (1 + ROUNDING))


def beyond(mixture: Mixture) -> tuple[float, float]:
    """Return a threshold L, and an upper bound on E[max_x Y_x - L]_+ that is small relative to L."""
    first = int(np.argmax(mixture.frequencies))
    steps = _differences(mixture, first)
    value, slope = _smallest(mixture, lambda s: float(_log_sum(_log_moments(mixture, steps, s))) / s)
    level = value + 20 / slope
    tails = [
        math.exp(min(700.0, float(_log_sum(_exponential(mixture, steps, first, s))) - s * level - 1)) / s
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


def _moments(mixture: Mixture, first: int) -> tuple[Floats, Floats]:
    """Return E Y_x and E Y_x**2."""
    steps = _differences(mixture, first)
    mean = mixture.frequencies - mixture.frequencies[first]
    return mean, mean**2 + (steps - mean[:, None]) ** 2 @ mixture.reports / mixture.n


def _smallest(mixture: Mixture, bound: Callable[[float], float]) -> tuple[float, float]:
    """Minimize a bound approximately over s > 0; return the bound and s. Any s gives a valid bound."""
    ends = math.log(mixture.n) / 2 - 5, math.log(_FARTHEST / 4 * mixture.n)
    result = scipy.optimize.minimize_scalar(lambda log: bound(math.exp(log)), bounds=ends, method="bounded")
    return float(result.fun), math.exp(float(result.x))


ENTRIES_LIMIT: Final = 6_000_000
"""Maximum number of counts (histograms times values) to evaluate: about a second and 300 MB."""

WINDOW_LIMIT: Final = 1 << 22
"""Maximum number of counts of one value to evaluate (n about 10**11)."""

ACCURACY: Final = 1e-12
"""Relative error to allow for in `expected_best`; measured below 1e-14 against exact rationals."""

_LOG_TAIL: Final = -45.0
_NEGLIGIBLE: Final = 1e-27  # of a histogram, of a few million


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """`n` independent reports of distribution `reports`, shape (outputs,), and posteriors, shape (values, outputs).

    Each end of a count's window has a probability of at most e**log_tail / outputs.
    """

    n: int
    frequencies: Floats
    reports: Floats
    posteriors: Floats
    log_tail: float = _LOG_TAIL

    @classmethod
    def of(cls, law: Symmetric, n: int, frequencies: Floats) -> Self:
        """Return the mixture for randomized response; without noise, it has only values with positive frequency."""
        frequencies = frequencies if law.lie else frequencies[frequencies > 0]
        joint = float(law.lie) * frequencies[:, None] + np.diag(float(law.theta) * frequencies)
        reports = joint.sum(axis=0)
        return cls(n=n, frequencies=frequencies, reports=reports, posteriors=joint / reports)

    @property
    def alone(self) -> float:
        """The vulnerability if the target's report is known to the adversary: E max_x w[x, report]."""
        return float(self.posteriors.max(axis=0) @ self.reports)

    @property
    def entries(self) -> float:
        """Upper bound on the number of counts that `expected_best` evaluates: relevant histograms times values."""
        within = math.prod(high - low + 1.0 for low, high in self._windows())
        histograms = math.lgamma(self.n + len(self.reports)) - math.lgamma(len(self.reports)) - math.lgamma(self.n + 1)
        return min(within, math.exp(min(histograms, 700.0))) * len(self.reports)

    def _windows(self) -> list[tuple[int, int]]:
        """Return the range of every count but the largest one's, the reports in ascending order of probability."""
        tail = self.log_tail - math.log(self.reports.size)
        return [binomial.window(self.n, float(chance), tail) for chance in np.sort(self.reports)[:-1]]

    def expected_best(self) -> float:
        """Return E max_x Z_x by enumeration of histograms; the relative error is below `ACCURACY`."""
        order = np.argsort(self.reports)
        reports = self.reports[order]
        counts, left, mass = np.zeros((1, 0)), np.array([float(self.n)]), np.ones(1)
        for axis, (low, high) in enumerate(self._windows()):
            many = np.maximum(np.minimum(high, left) - low + 1, 0.0).astype(np.int64)
            parent = np.repeat(np.arange(left.size), many)
            count = low + np.arange(parent.size, dtype=np.float64) - np.repeat(np.cumsum(many) - many, many)
            chance = min(1.0, float(reports[axis] / reports[axis:].sum()))
            mass = mass[parent] * binomial.pmf(count, left[parent], chance)
            retained = mass > _NEGLIGIBLE
            mass, left = mass[retained], (left[parent] - count)[retained]
            counts = np.column_stack([counts[parent], count])[retained]
        means = np.column_stack([counts, left]) @ (self.posteriors[:, order] / self.n).T
        return min(1.0, float(mass @ means.max(axis=1)))


def two_values(law: Symmetric, n: int, frequencies: Floats, dummies: int) -> float:
    """Return the vulnerability sum_s max_x f_x P(s ones | the target's value is x) for k = 2 with uniform dummies."""
    truth, lie = float(law.truth), float(law.lie)
    pmf = _window(n - 1, lie + float(law.theta) * float(frequencies[1]))
    if dummies:
        from scipy.signal import fftconvolve  # noqa: PLC0415 - a quarter of the time that `hushuffle assess` starts in

        pmf = np.maximum(fftconvolve(pmf, _window(dummies, 0.5)), 0.0)
    unchanged, raised = np.append(pmf, 0.0), np.append(0.0, pmf)  # the target's report is 0, 1
    weights = frequencies[0] * (truth * unchanged + lie * raised), frequencies[1] * (lie * unchanged + truth * raised)
    return float(np.maximum(*weights).sum())


def _window(trials: int, chance: float) -> Floats:
    low, high = binomial.window(trials, chance, _LOG_TAIL)
    if high - low > WINDOW_LIMIT:
        message = f"The exact vulnerability of {trials:,} reports takes {high - low:.0e} steps. Use a smaller n."
        raise NumericalError(message)
    return binomial.pmf(np.arange(low, high + 1), trials, chance)
