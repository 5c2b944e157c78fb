"""The summary of a report for a terminal, and the elements of terminal output: tables, lists and lines of text."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Final

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from hushuffle import _checks
from hushuffle.model import Claim, Report, Table, Verdict
from hushuffle.model.claim import count
from hushuffle.report.accuracy import Accuracy, accuracy
from hushuffle.report.cells import CellColumn, cell_columns
from hushuffle.report.diagrams import wrapped
from hushuffle.report.document import INDEX, Names
from hushuffle.report.formatting import asked, columns, figure, plain, plural, refusal


def printed(parts: Iterable[RenderableType], width: int, *, color: bool) -> str:
    """Return `parts` as text with lines of at most `width` columns; with ANSI escapes if `color`."""
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
        _environ={},  # the environment must not change the text
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def table(leading: int = 0, *, expand: bool = True) -> Grid:
    return Grid(box=box.SIMPLE_HEAD, expand=expand, padding=(0, 1), pad_edge=False, show_edge=False, leading=leading)


def item(sentence: str) -> RenderableType:
    return items([(Text("-"), sentence)])


def items(marked: Iterable[tuple[Text, str]]) -> RenderableType:
    rows = Grid.grid(padding=(0, 1, 0, 0))
    for mark, sentence in marked:
        rows.add_row(mark, text(sentence))
    return rows


def text(words: str, style: str = "") -> Text:
    """Return `words` as a single line of text, which is wrapped when printed."""
    return Text(plain(words), style, overflow="fold")


_MARKS: Final[dict[Verdict, tuple[str, str]]] = {
    "confirmed": ("CONFIRMED", "green"),
    "contradicted": ("CONTRADICTED", "yellow"),
    "holds on other data": ("HOLDS ELSEWHERE", "cyan"),
    "differs on other data": ("DIFFERS", "cyan"),
    "not testable": ("NOT TESTABLE", "cyan"),
}
_MOST_VALUES: Final = 12
_MOST_ROWS: Final = 20
_MOST_WORDS: Final = 34
_GAP: Final = 2
# Intervals and full headings do not fit in 80 columns; the page and the JSON document contain them.
_LEFT_OUT: Final = "Interval"
_CARDS: Final = "choice"
_SIDE_BY_SIDE: Final = "comparison"
"""The key of reports that show all columns of wide tables: each row becomes a block, or the table continues below."""


def terminal(report: Report, width: int = 80, *, color: bool = False) -> str:
    """Return the summary of a report as text with lines of at most `width` columns.

    The text contains ANSI escapes only if `color`, for output on a terminal. Table columns that do not fit are
    omitted, with a note.

    Raises:
        InvalidInputError: `width` below 40.
    """
    _checks.integer("width", width, low=40)
    return printed(_parts(report, width), width, color=color)


def _parts(report: Report, width: int) -> Iterable[RenderableType]:
    names, population = Names.of(report), report.population
    yield text(report.title, "bold")
    yield text(report.question)
    if population is not None:
        yield text(asked(population))
    yield Text()
    yield from _verdict(report)
    yield from _claims(report)
    for answer in report.answers:
        yield item(answer)
    yield from _learned(report)
    if population is not None and report.utility is not None:
        yield from _utility(accuracy(population, report.utility, most=_MOST_VALUES), names.numbers)
    for drawn in report.diagrams:
        yield Text()
        yield text(drawn.title, "bold")
        yield from map(Text, wrapped(drawn.text, width))
    for data_table in report.tables:
        yield from _table_lines(data_table, width, names, report.key)
    titles = [
        *(drawn.title for drawn in report.diagrams),
        *(chart.title for chart in report.charts),
        *(heat_map.title for heat_map in report.heat_maps),
        *(point_map.title for point_map in report.maps),
    ]
    if titles:
        yield Text()
        yield text(f"Pictures, in {names.page}: {'; '.join(map(plain, titles))}.")


def _verdict(report: Report) -> Iterable[RenderableType]:
    first = report.headline
    if first is None:
        return
    yield text(f"Verdict: {first.sentence}", "bold green" if first.status == "met" else "bold yellow")
    yield items(
        (Text(target.word.upper(), "green" if target.met else "yellow"), target.sentence) for target in report.targets
    )
    yield Text()


def _claims(report: Report) -> Iterable[RenderableType]:
    if not report.claims:
        return
    yield text(count(report.claims), "bold")
    several = report.key == INDEX
    yield items((Text(*_MARKS[claim.verdict]), _claimed(claim, several)) for claim in report.claims)
    if report.answers:
        yield Text()


def _claimed(claim: Claim, several: bool) -> str:  # noqa: FBT001 - whether the claims are those of several studies
    """Return a line on one claim: the tested claim, the paper's number, the computed result, and the reason."""
    where = f"{claim.place}; {claim.target}" if several else claim.place
    printed = f" Printed: {claim.printed.rstrip('.')}." if claim.printed else ""
    remarks = "".join(f" {remark}" for remark in (claim.reason, claim.data) if remark)
    return f"{claim.sentence.rstrip('.')} ({where}).{printed} Here: {claim.ours}{remarks}"


def _learned(report: Report) -> Iterable[RenderableType]:
    """Yield findings and warnings; an assessment without warnings says that there are none."""
    if report.findings or report.unanswered:
        if report.answers:
            yield Text()
        rows = table(leading=1)
        rows.add_column("Adversary", ratio=9, overflow="fold")
        rows.add_column("What they learn", ratio=20, overflow="fold")
        rows.add_column("Figure", ratio=11, overflow="fold")
        for finding in report.findings:
            shown = figure(finding.figure)
            rows.add_row(
                text(finding.adversary),
                text(finding.sentence),
                Text.assemble((shown.value, "bold"), "\n", (shown.kind, "cyan")),
            )
        for row in report.unanswered:
            rows.add_row(text(row.topic), text(refusal(row)), Text("not answered", "cyan"))
        yield rows
    elif report.population is not None:
        yield Text("The specification names no adversary.")
    for warned in report.warnings:
        yield Padding(text(f"Warning: {warned.sentence}", "bold yellow"), (1, 0, 0, 0))
        yield Padding(text(warned.advice), (0, 0, 0, 2))
    if report.population is not None and not report.warnings:
        yield Padding(Text("No warnings."), (1, 0, 0, 0))


def _utility(reading: Accuracy, numbers: str) -> Iterable[RenderableType]:
    yield Text()
    yield Text("Utility, predicted and measured", "bold")
    for sentence in reading.sentences:
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
        yield text(f"Shown: {len(reading.rows)} values, {reading.order}; {reading.more:,} more in {numbers}.")


def _table_lines(data_table: Table, width: int, names: Names, key: str) -> Iterable[RenderableType]:
    """Yield the title and the rows of `data_table`; `names` are the names of the files with the complete table."""
    yield Text()
    yield text(data_table.title, "bold")
    every = cell_columns(data_table)
    shown = _fitting(every, width)
    if len(shown) < len(every) and key == _CARDS:
        yield from _cards(every)
        return
    if len(shown) < len(every) and key == _SIDE_BY_SIDE:
        first, left = every[0], every[1:]
        while left:
            part = _fitting([first, *left], width)
            part = part if len(part) > 1 else [first, left[0]]
            yield _grid(part)
            left = left[len(part) - 1 :]
        return
    yield _grid(shown)
    left_out = [column.heading for column in every[len(shown) :]]
    more = len(data_table.rows) - _MOST_ROWS
    if more > 0:
        yield text(f"{more:,} more rows are in {names.numbers}.")
    if left_out:
        those = plural(len(left_out), "more column is", "more columns are")
        yield text(f"{those} only in {names.page} and {names.numbers}: {'; '.join(left_out)}.")


def _cards(every: Sequence[CellColumn]) -> Iterable[RenderableType]:
    """Yield each row as a block: the first cell, and below it the other cells with the headings of their columns."""
    for number, name in enumerate(every[0].cells):
        yield Text(name.text, "bold")
        cells = [(column, column.cells[number]) for column in every[1:]]
        facts = [
            f"{column.heading} {cell.text}{f' ({kind})' if (kind := cell.kind or column.kind) else ''}"
            for column, cell in cells
            if cell.text
        ]
        yield Padding(text("; ".join(facts)), (0, 0, 0, 3))


def _grid(shown: Sequence[CellColumn]) -> RenderableType:
    rows = table(expand=False)
    for column in shown:
        heading = Text.assemble(column.heading, *([("\n" + column.kind, "cyan")] if column.kind else []))
        rows.add_column(heading, justify="left" if column.words else "right", overflow="fold")
    for row in zip(*(column.cells[:_MOST_ROWS] for column in shown), strict=True):
        rows.add_row(*(Text.assemble(cell.text, *([(f"\n{cell.kind}", "cyan")] if cell.kind else [])) for cell in row))
    return rows


def _fitting(every: Sequence[CellColumn], width: int) -> list[CellColumn]:
    """Return as many of the first columns as fit, at least one; a column of words may be wrapped."""
    shown: list[CellColumn] = []
    used = 0
    for column in every:
        used += _width(column) + (_GAP if shown else 0)
        if used > width and shown:
            break
        shown.append(column)
    return shown


def _width(column: CellColumn) -> int:
    texts = [words for cell in column.cells[:_MOST_ROWS] for words in (cell.text, cell.kind)]
    wide = max(map(columns, texts), default=0)
    if column.words:
        wide = min(wide, _MOST_WORDS)
    return max(wide, columns(column.kind), *(columns(word) for word in column.heading.split() or [""]))
