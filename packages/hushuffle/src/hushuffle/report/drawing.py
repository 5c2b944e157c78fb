"""Sizes, colours, axes and keys shared by all pictures; functions that return inline SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Literal

from hushuffle.report.formatting import columns, plain
from hushuffle.report.scales import Scale, tick

# Charts have the width of a phone, so that text is readable on a phone; wider screens show charts side by side.
WIDTH = 390
FONT_SIZE = 13
INK = "#1a1a1a"
# Okabe and Ito's colours, without the yellow, which is invisible on white; dashes tell lines apart without colour.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("", "7 3", "2 2", "9 3 2 3")
QUIET = "#595959"
GRID = "#e3e6ea"
_LINE, _LINE_LENGTH = 15, 50
_TICKS = 6
_RIGHT = 12
_COLUMN_WIDTH = 0.6
"""The approximate width of one character, as a fraction of the font size."""
_WIDER = 1.1
"""Browsers use different fonts: room for labels of values, as a multiple of their approximate width."""


@dataclass(frozen=True, kw_only=True)
class KeyEntry:
    """One line of a chart's key: a mark ("line", "interval", "tick") with colour and dashes, and its meaning."""

    mark: str
    color: str
    text: str
    dash: str = ""


@dataclass(frozen=True, kw_only=True)
class ChartDrawing:
    """Inline SVG of a chart; `clipped`: a line continues beyond the edge, to infinity or (logarithmic axis) to 0."""

    svg: str
    key: tuple[KeyEntry, ...]
    clipped: bool = False


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The plot area of a picture of `height` pixels, and its axes; `names` label rows of height 1 instead of y ticks.

    The y label is horizontal, `gap` pixels above the area.
    """

    x: Scale
    y: Scale
    height: float
    x_label: str
    y_label: str = ""
    names: Sequence[str] = ()
    gap: float = 11

    @cached_property
    def left(self) -> float:
        if self.names:
            return _WIDER * max(map(width, self.names)) + 12
        return max(width(tick(value)) for value in self.y.ticks(_TICKS)) + 12

    @cached_property
    def top(self) -> float:
        return self.gap + _LINE * len(_wrapped(self.y_label))

    @cached_property
    def bottom(self) -> float:
        return self.height - 27 - _LINE * len(_wrapped(self.x_label))

    def across(self, value: float) -> float:
        return self.left + self.x.share(value) * (WIDTH - _RIGHT - self.left)

    def down(self, value: float) -> float:
        return self.bottom - self.y.share(value) * (self.bottom - self.top)

    def axes(self) -> list[str]:
        """Return the SVG of grid, ticks and axis labels; labels of the x axis do not overlap."""
        left, top, bottom = self.left, self.top, self.bottom
        rows = [(row + 0.5, name) for row, name in enumerate(self.names)]
        parts = _lines(0, FONT_SIZE, self.y_label, "start")
        for value, name in rows or [(value, tick(value)) for value in self.y.ticks(_TICKS)]:
            place = self.down(value)
            if not rows:
                parts.append(stroke(f"M{short(left)} {short(place)}H{WIDTH - _RIGHT}", GRID))
            parts.append(text(left - 6, place + 0.35 * FONT_SIZE, name, anchor="end"))
        for value in self.x.labelled(WIDTH - _RIGHT - left, _COLUMN_WIDTH * FONT_SIZE, _TICKS):
            place = self.across(value)
            parts.append(stroke(f"M{short(place)} {short(top)}V{short(bottom)}", GRID))
            parts.append(text(place, bottom + 1.4 * FONT_SIZE, tick(value), anchor="middle"))
        parts.append(stroke(f"M{short(left)} {short(top)}V{short(bottom)}H{WIDTH - _RIGHT}", QUIET))
        return [*parts, *_lines((left + WIDTH) / 2, bottom + 37, self.x_label, "middle")]


def _wrapped(label: str) -> list[str]:
    return textwrap.wrap(plain(label), _LINE_LENGTH)


def _lines(x: float, y: float, label: str, anchor: Literal["start", "middle"]) -> list[str]:
    lines = _wrapped(label)
    return [text(x, y + _LINE * row, line, anchor=anchor, color=QUIET) for row, line in enumerate(lines)]


def picture(parts: Iterable[str], height: float, description: str) -> str:
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
    """Return the SVG text `content` at (x, y); `turned` text is rotated to read upwards."""
    turn = f' transform="rotate(-90 {short(x)} {short(y)})"' if turned else ""
    return (
        f'<text x="{short(x)}" y="{short(y)}" font-size="{short(size)}" fill="{color}" text-anchor="{anchor}"{turn}>'
        f"{escape(plain(content), quote=False)}</text>"
    )


def width(content: str, size: float = FONT_SIZE) -> float:
    """Return the approximate width of the text `content`, in pixels."""
    return _COLUMN_WIDTH * size * columns(content)


def stroke(
    path: str, color: str, thickness: float = 1, *, round_ends: bool = False, dash: str = "", opacity: float = 1
) -> str:
    more = ' stroke-linecap="round"' * round_ends
    more += f' stroke-dasharray="{dash}"' if dash else ""
    more += f' opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{short(thickness)}"{more}/>'


def fill(path: str, color: str) -> str:
    return f'<path d="{path}" fill="{color}" shape-rendering="crispEdges"/>'


def dots(places: Iterable[tuple[float, float]], color: str, size: float) -> str:
    path = "".join(f"M{short(x)} {short(y)}h0" for x, y in places)
    return stroke(path, color, size, round_ends=True)


def short(value: float) -> str:
    """Return `value` rounded to tenths, as text without a trailing ".0".

    >>> short(12.04), short(0.25), short(-0.01)
    ('12', '0.2', '0')
    """
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown
