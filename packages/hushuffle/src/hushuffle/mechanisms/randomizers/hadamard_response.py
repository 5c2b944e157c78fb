"""Hadamard response: a report is one of K numbers, more likely from the half that belongs to the person's value."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Integers
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.randomizers._hash_families import walsh_hadamard
from hushuffle.mechanisms.randomizers.base import Mechanism, truth_threshold
from hushuffle.mechanisms.randomizers.report_law import LARGEST_MATRIX, Blanket, ReportLaw, Support, Symmetric
from hushuffle.mechanisms.randomizers.value_laws import ValueLaws
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.model import Channel, Histogram
from hushuffle.model.citation import ACHARYA, BRAUN, SHANNON
from hushuffle.model.report_layout import ReportLayout
from hushuffle.randomness import SCALE, Randomness, epsilon_of_threshold

if TYPE_CHECKING:
    from hushuffle.model.prior import Prior

_LARGEST: Final = 2**27 - 1


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(Mechanism):
    """Report a number from 0 to K - 1; those in the half that belongs to the value are e**epsilon times as likely.

    K is the smallest power of two above k. Report y is in the half of value x if y and x + 1 share an even number of
    binary ones (+1 in row x + 1, column y of Sylvester's Hadamard matrix). One Walsh-Hadamard transform gives all k
    counts. With probability theta = (e**epsilon - 1)/(e**epsilon + 1), rounded down to a multiple of 2**-64, y is drawn
    from the half of the person's value, otherwise from all K numbers.

    Args:
        k: number of values, 2 to 2**27 - 1.
        epsilon: local epsilon in nats, > 0, `math.inf` allowed (y is always in the half of the person's value).

    Raises:
        InvalidInputError: an argument is out of range, or `epsilon` is so small that theta < 2**-64.

    Source: Acharya, Sun, Zhang 2019; docs/theory/randomizers.md, Theorem 11.

    >>> import hushuffle as hs
    >>> survey = hs.HadamardResponse(k=1000, epsilon=1.0)
    >>> survey.layout.limits, round(survey.law().support.true, 6), survey.local_epsilon
    ((1024,), 0.731059, 1.0)
    """

    k: int
    epsilon: float
    threshold: int = field(init=False, repr=False, compare=False)
    sources = (ACHARYA,)
    table = SettingsTable(
        kind="hadamard-response",
        about="Hadamard response, for many categories: a report is an index, more often from the half for its value.",
        settings={"epsilon": Setting(type="epsilon", about='Local privacy loss in nats; "inf": no noise.')},
    )

    def __post_init__(self) -> None:
        k = _checks.integer("k", self.k, low=2, high=_LARGEST)
        hint = "math.inf means that every report supports the person's own value."
        epsilon = _checks.positive("epsilon", self.epsilon, allow_infinite=True, hint=hint)
        _checks.set_fields(self, k=k, epsilon=epsilon, threshold=truth_threshold(2, epsilon))

    @property
    def outputs(self) -> int:
        """K, the number of different reports."""
        return 1 << self.k.bit_length()

    @property
    def local_epsilon(self) -> float:
        return epsilon_of_threshold(2, self.threshold)

    @property
    def layout(self) -> ReportLayout:
        return ReportLayout(names=("report",), limits=(self.outputs,))

    def law(self) -> Halves:
        return Halves(k=self.k, theta=Fraction(self.threshold, SCALE))

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        rows = _checks.codes("values", values, k=self.k) + 1
        honest, reports = rng.coins(self.threshold, rows.size), rng.integers(self.outputs, rows.size)
        # Changing a bit of y that is set in the row x + 1 moves y to the other half.
        return np.where(honest & ~_halves(reports, rows), reports ^ (rows & -rows), reports)

    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        """Return `count` uniform numbers from 0 to K - 1."""
        return rng.integers(self.outputs, _checks.integer("count", count, low=0))

    def supports(self, reports: Integers, values: Integers) -> Flags:
        return _halves(reports, values[:, None] + 1)

    def counts(self, reports: Integers) -> Histogram:
        numbers = _checks.codes("reports", reports, k=self.outputs)
        signs = walsh_hadamard(np.bincount(numbers, minlength=self.outputs))
        return Histogram(counts=(numbers.size + signs[1 : self.k + 1]) // 2)

    def describe(self) -> str:
        noise = f"local epsilon {self.local_epsilon:.4g}" if math.isfinite(self.epsilon) else "no pure guarantee"
        return (
            f"every person reports one of {self.outputs:,} numbers; it is in the half that supports the person's own "
            f"of {self.k:,} values with probability {float(self.law().response.truth):.4g} (Hadamard response, {noise})"
        )


@dataclass(frozen=True, kw_only=True)
class Halves(ReportLaw):
    """Report distribution: uniform on the value's half of the K reports with probability `theta`, else on all K.

    Rows x + 1 and y + 1 of the Hadamard matrix differ in half of the columns; three rows are independent, or one of
    them is the product of the two others.

    Source: docs/theory/randomizers.md, Theorem 11, Theorem 12 and Theorem 13.
    """

    k: int
    theta: Fraction
    sources = (SHANNON, BRAUN)

    @property
    def values(self) -> int:
        return self.k

    @property
    def told(self) -> Fraction:
        return self.theta

    @property
    def response(self) -> Symmetric:
        """Binary randomized response: whether the report is in the half of the person's value."""
        lie = (1 - self.theta) / 2
        return Symmetric(k=2, truth=1 - lie, lie=lie)

    @property
    def classes(self) -> Hashable:
        return "halves", self.k

    @property
    def support(self) -> Support:
        law = self.response
        return Support(
            true=float(law.truth),
            false=0.5,
            dummy=0.5,
            inside=float(law.truth),
            outside=float(law.lie),
            told=float(self.theta),
        )

    def channel(self) -> Channel:
        outputs = 1 << self.k.bit_length()
        if self.k * outputs > LARGEST_MATRIX:
            message = f"Hadamard response of {self.k:,} values: the matrix is too large ({self.k * outputs:,} entries)."
            raise UnsupportedProtocolError(message)
        inside = _halves(np.arange(outputs), np.arange(1, self.k + 1)[:, None])
        law = self.response
        return Channel(matrix=np.where(inside, float(law.truth), float(law.lie)) * 2 / outputs)

    def blanket(self) -> Blanket:
        return Blanket.uniform(1 - self.theta, self.channel().matrix.shape[1])

    def pairs(self) -> tuple[ValueLaws, ...]:
        """Return report distributions for the only class of pairs of values: matrix rows 1 and 2, and other rows."""
        held, law = min(self.k, 4), self.response
        inside = _halves(np.arange(8), np.arange(1, held + 1)[:, None])
        rows = np.where(inside, float(law.truth), float(law.lie)) / 4
        return ValueLaws.of_first(rows, blanket=np.full(8, 1 / 8), weight=1 - self.theta)

    def capacity(self, people: int) -> tuple[Decimal, Decimal]:
        """Return bounds on the capacity. They use the matrix if there is one; else the upper bound is that of a bit."""
        try:
            return super().capacity(people)
        except UnsupportedProtocolError:
            return Decimal(0), self.response.capacity(people)[1]

    def gain(self, people: int) -> Fraction:
        return self._named([Fraction(1)] * min(_checks.integer("people", people, low=1), 3))

    def bayes(self, prior: Prior) -> tuple[Fraction, bool]:
        """Return the best guess's success if the three likeliest people have the values of rows 1, 2 and 3."""
        totals = [prior.likeliest(people)[1] for people in range(4)]
        return self._named([after - before for before, after in pairwise(totals)]), True

    def contraction(self) -> tuple[Fraction, bool]:
        """Return the exact eta: half of the reports distinguish two values, as binary randomized response does."""
        return self.response.contraction()[0] / 2, True

    def _named(self, weights: list[Fraction]) -> Fraction:
        """Return sum over reports of max over people of weight times likelihood, given the largest weights."""
        law, first = self.response, weights[0]
        second, third = [*weights[1 : self.k], Fraction(0), Fraction(0)][:2]
        named = (max(law.truth * rest, law.lie * first) for rest in (second, third))
        return law.truth * first + sum(named, start=Fraction(0)) / 2


def _halves(reports: Integers, rows: Integers) -> Flags:
    """Return whether each report is in the half of its row of the Hadamard matrix (an even number of common ones)."""
    return np.asarray(np.bitwise_count(reports & rows) & 1 == 0)
