"""A randomizer given by the matrix of any finite channel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Integers
from hushuffle.mechanisms.randomizers.base import Mechanism, in_blocks
from hushuffle.mechanisms.randomizers.report_law import LARGEST_MATRIX, Matrix
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.model import Channel
from hushuffle.model.report_layout import ReportLayout
from hushuffle.numerics.exact import log_upwards
from hushuffle.randomness import SCALE, Randomness


class Weighted(Mechanism):
    """Reports y for value x with probability `weights[x][y]`/2**64."""

    weights: tuple[tuple[int, ...], ...]

    @property
    def inputs(self) -> int:
        return len(self.weights)

    @property
    def outputs(self) -> int:
        """Number of different reports."""
        return len(self.weights[0])

    @property
    def local_epsilon(self) -> float:
        columns = [column for column in zip(*self.weights, strict=True) if any(column)]
        if any(0 in column for column in columns):
            return math.inf
        return max(log_upwards(Fraction(max(column), min(column))) for column in columns)

    @property
    def layout(self) -> ReportLayout:
        return ReportLayout(names=("report",), limits=(self.outputs,))

    def law(self) -> Matrix:
        return self._law

    @cached_property
    def _law(self) -> Matrix:
        return Matrix(table=Channel(matrix=np.array([[weight / SCALE for weight in row] for row in self.weights])))

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        truth, cuts = _checks.codes("values", values, k=self.inputs), _Cuts.of(self.weights)
        return in_blocks(lambda block, source: cuts.search(block, source.words(block.size)), truth, rng)

    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        size = _checks.integer("count", count, low=0)
        shared = tuple(min(column) for column in zip(*self.weights, strict=True))
        if size and not sum(shared):
            _checks.reject("count", "0 for a randomizer without blanket", size, "Its values share no report.")
        words = np.zeros(size, dtype=np.uint64)
        again = np.arange(size)
        # Rejection from the smallest power of two that holds the blanket.
        shift, total = np.uint64(64 - max(sum(shared) - 1, 1).bit_length()), sum(shared)
        while again.size:
            words[again] = rng.words(size, at=again) >> shift
            again = again[words[again] > np.uint64(total - 1)]
        return _Cuts.of((shared,)).search(np.zeros(size, dtype=np.int64), words)


@dataclass(frozen=True, kw_only=True, eq=False)
class MatrixRandomizer(Weighted):
    """Report column y of a given matrix Q with probability Q(y|x); the value x is a row number.

    Every probability is rounded to a multiple of 2**-64 (zero stays zero). The sampler, `channel()`, `local_epsilon`
    and the dummies use the rounded matrix. Dummies are drawn from the blanket, so a channel without a blanket (every
    report is impossible for some value) has no dummies.

    Args:
        channel: Q, shape (values, reports), at least two values: a `Channel`, or a matrix of numbers or rationals.

    Raises:
        InvalidInputError: `channel` is not a valid `Channel`, or it has a single row.

    Source: Balle, Bell, Gascon, Nissim 2019 (blanket of any randomizer); docs/theory/blanket.md, Theorem 1.

    >>> import hushuffle as hs
    >>> randomizer = hs.MatrixRandomizer([[0.75, 0.25, 0], [0.25, 0.5, 0.25]])
    >>> randomizer.local_epsilon, randomizer.law().blanket().weight
    (inf, 0.5)
    """

    channel_asked: Channel
    weights: tuple[tuple[int, ...], ...] = field(repr=False)
    table = SettingsTable(
        kind="matrix",
        about="Your own mechanism: a matrix with one row per category, and in it the probability of each report.",
        settings={
            "matrix": Setting(
                type="matrix",
                about="One list per category: probabilities of the reports, with sum 1; 20,000 numbers at most. This "
                "or file.",
                optional=True,
            ),
            "file": Setting(
                type="file",
                about="File of the matrix: CSV without header, Parquet, or NumPy (.npy). Give this key or `matrix`.",
                optional=True,
            ),
        },
        either=("matrix", "file"),
        example='file = "matrix.csv"',
    )

    def __init__(self, channel: Channel | npt.ArrayLike | Sequence[Sequence[Fraction | float]]) -> None:
        requested = channel if isinstance(channel, Channel) else Channel(matrix=channel)
        if requested.matrix.shape[0] < 2:
            _checks.reject("channel", "of at least two values", repr(requested))
        _checks.set_fields(
            self, channel_asked=requested, weights=tuple(_whole_weights(row) for row in requested.matrix)
        )

    @classmethod
    def from_settings(cls, k: int, settings: Mapping[str, Any]) -> MatrixRandomizer:
        if "matrix" not in settings:
            _checks.reject("file", "read first", "<a name>", "Read it with `hushuffle.specification.load`.")
        rows = settings["matrix"]
        sizes = sorted({len(row) for row in rows})
        if len(rows) != k:
            hint = "Rows are categories, columns are reports." if sizes == [k] else ""
            _checks.reject("matrix", f"{k:,} rows, one for each category", len(rows), hint)
        if len(sizes) != 1:
            _checks.reject("matrix", "rows of the same length", f"rows of {sizes[0]} to {sizes[-1]} entries")
        if sum(map(len, rows)) > LARGEST_MATRIX:
            _checks.reject("matrix", f"at most {LARGEST_MATRIX:,} entries", sum(map(len, rows)))
        return cls(rows)

    def describe(self) -> str:
        noise = f"local epsilon {self.local_epsilon:.4g}" if math.isfinite(self.local_epsilon) else "no pure guarantee"
        return (
            f"every person reports one of {self.outputs:,} symbols with the probabilities of a given matrix "
            f"for {self.inputs:,} values ({noise})"
        )


def _whole_weights(row: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return integers proportional to `row` with sum 2**64: rounded down alike, the remainder added to the largest."""
    ratios = [entry.as_integer_ratio() for entry in row.tolist()]
    common = math.lcm(*(below for _, below in ratios))
    exact = [above * (common // below) for above, below in ratios]
    total, most = sum(exact), max(exact)
    weights = [SCALE * entry // total for entry in exact]
    largest = [y for y, entry in enumerate(exact) if entry == most]
    each, left = divmod(SCALE - sum(weights), len(largest))
    for place, y in enumerate(largest):
        weights[y] += each + (place < left)
    return tuple(weights)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Cuts:
    """Cumulative weights that map words to reports: `ends`, shape (rows, reports); and each row's last report."""

    ends: npt.NDArray[np.uint64]
    last: Integers

    @classmethod
    def of(cls, weights: tuple[tuple[int, ...], ...]) -> _Cuts:
        sums = [list(accumulate(row)) for row in weights]
        last = [row.index(row[-1]) for row in sums]
        # The cumulative weights from the last report on are never read (2**64 would not fit).
        ends = [[end if y < stop else 0 for y, end in enumerate(row)] for row, stop in zip(sums, last, strict=True)]
        return cls(ends=np.array(ends, dtype=np.uint64), last=np.array(last, dtype=np.int64))

    def search(self, rows: Integers, words: npt.NDArray[np.uint64]) -> Integers:
        """Return the report that each random word selects: the number of cumulative weights of its row <= the word."""
        low, high = np.zeros(words.size, dtype=np.int64), self.last[rows]
        for _ in range(int(self.last.max()).bit_length()):
            middle = (low + high) >> 1
            beyond = (self.ends[rows, middle] <= words) & (middle < high)
            low, high = np.where(beyond, middle + 1, low), np.where(beyond, high, middle)
        return low
