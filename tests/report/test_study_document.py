from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from hushuffle import report
from hushuffle.errors import InvalidInputError
from hushuffle.model import Report, Series
from report.studies import BRACKET, EMPTY, heat_map, panel, study, table

KEYS = [
    "claims",
    "content",
    "schema_version",
    "verdict",
    "key",
    "title",
    "question",
    "answers",
    "settings",
    "findings",
    "tables",
    "charts",
    "maps",
    "heat_maps",
    "diagrams",
    "warnings",
    "citations",
    "software",
    "unanswered",
]


def refuse(token: str) -> NoReturn:
    raise AssertionError(token)


def strict(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return loaded


def validate(document: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(report.json_schema("study")).validate(document)


@pytest.mark.parametrize("made", [study(), EMPTY], ids=["everything", "nothing"])
def test_valid_strict_and_complete(made: Report) -> None:
    text = report.to_json(made)
    text.encode("ascii")
    document = strict(text)
    validate(document)
    assert set(document) == set(KEYS)
    assert text == report.to_json(made)


def test_the_schema_is_a_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(report.json_schema("study"))


@pytest.mark.parametrize("key", KEYS)
def test_the_schema_misses_every_key(key: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = strict(report.to_json(study()))
    del document[key]
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


def test_values_survive_the_round_trip() -> None:
    made = study()
    document = strict(report.to_json(made))
    assert document["schema_version"] == report.SCHEMA_VERSION == 1
    assert document["answers"] == list(made.answers)
    assert document["settings"][0] == {"name": "seed", "value": "1"}
    first, second, third = document["tables"][0]["rows"]
    assert first[2:4] == [10, document["tables"][0]["rows"][0][3]]
    assert (first[3]["lower"], first[3]["upper"], first[3]["kind"]) == (BRACKET.lower, BRACKET.upper, "bracket")
    assert second[5] == 1234.5678
    assert third[4:] == ["not run", "infinity"]
    assert document["maps"][0]["panels"][0]["x"] == list(made.maps[0].panels[0].x)
    assert document["maps"][0]["panels"][0]["values"] == [0, 1, 2, 0, 1, 2]
    assert document["heat_maps"][0]["values"] == [list(row) for row in made.heat_maps[0].values]
    assert document["heat_maps"][1]["log"] is True
    assert {source["where"] for source in document["citations"]} >= {"Theorem 4", "Figure 2"}


def test_lists_of_numbers_stand_on_one_line() -> None:
    text = report.to_json(study(points=500))
    assert len(text.splitlines()) < 530


def test_nan_is_refused_where_it_is_made() -> None:
    with pytest.raises(InvalidInputError, match="`x, y` must be numbers, got x, y=nan"):
        replace(panel(), x=(math.nan,) * 6)
    with pytest.raises(InvalidInputError, match="`rows` must be numbers"):
        replace(table(1), rows=(("a", "b", 1, 2, 3, math.nan),))
    with pytest.raises(InvalidInputError, match="`values` must be numbers"):
        replace(heat_map(1, 1), values=((math.nan,),))
    with pytest.raises(InvalidInputError, match="`x, lower, upper` must be numbers"):
        Series(label="a", x=(1.0,), lower=(math.nan,), upper=(1.0,))
