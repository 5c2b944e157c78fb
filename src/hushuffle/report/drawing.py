"""From a chart's specification to inline SVG: small, self-contained, with names of its own."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import vl_convert

from hushuffle.report.styling import Drawing

_SVG = "{http://www.w3.org/2000/svg}"
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
# Said once for the whole picture, set by the page's style sheet, or of no effect.
_DROPPED = {"aria-hidden", "aria-label", "aria-roledescription", "class", "font-family", "pointer-events", "role"}
_EMPTY = {"path", "g", "text"}


def svg(drawing: Drawing, name: str) -> str:
    """Return the inline SVG of `drawing`; ids in it start with `name`.

    It has a viewBox and no size, so that it takes the width it is given, and no address of any kind.
    """
    text = vl_convert.vegalite_to_svg(drawing.specification, allowed_base_urls=[])
    root = ET.fromstring(text)  # noqa: S314 - the library's own output, without a document type
    width, height = root.attrib["width"], root.attrib["height"]
    names = {identifier: f"{name}-{position}" for position, identifier in enumerate(_identifiers(root))}
    _clean(root, names)
    root.attrib.clear()
    root.attrib.update(
        {"viewBox": f"0 0 {width} {height}", "role": "img", "aria-label": drawing.description, "class": "chart"}
    )
    return ET.tostring(root, encoding="unicode")


def _identifiers(root: ET.Element) -> list[str]:
    return [element.attrib["id"] for element in root.iter() if "id" in element.attrib]


def _clean(element: ET.Element, names: dict[str, str]) -> None:
    """Drop what is not seen, name the ids after `names`, cut coordinates to hundredths of a pixel."""
    element.tag = element.tag.removeprefix(_SVG)
    kept = {key: value for key, value in element.attrib.items() if key not in _DROPPED}
    element.attrib.clear()
    element.attrib.update({key: _attribute(key, value, names) for key, value in kept.items()})
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
