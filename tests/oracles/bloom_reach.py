"""Logo counts, empty columns and reach, by enumeration in exact rationals, by plain loops and by simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt

Matrix = list[list[Fraction]]


def flip_law(k: int, p: Fraction) -> Matrix:
    """Return the law of a flipped logo, bit by bit."""
    rows = []
    for before in range(1 << k):
        row = []
        for after in range(1 << k):
            chance = Fraction(1)
            for bit in range(k):
                chance *= p if (before >> bit & 1) != (after >> bit & 1) else 1 - p
            row.append(chance)
        rows.append(row)
    return rows


def inverted(matrix: Matrix) -> Matrix:
    """Return the inverse, by elimination."""
    size = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        pivot = next(j for j in range(i, size) if rows[j][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [entry / rows[i][i] for entry in rows[i]]
        for j in range(size):
            if j != i and rows[j][i] != 0:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[size:] for row in rows]


def times(matrix: Matrix, vector: Sequence[Fraction]) -> list[Fraction]:
    """Return the product."""
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]


def estimated_moments(columns: Sequence[int], k: int, p: Fraction) -> tuple[list[Fraction], Matrix]:
    """Return mean and covariance of P^-1 x, by enumerating every release of these columns."""
    law, back, size = flip_law(k, p), inverted(flip_law(k, p)), 1 << k
    mean = [Fraction(0)] * size
    second = [[Fraction(0)] * size for _ in range(size)]
    for release in product(range(size), repeat=len(columns)):
        chance = Fraction(1)
        for before, after in zip(columns, release, strict=True):
            chance *= law[before][after]
        found = times(back, [Fraction(release.count(logo)) for logo in range(size)])
        for i in range(size):
            mean[i] += chance * found[i]
            for j in range(size):
                second[i][j] += chance * found[i] * found[j]
    return mean, [[second[i][j] - mean[i] * mean[j] for j in range(size)] for i in range(size)]


def balls(people: Sequence[int], hashes: int) -> list[int]:
    """Return the audiences of every ball thrown, one for each person and hash function."""
    return [kind for kind, count in enumerate(people) for _ in range(count * hashes) if kind]


def empty_columns_by_enumeration(
    people: Sequence[int], hashes: int, bits: int, first: int, other: int
) -> tuple[Fraction, Fraction]:
    """Return the mean of the number of columns empty for `first`, and its covariance with that for `other`."""
    thrown = balls(people, hashes)
    mean, mean_other, mixed = Fraction(0), Fraction(0), Fraction(0)
    for places in product(range(bits), repeat=len(thrown)):
        logos = [0] * bits
        for kind, place in zip(thrown, places, strict=True):
            logos[place] |= kind
        one, two = (sum(logo & audiences == 0 for logo in logos) for audiences in (first, other))
        mean, mean_other, mixed = mean + one, mean_other + two, mixed + one * two
    ways = bits ** len(thrown)
    return mean / ways, mixed / ways - mean * mean_other / ways**2


def empty_columns(people: Sequence[int], hashes: int, bits: int, first: int, other: int) -> tuple[Fraction, Fraction]:
    """Return the same in closed form: a ball misses a column with chance 1 - 1/m, two columns with 1 - 2/m."""
    one = miss_both = mean = mean_other = Fraction(1)
    single, double = 1 - Fraction(1, bits), 1 - Fraction(2, bits)
    for kind, count in enumerate(people):
        thrown, hits = count * hashes, (bool(kind & first), bool(kind & other))
        if any(hits):
            one *= single**thrown
            miss_both *= double**thrown if all(hits) else single**thrown
        mean *= single**thrown if hits[0] else 1
        mean_other *= single**thrown if hits[1] else 1
    miss = bits * one + bits * (bits - 1) * miss_both
    return bits * mean, miss - bits * mean * bits * mean_other


def flip_covariance(truth: Sequence[float], k: int, p: float, first: int, other: int) -> float:
    """Return the covariance, over flips, of the unbiased numbers of columns empty for two sets of filters."""
    q, total = 1 - p, 0.0
    for logo, count in enumerate(truth):
        mixed = 0.0
        for report in range(1 << k):
            chance, weights = 1.0, [1.0, 1.0]
            for bit in range(k):
                is_set = report >> bit & 1
                chance *= q if (logo >> bit & 1) == is_set else p
                for place, audiences in enumerate((first, other)):
                    if audiences >> bit & 1:
                        weights[place] *= (-p if is_set else q) / (q - p)
            mixed += chance * weights[0] * weights[1]
        total += count * (mixed - (logo & first == 0) * (logo & other == 0))
    return total


def expected_logos(people: Sequence[int], hashes: int, bits: int) -> list[float]:
    """Return the mean number of columns with each logo."""
    k = (len(people) - 1).bit_length()
    everyone = (1 << k) - 1
    law = []
    for logo in range(1 << k):
        total = 0.0
        for part in range(1 << k):
            if part & ~logo == 0:  # columns with no one outside `part`
                mean, _ = empty_columns(people, hashes, bits, everyone ^ part, 0)
                total += (-1) ** (logo ^ part).bit_count() * float(mean)
        law.append(total)
    return law


def weights_of(question: str, chosen: int, k: int) -> dict[int, int]:
    """Return whole numbers w_S with: answer = sum of w_S (people reached by S), found by solving for every kind."""
    kinds = range(1, 1 << k)
    wanted = {
        "reach": [kind & chosen != 0 for kind in kinds],
        "overlap": [kind & chosen == chosen for kind in kinds],
        "exclusive": [kind == chosen for kind in kinds],
    }[question]
    matrix = [[Fraction(int(kind & audiences != 0)) for audiences in kinds] for kind in kinds]
    found = times(inverted(matrix), [Fraction(int(each)) for each in wanted])
    return {audiences: int(each) for audiences, each in zip(kinds, found, strict=True) if each}


def standard_error(question: str, chosen: int, people: Sequence[int], *, hashes: int, bits: int, p: float) -> float:
    """Return the delta method's standard error, pair of sets by pair of sets."""
    k = (len(people) - 1).bit_length()
    weights, truth, total = weights_of(question, chosen, k), expected_logos(people, hashes, bits), 0.0
    slopes = {
        audiences: -bits / hashes * weight / float(empty_columns(people, hashes, bits, audiences, audiences)[0])
        for audiences, weight in weights.items()
    }
    for first, one in slopes.items():
        for other, two in slopes.items():
            collisions = float(empty_columns(people, hashes, bits, first, other)[1])
            total += one * two * (collisions + flip_covariance(truth, k, p, first, other))
    return math.sqrt(total)


def studies(
    people: list[int], *, bits: int, hashes: int, p: float, times: int, seed: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Simulate studies: yield released logo counts; people[i] are in exactly the audiences of set bits i."""
    rng = np.random.default_rng(seed)
    k = (len(people) - 1).bit_length()
    for _ in range(times):
        logos = np.zeros(bits, dtype=np.int64)
        for kind, count in enumerate(people):
            logos[rng.integers(bits, size=count * hashes)] |= kind
        for bit in range(k):
            logos ^= (rng.random(bits) < p).astype(np.int64) << bit
        yield np.bincount(logos, minlength=1 << k)
