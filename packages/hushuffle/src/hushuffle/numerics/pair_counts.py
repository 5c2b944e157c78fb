"""The distribution of the reports of two values, if other people's values are known, and the resulting divergence.

Each person reports a, b or another value; A and B count the reports of a and of b. All people draw independently, so
E[e**(i(sA + tB))] is a product of powers. On a grid of angles with N points per axis, its inverse discrete Fourier
transform is the distribution of (A, B) modulo N. Only counts outside a window of N counts are moved by this;
Bernstein's inequality bounds their probability. `doubt` bounds the rounding errors of nodes, transform and sums in
total variation.

Source: docs/theory/datasets.md, Theorem 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft2, next_fast_len

from hushuffle.errors import NumericalError
from hushuffle.numerics.binomial import EPS, Floats, deviation
from hushuffle.numerics.exact import log1p_parts, turn_parts

LARGEST: Final = 1 << 21
"""Largest number of cells of a distribution. Computing one of this size takes about ten seconds and 300 MB."""


@dataclass(frozen=True, kw_only=True)
class PairGroup:
    """A group of `people` who each report a with probability `first`, and b with probability `second`."""

    people: int
    first: float
    second: float


@dataclass(frozen=True, kw_only=True, eq=False)
class PairLaw:
    """Probabilities of cells if the target has value a (`first`) or value b (`second`), shape (cells,).

    For each of the two distributions, `doubt` bounds the sum of absolute errors plus the mass outside the cells.
    """

    first: Floats
    second: Floats
    doubt: float

    @classmethod
    def of(cls, groups: Sequence[PairGroup], *, truth: float, lie: float, level: float) -> PairLaw:
        """Return the distribution if the other people form `groups`, for divergences of about `level` or more.

        The target reports its true value with probability `truth`, and the other of a and b with probability `lie`.

        >>> law = PairLaw.of([], truth=0.5, lie=0.25, level=0.1)
        >>> [round(end, 9) for end in law.hockey_stick(0.0)]
        [0.25, 0.25]
        """
        log_tail = _log_tail(level)
        shape = _shape(groups, log_tail)
        others, error = _folded(groups, shape)
        at_a, at_b = np.roll(others, 1, axis=0), np.roll(others, 1, axis=1)
        rest = (1 - truth - lie) * others
        first, second = truth * at_a + lie * at_b + rest, lie * at_a + truth * at_b + rest
        keep = first + second > 1e-9 * level / others.size
        lost = float(np.abs(first[~keep]).sum() + np.abs(second[~keep]).sum())
        people = sum(group.people for group in groups)
        outside = 2 * math.exp(log_tail) * sum(period < people + 2 for period in shape)
        return cls(first=first[keep], second=second[keep], doubt=error + lost + outside + 8 * EPS)

    @classmethod
    def mixture(cls, parts: Iterable[tuple[float, PairLaw]], *, outside: float) -> PairLaw:
        """Return the mixture of weighted `parts`, where the part is public; `outside` is the mass of omitted parts."""
        weighted = [(weight, law) for weight, law in parts if weight > 0]
        return cls(
            first=np.concatenate([weight * law.first for weight, law in weighted]),
            second=np.concatenate([weight * law.second for weight, law in weighted]),
            doubt=sum(weight * law.doubt for weight, law in weighted) + outside,
        )

    def hockey_stick(self, epsilon: float) -> tuple[float, float]:
        """Return certified bounds on the divergence at epsilon: the larger of the two directions."""
        growth = math.exp(epsilon)
        toward = float(np.maximum(self.first - growth * self.second, 0.0).sum())
        back = float(np.maximum(self.second - growth * self.first, 0.0).sum())
        value, error = max(toward, back), self.error(epsilon)
        return max(value - error, 0.0), min(value + error, 1.0)

    def error(self, epsilon: float) -> float:
        growth = math.exp(epsilon)
        return (1 + growth) * (self.doubt + EPS * (16 + math.log2(self.first.size + 2)))


def cells(groups: Sequence[PairGroup], level: float) -> int:
    """Return the number of cells of the distribution for `groups`, for divergences of about `level` or more.

    >>> cells([PairGroup(people=10**4, first=0.5, second=0.25)], 1e-6)
    576000
    """
    return math.prod(_shape(groups, _log_tail(level)))


def _log_tail(level: float) -> float:
    return math.log(level) - 16


def _shape(groups: Sequence[PairGroup], log_tail: float) -> tuple[int, int]:
    return _period(groups, 0, log_tail), _period(groups, 1, log_tail)


def _period(groups: Sequence[PairGroup], axis: int, log_tail: float) -> int:
    """Return a number of consecutive counts with at most e**log_tail outside on each side, plus one for the target."""
    chances = [(group.people, (group.first, group.second)[axis]) for group in groups]
    people = sum(count for count, _ in chances)
    variance = sum(count * p * (1 - p) for count, p in chances)
    # A count lies in 0..people.
    away = deviation(-log_tail, variance)
    return int(next_fast_len(min(people, 2 * math.ceil(away) + 2) + 2, real=True))


def _folded(groups: Sequence[PairGroup], shape: tuple[int, int]) -> tuple[Floats, float]:
    """Return the distribution of (A, B) modulo `shape`, up to a common shift, and the sum of its errors."""
    if shape[0] * shape[1] > LARGEST:
        message = (
            f"The counts of the two values have {shape[0]:,} x {shape[1]:,} combinations, more than {LARGEST:,}. "
            "Use dp.epsilon, which holds for every dataset."
        )
        raise NumericalError(message)
    first: Floats = 2 * np.pi * np.fft.fftfreq(shape[0]).astype(np.float64)[:, None]
    second = 2 * np.pi * np.arange(shape[1] // 2 + 1)[None, :] / shape[1]
    exponent = np.zeros((shape[0], shape[1] // 2 + 1), dtype=np.complex128)
    noise = np.full(exponent.shape, 8 * EPS)
    for group in groups:
        log, slack = _log_transform(group, first, second)
        exponent += group.people * log
        noise += group.people * (slack + 4 * EPS * np.abs(log))
    transform = np.exp(exponent)
    # The distribution is real, so half of the angles count twice; Parseval and Cauchy-Schwarz bound the total error.
    nodes = 2 * float(np.sum((np.abs(transform) * noise) ** 2)), 2 * float(np.sum(np.abs(transform) ** 2))
    error = math.sqrt(nodes[0]) + 16 * EPS * math.log2(4 * shape[0] * shape[1]) * math.sqrt(nodes[1])
    law: Floats = irfft2(transform.conj(), s=shape)
    return law, error


def _log_transform(group: PairGroup, first: Floats, second: Floats) -> tuple[npt.NDArray[np.complex128], Floats]:
    """Return ln E[e**(i angle)] of one report, relative to its most likely value, and a bound on its error."""
    chances = np.array([group.first, group.second, 1 - group.first - group.second])
    likeliest = int(chances.argmax())
    angles = (first, second, np.zeros((1, 1)))
    real, imaginary, size = np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1))
    for value in range(3):
        if value != likeliest and chances[value] > 0:
            turn = angles[value] - angles[likeliest]
            away, sine = turn_parts(turn)
            real, imaginary = real - chances[value] * away, imaginary + chances[value] * sine
            size = size + chances[value] * np.abs(turn)
    modulus, angle = log1p_parts(real, imaginary)
    return modulus + 1j * angle, 16 * EPS * size * np.exp(-modulus)
