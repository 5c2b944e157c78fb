"""Grouped statistics, k-means and the Rand index with plain loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations


def grouped(codes: Sequence[int], values: Sequence[float], rows: Sequence[int], groups: int) -> list[dict[str, float]]:
    """Return count, sum, avg, min and max of each group over `rows`."""
    result = []
    for group in range(groups):
        own = [float(values[row]) for row in rows if codes[row] == group]
        result.append(
            {
                "count": float(len(own)),
                "sum": math.fsum(own),
                "avg": math.fsum(own) / len(own) if own else math.nan,
                "min": min(own, default=math.nan),
                "max": max(own, default=math.nan),
            }
        )
    return result


def closest(point: Sequence[float], centroids: Sequence[Sequence[float]]) -> int:
    """Return the number of the nearest centroid, the first of several."""
    distances = [sum((a - b) ** 2 for a, b in zip(point, centroid, strict=True)) for centroid in centroids]
    return distances.index(min(distances))


def centroid_means(
    points: Sequence[Sequence[float]], used: Sequence[bool], centroids: Sequence[Sequence[float]]
) -> list[list[float]]:
    """Return one k-means step; a centroid without points stays."""
    own: list[list[Sequence[float]]] = [[] for _ in centroids]
    for point, counts in zip(points, used, strict=True):
        if counts:
            own[closest(point, centroids)].append(point)
    return [
        [math.fsum(column) / len(mine) for column in zip(*mine, strict=True)] if mine else list(old)
        for mine, old in zip(own, centroids, strict=True)
    ]


def pairs_agreeing(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the share of pairs that are together in both labellings or apart in both."""
    agree = [(first[i] == first[j]) == (second[i] == second[j]) for i, j in combinations(range(len(first)), 2)]
    return sum(agree) / len(agree)
