"""The summary for a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hushuffle import _checks
from hushuffle.model import Assessment, Finding
from hushuffle.report.accuracy import Accuracy, accuracy
from hushuffle.report.formatting import asked, figure, plain
from hushuffle.report.result import refuse_nan

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
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},  # the text depends on the arguments alone
    )
    with console.capture() as capture:
        for part in _parts(assessment):
            console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _parts(assessment: Assessment) -> Iterable[RenderableType]:
    yield _text(assessment.title, "bold")
    yield _text(assessment.deployment)
    yield _text(asked(assessment.population))
    yield Text()
    yield _findings(assessment.findings)
    for warned in assessment.warnings:
        yield Padding(_text(f"Warning: {warned.sentence}", "bold yellow"), (1, 0, 0, 0))
        yield Padding(_text(warned.advice), (0, 0, 0, 2))
    if not assessment.warnings:
        yield Padding(Text("No warnings."), (1, 0, 0, 0))
    if assessment.utility is not None:
        yield from _utility(accuracy(assessment, assessment.utility, most=_MOST_ROWS))


def _findings(findings: tuple[Finding, ...]) -> RenderableType:
    if not findings:
        return Text("No adversary was asked for.")
    table = _table(leading=1)
    table.add_column("Adversary", ratio=9, overflow="fold")
    table.add_column("What they learn", ratio=20, overflow="fold")
    table.add_column("Figure", ratio=11, overflow="fold")
    for finding in findings:
        shown = figure(finding.bound)
        table.add_row(
            _text(finding.adversary),
            _text(finding.sentence),
            Text.assemble((shown.value, "bold"), "\n", (shown.kind, "cyan")),
        )
    return table


def _utility(reading: Accuracy) -> Iterable[RenderableType]:
    yield Text()
    yield Text("Utility, predicted and measured", "bold")
    for sentence in filter(None, (reading.verdict, *reading.sentences)):
        yield _item(sentence)
    columns = [column for column in reading.columns if column.short != _LEFT_OUT]
    if not columns:
        return
    yield Text()
    table = _table()
    table.add_column(columns[0].short, ratio=1, overflow="fold")
    for column in columns[1:]:
        table.add_column(column.short, justify="right", overflow="fold")
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    yield table
    if reading.more:
        yield _text(f"Shown: {len(reading.rows)} values, {reading.order}; {reading.more:,} more in result.json.")


def _table(leading: int = 0) -> Table:
    return Table(box=box.SIMPLE_HEAD, expand=True, padding=(0, 1), pad_edge=False, show_edge=False, leading=leading)


def _item(sentence: str) -> RenderableType:
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_row(Text("-"), _text(sentence))
    return row


def _text(text: str, style: str = "") -> Text:
    return Text(plain(text), style, overflow="fold")
