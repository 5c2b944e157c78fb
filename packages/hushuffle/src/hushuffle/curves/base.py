"""The privacy curve of a protocol: delta as a function of epsilon, with certified bounds.

Neighbouring datasets have the same number of people and differ in one person's value. A `PrivacyCurve` gives, at any
epsilon, an upper bound on delta for every pair of neighbouring datasets, and a lower bound attained by a given pair.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.errors import NumericalError
from hushuffle.model import Bound, Citation, Kind, Witness
from hushuffle.numerics.binomial import EPS
from hushuffle.numerics.roots import CLOSER, EDGE, about, first_below, last_above

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers import DummyLaw

LARGEST: Final = 300.0
"""Largest finite epsilon that a search returns; at e**300 a report is as good as revealed."""

_FARTHEST: Final = 500.0
"""Largest epsilon at which an inexact curve is evaluated; at a larger epsilon, delta is bounded by its value here."""

NEAR: Final = 1e-3
"""Relative accuracy with which a first search finds where the worst datasets are selected."""

_BEYOND: Final = (0.2, 0.45, 0.6, 0.85)
_BEFORE: Final = (0.1, 0.45, 0.6, 0.85)
"""Distances from the approximate epsilon, in units of the tolerance, at which bounds are tried in this order."""

_QUICK: Final = 0.01
"""Smallest tolerance for which `smoother` curves, and `unsliced` ones, are used."""

_LEAST: Final = 1e-9
"""Smallest epsilon (nats) that an approximate search returns."""

_SAME: Final = 1e-9
"""Largest relative difference, due to rounding, between the two bounds of an exact figure."""


class PrivacyCurve(ABC):
    """Certified bounds on delta(epsilon), the largest hockey-stick divergence over all neighbouring datasets."""

    exact: bool = False
    """Whether both bounds are the true value up to floating-point error."""

    certain: float = 0.0
    """Probability that a report reveals its value whatever the other reports are: a lower bound on delta."""

    revealing: bool = False
    """Whether epsilon is infinite at every positive delta below `certain`."""

    floor: float = 0.0
    """Smallest value of `upper`: the number of dummies is drawn from a table rounded to 64 bits."""

    sources: tuple[Citation, ...] = ()
    proof: str = ""

    @property
    def parts(self) -> Laws:
        """Pairs (curve, number of runs) whose composition bounds this curve from above; used for several rounds."""
        return ((self, 1),)

    @property
    def rounds(self) -> Laws:
        """Pairs (curve, number of independent runs) whose composition is the mechanism of this curve."""
        return ((self, 1),)

    @property
    @abstractmethod
    def pure(self) -> float:
        """The epsilon (nats) of pure differential privacy: delta is 0 at this epsilon and above. Rounded up."""

    @abstractmethod
    def upper(self, epsilon: float) -> float:
        """Return an upper bound on delta over all pairs of neighbouring datasets; it decreases with epsilon."""

    @abstractmethod
    def lower(self, epsilon: float) -> tuple[float, Witness]:
        """Return a lower bound on delta and the pair of neighbouring datasets that attains it."""

    def epsilon(self, delta: float) -> Bound:
        """Return a certified bracket of the smallest epsilon (nats) with delta(epsilon) <= `delta`.

        >>> from fractions import Fraction
        >>> from hushuffle.curves.laws.flipped_pairs import AllAlike
        >>> pair = AllAlike.of(width=2, flip=Fraction(1, 4), n=1000, others=0, target=(0, 3))
        >>> print(pair.epsilon(1e-3))
        0.1245 to 0.1246 nats (certified bracket)
        """
        return self.pure_bound() if delta == 0 else self.near(delta).searched(delta)

    def searched(self, delta: float, relative: float = EDGE, start: Start | None = None) -> Bound:
        """Return `epsilon` of a curve that is `near` delta, with ends that are `relative` away from the best ends.

        A search with a `start` updates it for the next search.
        """
        if self.revealing and delta < self.certain:
            return Bound.exact(math.inf, unit="nats", sources=self.sources, witness=self.lower(0.0)[1])
        lower, witness, subset, slope = self.lowest(delta, relative, start)
        upper = _upper_end(self, subset, delta, lower * (1.0 if start is None else start.gap), relative, slope)
        if start is not None and 0 < lower <= upper <= LARGEST:
            start.gap = upper / lower
        return bracket(lower, upper, unit="nats", sources=self.sources, witness=witness)

    def lowest(
        self, delta: float, relative: float, start: Start | None = None
    ) -> tuple[float, Witness, PrivacyCurve, float]:
        """Return the lower bound of `searched`, its datasets, the curve over the worst datasets, and a slope or 0."""
        subset, place, slope = self, (start and start.guess) or self.guess(), 0.0
        if type(self).place is not PrivacyCurve.place or type(self).contenders is not PrivacyCurve.contenders:
            place, slope = self.place(delta, place)
            subset = self.contenders(place)
        guess = place * (1 - CLOSER * relative)
        return *_lower_end(subset, delta, guess, relative=relative, slope=slope), subset, slope

    def place(self, delta: float, guess: float) -> tuple[float, float]:
        """Return an epsilon near the lower bound on epsilon at `delta`; the worst datasets are selected there.

        The second number is the approximate slope of sqrt(-ln(delta)) there, or 0.
        """
        return _lower_end(self, delta, guess, relative=NEAR)[0], 0.0

    def about(self, delta: float, guess: float, *, relative: float) -> float:
        """Return an epsilon near which `likely` is `delta`: an approximation, without a proof."""
        high = min(self.pure, LARGEST)
        return about(self.likely, delta, high=high, guess=min(guess, high / 1.01), relative=relative, least=_LEAST)

    def within(self, delta: float, tolerance: float, guess: float | None = None) -> Bound:
        """Return a certified bracket that is wider than that of `epsilon` by at most `tolerance` times its value.

        A search approximates epsilon. Then bounds on both sides are verified.

        >>> import hushuffle as hs
        >>> response = hs.RandomizedResponse(k=5, epsilon=2.0)
        >>> survey = hs.Protocol(randomizer=response, shuffler=hs.UniformShuffle(), n=999)
        >>> print(hs.dp.epsilon(survey, delta=1e-6, tolerance=0.01))
        0.3332 to 0.3343 nats (certified bracket)
        """
        if type(self).epsilon is not PrivacyCurve.epsilon:
            return self.epsilon(delta)
        law = self.near(delta).smoother() if tolerance >= _QUICK else self.near(delta)
        quick = law.unsliced() if tolerance >= _QUICK else law
        root = law.about(delta, law.guess() if guess is None else guess, relative=tolerance / 10)
        beyond = [root * (1 + slack * tolerance) for slack in _BEYOND]
        before = [root * (1 - slack * tolerance) for slack in _BEFORE]
        tries = [(quick, beyond[quick is not law]), *((law, place) for place in beyond[1:])]
        upper = next((place for curve, place in tries if place >= law.pure or curve.holds(place, delta)), math.inf)
        least = upper / (1 + tolerance) * (1 + 4 * EPS)  # the smallest lower bound of a narrow bracket
        places = [place for place in before if place > least] + [least] * math.isfinite(least)
        ends = ((place, law.seen_at(place, delta)) for place in places)
        lower, witness = next(((place, witness) for place, witness in ends if witness is not None), (0.0, None))
        if witness is None and law.upper(least) > delta:  # the upper bound is near enough, but the bracket is wide
            lower, witness, *_ = law.lowest(delta, tolerance / 10)
        if witness is None:
            return law.searched(delta, tolerance / 10)
        return bracket(lower, min(upper, law.pure), unit="nats", sources=law.sources, witness=witness)

    def holds(self, epsilon: float, delta: float) -> bool:
        """Return whether `upper(epsilon)` is at most `delta`; this may be faster than `upper`."""
        return self.upper(epsilon) <= delta

    def smoother(self) -> PrivacyCurve:
        """Return this curve with smoother sums, if it has sums: it takes less time, and its bounds are wider."""
        return self

    def unsliced(self) -> PrivacyCurve:
        """Return this curve without slices, if it has slices: it takes less time, and its upper bounds are larger."""
        return self

    def seen_at(self, epsilon: float, delta: float) -> Witness | None:
        """Return datasets whose lower bound at `epsilon` exceeds `delta`, or None; this may be faster than `lower`."""
        value, witness = self.lower(epsilon)
        return witness if value > delta else None

    def delta(self, epsilon: float) -> Bound:
        """Return a certified bracket of delta at `epsilon`, with the datasets that attain its lower bound."""
        if epsilon >= self.pure:
            return Bound.exact(0.0, unit="probability", sources=self.sources, witness=self.lower(0.0)[1])
        if epsilon > _FARTHEST and not self.exact:  # e**epsilon nears the largest float; delta only falls from here
            return bracket(0.0, self.upper(_FARTHEST), unit="probability", sources=self.sources)
        upper = self.upper(epsilon)
        lower, witness = self.contenders(epsilon).lower(epsilon)
        return bracket(lower, upper, unit="probability", sources=self.sources, witness=witness, exact=self.exact)

    def lower_at(self, witness: Witness, epsilon: float) -> float:  # noqa: ARG002 - not every curve knows it
        """Return a lower bound on delta for this ordered pair of datasets; 0 if the curve cannot compute it."""
        return 0.0

    @staticmethod
    def uppers(curves: Sequence[PrivacyCurve], epsilon: float) -> list[float]:
        """Return `upper` of several curves of this class; together they may take less time than one by one."""
        return [curve.upper(epsilon) for curve in curves]

    @staticmethod
    def lowers_at(curves: Sequence[PrivacyCurve], witness: Witness, epsilon: float) -> list[float]:
        """Return `lower_at` of several curves of this class."""
        return [curve.lower_at(witness, epsilon) for curve in curves]

    def along(self, epsilons: Iterator[float]) -> Iterator[float]:
        """Yield `upper` at increasing epsilons; it may read ahead, since several together may take less time."""
        return map(self.upper, epsilons)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:  # noqa: ARG002 - none are known
        """Return pairs of neighbouring datasets with output probabilities, without events rarer than e**log_tail."""
        return ()

    def near(self, delta: float, *, often: bool = False) -> PrivacyCurve:  # noqa: ARG002 - not every curve can profit
        """Return this curve tuned for values of about `delta` and above; with `often`, also for many evaluations."""
        return self

    def likely(self, epsilon: float) -> float:
        """Return a fast approximation of `upper(epsilon)` for searches; it is not a bound."""
        return self.upper(epsilon)

    @staticmethod
    def likelies(curves: Sequence[PrivacyCurve], epsilon: float) -> list[float]:
        """Return `likely` of several curves of this class."""
        return [curve.likely(epsilon) for curve in curves]

    def rough(self, delta: float, place: float | None = None) -> PrivacyCurve:  # noqa: ARG002 - nothing to select
        """Return `near` for evaluations of which none need be a bound; with `place`, for many epsilons around it."""
        return self.near(delta, often=True)

    def guess(self) -> float:
        """The epsilon (nats) at which searches start."""
        return self.pure / 4

    def contenders(self, epsilon: float) -> PrivacyCurve:  # noqa: ARG002 - not every curve can profit
        """Return a faster curve for searches, only over the worst datasets near `epsilon`; `upper` is not a bound."""
        return self

    def covers(self, law: PrivacyCurve) -> bool:
        """Return whether this curve of the worst datasets of `law` has its datasets all, so that `upper` is a bound."""
        return self is law

    def drawn(self, counted: DummyLaw, mean: PrivacyCurve) -> PrivacyCurve:  # noqa: ARG002 - not every curve can profit
        """Return the curve for a random number of dummies, as narrow as the `mean` of the curves for each number."""
        return mean

    def only(self, few: PrivacyCurve, epsilon: float) -> PrivacyCurve:  # noqa: ARG002 - not every curve can profit
        """Return this curve over the datasets of `few` if both are of one class, else `contenders(epsilon)`."""
        return self.contenders(epsilon)

    def envelope(self) -> Envelope:
        """Return the curves that give the upper and the lower bounds."""
        return Envelope(above=(self,), below=(self,))

    def pure_bound(self) -> Bound:
        return Bound.exact(self.pure, unit="nats", sources=self.sources, witness=self.lower(0.0)[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportCurve(PrivacyCurve):
    """A privacy curve whose pure epsilon is that of one report, `local_epsilon`, rounded up."""

    local_epsilon: float

    @property
    def pure(self) -> float:
        return self.local_epsilon


class UpperCurve(PrivacyCurve):
    """An upper bound only: no pair of datasets is known that attains it, so the lower bound is 0."""

    def lower(self, epsilon: float) -> tuple[float, Witness]:  # noqa: ARG002 - nothing is known
        return 0.0, Witness(family="no dataset", others=(), target=(0, 1))


@dataclass(kw_only=True)
class Start:
    """Where a search starts after similar ones: at `guess`, and with the ratio `gap` of the ends before.

    A guess of 0 is none. `typical` is a rough approximation of epsilon; `ratio` is epsilon divided by it in the last
    search, or 0.
    """

    gap: float = 1.0
    ratio: float = 0.0
    typical: float = 1.0
    guess: float = 0.0

    def turn(self, curve: PrivacyCurve, delta: float) -> None:
        """Start at the epsilon of `curve` at `delta`."""
        self.typical = curve.guess() * math.sqrt(-math.log(delta))
        self.guess = self.ratio * self.typical if self.ratio * self.typical < curve.pure else 0.0


Laws: TypeAlias = Sequence[tuple[PrivacyCurve, int]]
"""Privacy curves, each with the number of runs of its mechanism."""


def spread(laws: Laws) -> Laws:
    """Replace each curve by its `parts`. Upper bounds on the composition of the result hold for that of `laws`."""
    return [(part, times * each) for law, times in laws for part, each in law.parts]


def _upper_end(
    law: PrivacyCurve, subset: PrivacyCurve, delta: float, guess: float, relative: float, slope: float
) -> float:
    if guess == 0 and subset.upper(0.0) <= delta and law.upper(0.0) <= delta:  # otherwise some lower bound is positive
        return 0.0
    if law.pure > LARGEST and law.upper(LARGEST) > delta:
        return law.pure
    high = min(law.pure, LARGEST)
    point = first_below(subset.upper, delta, high=high, guess=guess, relative=relative, slope=slope)
    if subset.covers(law) or law.holds(point, delta):
        return point
    # `point` is a better estimate of epsilon, so select the worst datasets again there.
    point = first_below(law.contenders(point).upper, delta, high=high, guess=point, relative=relative, slope=slope)
    if law.holds(point, delta):
        return point
    return first_below(law.upper, delta, high=high, guess=point, relative=relative, slope=slope)


def _lower_end(
    law: PrivacyCurve, delta: float, guess: float, *, relative: float = EDGE, slope: float = 0.0
) -> tuple[float, Witness]:
    witnesses: dict[float, Witness] = {}

    @cache
    def lower(epsilon: float) -> float:
        value, witnesses[epsilon] = law.lower(epsilon)
        return value

    high = min(law.pure, LARGEST)
    point = min(guess, high)
    if lower(point) <= delta and lower(0.0) <= delta:
        point = 0.0
    elif law.pure <= LARGEST or lower(high) <= delta:
        point = last_above(lower, delta, high=high, guess=point, relative=relative, slope=slope)
    else:
        point = LARGEST
    return point, witnesses[point]


def in_order(lower: float, upper: float) -> float:
    """Return `lower`, at most `upper`. Raises `NumericalError` if it exceeds `upper` by more than rounding.

    >>> in_order(0.1 + 0.2, 0.3)
    0.3
    """
    if not lower <= upper * (1 + 1e-6) + 1e-15:
        message = (
            f"the lower bound {lower!r} exceeds the upper bound {upper!r}, so one of them is wrong. "
            "Please report this with the call that led here."
        )
        raise NumericalError(message)
    return min(lower, upper)


def bracket(
    lower: float,
    upper: float,
    *,
    unit: str,
    sources: tuple[Citation, ...] = (),
    witness: Witness | None = None,
    exact: bool = False,
) -> Bound:
    """Return a `Bound`: exact if `upper` is 0, or if `exact` and both agree to 1e-9; upper if only `lower` is 0."""
    low = in_order(lower, upper)
    if (exact and (low == upper or upper - low <= _SAME * upper)) or upper == 0:
        return Bound.exact(upper, unit=unit, sources=sources, witness=witness)
    kind: Kind = "bracket" if low > 0 else "upper"  # a lower bound of 0 is trivial
    return Bound(lower=low, upper=upper, kind=kind, unit=unit, sources=sources, witness=witness)


@dataclass(frozen=True, kw_only=True, eq=False)
class Envelope(PrivacyCurve):
    """The smallest upper bound of the curves `above`, and the largest lower bound of `below` (0 if there are none).

    `slack` is the relative rounding error of the lower bounds.
    """

    above: tuple[PrivacyCurve, ...]
    below: tuple[PrivacyCurve, ...] = ()
    slack: float = 0.0

    def envelope(self) -> Envelope:
        return self

    @property
    def sources(self) -> tuple[Citation, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(source for curve in (*self.above, *self.below) for source in curve.sources))

    @property
    def proof(self) -> str:  # type: ignore[override]
        names = (("upper bound", self.above), ("lower bound", self.below))
        return "; ".join(f"{name}: {curves[0].proof}" for name, curves in names if curves)

    @property
    def parts(self) -> Laws:
        return self.above[0].parts if len(self.above) == 1 else ((self, 1),)

    @property
    def pure(self) -> float:
        return min(curve.pure for curve in self.above)

    @property
    def certain(self) -> float:  # type: ignore[override]
        return max((curve.certain for curve in self.below), default=0.0)

    def near(self, delta: float, *, often: bool = False) -> Envelope:
        above, below = (tuple(curve.near(delta, often=often) for curve in side) for side in (self.above, self.below))
        return replace(self, above=above, below=below)

    def upper(self, epsilon: float) -> float:
        return min(curve.upper(epsilon) for curve in self.above)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        if not self.below:
            return 0.0, self.above[0].lower(0.0)[1]
        value, witness = max((curve.lower(epsilon) for curve in self.below), key=lambda end: end[0])
        return value * (1 - self.slack), witness

    def epsilon(self, delta: float) -> Bound:
        return self._between(lambda curve: curve.epsilon(delta))

    def within(self, delta: float, tolerance: float, guess: float | None = None) -> Bound:
        return self._between(lambda curve: curve.within(delta, tolerance, guess))

    def delta(self, epsilon: float) -> Bound:
        return self._between(lambda curve: curve.delta(epsilon))

    def pure_bound(self) -> Bound:
        return self._between(lambda curve: curve.pure_bound())

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        return tuple(pair for curve in self.below for pair in curve.datasets(log_tail=log_tail))

    def _between(self, read: Callable[[PrivacyCurve], Bound]) -> Bound:
        upper = min((read(curve) for curve in self.above), key=lambda bound: bound.upper)
        best = max((read(curve) for curve in self.below), key=lambda bound: bound.lower, default=None)
        lower, witness = (0.0, None) if best is None else (best.lower * (1 - self.slack), best.witness)
        exact = lower == upper.upper
        return bracket(lower, upper.upper, unit=upper.unit, sources=self.sources, witness=witness, exact=exact)
