"""delta as a function of epsilon for one given dataset of n people, over all neighbours of that dataset.

The other people's values are fixed, so the distribution of the counts is a convolution of their reports'
distributions. One person's value changes from a to b; m_a and m_b other people have the values a and b:

* k = 2 values: the number of ones is a sufficient statistic, see `tilted_counts`.
* k = 3: the counts at a and b are sufficient; the lower and the upper bound agree up to rounding.
* k > 3, lower bound: the other counts are merged, which is post-processing.
* k > 3, upper bound: the adversary is given the truthful reports of all people whose value is neither a nor b. M of
  these people remain, M ~ Bin(others, gamma), with uniform reports. Then reports outside {a, b} are uniform whatever
  the target's value is, so the two counts and M are sufficient. With fewer people at a or b the upper bound only
  grows (their truthful reports may be given as well), so pairs of the rarest values are the worst.

Source: docs/theory/datasets.md, Theorem 5.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle.curves.base import ReportCurve
from hushuffle.curves.laws import tilted_counts
from hushuffle.curves.laws.tilted_counts import Compositions
from hushuffle.errors import NumericalError
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Witness
from hushuffle.model.citation import DARROCH
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import LOG_TAIL, CountRows
from hushuffle.numerics.pair_counts import PairGroup, PairLaw, cells

FAMILY: Final = "this dataset only, no guarantee"
"""Family name of the witness of a figure for one given dataset."""

_FINE: Final = 5e-3
"""Relative change of a count's variance up to which neighbouring M share a row."""

_HIDDEN: Final = 1e-3
"""Largest accepted rounding error, relative to the divergence."""

_WORK: Final = 1 << 24
"""Largest number of cells of all rows of M together: takes about ten seconds."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One person's value changes from `before` to `after`; `others` counts the other people by value, shape (k,)."""

    others: tuple[int, ...]
    before: int
    after: int

    @property
    def witness(self) -> Witness:
        return Witness(family=FAMILY, others=self.others, target=(self.before, self.after))


def changes(people: tuple[int, ...]) -> list[Change]:
    """The changes of one person's value that can be worst: all if k <= 3, else between the rarest values.

    >>> [(change.before, change.after) for change in changes((5, 1, 0, 7))]
    [(1, 2)]
    """
    values = sorted(range(len(people)), key=lambda value: people[value])
    held = [value for value in values if people[value] > 0]
    if len(people) > 3:
        held = held[:2] if people[values[0]] > 0 else held[:1]
        values = values[:2]
    changes: dict[tuple[int, ...], Change] = {}
    for before in held:
        others = tuple(count - (value == before) for value, count in enumerate(people))
        for after in values:
            if after != before:
                key = tuple(sorted((others[before], others[after])))
                changes.setdefault(key, Change(others=others, before=before, after=after))
    return list(changes.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownDataset(ReportCurve):
    """Privacy curve of one given dataset: the largest divergence over `changes` of one person's value."""

    changes: list[Change]
    sources = (DARROCH,)

    @abstractmethod
    def ends(self, epsilon: float) -> tuple[float, float, Witness]:
        """Return a certified lower and upper bound on delta(epsilon), and the datasets that attain the lower bound."""

    @abstractmethod
    def below_at(self, change: int, epsilon: float) -> float:
        """Return the lower bound on delta at `epsilon` for change number `change`."""

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        places = [place for place, change in enumerate(self.changes) if change.witness == witness]
        return self.below_at(places[0], epsilon) if places else 0.0

    def upper(self, epsilon: float) -> float:
        return self.ends(epsilon)[1]

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        low, _, witness = self.ends(epsilon)
        return low, witness


@dataclass(frozen=True, kw_only=True, eq=False)
class BinaryDataset(KnownDataset):
    """Privacy curve of one given dataset with k = 2 values; `rows`: one row per change and order of the datasets."""

    rows: Compositions
    truth: float
    lie: float

    @classmethod
    def of(cls, people: tuple[int, ...], law: Symmetric, dummies: int, *, local_epsilon: float) -> BinaryDataset:
        candidates = changes(people)
        ones, zeros = np.array([change.others[::-1] for change in candidates], dtype=np.float64).T
        rows = Compositions(ones=np.concatenate([ones, zeros]), zeros=np.concatenate([zeros, ones]), dummies=dummies)
        return cls(
            changes=candidates, local_epsilon=local_epsilon, rows=rows, truth=float(law.truth), lie=float(law.lie)
        )

    def below_at(self, change: int, epsilon: float) -> float:
        low, _ = tilted_counts.hockey_stick(self.rows, truth=self.truth, lie=self.lie, epsilon=epsilon)
        return float(low[change])

    def ends(self, epsilon: float) -> tuple[float, float, Witness]:
        low, high = tilted_counts.hockey_stick(self.rows, truth=self.truth, lie=self.lie, epsilon=epsilon)
        best = int(low.argmax())
        return float(low[best]), float(high.max()), self.changes[best % len(self.changes)].witness


@dataclass(frozen=True, kw_only=True, eq=False)
class KaryDataset(KnownDataset):
    """Privacy curve of one given dataset with k >= 3 values: `below` gives lower bounds, `above` upper bounds."""

    below: list[PairLaw]
    above: list[PairLaw]

    @classmethod
    def of(
        cls, people: tuple[int, ...], law: Symmetric, dummies: int, level: float, *, local_epsilon: float
    ) -> KaryDataset:
        """The curve for `people[x]` people with value x, and for delta of about `level`."""
        candidates = changes(people)
        below = [_merged(change, law, dummies, level) for change in candidates]
        above = below if law.k == 3 else [_revealed(change, law, dummies, level) for change in candidates]
        if max(pair.error(0.0) for pair in (*below, *above)) > _HIDDEN * level:
            message = f"Rounding hides a divergence of {level:g} at this n. Use a larger delta or a smaller n."
            raise NumericalError(message)
        return cls(changes=candidates, local_epsilon=local_epsilon, below=below, above=above)

    def below_at(self, change: int, epsilon: float) -> float:
        return self.below[change].hockey_stick(epsilon)[0]

    def ends(self, epsilon: float) -> tuple[float, float, Witness]:
        lows = [law.hockey_stick(epsilon)[0] for law in self.below]
        best = int(np.argmax(lows))
        high = max(law.hockey_stick(epsilon)[1] for law in self.above)
        return lows[best], max(high, lows[best]), self.changes[best].witness


def _merged(change: Change, law: Symmetric, dummies: int, level: float) -> PairLaw:
    """Distribution of the counts at the two values of the change; other counts are merged."""
    truth, lie, (at_a, at_b, elsewhere) = float(law.truth), float(law.lie), _split(change)
    groups = (
        PairGroup(people=at_a, first=truth, second=lie),
        PairGroup(people=at_b, first=lie, second=truth),
        PairGroup(people=elsewhere, first=lie, second=lie),
        PairGroup(people=dummies, first=1 / law.k, second=1 / law.k),
    )
    return PairLaw.of(_some(groups), truth=truth, lie=lie, level=level)


def _revealed(change: Change, law: Symmetric, dummies: int, level: float) -> PairLaw:
    """Distribution of the two counts and M; people with other values, except M, are revealed."""
    truth, lie, (at_a, at_b, elsewhere) = float(law.truth), float(law.lie), _split(change)

    def others(reports: int) -> list[PairGroup]:
        groups = (
            PairGroup(people=at_a, first=truth, second=lie),
            PairGroup(people=at_b, first=lie, second=truth),
            PairGroup(people=reports + dummies, first=1 / law.k, second=1 / law.k),
        )
        return _some(groups)

    low, high = binomial.window(elsewhere, float(law.gamma), math.log(level) - 16)
    variance = min(sum(group.people * p * (1 - p) for group in others(low) for p in (group.first, group.second)), 1e15)
    step = max(1, int(_FINE * law.k * variance / 2), (high - low + 1) * cells(others(high), level) // _WORK)
    rows = CountRows.of(elsewhere, float(law.gamma), step=step)
    weight = rows.at_most
    retained = np.flatnonzero(weight > 1e-8 * level / weight.size)
    outside = float(weight.sum() - weight[retained].sum()) + 2 * math.exp(LOG_TAIL)
    # More uniform reports hide better than fewer, so the smallest M of a row gives an upper bound for the row.
    parts = (
        (float(weight[row]), PairLaw.of(others(int(rows.first[row])), truth=truth, lie=lie, level=level))
        for row in retained
    )
    return PairLaw.mixture(parts, outside=outside)


def _split(change: Change) -> tuple[int, int, int]:
    at_a, at_b = change.others[change.before], change.others[change.after]
    return at_a, at_b, sum(change.others) - at_a - at_b


def _some(groups: tuple[PairGroup, ...]) -> list[PairGroup]:
    return [group for group in groups if group.people]
