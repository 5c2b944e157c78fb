"""Maps of an assessment: on the page, in result.json, on the terminal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hushuffle import report
from hushuffle.errors import InvalidInputError
from hushuffle.model import Panel, PointMap
from report.assessments import assessment

PEOPLE = PointMap(
    key="people",
    title="Who lives <where>",
    caption="Everybody at their own place.",
    x_label="east",
    y_label="north",
    labels=("no", "yes"),
    panels=(
        Panel(label="true values", x=(0.0, 1.0, 2.0), y=(0.0, 1.0, 0.5), values=(0, 1, 1)),
        Panel(label="released", x=(0.0, 1.0, 2.0), y=(0.0, 1.0, 0.5), values=(1, 1, 0)),
    ),
)


def test_on_the_page() -> None:
    page = report.html(replace(assessment(2), maps=(PEOPLE,)))
    assert '<h2 id="maps">Maps</h2>' in page
    assert "Who lives &lt;where&gt;" in page
    assert page.count("<h4>") == 2
    assert "Everybody at their own place." in page
    assert 'id="maps"' not in report.html(assessment(2))


def test_without_a_point_to_draw() -> None:
    empty = replace(PEOPLE, panels=(Panel(label="true values", x=(), y=(), values=()),))
    page = report.html(replace(assessment(2), maps=(empty,)))
    assert "No point of this map is finite." in page


def test_in_the_result() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads(report.to_json(replace(assessment(2), maps=(PEOPLE,))))
    jsonschema.Draft202012Validator(report.json_schema()).validate(document)
    (drawn,) = document["maps"]
    assert drawn["panels"][0] == {"label": "true values", "x": [0, 1, 2], "y": [0, 1, 0.5], "values": [0, 1, 1]}
    assert '"values": [1, 1, 0]' in report.to_json(replace(assessment(2), maps=(PEOPLE,)))


def test_no_number_that_is_none() -> None:
    with pytest.raises(InvalidInputError, match="numbers"):
        Panel(label="x", x=(float("nan"),), y=(0.0,), values=(0,))


def test_on_a_terminal() -> None:
    text = report.terminal(replace(assessment(2), maps=(PEOPLE,)), width=80)
    assert "Who lives <where>." in text
    assert "Who lives" not in report.terminal(assessment(2), width=80)
