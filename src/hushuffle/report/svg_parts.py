"""Pictures that are drawn by hand as SVG: the elements, numbers cut to tenths, text escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Literal

from hushuffle.report.drawing import FONT_SIZE, INK, WIDTH
from hushuffle.report.formatting import columns, plain

COLUMN_WIDTH = 0.6
"""About how wide one column of text is, in font sizes."""


def picture(parts: Iterable[str], height: float, description: str) -> str:
    """Return the picture: it takes the width it is given."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {short(height)}" role="img" aria-label="{escape(plain(description))}" '
        f'class="chart">{"".join(parts)}</svg>'
    )


def text(
    x: float,
    y: float,
    content: str,
    *,
    anchor: Literal["start", "middle", "end"] = "start",
    size: float = FONT_SIZE,
    color: str = INK,
    turned: bool = False,
) -> str:
    """Return `content` at (x, y); `turned` reads upwards."""
    turn = f' transform="rotate(-90 {short(x)} {short(y)})"' if turned else ""
    return (
        f'<text x="{short(x)}" y="{short(y)}" font-size="{short(size)}" fill="{color}" text-anchor="{anchor}"{turn}>'
        f"{escape(plain(content), quote=False)}</text>"
    )


def width(content: str, size: float = FONT_SIZE) -> float:
    """Return about how wide `content` is."""
    return COLUMN_WIDTH * size * columns(content)


def stroke(path: str, color: str, thickness: float = 1, *, round_ends: bool = False) -> str:
    """Return the line along `path`."""
    ends = ' stroke-linecap="round"' if round_ends else ""
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{short(thickness)}"{ends}/>'


def fill(path: str, color: str) -> str:
    """Return the area inside `path`, its edges sharp."""
    return f'<path d="{path}" fill="{color}" shape-rendering="crispEdges"/>'


def short(value: float) -> str:
    """Return `value` to tenths, without a needless point.

    >>> short(12.04), short(0.25), short(-0.01)
    ('12', '0.2', '0')
    """
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown
