"""Drawings of named objects and their relations as a `Diagram`: labels at places, with lines between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Literal

from hushuffle.model import Diagram

Kind = Literal["equal", "arrow", "link"]

_WIDTH: Final = 170
_HEIGHT: Final = 90
_MARGIN: Final = 40
_LETTER: Final = 8
_WORDS: Final[dict[Kind, str]] = {"equal": "=", "arrow": "->", "link": "--"}


@dataclass(frozen=True)
class LabelRelation:
    """The relation of two labels: equality (a double line), an arrow, or a link; `word` is written beside the line."""

    start: str
    end: str
    kind: Kind = "link"
    word: str = ""

    def __str__(self) -> str:
        return f"{self.start} {_WORDS[self.kind]} {self.end}{f'   ({self.word})' if self.word else ''}"


def drawn(
    key: str,
    title: str,
    caption: str,
    places: Mapping[str, tuple[float, float]],
    lines: Sequence[LabelRelation],
    *,
    marked: Sequence[str] = (),
) -> Diagram:
    """Return a diagram with labels at `places`, (column, row) of a grid, and lines; `marked` labels are filled.

    >>> ab = drawn("d", "", "", {"A": (0, 0), "B": (1, 0)}, [LabelRelation(start="A", end="B", kind="arrow", word="w")])
    >>> ab.text, ab.svg.count("<text")
    ('A -> B   (w)', 3)
    """
    centre = {
        name: (_MARGIN + _WIDTH * (column + 0.5), _MARGIN + _HEIGHT * row) for name, (column, row) in places.items()
    }
    width = round(max(x for x, _ in centre.values()) + _WIDTH * 0.5 + _MARGIN)
    height = round(max(y for _, y in centre.values()) + _MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img" font-family="sans-serif" font-size="14">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>',
    ]
    for line in lines:
        parts += _line(line, centre)
    for name, (x, y) in centre.items():
        half = len(name) * _LETTER / 2 + 8
        fill = "#e3ecf7" if name in marked else "#ffffff"
        parts.append(
            f'<rect x="{x - half:.0f}" y="{y - 14:.0f}" width="{2 * half:.0f}" height="28" rx="14" fill="{fill}" '
            'stroke="#888"/>'
        )
        parts.append(f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{escape(name)}</text>')
    text = "\n".join(map(str, lines))
    return Diagram(key=key, title=title, caption=caption, svg="\n".join([*parts, "</svg>", ""]), text=text)


def _line(line: LabelRelation, centre: Mapping[str, tuple[float, float]]) -> list[str]:
    (x, y), (to_x, to_y) = centre[line.start], centre[line.end]
    x, y, to_x, to_y = *_edge(line.start, (x, y), (to_x, to_y)), *_edge(line.end, (to_x, to_y), (x, y))
    ends = f'x1="{x:.0f}" y1="{y:.0f}" x2="{to_x:.0f}" y2="{to_y:.0f}"'
    head = ' marker-end="url(#end)"' if line.kind == "arrow" else ""
    parts = [f'<line {ends} stroke="#555"{head}/>']
    if line.kind == "equal":
        parts = [f'<line {ends} stroke="#555" stroke-width="5"/>', f'<line {ends} stroke="#ffffff" stroke-width="3"/>']
    if line.word:
        across = abs(to_x - x) > abs(to_y - y)
        place = f'x="{(x + to_x) / 2 + (0 if across else 8):.0f}" y="{(y + to_y) / 2 + (-7 if across else 5):.0f}"'
        anchor = "middle" if across else "start"
        parts.append(f'<text {place} font-size="12" text-anchor="{anchor}" fill="#555">{escape(line.word)}</text>')
    return parts


def _edge(name: str, here: tuple[float, float], there: tuple[float, float]) -> tuple[float, float]:
    half = len(name) * _LETTER / 2 + 10
    run, rise = there[0] - here[0], there[1] - here[1]
    share = min(half / abs(run) if run else 1.0, 16 / abs(rise) if rise else 1.0)
    return here[0] + share * run, here[1] + share * rise
