"""Elements of terminal output (tables, lists), and the function that renders them as text."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from hushuffle.report.formatting import plain


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


def table(leading: int = 0, *, expand: bool = True) -> Table:
    return Table(box=box.SIMPLE_HEAD, expand=expand, padding=(0, 1), pad_edge=False, show_edge=False, leading=leading)


def item(sentence: str) -> RenderableType:
    return items([(Text("-"), sentence)])


def items(marked: Iterable[tuple[Text, str]]) -> RenderableType:
    rows = Table.grid(padding=(0, 1, 0, 0))
    for mark, sentence in marked:
        rows.add_row(mark, text(sentence))
    return rows


def text(words: str, style: str = "") -> Text:
    """Return `words` as a single line of text, which is wrapped when printed."""
    return Text(plain(words), style, overflow="fold")
