from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import InvalidInputError
from hushuffle.model import Channel


def by_loops(first: list[list[Fraction]], then: list[list[Fraction]]) -> list[list[Fraction]]:
    return [
        [sum((row[m] * then[m][y] for m in range(len(then))), Fraction(0)) for y in range(len(then[0]))]
        for row in first
    ]


def rows(height: int, width: int) -> st.SearchStrategy[list[list[Fraction]]]:
    row = st.lists(st.integers(0, 9), min_size=width, max_size=width).filter(any)
    return st.lists(row.map(lambda r: [Fraction(v, sum(r)) for v in r]), min_size=height, max_size=height)


@given(rows(2, 3), rows(3, 4))
def test_cascade_of_rationals_is_the_matrix_product(first: list[list[Fraction]], then: list[list[Fraction]]) -> None:
    product = Channel(matrix=first).cascade(Channel(matrix=then))
    assert product.matrix.tolist() == by_loops(first, then)
    assert product.rational


def test_floats_and_rationals_cascade_to_floats() -> None:
    exact = Channel(matrix=[[Fraction(1, 3), Fraction(2, 3)], [Fraction(1), Fraction(0)]], inputs="ab", outputs="xy")
    floats = Channel(matrix=[[0.5, 0.5], [0.25, 0.75]])
    for product in (exact.cascade(floats), floats.cascade(exact)):
        assert not product.rational
        assert product.matrix.dtype == np.float64
    assert exact.cascade(floats).matrix[0] == pytest.approx([1 / 3, 2 / 3])
    assert exact.cascade(floats).inputs == ("a", "b")
    assert floats.cascade(exact).outputs == ("x", "y")
    assert floats.cascade(floats).matrix[1].tolist() == [0.3125, 0.6875]


def test_integers_are_rationals() -> None:
    for identity in (Channel(matrix=[[1, 0], [0, 1]]), Channel(matrix=np.eye(2, dtype=np.int64))):
        assert identity.rational
        assert isinstance(identity.matrix[0, 0], Fraction)


def test_equality_is_of_entries_and_their_kind() -> None:
    half = Channel(matrix=[[Fraction(1, 2), Fraction(1, 2)]])
    assert half == Channel(matrix=[[Fraction(2, 4), Fraction(1, 2)]], outputs=("x", "y"))
    assert half != Channel(matrix=[[0.5, 0.5]])
    assert half != Channel(matrix=[[Fraction(1, 4), Fraction(3, 4)]])
    assert half != Channel(matrix=[[1]])
    assert half != "half"
    with pytest.raises(TypeError, match="unhashable"):
        hash(half)


def test_a_channel_cannot_be_written_to() -> None:
    source = np.array([[0.5, 0.5]])
    channel = Channel(matrix=source)
    with pytest.raises(ValueError, match="read-only"):
        channel.matrix[0, 0] = 1.0
    source[0, 0] = 0.9
    assert channel.matrix[0, 0] == 0.5


def test_representation_is_short() -> None:
    assert repr(Channel(matrix=[[0.5, 0.5]])) == "Channel(1 inputs, 2 outputs, float)"
    assert repr(Channel(matrix=[[1]])) == "Channel(1 inputs, 1 outputs, rational)"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"matrix": [1.0]},
            r"`matrix` must be a matrix with at least one row and one column, got matrix=<shape \(1,\)>",
        ),
        ({"matrix": [[1.0], [0.5, 0.5]]}, r"`matrix` must be a matrix with at least one row"),
        ({"matrix": np.zeros((0, 2))}, r"`matrix` must be a matrix .*<shape \(0, 2\)>"),
        ({"matrix": [[1.0, None]]}, r"`matrix` must be finite"),
        ({"matrix": [["a", "b"]]}, r"`matrix` must be numbers, got matrix=<something else>"),
        ({"matrix": [[1.0, {}]]}, r"`matrix` must be numbers, got matrix=<something else>"),
        ({"matrix": [[math.nan, 1.0]]}, r"`matrix` must be finite, got matrix=<nan or infinity>"),
        ({"matrix": [[1.5, -0.5]]}, r"`matrix` must be non-negative"),
        ({"matrix": [[Fraction(3, 2), Fraction(-1, 2)]]}, r"`matrix` must be non-negative"),
        ({"matrix": [[1.0, 0.0], [0.5, 0.4]]}, r"`matrix` must be row-stochastic, got matrix=<row 1 sums to 0.9>"),
        (
            {"matrix": [[Fraction(1, 2), Fraction(1, 3)]]},
            r"`matrix` must be row-stochastic, got matrix=<row 0 sums to 0.83",
        ),
        ({"matrix": [[0.5, 0.5]], "inputs": "ab"}, r"`inputs` must be 1 labels, one for each row, got inputs=2"),
        ({"matrix": [[0.5, 0.5]], "outputs": "a"}, r"`outputs` must be 2 labels, one for each column, got outputs=1"),
    ],
)
def test_what_is_not_a_channel(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Channel(**fields)


def test_cascade_needs_matching_sizes() -> None:
    with pytest.raises(InvalidInputError, match=r"`then` must be a channel with 2 inputs, got then=1"):
        Channel(matrix=[[0.5, 0.5]]).cascade(Channel(matrix=[[1]]))
