"""Frequency estimation from counts of reports: unbiased estimates, variances, and significance thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from hushuffle._checks import Floats
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import support_law
from hushuffle.numerics import binomial
from hushuffle.numerics.roots import farthest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hushuffle.mechanisms.mixed_protocol import MixedProtocol
    from hushuffle.mechanisms.protocol import Protocol as Deployment
    from hushuffle.mechanisms.randomizers import Mechanism
    from hushuffle.mechanisms.randomizers.report_law import Support
    from hushuffle.mechanisms.shufflers import DummyLaw, GeometricDummies, LaplaceNoise


_LOG_TAIL: Final = -60.0  # logarithm of the probability omitted from the sum over dummies
_TOLD_APART: Final = 1e-7  # largest deviation of matrix @ weights from the identity
_TILTS: Final = np.exp(np.linspace(-1.5, 1.5, 25))  # relative to the best tilt of a normal distribution


@dataclass(frozen=True, kw_only=True, eq=False)
class FrequencyVariance:
    """Variances over the mechanism's randomness: for value x, intercept + slope p_x + (matrix p)_x, p the shares."""

    intercept: float
    slope: float
    matrix: Floats | None = None

    def at(self, frequencies: Floats) -> Floats:
        """Return the variance of each value's estimate, shape (k,), at the true `frequencies`, shape (k,)."""
        own = self.intercept + self.slope * frequencies
        return np.maximum(own if self.matrix is None else own + self.matrix @ frequencies, 0.0)

    def worst(self, frequency: npt.ArrayLike) -> Floats:
        """Return the maximum over all values, and over the values of all other people."""
        share = np.asarray(frequency, dtype=np.float64)
        own = self.intercept + self.slope * share
        if self.matrix is not None:
            holder, other = np.diag(self.matrix), _largest_of_others(self.matrix)
            own = own + (share[..., None] * holder + (1 - share[..., None]) * other).max(axis=-1)
        return np.maximum(own, 0.0)


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """Smallest (`least`) and largest (`most`) contribution of a report to n times an estimated frequency.

    `at_once` is the number of frequencies to which one report can add the largest contribution.
    """

    least: Fraction
    most: Fraction
    at_once: int
    truthful: Fraction = Fraction(1)
    """Largest contribution of the value of one person who follows the protocol to n times an estimated frequency."""


def _largest_of_others(matrix: Floats) -> Floats:
    """Return the largest entry of each row except the diagonal entry, shape (k,)."""
    return np.asarray(np.where(np.eye(matrix.shape[0], dtype=bool), -np.inf, matrix).max(axis=1))


class Readout(Protocol):
    """Interface of frequency estimators, which turn counts of a mechanism's reports into frequencies of values."""

    @property
    def slack(self) -> float:
        """Number of reports by which n times an estimate may miss its threshold because of rounding."""
        ...

    def frequencies(self, counts: npt.NDArray[np.int64], *, n: int, dummies: int) -> Floats:
        """Return the unbiased estimates of the frequencies of all values, shape (k,)."""
        ...

    def variance(self, *, n: int, dummies: float) -> FrequencyVariance:
        """Return the variance of the estimated frequencies; `dummies` may be the mean of a random number."""
        ...

    def extremes(self, *, besides: int = 0) -> Extremes:
        """Return the extreme contributions of a person who sends one report and up to `besides` further messages."""
        ...

    @property
    def each(self) -> int | None:
        """Number of counts to which each report adds 1, if that number is the same for all reports; else None."""
        ...

    def thresholds(self, *, n: int, dummies: int, chance: float) -> Floats:
        """Return thresholds, shape (k,); a value of no person reaches its threshold with probability <= `chance`."""
        ...


def readout(mechanism: Mechanism, *, for_what: str = "Frequency estimation") -> Readout:
    """Return the estimator from counts of supported values or, if reports support none, from the inverse matrix."""
    law = mechanism.law().support
    if law is None:
        return _inverse(mechanism, for_what)
    if law.true <= law.false:
        message = "The reports hardly depend on the values, so frequencies cannot be estimated. Use a larger epsilon."
        raise NumericalError(message)
    return BySupport(law=law, values=mechanism.inputs)


def counted(protocol: Deployment | MixedProtocol, *, dummies: float | None = None) -> tuple[Readout, float]:
    """Return the frequency estimator of a protocol, and the number of dummies that its counts contain.

    Random bits that servers add to sums count as dummies; the estimator has their other noise. `dummies` replaces the
    protocol's number of dummies. If each value gets dummies of its own, the estimator subtracts their mean, and the
    number of dummies is 0.
    """
    coins, mechanism, own = protocol.shuffler.all_coins, protocol.parts[0][1], protocol.shuffler.value_law
    if len(protocol.parts) > 1:
        return ByGroups.of(protocol.parts), protocol.shuffler.dummies if dummies is None else dummies
    if own is not None:
        _, p = protocol.shuffler.tossed or (0, 0.0)
        return TrueCounts(law=own, values=mechanism.inputs, sent=p, kept=protocol.shuffler.kept), 0.0
    read, noise = readout(mechanism), protocol.shuffler.sum_noise
    if not coins and noise is None:
        return read, protocol.shuffler.dummies if dummies is None else dummies
    law = support_law(mechanism, for_what="Frequency estimation from sums with noise")
    return BySupport(law=replace(law, dummy=0.5), values=mechanism.inputs, noise=noise), coins


def frequency_variance(protocol: Deployment | MixedProtocol) -> FrequencyVariance:
    """Return the variance of the estimated frequencies of a protocol, as a function of the true frequencies.

    With groups of people with different randomizers, it is an upper bound, as a function of the weighted frequencies.
    If the number of dummies is random, the variance is the mean over that number, since the estimate is unbiased for
    every number of dummies.

    Source: docs/theory/estimation.md, Theorems 1, 2 and 10; docs/theory/more-and-less.md, Theorem 11;
    docs/theory/secure-sums.md, Theorem 8; docs/theory/histograms.md, Theorem 7; docs/theory/estimation.md, Theorem 12.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=100)
    >>> frequency_variance(survey).worst([0.0, 1.0]).round(6).tolist()
    [0.00181, 0.00181]
    """
    read, dummies = counted(protocol, dummies=protocol.shuffler.expected_dummies)
    return read.variance(n=protocol.n, dummies=dummies)


@dataclass(frozen=True, kw_only=True)
class BySupport:
    """Frequency estimator from the number of reports that support each value, with `noise` of servers in each number.

    Source: docs/theory/estimation.md, Theorems 1 and 5.
    """

    law: Support
    values: int
    noise: LaplaceNoise | None = field(default=None, kw_only=True)

    @property
    def slack(self) -> float:
        return 0.5 / (self.law.true - self.law.false)  # half a report: counts are integers, and estimates are rounded

    def frequencies(self, counts: npt.NDArray[np.int64], *, n: int, dummies: int) -> Floats:
        law = self.law
        surplus = counts / n - law.false - law.dummy * dummies / n
        return np.asarray(surplus / (law.true - law.false))

    def variance(self, *, n: int, dummies: float) -> FrequencyVariance:
        law = self.law
        holder, other = law.true * (1 - law.true), law.false * (1 - law.false)
        added = 0.0 if self.noise is None else self.noise.variance
        from_dummies = (dummies * law.dummy * (1 - law.dummy) + added) / n
        scale = n * (law.true - law.false) ** 2
        return FrequencyVariance(intercept=(other + from_dummies) / scale, slope=(holder - other) / scale)

    @property
    def each(self) -> int | None:
        return round(self.values * self.law.dummy) if self.law.disjoint else None

    def extremes(self, *, besides: int = 0) -> Extremes:
        law = self.law
        true, false, dummy = Fraction(law.true), Fraction(law.false), Fraction(law.dummy)
        at_once = self.each or self.values
        least, most = -false - besides * dummy, 1 - false + besides * (1 - dummy)
        return Extremes(least=least / (true - false), most=most / (true - false), at_once=at_once)

    def thresholds(self, *, n: int, dummies: int, chance: float) -> Floats:
        law, noise = self.law, self.noise
        count = significant_count(law, n=n, dummies=dummies, chance=chance if noise is None else chance / 2)
        if noise is not None:  # either the reports or the noise reaches its threshold
            good = noise.reach(math.log(chance / 2))
            count += farthest(lambda least: noise.chance(least + 1) <= chance / 2, good=good, bad=-1)
        least = (count / n - law.false - law.dummy * dummies / n) / (law.true - law.false)
        return np.full(self.values, least)


def significant_count(law: Support, *, n: int, dummies: int, chance: float) -> int:
    """Return the smallest count t such that a value of no person reaches t with probability at most `chance`.

    >>> import hushuffle as hs
    >>> law = hs.RandomizedResponse.from_truth_probability(k=3, p=0.5).law().support
    >>> significant_count(law, n=100, dummies=0, chance=0.001)
    40
    """
    # The tail probability is 1 at count 0, and 0 above the number of reports.
    return farthest(lambda count: _tail(count, law, n, dummies) <= chance, good=n + dummies + 1, bad=0)


def _tail(count: int, law: Support, n: int, dummies: int) -> float:
    """Return P(Bin(n, false) + Bin(dummies, dummy) >= count), rounded up."""
    slack = 1 + binomial.margin(n) + binomial.margin(dummies)
    if dummies == 0:
        return float(binomial.upper_tail(count, n, law.false)) * slack
    low, high = binomial.window(dummies, law.dummy, _LOG_TAIL)
    from_dummies = np.arange(low, high + 1, dtype=np.float64)
    tails = binomial.upper_tail(count - from_dummies, n, law.false)
    return float(binomial.pmf(from_dummies, dummies, law.dummy) @ tails) * slack + 2 * math.exp(_LOG_TAIL)


@dataclass(frozen=True, kw_only=True)
class ByGroups(BySupport):
    """Frequency estimator for groups of people with different randomizers; `law` has the means over all people.

    It estimates the weighted mean of a value's frequencies in the groups. The weight of a group is proportional to its
    number of people times the difference between the probabilities that its reports support the true and another value.

    Source: docs/theory/estimation.md, Theorem 12.

    >>> import hushuffle as hs
    >>> careful, open_ = hs.RandomizedResponse(k=2, epsilon=1.0), hs.RandomizedResponse(k=2, epsilon=3.0)
    >>> read = ByGroups.of([(300, careful), (100, open_)])
    >>> [round(weight, 3) for weight in read.weights], round(read.bias, 3)
    ([0.605, 0.395], 0.145)
    """

    groups: tuple[tuple[int, Support], ...]

    @classmethod
    def of(cls, parts: Sequence[tuple[int, Mechanism]]) -> ByGroups:
        """Raises `UnsupportedProtocolError` unless all groups have the same mechanism, whose reports support values."""
        first = parts[0][1]
        if any(type(each) is not type(first) or each.inputs != first.inputs for _, each in parts):
            message = "Frequencies of several groups need one mechanism for all groups, with different epsilons."
            raise UnsupportedProtocolError(message)
        what = "An estimate of frequencies in several groups"
        groups = tuple((people, support_law(each, for_what=what)) for people, each in parts)
        if any(law.true <= law.false for _, law in groups):
            message = "The reports of a group hardly depend on the values. Use a larger epsilon for this group."
            raise NumericalError(message)
        n = sum(people for people, _ in groups)
        true, false = (
            math.fsum(people * getattr(law, name) for people, law in groups) / n for name in ("true", "false")
        )
        return cls(law=replace(groups[0][1], true=true, false=false), values=first.inputs, groups=groups)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each group's frequency in the estimate; the sum is 1."""
        own = [people * (law.true - law.false) for people, law in self.groups]
        return tuple(each / math.fsum(own) for each in own)

    @property
    def bias(self) -> float:
        """Largest difference of the weighted frequency and the frequency among all people, for any values."""
        n = sum(people for people, _ in self.groups)
        excess = (weight - people / n for weight, (people, _) in zip(self.weights, self.groups, strict=True))
        return math.fsum(max(each, 0.0) for each in excess)

    def variance(self, *, n: int, dummies: float) -> FrequencyVariance:
        law, apart = self.law, self.law.true - self.law.false
        none = math.fsum(people * each.false * (1 - each.false) for people, each in self.groups) / n
        drawn = dummies * law.dummy * (1 - law.dummy) / n
        slope = max(1 - each.true - each.false for _, each in self.groups)
        return FrequencyVariance(intercept=(none + drawn) / (n * apart**2), slope=slope / (n * apart))

    def extremes(self, *, besides: int = 0) -> Extremes:
        alike = super().extremes(besides=besides)
        apart = Fraction(self.law.true) - Fraction(self.law.false)
        false = [Fraction(law.false) for _, law in self.groups]
        own = max(Fraction(law.true) - Fraction(law.false) for _, law in self.groups)
        return Extremes(
            least=-max(false) / apart, most=(1 - min(false)) / apart, at_once=alike.at_once, truthful=own / apart
        )

    def thresholds(self, *, n: int, dummies: int, chance: float) -> Floats:
        law, size = self.law, n + dummies
        mean = n * law.false + dummies * law.dummy
        # Above the mean, no sum of independent trials with this mean has a heavier tail than equal trials.
        count = significant_count(replace(law, false=mean / size), n=size, dummies=0, chance=chance)
        least = (max(count, math.floor(mean) + 2) - mean) / n / (law.true - law.false)
        return np.full(self.values, least)


@dataclass(frozen=True, kw_only=True, eq=False)
class ByChannel:
    """Frequency estimator from the counts of each report y and the known matrix Q of report probabilities.

    Every report y adds `weights`[y, x] to the count of x. Q weights is the identity, so the estimate is unbiased. Among
    all such weights, these minimize the sum of the variances if all values are equally frequent (weighted least
    squares). `centre` is the mean contribution of a dummy, shape (k,).

    Source: docs/theory/estimation.md, Theorems 10 and 11.
    """

    matrix: Floats
    weights: Floats
    blanket: Floats
    centre: Floats
    slack = 0.0
    each = 1

    def frequencies(self, counts: npt.NDArray[np.int64], *, n: int, dummies: int) -> Floats:
        return np.asarray((counts @ self.weights - dummies * self.centre) / n)

    def variance(self, *, n: int, dummies: float) -> FrequencyVariance:
        return FrequencyVariance(intercept=0.0, slope=0.0, matrix=self._variances(n=n, dummies=dummies))

    def _variances(self, *, n: int, dummies: float) -> Floats:
        """Return the variance of the estimate for x (row) if all people have value z (column), shape (k, k)."""
        squares = self.weights**2
        people = (self.matrix @ squares).T - np.eye(self.matrix.shape[0])
        of_dummy = self.blanket @ squares - self.centre**2
        return np.asarray(people / n + (dummies * np.maximum(of_dummy, 0.0) / n**2)[:, None])

    def extremes(self, *, besides: int = 0) -> Extremes:
        most = float(self.weights.max())
        at_once = int((self.weights >= most * (1 - _TOLD_APART)).sum(axis=1).max())
        more = self.weights - self.centre
        ends = [self.weights.min() + besides * more.min(), self.weights.max() + besides * more.max()]
        return Extremes(least=Fraction(float(ends[0])), most=Fraction(float(ends[1])), at_once=at_once)

    def thresholds(self, *, n: int, dummies: int, chance: float) -> Floats:
        spread = n * _largest_of_others(self._variances(n=n, dummies=dummies))
        needed = -math.log(chance) / n
        middle = np.sqrt(2 * needed / np.maximum(spread, np.finfo(float).tiny))
        least = np.full(middle.size, np.inf)
        for tilt in middle * _TILTS[:, None]:
            # Every tilt gives a valid threshold (Chernoff): the smallest one is used.
            least = np.minimum(least, (self._growth(tilt, dummies / n) + needed) / tilt)
        return np.where(spread > 0, least, 0.0)

    def _growth(self, tilt: Floats, dummies: float) -> Floats:
        """Return upper bounds on ln E exp(tilt_x weight_x), for one person without value x and `dummies` dummies."""
        highest = self.weights.max(axis=0)
        grown = np.exp(tilt * (self.weights - highest))
        of_people = _largest_of_others((self.matrix @ grown).T)
        person = np.log(np.maximum(of_people, np.finfo(float).tiny)) + tilt * highest
        if not dummies:
            return np.asarray(person)
        dummy = np.log(np.maximum(self.blanket @ grown, np.finfo(float).tiny)) + tilt * (highest - self.centre)
        return np.asarray(person + dummies * dummy)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueCounts:
    """Frequency estimator from counts of truthful reports, if each value has its own random number of dummies.

    The number of dummies has the distribution `law`. `sent` is the mean number of dummies of a value that one person
    sends, `kept` the probability that a report is counted.

    Source: docs/theory/histograms.md, Theorem 7.
    """

    law: DummyLaw | GeometricDummies
    values: int
    sent: float
    kept: float
    each = None

    @property
    def slack(self) -> float:
        return 0.5 / self.kept

    def frequencies(self, counts: npt.NDArray[np.int64], *, n: int, dummies: int) -> Floats:
        return np.asarray((counts - self.law.mean) / (n * self.kept))

    def variance(self, *, n: int, dummies: float) -> FrequencyVariance:
        scale = n * self.kept
        return FrequencyVariance(intercept=self.law.variance / scale**2, slope=(1 - self.kept) / scale)

    def extremes(self, *, besides: int = 0) -> Extremes:
        own = Fraction(self.sent)  # a dummy is kept with the same probability as a truthful report
        return Extremes(least=-own, most=1 + besides - own, at_once=1)

    def thresholds(self, *, n: int, dummies: int, chance: float) -> Floats:
        return np.full(self.values, (self.law.reached(chance) - self.law.mean) / (n * self.kept))


@lru_cache(maxsize=8)
def _inverse(mechanism: Mechanism, for_what: str) -> ByChannel:
    try:
        matrix = np.asarray(mechanism.channel().matrix, dtype=np.float64)
    except UnsupportedProtocolError as error:
        name = type(mechanism).__name__
        message = f"{for_what} needs reports that support values, which {name} does not offer, or a matrix. {error}"
        raise UnsupportedProtocolError(message) from error
    occurring = matrix.mean(axis=0)
    scaled = np.divide(matrix, occurring, out=np.zeros_like(matrix), where=occurring > 0)
    try:
        weights = np.linalg.solve(scaled @ matrix.T, scaled).T
    except np.linalg.LinAlgError:
        weights = np.zeros_like(matrix.T)
    if not np.abs(matrix @ weights - np.eye(matrix.shape[0])).max() < _TOLD_APART:
        message = (
            "The reports do not distinguish all values (the rows of the matrix are linearly dependent, or nearly so), "
            "so their frequencies cannot be estimated. Merge values, or choose another matrix."
        )
        raise NumericalError(message)
    blanket = mechanism.law().blanket().law
    return ByChannel(matrix=matrix, weights=weights, blanket=blanket, centre=blanket @ weights)
