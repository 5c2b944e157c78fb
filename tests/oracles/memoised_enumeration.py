"""Waves of memoised reports by listing every permanent report and every wave's multiset."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

Rows = Sequence[Sequence[float]]
Seen = tuple[tuple[int, ...], ...]


def law(
    histories: Sequence[Sequence[int]], permanent: Rows, instantaneous: Rows, *, by_value: bool = False
) -> dict[Seen, float]:
    """Return the law of the sorted reports of all waves.

    `histories[i][t]` is person i's value in wave t; a new permanent report is drawn whenever it changes, or
    (`by_value`) whenever it is one that the person never had. A negative value: the person takes no part.
    """
    people = [each_person(history, permanent, instantaneous, by_value=by_value) for history in histories]
    found: dict[Seen, float] = {}
    for choice in itertools.product(*[list(person.items()) for person in people]):
        chance = 1.0
        for _, mass in choice:
            chance *= mass
        waves = zip(*[sent for sent, _ in choice], strict=True)
        seen = tuple(tuple(sorted(report for report in reports if report >= 0)) for reports in waves)
        found[seen] = found.get(seen, 0.0) + chance
    return found


def each_person(
    history: Sequence[int], permanent: Rows, instantaneous: Rows, *, by_value: bool = False
) -> dict[tuple[int, ...], float]:
    """Return the law of what one person sends, wave by wave."""
    kept: dict[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], float] = {((), ()): 1.0}
    for value in history:
        drawn: dict[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], float] = {}
        for (sent, memory), mass in kept.items():
            if value < 0:
                drawn[(*sent, -1), memory] = mass
                continue
            held = dict(memory)
            for report, chance in [(held[value], 1.0)] if value in held else enumerate(permanent[value]):
                for given, coin in enumerate(instantaneous[report]):
                    if chance * coin:
                        after = {**(held if by_value else {}), value: report}
                        key = ((*sent, given), tuple(sorted(after.items())))
                        drawn[key] = drawn.get(key, 0.0) + mass * chance * coin
        kept = drawn
    found: dict[tuple[int, ...], float] = {}
    for (sent, _), mass in kept.items():
        found[sent] = found.get(sent, 0.0) + mass
    return found


def divergence(first: dict[Seen, float], second: dict[Seen, float], growth: float) -> float:
    """Return the sum of [P - growth Q]_+."""
    return sum(max(0.0, mass - growth * second.get(seen, 0.0)) for seen, mass in first.items())
