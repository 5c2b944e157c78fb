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
    `groups`: the rows of the values of each group of people, where several randomizers are looked at together.
    `also`: the same rows under another law of what is public in a report; some values' laws may be mixtures of the two.
    """

    rows: npt.NDArray[np.float64]
    labels: tuple[int, ...]
    blanket: npt.NDArray[np.float64]
    weight: float
    pairs: tuple[tuple[int, int], ...]
    complete: bool = False
    groups: tuple[slice, ...] = (slice(None),)
    also: ValueLaws | None = None


def different_pairs(matrix: npt.NDArray[np.float64], *others: npt.NDArray[np.float64]) -> tuple[tuple[int, int], ...]:
    """Return the ordered pairs of rows that differ by more than the names of reports and of the other rows.

    Two pairs are alike if the reports' probabilities under the pair, under all rows at least, and under another row
    are the same ones for each other row of the one pair as for one of the other pair. `others` are the rows of people
    with other randomizers, each of them to be the same ones as well.

    >>> different_pairs(np.full((4, 4), 0.1) + 0.6 * np.eye(4))
    ((0, 1),)
    """
    groups = (matrix, *others)
    _, flat = np.unique(np.concatenate([group.ravel() for group in groups]), return_inverse=True)
    ends = np.cumsum([group.size for group in groups])[:-1]
    parts = np.split(flat.ravel().astype(np.int64), ends)
    names = [part.reshape(group.shape) for part, group in zip(parts, groups, strict=True)]
    least = np.stack([part.min(axis=0) for part in names])
    shared = np.unique(least, axis=1, return_inverse=True)[1].ravel().astype(np.int64)
    own, size = names[0], 1 + int(max(flat.max(), shared.max()))
    alike: dict[bytes, list[tuple[int, int]]] = {}
    for a, b in permutations(range(matrix.shape[0]), 2):
        told = np.sort((own[a] * size + own[b]) * size + shared)
        alike.setdefault(told.tobytes(), []).append((a, b))
    found: dict[bytes, tuple[int, int]] = {}
    for key, pairs in alike.items():
        for a, b in pairs if len(pairs) > 1 else ():
            told = ((own[a] * size + own[b]) * size + shared) * size
            rows = [b"".join(sorted({row.tobytes() for row in np.sort(told + part, axis=1)})) for part in names]
            found.setdefault(key + blake2b(b"|".join(rows)).digest(), (a, b))
        if len(pairs) == 1:
            found[key] = pairs[0]
    return tuple(found.values())
