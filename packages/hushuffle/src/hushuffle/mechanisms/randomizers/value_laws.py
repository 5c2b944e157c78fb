"""`ValueLaws`: report distributions of some values over classes of reports, and the pairs of values to compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b
from itertools import permutations

import numpy as np
import numpy.typing as npt

from hushuffle._checks import Floats

Permutation = npt.NDArray[np.int64]
"""A permutation of the values: entry x is the image of value x, shape (values,)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ValueLaws:
    """Report distributions of some values over classes of reports, and the pairs of values to compare.

    `rows[r, v]` is the probability that a report of value `labels[r]` falls in class v, shape (rows, classes);
    `blanket` is the blanket's distribution over the classes, `weight` its gamma: gamma blanket <= every row. `pairs`
    are pairs of rows. Inside a class the likelihood ratios between the two values of a pair and the blanket are
    constant, so classes preserve every divergence of a pair. The other rows are the distributions of other people's
    reports. `complete`: the ratios to the other rows are constant too, and every value without a row is equivalent to a
    row, for the pair and for the blanket where the pair's two probabilities are equal. `groups`: the rows of each group
    of people's values, if there are several randomizers; `shared`: what all values of each group have in common, shapes
    (classes,). `also`: the same rows under another distribution of the public
    part of a report, which may have a field `also` too; a value's distribution may be a mixture of all.
    """

    rows: Floats
    labels: tuple[int, ...]
    blanket: Floats
    weight: float
    pairs: tuple[tuple[int, int], ...]
    complete: bool = False
    groups: tuple[slice, ...] = (slice(None),)
    shared: tuple[Floats, ...] = ()
    also: ValueLaws | None = None

    @property
    def every(self) -> tuple[ValueLaws, ...]:
        """These distributions, and those in the fields `also`."""
        return (self,) if self.also is None else (self, *self.also.every)

    @cached_property
    def renamed(self) -> tuple[int, ...]:
        """For each pair, the first pair with the same probabilities, with the blanket's, up to the order of classes."""
        first = dict[bytes, int]()
        tables = (np.stack([self.rows[a], self.rows[b], self.blanket]) for a, b in self.pairs)
        ordered = (blake2b(table[:, np.lexsort(table)].tobytes()).digest() for table in tables)
        return tuple(first.setdefault(table, place) for place, table in enumerate(ordered))

    def weighing(self, weight: float) -> ValueLaws:
        """Return these distributions with this `weight` of the blanket, also in the fields `also`."""
        return replace(self, weight=weight, also=self.also and self.also.weighing(weight))

    @classmethod
    def of_first(cls, rows: Floats, *, blanket: Floats, weight: Fraction) -> tuple[ValueLaws, ...]:
        """Return the only class of pairs if all pairs are alike: the values 0 and 1, with the rows of 0, 1, ..."""
        labels = tuple(range(len(rows)))
        pair = cls(rows=rows, labels=labels, blanket=blanket, weight=float(weight), pairs=((0, 1),), complete=True)
        return (pair,)


def different_pairs(
    matrix: Floats, *others: Floats, symmetries: Iterable[Permutation] = ()
) -> tuple[tuple[int, int], ...]:
    """Return ordered pairs of rows, one from each class of pairs that are equal up to a renaming of reports and rows.

    Two pairs are equivalent if each other row of the first pair matches an other row of the second pair: the multisets
    of the reports' probabilities (under the pair, the minimum over all rows, and that row) are equal. `others` are the
    rows of people with other randomizers, which must match in the same way. `symmetries` are permutations of the
    values that may amount to a renaming of reports; each valid permutation saves comparisons of equal pairs.

    >>> different_pairs(np.full((4, 4), 0.1) + 0.6 * np.eye(4))
    ((0, 1),)
    """
    groups = (matrix, *others)
    _, flat = np.unique(np.concatenate([group.ravel() for group in groups]), return_inverse=True)
    ends = np.cumsum([group.size for group in groups])[:-1]
    parts = np.split(flat.ravel().astype(np.int64), ends)
    names = [part.reshape(group.shape) for part, group in zip(parts, groups, strict=True)]
    least = np.stack([part.min(axis=0) for part in names])
    shared = np.unique(least, axis=1, return_inverse=True)[1].ravel().astype(np.int64)
    own, size = names[0], 1 + int(max(flat.max(), shared.max()))
    alike: dict[bytes, list[tuple[int, int]]] = {}
    for a, b in orbits(matrix.shape[0], [each for each in symmetries if _renames(names, each)]):
        reports = np.sort((own[a] * size + own[b]) * size + shared)
        alike.setdefault(reports.tobytes(), []).append((a, b))
    different: dict[bytes, tuple[int, int]] = {}
    for key, pairs in alike.items():
        for a, b in pairs if len(pairs) > 1 else ():
            # Ranks, and not the numbers themselves: times `size` they could overflow.
            reports = np.unique((own[a] * size + own[b]) * size + shared, return_inverse=True)[1].astype(np.int64)
            rows = [b"".join(sorted({row.tobytes() for row in np.sort(reports * size + part)})) for part in names]
            different.setdefault(key + blake2b(b"|".join(rows)).digest(), (a, b))
        if len(pairs) == 1:
            different[key] = pairs[0]
    return tuple(different.values())


def orbits(values: int, symmetries: Sequence[Permutation]) -> Iterator[tuple[int, int]]:
    """Yield one ordered pair of different values for each orbit under the group that the permutations generate.

    >>> list(orbits(4, [np.array([1, 2, 3, 0])]))
    [(0, 1), (0, 2), (0, 3)]
    """
    if not symmetries:
        yield from permutations(range(values), 2)
        return
    first = np.arange(values * values).reshape(values, values)
    before = np.zeros_like(first)
    while not np.array_equal(first, before):
        before = first
        for symmetry in symmetries:
            power = np.asarray(symmetry)
            for _ in range(values.bit_length()):  # powers 1, 2, 4, ... of the permutation cover a cycle in few steps
                first = np.minimum(first, first[np.ix_(power, power)])
                power = power[power]
    yield from ((a, b) for a, b in (divmod(place, values) for place in np.unique(first).tolist()) if a != b)


def ring_symmetries(values: int) -> tuple[Permutation, ...]:
    """Return two permutations of `values` values: the rotation by one (noise on a ring), the reversal (on a line)."""
    return np.roll(np.arange(values), -1), np.arange(values)[::-1]


def _renames(names: Sequence[npt.NDArray[np.int64]], symmetry: Permutation) -> bool:
    """Return whether permuting the values amounts to a renaming of reports, the same for every group of people."""
    order = np.asarray(symmetry)
    if any(part.shape[0] != order.size for part in names):
        return False
    table, moved = np.concatenate(names), np.concatenate([part[order] for part in names])
    return bool(np.array_equal(table[:, np.lexsort(table)], moved[:, np.lexsort(moved)]))
