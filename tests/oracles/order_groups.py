"""Groups and searches by plain loops."""

from __future__ import annotations

import math
from collections.abc import Sequence

EARTH = 6371.0088


def within(places: Sequence[Sequence[float]], radii: Sequence[float]) -> list[list[int]]:
    people = range(len(places))
    return [[j for j in people if math.dist(places[i], places[j]) <= radii[i]] for i in people]


def arc(one: Sequence[float], other: Sequence[float]) -> float:
    """Kilometres along the great circle, by the haversine formula."""
    (north, east), (top, right) = (map(math.radians, place) for place in (one, other))
    half = math.sin((top - north) / 2) ** 2 + math.cos(north) * math.cos(top) * math.sin((right - east) / 2) ** 2
    return 2 * EARTH * math.asin(min(1.0, math.sqrt(half)))


def steps(edges: Sequence[Sequence[int]], n: int, start: int) -> dict[int, int]:
    """How many steps each person who can be reached is from `start`."""
    found, front = {start: 0}, [start]
    while front:
        reached = []
        for here in front:
            for one, other in edges:
                for near, far in ((one, other), (other, one)):
                    if near == here and far not in found:
                        found[far] = found[here] + 1
                        reached.append(far)
        front = reached
    assert set(found) <= set(range(n))
    return found


def breadth_first(neighbours: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[int]:
    """Algorithm 1 of the paper, from the largest group of each component, the largest component groups first."""
    order: list[int] = []
    left = set(range(len(neighbours)))
    while left:
        root = min(left, key=lambda person: (-sizes[person], person))
        queue = [root]
        left.remove(root)
        while queue:
            here = queue.pop(0)
            order.append(here)
            for near in sorted(neighbours[here]):
                if near in left:
                    left.remove(near)
                    queue.append(near)
    return order
