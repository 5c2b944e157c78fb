"""Tables of an assessment, which are those of a study on another page."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.cells import cell_len

from hushuffle import report
from hushuffle.errors import InvalidInputError
from hushuffle.model import Bound, Citation, Table
from report.assessments import assessment
from report.outline import outline
from report.studies import table

SOURCE = Citation(key="whang1990", text="A linear-time probabilistic counting algorithm")
REACH = Table(
    key="reach",
    title="Reach <of> all",
    caption="In people.",
    columns=("Audience", "Estimate", "Interval"),
    rows=(
        ("tv", 30_120, Bound(lower=29e3, upper=31e3, kind="estimate", unit="", confidence=0.95, sources=(SOURCE,))),
        ("web", 9, Bound(lower=0.0, upper=20.0, kind="estimate", unit="", confidence=0.95)),
    ),
)
MADE = replace(assessment(2), tables=(REACH, table(300)))


def test_the_page_has_them() -> None:
    page = report.html(MADE)
    found = outline(page)
    assert found.text("h2")[3] == "Tables"
    assert "Reach <of> all" in found.text("h3")
    assert "Reach &lt;of&gt; all" in page
    assert "Shown: the first 200 rows; 100 more are in result.json." in page
    ids = [one.attributes["id"] for one in found.elements if "id" in one.attributes]
    assert len(set(ids)) == len(ids)
    assert "probabilistic counting" in page
    assert "Tables" not in outline(report.html(assessment(2))).text("h2")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_terminal_has_them(width: int) -> None:
    said = report.terminal(MADE, width=width)
    assert max(cell_len(line) for line in said.splitlines()) <= width
    assert "Reach <of> all" in said
    assert "280 more rows are in result.json." in " ".join(said.split())


def test_the_document_has_them() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads(report.to_json(MADE))
    jsonschema.Draft202012Validator(report.json_schema()).validate(document)
    assert document["tables"][0]["rows"][0][:2] == ["tv", 30_120]
    assert document["tables"][0]["rows"][0][2]["confidence"] == 0.95
    assert document["population"]["label_of"] == "value"
    assert {"key": "whang1990", "text": SOURCE.text, "where": ""} in document["citations"]


def test_nan_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="numbers"):
        replace(REACH, columns=("a",), rows=((float("nan"),),))


def test_labels_of_other_things() -> None:
    assert MADE.population is not None
    population = replace(MADE.population, label_of="publisher")
    assert "6,366 people, 2 publishers;" in report.html(replace(MADE, population=population))
