"""Parts of the summaries for a terminal, and what turns them into text."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hushuffle.model import Finding, Unanswered, Warned
from hushuffle.report.formatting import figure, plain, refusal


def printed(parts: Iterable[RenderableType], width: int, *, color: bool) -> str:
    """Return `parts` as text, no line longer than `width` columns; ANSI escapes if `color`."""
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
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def findings(learned: Iterable[Finding], unanswered: Iterable[Unanswered] = ()) -> RenderableType:
    """Return the table of what each adversary learns, and of what is not answered."""
    rows = table(leading=1)
    rows.add_column("Adversary", ratio=9, overflow="fold")
    rows.add_column("What they learn", ratio=20, overflow="fold")
    rows.add_column("Figure", ratio=11, overflow="fold")
    for finding in learned:
        shown = figure(finding.bound)
        rows.add_row(
            text(finding.adversary),
            text(finding.sentence),
            Text.assemble((shown.value, "bold"), "\n", (shown.kind, "cyan")),
        )
    for row in unanswered:
        rows.add_row(text(row.topic), text(refusal(row)), Text("not answered", "cyan"))
    return rows


def warning(warned: Warned) -> Iterable[RenderableType]:
    """Yield a warning and what to do."""
    yield Padding(text(f"Warning: {warned.sentence}", "bold yellow"), (1, 0, 0, 0))
    yield Padding(text(warned.advice), (0, 0, 0, 2))


def table(leading: int = 0, *, expand: bool = True) -> Table:
    """Return an empty table with a line below its head."""
    return Table(box=box.SIMPLE_HEAD, expand=expand, padding=(0, 1), pad_edge=False, show_edge=False, leading=leading)


def item(sentence: str) -> RenderableType:
    """Return one item of a list."""
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_row(Text("-"), text(sentence))
    return row


def text(words: str, style: str = "") -> Text:
    """Return `words` on one line of any length, to be folded."""
    return Text(plain(words), style, overflow="fold")
