"""Unary (one-hot) encoding: only the true value's bit is 1, and then every bit is randomized independently."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Integers, unsupported
from hushuffle.mechanisms.randomizers.base import Mechanism
from hushuffle.mechanisms.randomizers.bit_flipping import packed_coins
from hushuffle.mechanisms.randomizers.report_law import LARGEST_MATRIX, Blanket, OneHot, ReportLaw, Support
from hushuffle.mechanisms.randomizers.value_laws import ValueLaws
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.model import Channel, Histogram
from hushuffle.model.citation import BRAUN, HASHING, RAPPOR, SHANNON
from hushuffle.model.report_layout import ReportLayout
from hushuffle.numerics.exact import WIDE, binomial, log2, log_upwards, to_decimal
from hushuffle.randomness import SCALE, Randomness

if TYPE_CHECKING:
    from hushuffle.model.prior import Prior

Encoding = Literal["symmetric", "optimized"]

_LARGEST: Final = 2**16
_WORD: Final = 63
"""Number of bits in a column of reports."""

_BLOCK: Final = 1 << 13
"""Number of records per step: the arrays of a step fit into the processor's cache."""


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(Mechanism):
    """Report k bits, one per value: the true value's bit is 1 with probability p, every other bit with q < p.

    "symmetric" (RAPPOR's basic form): every bit of the one-hot vector is flipped with probability q = 1 - p, where
    q = 1/(e**(epsilon/2) + 1). "optimized": p = 1/2 and q = 1/(e**epsilon + 1), the least variance for a rare value.
    q is rounded up to a multiple of 2**-64. epsilon is that of the whole report: changing the value changes two bits.

    A report is a row of integers of 63 bits each, shape (n, ceil(k/63)), or (n,) up to k = 63. The first value has the
    lowest bit of the first integer.

    Args:
        k: number of values, 2 to 2**16.
        epsilon: local epsilon in nats, > 0, `math.inf` allowed (no bit of another value is ever set).
        encoding: "symmetric" or "optimized"; "optimized" by default.

    Raises:
        InvalidInputError: an argument is out of range, or `epsilon` is so small that q would equal p.

    Source: Erlingsson, Pihur, Korolova 2014 (RAPPOR); Wang, Blocki, Li, Jha 2017 (optimized unary encoding);
    docs/theory/randomizers.md, Theorem 6.

    >>> import hushuffle as hs
    >>> survey = hs.UnaryEncoding(k=1000, epsilon=1.0, encoding="optimized")
    >>> round(survey.law().support.false, 6), survey.local_epsilon
    (0.268941, 1.0)
    """

    k: int
    epsilon: float
    encoding: Encoding = "optimized"
    threshold: int = field(init=False, repr=False, compare=False)
    sources = (RAPPOR, HASHING)
    besides_epsilon = "encoding"
    table = SettingsTable(
        kind="unary-encoding",
        about="Unary (one-hot) encoding: a report has one bit per category, and each bit is randomized independently.",
        settings={
            "epsilon": Setting(type="epsilon", about='Local privacy loss in nats of a whole report; "inf": no noise.'),
            "encoding": Setting(
                type="choice",
                about='How bits are flipped: "symmetric", all alike as in basic RAPPOR, or "optimized", the best for '
                "rare categories (the default).",
                choices=get_args(Encoding),
                optional=True,
            ),
        },
    )

    def __post_init__(self) -> None:
        k = _checks.integer("k", self.k, low=2, high=_LARGEST)
        epsilon = _checks.positive("epsilon", self.epsilon, allow_infinite=True, hint="math.inf sets no other bits.")
        if self.encoding not in get_args(Encoding):
            _checks.reject("encoding", "symmetric or optimized", self.encoding)
        threshold = _threshold(epsilon / 2 if self.encoding == "symmetric" else epsilon)
        if 2 * threshold >= SCALE:
            hint = "With this epsilon, reports would not depend on the values at all."
            _checks.reject("epsilon", "large enough that a bit depends on its value", epsilon, hint)
        _checks.set_fields(self, k=k, epsilon=epsilon, threshold=threshold)

    @property
    def local_epsilon(self) -> float:
        law = self.law()
        own, other = law.own * (1 - law.raised), law.raised * (1 - law.own)
        return log_upwards(own / other) if other else math.inf

    @property
    def layout(self) -> ReportLayout:
        sizes = [mask.bit_length() for mask in self._masks]
        names = [f"bits_{place}" for place in range(1, len(sizes) + 1)] if len(sizes) > 1 else ["report"]
        return ReportLayout(names=tuple(names), limits=tuple(1 << size for size in sizes))

    def law(self) -> OneHotReports:
        return OneHotReports(k=self.k, own=Fraction(self._kept, SCALE), raised=Fraction(self.threshold, SCALE))

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        truth = _checks.codes("values", values, k=self.k)
        reports = np.empty((truth.size, len(self._masks)), dtype=np.int64)
        for block in _blocks(truth.size, rng):
            own = rng.coins(self._kept, truth[block].size).astype(np.int64)
            rows = self._draw(reports[block], rng)
            at = np.arange(own.size), truth[block] // _WORD
            bit = truth[block] % _WORD
            rows[at] = rows[at] & ~(1 << bit) | own << bit
        return reports if reports.shape[1] > 1 else reports[:, 0]

    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        """Return `count` reports in which every bit is 1 with probability q, independently."""
        size = _checks.integer("count", count, low=0)
        reports = np.empty((size, len(self._masks)), dtype=np.int64)
        for block in _blocks(size, rng):
            self._draw(reports[block], rng)
        return reports if reports.shape[1] > 1 else reports[:, 0]

    def supports(self, reports: Integers, values: Integers) -> Flags:
        words = reports.reshape(reports.shape[0], -1)[:, values // _WORD]
        return np.asarray((words >> (values % _WORD) & 1).astype(np.bool_).T)

    def supported(self, reports: Integers) -> Integers:
        counts: Integers = np.bitwise_count(reports.reshape(reports.shape[0], -1)).sum(axis=1, dtype=np.int64)
        return counts

    def counts(self, reports: Integers) -> Histogram:
        rows, masks = np.asarray(reports), self._masks
        shape = (rows.shape[0], len(masks)) if len(masks) > 1 else (rows.size,)
        if rows.shape != shape:
            _checks.reject("reports", f"of shape {shape}", f"<shape {rows.shape}>")
        columns = [
            _checks.codes("reports", column, k=mask + 1)
            for column, mask in zip(rows.reshape(-1, len(masks)).T, masks, strict=True)
        ]
        return Histogram(counts=np.concatenate([_set_bits(column)[:_WORD] for column in columns])[: self.k])

    def describe(self) -> str:
        law = self.law()
        noise = f"local epsilon {self.local_epsilon:.4g}" if math.isfinite(self.epsilon) else "no pure guarantee"
        return (
            f"every person reports a bit for each of {self.k:,} values, the bit of its own value set with probability "
            f"{float(law.own):.4g}, any other with {float(law.raised):.4g} ({self.encoding} unary encoding, {noise})"
        )

    @property
    def _kept(self) -> int:
        return SCALE - self.threshold if self.encoding == "symmetric" else SCALE // 2

    @property
    def _masks(self) -> list[int]:
        whole, left = divmod(self.k, _WORD)
        return [(1 << _WORD) - 1] * whole + [(1 << left) - 1] * (left > 0)

    def _draw(self, rows: Integers, rng: Randomness) -> Integers:
        """Fill the rows with bits that are 1 with probability q."""
        for place, mask in enumerate(self._masks):
            rows[:, place] = packed_coins(self.threshold, rows.shape[0], rng).view(np.int64) & mask
        return rows


@dataclass(frozen=True, kw_only=True)
class OneHotReports(OneHot, ReportLaw):
    """Report distribution of independent bits; the true value's bit is more likely 1 than any other bit.

    In the blanket all k bits are 1 with probability `raised` each; its weight is (1 - own)/(1 - raised).

    Source: docs/theory/randomizers.md, Theorem 6, Theorem 7 and Theorem 8.
    """

    sources = (SHANNON, BRAUN)

    @property
    def values(self) -> int:
        return self.k

    @property
    def one_hot(self) -> OneHot:
        return self

    @property
    def classes(self) -> Hashable:
        return "one-hot", self.k

    @property
    def inside(self) -> Fraction:
        """The likelihood of a report given a value whose bit is set, up to a factor that depends only on the report."""
        return self.own * (1 - self.raised)

    @property
    def outside(self) -> Fraction:
        """The likelihood of a report given a value whose bit is not set, up to the same factor as `inside`."""
        return self.raised * (1 - self.own)

    @property
    def gamma(self) -> Fraction:
        return (1 - self.own) / (1 - self.raised)

    @property
    def told(self) -> Fraction:
        return 1 - self.gamma

    @property
    def support(self) -> Support:
        return Support(
            true=float(self.own),
            false=float(self.raised),
            dummy=float(self.raised),
            inside=float(self.inside),
            outside=float(self.outside),
            told=float(self.told),
        )

    def channel(self) -> Channel:
        return Channel(matrix=self._rows(self._every_report()))

    def blanket(self) -> Blanket:
        return Blanket(weight=float(self.gamma), law=_chances(self._every_report(), self.raised).prod(axis=0))

    def _rows(self, bits: Flags) -> npt.NDArray[np.float64]:
        """Return the probability of each pattern of bits given each of the values, shape (values, columns)."""
        others, own = _chances(bits, self.raised), _chances(bits, self.own)
        return np.array([own[x] * np.delete(others, x, axis=0).prod(axis=0) for x in range(bits.shape[0])])

    def _every_report(self) -> Flags:
        """Return the bits of every report, shape (k, 2**k); refuse too many reports."""
        if self.k << self.k > LARGEST_MATRIX:
            unsupported(f"Unary encoding of {self.k:,} values: a matrix would have {self.k:,} * 2**{self.k:,} entries.")
        return (np.arange(1 << self.k) >> np.arange(self.k)[:, None] & 1).astype(np.bool_)

    def pairs(self) -> tuple[ValueLaws, ...]:
        """Return the only class of pairs of values; a report's class states which of three values' bits are set."""
        held = min(self.k, 3)
        bits = np.array(list(product((True, False), repeat=held))).T
        blanket = _chances(bits, self.raised).prod(axis=0)
        return ValueLaws.of_first(self._rows(bits), blanket=blanket, weight=self.gamma)

    def capacity(self, people: int) -> tuple[Decimal, Decimal]:
        """Return the divergence (40 digits) of a value's report distribution from the mean over j = min(people, k).

        By symmetry the j values are equally likely. A report has i set bits among those of the j - 1 other values.
        """
        j, bits = self._held(people), Decimal(0)
        with localcontext(WIDE):
            for share, lifted in ((self.own, 1), (1 - self.own, 0)):
                own = self.inside if lifted else self.outside
                for i, chance in binomial(j - 1, self.raised) if share and own else ():
                    of_them = i + lifted
                    mean = (of_them * self.inside + (j - of_them) * self.outside) / j
                    bits += to_decimal(share) * chance * log2(own / mean)
        return bits, bits

    def gain(self, people: int) -> Fraction:
        return self._named([(Fraction(1), self._held(people))], Fraction(1))

    def bayes(self, prior: Prior) -> tuple[Fraction, bool]:
        """Return the success of the best guess in the worst case, in which the likeliest people have different values.

        The best guess is the likeliest person whose bit is set, or the likeliest person overall.
        """
        return self._named(list(prior.blocks), prior.largest), True

    def contraction(self) -> tuple[Fraction, bool]:
        """Return the exact eta, since only reports with exactly one of two values' bits set distinguish the values."""
        return (self.own - self.raised) ** 2 / (self.inside + self.outside), True

    def _named(self, blocks: list[tuple[Fraction, int]], largest: Fraction) -> Fraction:
        """Return sum over reports of max over people, with weights in falling order, of weight times likelihood."""
        held, total = 0, Decimal(0)
        with localcontext(WIDE):
            unset = to_decimal(1 - self.raised)
            for weight, count in blocks:
                here = min(count, self.k - held)
                if not here or self.inside * weight <= self.outside * largest:
                    break
                # The first person of `held` + 1, ... whose bit is set, divided by `raised`.
                first = (1 - unset**here) / to_decimal(self.raised) if self.raised else Decimal(here)
                total += to_decimal(self.own * weight) * unset**held * first
                held += here
            return Fraction(total + to_decimal(self.gamma * largest) * unset**held)


_LARGE: Final = 1000.0
"""From this epsilon on, the threshold is 1: 2**64/e**1000 rounded up."""


def _threshold(epsilon: float) -> int:
    """Return 2**64/(e**epsilon + 1), rounded up."""
    if math.isinf(epsilon):
        return 0
    with localcontext(WIDE):
        # One part in 10**100 covers the rounding of the exponential and of the quotient.
        return math.ceil(SCALE / (Decimal(min(epsilon, _LARGE)).exp() + 1) * (1 + Decimal(10) ** -100))


def _blocks(size: int, rng: Randomness) -> Iterator[slice]:
    """Yield the slice of records of each step (a single slice under a keyed stream)."""
    step = _BLOCK if rng.sequential else max(size, 1)
    for start in range(0, size, step):
        yield slice(start, start + step)


def _chances(bits: Flags, chance: Fraction) -> npt.NDArray[np.float64]:
    """Return the probability of each given bit, if a bit is 1 with probability `chance`."""
    return np.where(bits, float(chance), float(1 - chance))


def _set_bits(words: Integers) -> Integers:
    """Return how many of the words have each of the 64 bits set, the lowest one first."""
    eights = np.ascontiguousarray(words, dtype="<i8").view(np.uint8).reshape(-1, 8)
    return np.concatenate([np.bincount(column, minlength=256) @ _BITS for column in eights.T])


_BITS: Final = np.arange(256)[:, None] >> np.arange(8) & 1
