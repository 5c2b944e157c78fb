"""The summary for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from hushuffle import _checks
from hushuffle.model import Assessment
from hushuffle.report.accuracy import Accuracy, accuracy
from hushuffle.report.formatting import asked, plain
from hushuffle.report.printing import findings, item, printed, table, text, warning
from hushuffle.report.result import refuse_nan
from hushuffle.report.table_lines import table_lines

_MOST_ROWS = 12
# The interval and the full headings do not fit in 80 columns; the page and result.json have them.
_LEFT_OUT = "Interval"


def terminal(assessment: Assessment, width: int = 80, *, color: bool = False) -> str:
    """Return the summary as text, no line longer than `width` columns.

    Plain text, unless `color` asks for ANSI escapes (when the text goes to a terminal).

    Raises:
        InvalidInputError: `width` below 40, or a number of the assessment is nan.
    """
    refuse_nan(assessment)
    _checks.integer("width", width, low=40)
    return printed(_parts(assessment, width), width, color=color)


def _parts(assessment: Assessment, width: int) -> Iterable[RenderableType]:
    yield text(assessment.title, "bold")
    yield text(assessment.deployment)
    yield text(asked(assessment.population))
    yield Text()
    if assessment.findings or assessment.unanswered:
        yield findings(assessment.findings, assessment.unanswered)
    else:
        yield Text("No adversary was asked for.")
    for warned in assessment.warnings:
        yield from warning(warned)
    if not assessment.warnings:
        yield Padding(Text("No warnings."), (1, 0, 0, 0))
    if assessment.utility is not None:
        yield from _utility(accuracy(assessment, assessment.utility, most=_MOST_ROWS))
    for made in assessment.tables:
        yield from table_lines(made, width, page="report.html", numbers="result.json")
    if assessment.maps:
        yield Text()
        yield text(f"Maps, in report.html: {'; '.join(plain(drawn.title) for drawn in assessment.maps)}.")


def _utility(reading: Accuracy) -> Iterable[RenderableType]:
    yield Text()
    yield Text("Utility, predicted and measured", "bold")
    for sentence in filter(None, (reading.verdict, *reading.sentences)):
        yield item(sentence)
    columns = [column for column in reading.columns if column.short != _LEFT_OUT]
    if not columns:
        return
    yield Text()
    shown = table()
    shown.add_column(columns[0].short, ratio=1, overflow="fold")
    for column in columns[1:]:
        shown.add_column(column.short, justify="right", overflow="fold")
    for cells in zip(*(column.cells for column in columns), strict=True):
        shown.add_row(*(Text(cell) for cell in cells))
    yield shown
    if reading.more:
        yield text(f"Shown: {len(reading.rows)} values, {reading.order}; {reading.more:,} more in result.json.")
