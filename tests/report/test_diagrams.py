from __future__ import annotations

import re

import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model import Diagram, Report
from hushuffle.plans import k_means, svg
from hushuffle.report.diagrams import inline, wrapped
from hushuffle.report.page import html
from report.outline import outline


def drawn(text: str) -> str:
    return inline(Diagram(key="d", title="A <b> box", caption="", svg=text, text="lines"), "name")


def test_a_plan_becomes_inline_svg() -> None:
    plan = k_means(people=200, centroids=2, iterations=1, variant="hidden", sigma=0.2)
    text = drawn(svg(plan))
    found = outline(text)
    root = found.elements[0]
    assert root.attributes["viewbox"] == "0 0 1114 82"
    assert root.attributes["style"] == "min-width:891px;max-width:1114px"
    assert root.attributes["aria-label"] == "A <b> box"
    assert (root.attributes["font-size"], "xmlns" in text, "<title" in text) == ("12", False, False)
    (name,) = re.findall(r'id="(name-\d+)"', text)
    assert text.count(f"url(#{name})") == 3
    assert "assign 1" in found.text("text")


def test_ids_of_two_diagrams_differ() -> None:
    made = Diagram(key="d", title="t", caption="c", svg='<svg viewBox="0 0 9 9"><g id="x"/></svg>', text="a\x07b\nc")
    page = html(Report(title="T", question="Q?", key="k", diagrams=(made, made)))
    assert 'id="diagram-0-1"' in page
    assert 'id="diagram-1-1"' in page
    assert page.count("a\N{REPLACEMENT CHARACTER}b\nc") == 2


def test_unknown_references_lead_nowhere() -> None:
    assert 'fill="url(#nothing)"' in drawn('<svg viewBox="0 0 9 9"><g fill="url(#other)"/></svg>')


@pytest.mark.parametrize(
    "text",
    [
        '<svg viewBox="0 0 9 9"><script>alert(1)</script></svg>',
        '<svg viewBox="0 0 9 9"><style>*{}</style></svg>',
        '<svg viewBox="0 0 9 9"><a href="x"/></svg>',
        '<svg viewBox="0 0 9 9"><image/></svg>',
        '<svg viewBox="0 0 9 9"><foreignObject/></svg>',
        '<svg viewBox="0 0 9 9"><g onclick="alert(1)"/></svg>',
        '<svg viewBox="0 0 9 9"><g style="x"/></svg>',
        '<svg viewBox="0 0 9 9"><g fill="url(//example.org)"/></svg>',
        '<svg viewBox="0 0 9 9"><g fill="URL(x)"/></svg>',
        '<svg viewBox="0 0 9 9"><g fill="javascript:x"/></svg>',
        '<svg viewBox="0 0 9 9" xmlns:y="urn:z"><y:rect/></svg>',
        '<!DOCTYPE svg [<!ENTITY a "b">]><svg viewBox="0 0 9 9">&a;</svg>',
        '<g viewBox="0 0 9 9"/>',
        "<svg/>",
        '<svg viewBox="0 0 x 9"/>',
        "<svg",
    ],
)
def test_anything_but_shapes_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="a drawing of shapes and text"):
        drawn(text)


def test_lines_are_folded_with_their_indentation() -> None:
    lines = list(wrapped(" " * 60 + "deep inside\nx", 20))
    assert max(map(len, lines)) <= 20
    assert lines == [" " * 10 + "deep", " " * 12 + "inside", "x"]
