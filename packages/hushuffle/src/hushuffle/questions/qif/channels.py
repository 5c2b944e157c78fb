"""The channels of Jurado et al. 2023 in exact rationals: noise, shuffle, their reduced forms and cascades.

Datasets are in lexicographic order, histograms in descending order of the first count. There are k**n datasets.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle import _checks
from hushuffle.model import Channel

if TYPE_CHECKING:
    from collections.abc import Iterable

DATASETS_LIMIT: Final = 256
"""Maximum number k**n of datasets, so that a channel between datasets has at most 65,536 entries."""

Dataset = tuple[int, ...]


def datasets(n: int, k: int) -> tuple[Dataset, ...]:
    """Return all k**n datasets of n people with k values, in lexicographic order.

    Raises:
        InvalidInputError: n < 1, k < 2, or more than `DATASETS_LIMIT` datasets.

    >>> import hushuffle as hs
    >>> hs.qif.datasets(2, 2)
    ((0, 0), (0, 1), (1, 0), (1, 1))
    """
    people = _checks.integer("n", n, low=1)
    values = _checks.integer("k", k, low=2)
    if people * math.log(values) > math.log(DATASETS_LIMIT) * (1 + 1e-12):
        hint = "These matrices are for small checks; vulnerability(protocol) handles any n."
        _checks.reject("n, k", f"small enough for k**n <= {DATASETS_LIMIT}", (people, values), hint)
    return tuple(itertools.product(range(values), repeat=people))


def histograms(n: int, k: int) -> tuple[Dataset, ...]:
    """Return all histograms of n people over k values, in descending order of the first value's count.

    Raises:
        InvalidInputError: the reasons are those of `datasets`.

    >>> import hushuffle as hs
    >>> hs.qif.histograms(2, 2)
    ((2, 0), (1, 1), (0, 2))
    """
    return tuple(sorted({_histogram(dataset, k) for dataset in datasets(n, k)}, reverse=True))


def noise(n: int, k: int, truth: Fraction) -> Channel:
    """Return the noise channel N from datasets of n people to datasets: randomized response on each entry.

    `truth` is the probability of reporting the true one of k values: a `Fraction` from 1/k to 1.

    Source: Jurado et al. 2023, Definition 10 and Table I(a).

    >>> from fractions import Fraction
    >>> import hushuffle as hs
    >>> str(hs.qif.noise(3, 2, Fraction(3, 4)).matrix[0, 1])
    '9/64'
    """
    right, wrong = _probabilities(k, truth)
    table = datasets(n, k)
    entries = [right ** (n - lies) * wrong**lies for lies in range(n + 1)]
    matrix = [[entries[sum(a != b for a, b in zip(x, y, strict=True))] for y in table] for x in table]
    return Channel(matrix=matrix, inputs=table, outputs=table)


def shuffle(n: int, k: int) -> Channel:
    """Return the shuffle channel S from datasets to datasets: a uniform permutation of n people's values (k possible).

    Source: Jurado et al. 2023, Definition 7 and Table I(b).

    >>> import hushuffle as hs
    >>> str(hs.qif.shuffle(3, 2).matrix[1, 1])
    '1/3'
    """
    table = datasets(n, k)
    orders = Counter(_histogram(dataset, k) for dataset in table)
    rows = [[Fraction(_histogram(x, k) == _histogram(y, k), orders[_histogram(x, k)]) for y in table] for x in table]
    return Channel(matrix=rows, inputs=table, outputs=table)


def reduced_shuffle(n: int, k: int) -> Channel:
    """Return the reduced shuffle S^r, a deterministic channel from a dataset of n people to its histogram of k values.

    Source: Jurado et al. 2023, Definition 8 and Table I(c).

    >>> import hushuffle as hs
    >>> hs.qif.reduced_shuffle(3, 2).outputs
    ((3, 0), (2, 1), (1, 2), (0, 3))
    """
    table, counts = datasets(n, k), histograms(n, k)
    rows = [[int(_histogram(dataset, k) == histogram) for histogram in counts] for dataset in table]
    return Channel(matrix=rows, inputs=table, outputs=counts)


def reduced_noise(n: int, k: int, truth: Fraction) -> Channel:
    """Return the reduced noise N^r, the channel from the histogram of n true values to the histogram of n reports.

    All datasets with the given histogram are equally likely. A report is the true one of k values with probability
    `truth`, a `Fraction`.

    Source: Jurado et al. 2023, Definition 23 and Table IV.

    >>> from fractions import Fraction
    >>> import hushuffle as hs
    >>> str(hs.qif.reduced_noise(3, 2, Fraction(3, 4)).matrix[0, 1])
    '27/64'
    """
    cascade, members = noise_then_reduced_shuffle(n, k, truth), _members(n, k)
    rows = [cascade.matrix[same].sum(axis=0) / len(same) for same in members.values()]
    return Channel(matrix=rows, inputs=tuple(members), outputs=tuple(members))


def noise_then_shuffle(n: int, k: int, truth: Fraction) -> Channel:
    """Return NS, the cascade of `noise`, then `shuffle`; it equals `shuffle_then_noise`.

    n people report the true one of k values with probability `truth`, a `Fraction`.

    Source: Jurado et al. 2023, Proposition 11 and Table II.

    >>> from fractions import Fraction
    >>> import hushuffle as hs
    >>> hs.qif.noise_then_shuffle(2, 2, Fraction(3, 4)) == hs.qif.shuffle_then_noise(2, 2, Fraction(3, 4))
    True
    """
    table, matrix = datasets(n, k), noise(n, k, truth).matrix.copy()
    for same in _members(n, k).values():  # S averages the columns of datasets with one histogram
        matrix[:, same] = (matrix[:, same].sum(axis=1) / len(same))[:, None]
    return Channel(matrix=matrix, inputs=table, outputs=table)


def shuffle_then_noise(n: int, k: int, truth: Fraction) -> Channel:
    """Return SN, the cascade of `shuffle`, then `noise`; it equals `noise_then_shuffle`.

    The values of n people are permuted; then each report is the true one of k values with probability `truth`.

    Source: Jurado et al. 2023, Proposition 11.

    >>> from fractions import Fraction
    >>> import hushuffle as hs
    >>> hs.qif.shuffle_then_noise(1, 2, Fraction(3, 4)) == hs.qif.noise(1, 2, Fraction(3, 4))
    True
    """
    table, matrix = datasets(n, k), noise(n, k, truth).matrix.copy()
    for same in _members(n, k).values():  # S averages the rows of datasets with one histogram
        matrix[same] = (matrix[same].sum(axis=0) / len(same))[None, :]
    return Channel(matrix=matrix, inputs=table, outputs=table)


def noise_then_reduced_shuffle(n: int, k: int, truth: Fraction) -> Channel:
    """Return NS^r, the cascade of `noise`, then `reduced_shuffle`; it equals `reduced_shuffle`, then `reduced_noise`.

    n people report the true one of k values with probability `truth`, a `Fraction`; the output is their histogram.

    Source: Jurado et al. 2023, Propositions 12 and 26, Tables III and V.

    >>> from fractions import Fraction
    >>> import hushuffle as hs
    >>> str(hs.qif.noise_then_reduced_shuffle(3, 2, Fraction(3, 4)).matrix[1, 0])
    '9/64'
    """
    noisy, members = noise(n, k, truth), _members(n, k)
    columns = [noisy.matrix[:, same].sum(axis=1) for same in members.values()]
    return Channel(matrix=np.stack(columns, axis=1), inputs=noisy.inputs, outputs=tuple(members))


def merge_proportional_columns(channel: Channel) -> Channel:
    """Return the reduced form of a channel, without zero columns and with the sum of columns that are proportional.

    It leaks exactly as much as the channel for every prior and gain. A merged column has its first label.

    Raises:
        InvalidInputError: the channel is not rational (proportional floats cannot be recognized).

    Source: Jurado et al. 2023, section II-A.

    >>> import hushuffle as hs
    >>> hs.qif.merge_proportional_columns(hs.qif.shuffle(3, 2)) == hs.qif.reduced_shuffle(3, 2)
    True
    """
    _checks.of_type("channel", channel, Channel)
    if not channel.rational:
        _checks.reject("channel", "rational", repr(channel), "Build it from Fractions.")
    merged: dict[tuple[Fraction, ...], tuple[object, list[Fraction]]] = {}
    for label, column in zip(channel.outputs, channel.matrix.T, strict=True):
        weight = sum(column)
        if weight:
            shape = tuple(entry / weight for entry in column)
            _, sums = merged.setdefault(shape, (label, [Fraction(0)] * len(column)))
            sums[:] = [a + b for a, b in zip(sums, column, strict=True)]
    matrix = [list(row) for row in zip(*(sums for _, sums in merged.values()), strict=True)]
    return Channel(matrix=matrix, inputs=channel.inputs, outputs=[label for label, _ in merged.values()])


def _members(n: int, k: int) -> dict[Dataset, list[int]]:
    members: dict[Dataset, list[int]] = {histogram: [] for histogram in histograms(n, k)}
    for row, dataset in enumerate(datasets(n, k)):
        members[_histogram(dataset, k)].append(row)
    return members


def _histogram(dataset: Iterable[int], k: int) -> Dataset:
    counts = Counter(dataset)
    return tuple(counts[value] for value in range(k))


def _probabilities(k: int, truth: Fraction) -> tuple[Fraction, Fraction]:
    """Return mu and (1 - mu)/(k - 1), checked."""
    values = _checks.integer("k", k, low=2)
    if not isinstance(truth, Fraction | int) or isinstance(truth, bool):
        _checks.reject("truth", "a fractions.Fraction", repr(truth), "For example Fraction(3, 4).")
    if not Fraction(1, values) <= truth <= 1:
        _checks.reject("truth", f"from 1/k = 1/{values} to 1", truth)
    return Fraction(truth), (1 - Fraction(truth)) / (values - 1)
