"""Columns of flipped bits in small crowds: references (see `flipped_reference`) of which every dataset reaches one.

The adversary knows the dataset, so the reference may depend on it. Let o_z(r) be the weight of bit pattern z for the
reference r. If sum over references of v_r o_z(r) >= 1 for each z, and sum of v_r T_r <= n - 1, every dataset has a
reference r for which the weights add up to T_r or more. So the largest bound over these references is valid for every
dataset. A linear programme selects references, factors and v.

Source: docs/theory/crowds.md, Theorems 3 and 4, Corollary 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, Literal

import numpy as np
import scipy  # its modules are imported on first use

from hushuffle.curves.laws.flipped_reference import Reference
from hushuffle.curves.laws.kinds import local

_WIDEST: Final = 6
"""Largest number of bits for which other factors than p/q are tried: beyond, it takes a minute for a few per cent."""

_MARGIN: Final = 1e-10
"""Part of all columns that thresholds leave for rounding errors."""

_STRIDE: Final = 1.2
"""Step of epsilon, in units of the logarithm of the part of all columns that thresholds need."""

_CLOSE: Final = 0.03
"""Logarithm of that part from which no further step is taken."""

_STEPS: Final = 4
"""Largest number of steps towards the epsilon for which references are selected: where they need just all columns."""

_UNSETTLED: Final = 1.5
"""Part from which the search has not ended, so that there are no references."""

_POWERS: Final = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Powers in all bits of the references that are tried first."""

_GOOD: Final = 1.0
"""Part of its costs by which a reference may be dearer than those selected, to be tried in the next step."""


Cover = Literal["weighted", "whole", "alike"]
"""References of any powers that need the fewest columns; one for which all columns weigh 1; all of power 1."""

COVERS: Final[tuple[Cover, ...]] = ("weighted", "whole", "alike")

Selection = tuple[float, float, list[Reference]]
"""An epsilon, the part of all columns that the references' thresholds need there, and the references."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedPools:
    """Upper bound on delta for a target among `people` >= 1 other columns of `width` flipped bits.

    References are selected for a delta of about `level`. Any choice gives an upper bound at every epsilon.
    """

    width: int
    flip: Fraction
    people: int
    level: float = 1e-6
    cache: dict[tuple[int, Cover], tuple[float, tuple[Reference, ...]]] = field(default_factory=dict)

    def upper(
        self, epsilon: float, distances: Iterable[int] = (), *, covers: Iterable[Cover] = COVERS, enough: float = 1.0
    ) -> float:
        """Return an upper bound on delta over pairs at the Hamming distances `distances` (empty: all).

        Later `covers` are evaluated if the bound is above `level`. A bound above `enough` may be replaced by 1.

        >>> pools = WeightedPools(width=6, flip=Fraction(1, 10), people=9_999, level=1e-4)
        >>> pools.upper(5.4, (6,)) < 1e-4
        True
        """
        worst = 0.0
        for distance in distances or range(self.width, 0, -1):
            value = 1.0 if epsilon < distance * self._bit * (1 + 1e-12) else 0.0
            for cover in covers:
                if value > max(worst, self.level):
                    value = min(value, self._bound(distance, cover, epsilon, worst))
            worst = max(worst, value)
            if worst > enough:
                return 1.0
        return min(worst * (1 + 1e-9), 1.0)

    def _bound(self, distance: int, cover: Cover, epsilon: float, above: float) -> float:
        """Return the largest bound over the references of a cover, or any number up to `above`."""
        references = self.references(distance, cover)
        worst = above if references else 1.0
        for each in references:
            near, far, *_ = each.tables[0]
            value = float(local(near, far, epsilon))
            if value > worst and cover != "alike":
                value = min(value, each.bound(epsilon, self.level, above=worst))
            for fine in (False, True) if cover == "alike" else ():
                if value > worst:
                    value = min(value, each.among(self.people, epsilon, fine=fine))
            worst = max(worst, value)
        return worst

    def references(self, distance: int, cover: Cover) -> tuple[Reference, ...]:
        """Return references with thresholds of which every dataset reaches one; there may be none.

        The bound for pairs at this distance is about `level` where the thresholds need just all columns.
        """
        if cover == "whole":
            return (replace(Reference.every(self.width, self.flip, distance, (0,))[0], threshold=float(self.people)),)
        if cover == "weighted" and self.width > _WIDEST:
            return ()
        if (distance, cover) not in self.cache:
            pure = distance * self._bit
            if distance == self.width and cover == "alike":
                epsilon = pure / 2
            else:
                near: Cover = cover if distance < self.width else "alike"
                self.references(self.width, near)
                epsilon = min(self.cache[self.width, near][0], pure)
            epsilon, part, chosen = (self._weighted if cover == "weighted" else self._alike)(distance, epsilon, pure)
            whole = (1 - _MARGIN) / part
            self.cache[distance, cover] = (
                epsilon,
                tuple(replace(each, threshold=each.threshold * whole) for each in chosen),
            )
        return self.cache[distance, cover][1]

    def _alike(self, distance: int, epsilon: float, pure: float) -> Selection:
        """Return an epsilon, the part of columns that is needed there, and a reference for each bit pattern.

        All powers are 1. As sum over r of q**k o_z(r) is 1, v may be q**k for each.
        """
        every, part = Reference.every(self.width, self.flip, distance, (1,)), 1.0
        for _ in range(_STEPS):
            every = [each.alone(epsilon, self.level, self.people) for each in every]
            total = sum(each.number * each.threshold for each in every)
            part = float((1 - self.flip) ** self.width) * total / self.people
            if abs(math.log(part)) < _CLOSE:
                break
            epsilon = min(max(epsilon + _STRIDE * math.log(part), 0.0), pure)
        return epsilon, part, every

    def _weighted(self, distance: int, epsilon: float, pure: float) -> Selection:
        """Return what `_alike` does, for the references, of any powers, that need the fewest columns."""
        tried, part = Reference.every(self.width, self.flip, distance, _POWERS), math.inf
        epsilon, chosen = min(epsilon, 0.99 * pure), list[Reference]()
        for fit, steps in (Reference.fitted, 2 * _STEPS), (Reference.closer, _STEPS):
            low, high = 0.02 * pure, 0.99 * pure
            for _ in range(steps):
                chosen, good, part = self._selected([fit(each, epsilon, self.level, self.people) for each in tried])
                low, high = (epsilon, high) if part > 1 else (low, epsilon)
                if fit is Reference.fitted and abs(math.log(part)) < _CLOSE:
                    break
                step = epsilon + _STRIDE * math.log(part)
                epsilon = step if low < step < high else (low + high) / 2
                others = {(each.bits, each.powers): each for one in chosen for each in one.near()}
                tried = [*good, *others.values()] if fit is Reference.fitted else chosen
            tried = chosen
        return epsilon, part, chosen if part < _UNSETTLED else []

    def _selected(self, fitted: list[Reference]) -> tuple[list[Reference], list[Reference], float]:
        """Return references that cover all datasets, nearly as good ones, and the part of columns that is needed."""
        tried = [each for each in fitted if math.isfinite(each.threshold)]
        sums = [each.total() for each in tried]
        table = np.array([[each[kind] for each in sums] for kind in (sums[0] if sums else ())])
        costs = np.array([each.number * each.threshold for each in tried])
        solution = scipy.optimize.linprog(costs, A_ub=-table, b_ub=-np.ones(len(table))) if tried else None
        if solution is None or solution.status != 0:
            return [], fitted, math.inf
        shares = np.asarray(solution.x)
        covered = float((table @ shares).min())  # at least 1, but for rounding errors
        spare = costs + solution.ineqlin.marginals @ table
        good = [each for each, more in zip(tried, (spare <= _GOOD * costs).tolist(), strict=True) if more]
        used = [each for each, share in zip(tried, shares, strict=True) if share > 0]
        return used, good, float(costs @ shares) / covered / self.people

    @property
    def _bit(self) -> float:
        """Local epsilon of one bit."""
        return math.log((1 - self.flip) / self.flip)
