"""Channels of any local mechanism, a guesser with an i.i.d. prior, mutual information: all from the definitions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product

import mpmath

Matrix = list[list[Fraction]]


def random_rows(source: random.Random, rows: int, columns: int) -> Matrix:
    """Return a random stochastic matrix with small fractions, some of them zero."""
    matrix = []
    for _ in range(rows):
        weights = [source.randrange(4) for _ in range(columns)]
        weights[source.randrange(columns)] += 1
        matrix.append([Fraction(weight, sum(weights)) for weight in weights])
    return matrix


def local_mechanism(matrix: Matrix, n: int) -> Matrix:
    """Return the channel of n people who each use `matrix`, datasets to sequences of reports."""
    k, m = len(matrix), len(matrix[0])
    rows = []
    for values in product(range(k), repeat=n):
        row = []
        for reports in product(range(m), repeat=n):
            chance = Fraction(1)
            for value, report in zip(values, reports, strict=True):
                chance *= matrix[value][report]
            row.append(chance)
        rows.append(row)
    return rows


def shuffling(n: int, k: int) -> Matrix:
    """Return the channel that applies one of the n! permutations, each equally likely."""
    table = list(product(range(k), repeat=n))
    orders = list(permutations(range(n)))
    rows = []
    for values in table:
        row = [Fraction(0)] * len(table)
        for order in orders:
            row[table.index(tuple(values[place] for place in order))] += Fraction(1, len(orders))
        rows.append(row)
    return rows


def iid_success(n: int, matrix: Matrix, frequencies: Sequence[Fraction], dummies: int = 0) -> Fraction:
    """Return sum over histograms of the largest joint probability with the first person's value.

    Every dataset, every sequence of reports, every sequence of uniform dummies.
    """
    k, m = len(matrix), len(matrix[0])
    joint: dict[tuple[int, ...], list[Fraction]] = {}
    for values in product(range(k), repeat=n):
        prior = Fraction(1)
        for value in values:
            prior *= frequencies[value]
        for reports in product(range(m), repeat=n + dummies):
            chance = prior / Fraction(m) ** dummies
            for value, report in zip(values, reports[:n], strict=True):
                chance *= matrix[value][report]
            seen = joint.setdefault(tuple(reports.count(cell) for cell in range(m)), [Fraction(0)] * k)
            seen[values[0]] += chance
    return sum((max(weights) for weights in joint.values()), Fraction(0))


def mutual_information(matrix: Matrix, prior: Sequence[Fraction]) -> mpmath.mpf:
    """Return sum_xy p(x) Q(y|x) log2(Q(y|x)/p(y)) to 40 digits."""
    with mpmath.workdps(50):
        total = mpmath.mpf(0)
        for y in range(len(matrix[0])):
            mean = sum((weight * row[y] for weight, row in zip(prior, matrix, strict=True)), Fraction(0))
            for weight, row in zip(prior, matrix, strict=True):
                if weight * row[y]:
                    ratio = row[y] / mean
                    part = weight * row[y]
                    logarithm = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator, 2)
                    total += mpmath.mpf(part.numerator) / part.denominator * logarithm
        return +total


def shuffled_gain(
    matrix: Matrix,
    prior: Sequence[Fraction],
    gain: Sequence[Sequence[Fraction]],
    others: Sequence[Sequence[Fraction]],
    dummies: Sequence[Sequence[Fraction]] = (),
) -> Fraction:
    """Return sum over histograms of the largest expected gain, for a target and others in a uniform shuffle.

    `others` are the distributions of the other people's values (a known value has probability 1). Every person's value
    and report is tried, the reports of `dummies` too.
    """
    outputs = len(matrix[0])
    rest: dict[tuple[int, ...], Fraction] = {(0,) * outputs: Fraction(1)}
    people = [
        [(share * row[y], y) for share, row in zip(shares, matrix, strict=True) for y in range(outputs)]
        for shares in others
    ]
    for law in [*people, *([(chance, y) for y, chance in enumerate(dummy)] for dummy in dummies)]:
        grown: dict[tuple[int, ...], Fraction] = {}
        for histogram, weight in rest.items():
            for chance, y in law:
                key = tuple(count + (cell == y) for cell, count in enumerate(histogram))
                grown[key] = grown.get(key, Fraction(0)) + weight * chance
        rest = grown
    joint: dict[tuple[int, ...], list[Fraction]] = {}
    for value, share in enumerate(prior):
        for histogram, weight in rest.items():
            for y in range(outputs):
                key = tuple(count + (cell == y) for cell, count in enumerate(histogram))
                joint.setdefault(key, [Fraction(0)] * len(prior))[value] += share * weight * matrix[value][y]
    return sum(
        (
            max(sum((g * p for g, p in zip(row, seen, strict=True)), Fraction(0)) for row in gain)
            for seen in joint.values()
        ),
        Fraction(0),
    )
