"""A table with named columns on a terminal: the columns that fit, and a word on those that do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from hushuffle.model import Table
from hushuffle.report.cells import CellColumn, CellText, cell_columns
from hushuffle.report.formatting import columns
from hushuffle.report.printing import table, text

_MOST_ROWS: Final = 20
_MOST_WORDS: Final = 34
_GAP: Final = 2


def table_lines(made: Table, width: int, *, page: str, numbers: str) -> Iterable[RenderableType]:
    """Yield the title and the rows of `made`; `page` and `numbers` are the files that have all of it."""
    yield Text()
    yield text(made.title, "bold")
    found = cell_columns(made)
    shown = _fitting(found, width)
    rows = table(expand=False)
    for column in shown:
        heading = Text.assemble(column.heading, *([("\n" + column.kind, "cyan")] if column.kind else []))
        rows.add_column(heading, justify="left" if column.words else "right", overflow="fold")
    for row in zip(*(column.cells[:_MOST_ROWS] for column in shown), strict=True):
        rows.add_row(*(Text.assemble(cell.text, *([(f"\n{cell.kind}", "cyan")] if cell.kind else [])) for cell in row))
    yield rows
    left_out = [column.heading for column in found[len(shown) :]]
    more = len(made.rows) - _MOST_ROWS
    if more > 0:
        yield text(f"{more:,} more rows are in {numbers}.")
    if left_out:
        yield text(f"Columns in {page} and {numbers} only: {', '.join(left_out)}.")


def _fitting(found: Sequence[CellColumn], width: int) -> list[CellColumn]:
    """Return the first columns, as many as fit, one at least; a column of words may be folded."""
    shown: list[CellColumn] = []
    used = 0
    for column in found:
        used += _width(column) + (_GAP if shown else 0)
        if used > width and shown:
            break
        shown.append(column)
    return shown


def _width(column: CellColumn) -> int:
    wide = max((_cell(cell) for cell in column.cells[:_MOST_ROWS]), default=0)
    if column.words:
        wide = min(wide, _MOST_WORDS)
    return max(wide, columns(column.kind), *(columns(word) for word in column.heading.split() or [""]))


def _cell(cell: CellText) -> int:
    return max(columns(cell.text), columns(cell.kind))
