"""What a notebook shows of a value: small pieces of HTML that need no style sheet of ours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, more: str = "") -> str:
    """Return rows of plain texts as a table; `more` stands below it.

    >>> table(["value"], [["a < b"]])
    '<table><thead><tr><th>value</th></tr></thead><tbody><tr><td>a &lt; b</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    below = f"<p>{escape(more)}</p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def line(figure: str, kind: str) -> str:
    """Return a figure and, smaller, what kind of figure it is.

    >>> line("0.25", "exact")
    '<span><strong>0.25</strong> <small>exact</small></span>'
    """
    return f"<span><strong>{escape(figure)}</strong> <small>{escape(kind)}</small></span>"
