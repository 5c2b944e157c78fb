"""Score reports that consist of several pieces: add up the evidence of the pieces, or classify all pieces together."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle.attacks.learnability import library, one_thread
from hushuffle.attacks.measured import promise

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Codes: TypeAlias = npt.NDArray[np.int32]
Scorer: TypeAlias = Callable[[Codes], Floats]
"""Takes reports as codes, shape (reports, pieces); returns the evidence of each report for the first input."""

_RARE: Final = 20
"""Codes that occur fewer times than this are ignored as evidence."""
_CHANCE: Final = 2.0
"""A component of a report is evidence if its contribution exceeds this multiple of its codes' average variance."""
_SURE: Final = 5
"""A code is tested as a separate event if it occurs at least this often for one input and never for the other."""
_SEEN: Final = 100_000
_PIECES: Final = 1024
_PRODUCTS: Final = 16
_TOGETHER: Final = 1 << 15


def scorer(
    first: Codes, second: Codes, *, trials: int, delta: float, confidence: float, classify: bool | None
) -> Scorer:
    """Return a score trained on reports of both inputs, codes of shape (reports, pieces).

    The last quarter of the reports decides between the summed evidence of pieces and a classifier of all pieces.
    """
    several = 1 < first.shape[1] <= _PIECES and len(first) >= 4 * _RARE
    wanted = several and find_spec("sklearn") is not None if classify is None else classify
    if not wanted:
        return _added(first, second)
    training = 3 * len(first) // 4
    tries = [make(first[:training], second[:training]) for make in (_added, _classified)]
    promised = [
        promise(score(first[training:]), score(second[training:]), trials=trials, delta=delta, confidence=confidence)
        for score in tries
    ]
    return tries[1] if promised[1] > promised[0] else _added(first, second)


def _added(first: Codes, second: Codes) -> Scorer:
    """Return the sum of log likelihood ratios; of several pieces, those within chance are left out (noise adds up)."""
    ratios = []
    for own, other in zip(first.T, second.T, strict=True):
        size = int(max(own.max(initial=0), other.max(initial=0))) + 2
        counts = np.stack([np.bincount(codes, minlength=size) + 0.5 for codes in (own, other)])
        ratio = np.where(counts.sum(axis=0) > _RARE, np.log(counts[0] / counts[1]), 0.0)
        evidence = ratio**2 / (1 / counts).sum(axis=0)
        chance = _CHANCE * np.count_nonzero(ratio) / max(float(evidence.sum()), 1e-300)
        ratios.append(ratio * (1.0 if first.shape[1] == 1 else max(0.0, 1 - chance)))

    def score(reports: Codes) -> Floats:
        scores = np.zeros(len(reports))
        for codes, ratio in zip(reports.T, ratios, strict=True):
            scores += ratio[np.minimum(codes, ratio.size - 1)]
        return scores

    return score


def one_sided(own: Codes, other: Codes) -> Callable[[Codes], Flags] | None:
    """Return a test for pieces seen five or more times for `own` and never for `other`; None if there are none.

    >>> pick = one_sided(np.array([[0]] * 5 + [[1]]), np.array([[1]] * 6))
    >>> pick(np.array([[0], [1], [7]])).tolist()
    [True, False, False]
    """
    tables = []
    for mine, others in zip(own.T, other.T, strict=True):
        size = int(max(mine.max(initial=0), others.max(initial=0))) + 2
        counts = [np.bincount(codes, minlength=size) for codes in (mine, others)]
        tables.append((counts[0] >= _SURE) & (counts[1] == 0))
    if not any(table.any() for table in tables):
        return None

    def pick(reports: Codes) -> Flags:
        picked = np.zeros(len(reports), dtype=np.bool_)
        for codes, table in zip(reports.T, tables, strict=True):
            picked |= table[np.minimum(codes, table.size - 1)]
        return picked

    return pick


def _classified(first: Codes, second: Codes) -> Scorer:
    """Return a score: the log odds of a classifier on the pieces and the most informative products of pieces."""
    first, second = first[:_SEEN], second[:_SEEN]
    reports = np.concatenate([first, second])
    labels = np.repeat([1.0, 0.0], [len(first), len(second)])
    middle = reports.mean(axis=0)
    signs = np.where(reports > middle, 1.0, -1.0)
    evidence = np.triu(np.abs((signs * (2 * labels - 1)[:, None]).T @ signs), 1)
    best = np.argsort(evidence, axis=None)[::-1][:_PRODUCTS]
    left, right = np.unravel_index(best, evidence.shape)

    def features(codes: Codes) -> Floats:
        above = codes > middle
        return np.column_stack([codes, above[:, left] ^ above[:, right]]).astype(np.float64)

    learner: Any = library("sklearn.ensemble").HistGradientBoostingClassifier(
        max_iter=60, min_samples_leaf=_RARE, early_stopping=False, random_state=0
    )
    with one_thread():
        learner.fit(features(reports), labels)

    def score(codes: Codes) -> Floats:
        with one_thread():
            parts = [
                learner.decision_function(features(codes[start : start + _TOGETHER]))
                for start in range(0, len(codes), _TOGETHER)
            ]
        return np.concatenate(parts) if parts else np.zeros(0)

    return score
