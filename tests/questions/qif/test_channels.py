"""Jurado et al. 2023, Tables I to V, entry by entry, and what the channels' algebra says."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model import Channel
from hushuffle.questions import qif
from oracles.qif_guessing import channel, histogram_law_by_reports

P = Fraction(3, 4)
Q = 1 - P
NAMES = {"aaa": (0, 0, 0), "aab": (0, 0, 1), "aba": (0, 1, 0), "baa": (1, 0, 0)} | {
    "abb": (0, 1, 1),
    "bab": (1, 0, 1),
    "bba": (1, 1, 0),
    "bbb": (1, 1, 1),
}
SMALL = [(1, 2), (3, 2), (2, 3), (3, 3), (2, 4)]
TRUTHS = [Fraction(3, 4), Fraction(1), Fraction(1, 2)]


def entry(matrix: Channel, x: str, y: object) -> Fraction:
    """Look up by the names in the tables; a column may also be a number of b's (histograms)."""
    column = matrix.outputs.index(NAMES[y] if isinstance(y, str) else (3 - int(str(y)), int(str(y))))
    value: Fraction = matrix.matrix[matrix.inputs.index(NAMES[x]), column]
    return value


def test_table_one_noise() -> None:
    noise = qif.noise(3, 2, P)
    by_lies = [P**3, P**2 * Q, P * Q**2, Q**3]
    for x, y in product(NAMES, repeat=2):
        assert entry(noise, x, y) == by_lies[sum(a != b for a, b in zip(x, y, strict=True))]
    assert entry(noise, "aaa", "aab") == P**2 * Q == Fraction(9, 64)


def test_table_one_shuffle() -> None:
    shuffle, reduced = qif.shuffle(3, 2), qif.reduced_shuffle(3, 2)
    for x, y in product(NAMES, repeat=2):
        same = x.count("b") == y.count("b")
        expected = Fraction(1, 3 if x.count("b") in (1, 2) else 1) if same else 0
        assert entry(shuffle, x, y) == expected
    for x, ones in product(NAMES, range(4)):
        assert entry(reduced, x, ones) == (x.count("b") == ones)


# Probability of `ones` b's among the reports, by the b's in the dataset, spelled out.
TABLE_THREE = {
    0: (P**3, 3 * P**2 * Q, 3 * P * Q**2, Q**3),
    1: (P**2 * Q, P**3 + 2 * P * Q**2, Q**3 + 2 * P**2 * Q, P * Q**2),
    2: (P * Q**2, Q**3 + 2 * P**2 * Q, P**3 + 2 * P * Q**2, P**2 * Q),
    3: (Q**3, 3 * P * Q**2, 3 * P**2 * Q, P**3),
}


def test_tables_two_noise_and_shuffle() -> None:
    cascade = qif.noise_then_shuffle(3, 2, P)
    for x, y in product(NAMES, repeat=2):
        orders = 3 if y.count("b") in (1, 2) else 1
        assert entry(cascade, x, y) == TABLE_THREE[x.count("b")][y.count("b")] / orders
    assert cascade == qif.shuffle_then_noise(3, 2, P)


def test_tables_three_and_five_noise_and_reduced_shuffle() -> None:
    cascade = qif.noise_then_reduced_shuffle(3, 2, P)
    for x, ones in product(NAMES, range(4)):
        assert entry(cascade, x, ones) == TABLE_THREE[x.count("b")][ones]
    assert cascade == qif.reduced_shuffle(3, 2).cascade(qif.reduced_noise(3, 2, P))


def test_table_four_reduced_noise() -> None:
    reduced = qif.reduced_noise(3, 2, P)
    assert reduced.inputs == reduced.outputs == ((3, 0), (2, 1), (1, 2), (0, 3))
    for ones, row in TABLE_THREE.items():
        assert tuple(reduced.matrix[ones]) == row


@pytest.mark.parametrize(("n", "k"), SMALL)
@pytest.mark.parametrize("truth", TRUTHS)
def test_cascades_are_matrix_products(n: int, k: int, truth: Fraction) -> None:
    noise, shuffle, reduced = qif.noise(n, k, truth), qif.shuffle(n, k), qif.reduced_shuffle(n, k)
    assert qif.noise_then_shuffle(n, k, truth) == noise.cascade(shuffle)
    assert qif.shuffle_then_noise(n, k, truth) == shuffle.cascade(noise)
    assert noise.cascade(shuffle) == shuffle.cascade(noise)
    assert qif.noise_then_reduced_shuffle(n, k, truth) == noise.cascade(reduced)
    assert noise.cascade(reduced) == reduced.cascade(qif.reduced_noise(n, k, truth))


@pytest.mark.parametrize(("n", "k"), SMALL)
def test_reduced_noise_by_enumeration(n: int, k: int) -> None:
    """Average over the datasets of a histogram, from every sequence of reports."""
    reduced = qif.reduced_noise(n, k, P)
    for row, source in enumerate(reduced.inputs):
        members = [x for x in qif.datasets(n, k) if tuple(x.count(v) for v in range(k)) == source]
        for column, goal in enumerate(reduced.outputs):
            assert isinstance(goal, tuple)
            laws = [histogram_law_by_reports(x, channel(k, P)).get(goal, Fraction(0)) for x in members]
            assert reduced.matrix[row, column] == sum(laws, Fraction(0)) / len(members)


@pytest.mark.parametrize(("n", "k"), SMALL)
def test_merging_columns_gives_the_reduced_channels(n: int, k: int) -> None:
    assert qif.merge_proportional_columns(qif.shuffle(n, k)) == qif.reduced_shuffle(n, k)
    noisy = qif.noise_then_shuffle(n, k, P)
    assert qif.merge_proportional_columns(noisy) == qif.noise_then_reduced_shuffle(n, k, P)


def test_merging_drops_columns_that_never_occur() -> None:
    row = [Fraction(1, 2), Fraction(0), Fraction(1, 2)]
    merged = qif.merge_proportional_columns(Channel(matrix=[row, row], outputs=["u", "v", "w"]))
    assert merged.outputs == ("u",)
    assert merged.matrix.tolist() == [[1], [1]]


def test_merging_needs_rationals() -> None:
    with pytest.raises(InvalidInputError, match="rational"):
        qif.merge_proportional_columns(Channel(matrix=np.full((2, 2), 0.5)))


def test_largest_allowed_size_and_beyond() -> None:
    assert len(qif.datasets(8, 2)) == len(qif.datasets(4, 4)) == 256
    for n, k in ((9, 2), (6, 3), (1, 257), (10**6, 2)):
        with pytest.raises(InvalidInputError, match="256"):
            qif.datasets(n, k)


@pytest.mark.parametrize("truth", [Fraction(1, 3), Fraction(5, 4), True, 0.75])
def test_refuses_a_wrong_truth_probability(truth: Fraction) -> None:
    with pytest.raises(InvalidInputError, match="`truth` must be"):
        qif.noise(2, 2, truth)
