"""Subset selection: a report is a set of w of the k values, which is more likely to contain the true value."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Integers
from hushuffle.mechanisms.randomizers.base import Mechanism, truth_threshold
from hushuffle.mechanisms.randomizers.report_law import LARGEST_MATRIX, Blanket, ReportLaw, Support, Symmetric
from hushuffle.mechanisms.randomizers.value_laws import ValueLaws
from hushuffle.mechanisms.settings import BEST, Setting, SettingsTable
from hushuffle.model import Channel, Histogram
from hushuffle.model.citation import BRAUN, SHANNON, YE_BARG
from hushuffle.model.report_layout import ReportLayout
from hushuffle.numerics.exact import WIDE, hypergeometric, log2, log_upwards, to_decimal
from hushuffle.randomness import SCALE, Randomness

if TYPE_CHECKING:
    from hushuffle.model.prior import Prior

LARGEST_SET: Final = 1001
"""Maximum number of values in a report."""


class SetReports(Mechanism):
    """A report is a set of values: randomized response selects the first value, a uniform draw all further values.

    A report is the sorted row of its values, shape (n, size), or a single value, shape (n,), if `size` is 1.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of values in a report."""

    @property
    @abstractmethod
    def coin(self) -> int:
        """The first value is the true value with probability `coin` / 2**64, else a random value."""

    @property
    def others_only(self) -> bool:
        """Whether the random first value is never the true value."""
        return False

    @property
    def first(self) -> Symmetric:
        """The distribution of the first value: randomized response."""
        k, truthful = self.inputs, Fraction(self.coin, SCALE)
        lie = (1 - truthful) / (k - 1 if self.others_only else k)
        return Symmetric(k=k, truth=1 - (k - 1) * lie, lie=lie)

    @property
    def local_epsilon(self) -> float:
        """The local epsilon ln((mu + d nu)/((d + 1) nu)) if a report has d + 1 values; 0 if it has all values."""
        law, d = self.first, self.size - 1
        if self.size == self.inputs:
            return 0.0
        return math.inf if law.lie == 0 else log_upwards((law.truth + d * law.lie) / ((d + 1) * law.lie))

    @property
    def layout(self) -> ReportLayout:
        names = [f"value_{place}" for place in range(1, self.size + 1)] if self.size > 1 else ["report"]
        return ReportLayout(names=tuple(names), limits=(self.inputs,) * self.size)

    def law(self) -> ReportLaw:
        first, d = self.first, self.size - 1
        return Sets(k=self.inputs, w=self.size, own=first.truth + d * first.lie) if d else first

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        return self._completed(self._first_values(values, rng)[0], rng)

    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        return self._completed(rng.integers(self.inputs, _checks.integer("count", count, low=0)), rng)

    def _first_values(self, values: npt.ArrayLike, rng: Randomness) -> tuple[Integers, Flags]:
        """Return the first values, and whether each was truthful by the Bernoulli trial."""
        truth = _checks.codes("values", values, k=self.inputs)
        honest = rng.coins(self.coin, truth.size)
        if self.others_only:
            other = rng.integers(self.inputs - 1, truth.size)
            other += other >= truth
        else:
            other = rng.integers(self.inputs, truth.size)
        return np.where(honest, truth, other), honest

    def _completed(self, first: Integers, rng: Randomness) -> Integers:
        """Return each first value together with distinct others, sorted."""
        if self.size == 1:
            return first
        rows, others = np.empty((first.size, self.size), dtype=np.int64), self.inputs - 1
        for column, last in enumerate(range(others - self.size + 1, others)):
            # Floyd's sampling without replacement: take a number up to `last`, or `last` itself if that is taken.
            drawn = rng.integers(last + 1, first.size)
            taken = (rows[:, :column] == drawn[:, None]).any(axis=1)
            rows[:, column] = np.where(taken, last, drawn)
        chosen = rows[:, :-1]
        chosen += chosen >= first[:, None]
        rows[:, -1] = first
        rows.sort(axis=1)
        return rows

    def supports(self, reports: Integers, values: Integers) -> Flags:
        rows = reports.reshape(reports.shape[0], self.size)
        supported = np.zeros((values.size, rows.shape[0]), dtype=np.bool_)
        for column in rows.T:
            supported |= values[:, None] == column
        return supported

    def supported(self, reports: Integers) -> Integers:
        return np.full(reports.shape[0], self.size, dtype=np.int64)

    def counts(self, reports: Integers) -> Histogram:
        rows = np.asarray(reports)
        shape = (rows.shape[0], self.size) if self.size > 1 else (rows.size,)
        if rows.shape != shape:
            _checks.reject("reports", f"of shape {shape}", f"<shape {rows.shape}>")
        values = _checks.codes("reports", rows.ravel(), k=self.inputs)
        if self.size > 1 and not bool((rows[:, 1:] > rows[:, :-1]).all()):
            # No device of the protocol sends a value twice: a repeated value counts once.
            ascending = np.sort(rows, axis=1)
            again = np.zeros(rows.shape, dtype=np.bool_)
            again[:, 1:] = ascending[:, 1:] == ascending[:, :-1]
            values = ascending[~again]
        return Histogram(counts=np.bincount(values, minlength=self.inputs))


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(SetReports):
    """Report a set of w of the k values, with the true value with probability e**epsilon w/(e**epsilon w + k - w).

    The set starts with the true value with probability theta = (e**epsilon - 1)/(k/w + e**epsilon - 1), rounded down
    to a multiple of 2**-64, else with a uniform value. Then w - 1 distinct uniform values are added. The mechanism is
    `TargetSampling` with `flood` = w - 1, and randomized response at w = 1. Every set with the true value is e**epsilon
    times as likely as every set without it. A report is the sorted row of its values, shape (n, w).

    Args:
        k: number of values, 2 to 2**40.
        w: number of values in a report, 1 to k - 1, at most 1001; default: `best_w`, which has the least variance.
        epsilon: local epsilon in nats, > 0, `math.inf` allowed (the true value is always in the set).

    Raises:
        InvalidInputError: an argument is out of range, or `epsilon` is so small that theta < 2**-64.

    Source: Ye, Barg 2018; docs/theory/randomizers.md, Theorem 1.

    >>> import hushuffle as hs
    >>> survey = hs.SubsetSelection(k=20, w=5, epsilon=1.0)
    >>> round(survey.law().support.true, 6), survey.local_epsilon
    (0.475367, 1.0)
    """

    k: int
    w: int = BEST
    epsilon: float
    threshold: int = field(init=False, repr=False, compare=False)
    sources = (YE_BARG,)
    besides_epsilon = "size of the sets"
    table = SettingsTable(
        kind="subset-selection",
        about="Subset selection, for tens to hundreds of categories: a report lists w of them, often the true one.",
        settings={
            "epsilon": Setting(type="epsilon", about='Local privacy loss in nats; "inf": no noise.'),
            "w": Setting(
                type="integer",
                about="Number of categories in a report, below their total (default: the best for rare categories).",
                limits={"ge": 1, "le": LARGEST_SET},
                optional=True,
            ),
        },
    )

    def __post_init__(self) -> None:
        k = _checks.integer("k", self.k, low=2, high=2**40)
        epsilon = _checks.positive("epsilon", self.epsilon, allow_infinite=True, hint="math.inf means no noise.")
        w = _checks.integer(
            "w", self.best_w(k, epsilon) if self.w is BEST else self.w, low=1, high=min(k - 1, LARGEST_SET)
        )
        threshold = truth_threshold(k, epsilon, f" at k={k}, w={w}", size=w)
        _checks.set_fields(self, k=k, w=w, epsilon=epsilon, threshold=threshold)

    @staticmethod
    def best_w(k: int, epsilon: float) -> int:
        """Return the size with the least variance for a rare value: k/(e**epsilon + 1) rounded up or down.

        >>> import hushuffle as hs
        >>> hs.SubsetSelection.best_w(20, 1.0), hs.SubsetSelection.best_w(20, 5.0)
        (5, 1)
        """
        size = _checks.integer("k", k, low=2, high=2**40)
        growth = math.exp(min(_checks.positive("epsilon", epsilon, allow_infinite=True), 40.0))
        near = math.floor(size / (growth + 1))
        sizes = {min(max(w, 1), size - 1, LARGEST_SET) for w in (near, near + 1)}
        return min(sorted(sizes), key=lambda w: _variance(size, w, growth))

    @property
    def size(self) -> int:
        return self.w

    @property
    def coin(self) -> int:
        return self.threshold

    def describe(self) -> str:
        noise = f"local epsilon {self.local_epsilon:.4g}" if math.isfinite(self.epsilon) else "no noise"
        own = float(self.first.truth + (self.w - 1) * self.first.lie)
        return (
            f"every person reports {self.w:,} of {self.k:,} values, the true one among them with probability "
            f"{own:.4g} (subset selection, {noise})"
        )


@dataclass(frozen=True, kw_only=True)
class Sets(ReportLaw):
    """Report distribution: a uniform set of w values with the true value (probability `own`), or without it.

    C(k - 1, w - 1) sets have the true value, each `own`/`beside` times as likely as a set without it. The blanket is
    a uniform set; its weight gamma is the largest that the sets without the true value allow.

    Source: docs/theory/randomizers.md, Theorem 2, Theorem 3 and Theorem 4.
    """

    k: int
    w: int
    own: Fraction
    sources = (SHANNON, BRAUN)

    @property
    def values(self) -> int:
        return self.k

    @property
    def classes(self) -> Hashable:
        return "sets", self.k, self.w

    @property
    def beside(self) -> Fraction:
        """The likelihood of a set without the true value, if the likelihood of a set with it is `own`."""
        return (1 - self.own) * self.w / (self.k - self.w) if self.w < self.k else Fraction(1)

    @property
    def gamma(self) -> Fraction:
        return self.beside * self.k / self.w

    @property
    def told(self) -> Fraction:
        return 1 - self.gamma

    @property
    def support(self) -> Support:
        return Support(
            true=float(self.own),
            false=float((self.w - self.own) / (self.k - 1)),
            dummy=self.w / self.k,
            inside=float(self.own),
            outside=float(self.beside),
            told=float(self.told),
            disjoint=True,
        )

    def channel(self) -> Channel:
        size = math.comb(self.k, self.w) * self.k
        if size > LARGEST_MATRIX:
            _checks.unsupported(f"Sets of {self.w:,} of {self.k:,} values: a matrix would have {size:,} entries.")
        sets, each = list(combinations(range(self.k), self.w)), math.comb(self.k - 1, self.w - 1)
        inside, outside = float(self.own / each), float(self.beside / each)
        matrix = [[inside if x in chosen else outside for chosen in sets] for x in range(self.k)]
        return Channel(matrix=np.array(matrix), outputs=sets)

    def blanket(self) -> Blanket:
        return Blanket.uniform(self.gamma, self.channel().matrix.shape[1])

    def pairs(self) -> tuple[ValueLaws, ...]:
        """Return the only class of pairs of values; a report's class states which of three values its set contains."""
        held = min(self.k, 3)
        classes = [has for has in product((True, False), repeat=held) if 0 <= self.w - sum(has) <= self.k - held]
        given = math.comb(self.k - 1, self.w - 1)  # number of sets with a given value
        share = [Fraction(math.comb(self.k - held, self.w - sum(has)), given) for has in classes]
        rows = [
            [part * (self.own if has[value] else self.beside) for part, has in zip(share, classes, strict=True)]
            for value in range(held)
        ]
        total = sum(share)
        blanket = np.array([part / total for part in share], dtype=np.float64)
        return ValueLaws.of_first(np.array(rows, dtype=np.float64), blanket=blanket, weight=self.gamma)

    def capacity(self, people: int) -> tuple[Decimal, Decimal]:
        """Return the exact divergence of a value's report distribution from the mean over j = min(people, k) values.

        By symmetry the j values are equally likely. A report with i of them has either the true value and i - 1 of
        the j - 1 others, or i of the j - 1 others without the true value.
        """
        j, odds = self._held(people), self.own / self.beside if self.beside else None
        bits = Decimal(0)
        with localcontext(WIDE):
            for share, rest, lifted in ((self.own, self.w - 1, True), (1 - self.own, self.w, False)):
                if share:
                    for i, chance in hypergeometric(self.k - 1, j - 1, rest):
                        of_them = i + lifted
                        ratio = Fraction(j, of_them) if odds is None else j / (of_them * odds + j - of_them)
                        ratio *= odds if lifted and odds is not None else 1
                        bits += to_decimal(share) * chance * log2(ratio)
        return bits, bits

    def gain(self, people: int) -> Fraction:
        return self._named([(Fraction(1), self._held(people))], Fraction(1))

    def bayes(self, prior: Prior) -> tuple[Fraction, bool]:
        """Return the success of the best guess in the worst case, in which the likeliest people have different values.

        The best guess is the likeliest person whose value is in the set, or the likeliest person overall.
        """
        return self._named(list(prior.blocks), prior.largest), True

    def contraction(self) -> tuple[Fraction, bool]:
        """Return the exact eta, since only sets with exactly one of two values distinguish these values."""
        with_own, with_other = (part * (self.k - self.w) / (self.k - 1) for part in (self.own, self.beside))
        return (with_own - with_other) ** 2 / (with_own + with_other) if self.w < self.k else Fraction(0), True

    def _named(self, blocks: list[tuple[Fraction, int]], largest: Fraction) -> Fraction:
        """Return sum over sets of max over people, with weights in falling order, of weight times likelihood."""
        # All C(k, w) sets together, in the units of `own` and `beside`.
        held, missing, total = 0, Decimal(1), Decimal(0)
        with localcontext(WIDE):
            for weight, count in blocks:
                last = min(held + count, self.k)
                if last == held or self.own * weight <= self.beside * largest:
                    break
                left = missing * self._missed(held, last)
                total += (missing - left) * to_decimal(self.own * weight)
                held, missing = last, left
            total += missing * to_decimal(self.beside * largest)
            return Fraction(total * to_decimal(Fraction(self.k, self.w)))

    def _missed(self, held: int, last: int) -> Decimal:
        """Return P(a uniform set has none of the first `last` values, given none of the first `held` values)."""
        top, steps = self.k - held, last - held
        if last > self.k - self.w:
            return Decimal(0)
        # C(top - steps, w)/C(top, w), by the shorter of two products.
        shorter, longer = sorted((steps, self.w))
        chance = Decimal(1)
        for i in range(shorter):
            chance *= Decimal(top - longer - i) / Decimal(top - i)
        return chance


def _variance(k: int, w: int, growth: float) -> float:
    """Return the variance of a rare value's estimated frequency, up to a factor."""
    own = growth * w / (growth * w + k - w)
    false = (w - own) / (k - 1)
    if own == false:  # epsilon is too small for a float
        return math.inf
    return false * (1 - false) / (own - false) ** 2
