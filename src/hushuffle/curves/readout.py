"""From counts of reports to frequencies: the unbiased estimate, its variance, and what a value nobody holds reaches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import support_law
from hushuffle.numerics import binomial
from hushuffle.numerics.roots import farthest

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol as Deployment
    from hushuffle.mechanisms.randomizers import Mechanism
    from hushuffle.mechanisms.randomizers.report_law import Support
    from hushuffle.mechanisms.shufflers import DummyLaw, GeometricDummies

Floats = npt.NDArray[np.float64]

_LOG_TAIL: Final = -60.0  # what is left out of the sum over dummies: far below any level / k
_TOLD_APART: Final = 1e-7  # how far Q V may be from the identity
_TILTS: Final = np.exp(np.linspace(-1.5, 1.5, 25))  # around the best tilt of a normal law


@dataclass(frozen=True, kw_only=True, eq=False)
class FrequencyVariance:
    """The variance of estimated frequencies, over the randomizers' coins, the people's values held fixed.

    That of value x is intercept + slope p_x + (matrix p)_x where p, shape (k,), are the true frequencies.
    """

    intercept: float
    slope: float
    matrix: Floats | None = None

    def at(self, frequencies: Floats) -> Floats:
        """Return the variance of each value, shape (k,), at the true frequencies of all, shape (k,)."""
        own = self.intercept + self.slope * frequencies
        return np.maximum(own if self.matrix is None else own + self.matrix @ frequencies, 0.0)

    def worst(self, frequency: npt.ArrayLike) -> Floats:
        """Return the variance for a value of this true frequency, same shape: the largest there is.

        Over all values, and over what all others hold.
        """
        share = np.asarray(frequency, dtype=np.float64)
        own = self.intercept + self.slope * share
        if self.matrix is not None:
            holder, other = np.diag(self.matrix), _largest_of_others(self.matrix)
            own = own + (share[..., None] * holder + (1 - share[..., None]) * other).max(axis=-1)
        return np.maximum(own, 0.0)


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """The least and the most that a report adds to n times a share, and how many shares it raises most at once."""

    least: Fraction
    most: Fraction
    at_once: int


def _largest_of_others(matrix: Floats) -> Floats:
    """Return the largest entry of each row beside the diagonal, shape (k,)."""
    return np.asarray(np.where(np.eye(matrix.shape[0], dtype=bool), -np.inf, matrix).max(axis=1))


class Readout(Protocol):
    """How counts of a mechanism's reports say what people hold."""

    @property
    def slack(self) -> float:
        """By how many reports a count may miss its threshold by rounding."""
        ...

    def frequencies(self, counts: npt.NDArray[np.int64], *, n: int, dummies: int) -> Floats:
        """Return the unbiased frequencies, shape (k,)."""
        ...

    def variance(self, *, n: int, dummies: float) -> FrequencyVariance:
        """Return the variance of `frequencies`; `dummies` may be a mean number."""
        ...

    def extremes(self, *, besides: int = 0) -> Extremes:
        """Return how much a person counts who sends a report and up to so many messages besides, whatever they are."""
        ...

    @property
    def each(self) -> int | None:
        """By how much a report raises the sum of the counts, if all do so alike."""
        ...

    def thresholds(self, *, n: int, dummies: int, chance: float) -> Floats:
        """Return what the estimate for a value that nobody holds reaches with probability at most `chance`, (k,)."""
        ...


def readout(mechanism: Mechanism, *, for_what: str = "Frequency estimation") -> Readout:
    """Return how counts of a mechanism's reports say what people hold: by its support, else by its matrix.

    Raises:
        UnsupportedProtocolError: its reports do not support values, and its matrix is too large.
        NumericalError: its reports do not tell the values apart.
    """
    law = mechanism.law().support
    if law is None:
        return _inverse(mechanism, for_what)
    if law.true <= law.false:
        message = "reports hardly depend on the values: no float tells the frequencies apart. Use a larger epsilon."
        raise NumericalError(message)
    return BySupport(law=law, values=mechanism.inputs)


def counted(protocol: Deployment, *, dummies: float | None = None) -> tuple[Readout, float]:
    """Return how reports count, and how many dummies do: coins that servers add to sums are dummies with fair chances.

    `dummies` are the protocol's unless given. Where each value gets dummies of its own no number of them counts.

    Raises:
        UnsupportedProtocolError: the randomizer's reports cannot be counted, or coins are added to what is no count
            of values.
        NumericalError: the reports do not tell the values apart.
    """
    coins, mechanism, own = protocol.shuffler.all_coins, protocol.randomizer, protocol.shuffler.value_law
    if own is not None:
        _, p = protocol.shuffler.tossed or (0, 0.0)
        return TrueCounts(law=own, values=mechanism.inputs, sent=p, kept=protocol.shuffler.kept), 0.0
    read = readout(mechanism)
    if not coins:
        return read, protocol.shuffler.dummies if dummies is None else dummies
    law = support_law(mechanism, for_what="Frequency estimation from sums with coins")
    return BySupport(law=replace(law, dummy=0.5), values=mechanism.inputs), coins


def frequency_variance(protocol: Deployment) -> FrequencyVariance:
    """Return the variance of estimated frequencies.

    Where the number of dummies is random this is the mean over it: the estimate is unbiased whatever is drawn.

    Source: docs/theory/estimation.md, Theorems 1, 2 and 10; docs/theory/dummies.md, Theorem 5;
    docs/theory/secure-sums.md, Theorem 8; docs/theory/histograms.md, Theorem 7.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=100)
    >>> frequency_variance(survey).worst([0.0, 1.0]).round(6).tolist()
    [0.00181, 0.00181]
    """
    read, dummies = counted(protocol, dummies=protocol.shuffler.expected_dummies)
    return read.variance(n=protocol.n, dummies=dummies)


@dataclass(frozen=True, kw_only=True)
class BySupport:
    """Counts of the reports that support each value.

    Source: docs/theory/estimation.md, Theorems 1 and 5.
    """

    law: Support
    values: int

    @property
    def slack(self) -> float:
        return 0.5 / (self.law.true - self.law.false)  # counts are integers, estimates are rounded

    def frequencies(self, counts: npt.NDArray[np.int64], *, n: int, dummies: int) -> Floats:
        law = self.law
        surplus = counts / n - law.false - law.dummy * dummies / n
        return np.asarray(surplus / (law.true - law.false))

    def variance(self, *, n: int, dummies: float) -> FrequencyVariance:
        law = self.law
        holder, other = law.true * (1 - law.true), law.false * (1 - law.false)
        from_dummies = dummies * law.dummy * (1 - law.dummy) / n
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
        law = self.law
        count = significant_count(law, n=n, dummies=dummies, chance=chance)
        least = (count / n - law.false - law.dummy * dummies / n) / (law.true - law.false)
        return np.full(self.values, least)


def significant_count(law: Support, *, n: int, dummies: int, chance: float) -> int:
    """Return the smallest count that a value held by nobody reaches with probability at most `chance`, rounded up.

    >>> import hushuffle as hs
    >>> law = hs.RandomizedResponse.from_truth_probability(k=3, p=0.5).law().support
    >>> significant_count(law, n=100, dummies=0, chance=0.001)
    40
    """
    # The tail at 0 is 1, beyond all reports it is 0.
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


@dataclass(frozen=True, kw_only=True, eq=False)
class ByChannel:
    """Counts of each report y, of a known matrix Q: every report adds `weights`[y, x] to the count of x.

    Q weights is the identity, so that the estimate is unbiased; of all such weights these have the least variance in
    all where the values are held alike (weighted least squares). `centre` is what a dummy adds on average, shape (k,).

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
        """Return the variance of the estimate for x (row) if everybody held z (column), shape (k, k)."""
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
            # A tail falls below the chance where this tilt says so, whatever the tilt: the smallest counts.
            least = np.minimum(least, (self._growth(tilt, dummies / n) + needed) / tilt)
        return np.where(spread > 0, least, 0.0)

    def _growth(self, tilt: Floats, dummies: float) -> Floats:
        """Return ln E exp(tilt_x weight_x) of a person who does not hold x (the largest), and of so many dummies."""
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
    """Counts of n people's true reports, each value with a number of dummies of its own, which follows `law`.

    `sent` is how many of these one person sends, on average, `kept` the probability that a report is counted.

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
        del dummies
        return np.asarray((counts - self.law.mean) / (n * self.kept))

    def variance(self, *, n: int, dummies: float) -> FrequencyVariance:
        del dummies
        scale = n * self.kept
        return FrequencyVariance(intercept=self.law.variance / scale**2, slope=(1 - self.kept) / scale)

    def extremes(self, *, besides: int = 0) -> Extremes:
        own = Fraction(self.sent)  # a message is kept as often as an honest report
        return Extremes(least=-own, most=1 + besides - own, at_once=1)

    def thresholds(self, *, n: int, dummies: int, chance: float) -> Floats:
        del dummies
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
            "the reports do not tell all values apart (the rows of the matrix depend on each other, or nearly so): "
            "their frequencies cannot be estimated. Join values, or choose another matrix."
        )
        raise NumericalError(message)
    blanket = mechanism.law().blanket().law
    return ByChannel(matrix=matrix, weights=weights, blanket=blanket, centre=blanket @ weights)
