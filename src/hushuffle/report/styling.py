"""What the charts have in common: size, colours, axes, key."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from hushuffle.report.scales import Scale

# Drawn at the width of a phone, so that the text can be read there; wider screens show charts side by side.
WIDTH = 390
FONT_SIZE = 13
INK = "#1a1a1a"
# Okabe and Ito's colours, without the yellow, which nobody sees on white; dashes tell lines apart without colour.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3))
QUIET = "#595959"
GRID = "#e3e6ea"
_LINE_LENGTH = 50
_TICKS = 6
_PADDING = {"left": 10, "top": 4, "right": 10, "bottom": 4}
# Plain numbers, very small and very large ones as 1e-6 and 1e6.
_LABEL = (
    "datum.value == 0 || (abs(datum.value) >= 1e-4 && abs(datum.value) < 1e6)"
    " ? format(datum.value, ',~r') : replace(format(datum.value, '~e'), '+', '')"
)


@dataclass(frozen=True, kw_only=True)
class KeyEntry:
    """One line of a chart's key: which mark ("line", "interval", "tick"), colour and dashes stand for what."""

    mark: str
    color: str
    text: str
    dash: str = ""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A chart ready to be drawn: its specification, its key, and what it shows for those who do not see it.

    `clipped` says that something goes on beyond the edge, to infinity or (on a logarithmic axis) to 0.
    """

    specification: dict[str, Any]
    key: tuple[KeyEntry, ...]
    description: str
    clipped: bool = False


def base(rows: Sequence[dict[str, Any]]) -> alt.Chart:
    """Return an empty chart of `rows`."""
    return alt.Chart(alt.InlineData(values=list(rows)))


def domain(axis: Scale) -> alt.Scale:
    """Return `axis` for altair."""
    return alt.Scale(domain=[axis.low, axis.high], type="log" if axis.log else "linear", nice=False, zero=False)


def ruler(axis: Scale, title: str = "") -> alt.Axis:
    """Return the ticks and the title of `axis`."""
    shown, ticks = textwrap.wrap(title, _LINE_LENGTH) or None, axis.ticks(_TICKS)
    if ticks:
        return alt.Axis(title=shown, labelExpr=_LABEL, values=ticks)
    return alt.Axis(title=shown, labelExpr=_LABEL, tickCount=_TICKS)


def finish(layers: Sequence[alt.Chart], *, height: int, y_label: str = "", gap: int = 10) -> dict[str, Any]:
    """Return the specification of the layers; the y label stands `gap` above the axis, to be read upright."""
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    chart = alt.layer(*layers).properties(width=WIDTH, height=height, autosize=fit, padding=_PADDING)
    if y_label:
        lines = textwrap.wrap(y_label, _LINE_LENGTH)
        chart = chart.properties(title=alt.TitleParams(text=lines, anchor="start", frame="bounds"))
    styled = (
        chart.configure(aria=False, background="transparent", font="sans-serif")
        .configure_view(stroke=None)
        .configure_title(color=QUIET, offset=gap, fontWeight="normal", fontSize=FONT_SIZE)
        .configure_axis(
            labelFontSize=FONT_SIZE,
            titleFontSize=FONT_SIZE,
            titleFontWeight="normal",
            titleColor=QUIET,
            labelColor=INK,
            gridColor=GRID,
            domainColor=QUIET,
            tickColor=QUIET,
            labelOverlap="greedy",
        )
    )
    specification: dict[str, Any] = styled.to_dict()
    return specification
