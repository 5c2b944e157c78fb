"""Draw a `Chart` (lines with certified bands) and a chart of estimated shares (points with intervals)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from hushuffle.model import Chart, Population, Series, Utility
from hushuffle.report.accuracy import true_shares
from hushuffle.report.drawing import (
    COLORS,
    DASHES,
    FONT_SIZE,
    INK,
    ChartDrawing,
    KeyEntry,
    Values,
    finish,
    layer,
    number,
    ruler,
)
from hushuffle.report.formatting import columns, plain, plural, short
from hushuffle.report.scales import Scale, drawable, scale

_HEIGHT = 280
_GAP, _GAP_WITH_NAME = 10, 20
_POINTS_UP_TO = 12
_ROW = 20
_FEW = 8
_LABEL_COLUMNS = 18
# Browsers use other fonts, some of which are wider than the font with which the layout is measured.
_COLUMN_WIDTH = 0.66 * FONT_SIZE


def lines(chart: Chart, *, numbers: str) -> ChartDrawing | None:
    """Return a line or a band for each series, None without a point; `numbers` is the file of the numbers."""
    ends = [value for series in chart.series for value in (*series.lower, *series.upper)]
    marked = [] if chart.here is None or not drawable(chart.here, log=chart.x_log) else [float(chart.here)]
    x_scale = scale([*marked, *(x for series in chart.series for x in series.x)], log=chart.x_log, tight=True)
    y_scale = scale(ends, log=chart.y_log)
    if x_scale is None or y_scale is None:
        return None
    x = number("x", x_scale, ruler(x_scale, plain(chart.x_label), across=True))
    layers = _layers(chart, x, y_scale)
    for here in marked:
        share = x_scale.share(here)
        align: Literal["left", "center", "right"] = "left" if share < 0.2 else "right" if share > 0.8 else "center"
        rule = layer([{"x": here}], "rule", {"x": x}, color=INK, strokeDash=[4, 3], strokeWidth=1.5)
        text = layer(
            [{"x": here}],
            "text",
            {"x": x, "y": {"value": 0}},
            text="this deployment",
            align=align,
            baseline="bottom",
            dy=-4,
            color=INK,
            fontSize=FONT_SIZE - 1,
        )
        layers += [rule, text]
    gap = _GAP_WITH_NAME if marked else _GAP
    labels = "; ".join(plain(series.label) for series in chart.series)
    axes = f"{plain(chart.y_label)} against {plain(chart.x_label)}"
    return ChartDrawing(
        specification=finish(layers, height=_HEIGHT, y_label=plain(chart.y_label), gap=gap),
        key=tuple(
            KeyEntry(
                mark="line",
                color=COLORS[position % len(COLORS)],
                dash=" ".join(map(str, DASHES[position % len(DASHES)])),
                text=plain(series.label),
            )
            for position, series in enumerate(chart.series)
        ),
        description=(
            f"{plain(chart.title)}: {axes}. {plain(chart.caption)} Lines: {labels}. The file {numbers} has the numbers."
        ),
        clipped=any(not drawable(end, log=chart.y_log) for end in ends),
    )


def _layers(chart: Chart, x: Values, y_scale: Scale) -> list[Values]:
    count = len(chart.series)
    names = [f"s{position}" for position in range(count)]
    series_of = {"field": "series", "type": "nominal", "legend": None}
    color = {
        **series_of,
        "scale": {"domain": names, "range": [COLORS[position % len(COLORS)] for position in range(count)]},
    }
    dash = {
        **series_of,
        "scale": {"domain": names, "range": [DASHES[position % len(DASHES)] for position in range(count)]},
    }
    y = number("y", y_scale, ruler(y_scale))
    bands, edges = [], []
    for name, series in zip(names, chart.series, strict=True):
        bands += _band(name, series, chart, y_scale)
        edges += _edges(name, series, chart)
    layers = []
    if bands:
        layers.append(layer(bands, "area", {"x": x, "y": y, "y2": {"field": "high"}, "color": color}, opacity=0.22))
    sparse = max(len(series.x) for series in chart.series) <= _POINTS_UP_TO
    encoding = {"x": x, "y": y, "color": color, "strokeDash": dash, "detail": {"field": "edge", "type": "nominal"}}
    return [*layers, layer(edges, "line", encoding, strokeWidth=2, point={"size": 28} if sparse else False)]


def _band(name: str, series: Series, chart: Chart, y_scale: Scale) -> list[dict[str, Any]]:
    """Return the data rows of the band of `series`, with bounds clipped to the axis; [] for a plain line."""
    if series.lower == series.upper:
        return []
    points = zip(series.x, series.lower, series.upper, strict=True)
    return [
        {"series": name, "x": float(x), "y": float(y_scale.clip(low)), "high": float(y_scale.clip(high))}
        for x, low, high in points
        if drawable(x, log=chart.x_log)
    ]


def _edges(name: str, series: Series, chart: Chart) -> list[dict[str, Any]]:
    """Return the data rows of the lines along the bounds of `series`, interrupted at values that cannot be drawn."""
    sides = {"upper": series.upper} if series.lower == series.upper else {"upper": series.upper, "lower": series.lower}
    return [
        {"series": name, "edge": edge, "x": float(x), "y": float(y) if drawable(y, log=chart.y_log) else None}
        for edge, values in sides.items()
        for x, y in zip(series.x, values, strict=True)
        if drawable(x, log=chart.x_log)
    ]


def shares(
    population: Population, utility: Utility, rows: Sequence[int], *, most: int = _LABEL_COLUMNS
) -> ChartDrawing | None:
    """Return the estimated shares of the values `rows`, None without an estimate; labels are cut to width `most`."""
    estimate, true = utility.estimate, true_shares(population)
    if estimate is None:
        return None
    ends = estimate.interval(utility.confidence)
    values = {"estimate": estimate.frequencies, "low": ends[:, 0], "high": ends[:, 1]}
    values |= {} if true is None else {"true": true}
    data = [{"row": f"r{row}", **{key: float(column[row]) for key, column in values.items()}} for row in rows]
    x_scale = scale([0.0, *(float(column[row]) for column in values.values() for row in rows)], log=False)
    assert x_scale is not None  # 0 can always be drawn
    # Rows have generated names, because two labels may be equal once they are cut or cleaned.
    labels = {f"r{row}": short(population.labels[row], most) for row in rows}
    room = _COLUMN_WIDTH * max(columns(label) for label in labels.values())
    names = {"labelExpr": f"({json.dumps(labels)})[datum.value]", "minExtent": room, "title": None, "ticks": False}
    y = {"field": "row", "type": "nominal", "sort": list(labels), "axis": names}
    axis = ruler(x_scale, "share of people", across=True)

    def marked(mark: str, field: str, encoding: Values | None = None, **properties: Any) -> Values:
        return layer(data, mark, {"x": number(field, x_scale, axis), "y": y, **(encoding or {})}, **properties)

    step = _ROW if len(rows) > _FEW else 2 * _ROW
    layers = [
        marked("rule", "low", {"x2": {"field": "high"}}, color=COLORS[0], strokeWidth=7, opacity=0.35),
        marked("point", "estimate", color=COLORS[0], filled=True, size=36, opacity=1),
    ]
    confidence = f"{utility.confidence:.0%} interval"
    key = [KeyEntry(mark="interval", color=COLORS[0], text=f"estimate and {confidence}")]
    if true is not None:
        layers.append(marked("tick", "true", color=COLORS[1], thickness=2.5, size=18, opacity=1))
        key.append(KeyEntry(mark="tick", color=COLORS[1], text="true share in the data"))
    also = "" if true is None else " and the true shares"
    return ChartDrawing(
        specification=finish(layers, height=step * len(rows) + 60),
        key=tuple(key),
        description=f"Estimated shares of {plural(len(rows), 'value')} with their {confidence}s{also}; "
        "the table above has the numbers.",
    )
