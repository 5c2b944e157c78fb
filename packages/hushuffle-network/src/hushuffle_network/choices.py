"""A phone's choice of target and record, with the distribution of `hushuffle.TargetSampling` in exact arithmetic.

This module belongs to the phone's program, `client.py`. It can be copied with that file, and needs only Python.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Answers: TypeAlias = Mapping[str, Any]
Draw: TypeAlias = Callable[[int], bytes]
_SCALE: Final = 1 << 64


def below(high: int, draw: Draw) -> int:
    """Return a uniform random integer from 0 to high - 1."""
    while True:
        number = int.from_bytes(draw(8)) >> (64 - (high - 1).bit_length())
        if number < high:
            return number


def choose(step: Mapping[str, Any], own: int | None, draw: Draw) -> tuple[int, bool]:
    """Return the target of a message, and whether the message carries data, as `hushuffle.TargetSampling` defines.

    `own`: the answer's target; None without an answer. The target is then uniform: this is the average of the
    distributions of all answers, and reveals no more than any answer does.
    """
    targets = len(step["targets"])
    above, under = float(step["sigma"]).as_integer_ratio()
    threshold = _SCALE * (under - above) // under
    if own is None:
        return below(targets, draw), False
    others_only = step["convention"] == "exclusive"
    if others_only and threshold * targets < _SCALE:
        threshold = -(-_SCALE // targets)
    meant = int.from_bytes(draw(8)) < threshold
    target = own
    if not meant:
        target = (own + 1 + below(targets - 1, draw)) % targets if others_only else below(targets, draw)
    if others_only and meant:
        # With probability lie/truth, a message sent on purpose to its own target counts as a blanket message.
        weight = threshold * (targets - 1)
        meant = int.from_bytes(draw(8)) < _SCALE * (weight - (_SCALE - threshold)) // weight
    return target, target == own and (meant or not step["only_on_purpose"])


_EQUAL: Final = {"==": operator.eq, "!=": operator.ne}
_COMPARE: Final = {**_EQUAL, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _number(answer: Any) -> float | None:
    valid = isinstance(answer, int | float) and not isinstance(answer, bool) and abs(answer) < 2.0**53
    return float(answer) if valid else None


def _holds(answer: Any, comparison: str, value: Any) -> bool:
    number = _number(answer)
    left: Any = number
    if isinstance(value, str):
        left = answer if isinstance(answer, str) else None
        if number is not None:
            left = str(int(number)) if number.is_integer() else repr(number)
    return left is not None and bool(_COMPARE[comparison](left, value))


def group_of(column: Mapping[str, Any], answer: Any) -> int | None:
    """Return the number of the group that contains an answer; None if no group or several groups contain it."""
    groups = [
        number
        for number, group in enumerate(column["groups"])
        if any(all(_holds(answer, *clause) for clause in clauses) for clauses in group["when"])
    ]
    return groups[0] if len(groups) == 1 else None


def record_of(document: Mapping[str, Any], step: Mapping[str, Any], answers: Answers) -> tuple[int, bytes] | None:
    """Return the target to which an answer belongs in a step, and the record; None if there is no valid answer."""
    if "round" in document:
        return point_of(document, answers)
    columns = {column["name"]: column for column in document["columns"]}
    groups = [group_of(columns[name], answers[name]) for name in step["columns"]]
    values = [_number(answers[column["name"]]) for column in document["values"]]
    if None in groups or None in values:
        return None
    ends = [(column.get("low", -math.inf), column.get("high", math.inf)) for column in document["values"]]
    values = [min(max(value, low), high) for value, (low, high) in zip(values, ends, strict=True) if value is not None]
    code = 0
    for group, groups_here in zip(groups, step["sizes"], strict=True):
        code = code * groups_here + (group or 0)
    content = struct.pack(f"<{len(groups)}i{len(values)}d", *groups, *values)
    return code * len(step["targets"]) // math.prod(step["sizes"]), content


def point_of(document: Mapping[str, Any], answers: Answers) -> tuple[int, bytes] | None:
    """Return the number of the centroid nearest to a point, and the point's record; None if there is no valid answer.

    >>> about = {"centroids": [[-1.0, 0.0], [1.0, 0.0]], "scaled": True}
    >>> values = [{"name": "x", "low": 0.0, "high": 10.0}, {"name": "y", "low": 0.0, "high": 2.0}]
    >>> own, record = point_of({"round": about, "values": values}, {"x": 9, "y": 1})
    >>> own, struct.unpack("<2d", record)
    (1, (0.8, 0.0))
    """
    about, point = document["round"], []
    for column in document["values"]:
        value = _number(answers[column["name"]])
        if value is None:
            return None
        if about["scaled"]:
            low, high = column["low"], column["high"]
            value = min(max(2 * (value - low) / (high - low) - 1, -1.0), 1.0)
        point.append(value)
    if "norm" in about:
        length = math.hypot(*point) if about["norm"] == "gaussian" else math.fsum(map(abs, point))
        if length > about["radius"] * (1 - 1e-9):  # targets compute the length again, and refuse a longer point
            point = [value * (about["radius"] / length) * (1 - 1e-6) for value in point]
    far = [math.fsum(c * (c / 2 - x) for c, x in zip(centroid, point, strict=True)) for centroid in about["centroids"]]
    return far.index(min(far)), struct.pack(f"<{len(point)}d", *point)
