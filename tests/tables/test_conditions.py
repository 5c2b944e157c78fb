from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushuffle.errors import InvalidInputError
from hushuffle.tables.labels import parse_condition

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def matched(text: str, values: list[float | None]) -> list[bool]:
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
    texts = pl.col("x").cast(pl.Int64).cast(pl.String)
    return frame.select(parse_condition(text).matches(numbers=pl.col("x"), texts=texts)).to_series().to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("== 0", [True, False, False, False]),
        ("!=0", [False, True, True, True]),
        ("> 0", [False, True, True, True]),
        (">= 1 and < 30", [False, True, True, False]),
        ("<= -0.5e0 or >=+3.e1", [False, False, False, True]),
        ("== 0 or > 1 and < 30", [True, False, True, False]),
        ("== '18'", [False, False, True, False]),
        ("!= \"18\" and != '0'", [False, True, False, True]),
        ("  ==  .5 or==1", [False, True, False, False]),
    ],
)
def test_what_conditions_mean(text: str, expected: list[bool]) -> None:
    assert matched(text, [0, 1, 18, 30]) == expected


def test_a_record_that_is_no_number_matches_no_comparison_with_a_number() -> None:
    assert matched("!= 1", [None, 2]) == [False, True]
    assert matched("!= 'a'", [None, 2]) == [False, True]


CLAUSES = st.tuples(st.sampled_from(sorted(COMPARE)), st.integers(-4, 4) | st.sampled_from([0.5, -2.25, 1e-3]))
CONDITIONS = st.lists(st.lists(CLAUSES, min_size=1, max_size=3), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(CONDITIONS, st.lists(st.integers(-5, 5), min_size=1, max_size=6))
def test_conditions_agree_with_plain_loops(alternatives: list[list[tuple[str, float]]], values: list[int]) -> None:
    text = " or ".join(" and ".join(f"{sign} {number}" for sign, number in clauses) for clauses in alternatives)
    expected = [
        any(all(COMPARE[sign](value, number) for sign, number in clauses) for clauses in alternatives)
        for value in values
    ]
    assert matched(text, [float(value) for value in values]) == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "before the end"),
        ("= 0", "Equality is written =="),
        ("0", "Put one of ==, !=, <, <=, >, >= before 0"),
        ("==", "between == and the end"),
        ("== and", "between == and and"),
        ("== 0 ==", "Put `and` or `or` before =="),
        ("== 0 and", "before the end"),
        ("> 'a'", "Compare text only with == or !="),
        ("== yes", "invalid from character 4 on"),
        ("== 'yes", "invalid from character 4 on"),
        ("== 1_000", "invalid from character 4 on"),
        ("== 0x10", "invalid from character 4 on"),
        ("== 1.2.3", "invalid from character 4 on"),
        ("== \u0661", "invalid from character 4 on"),  # an Arabic digit
        ("== 9007199254740992", "between -2**53 and 2**53"),
        ("== 1e999", "between -2**53 and 2**53"),
        ("__import__('os')", "invalid from character 1 on"),
        ("== 0; > 1", "invalid from character 5 on"),
    ],
)
def test_everything_else_is_refused(text: str, hint: str) -> None:
    with pytest.raises(InvalidInputError, match="`condition` must be comparisons") as caught:
        parse_condition(text)
    assert hint in str(caught.value)


def test_numeric_says_whether_numbers_are_compared() -> None:
    assert parse_condition("== 'a' or == 1").numeric
    assert not parse_condition("== 'a'").numeric
