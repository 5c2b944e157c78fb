"""Square wave: a person's number falls in a bin, and places near this bin are reported more often than others."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Integers
from hushuffle.mechanisms.randomizers.base import Mechanism, in_blocks
from hushuffle.mechanisms.randomizers.report_law import Blanket, ReportLaw
from hushuffle.mechanisms.settings import SILENT, Setting, SettingsTable
from hushuffle.model import Channel
from hushuffle.model.citation import SHANNON, SQUARE_WAVE
from hushuffle.model.report_layout import ReportLayout
from hushuffle.numerics.exact import log_upwards
from hushuffle.randomness import SCALE, Randomness, threshold_for_truth

LARGEST: Final = 2048
"""Maximum number of bins (the report distribution is a matrix)."""


@dataclass(frozen=True, kw_only=True)
class SquareWave(Mechanism):
    """Report a place near the person's bin with probability theta, else a uniformly random place.

    Bins are numbered 0..bins-1 in order, places 0..bins + 2 width - 1. The places near bin x are x..x + 2 width, so
    that the range of places exceeds that of the bins by `width` on each side. theta is rounded down to a multiple of
    2**-64, so that the mechanism is never less private than asked for; `local_epsilon` is the implemented one.

    Args:
        bins: number of bins (levels of a `NumberGrid`), 2 to 2,048.
        epsilon: local epsilon in nats, > 0, `math.inf` allowed.
        width: largest distance of a near place in bins, 0 (randomized response) to (bins - 2)/2; default: `best_width`.

    Raises:
        InvalidInputError: an argument is out of range, or `epsilon` is so small that theta < 2**-64.

    Source: Li, Wang, Lopuhaa-Zwakenberg, Skoric, Li 2020, section 5; docs/theory/numbers.md, Theorem 5.

    >>> import hushuffle as hs
    >>> wave = hs.SquareWave(bins=32, epsilon=1.0)
    >>> wave.width, wave.places, wave.local_epsilon
    (8, 48, 1.0)
    """

    bins: int
    epsilon: float
    width: int | None = None
    threshold: int = field(init=False, repr=False, compare=False)
    sources = (SQUARE_WAVE,)
    sized = "bins"
    besides_epsilon = "number of bins"
    table = SettingsTable(
        kind="square-wave",
        numbers=True,
        about="Square wave for numbers: a report is a point near the level with some probability, or a random point.",
        settings={
            "epsilon": Setting(type="epsilon", about='Local privacy loss in nats; "inf": no noise.'),
            "width": Setting(
                type="integer",
                about="Number of near points on either side (default: the most informative one, Li et al. 2020).",
                limits={"ge": 0},
                optional=True,
            ),
        },
    )

    def __post_init__(self) -> None:
        bins = _checks.integer("bins", self.bins, low=2, high=LARGEST)
        epsilon = _checks.positive("epsilon", self.epsilon, allow_infinite=True, hint="math.inf means no noise.")
        most = (bins - 2) // 2
        width = self.best_width(bins, epsilon) if self.width is None else self.width
        width = _checks.integer("width", width, low=0, high=most, hint="A larger width would cover all bins.")
        threshold = SCALE
        if math.isfinite(epsilon):
            threshold = threshold_for_truth(bins + 2 * width, epsilon, size=2 * width + 1)
        if threshold == 0:
            _checks.reject("epsilon", f"large enough that a report depends on the value at {bins=}", epsilon, SILENT)
        _checks.set_fields(self, bins=bins, epsilon=epsilon, width=width, threshold=threshold)

    @classmethod
    def best_width(cls, bins: int, epsilon: float) -> int:
        """Return the width, in whole bins, that maximizes a bound on the information in a report (Li et al. 2020).

        >>> import hushuffle as hs
        >>> [hs.SquareWave.best_width(100, epsilon) for epsilon in (0.1, 1.0, 4.0)]
        [46, 25, 3]
        """
        share = 0.5 if epsilon < 1 else 0.0
        if 1e-3 < epsilon < 700:
            silent = math.exp(-epsilon)
            share = silent * (epsilon - 1 + silent) / (2 * (1 - (1 + epsilon) * silent))
        return min(math.floor(share * bins), (bins - 2) // 2)

    @property
    def near(self) -> int:
        """Number of places that count as near a bin: 2 width + 1."""
        assert self.width is not None
        return 2 * self.width + 1

    @property
    def places(self) -> int:
        """Number of different reports."""
        return self.bins + self.near - 1

    @property
    def local_epsilon(self) -> float:
        if self.threshold == SCALE:
            return math.inf
        return log_upwards(1 + Fraction(self.threshold * self.places, (SCALE - self.threshold) * self.near))

    @property
    def layout(self) -> ReportLayout:
        return ReportLayout(names=("place",), limits=(self.places,))

    def law(self) -> Waves:
        return Waves(bins=self.bins, near=self.near, theta=Fraction(self.threshold, SCALE))

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        return in_blocks(self._step, _checks.codes("values", values, k=self.bins), rng)

    def _step(self, own: Integers, rng: Randomness) -> Integers:
        honest = rng.coins(self.threshold, own.size)
        near = own + rng.integers(self.near, own.size)
        return np.where(honest, near, rng.integers(self.places, own.size))

    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        return rng.integers(self.places, _checks.integer("count", count, low=0))

    def describe(self) -> str:
        noise = f"local epsilon {self.local_epsilon:.4g}" if math.isfinite(self.epsilon) else "no pure guarantee"
        return (
            f"every person reports a place near their own of {self.bins:,} levels with probability "
            f"{self.threshold / SCALE:.4g}, else any of {self.places:,} places (square wave, {noise})"
        )


@dataclass(frozen=True, kw_only=True)
class Waves(ReportLaw):
    """Report distribution: one of the `near` places near the bin with probability `theta`, else any place."""

    bins: int
    near: int
    theta: Fraction
    sources = (SHANNON,)

    @property
    def places(self) -> int:
        return self.bins + self.near - 1

    @property
    def values(self) -> int:
        return self.bins

    @property
    def told(self) -> Fraction:
        return self.theta

    def channel(self) -> Channel:
        far = (1 - self.theta) / self.places
        matrix = np.full((self.bins, self.places), float(far))
        for x in range(self.bins):
            matrix[x, x : x + self.near] = float(far + self.theta / self.near)
        return Channel(matrix=matrix)

    def blanket(self) -> Blanket:
        return Blanket.uniform(1 - self.theta, self.places)
