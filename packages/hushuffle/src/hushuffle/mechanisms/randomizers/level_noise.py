"""Noise added to levels: levels near the true level are reported more often than distant levels."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.randomizers.matrix import MatrixRandomizer, Weighted
from hushuffle.mechanisms.settings import SILENT, Setting, SettingsTable
from hushuffle.model import Channel
from hushuffle.model.citation import BLANKET, GHOSH
from hushuffle.numerics.roots import halved

LARGEST: Final = 128
"""Maximum number of levels (every probability is an exact multiple of 2**-64)."""

_LEAST: Final = 1e-3  # nats: far above the effect of rounding on probabilities
_SETTINGS: Final = {
    "epsilon": Setting(
        type="epsilon",
        about="Local privacy loss in nats between the lowest and the highest level: a finite number up to 40.",
    )
}


@dataclass(frozen=True, kw_only=True)
class LevelNoise(Weighted):
    """Adds noise to a level, rounds the result to a level, and clamps it to the first or last level.

    The noise is the smallest that epsilon allows. Probabilities are rounded to multiples of 2**-64; `local_epsilon`
    is computed from the rounded probabilities and is at most `epsilon`.
    """

    levels: int
    epsilon: float
    weights: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    sized = "levels"
    besides_epsilon = "number of levels"

    def __post_init__(self) -> None:
        levels = _checks.integer("levels", self.levels, low=2, high=LARGEST)
        hint = "Without noise take RandomizedResponse(epsilon=math.inf)."
        epsilon = _checks.positive("epsilon", self.epsilon, hint=hint)
        if not _LEAST <= epsilon <= 40:
            _checks.reject("epsilon", f"from {_LEAST:g} to 40", epsilon, SILENT if epsilon < 1 else "")
        _checks.set_fields(self, levels=levels, epsilon=epsilon)
        randomizer = MatrixRandomizer(channel=Channel(matrix=self._matrix(epsilon)))
        share = 1e-16
        while randomizer.local_epsilon > epsilon:  # rounding of the smallest probabilities can exceed epsilon
            share *= 100
            randomizer = MatrixRandomizer(channel=Channel(matrix=self._matrix(epsilon * (1 - share))))
        _checks.set_fields(self, weights=randomizer.weights)

    @abstractmethod
    def _matrix(self, epsilon: float) -> npt.NDArray[np.float64]:
        """Return the matrix of report probabilities, shape (levels, levels), with this local epsilon up to rounding."""


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(LevelNoise):
    """Add two-sided geometric noise to a person's level: a shift of d levels has weight exp(-|d| epsilon/(levels - 1)).

    Results below the first or above the last level are clamped to it. The privacy loss is at most
    epsilon/(levels - 1) nats between neighbouring levels, and `epsilon` between the first and the last level.

    Args:
        levels: number of levels, 2 to 128.
        epsilon: local epsilon in nats, 0.001 to 40.

    Raises:
        InvalidInputError: an argument is out of range.

    Source: Ghosh, Roughgarden, Sundararajan 2009; docs/theory/numbers.md, Theorem 6.

    >>> import hushuffle as hs
    >>> noise = hs.DiscreteLaplace(levels=11, epsilon=2.0)
    >>> round(noise.local_epsilon, 9), noise.channel().matrix[0, :3].round(4).tolist()
    (2.0, [0.5498, 0.0816, 0.0668])
    """

    sources = (GHOSH, BLANKET)
    table = SettingsTable(
        kind="discrete-laplace",
        numbers=True,
        about="Noise for numbers: a report is the level plus two-sided geometric noise, clipped to the bounds.",
        settings=_SETTINGS,
    )

    def _matrix(self, epsilon: float) -> npt.NDArray[np.float64]:
        rate, place = epsilon / (self.levels - 1), np.arange(self.levels)
        fall = math.exp(-rate)
        matrix = np.asarray(-math.expm1(-rate) / (1 + fall) * np.exp(-rate * np.abs(place[:, None] - place)))
        matrix[:, 0] = np.exp(-rate * place) / (1 + fall)
        matrix[:, -1] = matrix[::-1, 0]
        return matrix

    def describe(self) -> str:
        return (
            f"every person reports one of {self.levels:,} levels: the person's level plus two-sided geometric noise "
            f"(discrete Laplace, local epsilon {self.local_epsilon:.4g})"
        )


@dataclass(frozen=True, kw_only=True)
class RoundedGaussian(LevelNoise):
    """Add normal noise to a person's level, round to the nearest level, and clamp to the first or last level.

    Clamping keeps the local epsilon finite. The local epsilon is the privacy loss between the first and the last level.

    Args:
        levels: number of levels, 2 to 128.
        epsilon: local epsilon in nats, 0.001 to 40.

    Raises:
        InvalidInputError: an argument is out of range.

    Source: docs/theory/numbers.md, Theorem 6.

    >>> import hushuffle as hs
    >>> noise = hs.RoundedGaussian(levels=11, epsilon=4.0)
    >>> round(noise.sigma, 3), round(noise.local_epsilon, 6)
    (4.087, 4.0)
    """

    sources = (BLANKET,)
    table = SettingsTable(
        kind="rounded-gaussian",
        numbers=True,
        about="Noise for numbers: a report is the level plus rounded normal noise, clipped to the bounds.",
        settings=_SETTINGS,
    )

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise before it is rounded, in levels."""
        return self._sigma(self.epsilon)

    def _sigma(self, epsilon: float) -> float:
        from scipy import special  # noqa: PLC0415 - a mistyped key waits for nothing heavy

        def quiet(width: float) -> bool:
            near, far = special.log_ndtr(np.array([0.5, 1.5 - self.levels]) / width)
            return bool(near - far <= epsilon)

        return halved(quiet, good=2.0 * self.levels / min(epsilon, 1.0), bad=1e-3, times=100)

    def _matrix(self, epsilon: float) -> npt.NDArray[np.float64]:
        from scipy import special  # noqa: PLC0415 - a mistyped key waits for nothing heavy

        place, sigma = np.arange(self.levels), self._sigma(epsilon)
        away = np.abs(place[:, None] - place)
        matrix = np.asarray(special.ndtr((0.5 - away) / sigma) - special.ndtr((-0.5 - away) / sigma))
        matrix[:, 0] = special.ndtr((0.5 - place) / sigma)
        matrix[:, -1] = matrix[::-1, 0]
        return matrix

    def describe(self) -> str:
        return (
            f"every person reports one of {self.levels:,} levels: the person's level plus normal noise of "
            f"{self.sigma:.4g} levels (rounded Gaussian, local epsilon {self.local_epsilon:.4g})"
        )
