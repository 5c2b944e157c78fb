"""The people other than the target, in groups with one randomizer each; a group's values are rows of a matrix."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from hushuffle.mechanisms.randomizers import ValueLaws
from hushuffle.model import Witness
from hushuffle.numerics.binomial import EPS, LOG_TAIL, CountRows, Floats

_LONGEST: Final = 1 << 20
"""Largest number of values in the list of a witness."""

_DATASETS: Final = 4096
"""Largest number of choices of a value for each group; beyond, all groups have the same value."""

_BIN: Final = 1e-3
"""Width of a bin of the number of reports, relative to the mean number."""

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
    def people(self) -> int:
        """Total number of other people."""
        return sum(count for count, _ in self.groups)

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
