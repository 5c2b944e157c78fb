"""Parses conditions such as ">= 18 and < 30", without evaluating code."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from hushuffle import _checks

if TYPE_CHECKING:
    import polars as pl

_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ONLY_EQUALITY: Final = ("==", "!=")

_LARGEST: Final = 2.0**53
"""Every smaller integer is exact as a 64-bit float, so comparisons with 64-bit integers are exact."""

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
    | (?P<operator> == | != | <= | >= | < | > )
    | (?P<number> [+-]? (?: \d+ (?: \. \d* )? | \. \d+ ) (?: [eE] [+-]? \d+ )? (?![\w.]) )
    | (?P<text> '[^']*' | "[^"]*" )
    | (?P<word> (?:and|or) \b )""",
    re.VERBOSE | re.ASCII,
)
_RULE: Final = "comparisons with numbers or quoted text, joined by `and`, `or`"
_EXAMPLES: Final = 'For example "== 0", ">= 18 and < 30", "== \'yes\' or == \'maybe\'".'


@dataclass(frozen=True, kw_only=True)
class Clause:
    """One comparison of a column: an `operator`, and the number or text on its right side."""

    operator: str
    value: float | str

    def matches(self, *, numbers: pl.Expr, texts: pl.Expr) -> pl.Expr:
        """Return which records match; a record that is not a number (null) matches no comparison with a number."""
        left = texts if isinstance(self.value, str) else numbers
        matched: pl.Expr = _OPERATORS[self.operator](left, self.value)
        return matched.fill_null(value=False)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A condition with its `text`; it is true if all clauses of at least one of the `alternatives` are true."""

    text: str
    alternatives: tuple[tuple[Clause, ...], ...]

    @property
    def numeric(self) -> bool:
        return any(not isinstance(clause.value, str) for clauses in self.alternatives for clause in clauses)

    def changed(self, change: Callable[[str], str]) -> Condition:
        """Return the condition with the function `change` applied to the text of every comparison with text."""
        alternatives = tuple(
            tuple(
                replace(clause, value=change(clause.value)) if isinstance(clause.value, str) else clause
                for clause in clauses
            )
            for clauses in self.alternatives
        )
        return replace(self, alternatives=alternatives)

    def matches(self, *, numbers: pl.Expr, texts: pl.Expr) -> pl.Expr:
        return _joined(
            operator.or_,
            (
                _joined(operator.and_, (clause.matches(numbers=numbers, texts=texts) for clause in clauses))
                for clauses in self.alternatives
            ),
        )


def parse_condition(text: str) -> Condition:
    """Return the condition that `text` states; `and` binds tighter than `or`.

    Text can only be compared by == and !=, and is compared exactly. Numbers are compared as 64-bit floats and must be
    smaller than 2**53 in size, so that comparisons with 64-bit integers are exact.

    >>> len(parse_condition(">= 18 and < 30 or == 99").alternatives)
    2
    """
    alternatives: list[tuple[Clause, ...]] = []
    clauses: list[Clause] = []
    tokens = _tokens(text)
    while True:
        clauses.append(_clause(text, tokens))
        kind, word = next(tokens, ("end", ""))
        if kind not in ("word", "end"):
            _refuse(text, f"Put `and` or `or` before {word}.")
        if word != "and":
            alternatives.append(tuple(clauses))
            clauses = []
        if kind == "end":
            return Condition(text=text, alternatives=tuple(alternatives))


def _clause(text: str, tokens: Iterator[tuple[str, str]]) -> Clause:
    kind, comparison = next(tokens, ("end", "the end"))
    if kind != "operator":
        _refuse(text, f"Put one of {', '.join(_OPERATORS)} before {comparison}.")
    kind, word = next(tokens, ("end", "the end"))
    if kind == "text":
        if comparison not in _ONLY_EQUALITY:
            _refuse(text, "Compare text only with == or !=.")
        return Clause(operator=comparison, value=word[1:-1])
    if kind != "number":
        _refuse(text, f"Put a number or quoted text between {comparison} and {word}.")
    value = float(word)
    if not abs(value) < _LARGEST:
        _refuse(text, "Numbers must be between -2**53 and 2**53. Compare longer numbers as quoted text.")
    return Clause(operator=comparison, value=value)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            hint = "Equality is written ==." if text[position] == "=" else ""
            _refuse(text, hint or f"The condition is invalid from character {position + 1} on. {_EXAMPLES}")
        if match.lastgroup != "space":
            yield match.lastgroup, match.group()
        position = match.end()


def _refuse(text: str, hint: str) -> NoReturn:
    _checks.reject("condition", _RULE, repr(text), hint)


def _joined(combine: Callable[[pl.Expr, pl.Expr], pl.Expr], parts: Iterator[pl.Expr]) -> pl.Expr:
    whole = next(parts)
    for part in parts:
        whole = combine(whole, part)
    return whole
