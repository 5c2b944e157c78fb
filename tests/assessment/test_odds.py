"""What is said instead of a figure that nobody could use."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import hushuffle as hs
from assessment.test_targets import made, spec
from hushuffle.assessment import findings
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.trials import worst_error
from hushuffle.report import html, terminal, to_json
from hushuffle.specification import parse


def test_a_factor_above_a_thousand_is_words() -> None:
    """One page promised patients "at most a factor 1.468e+45"; a sum of 710 nats ended in OverflowError."""
    report = assess(parse("rounds = 400\n" + spec()))
    assert report.statement is not None
    page, told = html(report), " ".join(report.statement.respondents)
    assert "e+" not in report.statement.claim + told
    assert "factor e+" not in page
    assert "your answers would be practically readable." in told
    local = next(row for row in report.findings if row.question == "local-dp")
    assert local.bound.upper == pytest.approx(800)
    assert local.sentence == "If the shuffler fails, your answers are practically readable."


def test_the_claim_and_the_respondents_text_keep_the_probability() -> None:
    report = made()
    assert report.statement is not None
    assert "delta = 1e-06: except with probability 1e-06, seeing it changes" in report.statement.claim
    told = " ".join(report.statement.respondents)
    assert "except with a probability of one in a million" in told
    assert "1e-06" not in told


def test_the_standard_error_in_the_verdict_does_not_depend_on_the_answers(tmp_path: Path) -> None:
    got = []
    for name, yes in (("few", 1), ("half", 50)):
        (tmp_path / f"{name}.csv").write_text("x\n" + "yes\n" * yes + "no\n" * (100 - yes), encoding="utf-8")
        text = spec(targets=", standard_error = 0.1").replace(
            "{ n = 500, k = 2 }", f'{{ data = "{name}.csv", column = "x", categories = ["yes", "no"] }}'
        )
        report = assess(parse(text), base_folder=tmp_path)
        (row,) = [target for target in report.targets if target.key == "standard_error"]
        got.append((row.got, [warned.key for warned in report.warnings if warned.key == "target-missed"]))
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=100)
    assert got[0] == got[1]
    assert got[0][0] == hs.Bound.exact(worst_error(protocol), unit="")


def test_a_zero_in_a_matrix_says_which_report_tells() -> None:
    rows = [[0.6, 0.4, 0.0], [0.2, 0.5, 0.3], [0.5, 0.5, 0.0]]
    survey = hs.Protocol(randomizer=hs.MatrixRandomizer(rows), shuffler=hs.UniformShuffle(), n=100)
    found = findings.central(survey, delta=1e-6)
    assert found.sentence.endswith("epsilon is infinite, because only answer 2 can lead to report 3.")
    assert str(found.figure) == "infinity nats (exact)"
    assert findings.local(survey).sentence.startswith("Epsilon is infinite, because only answer 2 can lead to report 3")
    several = hs.MatrixRandomizer([[0.6, 0.4, 0.0], [0.2, 0.5, 0.3], [0.5, 0.2, 0.3]])
    said = findings.local(hs.Protocol(randomizer=several, shuffler=hs.UniformShuffle(), n=100)).sentence
    assert "answer 2 can lead to report 3, but answer 1 cannot" in said


def test_a_zero_that_matters_less_than_delta_is_not_called_infinite() -> None:
    rare = hs.MatrixRandomizer([[0.5, 0.5, 0.0], [0.5, 0.499, 0.001]])
    survey = hs.Protocol(randomizer=rare, shuffler=hs.UniformShuffle(), n=100)
    assert math.isfinite(findings.central(survey, delta=0.01).figure.upper)


def test_a_survey_without_a_privacy_limit_says_so_everywhere() -> None:
    report = made(targets=", standard_error = 0.9")
    assert json.loads(to_json(report))["verdict"]["status"] == "no privacy limit"
    assert "No privacy limit was set" in terminal(report)
    assert '<p class="notice warning"><strong>No privacy limit was set' in html(report)
