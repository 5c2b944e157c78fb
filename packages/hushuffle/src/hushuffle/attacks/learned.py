"""Convert reports of any type into codes of their pieces, and score them: add up evidence, or classify all pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from importlib.util import find_spec
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Floats
from hushuffle.attacks.inference import library, one_thread
from hushuffle.attacks.measured import promise

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
        counts = _counts(own, other) + 0.5
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


def _counts(first: Codes, second: Codes) -> npt.NDArray[np.int64]:
    """Return how often each code occurs for both inputs, shape (2, codes); the last code is one that never occurs."""
    size = int(max(first.max(initial=0), second.max(initial=0))) + 2
    return np.stack([np.bincount(codes, minlength=size) for codes in (first, second)])


def one_sided(own: Codes, other: Codes) -> Callable[[Codes], Flags] | None:
    """Return a test for pieces seen five or more times for `own` and never for `other`; None if there are none.

    >>> pick = one_sided(np.array([[0]] * 5 + [[1]]), np.array([[1]] * 6))
    >>> pick(np.array([[0], [1], [7]])).tolist()
    [True, False, False]
    """
    tables = []
    for mine, others in zip(own.T, other.T, strict=True):
        counts = _counts(mine, others)
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


_OFTEN: Final = 20
"""Whole reports are counted, not their components, if each distinct report occurs at least this often on average."""
_BINS: Final = 200
_BINS_OF_MANY: Final = 50
"""Numbers of histogram bins: for reports of one number, and for each number if a report has several."""


def columns_of(reports: Sequence[Sequence[Any] | npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the reports of one input after the other as pieces, shape (reports, pieces); mixed types are refused.

    >>> columns_of([[b"a", b"b"], [b"b", b"b"]]).shape  # eight bits each
    (4, 8)
    """
    if any(isinstance(each, np.ndarray) for each in reports):
        rows = [np.asarray(each).reshape(len(each), -1) for each in reports]
        if len({row.shape[1] for row in rows}) > 1:
            _refuse("reports of several lengths", "of one type and length")
        table = np.concatenate(rows)
        if table.shape[1] == 1 or table.dtype.kind in "fO":
            return table
        whole: list[Any] = [row.tobytes() for row in np.ascontiguousarray(table)]
        return _objects(whole) if _repeat(whole) else table
    every = [bytes(report) if isinstance(report, bytearray) else report for each in reports for report in each]
    for report in every:
        if not isinstance(report, Hashable):
            _refuse(type(report).__name__, "numbers, strings, bytes, tuples, or the rows of an array")
    if every and all(isinstance(report, int | float) for report in every):
        return np.asarray(every, dtype=np.float64)[:, None]
    return _objects(every) if _repeat(every) else _pieces(every)


def _pieces(reports: list[Any]) -> npt.NDArray[Any]:
    """Return bits of bytes, entries of tuples, numbers or characters of texts; whole reports of several lengths."""
    kinds = {type(report) for report in reports}
    if kinds == {str}:
        try:
            return np.asarray(reports, dtype=np.float64)[:, None]
        except ValueError:
            pass
    if len(kinds) > 1 or not kinds <= {str, bytes, tuple} or len({len(report) for report in reports}) > 1:
        return _objects(reports)
    if kinds == {bytes}:
        packed = np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(len(reports), -1)
        return np.unpackbits(packed, axis=1)
    if kinds == {str}:
        return np.asarray(reports).view(np.uint32).reshape(len(reports), -1)
    return np.stack([_objects(entries)[:, 0] for entries in map(list, zip(*reports, strict=True))], axis=1)


def codes_of(pieces: npt.NDArray[Any], size: int, learned: int) -> tuple[Codes, Codes]:
    """Return codes, shape (size, pieces) each, that are learned from the first `learned` rows of both inputs together.

    >>> codes_of(np.array([[3.0], [4.0], [3.0], [5.0]]), 2, 1)[1].tolist()
    [[0], [1]]
    """
    codes, bins = np.empty(pieces.shape, dtype=np.int32), _BINS if pieces.shape[1] == 1 else _BINS_OF_MANY
    for place in range(pieces.shape[1]):
        column = pieces[:, place]
        if column.dtype == object and all(isinstance(entry, int | float) for entry in column.tolist()):
            column = column.astype(np.float64)
        training = np.concatenate([column[:learned], column[size : size + learned]])
        codes[:, place] = _codes(column, training, bins)
    return codes[:size], codes[size:]


def _codes(column: npt.NDArray[Any], training: npt.NDArray[Any], bins: int) -> npt.NDArray[np.int64]:
    """Return a column as codes: one for each entry, or for each bin of many numbers, and one for unseen entries."""
    if column.dtype == object:
        names: dict[Any, int] = {}
        for entry in training.tolist():
            names.setdefault(entry, len(names))
        return np.array([names.get(entry, len(names)) for entry in column.tolist()], dtype=np.int64)
    seen = np.unique(training)
    if seen.size > bins:
        seen = np.unique(np.quantile(training.astype(np.float64), np.linspace(0, 1, bins)))
        return np.searchsorted(seen, column.astype(np.float64))
    place = np.minimum(np.searchsorted(seen, column), seen.size - 1)
    return np.where(seen[place] == column, place, seen.size)


def one_input_only(reports: Sequence[Sequence[Any] | npt.NDArray[Any]]) -> list[tuple[Any, int, int]]:
    """Return reports of one input only as (report, input, count); reports that rarely repeat are left out.

    >>> one_input_only([["a"] * 60 + ["leak"] * 2, ["a"] * 60])
    [('leak', 0, 2)]
    """
    lists = [each.tolist() if isinstance(each, np.ndarray) else list(each) for each in reports]
    every = [report for each in lists for report in each]
    if not all(isinstance(report, Hashable) for report in every) or not _repeat(every):
        return []
    counts = [Counter(each) for each in lists]
    rows = [
        (report, own, count)
        for own, table in enumerate(counts)
        for report, count in table.items()
        if not any(report in other for other in counts[:own] + counts[own + 1 :])
    ]
    return sorted(rows, key=lambda row: -row[2])


def _objects(reports: list[Any]) -> npt.NDArray[Any]:
    column: npt.NDArray[Any] = np.empty((len(reports), 1), dtype=object)
    for place, report in enumerate(reports):  # an assignment of all would take tuples apart
        column[place, 0] = report
    return column


def _repeat(reports: list[Any]) -> bool:
    return len(set(reports)) <= max(len(reports) // _OFTEN, 1)


def _refuse(value: str, rule: str) -> NoReturn:
    _checks.reject("reports", rule, f"<{value}>")
