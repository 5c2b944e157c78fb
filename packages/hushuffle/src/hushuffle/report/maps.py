"""Draw a `PointMap`: one SVG picture for each panel, with one path for each category."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hushuffle.model import Panel, PointMap
from hushuffle.report.drawing import COLORS, Frame, KeyEntry, dots, picture
from hushuffle.report.formatting import plain
from hushuffle.report.scales import drawable, scale

POINTS_PER_PANEL = 10_000
POINTS_PER_MAP = 60_000
_HEIGHT = 360
_FEW, _MANY = 300, 3000


@dataclass(frozen=True, kw_only=True)
class MapDrawing:
    """The pictures of a map as (panel label, SVG), the key, and a sentence on omitted points ("" if there are none)."""

    panels: tuple[tuple[str, str], ...]
    key: tuple[KeyEntry, ...]
    remark: str


def draw(point_map: PointMap) -> MapDrawing | None:
    """Return the drawing of `point_map`; None if no point can be drawn."""
    x_scale = scale(_finite(panel.x for panel in point_map.panels), log=False)
    y_scale = scale(_finite(panel.y for panel in point_map.panels), log=False)
    if x_scale is None or y_scale is None:
        return None
    most = min(POINTS_PER_PANEL, POINTS_PER_MAP // len(point_map.panels))
    colors = category_colors(len(point_map.labels), point_map.families)
    frame = Frame(x=x_scale, y=y_scale, height=_HEIGHT, x_label=point_map.x_label, y_label=point_map.y_label)
    pictures, thinned = [], False
    for panel in point_map.panels:
        drawn = _kept(panel, most)
        thinned |= len(drawn) < len(panel.x)
        axes = f"{point_map.y_label} against {point_map.x_label}"
        description = f"{point_map.title}, {panel.label}: {axes}, one point for each person."
        parts = [*frame.axes(), *_points(panel, drawn, frame, colors)]
        pictures.append((plain(panel.label), picture(parts, _HEIGHT, description)))
    return MapDrawing(
        panels=tuple(pictures),
        key=tuple(
            KeyEntry(mark="dot", color=color, text=plain(label))
            for color, label in zip(colors, point_map.labels, strict=True)
        ),
        remark=f"Each picture shows at most {most:,} points, an evenly spaced selection." if thinned else "",
    )


_FAMILIES = {"warm": ("#99000D", "#EF3B2C", "#EC7014", "#E6A800"), "cool": ("#08306B", "#2171B5", "#41B6C4", "#238B45")}


def category_colors(count: int, families: Sequence[Literal["warm", "cool"]] = ()) -> list[str]:
    """Return `count` colours: a fixed palette for up to eight, evenly spaced hues for more; or those of `families`.

    >>> category_colors(2), category_colors(9)[1], category_colors(2, ("cool", "warm"))
    (['#0072B2', '#D55E00'], 'hsl(40 75% 62%)', ['#08306B', '#99000D'])
    """
    if families:
        return [_FAMILIES[each][families[:place].count(each) % 4] for place, each in enumerate(families)]
    palette = (*COLORS, "#999999")
    if count <= len(palette):
        return list(palette[:count])
    return [f"hsl({360 * place // count} 75% {62 if place % 2 else 38}%)" for place in range(count)]


def _finite(coordinates: Iterable[Sequence[float]]) -> list[float]:
    return [value for values in coordinates for value in values if math.isfinite(value)]


def _kept(panel: Panel, most: int) -> list[int]:
    """Return the positions of the points to draw: all drawable points, or an evenly spaced selection of `most`."""
    placed = [
        place
        for place, (x, y) in enumerate(zip(panel.x, panel.y, strict=True))
        if drawable(x, log=False) and drawable(y, log=False)
    ]
    if len(placed) <= most:
        return placed
    return [placed[place * len(placed) // most] for place in range(most)]


def _points(panel: Panel, drawn: Sequence[int], frame: Frame, colors: Sequence[str]) -> list[str]:
    """Return one path of dots for each category, the most frequent first, so that rare categories stay visible."""
    across = [round(frame.across(panel.x[place])) for place in drawn]
    down = [round(frame.down(panel.y[place])) for place in drawn]
    codes = np.array(panel.values, dtype=np.int64)[list(drawn)]
    size = 6.0 if len(drawn) <= _FEW else 4.0 if len(drawn) <= _MANY else 2.5
    paths = []
    for code in np.argsort(-np.bincount(codes, minlength=len(colors)), kind="stable"):
        places = np.unique(np.stack([across, down], axis=1)[codes == code], axis=0)
        if len(places):
            paths.append(dots(places.tolist(), colors[code], size))
    return paths
