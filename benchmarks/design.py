"""The best channel for a crowd beside known mechanisms, on 16 values with an order.

    python benchmarks/design.py           prints the tables
    python benchmarks/design.py --write   writes them into docs/how-to/own-mechanism.md

Every mechanism has the largest local epsilon that keeps both promises: certified central epsilon, and the cap. Takes
several minutes.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

import hushuffle as hs
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.numerics.roots import halved
from hushuffle.questions.dp.best_channel import Design, Loss

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "own-mechanism.md"
START, END = "<!-- tables -->", "<!-- end of tables -->"
K: Final = 16
DELTA: Final = 1e-6


class Case(NamedTuple):
    """A crowd, its two promises, and what is to be accurate."""

    n: int
    epsilon: float
    cap: float
    loss: Loss


CASES: Final = (Case(10_000, 0.1, 1.0, "distribution"),)


def by_matrix(rows: np.ndarray) -> Mechanism:
    return hs.MatrixRandomizer(channel=hs.Channel(matrix=rows / rows.sum(axis=1, keepdims=True)))


def square_wave(epsilon: float) -> Mechanism:
    """Li et al. 2020: near the value e**epsilon times as likely, in as many cells of reports as of values."""
    growth = math.exp(epsilon)
    half = (epsilon * growth - growth + 1) / (2 * growth * (growth - 1 - epsilon))
    ends, values = np.linspace(-half, 1 + half, K + 1), (np.arange(K) + 0.5) / K
    near = np.minimum(ends[1:], values[:, None] + half) - np.maximum(ends[:-1], values[:, None] - half)
    return by_matrix(np.diff(ends) + (growth - 1) * np.maximum(near, 0.0))


def sets(epsilon: float, size: int) -> Mechanism:
    """Subset selection, its matrix written down."""
    chosen = np.array([[x in each for each in combinations(range(K), size)] for x in range(K)])
    return by_matrix(np.where(chosen, math.exp(epsilon), 1.0))


def rivals() -> Iterator[tuple[str, Callable[[float], Mechanism], Callable[[float], Mechanism]]]:
    """Yield name, the mechanism by its local epsilon, and one with the same reports whose matrix is known."""
    yield "randomized response", *[lambda value: hs.RandomizedResponse(k=K, epsilon=value)] * 2
    yield (
        "subset selection, w = 4",
        lambda value: hs.SubsetSelection(k=K, w=4, epsilon=value),
        lambda value: sets(value, 4),
    )
    yield "local hashing, g = 4", *[lambda value: hs.LocalHashing(k=K, g=4, epsilon=value)] * 2
    yield "square wave", square_wave, square_wave


def calibrated(case: Case, build: Callable[[float], Mechanism]) -> float:
    """Return the largest local epsilon up to the cap, within 0.1 %, with which the central promise is kept."""

    def kept(value: float) -> bool:
        protocol = hs.Protocol(randomizer=build(value), shuffler=hs.UniformShuffle(), n=case.n)
        return hs.dp.epsilon(protocol, delta=DELTA).upper <= case.epsilon

    return case.cap if kept(case.cap) else halved(kept, good=case.epsilon, bad=case.cap, times=13)


def designed(case: Case) -> Design:
    return hs.design(n=case.n, k=K, epsilon=case.epsilon, delta=DELTA, local_epsilon_max=case.cap, loss=case.loss)


def heading(case: Case) -> str:
    return (
        f"{case.n:,} people, central ε ≤ {case.epsilon:g} at δ = {DELTA:g}, local ε ≤ {case.cap:g}, "
        f"error of the {case.loss}:"
    )


def row(name: str, local: float, error: float, least: float) -> str:
    return f"| {name} | {local:.2f} | {error:.5f} | {error / least:.2f} |"


def table(case: Case) -> Iterator[str]:
    """Yield the lines of one case."""
    start = time.perf_counter()
    best = designed(case)
    print(f"{time.perf_counter() - start:.0f} s for the design: {best}", flush=True)
    yield heading(case)
    yield ""
    yield "| mechanism | local ε | standard error | over the best |"
    yield "|---|---|---|---|"
    yield row(f"design ({best.randomizer.outputs} reports)", best.randomizer.local_epsilon, best.error, best.error)
    for name, build, known in rivals():
        local = calibrated(case, build)
        yield row(name, local, best.error_of(known(local)), best.error)
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    write = parser.parse_args().write
    lines = []
    for case in CASES:
        for line in table(case):
            print(line, flush=True)
            lines.append(line)
    if write:
        before, rest = PAGE.read_text(encoding="utf-8").split(START)
        PAGE.write_text(before + START + "\n" + "\n".join(lines) + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
