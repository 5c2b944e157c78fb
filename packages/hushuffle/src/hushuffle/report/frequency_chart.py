"""Charts of estimated frequencies as a separate file: an SVG picture, or an HTML page that contains the picture."""

from __future__ import annotations

import html
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.model import Estimate, Population, Utility
from hushuffle.report.accuracy import MOST_ROWS
from hushuffle.report.charts import shares
from hushuffle.report.drawing import FONT_SIZE, INK, QUIET
from hushuffle.report.formatting import plain, plural, short

_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_HEAD: Final = 34
_LINE: Final = 18
_MARGIN: Final = 10
_TITLE_COLUMNS: Final = 44
_CAPTION_COLUMNS: Final = 56
_LABEL_COLUMNS: Final = 24


@dataclass(frozen=True, kw_only=True, eq=False)
class Frequencies:
    """An estimate of the k values `labels`; `above`, shape (k,), marks the significant values (None: all).

    `at_once`: only significant values are shown, with intervals that are simultaneous over all k values.
    """

    title: str
    estimate: Estimate
    labels: Sequence[str]
    confidence: float
    people: int
    above: npt.NDArray[np.bool_] | None = None
    at_once: bool = False

    @property
    def drawn_confidence(self) -> float:
        """The confidence of each drawn interval; for simultaneous intervals, the error probability is divided by k."""
        return 1 - (1 - self.confidence) / len(self.labels) if self.at_once else self.confidence

    @property
    def rows(self) -> tuple[int, ...]:
        """The codes of the values to show: all, or the at most 30 most frequent (significant values only, if any)."""
        counts = self.above is not None and bool(self.above.any())
        if len(self.labels) <= MOST_ROWS and not (self.at_once and counts):
            return tuple(range(len(self.labels)))
        order = np.argsort(-self.estimate.raw, kind="stable")
        if self.above is not None and counts:
            order = order[self.above[order]]
        return tuple(order[:MOST_ROWS].tolist())

    @property
    def caption(self) -> str:
        shown = len(self.rows)
        which = "" if shown == len(self.labels) else f"the {shown} most frequent of {len(self.labels):,} values; "
        if self.above is not None and not self.above.any():
            which += "none is statistically significant; "
        meant = " (all at once)" * self.at_once + " of the unbiased share" * bool(self.estimate.postprocessing)
        share = "share, normalized to sum to 1," if self.estimate.postprocessing else "estimate"
        people = plural(self.people, "person", "people")
        return (
            f"{which}{people}; {share} and {100 * self.confidence:.4g}% interval{meant}; the number of people is after "
            "the colon"
        )


def frequency_svg(parts: Sequence[Frequencies]) -> str:
    """Return one self-contained SVG picture with a chart for each of `parts`, one below the other.

    >>> from hushuffle import Protocol, RandomizedResponse, UniformShuffle, estimate
    >>> survey = Protocol(randomizer=RandomizedResponse(k=2, epsilon=1.0), shuffler=UniformShuffle(), n=4)
    >>> made = estimate(np.array([0, 1, 1, 1]), protocol=survey)
    >>> part = Frequencies(title="Smokes", estimate=made, labels=["no", "yes"], confidence=0.95, people=4)
    >>> frequency_svg([part])[:4]
    '<svg'
    """
    root = ET.Element("svg", {"xmlns": _NAMESPACE, "role": "img", "font-family": "sans-serif"})
    top, widest = 0.0, 0.0
    for part in parts:
        inner = ET.fromstring(_chart(part))  # noqa: S314 - drawn here
        width, height = (float(number) for number in inner.attrib["viewBox"].split()[2:])
        _text(root, short(part.title, _TITLE_COLUMNS), y=top + 22, size=FONT_SIZE + 3, color=INK, weight="bold")
        top += _HEAD
        for line in textwrap.wrap(part.caption, _CAPTION_COLUMNS):
            _text(root, line, y=top + 8, size=FONT_SIZE - 1, color=QUIET)
            top += _LINE
        inner.attrib |= {"aria-label": f"{plain(part.title)}: {part.caption}."}
        inner.attrib |= {"x": "0", "y": f"{top:g}", "width": f"{width:g}", "height": f"{height:g}"}
        root.append(inner)
        top, widest = top + height + _MARGIN, max(widest, width)
    root.attrib |= {"viewBox": f"0 0 {widest:g} {top:g}", "width": f"{widest:g}", "height": f"{top:g}"}
    root.insert(0, ET.Element("rect", {"width": "100%", "height": "100%", "fill": "white"}))
    return ET.tostring(root, encoding="unicode") + "\n"


def frequency_html(parts: Sequence[Frequencies]) -> str:
    title = html.escape("; ".join(plain(part.title) for part in parts))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>body {{ margin: 1rem; }} svg {{ max-width: 100%; height: auto; }}</style>\n"
        f"</head>\n<body>\n{frequency_svg(parts)}</body>\n</html>\n"
    )


def _chart(part: Frequencies) -> str:
    labels = list(part.labels)
    for row in part.rows:
        held = f"{part.estimate.frequencies[row] * part.people:,.0f}"
        labels[row] = f"{short(part.labels[row], _LABEL_COLUMNS - len(held) - 2)}: {held}"
    population = Population(n=part.people, labels=tuple(labels), source="reports")
    utility = Utility(predicted=part.estimate.standard_errors, estimate=part.estimate, confidence=part.drawn_confidence)
    drawing = shares(population, utility, part.rows, most=_LABEL_COLUMNS)
    assert drawing is not None  # `part` always has an estimate
    return drawing.svg


def _text(root: ET.Element, text: str, *, y: float, size: int, color: str, weight: str = "normal") -> None:
    attributes = {"x": f"{_MARGIN}", "y": f"{y:g}", "font-size": f"{size}", "fill": color, "font-weight": weight}
    ET.SubElement(root, "text", attributes).text = text
