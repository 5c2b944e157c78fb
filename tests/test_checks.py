from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle import _checks, errors
from hushuffle.errors import InvalidInputError


class Broken:
    """Cannot become a number."""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _checks.integer("n", 0, low=1), "`n` must be an integer >= 1, got n=0."),
        (lambda: _checks.integer("n", 9, low=1, high=8), "`n` must be an integer from 1 to 8, got n=9."),
        (lambda: _checks.integer("n", value=True, low=0), "`n` must be an integer >= 0, got n=True."),
        (lambda: _checks.integer("n", np.True_, low=0), "`n` must be an integer >= 0, got n=True."),  # type: ignore[arg-type]
        (lambda: _checks.integer("n", 2.0, low=0, hint="Ask."), "`n` must be an integer >= 0, got n=2.0. Ask."),  # type: ignore[arg-type]
        (lambda: _checks.positive("e", 0), "`e` must be finite and > 0, got e=0.0."),
        (lambda: _checks.positive("e", -1, hint="More."), "`e` must be finite and > 0, got e=-1.0. More."),
        (lambda: _checks.positive("e", math.inf), "`e` must be finite and > 0, got e=inf."),
        (lambda: _checks.positive("e", math.nan), "`e` must be finite and > 0, got e=nan."),
        (
            lambda: _checks.positive("e", -math.inf, allow_infinite=True),
            "`e` must be > 0 (math.inf is allowed), got e=-inf.",
        ),
        (lambda: _checks.positive("e", value=True), "`e` must be finite and > 0, got e=True."),
        (lambda: _checks.positive("e", "1"), "`e` must be finite and > 0, got e='1'."),  # type: ignore[arg-type]
        (lambda: _checks.positive("e", 1j), "`e` must be finite and > 0, got e=<complex>."),  # type: ignore[arg-type]
        (lambda: _checks.non_negative("a", -0.5), "`a` must be finite and >= 0, got a=-0.5."),
        (lambda: _checks.non_negative("a", math.inf, hint="No."), "`a` must be finite and >= 0, got a=inf. No."),
        (lambda: _checks.probability("p", 1.5), "`p` must be in [0, 1], got p=1.5."),
        (lambda: _checks.probability("p", -0.1), "`p` must be in [0, 1], got p=-0.1."),
        (lambda: _checks.probability("p", 0, low_open=True), "`p` must be in (0, 1], got p=0.0."),
        (lambda: _checks.probability("p", 1, high_open=True), "`p` must be in [0, 1), got p=1.0."),
        (
            lambda: _checks.probability("p", math.nan, low_open=True, high_open=True),
            "`p` must be in (0, 1), got p=nan.",
        ),
        (lambda: _checks.codes("v", 3, k=4), "`v` must be a one-dimensional array, got v=<shape ()>."),
        (lambda: _checks.codes("v", [[1]], k=4), "`v` must be a one-dimensional array, got v=<shape (1, 1)>."),
    ],
)
def test_message_names_argument_rule_and_value(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.InvalidInputError) as caught:
        call()
    assert str(caught.value) == message


def test_good_input_comes_back_as_plain_numbers() -> None:
    assert _checks.integer("n", np.int8(3), low=3, high=3) == 3
    assert type(_checks.integer("n", np.int8(3), low=0)) is int
    assert type(_checks.positive("e", np.float32(0.5))) is float
    assert _checks.positive("e", math.inf, allow_infinite=True) == math.inf
    assert _checks.non_negative("a", 0) == 0.0
    assert [_checks.probability("p", value) for value in (0, 1)] == [0.0, 1.0]
    assert _checks.probability("p", 0.5, low_open=True, high_open=True) == 0.5


def test_codes_come_back_as_int64() -> None:
    small = _checks.codes("v", np.array([1, 0, 2], dtype=np.uint8), k=3)
    assert small.dtype == np.int64
    assert small.tolist() == [1, 0, 2]
    assert _checks.codes("v", np.array([], dtype=np.int8), k=3).size == 0
    ready = np.array([0, 1])
    assert _checks.codes("v", ready, k=2) is ready


SECRET = 987_654_321


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0, SECRET], r"integers from 0 to 4, got v=<1 of 2 values outside>"),
        ([-SECRET, 0, 1], r"<1 of 3 values outside>"),
        (np.array([2**64 - 1, SECRET], dtype=np.uint64), r"<2 of 2 values outside>"),
        ([float(SECRET)], r"<dtype float64>"),
        ([str(SECRET)], r"<dtype <U9>. Encode text with hushuffle.Domain\(labels=...\).encode\(values\)."),
        ([SECRET, None], r"<dtype object>"),
        ([True, False], r"<dtype bool>"),
    ],
)
def test_private_values_are_not_shown(values: Any, said: str) -> None:
    with pytest.raises(errors.InvalidInputError, match=said) as caught:
        _checks.codes("v", values, k=5)
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__cause__ is None


def test_numbers_beyond_floats_are_bad_input() -> None:
    with pytest.raises(errors.InvalidInputError):
        _checks.positive("e", 10**400)


def test_an_empty_list_is_no_values() -> None:
    assert _checks.codes("v", [], k=3).size == 0


def test_ragged_lists_are_bad_input() -> None:
    with pytest.raises(errors.InvalidInputError):
        _checks.codes("v", [[1], [1, 2]], k=3)


def test_numbers_that_differ_take_hardly_longer_than_sorting_them() -> None:
    rng = np.random.default_rng(1)
    for size in range(5):
        for numbers in rng.integers(0, 4, (20, size)).astype(np.uint64):
            assert _checks.distinct(numbers) == (len(set(numbers.tolist())) == size)
    many = rng.permutation(10**6).astype(np.uint64)
    start = time.process_time()
    np.sort(many)
    middle = time.process_time()
    assert _checks.distinct(many)
    assert time.process_time() - middle < 5 * (middle - start)  # 1.1 measured; 20 with numpy.unique


def test_every_error_is_a_hushuffle_error() -> None:
    tree = [getattr(errors, name) for name in dir(errors) if name.endswith("Error")]
    assert len(tree) >= 7
    assert all(issubclass(error, errors.HushuffleError) for error in tree)
    assert issubclass(errors.InvalidInputError, ValueError)
    assert issubclass(errors.NumericalError, ArithmeticError)
    assert issubclass(errors.MissingDependencyError, ImportError)


def test_a_specification_error_lists_every_problem() -> None:
    first = errors.Problem(key="n", rule="must be >= 1", value="0")
    second = errors.Problem(key="randomizer.epsilon", rule="must be > 0", value="-1", hint="Try 1.0.")
    both = errors.SpecificationError("survey.toml", (first, second))
    assert str(both) == (
        "survey.toml: 2 problems\n  n: must be >= 1, got 0.\n  randomizer.epsilon: must be > 0, got -1. Try 1.0."
    )
    assert both.problems == (first, second)
    assert str(errors.SpecificationError("a.toml", (first,))).startswith("a.toml: 1 problem\n")


api: Any = hs
"""With arguments of any type."""


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (
            lambda: api.dp.epsilon(None, delta=0.1),
            "`protocol` must be a Protocol or a MixedProtocol or a SplitAndMix, got",
        ),
        (lambda: api.dp.local_epsilon([]), "`protocol` must be a Protocol or a MixedProtocol"),
        (lambda: api.pie.alpha("survey"), "`protocol` must be a Protocol, got protocol=<str>"),
        (lambda: api.qif.bayes_capacity([[1.0]]), "`channel` must be a Channel, got channel=<list>"),
        (lambda: api.qif.shannon_leakage(api.Channel(matrix=[[1.0]]), 0.5), "`prior` must be one probability"),
        (lambda: api.Domain(labels=5), "`labels` must be several texts, got labels=<int>"),
        (lambda: api.Groups.of(5), "`groups` must be a list of one-dimensional arrays"),
        (lambda: api.Groups.of([[0]], n=10**30), "`n` must be an integer from 0"),
        (
            lambda: api.bloom.pair_epsilon(filters=2, bits=9, p=0.2, delta=0.1, target=3),
            "`target` must be two different bit patterns",
        ),
    ],
)
def test_what_is_of_the_wrong_type_is_refused_by_name(ask: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(says)):
        ask()
