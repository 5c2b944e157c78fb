"""The summary of a study for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.text import Text

from hushuffle import _checks
from hushuffle.model import Study, Table
from hushuffle.report.cells import CellColumn, CellText, cell_columns
from hushuffle.report.formatting import columns, plain
from hushuffle.report.printing import findings, item, printed, table, text, warning
from hushuffle.report.study_document import refuse_nan

_MOST_ROWS = 20
_MOST_WORDS = 34
_GAP = 2


def study_terminal(study: Study, width: int = 80, *, color: bool = False) -> str:
    """Return the summary as text, no line longer than `width` columns.

    Plain text, unless `color` asks for ANSI escapes (when the text goes to a terminal). Columns of a table
    that do not fit are left out, and it says so.

    Raises:
        InvalidInputError: `width` below 40, or a number of the study is nan.
    """
    refuse_nan(study)
    _checks.integer("width", width, low=40)
    return printed(_parts(study, width), width, color=color)


def _parts(study: Study, width: int) -> Iterable[RenderableType]:
    yield text(study.title, "bold")
    yield text(study.question)
    yield Text()
    for answer in study.answers:
        yield item(answer)
    for warned in study.warnings:
        yield from warning(warned)
    if study.findings:
        yield Text()
        yield findings(study.findings)
    for made in study.tables:
        yield from _table(made, width)
    titles = [
        *(chart.title for chart in study.charts),
        *(heat_map.title for heat_map in study.heat_maps),
        *(point_map.title for point_map in study.maps),
    ]
    if titles:
        yield Text()
        yield text(f"Pictures, in study.html: {'; '.join(map(plain, titles))}.")


def _table(made: Table, width: int) -> Iterable[RenderableType]:
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
        yield text(f"{more:,} more rows are in study.json.")
    if left_out:
        yield text(f"Columns in study.html and study.json only: {', '.join(left_out)}.")


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
