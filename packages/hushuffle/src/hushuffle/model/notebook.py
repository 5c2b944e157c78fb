"""Build the HTML with which a notebook displays tables and figures, without a style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, more: str = "") -> str:
    """Return the HTML of a table whose cells are plain text; `more` is a line of text below the table.

    >>> table(["value"], [["a < b"]])
    '<table><thead><tr><th>value</th></tr></thead><tbody><tr><td>a &lt; b</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    below = f"<p>{escape(more)}</p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def line(figure: str, kind: str) -> str:
    """Return the HTML of a figure, followed in smaller type by its kind ("exact", "certified bracket").

    >>> line("0.25", "exact")
    '<span><strong>0.25</strong> <small>exact</small></span>'
    """
    return f"<span><strong>{escape(figure)}</strong> <small>{escape(kind)}</small></span>"
