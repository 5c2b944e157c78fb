"""Groups, reference orders and sensitivities of 10^5 people: python benchmarks/order.py.

Times are ratios to sorting 10^7 floats in the same run. "published" is the width formula w(w+1)/2 on the
breadth-first order, as printed; "gain" says how many times smaller alpha is at the same theta (how many times larger
theta is at the same alpha) with the exact sensitivity of the order in that row. Takes about two minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hushuffle.questions import order
from hushuffle.questions.order.reference import METHODS

PEOPLE, NEIGHBOURS = 100_000, 50


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def populations() -> dict[str, tuple[Any, Callable[[], Any]]]:
    """Return, for each kind of public data, its coordinates (or None) and what makes the groups."""
    rng, steps = np.random.default_rng(1), np.arange(PEOPLE)
    square = rng.random((PEOPLE, 2))
    radius = float(np.sqrt(NEIGHBOURS / np.pi / PEOPLE))
    country = square * [8.0, 12.0] + [44.0, -4.0]
    towns = np.concatenate([rng.normal(centre, 0.03, (PEOPLE // 10, 2)) for centre in rng.random((10, 2))])
    ages = rng.integers(17, 91, PEOPLE)
    ring = np.concatenate([np.stack([steps, (steps + hop) % PEOPLE], axis=1) for hop in (1, 7)])
    shortcuts = np.concatenate([ring, rng.integers(PEOPLE, size=(20, 2))])
    return {
        "square, radius": (square, partial(order.radius_groups, square, radius)),
        "country, 4 km": (order.on_sphere(country), partial(order.radius_groups, country, 4, metric="great-circle")),
        "towns, 50 nearest": (towns, partial(order.nearest_groups, towns, NEIGHBOURS)),
        "age, one year": (ages, partial(order.radius_groups, ages, 1)),
        "graph, 4 steps": (None, partial(order.path_groups, shortcuts, n=PEOPLE, radius=4)),
    }


def main() -> None:
    floats = np.random.default_rng(0).random(10**7)
    unit, _ = timed(lambda: np.sort(floats))
    print(f"sorting 10^7 floats: {unit:.2f} s (the unit of time below)\n")
    print(f"{f'groups, {PEOPLE:,} people':<22}{'order':>7}{'time':>8}{'width':>9}{'exact':>16}{'gain':>9}")
    for name, (coordinates, make) in populations().items():
        taken, groups = timed(make)
        print(f"{name:<22}{'groups':>7}{taken / unit:>8.1f}   {len(groups.members):,} memberships")
        published = order.published_sensitivity(order.reference_order(groups, method="bfs"), groups)
        print(f"{'':<22}{'publ.':>7}{'':>17}{published:>16,}{1:>9.1f}")
        for method in METHODS:
            if method == "sweep" and coordinates is None:
                continue
            taken, found = timed(partial(order.reference_order, groups, coordinates, method))
            exact = order.kendall_sensitivity(found, groups)
            row = (
                f"{method:>7}{taken / unit:>8.1f}{order.width(found, groups):>9,}{exact:>16,}{published / exact:>9.1f}"
            )
            print(f"{'':<22}{row}")
        taken, _ = timed(partial(order.sensitivities, found, groups))
        print(f"{'':<22}{'exact':>7}{taken / unit:>8.1f}   time of one sensitivity\n")


if __name__ == "__main__":
    main()
