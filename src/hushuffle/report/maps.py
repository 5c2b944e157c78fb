"""The drawing of a `PointMap`: for each panel one picture, for each category one path."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hushuffle.model import Panel, PointMap
from hushuffle.report.drawing import (
    COLORS,
    FONT_SIZE,
    GRID,
    QUIET,
    WIDTH,
    KeyEntry,
    picture,
    short,
    stroke,
    text,
    width,
)
from hushuffle.report.formatting import plain
from hushuffle.report.scales import Scale, drawable, scale, steps, tick

POINTS_PER_PANEL = 10_000
POINTS_PER_MAP = 60_000
_HEIGHT = 360
_TOP, _RIGHT, _BOTTOM = 26, 12, 42
_TICKS = 6
_FEW, _MANY = 300, 3000


@dataclass(frozen=True, kw_only=True)
class MapDrawing:
    """The pictures of a map by panel, with the panel's label; the key; what was left out, in one sentence ("")."""

    panels: tuple[tuple[str, str], ...]
    key: tuple[KeyEntry, ...]
    remark: str


def draw(made: PointMap) -> MapDrawing | None:
    """Return the drawing of `made`; None if no point has a place on it."""
    x_scale = scale(_finite(panel.x for panel in made.panels), log=False)
    y_scale = scale(_finite(panel.y for panel in made.panels), log=False)
    if x_scale is None or y_scale is None:
        return None
    most = min(POINTS_PER_PANEL, POINTS_PER_MAP // len(made.panels))
    colors = category_colors(len(made.labels), made.families)
    frame = _Frame.around(x_scale, y_scale)
    pictures, thinned = [], False
    for panel in made.panels:
        kept = _kept(panel, most)
        thinned |= len(kept) < len(panel.x)
        description = f"{made.title}, {panel.label}: {made.y_label} against {made.x_label}, one point for each person."
        parts = [*frame.axes(made.x_label, made.y_label), *_points(panel, kept, frame, colors)]
        pictures.append((plain(panel.label), picture(parts, _HEIGHT, description)))
    return MapDrawing(
        panels=tuple(pictures),
        key=tuple(
            KeyEntry(mark="dot", color=color, text=plain(label))
            for color, label in zip(colors, made.labels, strict=True)
        ),
        remark=f"At most {most:,} points of each picture are drawn, evenly chosen." if thinned else "",
    )


_FAMILIES = {
    "warm": ("#99000D", "#EF3B2C", "#EC7014", "#E6A800"),
    "cool": ("#08306B", "#2171B5", "#41B6C4", "#238B45"),
}


def category_colors(count: int, families: Sequence[Literal["warm", "cool"]] = ()) -> list[str]:
    """Return `count` colours; beyond the eight of the palette, evenly spaced hues, light and dark in turn.

    Categories of `families` get warm and cool colours, four of each.

    >>> category_colors(2), category_colors(9)[1], category_colors(2, ("cool", "warm"))
    (['#0072B2', '#D55E00'], 'hsl(40 75% 62%)', ['#08306B', '#99000D'])
    """
    if families:
        return [_FAMILIES[each][families[:place].count(each) % 4] for place, each in enumerate(families)]
    palette = (*COLORS, "#999999")
    if count <= len(palette):
        return list(palette[:count])
    return [f"hsl({360 * place // count} 75% {62 if place % 2 else 38}%)" for place in range(count)]


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """Where the axes stand."""

    x: Scale
    y: Scale
    left: float

    @classmethod
    def around(cls, x: Scale, y: Scale) -> _Frame:
        labels = [tick(value) for value in steps(y.low, y.high, _TICKS)]
        return cls(x=x, y=y, left=max(width(label) for label in labels) + 12)

    def across(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return self.left + (values - self.x.low) / (self.x.high - self.x.low) * (WIDTH - _RIGHT - self.left)

    def down(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return _HEIGHT - _BOTTOM - (values - self.y.low) / (self.y.high - self.y.low) * (_HEIGHT - _BOTTOM - _TOP)

    def axes(self, x_label: str, y_label: str) -> list[str]:
        """Return the grid, the ticks and the labels; the y label stands above, to be read upright."""
        bottom = _HEIGHT - _BOTTOM
        parts = [text(0, FONT_SIZE, y_label, color=QUIET)]
        for value in steps(self.y.low, self.y.high, _TICKS):
            (place,) = self.down(np.array([value]))
            parts.append(stroke(f"M{short(self.left)} {short(place)}H{WIDTH - _RIGHT}", GRID))
            parts.append(text(self.left - 6, place + 0.35 * FONT_SIZE, tick(value), anchor="end"))
        for value in steps(self.x.low, self.x.high, _TICKS):
            (place,) = self.across(np.array([value]))
            parts.append(stroke(f"M{short(place)} {_TOP}V{bottom}", GRID))
            parts.append(text(place, bottom + 1.4 * FONT_SIZE, tick(value), anchor="middle"))
        parts.append(stroke(f"M{short(self.left)} {_TOP}V{bottom}H{WIDTH - _RIGHT}", QUIET))
        return [*parts, text((self.left + WIDTH) / 2, _HEIGHT - 5, x_label, anchor="middle", color=QUIET)]


def _finite(coordinates: Iterable[Sequence[float]]) -> list[float]:
    return [value for values in coordinates for value in values if math.isfinite(value)]


def _kept(panel: Panel, most: int) -> list[int]:
    """Return which points are drawn: all, or evenly spaced ones among those that have a place."""
    placed = [
        place
        for place, (x, y) in enumerate(zip(panel.x, panel.y, strict=True))
        if drawable(x, log=False) and drawable(y, log=False)
    ]
    if len(placed) <= most:
        return placed
    return [placed[place * len(placed) // most] for place in range(most)]


def _points(panel: Panel, kept: Sequence[int], frame: _Frame, colors: Sequence[str]) -> list[str]:
    """Return one path of dots for each category, the commonest first, so that rare ones stay on top."""
    chosen = np.array(kept, dtype=np.int64)
    across = np.rint(frame.across(np.array(panel.x, dtype=np.float64)[chosen])).astype(np.int64)
    down = np.rint(frame.down(np.array(panel.y, dtype=np.float64)[chosen])).astype(np.int64)
    codes = np.array(panel.values, dtype=np.int64)[chosen]
    size = 6.0 if len(kept) <= _FEW else 4.0 if len(kept) <= _MANY else 2.5
    paths = []
    for code in np.argsort(-np.bincount(codes, minlength=len(colors)), kind="stable"):
        dots = np.unique(np.stack([across, down], axis=1)[codes == code], axis=0)
        if len(dots):
            path = "".join(f"M{x} {y}h0" for x, y in dots.tolist())
            paths.append(stroke(path, colors[code], size, round_ends=True))
    return paths
