"""Views of the columns of several publishers' filters: a shuffler counts what they show, and adds dummies.

Column i holds position i of all publishers' filters: bits, or numbers of contacts. The shuffler has the columns without
the key of the hash functions. A view maps each column to a cell. The shuffler releases, for each view, how many columns
are in each cell, plus an independent random number of dummies. The number of columns is public.

Source: docs/theory/histograms.md, Theorem 4 and Corollary 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Floats, Integers
from hushuffle.mechanisms.shufflers.dummy_law import DummyLaw
from hushuffle.mechanisms.shufflers.source import GeometricDummies
from hushuffle.mechanisms.sketches.filters import MOST_BITS, MOST_HASHES
from hushuffle.model import Histogram
from hushuffle.randomness import secure

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness

Dummies = DummyLaw | GeometricDummies
Shown = Literal["union", "pairs", "patterns", "contacts"]
SHOWN: Final[tuple[Shown, ...]] = get_args(Shown)
MOST_PUBLISHERS: Final = 20
MOST_CONTACTS: Final = 255
_LARGEST: Final = 1 << 31


@dataclass(frozen=True, kw_only=True)
class ColumnView:
    """Counts of columns to release, with dummies. A column holds the entries of all Bloom filters at one position.

    Args:
        publishers: numbers (from 0) of the publishers whose entries of a column the view uses, without repetition.
        shows: "union" counts the columns with an entry above 0. "pairs" counts, for each publisher, the columns with
            such an entry, and, for each two, the columns with an entry of exactly one of them. "patterns" counts each
            of the 2**s bit patterns of the s publishers. "contacts" counts the columns by the sum of their entries, 0
            to `most`; larger sums count as `most`.
        each: distribution of the number of dummies, drawn for each count.
        most: largest number of contacts, 1 to 255; only for "contacts".
        empty: only for "patterns": the distribution for the columns without any entry (None: `each`). Their number
            gives the union of all `publishers`. Less noise here costs little epsilon: if a column with entries changes
            to another pattern with entries, this number does not change.
        single: only for "pairs": the distribution for the counts of one publisher (None: `each`).

    Raises:
        InvalidInputError: an argument is out of range.

    >>> import hushuffle as hs
    >>> hs.ColumnView(publishers=(0, 2), shows="patterns", each=hs.DummyLaw.geometric(mean=10.0)).cells
    4
    """

    publishers: tuple[int, ...]
    each: Dummies
    shows: Shown = "union"
    most: int | None = None
    empty: Dummies | None = None
    single: Dummies | None = None

    def __post_init__(self) -> None:
        if self.shows not in SHOWN:
            _checks.reject("shows", f"one of {', '.join(SHOWN)}", self.shows)
        _checks.of_type("each", self.each, DummyLaw, GeometricDummies)
        for name, shows in (("empty", "patterns"), ("single", "pairs")):
            if (law := getattr(self, name)) is not None:
                _checks.of_type(name, law, DummyLaw, GeometricDummies)
                if self.shows != shows:
                    _checks.reject(name, f'given only with shows="{shows}"', repr(law))
        chosen = tuple(_checks.integer("publishers", place, low=0) for place in self.publishers)
        if not chosen or not len(set(chosen)) == len(chosen) <= MOST_PUBLISHERS:
            _checks.reject("publishers", f"1 to {MOST_PUBLISHERS} publishers, each once", chosen)
        if self.shows == "contacts":
            _checks.set_fields(self, most=_checks.integer("most", self.most or 0, low=1, high=MOST_CONTACTS))
        elif self.most is not None:
            _checks.reject("most", 'given only with shows="contacts"', self.most)
        _checks.set_fields(self, publishers=chosen)

    @property
    def cells(self) -> int:
        """Number of released counts."""
        return self._values - self._unseen

    @property
    def moved(self) -> int:
        """Largest number of released counts that change by 1 if one column changes."""
        width = len(self.publishers)
        return max(self.changed(width // 2 + 1), self.changed(width)) if self.shows == "pairs" else 2 - self._unseen

    def changed(self, bits: int) -> int:
        """Return how many counts of "pairs" change if the entries of `bits` of its publishers change."""
        return bits * (1 + len(self.publishers) - bits)

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets of publishers whose unions "pairs" shows, in the order of its counts."""
        return tuple(chosen for size in (1, 2) for chosen in combinations(self.publishers, size))

    @property
    def dummies(self) -> float:
        """Mean number of dummies of all released counts together."""
        return float(self.means.sum())

    @property
    def means(self) -> Floats:
        """Mean number of dummies of each released count, shape (cells,)."""
        return self._by_cell(lambda law: law.mean)

    @property
    def variances(self) -> Floats:
        """Variance of the number of dummies of each released count, shape (cells,)."""
        return self._by_cell(lambda law: law.variance)

    @property
    def laws(self) -> tuple[tuple[Dummies, int], ...]:
        """Pairs (distribution of dummies, number of counts with it), for the first counts and for the others."""
        first = {"patterns": 1, "pairs": len(self.publishers)}.get(self.shows, 0)
        return ((self.single or self.empty or self.each, first), (self.each, self.cells - first))

    def _by_cell(self, figure: Callable[[Dummies], float]) -> Floats:
        return np.concatenate([np.full(count, figure(law)) for law, count in self.laws])

    def draw(self, rng: Randomness) -> Integers:
        """Draw the number of dummies of each released count, shape (cells,)."""
        return np.concatenate([law.draws(count, rng) for law, count in self.laws])

    @property
    def _unseen(self) -> int:
        """Number of cells that are not released: columns without any entry, whose number follows from the others'."""
        return 1 if self.shows == "union" else 0

    @property
    def _values(self) -> int:
        width = len(self.publishers)
        sizes = {"union": 2, "pairs": width * (width + 1) // 2, "contacts": (self.most or 0) + 1}
        return sizes.get(self.shows, 1 << width)

    def tally(self, columns: npt.NDArray[Any], weights: Integers | None = None) -> Integers:
        """Return how many columns are in each released cell, without dummies (private), shape (cells,).

        Args:
            columns: bit patterns, shape (m,), or numbers of contacts, shape (m, publishers).
            weights: how often each of these columns occurs, shape (m,); None: once.

        >>> import hushuffle as hs
        >>> view = hs.ColumnView(publishers=(0, 1), shows="contacts", most=1, each=hs.DummyLaw.of({0: 1.0}))
        >>> view.tally(np.array([0, 1, 2, 3, 4])).tolist()
        [2, 3]
        """
        if columns.ndim == 1:
            places = [columns >> place & 1 for place in self.publishers]
        else:
            places = [columns[:, place] for place in self.publishers]
        if self.shows == "pairs":
            held, times = [entries > 0 for entries in places], np.int64(1) if weights is None else weights
            odd = (*held, *(first ^ second for first, second in combinations(held, 2)))
            return np.array([(each * times).sum() for each in odd], dtype=np.int64)
        cells = np.zeros(columns.shape[0], dtype=np.int64)
        for bit, entries in enumerate(places):
            if self.shows == "contacts":
                cells += entries
            else:
                cells |= (entries > 0).astype(np.int64) << (bit if self.shows == "patterns" else 0)
        np.minimum(cells, self._values - 1, out=cells)
        return np.bincount(cells, weights, minlength=self._values).astype(np.int64)[self._unseen :]


@dataclass(frozen=True, kw_only=True)
class ColumnViews(_checks.ByName):
    """Several views of the same publishers' Bloom filters, released together, each with its own dummies.

    A column holds the entries of all filters at one position. A view (`ColumnView`) releases counts of
    columns, for example of those with each bit pattern.

    Args:
        publishers: number K of publishers, 1 to 20.
        columns: number m of columns (positions of each filter); public.
        views: the released views, one or more.
        hashes: number of hash functions, which is also the largest number of columns that one person changes.

    Raises:
        InvalidInputError: a number is out of range, a view names a publisher that does not exist, or there are more
            than 2**31 released counts.

    >>> import hushuffle as hs
    >>> view = hs.ColumnView(publishers=(0, 1), each=hs.DummyLaw.discrete_laplace(center=90, scale=3.0))
    >>> design = hs.ColumnViews(publishers=2, columns=1000, views=(view,))
    >>> print(hs.bloom.views_epsilon(design, delta=1e-9))
    0.3334 nats (certified bracket)
    """

    publishers: int
    columns: int
    views: tuple[ColumnView, ...]
    hashes: int = 1

    def __post_init__(self) -> None:
        width = _checks.integer("publishers", self.publishers, low=1, high=MOST_PUBLISHERS)
        _checks.set_fields(
            self,
            publishers=width,
            columns=_checks.integer("columns", self.columns, low=1, high=MOST_BITS),
            hashes=_checks.integer("hashes", self.hashes, low=1, high=MOST_HASHES),
            views=tuple(self.views),
        )
        if not self.views:
            _checks.reject("views", "at least one view", "none")
        for view in self.views:
            _checks.of_type("views", view, ColumnView)
            _checks.integer("publishers of a view", max(view.publishers), low=0, high=width - 1)
            if (
                view.shows == "contacts"
                and len(view.publishers) < width
                and "pairs" in {each.shows for each in self.views}
            ):
                _checks.reject("views", "contacts of all publishers beside pairs", f"{len(view.publishers)} of {width}")
        if sum(view.cells for view in self.views) > _LARGEST:
            _checks.reject("views", f"at most {_LARGEST:,} counts in all", "<more>")

    @property
    def dummies(self) -> float:
        """Mean number of dummies of all views."""
        return sum(view.dummies for view in self.views)

    def release(
        self, columns: npt.ArrayLike | Histogram | Iterable[Any], *, rng: Randomness | None = None
    ) -> ColumnCounts:
        """Count what each view shows of the columns, and add fresh dummies to each count: the shuffler's work.

        Args:
            columns: all m columns: their bit patterns, shape (m,) (`hushuffle.mechanisms.sketches.align(filters)`);
                their counts by bit pattern (a `Histogram` of 2**K values); their numbers of contacts, shape (m, K); or
                an iterator of such arrays, chunk by chunk.
            rng: source of randomness; default `hs.secure()`.

        Raises:
            InvalidInputError: there are not m columns, or they do not fit K publishers. No message shows a column.
        """
        # Only contacts need every entry; the other views need how many columns have each pattern of bits.
        entries = [place for place, view in enumerate(self.views) if view.shows == "contacts"]
        counts = [np.zeros(view.cells, dtype=np.int64) for view in self.views]
        patterns = np.zeros(1 << self.publishers, dtype=np.int64)
        for chunk, weights in self._chunks(columns):
            patterns += np.bincount(_bits(chunk), weights, minlength=patterns.size).astype(np.int64)
            for place in entries:
                counts[place] += self.views[place].tally(chunk, weights)
        if (total := int(patterns.sum())) != self.columns:
            _checks.reject("columns", f"m = {self.columns} columns in all", f"<{total} columns>")
        held, source = np.flatnonzero(patterns), secure() if rng is None else rng
        for place, view in enumerate(self.views):
            counts[place] += view.draw(source) + (0 if place in entries else view.tally(held, patterns[held]))
        return ColumnCounts(design=self, counts=tuple(counts))

    def _chunks(self, columns: Any) -> Iterable[tuple[npt.NDArray[Any], Integers | None]]:
        if isinstance(columns, Histogram):
            if columns.k != 1 << self.publishers:
                _checks.reject("columns", f"counts of 2**{self.publishers} bit patterns", columns.k)
            yield np.arange(columns.k), columns.counts
            return
        whole = isinstance(columns, np.ndarray | list | tuple)
        for chunk in [columns] if whole else columns:
            yield self._checked(np.asarray(chunk)), None

    def _checked(self, chunk: npt.NDArray[Any]) -> npt.NDArray[Any]:
        integers = chunk.dtype.kind in "iu" or chunk.size == 0
        shaped = chunk.ndim == 1 or (chunk.ndim == 2 and chunk.shape[1] == self.publishers)
        if not integers or not shaped:
            rule = f"bit patterns, shape (m,), or contacts, shape (m, {self.publishers}), as integers"
            _checks.reject("columns", rule, f"<{chunk.dtype} of shape {chunk.shape}>")
        largest = (1 << self.publishers) - 1 if chunk.ndim == 1 else _LARGEST
        if chunk.size and not (chunk.min() >= 0 and chunk.max() <= largest):
            _checks.reject("columns", f"between 0 and {largest:,}", "<a number out of range>")
        return chunk


def _bits(columns: npt.NDArray[Any]) -> Integers:
    """Return the bit patterns of columns of bit patterns, or of contacts."""
    if columns.ndim == 1:
        return columns.astype(np.int64, copy=False)
    return (columns > 0) @ (1 << np.arange(columns.shape[1]))


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnCounts:
    """A release: for each view of `design`, the number of columns in each cell plus the cell's dummies, shape (cells,).

    A column is one position of all publishers' filters; a view (`ColumnView`) maps each column to a cell.

    Raises:
        InvalidInputError: the counts do not have the shapes of the views.
    """

    design: ColumnViews
    counts: tuple[Integers, ...]

    def __post_init__(self) -> None:
        shapes = [(view.cells,) for view in self.design.views]
        counts = tuple(np.asarray(count) for count in self.counts)
        if [count.shape for count in counts] != shapes or any(count.dtype.kind not in "iu" for count in counts):
            _checks.reject("counts", f"arrays of integers of shapes {shapes}", [count.shape for count in counts])
        _checks.set_fields(self, counts=counts)
