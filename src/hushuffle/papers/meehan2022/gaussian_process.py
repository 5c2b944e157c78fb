"""Inferring everybody's value from the released values around them, with a Gaussian process."""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.attacks.learnability import library, one_thread
from hushuffle.model.groups import Integers

_MOST: Final = 4000
"""Most people: the time grows with the cube, memory with the square of their number."""


def smoothed_guess(points: npt.ArrayLike, released: npt.ArrayLike, *, k: int, seed: int = 1) -> Integers:
    """Return the value that a Gaussian process finds most likely at each person's place, shape (n,).

    Each value is an indicator over the plane; their common covariance is c exp(-d**2 / (2 l**2)) plus noise, with c, l
    and the noise fitted by marginal likelihood. The guess is the value with the largest posterior mean.

    Args:
        points: public places, shape (n, d), n at most 4,000.
        released: released values, shape (n,), codes 0..k-1.
        k: number of values.
        seed: of the fit's restart.

    Raises:
        InvalidInputError: shapes that do not fit, codes outside, or too many people.
        MissingDependencyError: scikit-learn is not installed.

    Source: C. E. Rasmussen, C. K. I. Williams 2006, chapter 2; Meehan et al. 2022, figure 1.

    >>> places = np.arange(30.0)[:, np.newaxis]
    >>> reports = [0, 0, 1, 0, 0] * 3 + [1, 1, 1, 0, 1] * 3
    >>> guesses = smoothed_guess(places, reports, k=2)
    >>> guesses[:12].tolist(), guesses[18:].tolist()
    ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    """
    seen = _checks.codes("released", released, k=_checks.integer("k", k, low=2))
    where = np.asarray(points, dtype=np.float64)
    if where.ndim != 2 or len(where) != seen.size or not 0 < seen.size <= _MOST:
        rule = f"shape ({seen.size}, d), of at most {_MOST:,} people"
        _checks.reject("points", rule, f"<shape {where.shape}>", "Draw a sample of the people.")
    process, kernels = library("sklearn.gaussian_process"), library("sklearn.gaussian_process.kernels")
    indicators = (seen[:, np.newaxis] == np.arange(k)) - np.bincount(seen, minlength=k) / seen.size
    spread = float(np.std(where)) or 1.0
    shape = kernels.ConstantKernel(0.05, (1e-4, 1e1)) * kernels.RBF(spread / 4, (spread / 100, spread * 100))
    kernel = shape + kernels.WhiteKernel(0.1, (1e-4, 1e1))
    model = process.GaussianProcessRegressor(kernel=kernel, random_state=seed)
    with (
        one_thread(),
        warnings.catch_warnings(),
    ):  # a parameter at its bound is a fit like any other: no structure was found
        warnings.simplefilter("ignore", library("sklearn.exceptions").ConvergenceWarning)
        mean = model.fit(where, indicators).predict(where)
    # Add the shares back: where nothing is known the guess is the most frequent value.
    return np.asarray((mean + np.bincount(seen, minlength=k) / seen.size).argmax(axis=1), dtype=np.int64)
