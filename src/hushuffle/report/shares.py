"""The drawing of the estimated shares: intervals, and the true shares if there is data."""

from __future__ import annotations

import json
from collections.abc import Sequence

import altair as alt

from hushuffle.model import Assessment, Utility
from hushuffle.report.accuracy import true_shares
from hushuffle.report.formatting import columns, plural, short
from hushuffle.report.scales import scale
from hushuffle.report.styling import COLORS, FONT_SIZE, Drawing, KeyEntry, base, domain, finish, ruler

_ROW = 20
_FEW = 8
_LABEL_COLUMNS = 18
# Browsers bring fonts of their own, some wider than the one the layout is measured with.
_COLUMN_WIDTH = 0.66 * FONT_SIZE


def draw(assessment: Assessment, utility: Utility, rows: Sequence[int]) -> Drawing | None:
    """Return the drawing of the estimates of the values `rows`; None if there is no estimate."""
    estimate, shares = utility.estimate, true_shares(assessment.population)
    if estimate is None:
        return None
    ends = estimate.interval(utility.confidence)
    values = {"estimate": estimate.frequencies, "low": ends[:, 0], "high": ends[:, 1]}
    values |= {} if shares is None else {"true": shares}
    data = [{"row": f"r{row}", **{key: float(column[row]) for key, column in values.items()}} for row in rows]
    x_scale = scale([0.0, *(float(column[row]) for column in values.values() for row in rows)], log=False)
    assert x_scale is not None  # 0 has a place on it
    # Rows have names of their own: two labels may look alike once they are cut or cleaned.
    labels = {f"r{row}": short(assessment.population.labels[row], _LABEL_COLUMNS) for row in rows}
    room = _COLUMN_WIDTH * max(columns(label) for label in labels.values())
    names = alt.Axis(labelExpr=f"({json.dumps(labels)})[datum.value]", minExtent=room, title=None, ticks=False)
    y = alt.Y("row:N", sort=list(labels), axis=names)
    axis = ruler(x_scale, "share of people")

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", scale=domain(x_scale), axis=axis)

    step = _ROW if len(rows) > _FEW else 2 * _ROW
    marks = base(data)
    layers = [
        marks.mark_rule(color=COLORS[0], strokeWidth=7, opacity=0.35).encode(x=x("low"), x2="high:Q", y=y),
        marks.mark_point(color=COLORS[0], filled=True, size=36, opacity=1).encode(x=x("estimate"), y=y),
    ]
    confidence = f"{utility.confidence:.0%} interval"
    key = [KeyEntry(mark="interval", color=COLORS[0], text=f"estimate and {confidence}")]
    if shares is not None:
        layers.append(marks.mark_tick(color=COLORS[1], thickness=2.5, size=18, opacity=1).encode(x=x("true"), y=y))
        key.append(KeyEntry(mark="tick", color=COLORS[1], text="true share in the data"))
    also = "" if shares is None else " and the true shares"
    return Drawing(
        specification=finish(layers, height=step * len(rows) + 60),
        key=tuple(key),
        description=f"Estimated shares of {plural(len(rows), 'value')} with their {confidence}s{also}; "
        "the table above has the numbers.",
    )
