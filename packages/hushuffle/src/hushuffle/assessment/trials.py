"""Run the collection repeatedly, and compare the measured error with the predicted error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.estimation import estimate, predicted_standard_error, standard_errors_at
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Utility
from hushuffle.model.solver import Parameter, Requirement, log_excess, solve
from hushuffle.questions.dp.calibration import LARGEST_LOCAL
from hushuffle.randomness import Randomness, reproducible, secure
from hushuffle.specification import Specification

LEAST: Final = 1e-6
"""The smallest local epsilon that is tried to meet an accuracy target."""

FINE: Final = 5e-13
"""Relative resolution of a local epsilon that meets an accuracy target."""


def utility(
    protocol: Protocol,
    specification: Specification,
    *,
    values: npt.NDArray[np.int64] | None,
    progress: Callable[[float], None],
) -> Utility:
    """Return the predicted and, if `values` are given, the measured errors of the estimated frequencies.

    The prediction is the standard error at the true frequencies, or at the worst frequency without data.
    """
    k, run, target = protocol.randomizer.inputs, specification.run, specification.targets.standard_error
    if values is None:
        return Utility(predicted=np.full(k, worst_error(protocol)), target=target, confidence=run.confidence)
    truth = np.bincount(values, minlength=k) / protocol.n
    predicted = standard_errors_at(protocol, frequencies=truth)
    if run.repetitions == 0:
        return Utility(predicted=predicted, target=target, confidence=run.confidence)
    rng: Randomness = secure() if run.seed == "secure" else reproducible(int(run.seed))
    first, squares = None, np.zeros(k)
    released = protocol.sums if protocol.shuffler.reveals is Reveals.SUMS else protocol.collect
    for done in range(run.repetitions):
        drawn = estimate(released(values, rng=rng), protocol=protocol)
        first = first or drawn
        squares += (drawn.frequencies - truth) ** 2
        progress((done + 1) / run.repetitions)
    return Utility(
        predicted=predicted,
        target=target,
        repetitions=run.repetitions,
        measured=np.sqrt(squares / run.repetitions),
        z=deviation(squares, predicted, run.repetitions) / _tails(protocol),
        estimate=first,
        confidence=run.confidence,
    )


def _tails(protocol: Protocol) -> float:
    """Return how much more the squares of errors vary than those of normal errors, if servers' Laplace noise dominates.

    The fourth moment of the sum of h Laplace numbers is 3 + 3/h times the square of the variance.
    """
    noise = protocol.shuffler.sum_noise
    return 1.0 if noise is None else math.sqrt(1 + 1.5 / noise.number)


def worst_error(protocol: Protocol | MixedProtocol) -> float:
    """Return the standard error of an estimated share at the worst true share."""
    return float(predicted_standard_error(protocol, frequency=np.array([0.0, 1.0])).max())


def error_of(protocol: Protocol) -> float:
    """Return the standard error at the worst true share; infinite if the reports do not distinguish all values.

    >>> import hushuffle as hs
    >>> noisy = hs.RoundedGaussian(levels=8, epsilon=0.01)
    >>> error_of(hs.Protocol(randomizer=noisy, shuffler=hs.UniformShuffle(), n=100))
    inf
    """
    return no_error(lambda: worst_error(protocol))


def no_error(error: Callable[[], float]) -> float:
    """Return the result of `error`; infinite if no protocol exists, or its reports do not distinguish all values."""
    try:
        return error()
    except (InvalidInputError, NumericalError):
        return math.inf


def least_accurate(
    error: Callable[[float], float], wanted: float, *, fine: float = FINE, start: float = LEAST
) -> float | None:
    """Return the smallest local epsilon whose `error` is at most `wanted`; None if there is none.

    >>> import hushuffle as hs
    >>> def survey(epsilon):
    ...     noisy = hs.RandomizedResponse(k=2, epsilon=epsilon)
    ...     return hs.Protocol(randomizer=noisy, shuffler=hs.UniformShuffle(), n=900)
    >>> round(least_accurate(lambda local: error_of(survey(local)), 0.05), 4)
    0.6549
    """
    noise = Parameter(
        name="local epsilon", apply=error, easiest=LARGEST_LOCAL, hardest=LEAST, start=start, resolution=fine
    )
    solution = solve(noise, Requirement(excess=lambda error: log_excess(error, wanted)))
    if solution is None:
        return None
    # Settings that depend on epsilon, like a number of buckets, make the error jump: less may suffice as well.
    less = next((at for share in _LESS if (at := share * solution.value) >= LEAST and error(at) <= wanted), None)
    return solution.value if less is None else least_accurate(error, wanted, fine=fine, start=less)


_LESS: Final = (0.9, 0.8, 0.7)
"""Shares of a solution at which `least_accurate` looks for a smaller one."""


def deviation(
    squares: npt.NDArray[np.float64], predicted: npt.NDArray[np.float64], repetitions: int
) -> npt.NDArray[np.float64]:
    """Return how far each mean square error is from its prediction, in standard deviations, shape (k,).

    Sums of squared standardised errors follow a chi-square distribution with `repetitions` degrees of freedom,
    whose cube root is nearly normal. If the predicted error is 0 (no noise), the deviation is 0 if the
    measured error is 0, else infinite.

    Source: E. B. Wilson, M. M. Hilferty, The distribution of chi-square (1931).

    >>> deviation(np.array([100.0]), np.array([1.0]), 100).round(3).tolist()
    [0.047]
    """
    spread = 2 / (9 * repetitions)
    certain = predicted == 0
    ratio = squares / np.where(certain, 1.0, predicted) ** 2 / repetitions
    z = (np.cbrt(ratio) - (1 - spread)) / math.sqrt(spread)
    return np.where(certain, np.where(squares > 0, np.inf, 0.0), z)
