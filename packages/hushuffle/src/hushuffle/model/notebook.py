"""Build the HTML with which a notebook displays values of this library, without a style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH, _HEIGHT, _LEFT, _BELOW, _RIGHT = 560, 300, 70, 44, 28
_COLORS: Final = ("#1b5fa8", "#b3541e", "#2f7d4f", "#7a4fa3", "#8a6d1c", "#555555")


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


@dataclass(frozen=True, kw_only=True)
class Axes:
    """The labels of the x axis and the y axis, and whether each axis is logarithmic."""

    x_label: str
    y_label: str
    x_log: bool = False
    y_log: bool = False


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a chart, or the band between `lower` and `upper`."""

    label: str
    x: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]


def chart(title: str, lines: Sequence[Line], *, axes: Axes, more: str = "") -> str:
    r"""Return the HTML of a line chart (SVG) with its title; `more` is a line of text below the chart.

    >>> line = Line(label="delta", x=(1, 2), lower=(0.1, 0.2), upper=(0.1, 0.2))
    >>> chart("A chart", [line], axes=Axes(x_label="n", y_label="delta"))[:33]
    '<figure><strong>A chart</strong>\n'
    """
    across = _scale([x for line in lines for x in line.x], _LEFT, _WIDTH - _RIGHT, log=axes.x_log)
    both = [y for line in lines for y in (*line.lower, *line.upper)]
    upwards = _scale(both, _HEIGHT - _BELOW, 10, log=axes.y_log)
    parts = [
        f'<rect x="{_LEFT}" y="10" width="{_WIDTH - _RIGHT - _LEFT}" height="{_HEIGHT - _BELOW - 10}" fill="none" '
        'stroke="#999"/>'
    ]
    for value, place in across.ticks:
        parts.append(_text(place, _HEIGHT - _BELOW + 16, f"{value:.4g}", "middle"))
    for value, place in upwards.ticks:
        parts.append(_text(_LEFT - 6, place + 4, f"{value:.3g}", "end"))
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, axes.x_label, "middle"))
    for number, line in enumerate(lines):
        color = _COLORS[number % len(_COLORS)]
        top, bottom = (_points(line.x, y, across, upwards) for y in (line.upper, line.lower))
        outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*top, *bottom[::-1]])
        parts.append(f'<polygon points="{outline}" fill="{color}" fill-opacity="0.25" stroke="none"/>')
        for edge in (top, bottom):
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        parts.append(_text(_WIDTH - _RIGHT - 6, 26 + 15 * number, line.label, "end", color))
    picture = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" aria-label="{escape(title)}" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>'
    )
    caption = f"{axes.y_label}. {more}".strip()
    return f"<figure><strong>{escape(title)}</strong>\n{picture}<figcaption>{escape(caption)}</figcaption></figure>"


@dataclass(frozen=True, kw_only=True)
class _Scale:
    place: Callable[[float], float | None]
    ticks: Sequence[tuple[float, float]]


def _scale(values: Sequence[float], start: float, end: float, *, log: bool) -> _Scale:
    """Return the scale that maps `values` to positions from `start` to `end`; it maps undrawable values to None."""
    shown = [value for value in values if math.isfinite(value) and (value > 0 or not log)] or [1.0]
    low, high = min(shown), max(shown)
    low, high = (low, high) if low < high else (low - 0.1 * abs(low), high + 0.1 * abs(high) or 1.0)

    def turned(value: float) -> float:
        return math.log(value) if log else value

    def place(value: float) -> float | None:
        if not math.isfinite(value) or (log and value <= 0):
            return None
        return start + (end - start) * (turned(value) - turned(low)) / (turned(high) - turned(low))

    middle = math.sqrt(low * high) if log else (low + high) / 2
    marks = [(value, place(value)) for value in (low, middle, high)]
    return _Scale(place=place, ticks=[(value, where) for value, where in marks if where is not None])


def _points(x: Sequence[float], y: Sequence[float], across: _Scale, upwards: _Scale) -> list[tuple[float, float]]:
    places = [(across.place(a), upwards.place(b)) for a, b in zip(x, y, strict=True)]
    return [(a, b) for a, b in places if a is not None and b is not None]


def _text(x: float, y: float, words: str, anchor: str, color: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{escape(words)}</text>'
