"""Sizes, colours, axes and keys shared by all pictures; functions that return inline SVG."""

from __future__ import annotations

import re
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, TypeAlias

import vl_convert

from hushuffle.report.formatting import columns, plain
from hushuffle.report.scales import Scale

# Charts have the width of a phone, so that text is readable on a phone; wider screens show charts side by side.
WIDTH = 390
FONT_SIZE = 13
INK = "#1a1a1a"
# Okabe and Ito's colours, without the yellow, which is invisible on white; dashes tell lines apart without colour.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3))
QUIET = "#595959"
GRID = "#e3e6ea"
_LINE_LENGTH = 50
_TICKS = 6
_ACROSS = 300
"""The approximate minimum width of the plot area of a chart, in pixels."""
_PADDING = {"left": 10, "top": 4, "right": 10, "bottom": 4}
# Plain numbers, very small and very large ones as 1e-6 and 1e6.
_LABEL = (
    "datum.value == 0 || (abs(datum.value) >= 1e-4 && abs(datum.value) < 1e6)"
    " ? format(datum.value, ',~r') : replace(format(datum.value, '~e'), '+', '')"
)
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_SVG = "{http://www.w3.org/2000/svg}"
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
# Attributes to remove: set once for the whole picture, set by the page's style sheet, or without effect.
_DROPPED = {"aria-hidden", "aria-label", "aria-roledescription", "class", "font-family", "pointer-events", "role"}
_EMPTY = {"path", "g", "text"}
_COLUMN_WIDTH = 0.6
"""The approximate width of one character, as a fraction of the font size."""

Values: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class KeyEntry:
    """One line of a chart's key: a mark ("line", "interval", "tick") with colour and dashes, and its meaning."""

    mark: str
    color: str
    text: str
    dash: str = ""


@dataclass(frozen=True, kw_only=True)
class ChartDrawing:
    """A Vega-Lite chart; `clipped`: a line continues beyond the edge, to infinity or (on a logarithmic axis) to 0."""

    specification: dict[str, Any]
    key: tuple[KeyEntry, ...]
    description: str
    clipped: bool = False


def layer(rows: Sequence[Values], mark: str, encoding: Values, **properties: Any) -> Values:
    """Return one layer of a Vega-Lite chart: marks of the type `mark`, one for each of `rows`.

    >>> layer([{"x": 1}], "point", {"x": {"field": "x", "type": "quantitative"}}, size=9)["mark"]
    {'type': 'point', 'size': 9}
    """
    return {"data": {"values": list(rows)}, "mark": {"type": mark, **properties}, "encoding": encoding}


def number(field: str, axis: Scale, shown: Values) -> Values:
    """Return the Vega-Lite encoding channel of a numeric field on `axis`, with the ticks and title `shown`."""
    kind = "log" if axis.log else "linear"
    limits = {"domain": [axis.low, axis.high], "type": kind, "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "scale": limits, "axis": shown}


def ruler(axis: Scale, title: str = "", *, across: bool = False) -> Values:
    """Return the ticks and the title of `axis`; on a horizontal axis (`across`) labels do not overlap."""
    ticks = axis.labelled(_ACROSS, _COLUMN_WIDTH * FONT_SIZE, _TICKS) if across else axis.ticks(_TICKS)
    return {"title": textwrap.wrap(title, _LINE_LENGTH) or None, "labelExpr": _LABEL, "values": ticks}


def finish(layers: Sequence[Values], *, height: int, y_label: str = "", gap: int = 10) -> Values:
    """Return the Vega-Lite specification of the layers; the y label is horizontal, `gap` pixels above the axis."""
    lines = textwrap.wrap(y_label, _LINE_LENGTH)
    return {
        "$schema": _SCHEMA,
        "width": WIDTH,
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "padding": _PADDING,
        **({"title": {"text": lines, "anchor": "start", "frame": "bounds"}} if lines else {}),
        "layer": list(layers),
        "config": {
            "aria": False,
            "background": "transparent",
            "font": "sans-serif",
            "view": {"stroke": None},
            "title": {"color": QUIET, "offset": gap, "fontWeight": "normal", "fontSize": FONT_SIZE},
            "axis": {
                "labelFontSize": FONT_SIZE,
                "titleFontSize": FONT_SIZE,
                "titleFontWeight": "normal",
                "titleColor": QUIET,
                "labelColor": INK,
                "gridColor": GRID,
                "domainColor": QUIET,
                "tickColor": QUIET,
                "labelOverlap": False,
            },
        },
    }


def svg(drawing: ChartDrawing, name: str) -> str:
    """Return inline SVG whose ids start with `name`; it has no size, to fill the width, and refers to no address."""
    text = vl_convert.vegalite_to_svg(drawing.specification, allowed_base_urls=[])
    root = ET.fromstring(text)  # noqa: S314 - the library's own output, without a document type
    width, height = root.attrib["width"], root.attrib["height"]
    identifiers = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    names = {identifier: f"{name}-{position}" for position, identifier in enumerate(identifiers)}
    _clean(root, names)
    root.attrib.clear()
    root.attrib.update(
        {"viewBox": f"0 0 {width} {height}", "role": "img", "aria-label": drawing.description, "class": "chart"}
    )
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, names: dict[str, str]) -> None:
    """Remove invisible parts, replace ids as `names` maps them, and round coordinates to hundredths of a pixel."""
    element.tag = element.tag.removeprefix(_SVG)
    attributes = {key: value for key, value in element.attrib.items() if key not in _DROPPED}
    element.attrib.clear()
    element.attrib.update({key: _attribute(key, value, names) for key, value in attributes.items()})
    for child in list(element):
        _clean(child, names)
        if _unseen(child):
            element.remove(child)


def _attribute(key: str, value: str, names: dict[str, str]) -> str:
    if key == "id":
        return names[value]
    value = _REFERENCE.sub(lambda match: f"url(#{names[match[1]]})", value)
    return _LONG_NUMBER.sub(lambda match: f"{float(match[0]):.2f}", value)


def _unseen(element: ET.Element) -> bool:
    attributes: dict[str, Any] = element.attrib
    if attributes.get("display") == "none":
        return True
    drawn = attributes.get("d", "") not in {"", "M0,0h0v0h0Z"}
    return element.tag in _EMPTY and not drawn and not len(element) and not element.text


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


def stroke(path: str, color: str, thickness: float = 1, *, round_ends: bool = False) -> str:
    ends = ' stroke-linecap="round"' if round_ends else ""
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{short(thickness)}"{ends}/>'


def fill(path: str, color: str) -> str:
    return f'<path d="{path}" fill="{color}" shape-rendering="crispEdges"/>'


def short(value: float) -> str:
    """Return `value` rounded to tenths, as text without a trailing ".0".

    >>> short(12.04), short(0.25), short(-0.01)
    ('12', '0.2', '0')
    """
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown
