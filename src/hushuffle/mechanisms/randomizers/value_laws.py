"""`ValueLaws`: the laws of one report under some values, by classes of reports, and the pairs of values to compare."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import permutations

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True, eq=False)
class ValueLaws:
    """The laws of one report under some values, by class of reports, and the pairs of values to compare.

    `rows[r, v]` is the probability that a report of value `labels[r]` falls in class v, shape (rows, classes);
    `blanket` is the blanket's law over the classes, `weight` its gamma: gamma blanket <= every row.
    `pairs` are pairs of rows. Inside a class the likelihood ratios between the two values of a pair and the
    blanket are constant, so nothing about a pair is lost by looking at classes only; the other rows
    are what the other people may report. `complete`: so are the ratios to the other rows, and every value that is no
    row is like one of them, to the pair and to what the blanket has where the pair's two probabilities are alike.
    `also`: the same rows under another law of what is public in a report; some values' laws may be mixtures of the two.
    """

    rows: npt.NDArray[np.float64]
    labels: tuple[int, ...]
    blanket: npt.NDArray[np.float64]
    weight: float
    pairs: tuple[tuple[int, int], ...]
    complete: bool = False
    also: ValueLaws | None = None


def different_pairs(matrix: npt.NDArray[np.float64]) -> tuple[tuple[int, int], ...]:
    """Return the ordered pairs of rows that differ by more than the names of reports and of the other rows.

    Two pairs are alike if the reports' probabilities under the pair, under all rows at least, and under another row
    are the same ones for each other row of the one pair as for one of the other pair.

    >>> different_pairs(np.full((4, 4), 0.1) + 0.6 * np.eye(4))
    ((0, 1),)
    """
    _, names = np.unique(matrix, return_inverse=True)
    names = names.reshape(matrix.shape).astype(np.int64)
    shared, size = names.min(axis=0), int(names.max()) + 1
    alike: dict[bytes, list[tuple[int, int]]] = {}
    for a, b in permutations(range(matrix.shape[0]), 2):
        told = np.sort((names[a] * size + names[b]) * size + shared)
        alike.setdefault(told.tobytes(), []).append((a, b))
    found: dict[bytes, tuple[int, int]] = {}
    for key, pairs in alike.items():
        for a, b in pairs:
            told = np.sort(((names[a] * size + names[b]) * size + shared) * size + names, axis=1)
            kinds = blake2b(b"".join(sorted({row.tobytes() for row in told}))).digest() if len(pairs) > 1 else b""
            found.setdefault(key + kinds, (a, b))
    return tuple(found.values())
