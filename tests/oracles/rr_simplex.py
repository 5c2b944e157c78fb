"""The nearest point of the simplex, by bisection on the shift; and what makes a point the nearest one."""

from __future__ import annotations

from collections.abc import Sequence


def nearest(values: Sequence[float]) -> list[float]:
    """Points max(v - shift, 0), with the shift at which they sum to 1."""
    low, high = min(values) - 1.0, max(values)
    for _ in range(200):
        shift = (low + high) / 2
        if sum(max(value - shift, 0.0) for value in values) > 1:
            low = shift
        else:
            high = shift
    return [max(value - high, 0.0) for value in values]


def optimality_gap(values: Sequence[float], point: Sequence[float]) -> float:
    """How far `point` is from meeting the Karush-Kuhn-Tucker conditions of the projection of `values`."""
    infeasible = max(abs(sum(point) - 1), -min(point), 0.0)
    shifts = [value - p for value, p in zip(values, point, strict=True) if p > 0]
    uneven = max(shifts) - min(shifts)
    wrongly_zero = max((value - max(shifts) for value, p in zip(values, point, strict=True) if p == 0), default=0.0)
    return max(infeasible, uneven, wrongly_zero)
