"""Checks of arguments with uniform error messages, which name the argument, the rule and the value."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Iterable
from typing import Any, NoReturn, Self, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from hushuffle.errors import DataError, InvalidInputError, Problem, UnsupportedProtocolError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]


def fail(message: str) -> NoReturn:
    """Raise `DataError(message)` without the original exception, whose text may quote private data."""
    raise DataError(message) from None


def unsupported(message: str) -> NoReturn:
    raise UnsupportedProtocolError(message)


def reject(name: str, rule: str, value: object, hint: str = "") -> NoReturn:
    """Raise `InvalidInputError`, as in: "`epsilon` must be finite and > 0, got epsilon=-1.0. Hint"."""
    raise InvalidInputError(Problem(key=name, rule=f"must be {rule}", value=f"{value}", hint=hint))


def of_type(name: str, value: object, *types: type) -> None:
    """Raise an error unless `value` has one of the given types; the message does not show the value."""
    if not isinstance(value, types):
        reject(name, "a " + " or a ".join(each.__name__ for each in types), f"<{type(value).__name__}>")


class ByName:
    """Base of classes whose arguments are keyword-only; the error for a positional argument lists the keywords."""

    def __new__(cls, *given: Any, **_named: Any) -> Self:
        names = tuple(inspect.signature(cls.__init__).parameters.values())[1:] if given else ()
        if len(given) > sum(name.kind is not name.KEYWORD_ONLY for name in names):
            shown = ", ".join(f"{name.name}=..." for name in names if name.default is name.empty)
            message = f"{cls.__name__} needs keyword arguments: {cls.__name__}({shown})."
            raise TypeError(message)
        return super().__new__(cls)


def integer(name: str, value: SupportsIndex, *, low: int, high: int | None = None, hint: str = "") -> int:
    """Return `value` as an int; raise an error if it is not in [low, high]."""
    rule = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    if isinstance(value, bool | np.bool_):
        reject(name, rule, value, hint)
    try:
        number = operator.index(value)
    except TypeError:
        reject(name, rule, value, hint)
    if number < low or (high is not None and number > high):
        reject(name, rule, number, hint)
    return number


def positive(name: str, value: SupportsFloat, *, allow_infinite: bool = False, hint: str = "") -> float:
    """Return `value` as a float; raise an error unless it is > 0 and, without `allow_infinite`, finite."""
    rule = "> 0 (math.inf is allowed)" if allow_infinite else "finite and > 0"
    number = _number(name, value, rule, hint)
    if not number > 0 or (math.isinf(number) and not allow_infinite):
        reject(name, rule, number, hint)
    return number


def non_negative(name: str, value: SupportsFloat, *, hint: str = "") -> float:
    """Return `value` as a float; raise an error unless it is finite and >= 0."""
    number = _number(name, value, "finite and >= 0", hint)
    if not 0 <= number < math.inf:
        reject(name, "finite and >= 0", number, hint)
    return number


def finite(name: str, value: SupportsFloat, *, hint: str = "") -> float:
    number = _number(name, value, "finite", hint)
    if math.isinf(number):
        reject(name, "finite", number, hint)
    return number


def probability(
    name: str, value: SupportsFloat, *, low_open: bool = False, high_open: bool = False, hint: str = ""
) -> float:
    """Return `value` as a float; raise an error unless it is in [0, 1] (`low_open`: not 0, `high_open`: not 1)."""
    rule = f"in {'(' if low_open else '['}0, 1{')' if high_open else ']'}"
    number = _number(name, value, rule, hint)
    inside = (number > 0 if low_open else number >= 0) and (number < 1 if high_open else number <= 1)
    if not inside:
        reject(name, rule, number, hint)
    return number


def codes(name: str, values: npt.ArrayLike, *, k: int) -> npt.NDArray[np.int64]:
    """Return `values` as a one-dimensional array of integers 0..k-1, or raise an error that shows no value."""
    try:
        array = np.asarray(values)
    except ValueError:
        reject(name, "a one-dimensional array", "<ragged>")
    if array.ndim != 1:
        reject(name, "a one-dimensional array", f"<shape {array.shape}>")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        hint = "Encode text with hushuffle.Domain(labels=...).encode(values)."
        reject(name, f"integers from 0 to {k - 1}", f"<dtype {array.dtype}>", hint)
    if array.size and (int(array.min()) < 0 or int(array.max()) >= k):
        wrong = int(np.count_nonzero((array < 0) | (array >= k)))
        reject(name, f"integers from 0 to {k - 1}", f"<{wrong} of {array.size} values outside>")
    return array.astype(np.int64, copy=False)


def set_fields(record: object, **fields: Any) -> None:
    """Set fields of a frozen dataclass, in its `__post_init__`."""
    for name, value in fields.items():
        object.__setattr__(record, name, value)


def distinct(numbers: npt.NDArray[Any]) -> bool:
    """Return whether all numbers are different, about twenty times faster than `numpy.unique`."""
    if bool((numbers[1:] > numbers[:-1]).all()):
        return True
    ascending = np.sort(numbers)
    return not bool((ascending[1:] == ascending[:-1]).any())


def no_nan(name: str, *lists: Iterable[float]) -> None:
    """Raise an error if a number is nan; infinity is allowed."""
    if any(value != value for values in lists for value in values):  # noqa: PLR0124 - only nan differs from itself
        reject(name, "numbers", "nan")


def _number(name: str, value: SupportsFloat, rule: str, hint: str) -> float:
    if isinstance(value, bool | np.bool_ | str):
        reject(name, rule, repr(value), hint)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        reject(name, rule, f"<{type(value).__name__}>", hint)
    if math.isnan(number):
        reject(name, rule, number, hint)
    return number
