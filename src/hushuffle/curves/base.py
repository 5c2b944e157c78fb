"""delta as a function of epsilon for a whole protocol, with certified ends: what dp and others read.

The relation is: replace one person's value, n fixed. A `PrivacyCurve` gives, at any epsilon, an upper end that
holds for every pair of neighbouring datasets, and a lower end with the pair that attains it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, TypeAlias

from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.errors import NumericalError
from hushuffle.model import Bound, Citation, Kind, Witness
from hushuffle.numerics.roots import first_below, last_above

LARGEST: Final = 300.0
"""No finite epsilon above this is looked for: e**300 is certainty."""

_FARTHEST: Final = 500.0
"""Beyond this epsilon a curve is not evaluated."""

_SAME: Final = 1e-9
"""Ends of an exact figure differ by rounding only, relatively."""


class PrivacyCurve(ABC):
    """Certified ends of the worst hockey-stick divergence delta(epsilon) of one protocol."""

    exact: bool = False
    """Whether both ends are the true value up to floating-point error."""

    certain: float = 0.0
    """A chance that one report gives its value away whatever the others are: delta is at least that."""

    floor: float = 0.0
    """What `upper` is never below, whatever epsilon: the number of dummies is drawn with coins that are a bit off."""

    sources: tuple[Citation, ...] = ()
    proof: str = ""

    @property
    def parts(self) -> Laws:
        """Curves, with how often each runs, that together lie above this one: for upper ends of several rounds."""
        return ((self, 1),)

    @property
    @abstractmethod
    def pure(self) -> float:
        """The epsilon at which delta reaches 0: the pure guarantee, exact up to rounding upwards."""

    @abstractmethod
    def upper(self, epsilon: float) -> float:
        """Return an upper end over all pairs of neighbours; falls with epsilon."""

    @abstractmethod
    def lower(self, epsilon: float) -> tuple[float, Witness]:
        """Return a lower end and the pair of neighbours that attains it."""

    @abstractmethod
    def epsilon(self, delta: float) -> Bound:
        """Return a certified bracket of the smallest epsilon (nats) with delta(epsilon) <= `delta`, in [0, 1)."""

    def delta(self, epsilon: float) -> Bound:
        """Return a certified bracket of the divergence at `epsilon`, with datasets looked for there."""
        if epsilon >= self.pure:
            return Bound.exact(0.0, unit="probability", sources=self.sources, witness=self.lower(0.0)[1])
        if epsilon > _FARTHEST and not self.exact:  # e**epsilon nears the largest float; delta only falls from here
            return bracket(0.0, self.upper(_FARTHEST), unit="probability", sources=self.sources)
        upper = self.upper(epsilon)
        lower, witness = self._sharpest(epsilon)
        return bracket(lower, upper, unit="probability", sources=self.sources, witness=witness, exact=self.exact)

    def _sharpest(self, epsilon: float) -> tuple[float, Witness]:
        """Return a lower end and its datasets, at this epsilon the best that can be found."""
        return self.lower(epsilon)

    def lower_at(self, witness: Witness, epsilon: float) -> float:  # noqa: ARG002 - not every curve knows it
        """Return a lower end at this pair of neighbours, in this order; 0 where it is not known."""
        return 0.0

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:  # noqa: ARG002 - none are known
        """Return pairs of neighbours with the law of what tells them apart; events rarer than e**log_tail may miss."""
        return ()

    def near(self, delta: float, *, often: bool = False) -> PrivacyCurve:  # noqa: ARG002 - not every curve can profit
        """Return certified ends for use at about `delta` and more, cheaper if they are evaluated `often`."""
        return self

    def likely(self, epsilon: float) -> float:
        """Return about `upper(epsilon)`, as cheap as can be: to search with, no bound."""
        return self.upper(epsilon)

    def pure_bound(self) -> Bound:
        """Return the pure guarantee as a figure: exact, unless a law knows less."""
        return Bound.exact(self.pure, unit="nats", sources=self.sources, witness=self.lower(0.0)[1])


Laws: TypeAlias = Sequence[tuple[PrivacyCurve, int]]
"""Curves, and how often each mechanism runs."""


def spread(laws: Laws) -> Laws:
    """Return what lies above all `laws` together: each in its parts."""
    return [(part, times * each) for law, times in laws for part, each in law.parts]


class SearchedCurve(PrivacyCurve):
    """A curve whose epsilon is found by evaluating both ends; what it starts from need not be right."""

    def guess(self) -> float:
        """Return an epsilon of the right size for ordinary delta, to start a search from."""
        return self.pure / 4

    def focus(self, delta: float) -> SearchedCurve:  # noqa: ARG002 - not every curve can profit
        """Return `near(delta)`."""
        return self

    def contenders(self, epsilon: float) -> SearchedCurve:  # noqa: ARG002
        """Return the datasets that matter near `epsilon`: a search aid, whose upper end is no bound."""
        return self

    def near(self, delta: float, *, often: bool = False) -> PrivacyCurve:
        del often
        return self.focus(delta)

    def epsilon(self, delta: float) -> Bound:
        """Return the bracket.

        >>> from fractions import Fraction
        >>> from hushuffle.curves.flipped_pairs import AllAlike
        >>> pair = AllAlike.of(width=2, flip=Fraction(1, 4), n=1000, others=0, target=(0, 3))
        >>> print(pair.epsilon(1e-3))
        0.1245 to 0.1246 nats (certified bracket)
        """
        if delta == 0:
            return self.pure_bound()
        law = self.focus(delta)
        lower, witness = _lower_end(law, delta, law.guess())
        few = law.contenders(lower)
        if few is not law:
            lower, witness = _lower_end(few, delta, lower)
        upper = _upper_end(law, few, delta, lower)
        return bracket(lower, upper, unit="nats", sources=law.sources, witness=witness)

    def _sharpest(self, epsilon: float) -> tuple[float, Witness]:
        return self.contenders(epsilon).lower(epsilon)


def _upper_end(law: SearchedCurve, few: SearchedCurve, delta: float, guess: float) -> float:
    if guess == 0 and few.upper(0.0) <= delta and law.upper(0.0) <= delta:  # else what lies below is larger already
        return 0.0
    if law.pure > LARGEST and law.upper(LARGEST) > delta:
        return law.pure
    high = min(law.pure, LARGEST)
    point = first_below(few.upper, delta, high=high, guess=guess)
    if few is law or law.upper(point) <= delta:
        return point
    # The law knows its contenders better now.
    point = first_below(law.contenders(point).upper, delta, high=high, guess=point)
    if law.upper(point) <= delta:
        return point
    return first_below(law.upper, delta, high=high, guess=point)


def _lower_end(law: PrivacyCurve, delta: float, guess: float) -> tuple[float, Witness]:
    at_zero, witness = law.lower(0.0)
    if at_zero <= delta:
        return 0.0, witness
    if law.pure > LARGEST and law.lower(LARGEST)[0] > delta:
        return LARGEST, witness
    witnesses: dict[float, Witness] = {}

    def lower(epsilon: float) -> float:
        value, witnesses[epsilon] = law.lower(epsilon)
        return value

    point = last_above(lower, delta, high=min(law.pure, LARGEST), guess=guess)
    return point, witnesses[point]


def in_order(lower: float, upper: float) -> float:
    """Return the lower end of two that were computed apart, at most the upper one: every figure passes here.

    Ends that cross by no more than rounding (1e-6 relative, 1e-15 absolute) become one.

    >>> in_order(0.1 + 0.2, 0.3)
    0.3
    """
    if not lower <= upper * (1 + 1e-6) + 1e-15:
        message = (
            f"the certified ends cross ({lower!r} > {upper!r}), so one of them is wrong. "
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
    """Return the certified bracket of two ends computed apart, or the exact figure.

    Exact only if said so and if the ends agree to a relative 1e-9, or 0; an upper bound if the lower end is 0.
    """
    low = in_order(lower, upper)
    if (exact and (low == upper or upper - low <= _SAME * upper)) or upper == 0:
        return Bound.exact(upper, unit=unit, sources=sources, witness=witness)
    kind: Kind = "bracket" if low > 0 else "upper"  # nothing is below 0: that end says nothing
    return Bound(lower=low, upper=upper, kind=kind, unit=unit, sources=sources, witness=witness)
