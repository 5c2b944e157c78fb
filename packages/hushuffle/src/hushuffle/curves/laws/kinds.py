"""Distributions of a report over classes: for the target's two values, and for every type of other person.

People with the same report distribution are of one type (`kind` in the code). Inside a class all likelihood ratios are
constant. `own` is the distribution of another person's report, given that it is not in the pool of common reports (see
the module `pooled`); without a pool, it is unconditional. `Others` has these people in groups of one randomizer each;
a group's values are rows of a matrix.

Source: docs/theory/pool.md, Theorem 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from operator import itemgetter
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.mechanisms.randomizers import ValueLaws
from hushuffle.model import Witness
from hushuffle.numerics.binomial import EPS, LOG_TAIL, CountRows, Floats
from hushuffle.numerics.score_sums import FAINT, ReportScores

NOISE: Final = 24 * EPS
"""Rounding errors: a score is off by at most this times its `size`, a probability by this times itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kinds:
    """Report distributions of the target's two values and of several types of other people, over classes of reports.

    `near` is Q_a and `far` is Q_b. `own` has the distributions of all types, concatenated. Shapes: (classes,).
    The classes of type i begin at `starts[i]`, shape (kinds,).
    """

    near: Floats
    far: Floats
    own: Floats
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, near: Floats, far: Floats, owns: Floats) -> Kinds:
        """Return the types whose report distributions are the rows of `owns`, shape (..., kinds, classes).

        `near` and `far` have shape (..., classes).
        """
        near, far = (np.broadcast_to(each[..., None, :], owns.shape).ravel() for each in (near, far))
        return cls(near=near, far=far, own=owns.ravel(), starts=np.arange(0, owns.size, owns.shape[-1]))

    @classmethod
    def listed(cls, parts: Sequence[tuple[Floats, Floats, Floats]]) -> Kinds:
        """Return the types in `parts`: the arrays near, far and own of each type, over classes of its own."""
        near, far, own = (np.concatenate([part[place] for part in parts]) for place in range(3))
        starts = np.cumsum([0, *(part[0].size for part in parts)])[:-1]
        return Kinds(near=near, far=far, own=own, starts=starts)

    def part(self, kind: int) -> Kinds:
        """Return the distributions for type number `kind` only."""
        inside = slice(self.starts[kind], self.starts[kind + 1] if kind + 1 < self.starts.size else None)
        return Kinds(
            near=self.near[inside], far=self.far[inside], own=self.own[inside], starts=np.zeros(1, dtype=np.int64)
        )

    def joined(self, *others: Kinds) -> Kinds:
        """Return the types of this object followed by those of `others`."""
        every = (self, *others)
        ends = np.cumsum([0, *(each.near.size for each in every)]).tolist()
        return Kinds(
            near=np.concatenate([each.near for each in every]),
            far=np.concatenate([each.far for each in every]),
            own=np.concatenate([each.own for each in every]),
            starts=np.concatenate([end + each.starts for each, end in zip(every, ends[:-1], strict=True)]),
        )

    def sums(self, terms: Floats) -> Floats:
        """Sum `terms`, shape (classes,), over the classes of each type; return the sums, shape (kinds,)."""
        return np.asarray(np.add.reduceat(terms, self.starts))

    def gain(self, epsilon: float) -> tuple[Floats, Floats]:
        """Return Q_a - e**epsilon Q_b of each class, and the size that scales its rounding error, shapes (classes,)."""
        return gain(self.near, self.far, epsilon)

    def scores(self, epsilon: float) -> ReportScores:
        """Return scores (Q_a - e**epsilon Q_b)/own with probability `own`; both are 0 where only the target reports."""
        gain, size = self.gain(epsilon)
        hidden = self.own >= FAINT
        mass = np.where(hidden, self.own, 1.0)
        scores = ReportScores.of(np.where(hidden, gain, 0.0), np.where(hidden, size, 0.0), mass)
        return replace(scores, mass=np.where(hidden, self.own, 0.0))

    def seen(self, epsilon: float) -> Floats:
        """Return each type's divergence from reports that it (almost) never sends, rounded up, shape (kinds,)."""
        gain, size = self.gain(epsilon)
        return self.sums(np.where(self.own < FAINT, np.maximum(gain + 8 * EPS * size, 0.0), 0.0)) * (1 + 1e-12)

    def local(self, epsilon: float) -> float:
        """Return the divergence of one unshuffled report, rounded up."""
        report = self.part(0)
        return min(float(local(report.near, report.far, epsilon)), 1.0)


def gain(first: Floats, second: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Return Q_a - e**epsilon Q_b of each class, and the size that scales its rounding error."""
    return (first - second) - math.expm1(epsilon) * second, first + math.exp(epsilon) * second


def local(first: Floats, second: Floats, epsilon: float) -> Floats:
    """Return one unshuffled report's divergence: (Q_a - e**epsilon Q_b)_+ summed on the last axis, rounded up."""
    value, size = gain(first, second, epsilon)
    total: Floats = np.maximum(value + 8 * EPS * size, 0.0).sum(axis=-1) * (1 + 4 * EPS * first.shape[-1])
    return total


_LONGEST: Final = 1 << 20
"""Largest number of values in the list of a witness."""

_DATASETS: Final = 4096
"""Largest number of choices of a value for each group; beyond, all groups have the same value."""

_BIN: Final = 1e-3
"""Width of a bin of the number of reports, relative to the mean number."""

Place = tuple[int, int]
"""A pair of values: an index in a tuple of `ValueLaws`, and an index in the `pairs` of that entry."""

Places = Sequence[Place]

Background = tuple[int, ...]
"""Values of the other people: for each group, the matrix row of the value that all its people have."""


@dataclass(frozen=True)
class Others:
    """The other people: `groups` lists each group's number of people, and its index in the report distributions."""

    groups: tuple[tuple[int, int], ...]

    @classmethod
    def alike(cls, people: int) -> Others:
        """Return `people` other people who all have the target's randomizer."""
        return cls(((people, 0),))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of people in each group."""
        return tuple(count for count, _ in self.groups)

    @property
    def present(self) -> tuple[tuple[int, int], ...]:
        """The groups with at least one person."""
        return tuple(group for group in self.groups if group[0])

    @property
    def people(self) -> int:
        """Total number of other people."""
        return sum(self.sizes)

    def backgrounds(self, law: ValueLaws) -> tuple[Background, ...]:
        """Return the datasets of other people to examine; in each dataset, all people of a group have one value."""
        rows = self._rows(law)
        if math.prod(len(own) for own in rows) <= _DATASETS:
            return tuple(product(*rows))
        return tuple(self.at(law, place) for place in range(max(len(own) for own in rows)))

    def at(self, law: ValueLaws, place: int) -> Background:
        """Return the dataset in which every group has value number `place`, or its last value if it has fewer."""
        return tuple(own[min(place, len(own) - 1)] for own in self._rows(law))

    def reports(self, law: ValueLaws, held: Background) -> tuple[tuple[int, Floats], ...]:
        """Return each group's number of reports, and the distribution of a report over the classes."""
        return tuple((count, law.rows[row]) for (count, _), row in zip(self.groups, held, strict=True))

    def unmatched(self, law: ValueLaws, dummies: int) -> float:
        """Return the largest probability of a report that only the target's value can cause.

        The target's other value, the other people in some dataset, and dummies never send this report.

        >>> law = ValueLaws(
        ...     rows=np.eye(2), labels=(0, 1), blanket=np.array([0.5, 0.5]), weight=0.0, pairs=((0, 1),)
        ... )
        >>> round(Others.alike(9).unmatched(law, 0), 12), Others.alike(9).unmatched(law, 1)
        (1.0, 0.0)
        """
        first, second = (law.rows[[pair[side] for pair in law.pairs]] for side in (0, 1))
        given = [
            np.sum([count * each for count, each in (*self.reports(law, held), (dummies, law.blanket))], axis=0)
            for held in self.backgrounds(law)
        ]
        chances = np.where(second == 0, first, 0.0) @ (np.stack(given) == 0).T
        return float(chances.max()) * (1 - 64 * EPS)

    def witness(self, law: ValueLaws, pair: tuple[int, int], held: Background) -> Witness:
        """Return the witness; `pair` has the rows of the target's two values, `held` those of the others' values."""
        target = law.labels[pair[0]], law.labels[pair[1]]
        values = [law.labels[row] for row in held]
        if len(set(values)) > 1:
            there = Counter[int]()
            for (count, _), value in zip(self.groups, values, strict=True):
                there[value] += count
            name = f"all others of a group at one value, {', '.join(map(str, values))} in turn"
            return Witness(family=name, others=tuple(there[value] for value in range(max(values) + 1)), target=target)
        other = values[0] if values else 0
        name = "all others at a third value" if other not in target else "all others at one of the target's values"
        if other >= _LONGEST:  # only bit patterns have so many values, and complementing bits moves the others to 0
            target, other = (target[0] ^ other, target[1] ^ other), 0
        return Witness(family=name, others=(0,) * other + (self.people,), target=target)

    def _rows(self, law: ValueLaws) -> list[range]:
        return [range(*law.groups[group].indices(law.rows.shape[0])) for _, group in self.groups]


def every_place(laws: tuple[ValueLaws, ...]) -> tuple[tuple[int, int], ...]:
    """Return the places of all pairs of values in `laws`."""
    return tuple((i, j) for i, law in enumerate(laws) for j in range(len(law.pairs)))


def parts(laws: tuple[ValueLaws, ...], places: Places) -> Iterator[tuple[Places, Floats, Floats]]:
    """Yield at most 4,096 places of one law, and their distributions Q_a and Q_b, shapes (places, classes)."""
    for i, group in groupby(places, key=itemgetter(0)):
        alike = list(group)
        for start in range(0, len(alike), 4096):
            part = alike[start : start + 4096]
            near, far = laws[i].rows[np.array([laws[i].pairs[j] for _, j in part]).T]
            yield part, near, far


def largest(laws: tuple[ValueLaws, ...], places: Places, epsilon: float) -> tuple[float, Place]:
    """Return the largest divergence of one unshuffled report, rounded up, and its pair of values."""
    each = [(np.minimum(local(near, far, epsilon), 1.0), part) for part, near, far in parts(laws, places)]
    return max(((float(value.max()), part[int(value.argmax())]) for value, part in each), key=itemgetter(0))


def covered_reports(groups: tuple[tuple[int, float], ...], dummies: int) -> tuple[Floats, Floats, float]:
    """Return the distribution of N, the number of reports in the privacy blanket, including the target's report.

    `groups` lists each group's number of people, and the probability that their report is in the blanket. The result
    has the numbers N, their probabilities divided by N, shape (J,), and the probability of all other numbers. Each N
    is rounded down to the smallest number of its bin.

    >>> counts, weights, _ = covered_reports(((1, 0.5), (1, 0.25)), 0)
    >>> counts.tolist(), (counts * weights).round(12).tolist()
    ([1.0, 2.0, 3.0], [0.375, 0.5, 0.125])
    """
    step = max(1, int(_BIN * (sum(count * weight for count, weight in groups) + dummies)))
    first, mass = 1.0 + dummies, np.ones(1)
    for count, weight in groups:
        rows = CountRows.of(count, weight, step=step)
        first, mass = first + rows.first[0], np.convolve(mass, rows.at_most) * (1 + 4 * EPS * rows.first.size)
    counts = first + step * np.arange(mass.size, dtype=np.float64)
    return counts, mass / counts, 4 * len(groups) * math.exp(LOG_TAIL)
