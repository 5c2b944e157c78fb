"""The exact probability to guess the value of a truthful target among known and unknown people, for small problems.

With f the distribution of the histogram of the other reports, P(h|x) = nu sum_r f(h - e_r) + theta f(h - e_x), so

    V = (1/k) sum_h max_x P(h|x) = nu + theta G,   G = (1/k) sum_h max_x f(h - e_x).

f has k - 1 free coordinates. It is computed on a torus that is wide enough for its mass (Bernstein's
inequality), by one inverse Fourier transform of the product of the others' characteristic functions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from scipy.fft import next_fast_len

from hushuffle.numerics.binomial import Floats
from hushuffle.numerics.exact import complex_log1p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hushuffle.mechanisms.randomizers import Symmetric

ACCURACY: Final = 1e-12
"""Relative error to allow for; measured below 1e-13 against exact rationals and finer grids."""

CELLS_LIMIT: Final = 1 << 22
"""Maximum number of cells of one torus: 4 million, about a second and 300 MB."""

_LOG_TAIL: Final = 45.0


def guess_rate(known: Sequence[int], unknown: int, law: Symmetric, *, axes: Sequence[int] | None = None) -> float:
    """Return the success rate G for truthful targets, given counts of known values and `unknown` uniform reports.

    With `axes`, only the counts of these values are used: a lower bound on G, exact for k - 1 values.

    Source: docs/theory/guessing.md, Lemma 3.

    >>> from fractions import Fraction
    >>> from hushuffle.mechanisms.randomizers import Symmetric
    >>> law = Symmetric(k=2, truth=Fraction(3, 4), lie=Fraction(1, 4))
    >>> round(guess_rate((1, 0), 0, law), 12), round(guess_rate((0, 0), 1, law), 12)
    (0.875, 0.75)
    """
    order, widths = _widths(known, unknown, law)
    chosen = order[:-1] if axes is None else list(axes)
    shape = tuple(_cells(widths[value]) for value in chosen)
    pmf = np.fft.irfftn(_transform(known, unknown, law, chosen, shape), s=shape, axes=range(len(shape)))
    best = pmf  # the target reports a value that has no axis
    for axis in range(len(shape)):
        best = np.maximum(best, np.roll(pmf, 1, axis=axis))
    return min(1.0, float(best.sum()) / law.k)


def affordable_axes(known: Sequence[int], unknown: int, law: Symmetric, *, limit: float) -> list[int]:
    """Return the values whose counts vary least, at most k - 1 of them, as many as `limit` torus cells allow."""
    order, widths = _widths(known, unknown, law)
    axes: list[int] = []
    size = 1
    for value in order[:-1]:
        size *= _cells(widths[value])
        if size > limit:
            break
        axes.append(value)
    return axes


def cells(known: Sequence[int], unknown: int, law: Symmetric) -> float:
    """Return the number of torus cells for the exact `guess_rate`, or math.inf if it exceeds `CELLS_LIMIT`."""
    if len(affordable_axes(known, unknown, law, limit=CELLS_LIMIT)) < law.k - 1:
        return math.inf
    order, widths = _widths(known, unknown, law)
    return math.prod(_cells(widths[value]) for value in order[:-1])


def _cells(width: float) -> int:
    return int(next_fast_len(int(width), real=True))


def _widths(composition: Sequence[int], unknown: int, law: Symmetric) -> tuple[list[int], Floats]:
    """Return the values, narrowest count first, and by value how many cells hold its count."""
    counts = np.asarray(composition, dtype=np.float64)
    total, truth, lie = int(sum(composition)) + unknown, float(law.truth), float(law.lie)
    rest = counts.sum() - counts
    variance = counts * truth * (1 - truth) + rest * lie * (1 - lie) + unknown * (1 - 1 / law.k) / law.k
    budget = _LOG_TAIL + math.log(law.k)
    reach = budget / 3 + np.sqrt((budget / 3) ** 2 + 2 * budget * variance)
    widths = np.asarray(np.minimum(total + 2, 2 * np.ceil(reach) + 4))
    return np.argsort(variance, kind="stable").tolist(), widths


def _transform(
    composition: Sequence[int], unknown: int, law: Symmetric, axes: Sequence[int], shape: tuple[int, ...]
) -> npt.NDArray[np.complex128]:
    """Return E e**(-i angle . counts), up to a translation, on the torus' frequencies, the last axis halved."""
    turns = []  # e**(-i angle_r) - 1, accurate near 0
    for position, size in enumerate(shape):
        last = position == len(shape) - 1
        frequencies = np.asarray(np.fft.rfftfreq(size) if last else np.fft.fftfreq(size), dtype=np.float64)
        angles = -2 * np.pi * frequencies.reshape([-1 if axis == position else 1 for axis in range(len(shape))])
        turns.append(-2 * np.sin(angles / 2) ** 2 + 1j * np.sin(angles))
    spread = np.asarray(sum(turns), dtype=np.complex128)
    lie = float(law.lie)
    exponent = unknown * complex_log1p(spread / law.k)
    elsewhere = sum(composition)
    for value, turn in zip(axes, turns, strict=True):
        if composition[value]:
            # Seen from the person's own value (a translation of f), everything is a multiple of nu: it may be tiny.
            back = turn.conjugate()
            exponent = exponent + composition[value] * complex_log1p(
                lie * ((spread - turn) * (1 + back) + (law.k - 1) * back)
            )
            elsewhere -= composition[value]
    if elsewhere:
        exponent = exponent + elsewhere * complex_log1p(lie * spread)
    return np.asarray(np.exp(exponent))
