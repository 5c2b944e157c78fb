"""Convert reports of any type into codes: a code for each report if reports repeat often, else one for each piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks

Codes: TypeAlias = npt.NDArray[np.int32]

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
