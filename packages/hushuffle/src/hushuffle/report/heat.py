"""Draw a `HeatMap`: all cells of a colour become one SVG path, and values are printed if they fit into the cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hushuffle.model import HeatMap
from hushuffle.report.drawing import FONT_SIZE, INK, QUIET, WIDTH, fill, picture, short, text, width
from hushuffle.report.formatting import short as cut
from hushuffle.report.scales import Scale, drawable, tick

# Light to dark blue, in steps that look even on screen and in print.
_RAMP = ((247, 251, 255), (198, 219, 239), (107, 174, 214), (33, 113, 181), (8, 48, 107))
_LEVELS = 32
_NOWHERE = "#dddddd"
_LABEL_COLUMNS = 16
_MOST_HEIGHT, _MOST_CELL = 420.0, 46.0
_VALUE_SIZE = 12
_LEGEND = 34.0
_DARK = 0.55


@dataclass(frozen=True, kw_only=True)
class HeatDrawing:
    """The SVG picture, and a sentence on the meaning of grey cells ("" if no cell is grey)."""

    svg: str
    remark: str


def draw(heat: HeatMap) -> HeatDrawing | None:
    """Return the drawing of `heat`; None if no value has a colour."""
    shown = [value for row in heat.values for value in row if drawable(value, log=heat.log)]
    if not shown:
        return None
    low, high = float(min(shown)), float(max(shown))
    grid = _Grid.of(heat)
    levels = [[_share(value, low, high, log=heat.log) for value in row] for row in heat.values]
    parts = [*_legend(low, high, log=heat.log), *grid.cells(levels), *grid.names(heat), *_values(heat, levels, grid)]
    grey = any(share is None for row in levels for share in row)
    return HeatDrawing(
        svg=picture(parts, grid.bottom + grid.below, f"{heat.title}: {heat.y_label} by {heat.x_label}. {heat.caption}"),
        remark="Grey cells have no finite value on this scale." if grey else "",
    )


def color(share: float) -> str:
    """Return the colour of a share between 0 (light) and 1 (dark).

    >>> color(0.0), color(1.0)
    ('#f7fbff', '#08306b')
    """
    place = min(max(share, 0.0), 1.0) * (len(_RAMP) - 1)
    first = min(int(place), len(_RAMP) - 2)
    mixed = (a + (b - a) * (place - first) for a, b in zip(_RAMP[first], _RAMP[first + 1], strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


@dataclass(frozen=True, kw_only=True)
class _Grid:
    """The layout of the cells: left edge, size of a cell, and the height below the cells for column names."""

    left: float
    top: float
    across: float
    down: float
    rows: int
    below: float

    @classmethod
    def of(cls, heat: HeatMap) -> _Grid:
        left = max(width(cut(name, _LABEL_COLUMNS)) for name in heat.y) + 10
        top = _LEGEND + 2.2 * FONT_SIZE
        across = min((WIDTH - left - 6) / len(heat.x), 2 * _MOST_CELL)
        down = min(across, _MOST_CELL, _MOST_HEIGHT / len(heat.y))
        widest = max(width(cut(name, _LABEL_COLUMNS)) for name in heat.x)
        names = FONT_SIZE * 1.6 if widest + 6 <= across else widest + 10
        return cls(left=left, top=top, across=across, down=down, rows=len(heat.y), below=names + 1.8 * FONT_SIZE)

    @property
    def bottom(self) -> float:
        return self.top + self.rows * self.down

    def cells(self, levels: Sequence[Sequence[float | None]]) -> list[str]:
        """Return one SVG path for each colour, which contains all cells of that colour."""
        paths: dict[str, list[str]] = {}
        for row, shares in enumerate(levels):
            for column, share in enumerate(shares):
                shade = _NOWHERE if share is None else color(round(share * _LEVELS) / _LEVELS)
                corner = f"M{short(self.left + column * self.across)} {short(self.top + row * self.down)}"
                across, down = short(self.across + 0.05), short(self.down + 0.05)
                paths.setdefault(shade, []).append(f"{corner}h{across}v{down}h-{across}z")
        return [fill("".join(path), shade) for shade, path in paths.items()]

    def names(self, heat: HeatMap) -> list[str]:
        flat = self.below < 4 * FONT_SIZE
        every_row = math.ceil(FONT_SIZE * 1.1 / self.down)
        every_column = 1 if flat else math.ceil(FONT_SIZE * 1.1 / self.across)
        parts = [text(0, _LEGEND + 1.5 * FONT_SIZE, heat.y_label, color=QUIET)]
        for row in range(0, len(heat.y), every_row):
            place = self.top + (row + 0.5) * self.down + 0.35 * FONT_SIZE
            parts.append(text(self.left - 6, place, cut(heat.y[row], _LABEL_COLUMNS), anchor="end"))
        for column in range(0, len(heat.x), every_column):
            place, name = self.left + (column + 0.5) * self.across, cut(heat.x[column], _LABEL_COLUMNS)
            if flat:
                parts.append(text(place, self.bottom + 1.2 * FONT_SIZE, name, anchor="middle"))
            else:
                parts.append(text(place + 0.35 * FONT_SIZE, self.bottom + 6, name, anchor="end", turned=True))
        middle = self.left + self.across * len(heat.x) / 2
        return [*parts, text(middle, self.bottom + self.below - 5, heat.x_label, anchor="middle", color=QUIET)]


def _share(value: float, low: float, high: float, *, log: bool) -> float | None:
    """Return the position of `value` between `low` (0) and `high` (1); None if it has no colour."""
    if not drawable(value, log=log):
        return None
    return 1.0 if low == high else Scale(low=low, high=high, log=log).share(value)


def _legend(low: float, high: float, *, log: bool) -> list[str]:
    first, last = tick(low), tick(high)
    start, size, height = width(first) + 6, 120.0, 14.0
    step = size / _LEVELS
    ramp = [
        fill(f"M{short(start + level * step)} 4h{short(step + 0.2)}v{height:g}h-{short(step + 0.2)}z", color(share))
        for level, share in ((level, level / (_LEVELS - 1)) for level in range(_LEVELS))
    ]
    named = f"{last} (logarithmic)" if log else last
    return [text(0, 15, first), *ramp, text(start + size + 6, 15, named)]


def _values(heat: HeatMap, levels: Sequence[Sequence[float | None]], grid: _Grid) -> list[str]:
    """Return the SVG texts of the values in the cells; [] if some value does not fit into its cell."""
    shown = [[f"{value:.3g}" for value in row] for row in heat.values]
    widest = max(width(value, _VALUE_SIZE) for row in shown for value in row)
    if widest + 4 > grid.across or grid.down < _VALUE_SIZE + 3:
        return []
    return [
        text(
            grid.left + (column + 0.5) * grid.across,
            grid.top + (row + 0.5) * grid.down + 0.35 * _VALUE_SIZE,
            value,
            anchor="middle",
            size=_VALUE_SIZE,
            color="#ffffff" if (levels[row][column] or 0.0) > _DARK else INK,
        )
        for row, values in enumerate(shown)
        for column, value in enumerate(values)
    ]
