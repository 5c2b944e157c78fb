"""Central DP of a shuffled finite channel, by enumerating datasets and multisets of reports."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from oracles.dp_enumeration import Counts, Number, add_report, compositions, hockey_stick

Matrix = Sequence[Sequence[Number]]


def blanket_of(rows: Matrix) -> tuple[Number, list[Number]]:
    """Return (gamma, omega)."""
    shared = [min(column) for column in zip(*rows, strict=True)]
    weight = sum(shared)
    return weight, [mass / weight if weight else mass for mass in shared]


def multisets(rows: Matrix, others: Counts, dummies: int = 0) -> dict[Counts, Number]:
    """Law of the counts of reports when `others[x]` people hold x, plus dummies from the blanket."""
    law: dict[Counts, Number] = {(0,) * len(rows[0]): 1}
    reports = [rows[x] for x, number in enumerate(others) for _ in range(number)]
    for report in [*reports, *[blanket_of(rows)[1]] * dummies]:
        law = add_report(law, list(report))
    return law


def every_delta(
    rows: Matrix, n: int, growth: Number, dummies: int = 0
) -> Iterator[tuple[Number, Counts, tuple[int, int]]]:
    """Yield delta, the others, and the target's two values, for every pair of neighbouring datasets."""
    for others in compositions(n - 1, len(rows)):
        base = multisets(rows, others, dummies)
        reached = [add_report(base, list(row)) for row in rows]
        for a, b in itertools.permutations(range(len(rows)), 2):
            yield hockey_stick(reached[a], reached[b], growth), others, (a, b)


def worst_delta(rows: Matrix, n: int, growth: Number, dummies: int = 0) -> float:
    """The largest of them."""
    return max(float(found[0]) for found in every_delta(rows, n, growth, dummies))


def blanket_delta(rows: Matrix, n: int, growth: float, dummies: int = 0) -> float:
    """The privacy blanket bound, term by term: every number of reports, every sequence of reports."""
    weight, omega = (float(blanket_of(rows)[0]), [float(mass) for mass in blanket_of(rows)[1]])
    support = [y for y, mass in enumerate(omega) if mass > 0]
    worst = 0.0
    for a, b in itertools.permutations(range(len(rows)), 2):
        gains = [float(rows[a][y]) - growth * float(rows[b][y]) for y in range(len(omega))]
        total = sum(max(0.0, gain) for y, gain in enumerate(gains) if y not in support)
        for m in range(n):
            reports = m + 1 + dummies
            chance = math.comb(n - 1, m) * weight**m * (1 - weight) ** (n - 1 - m)
            for drawn in itertools.product(support, repeat=reports) if chance and support else ():
                mass = math.prod(omega[y] for y in drawn)
                total += chance * mass * max(0.0, sum(gains[y] / omega[y] for y in drawn)) / reports
        worst = max(worst, min(total, sum(max(0.0, gain) for gain in gains)))
    return worst


def pool_bound(
    rows: list[list[Fraction]],
    others: Sequence[int],
    target: tuple[int, int],
    growth: Fraction,
    taken: Sequence[Fraction],
) -> Fraction:
    """The bound by a pool that takes `taken[y]` of every report's law, for this dataset, term by term."""
    return slices_bound(rows, others, target, growth, [taken])


def slices_bound(
    rows: list[list[Fraction]],
    others: Sequence[int],
    target: tuple[int, int],
    growth: Fraction,
    slices: Sequence[Sequence[Fraction]],
    portions: Sequence[Fraction] = (),
) -> Fraction:
    """The bound by pools in sequence that take `slices[j][y]` of every report's law, for this dataset, term by term.

    Of the law of other number i they take `portions[i]` times as much.
    """
    outputs, everyone = range(len(rows[0])), range(len(others))
    gain = [rows[target[0]][y] - growth * rows[target[1]][y] for y in outputs]
    laws, reached, total = [rows[z] for z in others], [Fraction(1) for _ in others], Fraction(0)
    shares = portions or [Fraction(1) for _ in others]
    for slice_ in slices:
        taken = [[portion * each / rest for each in slice_] for portion, rest in zip(shares, reached, strict=True)]
        betas = [sum(each, Fraction(0)) for each in taken]
        if any(law[y] <= less[y] for law, less in zip(laws, taken, strict=True) for y in outputs):
            message = "a slice takes more than a person has"
            raise ValueError(message)
        laws = [
            [(law[y] - less[y]) / (1 - beta) for y in outputs]
            for law, less, beta in zip(laws, taken, betas, strict=True)
        ]
        for pooled in itertools.product((False, True), repeat=len(others)):
            left = [i for i in everyone if not pooled[i]]
            chance = math.prod((betas[i] if pooled[i] else 1 - betas[i] for i in everyone), start=Fraction(1))
            inside = Fraction(0)
            for reports in itertools.product(outputs, repeat=len(left)):
                mass = math.prod((laws[i][y] for i, y in zip(left, reports, strict=True)), start=Fraction(1))
                scores = (betas[i] / (1 - betas[i]) * gain[y] / laws[i][y] for i, y in zip(left, reports, strict=True))
                inside += mass * max(Fraction(0), sum(scores, Fraction(0)))
            # The target's report is one of those on the left: it took the place of one of sum(pooled) + 1 in the slice.
            total += math.prod(reached, start=Fraction(1)) * chance * inside / (sum(pooled) + 1)
        reached = [rest * (1 - beta) for rest, beta in zip(reached, betas, strict=True)]
    return total + math.prod(reached, start=Fraction(1)) * sum(max(Fraction(0), one) for one in gain)
