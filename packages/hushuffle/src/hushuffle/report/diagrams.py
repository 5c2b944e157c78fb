"""Makes a `Diagram` safe for a page: only allowed shapes and attributes, and ids that are unique on the page."""

from __future__ import annotations

import re
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Final, NoReturn

from hushuffle import _checks
from hushuffle.model import Diagram
from hushuffle.report.formatting import block, plain

_SVG: Final = "{http://www.w3.org/2000/svg}"
_ELEMENTS: Final = (
    *("svg", "title", "desc", "defs", "marker", "g", "path", "rect"),
    *("circle", "ellipse", "line", "polyline", "polygon", "text", "tspan"),
)
_ATTRIBUTES: Final = (
    *("viewBox", "width", "height", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "d", "points"),
    *("transform", "id", "role", "opacity", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap"),
    *("font-family", "font-size", "font-weight", "text-anchor", "marker-start", "marker-end"),
    *("refX", "refY", "markerWidth", "markerHeight", "orient"),
)
_REFERENCE: Final = re.compile(r"url\(#([\w-]+)\)")
_SUSPECT: Final = re.compile(r"[:\\@]|//|url", re.IGNORECASE)
_LEAST_SCALE: Final = 0.8
"""The smallest scale of a diagram, so that its text stays readable; narrower pages scroll the diagram."""


def inline(diagram: Diagram, name: str) -> str:
    """Return the SVG with ids that start with `name`; refuse anything but shapes and text.

    >>> box = Diagram(key="d", title="A box", caption="", svg='<svg viewBox="0 0 9 9"><rect x="1"/></svg>', text="")
    >>> inline(box, "d")[-20:]
    '<rect x="1" /></svg>'
    """
    if "<!" in diagram.svg:
        _refuse("a document type or comment")
    try:
        root = ET.fromstring(diagram.svg)  # noqa: S314 - without a document type there are no entities
    except ET.ParseError:
        _refuse("no XML")
    width = _width(root)
    names = {part.attrib["id"]: f"{name}-{place}" for place, part in enumerate(root.iter()) if "id" in part.attrib}
    _clean(root, names)
    if root.tag != "svg":
        _refuse(f"<{root.tag}>")
    for title in root.findall("title"):
        root.remove(title)  # browsers would show it as a tooltip everywhere on the diagram
    shown: tuple[str, ...] = ("viewBox", "font-family", "font-size")
    attributes = {name: root.attrib[name] for name in shown if name in root.attrib}
    root.attrib.clear()
    size = f"min-width:{_LEAST_SCALE * width:.0f}px;max-width:{width:.0f}px"
    root.attrib.update(
        {**attributes, "role": "img", "aria-label": plain(diagram.title), "class": "diagram", "style": size}
    )
    return ET.tostring(root, encoding="unicode")


def wrapped(text: str, width: int) -> Iterator[str]:
    r"""Yield the lines of `text`, wrapped to at most `width` characters; continuation lines are indented further.

    >>> list(wrapped("people: 10,000 items\n  a cluster of them", 12))
    ['people:', '  10,000', '  items', '  a cluster', '    of them']
    """
    for line in block(text).splitlines():
        start = " " * min(len(line) - len(line.lstrip()), width // 2)
        yield from textwrap.wrap(
            line.strip(), width=width, initial_indent=start, subsequent_indent=f"{start}  ", break_on_hyphens=False
        )


def _clean(element: ET.Element, names: dict[str, str]) -> None:
    """Check `element` and its descendants, remove the namespace, and replace ids as `names` maps them."""
    element.tag = element.tag.removeprefix(_SVG)
    if element.tag not in _ELEMENTS:
        _refuse(f"<{plain(element.tag)}>")
    for key, value in element.attrib.items():
        if key not in _ATTRIBUTES:
            _refuse(f"the attribute {plain(key)}")
        if _SUSPECT.search(_REFERENCE.sub("", value)):
            _refuse(f"an address in {key}")
        renamed = _REFERENCE.sub(lambda match: f"url(#{names.get(match[1], 'nothing')})", value)
        element.attrib[key] = names[value] if key == "id" else renamed
    for child in element:
        _clean(child, names)


def _width(root: ET.Element) -> float:
    numbers = root.attrib.get("viewBox", "").split()
    try:
        return float(numbers[2])
    except (IndexError, ValueError):
        _refuse("no viewBox")


def _refuse(what: str) -> NoReturn:
    _checks.reject("svg", "a drawing of shapes and text, with a viewBox", f"<{what}>")
