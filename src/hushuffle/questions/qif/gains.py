"""Gain functions and priors: what a guesser is after, and what it thinks beforehand.

A gain is a table, shape (guesses, inputs): what guess w is worth when the secret is x. Any table of your
own will do wherever one is asked for; a prior is any distribution over the inputs.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.questions.qif.channels import datasets

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from hushuffle.questions.qif.gain import Number, Numbers, Table

GUESSES_LIMIT: Final = 65_536
"""Most guesses in a table."""


def tries_gain(inputs: int, tries: int) -> npt.NDArray[Any]:
    """Return the gain of guessing `tries` secrets at once: 1 if one is right, shape (C(inputs, tries), inputs).

    Raises:
        InvalidInputError: `tries` is not from 1 to `inputs`, or more than `GUESSES_LIMIT` guesses.

    Source: Alvim and others 2012 (g-leakage), k-tries gain.

    >>> tries_gain(3, 2).tolist()
    [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
    """
    size = _checks.integer("inputs", inputs, low=1)
    count = _checks.integer("tries", tries, low=1, high=size)
    if math.comb(size, count) > GUESSES_LIMIT:
        _checks.reject("inputs, tries", f"at most {GUESSES_LIMIT:,} sets of guesses", (size, count))
    table = np.zeros((math.comb(size, count), size), dtype=np.int64)
    for row, chosen in enumerate(itertools.combinations(range(size), count)):
        table[row, list(chosen)] = 1
    return table


def distance_gain(distances: Table) -> npt.NDArray[Any]:
    """Return 1 - d(w, x)/max d: full gain for the secret itself, less the further away, shape (inputs, inputs).

    Rational distances give rational gains.

    Args:
        distances: d, symmetric, >= 0, zero on the diagonal, not zero everywhere, shape (inputs, inputs).

    Raises:
        InvalidInputError: not such a table.

    Source: Alvim and others 2012 (g-leakage), gains from distances.

    >>> [[str(gain) for gain in row] for row in distance_gain([[abs(w - x) for x in range(3)] for w in range(3)])]
    [['1', '1/2', '0'], ['1/2', '1', '1/2'], ['0', '1/2', '1']]
    """
    table = np.array(distances)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or table.size == 0:
        _checks.reject("distances", "a square table", f"<shape {table.shape}>")
    numbers = [_finite("distances", entry) for entry in table.flat]
    table = np.array(numbers, dtype=object).reshape(table.shape)
    if min(numbers) < 0 or np.any(np.diagonal(table) != 0) or np.any(table != table.T):
        _checks.reject("distances", "symmetric, >= 0 and zero on the diagonal", f"<shape {table.shape}>")
    if max(numbers) == 0:
        _checks.reject("distances", "positive somewhere", "<zero everywhere>", "identity_gain tells secrets apart.")
    gain = 1 - table / max(numbers)
    return gain if all(isinstance(entry, Fraction) for entry in numbers) else gain.astype(np.float64)


def target_gain(n: int, k: int, gain: Table, *, target: int = 0) -> npt.NDArray[Any]:
    """Return a gain about one person's value as a gain about the dataset, shape (guesses, k**n).

    Args:
        n: people.
        k: values.
        gain: gain of guess w when the target's value is x, shape (guesses, k).
        target: the person, 0 to n - 1.

    Raises:
        InvalidInputError: an argument out of range, or a gain whose shape does not fit.

    Source: Jurado et al. 2023, Definition 13, for any gain.

    >>> target_gain(2, 2, [[1, 0], [0, 1]]).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    rows = datasets(n, k)
    person = _checks.integer("target", target, low=0, high=n - 1)
    table = np.array(gain)
    if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] != k:
        _checks.reject("gain", f"a table of shape (guesses, {k})", f"<shape {table.shape}>")
    return np.array(table[:, [dataset[person] for dataset in rows]])


def iid_prior(n: int, frequencies: Numbers) -> npt.NDArray[Any]:
    """Return the prior under which everybody holds value x with probability frequencies[x], shape (k**n,).

    In the order of `channels.datasets(n, k)`; `Fraction`s if the frequencies are.

    Raises:
        InvalidInputError: not a distribution, or too many datasets.

    >>> [str(weight) for weight in iid_prior(2, [Fraction(1, 4), Fraction(3, 4)])]
    ['1/16', '3/16', '3/16', '9/16']
    """
    shares = _distribution("frequencies", list(frequencies))
    return np.array([math.prod(shares[value] for value in dataset) for dataset in datasets(n, len(shares))])


def explicit_prior(inputs: Sequence[Hashable], weights: Mapping[Any, Number]) -> npt.NDArray[Any]:
    """Return the prior that gives the labelled inputs their `weights` and all others 0, shape (inputs,).

    Raises:
        InvalidInputError: a weight for something that is no input, or weights that are no distribution.

    >>> explicit_prior(datasets(2, 2), {(0, 0): Fraction(1, 2), (1, 1): Fraction(1, 2)}).tolist()
    [Fraction(1, 2), Fraction(0, 1), Fraction(0, 1), Fraction(1, 2)]
    """
    labels = tuple(inputs)
    unknown = len(set(weights) - set(labels))
    if unknown:
        _checks.reject("weights", "about labels of the inputs", f"<{unknown} of {len(weights)} labels are not>")
    return np.array(_distribution("weights", [weights.get(label, Fraction(0)) for label in labels]))


def _distribution(name: str, entries: Sequence[Number]) -> list[Number]:
    """Return entries >= 0 that sum to 1: exactly for rationals, within 1e-12 per entry for floats."""
    numbers = [_finite(name, entry) for entry in entries]
    exact = all(isinstance(number, Fraction) for number in numbers)
    shortfall = abs(1 - sum(numbers))
    if not numbers or min(numbers) < 0 or shortfall > (0 if exact else 1e-12 * len(numbers)):
        _checks.reject(name, "a distribution: >= 0, with sum 1", f"<{len(numbers)} numbers>")
    return numbers


def _finite(name: str, entry: Any) -> Number:
    """Return a number as a `Fraction` if it is rational, else as a finite float."""
    if isinstance(entry, Fraction | int | np.integer):
        return entry if isinstance(entry, Fraction) else Fraction(int(entry))
    if not isinstance(entry, float | np.floating) or not math.isfinite(entry):
        _checks.reject(name, "finite numbers", f"<{type(entry).__name__}>")
    return float(entry)
