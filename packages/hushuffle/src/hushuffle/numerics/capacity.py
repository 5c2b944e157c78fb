"""Certified lower and upper bounds on the Shannon capacity of a finite channel."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hushuffle.numerics.binomial import EPS, Floats, deviance

WORK_LIMIT: Final = 100_000_000
"""Largest number of matrix entries read in all iterations (some seconds); then the current bounds are returned."""

_FLOOR: Final = 1e-290  # of a prior probability, so that every input keeps positive mass
_LEAST: Final = 1e-300  # of the probability of an output
_LONGEST: Final = 1e3
_TRACE: Final = 1e-12  # of a prior probability: with less, an input counts only if its gain is large
_FIRST: Final = 16  # iterations before the first of Newton's steps, which are taken at powers of two


def capacity_ends(matrix: Floats, *, tolerance: float = 1e-9, work: int = WORK_LIMIT) -> tuple[float, float]:
    """Return lower and upper bounds, in bits, on the capacity of a channel with these rows, shape (inputs, outputs).

    Every step of the Blahut-Arimoto algorithm has a prior p, and I(p) <= capacity <= max_x D(row x || output
    distribution for p). Both bounds allow for rounding. The search stops if they differ by at most `tolerance` bits, or
    after `work` entries; then they differ by more, but are still certified.

    Source: Blahut 1972, Arimoto 1972; docs/theory/guessing.md, Theorem 9.

    >>> [round(end, 4) for end in capacity_ends(np.array([[0.89, 0.11], [0.11, 0.89]]))]
    [0.5001, 0.5001]
    """
    aim, near = tolerance * math.log(2), False
    matrix = np.asarray(matrix, dtype=np.float64)
    matrix = matrix[:, matrix.max(axis=0) > 0] / matrix.sum(axis=1, keepdims=True)
    inputs, outputs = matrix.shape
    rounding = EPS * (8 * (inputs + outputs) + 64)
    lower, upper = 0.0, math.log(min(inputs, outputs)) * (1 + rounding)
    prior, step, best = np.full(inputs, 1 / inputs), 1.0, -math.inf
    anchor = prior, prior
    for turn in range(1, max(1, work // matrix.size) + 1):
        # D(row || output) in nats for each row.
        mean = np.broadcast_to(np.maximum(prior @ matrix, _LEAST), matrix.shape)
        positive = matrix > 0
        gains = np.asarray(np.where(positive, deviance(np.where(positive, matrix, mean), mean), mean).sum(axis=1))
        information = float(prior @ gains)
        lower = max(lower, information * (1 - rounding) - rounding)
        upper = min(upper, float(gains.max()) * (1 + rounding) + rounding)
        if near:
            break
        near = upper - lower <= aim  # the last step is one of Newton's, which narrows the bounds
        # Use longer steps while they improve the bound, else Arimoto's step: the bounds hold for any prior.
        if information > best or step == 1.0:
            anchor, step = (prior, gains), min(_LONGEST, 1.5 * step if information > best else 1.0)
            best = max(best, information)
        else:
            step = 1.0
        if not near and (turn < max(_FIRST, inputs) or turn.bit_count() > 1):
            prior = np.maximum(anchor[0] * np.exp(step * (anchor[1] - anchor[1].max())), _FLOOR)
        else:
            prior, step = np.maximum(_newton(matrix, *anchor), _FLOOR), 1.5
        prior /= prior.sum()
    ends = (lower / math.log(2), upper / math.log(2))
    return min(ends), max(ends)


def _newton(matrix: Floats, prior: Floats, gains: Floats) -> Floats:
    """Return the prior at which, by Newton's method, the inputs with positive mass have equal gains.

    Inputs whose mass would be negative get none, the most negative first.
    """
    held = (prior > _TRACE) | (gains >= prior @ gains)
    scaled = matrix / np.sqrt(np.maximum(prior @ matrix, _LEAST))
    curvature, result = scaled @ scaled.T, np.zeros_like(prior)
    while held.any():
        system = np.pad(curvature[np.ix_(held, held)], (0, 1), constant_values=1.0)
        system[-1, -1] = 0.0
        wanted = np.append(gains[held] + curvature[held] @ prior, 1.0)
        masses = np.linalg.lstsq(system, wanted, rcond=None)[0][:-1]
        if masses.min() >= 0:
            result[held] = masses
            break
        held[np.flatnonzero(held)[masses.argmin()]] = False
    return result
