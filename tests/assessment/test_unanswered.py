"""A question that the mechanism refuses is a row of the report, never its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import hushuffle as hs
from hushuffle import report
from hushuffle.assessment import deployment as workflow
from hushuffle.assessment import findings
from hushuffle.curves.search import solve
from hushuffle.errors import InvalidInputError, NumericalError, Problem, UnsupportedProtocolError
from hushuffle.model import Report
from hushuffle.specification import exposure, parse
from plain_protocols import Opaque
from report.outline import outline

PEOPLE = 40


def protocol(randomizer: Any, shuffler: Any = None) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler or hs.UniformShuffle(), n=PEOPLE)


def assessed(made: hs.Protocol, monkeypatch: pytest.MonkeyPatch, targets: str = "") -> Report:
    monkeypatch.setattr(exposure, "build_protocol", lambda *_args, **_named: made)
    return workflow.assess(
        parse(f"""
            population = {{ n = {PEOPLE}, k = {made.randomizer.inputs} }}
            randomizer = {{ kind = "randomized-response", epsilon = 1.0 }}
            shuffler = {{ kind = "uniform" }}
            adversaries = [{{ kind = "strong" }}, {{ kind = "linker" }}]
            targets = {{ delta = 1e-3 {targets} }}
        """)
    )


def refused(assessment: Report) -> set[str]:
    return {row.question for row in assessment.unanswered}


def test_a_mechanism_without_any_law_still_has_a_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = assessed(protocol(Opaque()), monkeypatch, ", epsilon = 0.5, standard_error = 0.01")
    assert [finding.question for finding in made.findings] == ["local-dp"]
    assert refused(made) == {
        "central-dp",
        "vulnerability",
        "re-identification",
        "identity-information",
        "privacy-against-people",
        "accuracy",
    }
    assert made.utility is None
    assert {"privacy-target-unknown", "target-unknown"} <= {warned.key for warned in made.warnings}
    assert [path.name for path in report.write(made, tmp_path)] == [
        "report.html",
        "result.json",
        "dpia.md",
        "specification.toml",
    ]


def test_a_capped_scrambler_refuses_guessing_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    capped = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), hs.Scrambler(dummies=4, cap=PEOPLE))
    made = assessed(capped, monkeypatch)
    assert "vulnerability" in refused(made)
    assert "central-dp" in {finding.question for finding in made.findings}


def test_a_cap_over_hashes_refuses_the_central_figure_and_its_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    capped = protocol(hs.LocalHashing(k=6, g=3, epsilon=1.0), hs.Scrambler(dummies=4, cap=PEOPLE))
    made = assessed(capped, monkeypatch)
    assert {"central-dp", "privacy-against-noise"} <= refused(made)
    assert {"local-dp", "re-identification"} <= {finding.question for finding in made.findings}
    assert not {"no-amplification", "large-epsilon"} & {warned.key for warned in made.warnings}


@pytest.mark.parametrize("error", [UnsupportedProtocolError, NumericalError])
@pytest.mark.parametrize("name", ["bayes_error", "alpha"])
def test_identity_is_refused_one_figure_at_a_time(
    name: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hs.pie, name, Mock(side_effect=error("PIE needs a matrix.")))
    made = assessed(protocol(hs.RandomizedResponse(k=3, epsilon=1.0)), monkeypatch)
    names = {"bayes_error": "re-identification", "alpha": "identity-information"}
    (row,) = made.unanswered
    assert (row.question, row.reason) == (names[name], "PIE needs a matrix.")
    assert ({*names.values()} - refused(made)) <= {finding.question for finding in made.findings}


def test_what_is_wrong_with_the_input_still_ends_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        hs.qif, "vulnerability", Mock(side_effect=InvalidInputError(Problem(key="m", rule="must be less", value="9")))
    )
    with pytest.raises(InvalidInputError):
        assessed(protocol(hs.RandomizedResponse(k=3, epsilon=1.0)), monkeypatch)


def test_the_row_stands_on_the_page_on_the_terminal_and_in_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    made = assessed(protocol(Opaque()), monkeypatch)
    sentence = "Not answered for this mechanism, because"
    page = outline(report.html(made))
    assert sum(text.startswith(sentence) for text in page.text("td")) == len(made.unanswered)
    summary = report.terminal(made, width=80)
    assert max(map(len, summary.splitlines())) <= 80
    assert "Not answered for this" in summary
    assert summary.count("not answered") >= len(made.unanswered)
    document = json.loads(report.to_json(made))
    assert [row["question"] for row in document["unanswered"]] == [row.question for row in made.unanswered]
    assert all(row["topic"] and row["reason"] for row in document["unanswered"])
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(report.json_schema()).validate(document)


def test_the_central_row_makes_its_law_once(monkeypatch: pytest.MonkeyPatch) -> None:
    law = Mock(side_effect=solve)
    monkeypatch.setattr(exposure, "solve", law)
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=1.0))
    row = findings.central(survey, delta=1e-3)
    assert (law.call_count, row.bound) == (1, hs.dp.epsilon(survey, delta=1e-3))
