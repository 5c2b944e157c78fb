"""Labels of categories, bins, conditions and missing values: what a specification declares; this reads no files.

Conditions such as ">= 18 and < 30" are parsed without evaluating code.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NoReturn

from hushuffle import _checks

if TYPE_CHECKING:
    import polars as pl

FROM_DATA: Final = "from-data"
_WORDS: Final = ("refuse", "drop")


def as_label(value: str | int) -> str:
    """Return a label as text: true and false for booleans, digits for integers.

    >>> [as_label(value) for value in ("yes", 3, True)]
    ['yes', '3', 'true']
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def missing_label(missing: str, labels: Sequence[str]) -> str | None:
    """Return the category that missing values become, or None for "refuse" and "drop".

    The result may be one of `labels`; otherwise it is a new category after them.

    >>> missing_label("no answer", ["no", "yes"])
    'no answer'
    """
    if missing in _WORDS:
        return None
    if missing not in labels:
        near = difflib.get_close_matches(missing.strip().lower(), _WORDS, n=1)
        if near or not missing.strip():
            hint = f"Did you mean {near[0]!r}?" if near else ""
            _checks.reject("missing", '"refuse", "drop" or the name of a category', repr(missing), hint)
    return missing


_MARK: Final = re.compile(
    r"-{0,3}|[\u2013\u2014.?]|na|n/a|#n/a|n\.a\.|nan|null|nil|k\. ?a\.|keine angabe|s/d|s\.d\.|n\.s\.p\.|nsp|missing|"
    r"empty|no data|not available"
)


def marks_missing(value: str) -> bool:
    """Return whether a value is a common mark of a missing answer.

    >>> marks_missing("N/A"), marks_missing("none")
    (True, False)
    """
    return _MARK.fullmatch(value.strip().casefold()) is not None


@dataclass(frozen=True, kw_only=True)
class Tidying:
    """Text normalization before comparison: remove surrounding spaces (`trim`), ignore capital letters (`casefold`)."""

    trim: bool = False
    casefold: bool = False

    def of(self, texts: pl.Expr) -> pl.Expr:
        texts = texts.str.strip_chars() if self.trim else texts
        return texts.str.to_lowercase() if self.casefold else texts

    def plain(self, text: str) -> str:
        """Return one tidy text.

        >>> Tidying(trim=True, casefold=True).plain(" Bern ")
        'bern'
        """
        return self.names([text])[0]

    def names(self, names: Sequence[str]) -> tuple[str, ...]:
        if self == Tidying():
            return tuple(names)
        import polars as pl  # noqa: PLC0415 - only when needed

        table = pl.DataFrame({"name": list(names)}, schema={"name": pl.String})
        return tuple(table.select(self.of(pl.col("name"))).to_series())


Edge = float | date
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class NumberConditions:
    """A condition for each label, such that every finite number meets exactly one of them."""

    conditions: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Bins:
    """Intervals between increasing `edges`; each interval includes its lower edge and excludes its upper edge.

    The first edge may be -inf and the last inf, also if the other edges are dates.

    >>> Bins(edges=(0, 18, 65, math.inf)).labels
    ('0 to under 18', '18 to under 65', '65 or more')
    """

    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        numbers = [self._number(edge) for edge in self.edges]
        several = len({type(edge) is date for edge in self._finite}) > 1
        increasing = all(low < high for low, high in pairwise(numbers))
        if len(numbers) < 3 or not self._finite or several or not increasing:
            shown = f"[{', '.join(str(edge) for edge in self.edges)}]"
            hint = "For example [0, 18, 65, inf], or [2024-01-01, 2024-07-01, 2025-01-01]."
            _checks.reject("bins", "three or more numbers, or dates, in increasing order", shown, hint)

    @property
    def dates(self) -> bool:
        return isinstance(self._finite[0], date)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._label(low, high) for low, high in pairwise(self.edges))

    @property
    def conditions(self) -> dict[str, str]:
        """The condition of each interval; dates are days since 1970."""
        return {self._label(low, high): self._condition(low, high) for low, high in pairwise(self.edges)}

    @property
    def _finite(self) -> list[Edge]:
        return [edge for edge in self.edges if isinstance(edge, date) or not math.isinf(edge)]

    def _number(self, edge: Edge) -> float:
        return float(edge.toordinal() - _FIRST_DAY) if isinstance(edge, date) else float(edge)

    def _condition(self, low: Edge, high: Edge) -> str:
        ends = [("<", self._number(high)), (">=", self._number(low))]
        return " and ".join(f"{sign} {value!r}" for sign, value in ends if math.isfinite(value))

    def _label(self, low: Edge, high: Edge) -> str:
        before = "before" if self.dates else "under"
        if high == math.inf:
            return f"{_shown(low)} or {'later' if self.dates else 'more'}"
        return f"{before} {_shown(high)}" if low == -math.inf else f"{_shown(low)} to {before} {_shown(high)}"


def _shown(edge: Edge) -> str:
    if isinstance(edge, date):
        return edge.isoformat()
    return str(int(edge)) if float(edge).is_integer() else repr(float(edge))


_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
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
        return reduce(
            operator.or_,
            (
                reduce(operator.and_, (clause.matches(numbers=numbers, texts=texts) for clause in clauses))
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
        if comparison not in ("==", "!="):
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
    _checks.reject("condition", "comparisons with numbers or quoted text, joined by `and`, `or`", repr(text), hint)
