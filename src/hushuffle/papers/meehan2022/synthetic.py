"""People on a map whose values show at three granularities: two clusters of two crescents of two halves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks

LABELS: Final = (
    "warm, upper crescent, left",
    "warm, upper crescent, right",
    "warm, lower crescent, left",
    "warm, lower crescent, right",
    "cool, upper crescent, left",
    "cool, upper crescent, right",
    "cool, lower crescent, left",
    "cool, lower crescent, right",
)

_APART: Final = 4.5  # between the centres of the clusters
_DROP: Final = 0.4  # of the lower crescent against the upper
_BAND: Final = 0.15  # half the thickness of a crescent
_CUT: Final = 0.06  # half the angle between the halves of a crescent


@dataclass(frozen=True, kw_only=True, eq=False)
class Crescents:
    """n people: `points`, shape (n, 2), are public; `labels`, shape (n,), codes 0..7, are private."""

    points: npt.NDArray[np.float64] = field(repr=False)
    labels: npt.NDArray[np.int64] = field(repr=False)

    def coarse(self, ways: int) -> npt.NDArray[np.int64]:
        """Return the labels at 8, 4 (crescents) or 2 (clusters) classes, shape (n,)."""
        return coarse(self.labels, ways)


def crescents(n: int, *, seed: int = 1) -> Crescents:
    """Return n people, each label equally likely, points spread evenly over its half of a crescent.

    Crescents are half circles of radius 1, 0.3 thick, the lower one turned around and reaching into the upper one;
    clusters are 4.5 apart.

    Raises:
        InvalidInputError: n < 1.

    Source: Meehan et al. 2022, figure 1 and section 5 (which give the picture, not the law: this one is ours).

    >>> people = crescents(1000)
    >>> people.points.shape, np.unique(people.coarse(4)).tolist()
    ((1000, 2), [0, 1, 2, 3])
    """
    size = _checks.integer("n", n, low=1)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 8, size)
    half, lower, cool = labels % 2, labels // 2 % 2, labels // 4
    # Left halves of an upper crescent lie at angles above pi/2; the lower crescent is turned by pi.
    first = np.where(half == lower, np.pi / 2 + _CUT, 0.0)
    angle = first + rng.random(size) * (np.pi / 2 - _CUT)
    radius = 1 + _BAND * (2 * rng.random(size) - 1)
    turn = np.where(lower == 1, -1.0, 1.0)
    x = _APART * cool + lower + turn * radius * np.cos(angle)
    y = _DROP * lower + turn * radius * np.sin(angle)
    return Crescents(points=np.column_stack([x, y]), labels=labels)


def coarse(labels: npt.ArrayLike, ways: int) -> npt.NDArray[np.int64]:
    """Return labels 0..7 as 8, 4 or 2 classes.

    Raises:
        InvalidInputError: another number of classes, or labels outside 0..7.

    >>> coarse([0, 3, 5], 4).tolist(), coarse([0, 3, 5], 2).tolist()
    ([0, 1, 2], [0, 0, 1])
    """
    if ways not in {2, 4, 8}:
        _checks.reject("ways", "2, 4 or 8", ways)
    return _checks.codes("labels", labels, k=8) // (8 // ways)
