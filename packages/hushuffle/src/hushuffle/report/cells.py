"""The cells of a table as text, which is the same on the page and on a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from hushuffle.model import Bound, Cell, Table, as_bound, number
from hushuffle.report.formatting import BoundText, figure, plain

_FEWEST_DIGITS, _MOST_DIGITS = 4, 6
_MOST_PLACES = 6


@dataclass(frozen=True, kw_only=True)
class CellText:
    """One cell: its text, and for a figure its kind, for example "upper bound" ("" if the column has this kind)."""

    text: str
    kind: str = ""
    style: str = ""


@dataclass(frozen=True, kw_only=True)
class CellColumn:
    """One column: heading, kind of all its figures ("" if the kinds differ), whether it contains text, and cells."""

    heading: str
    cells: tuple[CellText, ...]
    words: bool
    kind: str = ""
    style: str = ""


def cell_columns(table: Table) -> tuple[CellColumn, ...]:
    """Return the columns of `table`.

    >>> made = Table(key="k", title="T", caption="", columns=("n", "V"), rows=((10, 0.25), (1000, 1 / 3)))
    >>> [[cell.text for cell in column.cells] for column in cell_columns(made)]
    [['10', '1,000'], ['0.2500', '0.3333']]
    """
    return tuple(
        _column(plain(heading), [row[position] for row in table.rows]) for position, heading in enumerate(table.columns)
    )


def _column(heading: str, cells: Sequence[Cell]) -> CellColumn:
    bounds = [as_bound(cell) for cell in cells]
    digits, places = _digits(cells), _places(cells)
    figures = [None if bound is None else _figure(bound, digits) for bound in bounds]
    kinds = {shown.kind for shown in figures if shown is not None}
    common = kinds.pop() if len(kinds) == 1 else ""
    texts = tuple(
        CellText(text=_text(cell, digits, places))
        if bound is None or shown is None
        else CellText(text=shown.value, kind="" if common else shown.kind, style=bound.kind)
        for cell, bound, shown in zip(cells, bounds, figures, strict=True)
    )
    style = next((bound.kind for bound in bounds if bound is not None), "") if common else ""
    words = any(isinstance(cell, str) and any(map(str.isalpha, cell)) for cell in cells)
    return CellColumn(heading=heading, cells=texts, words=words, kind=common, style=style)


def _digits(cells: Sequence[Cell]) -> int:
    """Return the number of significant digits, four to six, that distinguishes the exact numbers of a column."""
    bounds = (as_bound(cell) for cell in cells)
    values = {bound.upper for bound in bounds if bound is not None and bound.kind == "exact"}
    values |= {cell for cell in cells if isinstance(cell, float)}
    for digits in range(_FEWEST_DIGITS, _MOST_DIGITS):
        if len({number(value, digits=digits) for value in values}) == len(values):
            return digits
    return _MOST_DIGITS


def _figure(bound: Bound, digits: int) -> BoundText:
    shown = figure(bound)
    if bound.kind != "exact":
        return shown
    unit = shown.value.partition(" ")[2]
    return BoundText(value=f"{number(bound.upper, digits=digits)}{' ' if unit else ''}{unit}", kind=shown.kind)


def _places(cells: Sequence[Cell]) -> int | None:
    """Return the number of decimals that shows all numbers of a column unrounded; None if a number needs > 4 digits."""
    values = [cell for cell in cells if isinstance(cell, float)]
    if not all(math.isfinite(value) and float(f"{value:.{_FEWEST_DIGITS}g}") == value for value in values):
        return None
    places = max((-int(Decimal(repr(value)).normalize().as_tuple().exponent) for value in values), default=0)
    return max(places, 0) if places <= _MOST_PLACES else None


def _text(cell: Cell, digits: int, places: int | None) -> str:
    if isinstance(cell, str):
        return plain(cell)
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    cell = cast("float", cell)
    return number(cell, digits=digits) if places is None else f"{cell:,.{places}f}"
