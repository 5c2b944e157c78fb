"""Vulnerability of a channel for any prior and gain: what a guesser expects to gain before and after looking."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.model import Channel
from hushuffle.questions.qif.channels import datasets

Number = Fraction | float
Numbers = Sequence[Number] | npt.NDArray[Any]
Table = Sequence[Sequence[Number]] | npt.NDArray[Any]


def prior_vulnerability(prior: Numbers, gain: Table) -> Number:
    """Return max_w sum_x prior[x] gain[w, x]: the expected gain of the best guess before looking.

    A `Fraction` when every entry is rational, else a float.

    Args:
        prior: a distribution over the inputs, shape (inputs,).
        gain: gain of guess w when the secret is x, shape (guesses, inputs).

    Raises:
        InvalidInputError: not a distribution, or shapes that do not fit.

    Source: Jurado et al. 2023, Definition 1.

    >>> prior_vulnerability(uniform_prior(3), identity_gain(3))
    Fraction(1, 3)
    """
    weights = _distribution(prior)
    return _number(max(_gains(gain, weights.size) @ weights))


def posterior_vulnerability(channel: Channel, prior: Numbers, gain: Table) -> Number:
    """Return sum_y max_w sum_x prior[x] channel[x, y] gain[w, x]: the expected gain of the best guess after looking.

    A `Fraction` when every entry is rational, else a float.

    Args:
        channel: what the guesser sees.
        prior: a distribution over the channel's inputs, shape (inputs,).
        gain: gain of guess w when the secret is x, shape (guesses, inputs).

    Raises:
        InvalidInputError: not a distribution, or shapes that do not fit.

    Source: Jurado et al. 2023, Definition 2.

    >>> from hushuffle.questions.qif.channels import reduced_shuffle
    >>> posterior_vulnerability(reduced_shuffle(3, 2), uniform_prior(8), single_target_gain(3, 2))
    Fraction(3, 4)
    """
    weights = _distribution(prior)
    if channel.matrix.shape[0] != weights.size:
        _checks.reject("prior", f"a distribution over {channel.matrix.shape[0]} inputs", f"<{weights.size} entries>")
    joint = weights[:, None] * channel.matrix
    return _number((_gains(gain, weights.size) @ joint).max(axis=0).sum())


def uniform_prior(inputs: int) -> npt.NDArray[Any]:
    """Return the uniform distribution as `Fraction`s, shape (inputs,).

    >>> uniform_prior(2).tolist()
    [Fraction(1, 2), Fraction(1, 2)]
    """
    size = _checks.integer("inputs", inputs, low=1)
    return np.array([Fraction(1, size)] * size, dtype=object)


def identity_gain(inputs: int) -> npt.NDArray[Any]:
    """Return the gain of guessing the secret itself: 1 if right, else 0, shape (inputs, inputs).

    >>> identity_gain(2).tolist()
    [[1, 0], [0, 1]]
    """
    return np.eye(_checks.integer("inputs", inputs, low=1), dtype=np.int64)


def single_target_gain(n: int, k: int, *, target: int = 0) -> npt.NDArray[Any]:
    """Return the gain of guessing the value of one person in a dataset: 1 if right, shape (k, k**n).

    Columns are in the order of `channels.datasets(n, k)`.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Jurado et al. 2023, Definition 13.

    >>> single_target_gain(2, 2).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    table = datasets(n, k)
    person = _checks.integer("target", target, low=0, high=n - 1)
    return np.array([[int(dataset[person] == guess) for dataset in table] for guess in range(k)])


def _distribution(prior: Numbers) -> npt.NDArray[Any]:
    """Return `prior` as an array, checked as a channel with one row."""
    return np.array(Channel(matrix=[list(prior)]).matrix[0])


def _gains(gain: Table, inputs: int) -> npt.NDArray[Any]:
    table = np.array(gain)
    if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] != inputs:
        _checks.reject("gain", f"a table of shape (guesses, {inputs})", f"<shape {table.shape}>")
    return table


def _number(value: Any) -> Number:
    return value if isinstance(value, Fraction) else float(value)
