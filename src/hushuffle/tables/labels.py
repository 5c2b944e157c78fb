"""Labels of categories, of bins and of missing values; this module reads no files."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Final

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
        import polars as pl  # noqa: PLC0415 - only when needed

        return str(pl.select(self.of(pl.lit(text))).item())

    def names(self, names: Sequence[str]) -> tuple[str, ...]:
        if self == Tidying():
            return tuple(names)
        import polars as pl  # noqa: PLC0415 - only when needed

        table = pl.DataFrame({"name": list(names)}, schema={"name": pl.String})
        return tuple(table.select(self.of(pl.col("name"))).to_series())


Edge = float | date
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
_RULE: Final = "three or more numbers, or dates, in increasing order"
_HINT: Final = "For example [0, 18, 65, inf], or [2024-01-01, 2024-07-01, 2025-01-01]."


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
            shown = ", ".join(str(edge) for edge in self.edges)
            _checks.reject("bins", _RULE, f"[{shown}]", _HINT)

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
