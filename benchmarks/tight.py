"""How wide certified brackets of central epsilon are, mechanism by mechanism, and how long they take.

    python benchmarks/tight.py           prints the table
    python benchmarks/tight.py --write   writes docs/reference/what-is-tight.md

Time is in units: sorting 10^7 floats in the same run. Takes a few minutes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

import hushuffle as hs
from hushuffle.mechanisms.randomizers import Mechanism

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "what-is-tight.md"
Floats = npt.NDArray[np.float64]


def by_matrix(rows: Floats) -> Mechanism:
    return hs.MatrixRandomizer(channel=hs.Channel(matrix=rows / rows.sum(axis=1, keepdims=True)))


def truncated_geometric(k: int, epsilon: float) -> Mechanism:
    """Noise of the law r**|z|, what falls beyond an end counted there; epsilon is the loss across the whole range."""
    ratio = math.exp(-epsilon / (k - 1))
    away = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    rows = (1 - ratio) / (1 + ratio) * ratio**away
    rows[:, [0, -1]] = ratio ** away[:, [0, -1]] / (1 + ratio)
    return by_matrix(rows)


def noise(k: int, density: Callable[[Floats], Floats]) -> Mechanism:
    """Values 0, 1/(k-1), ..., 1 with noise of this density on the same grid from -3 to 4."""
    values, reports = np.linspace(0, 1, k), np.arange(-3 * (k - 1), 4 * (k - 1) + 1) / (k - 1)
    return by_matrix(density(np.subtract.outer(values, reports)))


def square_wave(k: int, epsilon: float) -> Mechanism:
    """Li et al. 2020: near the value e**epsilon times as likely, in k cells of values and of reports."""
    growth = math.exp(epsilon)
    half = (epsilon * growth - growth + 1) / (2 * growth * (growth - 1 - epsilon))
    ends, values = np.linspace(-half, 1 + half, k + 1), (np.arange(k) + 0.5) / k
    near = np.minimum(ends[1:], values[:, None] + half) - np.maximum(ends[:-1], values[:, None] - half)
    return by_matrix(np.diff(ends) + (growth - 1) * np.maximum(near, 0.0))


def cases() -> Iterator[tuple[str, Mechanism, int, int, float]]:
    """Yield name, mechanism, people, dummies and delta."""
    for n in (100, 100_000):
        yield "randomized response, k = 10, epsilon_0 = 2", hs.RandomizedResponse(k=10, epsilon=2.0), n, 0, 1e-6
        yield "subset selection, k = 10, w = 3, epsilon_0 = 1", hs.SubsetSelection(k=10, w=3, epsilon=1.0), n, 0, 1e-6
        yield "one-hot OUE, k = 1,000, epsilon_0 = 1", hs.UnaryEncoding(k=1000, epsilon=1.0), n, 0, 1e-6
        rappor = hs.UnaryEncoding(k=1000, epsilon=1.0, encoding="symmetric")
        yield "one-hot SUE (RAPPOR), k = 1,000, epsilon_0 = 1", rappor, n, 0, 1e-6
        yield "Hadamard response, k = 1,000, epsilon_0 = 1", hs.HadamardResponse(k=1000, epsilon=1.0), n, 0, 1e-6
        yield "square wave, 16 cells, epsilon_0 = 1", square_wave(16, 1.0), n, 0, 1e-6
        yield "truncated geometric, k = 16, epsilon_0 = 3", truncated_geometric(16, 3.0), n, 0, 1e-6
        yield "discretised Gaussian, sigma = 1, k = 8", noise(8, lambda z: np.exp(-(z**2) / 2)), n, 0, 1e-6
        yield "discretised Laplace, epsilon_0 = 1, k = 8", noise(8, lambda z: np.exp(-np.abs(z))), n, 0, 1e-6
        yield "local hashing, k = 1,000, g = 4, epsilon_0 = 1", hs.LocalHashing(k=1000, g=4, epsilon=1.0), n, 0, 1e-6
        yield "local hashing, k = 1,000, g = 3, epsilon_0 = 1", hs.LocalHashing(k=1000, g=3, epsilon=1.0), n, 0, 1e-6
    for width, n, p, delta in (
        (3, 1000, 0.1, 1e-4),
        (4, 1000, 0.4, 1e-6),
        (6, 100_000, 0.1, 1e-4),
        (6, 100_000, 0.145, 1e-3),
        (20, 10_000, 0.365, 1e-3),
    ):
        yield f"{width} filters flipped with p = {p:g}, δ = {delta:g}", hs.BitFlipping(width=width, p=p), n, 0, delta
    sampling = hs.TargetSampling(targets=20, sigma=0.2)
    yield "target sampling, T = 20, sigma = 0.2, 50 dummies, δ = 0.0001", sampling, 100, 50, 1e-4
    for dummies in (10, 1000, 100_000):
        subset = hs.SubsetSelection(k=10, w=3, epsilon=2.0)
        yield f"subset selection, k = 10, w = 3, epsilon_0 = 2, {dummies:,} dummies", subset, 1000, dummies, 1e-6


def shuffler_of(dummies: int) -> hs.Scrambler | hs.UniformShuffle:
    return hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()


GROUPED: dict[str, Callable[[float], Mechanism]] = {
    "subset selection, k = 8, w = 2": lambda epsilon: hs.SubsetSelection(k=8, w=2, epsilon=epsilon),
    "one-hot OUE, k = 8": lambda epsilon: hs.UnaryEncoding(k=8, epsilon=epsilon),
}


def groups() -> Iterator[tuple[str, hs.Protocol | hs.MixedProtocol, int]]:
    """Yield the view of a person of each half of a crowd, of 100 and of 20,000 people."""
    for n, (name, kind) in itertools.product((100, 20_000), GROUPED.items()):
        halves = [(n // 2, kind(1.0)), (n // 2, kind(3.0))]
        crowd = hs.MixedProtocol(groups=halves, shuffler=hs.UniformShuffle())
        for group, epsilon in enumerate((1, 3)):
            yield f"{name}, mixed: person with {epsilon}", crowd.member(group), n


def measured() -> Iterator[tuple[str, int, str]]:
    """Yield name, people, and the cells of a figure."""
    floats = np.random.default_rng(0).random(10**7)
    start = time.perf_counter()
    np.sort(floats)
    unit = time.perf_counter() - start
    crowds = [
        (name, hs.Protocol(randomizer=randomizer, shuffler=shuffler_of(dummies), n=n), n, delta)
        for name, randomizer, n, dummies, delta in cases()
    ]
    for name, protocol, n, delta in (*crowds, *((*each, 1e-6) for each in groups())):
        start = time.perf_counter()
        bound = hs.dp.epsilon(protocol, delta=delta)
        took = (time.perf_counter() - start) / unit
        yield name, n, f"{bound.lower:.5g} | {bound.upper:.5g} | {bound.width / bound.lower:.2%} | {took:.1f}"


def tables(figures: Iterable[tuple[str, int, str]]) -> str:
    """Return a table for each pair of numbers of people, and one for the cases with a single number."""
    cells: dict[str, dict[int, str]] = {}
    for name, n, figure in figures:
        cells.setdefault(name, {})[n] = figure
    lines: list[str] = []
    for sizes in dict.fromkeys(tuple(row) for row in cells.values() if len(row) == 2):
        columns = [f"{n:,} people: lower ε | upper ε | width | time" for n in sizes]
        lines += ["| mechanism | " + " | ".join(columns) + " |", "|---" * 9 + "|"]
        lines += [f"| {name} | {' | '.join(row.values())} |" for name, row in cells.items() if tuple(row) == sizes]
        lines.append("")
    rest = [(name, *next(iter(row.items()))) for name, row in cells.items() if len(row) == 1]
    lines += ["| mechanism | people | lower ε | upper ε | width | time |", "|---" * 6 + "|"]
    return "\n".join([*lines, *(f"| {name} | {n:,} | {figure} |" for name, n, figure in rest)]) + "\n"


HEAD = """# What is tight where

How wide, relative to the lower bound, is the certified bracket of central ε? Time is in units of sorting 10⁷ floats.
δ = 10⁻⁶ unless stated. *Mixed*: half of the people have local ε 1, half have 3; the ε
is for a person of one half. `python benchmarks/tight.py --write` measures again.

"""

TAIL = """
- **Crowds.** If at least about ln(1/δ) + 6 reports are expected from the common part of all values' distributions,
  the bracket of any finite randomizer is a few per cent wide ([pools in sequence](../theory/pool.md)); with twice as
  many, a few per mille.
- **Local hashing** with g = 3 has a width of 2 %, because its bound on collisions of three values is not attained.
- **Rare reports** (many filters with small p, or few people and many values). The target of the upper bound hides only
  among similar reports, or in a pool ([proofs](../theory/crowds.md)). Where every dataset can be enumerated, the lower
  bound of ε is within 8 % of the worst one, with dummies or groups within 4 %.
- **Dummies, and groups with different noise.** The adversary of the upper bound knows which reports are dummies, or
  of which group ([proof](../theory/pool.md)). For randomized response a separate formula closes the bracket.
- **Memoized reports with fresh noise.** The adversary of the upper bound links a person's reports: 22 % for ten waves
  of 10,000 people.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="write the page")
    write = parser.parse_args().write
    figures = []
    for figure in measured():
        print(*figure, flush=True)
        figures.append(figure)
    if write:
        PAGE.write_text(HEAD + tables(figures) + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main()
