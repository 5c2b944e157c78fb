"""Run the collection again and again, and hold the measured error against the predicted one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hushuffle.estimation import estimate, predicted_standard_error, standard_errors_at
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Estimate, Utility
from hushuffle.randomness import Randomness, reproducible, secure


def utility(
    protocol: Protocol,
    *,
    values: npt.NDArray[np.int64] | None,
    repetitions: int,
    seed: int | str,
    target: float | None,
    confidence: float,
    progress: Callable[[float], None],
) -> Utility:
    """Return predicted and, where there are values, measured errors of the estimated frequencies.

    The prediction is the standard error at the true frequencies, or at the worst frequency without data.
    """
    k = protocol.randomizer.inputs
    if values is None:
        return Utility(predicted=np.full(k, worst_error(protocol)), target=target, confidence=confidence)
    truth = np.bincount(values, minlength=k) / protocol.n
    predicted = standard_errors_at(protocol, frequencies=truth)
    if repetitions == 0:
        return Utility(predicted=predicted, target=target, confidence=confidence)
    rng: Randomness = secure() if seed == "secure" else reproducible(int(seed))
    first, squares = None, np.zeros(k)
    for done in range(repetitions):
        drawn = _draw(protocol, values, rng)
        first = first or drawn
        squares += (drawn.frequencies - truth) ** 2
        progress((done + 1) / repetitions)
    return Utility(
        predicted=predicted,
        target=target,
        repetitions=repetitions,
        measured=np.sqrt(squares / repetitions),
        z=deviation(squares, predicted, repetitions),
        estimate=first,
        confidence=confidence,
    )


def worst_error(protocol: Protocol) -> float:
    """Return the standard error of an estimated share at the worst true share."""
    return float(predicted_standard_error(protocol, frequency=np.array([0.0, 1.0])).max())


def deviation(
    squares: npt.NDArray[np.float64], predicted: npt.NDArray[np.float64], repetitions: int
) -> npt.NDArray[np.float64]:
    """Return by how many standard deviations each mean square error differs from the predicted one, shape (k,).

    Sums of squared standardised errors follow a chi-square law with `repetitions` degrees of freedom;
    its cube root is nearly normal. Where no error is predicted (no noise) the deviation is 0 if none was
    measured, else infinite.

    Source: E. B. Wilson, M. M. Hilferty, The distribution of chi-square (1931).

    >>> deviation(np.array([100.0]), np.array([1.0]), 100).round(3).tolist()
    [0.047]
    """
    spread = 2 / (9 * repetitions)
    certain = predicted == 0
    ratio = squares / np.where(certain, 1.0, predicted) ** 2 / repetitions
    z = (np.cbrt(ratio) - (1 - spread)) / math.sqrt(spread)
    return np.where(certain, np.where(squares > 0, np.inf, 0.0), z)


def _draw(protocol: Protocol, values: npt.NDArray[np.int64], rng: Randomness) -> Estimate:
    released = protocol.sums if protocol.shuffler.reveals is Reveals.SUMS else protocol.collect
    return estimate(released(values, rng=rng), protocol=protocol)
