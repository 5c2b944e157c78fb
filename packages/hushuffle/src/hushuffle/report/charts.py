"""Draw a `Chart` (lines with certified bands) and a chart of estimated shares (points with intervals)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Literal

from hushuffle.model import Chart, Population, Series, Utility
from hushuffle.report.accuracy import true_shares
from hushuffle.report.drawing import (
    COLORS,
    DASHES,
    FONT_SIZE,
    INK,
    ChartDrawing,
    Frame,
    KeyEntry,
    dots,
    picture,
    short,
    stroke,
    text,
)
from hushuffle.report.formatting import plain, plural
from hushuffle.report.formatting import short as cut
from hushuffle.report.scales import Scale, drawable, scale

_HEIGHT = 280
_GAP, _GAP_WITH_NAME = 11, 25
_DOT = 5.3
_POINTS_UP_TO = 12
_ROW = 20
_FEW = 8
_LABEL_COLUMNS = 18


def lines(chart: Chart, *, numbers: str) -> ChartDrawing | None:
    """Return a line or a band for each series, None without a point; `numbers` is the file of the numbers."""
    ends = [value for series in chart.series for value in (*series.lower, *series.upper)]
    marked = [] if chart.here is None or not drawable(chart.here, log=chart.x_log) else [float(chart.here)]
    x_scale = scale([*marked, *(x for series in chart.series for x in series.x)], log=chart.x_log, tight=True)
    y_scale = scale(ends, log=chart.y_log)
    if x_scale is None or y_scale is None:
        return None
    frame = Frame(
        x=x_scale,
        y=y_scale,
        height=_HEIGHT,
        x_label=chart.x_label,
        y_label=chart.y_label,
        gap=_GAP_WITH_NAME if marked else _GAP,
    )
    styles = [(COLORS[place % len(COLORS)], DASHES[place % len(DASHES)]) for place in range(len(chart.series))]
    parts = frame.axes()
    for series, (color, _) in zip(chart.series, styles, strict=True):
        parts += _band(series, frame, color)
    sparse = max(len(series.x) for series in chart.series) <= _POINTS_UP_TO
    for series, (color, dash) in zip(chart.series, styles, strict=True):
        for values in dict.fromkeys((series.upper, series.lower)):
            drawn = [
                (frame.across(x), frame.down(y) if drawable(y, log=chart.y_log) else None)
                for x, y in _placed(series, values, log=chart.x_log)
            ]
            parts.append(stroke(_path(drawn), color, 2, dash=dash))
            if sparse:
                parts.append(dots(((x, y) for x, y in drawn if y is not None), color, _DOT))
    for here in marked:
        share, place = x_scale.share(here), frame.across(here)
        anchor: Literal["start", "middle", "end"] = "start" if share < 0.2 else "end" if share > 0.8 else "middle"
        rule = f"M{short(place)} {short(frame.top)}V{short(frame.bottom)}"
        parts.append(stroke(rule, INK, 1.5, dash="4 3"))
        parts.append(text(place, frame.top - 6, "this deployment", anchor=anchor, size=FONT_SIZE - 1))
    labels = "; ".join(series.label for series in chart.series)
    axes = f"{chart.y_label} against {chart.x_label}"
    description = f"{chart.title}: {axes}. {chart.caption} Lines: {labels}. The file {numbers} has the numbers."
    return ChartDrawing(
        svg=picture(parts, _HEIGHT, description),
        key=tuple(
            KeyEntry(mark="line", color=color, dash=dash, text=plain(series.label))
            for series, (color, dash) in zip(chart.series, styles, strict=True)
        ),
        clipped=any(not drawable(end, log=chart.y_log) for end in ends),
    )


def _placed(series: Series, values: Sequence[float], *, log: bool) -> list[tuple[float, float]]:
    """Return the points of `series` that have a place on the x axis, from left to right."""
    points = (point for point in zip(series.x, values, strict=True) if drawable(point[0], log=log))
    return sorted(points, key=itemgetter(0))


def _band(series: Series, frame: Frame, color: str) -> list[str]:
    """Return the area between the bounds of `series`, which are clipped to the axis; [] for a plain line."""
    if series.lower == series.upper:
        return []
    high, low = (
        [(frame.across(x), frame.down(frame.y.clip(y))) for x, y in _placed(series, values, log=frame.x.log)]
        for values in (series.upper, series.lower)
    )
    return [f'<path d="{_path([*high, *reversed(low)])}Z" fill="{color}" opacity="0.22"/>'] if high else []


def _path(points: Iterable[tuple[float, float | None]]) -> str:
    """Return a line through the points, which is interrupted where a point has no place."""
    path, pen = [], "M"
    for x, y in points:
        if y is not None:
            path.append(f"{pen}{short(x)} {short(y)}")
        pen = "M" if y is None else "L"
    return "".join(path)


def shares(
    population: Population, utility: Utility, rows: Sequence[int], *, most: int = _LABEL_COLUMNS
) -> ChartDrawing | None:
    """Return the estimated shares of the values `rows`, None without an estimate; labels are cut to width `most`."""
    estimate, true = utility.estimate, true_shares(population)
    if estimate is None:
        return None
    columns = [*estimate.interval(utility.confidence).T, estimate.frequencies, *([] if true is None else [true])]
    points = [[float(column[row]) for column in columns] for row in rows]
    x_scale = scale([0.0, *(value for point in points for value in point)], log=False)
    assert x_scale is not None  # 0 can always be drawn
    height = (_ROW if len(rows) > _FEW else 2 * _ROW) * len(rows) + 60
    y_scale = Scale(low=len(rows), high=0, log=False)
    names = [cut(population.labels[row], most) for row in rows]
    frame = Frame(x=x_scale, y=y_scale, height=height, x_label="share of people", names=names, gap=4)
    parts = frame.axes()
    for place, point in enumerate(points):
        y = frame.down(place + 0.5)
        low, high, center, *truth = map(frame.across, point)
        parts.append(
            f'<path d="M{short(low)} {short(y)}H{short(high)}" stroke="{COLORS[0]}" stroke-width="7" opacity="0.35"/>'
        )
        parts.append(dots([(center, y)], COLORS[0], 6))
        parts += [stroke(f"M{short(x)} {short(y - 9)}v18", COLORS[1], 2.5) for x in truth]
    confidence = f"{utility.confidence:.0%} interval"
    key = [KeyEntry(mark="interval", color=COLORS[0], text=f"estimate and {confidence}")]
    if true is not None:
        key.append(KeyEntry(mark="tick", color=COLORS[1], text="true share in the data"))
    also = "" if true is None else " and the true shares"
    values = plural(len(rows), "value")
    description = f"Estimated shares of {values} with their {confidence}s{also}; the table above has the numbers."
    return ChartDrawing(svg=picture(parts, height, description), key=tuple(key))
