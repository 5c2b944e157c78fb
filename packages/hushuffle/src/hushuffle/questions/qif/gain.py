"""Priors, gain functions, and the vulnerability without and with a channel's output; exact for rational entries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import InvalidInputError
from hushuffle.model import Channel
from hushuffle.questions.qif.channels import datasets

Number = Fraction | float
Numbers = Sequence[Number] | npt.NDArray[Any]
Table = Sequence[Sequence[Number]] | npt.NDArray[Any]


def prior_vulnerability(prior: Numbers, gain: Table) -> Number:
    """Return max_w sum_x prior[x] gain[w, x]: the expected gain of the best guess without the output.

    A `Fraction` when every entry is rational, else a float.

    Args:
        prior: a distribution over the inputs, shape (inputs,).
        gain: gain of guess w when the secret is x, shape (guesses, inputs).

    Raises:
        InvalidInputError: `prior` is not a distribution, or the shapes do not fit.

    Source: Jurado et al. 2023, Definition 1.

    >>> import hushuffle as hs
    >>> hs.qif.prior_vulnerability(hs.qif.uniform_prior(3), hs.qif.identity_gain(3))
    Fraction(1, 3)
    """
    weights = distribution(prior)
    return _number(max(_gains(gain, weights.size) @ weights))


def posterior_vulnerability(channel: Channel, prior: Numbers, gain: Table) -> Number:
    """Return sum_y max_w sum_x prior[x] channel[x, y] gain[w, x]: the expected gain of the best guess given the output.

    A `Fraction` when every entry is rational, else a float.

    Args:
        channel: maps the secret to what the adversary observes.
        prior: a distribution over the channel's inputs, shape (inputs,).
        gain: gain of guess w when the secret is x, shape (guesses, inputs).

    Raises:
        InvalidInputError: `prior` is not a distribution, or the shapes do not fit.

    Source: Jurado et al. 2023, Definition 2.

    >>> import hushuffle as hs
    >>> hs.qif.posterior_vulnerability(hs.qif.reduced_shuffle(3, 2), hs.qif.uniform_prior(8),
    ...     hs.qif.single_target_gain(3, 2))
    Fraction(3, 4)
    """
    together = joint(channel, prior)
    return _number((_gains(gain, together.shape[0]) @ together).max(axis=0).sum())


def joint(channel: Channel, prior: Numbers) -> npt.NDArray[Any]:
    """Return the joint distribution of input and output, shape (inputs, outputs)."""
    _checks.of_type("channel", channel, Channel)
    weights = distribution(prior)
    if channel.matrix.shape[0] != weights.size:
        _checks.reject("prior", f"a distribution over {channel.matrix.shape[0]} inputs", f"<{weights.size} entries>")
    return np.asarray(weights[:, None] * channel.matrix)


def uniform_prior(inputs: int) -> npt.NDArray[Any]:
    """Return the uniform distribution as `Fraction`s, shape (inputs,).

    >>> import hushuffle as hs
    >>> hs.qif.uniform_prior(2).tolist()
    [Fraction(1, 2), Fraction(1, 2)]
    """
    size = _checks.integer("inputs", inputs, low=1)
    return np.array([Fraction(1, size)] * size, dtype=object)


def identity_gain(inputs: int) -> npt.NDArray[Any]:
    """Return the gain function that is 1 if the guess is the secret, else 0, shape (inputs, inputs).

    >>> import hushuffle as hs
    >>> hs.qif.identity_gain(2).tolist()
    [[1, 0], [0, 1]]
    """
    return np.eye(_checks.integer("inputs", inputs, low=1), dtype=np.int64)


def single_target_gain(n: int, k: int, *, target: int = 0) -> npt.NDArray[Any]:
    """Return the gain function that is 1 if a guess of one person's value in a dataset is right, shape (k, k**n).

    Columns are in the order of `channels.datasets(n, k)`.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Jurado et al. 2023, Definition 13.

    >>> import hushuffle as hs
    >>> hs.qif.single_target_gain(2, 2).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    table = datasets(n, k)
    person = _checks.integer("target", target, low=0, high=n - 1)
    return np.array([[int(dataset[person] == guess) for dataset in table] for guess in range(k)])


def distribution(prior: Numbers, *, name: str = "prior") -> npt.NDArray[Any]:
    """Return `prior` as an array, after checking it as a channel with one row; `name` is used in error messages."""
    if not isinstance(prior, Iterable):
        _checks.reject(name, "one probability for each value", f"<{type(prior).__name__}>")
    try:
        return np.array(Channel(matrix=[list(prior)]).matrix[0])
    except InvalidInputError:
        _checks.reject(name, "probabilities >= 0 that sum to 1", "<something else>")


def _gains(gain: Table, inputs: int) -> npt.NDArray[Any]:
    try:
        table = np.array(gain)
        finite = not np.iscomplexobj(table) and bool(np.isfinite(table.astype(np.float64)).all())
    except (TypeError, ValueError, OverflowError):
        _checks.reject("gain", "a table of numbers", "<something else>")
    if not finite:
        _checks.reject("gain", "finite", "<nan, infinity or no real number>")
    if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] != inputs:
        _checks.reject("gain", f"a table of shape (guesses, {inputs})", f"<shape {table.shape}>")
    return table


def _number(value: Any) -> Number:
    return value if isinstance(value, Fraction) else float(value)


GUESSES_LIMIT: Final = 65_536
"""Maximum number of guesses (rows) in a gain table."""


def tries_gain(inputs: int, tries: int) -> npt.NDArray[Any]:
    """Return the gain function that is 1 if one of `tries` guesses is right, shape (C(inputs, tries), inputs).

    Raises:
        InvalidInputError: `tries` is not from 1 to `inputs`, or more than `GUESSES_LIMIT` guesses.

    Source: Alvim and others 2012 (g-leakage), k-tries gain.

    >>> import hushuffle as hs
    >>> hs.qif.tries_gain(3, 2).tolist()
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
    """Return the gains 1 - d(w, x)/max d, which fall with the distance of guess w from secret x, (inputs, inputs).

    Rational distances give rational gains.

    Args:
        distances: d, symmetric, >= 0, zero on the diagonal, not zero everywhere, shape (inputs, inputs).

    Raises:
        InvalidInputError: `distances` is not such a table.

    Source: Alvim and others 2012 (g-leakage), gains from distances.

    >>> import hushuffle as hs
    >>> gain = hs.qif.distance_gain([[abs(w - x) for x in range(3)] for w in range(3)])
    >>> [[str(number) for number in row] for row in gain]
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
        _checks.reject("distances", "not zero everywhere", "<zero everywhere>", "See identity_gain.")
    gain = 1 - table / max(numbers)
    return gain if all(isinstance(entry, Fraction) for entry in numbers) else gain.astype(np.float64)


def target_gain(n: int, k: int, gain: Table, *, target: int = 0) -> npt.NDArray[Any]:
    """Convert a gain function on one person's value to a gain function on datasets, shape (guesses, k**n).

    Args:
        n: number of people.
        k: number of values.
        gain: gain of guess w when the target's value is x, shape (guesses, k).
        target: number of the person whose value is guessed, 0 to n - 1.

    Raises:
        InvalidInputError: an argument out of range, or a gain whose shape does not fit.

    Source: Jurado et al. 2023, Definition 13, for any gain.

    >>> import hushuffle as hs
    >>> hs.qif.target_gain(2, 2, [[1, 0], [0, 1]]).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    rows = datasets(n, k)
    person = _checks.integer("target", target, low=0, high=n - 1)
    table = np.array(gain)
    if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] != k:
        _checks.reject("gain", f"a table of shape (guesses, {k})", f"<shape {table.shape}>")
    return np.array(table[:, [dataset[person] for dataset in rows]])


def iid_prior(n: int, frequencies: Numbers) -> npt.NDArray[Any]:
    """Return the prior under which each person independently has value x with probability frequencies[x], (k**n,).

    Datasets are in the order of `channels.datasets(n, k)`. The result has `Fraction`s if the frequencies are fractions.

    Raises:
        InvalidInputError: `frequencies` is not a distribution, or there are too many datasets.

    >>> from fractions import Fraction
    >>> import hushuffle as hs
    >>> [str(weight) for weight in hs.qif.iid_prior(2, [Fraction(1, 4), Fraction(3, 4)])]
    ['1/16', '3/16', '3/16', '9/16']
    """
    shares = _law_of("frequencies", list(frequencies))
    return np.array([math.prod(shares[value] for value in dataset) for dataset in datasets(n, len(shares))])


def explicit_prior(inputs: Sequence[Hashable], weights: Mapping[Any, Number]) -> npt.NDArray[Any]:
    """Return the prior that gives the labelled inputs their `weights` and all others 0, shape (inputs,).

    Raises:
        InvalidInputError: a weight for an unknown input, or weights that are not a distribution.

    >>> from fractions import Fraction
    >>> import hushuffle as hs
    >>> hs.qif.explicit_prior(hs.qif.datasets(2, 2), {(0, 0): Fraction(1, 2), (1, 1): Fraction(1, 2)}).tolist()
    [Fraction(1, 2), Fraction(0, 1), Fraction(0, 1), Fraction(1, 2)]
    """
    labels = tuple(inputs)
    unknown = len(set(weights) - set(labels))
    if unknown:
        _checks.reject("weights", "about labels of the inputs", f"<{unknown} of {len(weights)} labels are not>")
    return np.array(_law_of("weights", [weights.get(label, Fraction(0)) for label in labels]))


def _law_of(name: str, entries: Sequence[Number]) -> list[Number]:
    """Return entries >= 0 that sum to 1: exactly for rationals, within 1e-12 per entry for floats."""
    numbers = [_finite(name, entry) for entry in entries]
    exact = all(isinstance(number, Fraction) for number in numbers)
    shortfall = abs(1 - sum(numbers))
    if not numbers or min(numbers) < 0 or shortfall > (0 if exact else 1e-12 * len(numbers)):
        _checks.reject(name, "a distribution: >= 0, with sum 1", f"<{len(numbers)} numbers>")
    return numbers


def _finite(name: str, entry: Any) -> Number:
    if isinstance(entry, Fraction | int | np.integer):
        return entry if isinstance(entry, Fraction) else Fraction(int(entry))
    if not isinstance(entry, float | np.floating) or not math.isfinite(entry):
        _checks.reject(name, "finite numbers", f"<{type(entry).__name__}>")
    return float(entry)
