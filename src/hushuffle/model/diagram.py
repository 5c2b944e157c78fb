"""`Diagram`: a drawing of how something is built, with the same in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Diagram:
    """A drawing: `svg` is an SVG document of shapes and text, `text` says the same in lines of words.

    `caption` is one plain sentence. A report shows the SVG only if it holds nothing but shapes, text and arrow heads:
    no script, no style, no address.

    >>> Diagram(key="d", title="A box", caption="", svg='<svg viewBox="0 0 9 9"/>', text="one box").text
    'one box'
    """

    key: str
    title: str
    caption: str
    svg: str
    text: str
