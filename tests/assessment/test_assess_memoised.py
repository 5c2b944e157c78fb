from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hushuffle as hs
from hushuffle.assessment.calibrate import calibrate
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.proposed import proposed
from hushuffle.assessment.trials import worst_error
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.model import Bound, Finding, Report
from hushuffle.report import terminal, to_json
from hushuffle.specification import Specification, parse


def weekly(*, n: int = 1000, changes: int = 0, targets: str = "", kind: str = "randomized-response") -> Specification:
    return parse(f"""
        rounds = 52
        memoised = true
        changes = {changes}
        population = {{ n = {n}, k = 3 }}
        randomizer = {{ kind = "{kind}", epsilon = 1.0 }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6{targets} }}
        run = {{ repetitions = 0 }}
    """)


def protocol(n: int = 1000, epsilon: float = 1.0) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


def row(report: Report, question: str) -> Finding:
    return next(finding for finding in report.findings if finding.question == question)


def table(report: Report) -> dict[str, tuple[Any, Any]]:
    (made,) = (made for made in report.tables if made.key == "memoised")
    return {str(case): (central, local) for case, central, local in made.rows}


def test_all_rounds_of_a_value_that_stays_tell_what_one_tells() -> None:
    report = assess(weekly(targets=", epsilon = 0.2, local_epsilon = 1.5, guessing = 0.5, reidentification = 0.01"))
    once = hs.dp.epsilon(protocol(), delta=1e-6)
    assert row(report, "central-dp").bound == once == hs.dp.waves(protocol(), waves=52, delta=1e-6)
    assert row(report, "local-dp").bound.upper == 1.0
    assert {target.key: target.word for target in report.targets} == dict.fromkeys(
        ("epsilon", "delta", "local_epsilon", "guessing", "reidentification"), "pass"
    )
    assert "more." not in row(report, "re-identification").sentence
    assert report.statement is not None
    assert "The claim covers all 52 rounds, for people whose value never changes." in report.statement.claim
    assert "The value never changes, and this is public" in report.statement.unit
    cases = {case.key: case for case in report.statement.scenarios}
    assert cases["rounds"].central == once
    assert cases["one-in-4"].case == "A quarter of the people take part in all rounds and keep their values: 250"
    assert cases["one-in-4"].central == hs.dp.epsilon(protocol(n=250), delta=1e-6)
    sentences = {assumption.key: assumption.sentence for assumption in report.statement.assumptions}
    assert "All 1,000 people take part in every round, and their values stay" in sentences["participation"]
    assert "value never changes" in sentences["no_repeats"]


def test_every_line_about_privacy_names_the_condition_on_values() -> None:
    limits = ", epsilon = 9.0, local_epsilon = 9.0, guessing = 0.9, reidentification = 0.5"
    for changes, condition in (
        (None, "if values never change"),
        (0, "if values never change"),
        (1, "if no value changes more than once"),
        (2, "if no value changes more than 2 times"),
    ):
        plain = weekly(changes=changes or 0, targets=limits).plain()
        if changes is None:
            del plain["changes"]
        report = assess(Specification.model_validate(plain))
        topics = {target.key: target.topic for target in report.targets}
        assert {key for key, topic in topics.items() if topic.endswith(f", {condition}")} == topics.keys() - {"delta"}
        line = f"PASS Central epsilon, at delta = 1e-06, {condition}: asked at most 9, got"
        assert line in " ".join(terminal(report).split())
        (central,) = (row for row in json.loads(to_json(report))["verdict"]["targets"] if row["key"] == "epsilon")
        assert central["topic"] == f"Central epsilon, at delta = 1e-06, {condition}"


def test_a_value_that_changes_costs_local_epsilons_and_the_target_is_held_against_them() -> None:
    report = assess(weekly(changes=2, targets=", epsilon = 2.0, guessing = 0.9"))
    assert row(report, "central-dp").bound == hs.dp.waves(protocol(), waves=52, delta=1e-6, changes=2)
    assert row(report, "local-dp").bound.upper == 3.0
    assert {target.key: target.word for target in report.targets} == {
        "epsilon": "fail",
        "delta": "pass",
        "guessing": "not shown",
    }
    assert "from all 52 rounds, for people whose value changes 2 times at most" in row(report, "vulnerability").sentence
    assert "all 3 different reports that you may send" in row(report, "local-dp").sentence
    assert report.statement is not None
    assert "for people whose value changes 2 times at most" in report.statement.claim
    assert "the rounds in which it changes or returns to an earlier value are public" in report.statement.unit
    assert list(table(report)) == [
        "memoized, value never changes",
        "memoized, value changes once at most",
        "memoized, value changes 2 times at most",
        "fresh in every round, even if values change",
    ]


def test_the_table_has_the_figures_of_kept_and_of_fresh_reports() -> None:
    found = table(assess(weekly()))
    fresh = hs.dp.compose([(protocol(), 52)], delta=1e-6)
    once = hs.dp.epsilon(protocol(), delta=1e-6)
    assert found["memoized, value never changes"] == (once, Bound.exact(1.0, unit="nats"))
    reports = hs.Protocol(randomizer=protocol().randomizer, shuffler=hs.NoShuffle(), n=1)
    twice = hs.dp.compose([(reports, 2)], delta=1e-6)
    assert found["memoized, value changes once at most"][0].upper == twice.upper < 2.0
    central, local = found["fresh in every round, even if values change"]
    assert (central.upper, local.upper) == (fresh.upper, 52.0)


def test_how_often_a_change_shows_is_a_row_of_its_own() -> None:
    finding = row(assess(weekly()), "change-shows")
    assert finding.bound == hs.dp.change_shows(protocol())
    assert f"{100 * finding.bound.upper:.2f} %" in finding.sentence
    hashed = row(assess(weekly(kind="local-hashing")), "change-shows")
    assert hashed.bound.kind == "bracket"
    assert re.search(r"between 68\.2\d % and 100 % of the time", hashed.sentence)


def test_one_round_has_no_such_rows() -> None:
    report = assess(parse(weekly().effective().replace("rounds = 52\nmemoised = true\nchanges = 0\n", "rounds = 2\n")))
    assert not any(made.key == "memoised" for made in report.tables)
    assert not any(finding.question == "change-shows" for finding in report.findings)


def test_calibration_is_for_values_that_stay() -> None:
    choice = calibrate(weekly(targets=", epsilon = 0.15"))
    assert choice.proposed.central.upper <= 0.15
    one_round = hs.dp.calibrate(protocol(), parameter="epsilon", epsilon=0.15, delta=1e-6)
    assert choice.proposed.local_epsilon == one_round.value


@pytest.mark.parametrize(("changes", "reports"), [(1, 2), (2, 3), (50, 3)])
def test_calibration_where_values_change_finds_what_assess_calls_met(changes: int, reports: int) -> None:
    """It was refused, although assess takes the same file. Of three values nobody keeps more than three reports."""
    asked = weekly(changes=changes, targets=", epsilon = 1.5, local_epsilon = 2.0, standard_error = 0.2")
    choice = calibrate(asked)
    assert choice.proposed.local_epsilon == pytest.approx(1.5 / reports, rel=1e-6)
    assert (choice.met, choice.reports) == (True, reports)
    text = asked.effective().replace("epsilon = 1.0", f"epsilon = {choice.proposed.local_epsilon!r}", 1)
    report = assess(parse(text))
    assert report.met
    assert row(report, "central-dp").bound.upper == choice.proposed.central.upper


def test_calibration_says_how_many_people_it_takes_whichever_target_binds() -> None:
    changing = calibrate(weekly(changes=1, targets=", epsilon = 1.5, standard_error = 0.02"))
    local = calibrate(weekly(targets=", epsilon = 1.5, local_epsilon = 0.5, standard_error = 0.02"))
    for choice, noise in ((changing, 0.75), (local, 0.5)):
        assert choice.proposed.local_epsilon == pytest.approx(noise, rel=1e-6)
        assert choice.people is not None
        chosen = protocol(n=choice.people, epsilon=choice.proposed.local_epsilon)
        assert worst_error(chosen) <= 0.02 < worst_error(replace(chosen, n=choice.people - 1))


def test_the_smallest_batch_is_that_of_one_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "weekly.toml").write_text(weekly(targets=", epsilon = 0.15").effective(), encoding="utf-8")
    assert main(["minimum-batch", str(tmp_path / "weekly.toml"), "--json"]) == Exit.DONE
    size = json.loads(capsys.readouterr().out)["min_batch_size"]
    assert hs.dp.epsilon(protocol(n=size), delta=1e-6).upper <= 0.15
    (tmp_path / "weekly.toml").write_text(weekly(changes=1, targets=", epsilon = 0.15").effective(), encoding="utf-8")
    assert main(["minimum-batch", str(tmp_path / "weekly.toml")]) == Exit.USAGE


def test_a_person_keeps_no_more_reports_than_there_are_values() -> None:
    """Of three values a person who changes a hundred times keeps three reports."""
    text = weekly().effective().replace("rounds = 52", "rounds = 500").replace("changes = 0", "changes = 100")
    report = assess(parse(text))
    assert row(report, "central-dp").bound == hs.dp.waves(protocol(), waves=500, delta=1e-6, changes=2)
    assert row(report, "local-dp").bound.upper == 3.0
    assert table(report)["memoized, value changes 100 times at most"][1].upper == 3.0


def test_a_mechanism_with_too_many_reports_has_a_row_that_says_why_changes_have_no_figure() -> None:
    report = assess(parse(weekly(kind="subset-selection").effective().replace("k = 3", "k = 60")))
    assert not any(finding.question == "change-shows" for finding in report.findings)
    assert [missing.question for missing in report.unanswered] == ["change-shows"]


def test_the_smallest_change_that_suffices_comes_first() -> None:
    """1,000 values, 500 people, 12 rounds: an error larger by a factor of 10, or of 35, people by 13, or by 102."""
    limits = {"delta": 1e-6, "standard_error": 0.01, "epsilon": 0.5}
    design = proposed("shares", {"n": 500, "k": 1000}, limits, rounds=12, changes=None)
    assert not design.tables
    figures = [
        re.search(r"(\S+) percentage points|([\d,]+) people|targets\.epsilon = (\S+),", sentence)
        for sentence in design.advice
    ]
    factors = [
        float(each[1] or 0) + int((each[2] or "0").replace(",", "")) / 500 + float(each[3] or 0) / 0.5
        for each in figures
        if each
    ]
    assert len(factors) == len(design.advice) >= 3
    assert factors == sorted(factors)
    assert factors[0] < 20
