from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import pytest

from hushuffle import report
from hushuffle.errors import InvalidInputError
from hushuffle.model import Report
from report.assessments import assessment, charts

KEYS = [
    "content",
    "schema_version",
    "verdict",
    "statement",
    "title",
    "deployment",
    "specification",
    "population",
    "findings",
    "utility",
    "warnings",
    "citations",
    "software",
    "charts",
    "tables",
    "maps",
    "unanswered",
]
CASES = {
    "two values": assessment(2),
    "seven values": assessment(7, target=None, warnings=False),
    "many values": assessment(200),
    "no data": assessment(5, data=False),
    "no noise": assessment(3, data=False, noise=False),
    "awkward labels": assessment(3, names=('quote " back \\', "nul \x00 \ud800", "日本語")),
    "nothing asked": replace(assessment(2), findings=(), utility=None, charts=(), warnings=(), citations=()),
}


def refuse(token: str) -> NoReturn:
    raise AssertionError(token)


def strict(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return loaded


def validate(document: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(report.json_schema()).validate(document)


@pytest.mark.parametrize("made", CASES.values(), ids=CASES.keys())
def test_valid_strict_and_complete(made: Report) -> None:
    text = report.to_json(made)
    text.encode("ascii")
    document = strict(text)
    validate(document)
    assert set(document) == set(KEYS)
    assert text == report.to_json(made)


def test_the_schema_is_a_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(report.json_schema())
    json.dumps(report.json_schema(), allow_nan=False)


@pytest.mark.parametrize("key", KEYS)
def test_the_schema_misses_every_key(key: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = strict(report.to_json(assessment()))
    del document[key]
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


@pytest.mark.parametrize("wrong", ["inf", None, "0.5"])
def test_the_schema_refuses_other_numbers(wrong: str | None) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = strict(report.to_json(assessment()))
    document["findings"][0]["bound"]["upper"] = wrong
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


def test_values_survive_the_round_trip() -> None:
    made = assessment(7)
    document = strict(report.to_json(made))
    assert document["schema_version"] == report.SCHEMA_VERSION == 1
    assert document["specification"] == made.specification
    for finding, loaded in zip(made.findings, document["findings"], strict=True):
        assert (loaded["bound"]["lower"], loaded["bound"]["upper"]) == (finding.bound.lower, finding.bound.upper)
        assert (loaded["question"], loaded["sentence"]) == (finding.question, finding.sentence)
        assert loaded["bound"]["kind"] == finding.bound.kind
    assert document["findings"][1]["bound"]["witness"] == {
        "family": "all others at one value",
        "others": [6365],
        "target": [0, 1],
    }
    assert made.utility is not None
    assert document["utility"]["predicted"] == made.utility.predicted.tolist()
    assert document["utility"]["met"] is True
    assert document["population"]["counts"] == list(made.population.counts or ()) if made.population else None
    assert document["charts"][0]["series"][0]["x"] == list(made.charts[0].series[0].x)
    assert document["software"][0] == {"name": "hushuffle", "version": "0.1.0"}


def test_infinity_is_a_word() -> None:
    made = assessment(2, data=False, noise=False)
    low = replace(charts()[0], here=None, series=(replace(charts()[0].series[0], x=(1.0,), lower=(-math.inf,)),))
    document = strict(report.to_json(replace(made, charts=(low,))))
    assert document["findings"][0]["bound"]["upper"] == "infinity"
    assert document["charts"][0]["series"][0]["lower"] == ["-infinity"]
    validate(document)


@pytest.mark.parametrize("where", ["predicted", "measured", "z"])
def test_nan_is_refused_where_it_is_made(where: str) -> None:
    made = assessment(2)
    assert made.utility is not None
    with pytest.raises(InvalidInputError, match=f"`{where}` must be numbers"):
        replace(made.utility, **{where: np.array([0.1, math.nan])})  # type: ignore[arg-type]


def test_nan_never_reaches_the_document() -> None:
    made = replace(assessment(2), charts=(replace(charts()[0], here=math.nan),))
    with pytest.raises(InvalidInputError, match="nan"):
        report.to_json(made)
