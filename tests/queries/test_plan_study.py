from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from hushuffle import report
from hushuffle.model import Bound, Table
from hushuffle.questions import traffic
from hushuffle_network.queries import PlanSpecification, parse_plan
from hushuffle_network.queries.analyse import PlanAnalysis, analyse_plan
from hushuffle_network.queries.parts import about_records
from hushuffle_network.queries.query import Records

SETS = """
[query]
kind = "aggregate"
generated = { people = 1000 }
columns = { age = 20, bmi = 20 }
grouping_sets = [["age"], ["bmi"]]
partitions = 20
"""
CLUSTERS = """
[query]
kind = "k-means"
generated = { people = 1000 }
centroids = 4
iterations = 3
variant = "VARIANT"
"""
NOISE = 'noise = { kind = "gaussian", radius = 1.5, scale = 30.0 }\n'


def spec(
    query: str = SETS, *, sigma: float = 0.2, traffic: str = "", delta: float = 1e-5, wanted: float | None = None
) -> PlanSpecification:
    targets = f"[targets]\ndelta = {delta}\n" + (f"epsilon = {wanted}\n" if wanted else "")
    return parse_plan(f"{query}\n[traffic]\nsigma = {sigma}\n{traffic}\n{targets}")


def table(analysis: PlanAnalysis, key: str) -> Table:
    return next(made for made in analysis.study.tables if made.key == key)


def show(analysis: PlanAnalysis) -> str:
    report.html(analysis.study)
    report.to_json(analysis.study)
    text = report.terminal(analysis.study)
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_a_query_with_scramblers() -> None:
    told: list[float] = []
    specification = spec(traffic="dummies = 20\nbatch = 100", wanted=4.0)
    analysis = analyse_plan(specification, progress=lambda _what, share: told.append(share))
    plan = specification.plan(1000)
    study = analysis.study
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert study.findings[0].bound == traffic.plan_guarantee(plan, delta=1e-5).epsilon
    assert study.findings[1].bound == traffic.theorem_one(plan, delta=1e-5)
    assert study.findings[0].bound.upper < study.findings[1].bound.upper
    assert analysis.refusals == ()
    assert analysis.study.met is (study.findings[0].bound.upper <= 4.0)
    rows = table(analysis, "guarantees").rows
    assert [row[0] for row in rows] == ["send by age", "send by bmi", "the whole plan", "simple sum (upper bound)"]
    assert rows[2][4] == study.findings[0].bound
    assert [chart.key for chart in study.charts] == ["epsilon-by-sigma", "epsilon-by-dummies", "epsilon-by-batch"]
    for chart in study.charts:
        whole, target = chart.series
        assert chart.here in whole.x
        assert whole.upper[whole.x.index(chart.here)] == study.findings[0].bound.upper
        assert set(target.upper) == {4.0}
        assert list(whole.upper) == sorted(whole.upper, reverse=True)
    costs = table(analysis, "costs").rows
    # 2 S + 10 d messages, S + 10 T channels, n + T at a node; S/(1 - sigma(1 - 1/T)) people.
    assert costs[0] == ("send by age", 2200, 1200, 1200, 120, 810, 235)
    assert [row[:2] for row in costs[2:]] == [("fixed messages", 40), ("in all", 4440)]
    assert "The plan" in show(analysis)


def test_scramblers_one_after_the_other() -> None:
    specification = spec(traffic="dummies = 20\nbatch = 100\nscramblers = 2")
    analysis = analyse_plan(specification)
    rows = traffic.collusions(specification.plan(1000), delta=1e-5)
    shown = table(analysis, "scramblers")
    assert shown.rows == tuple((f"{row.honest} of 2", row.curious, row.active) for row in rows)
    finding = analysis.study.findings[0]
    assert finding.bound == rows[1].curious
    assert finding.adversary == (
        "An adversary who observes all traffic and controls all scramblers of a cascade except one"
    )
    said = " ".join(analysis.study.answers)
    for figure in (rows[0].curious, rows[1].active, rows[2].curious):
        assert str(figure) in said
    assert "2 scramblers process every batch one after the other." in said
    assert "Scramblers that collude with the observer" in show(analysis)
    (one,) = (table(analyse_plan(spec(traffic="dummies = 20\nbatch = 100")), "scramblers"),)
    assert one.rows == tuple((f"{row.honest} of 1", row.curious, row.active) for row in rows[1:])
    assert not [made for made in analyse_plan(spec()).study.tables if made.key == "scramblers"]


def test_people_tuples_and_time_are_targets_too() -> None:
    text = spec(sigma=0.2).effective()
    asked = "[targets]\npeople = 1001\ntuples = 0.8\nseconds = 200.0\n"
    targets = analyse_plan(parse_plan(text.replace("[targets]\n", asked))).study.targets
    assert {target.key: target.word for target in targets} == {"people": "fail", "tuples": "pass", "seconds": "pass"}
    # The result waits for its targets: 60 seconds for the sources and three times the patience of 30.
    assert [target.got.upper for target in targets if target.got] == [1000, pytest.approx(0.81), 150.0]


def test_every_kind_of_verdict() -> None:
    hidden = "dummies = 20\nbatch = 100"
    bracket = traffic.plan_guarantee(spec(traffic=hidden).plan(1000), delta=1e-5)
    near = analyse_plan(spec(traffic=hidden, wanted=(bracket.lower + bracket.upper) / 2))
    assert near.study.met is False
    assert [target.word for target in near.study.targets] == ["not shown"]
    far = analyse_plan(spec(delta=0.0, wanted=1.0))
    assert [target.word for target in far.study.targets] == ["fail"]
    assert [warned.key for warned in far.study.warnings] == ["large-epsilon", "privacy-target-missed"]
    good = analyse_plan(spec(delta=0.0, wanted=10.0))
    assert good.study.met is True
    assert [target.word for target in good.study.targets] == ["pass"]
    assert analyse_plan(spec(delta=0.0)).study.met is None
    assert "delta" not in good.study.answers[0]


def test_without_scramblers_flooding_is_charted_up_to_a_broadcast() -> None:
    analysis = analyse_plan(spec(traffic="flood = 19", sigma=0.0, delta=0.0))
    (_, flooding) = analysis.study.charts
    assert flooding.series[0].upper[-1] == 0.0
    assert analysis.study.findings[0].bound == Bound.exact(
        0.0,
        unit="nats",
        sources=analysis.study.findings[0].bound.sources,
        witness=analysis.study.findings[0].bound.witness,
    )


def test_no_protection_says_so() -> None:
    analysis = analyse_plan(spec(sigma=0.0, delta=0.0))
    assert math.isinf(analysis.study.findings[0].bound.upper)
    assert analysis.study.answers[0].startswith("No protection")
    assert analysis.study.warnings == ()
    show(analysis)


def test_settings_that_do_not_fit_are_left_out_of_charts() -> None:
    analysis = analyse_plan(spec(traffic="dummies = 5\nbatch = 7\ncapped = true".replace("7", "50"), delta=0.0))
    (_, _, batches) = analysis.study.charts
    assert batches.series[0].x == (25.0, 50.0, 100.0)
    assert "omitted" in batches.caption


def test_one_answer_for_each_person() -> None:
    analysis = analyse_plan(spec(SETS + 'per_person = "one"\n', delta=0.0))
    assert analysis.study.findings[0].bound.kind == "exact"
    (warned,) = analysis.study.warnings
    assert warned.key == "assumption"
    assert "chosen independently of all data" in warned.sentence


def test_hidden_k_means_is_drawn_and_priced_and_refused() -> None:
    analysis = analyse_plan(spec(CLUSTERS.replace("VARIANT", "hidden"), wanted=1.0))
    assert len(analysis.refusals) == 2
    assert analysis.study.met is False
    study = analysis.study
    assert study.answers[0].startswith("No guarantee can be stated. One item can move 1,000 messages")
    assert study.answers[0].endswith("The same holds for 1 more cluster.")
    assert (study.findings, study.charts) == ((), ())
    assert table(analysis, "guarantees").title == "Epsilon of one message of every cluster"
    assert [row[3] for row in table(analysis, "guarantees").rows] == [1, 1000, 1000]
    assert "no guarantee:" not in study.diagrams[0].text
    show(analysis)


def test_public_centroids_are_an_assumption() -> None:
    analysis = analyse_plan(spec(CLUSTERS.replace("VARIANT", "public-centroids"), delta=0.0))
    assert "centroids of every iteration are public" in analysis.study.warnings[0].sentence
    (drawn,) = analysis.study.diagrams
    assert "the first 2 of 3 iterations" in drawn.caption
    assert "assign 2" in drawn.svg
    assert "assign 3" not in drawn.svg
    assert "assumed:" not in drawn.text


def test_private_centroids_count_their_noise() -> None:
    query = CLUSTERS.replace("VARIANT", "private-centroids").replace("iterations = 3", "iterations = 2") + NOISE
    analysis = analyse_plan(spec(query, traffic="dummies = 10\nbatch = 100"))
    assert "the traffic and the noisy releases" in analysis.study.answers[0]
    assert [row[2] for row in table(analysis, "releases").rows] == ["rho = 0.005 (zCDP)"] * 2
    assert "even if the randomness of the other sources is known" in table(analysis, "guarantees").caption
    assert [warned.key for warned in analysis.study.warnings] == ["floating-point"]
    assert "first 2 of" not in analysis.study.diagrams[0].caption
    # 2 S + 10 d messages each; redirected messages never carry data: 1 - sigma of the tuples are used.
    assert table(analysis, "costs").rows[0][5:] == (800, 250)
    laplace = query.replace("gaussian", "laplace")
    assert [row[2] for row in table(analyse_plan(spec(laplace, delta=0.0)), "releases").rows] == ["epsilon = 0.2"] * 2


def test_nobody_arrives() -> None:
    query = CLUSTERS.replace("VARIANT", "private-centroids").replace("iterations = 3", "iterations = 1") + NOISE
    analysis = analyse_plan(spec(query, sigma=1.0, delta=0.0))
    assert table(analysis, "costs").rows[0][5:] == (0, math.inf)


def test_dropped_records_are_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age\n1\n\n2\n2\n", encoding="utf-8")
    query = SETS.replace("generated = { people = 1000 }", 'data = "a.csv"\nmissing = "drop"').replace(
        "columns = { age = 20, bmi = 20 }", "columns = { age = [1, 2] }"
    )
    query = query.replace(', ["bmi"]', "").replace("partitions = 20", "partitions = 2")
    analysis = analyse_plan(spec(query, delta=0.0), base_folder=tmp_path)
    assert dict(analysis.study.settings)["people"] == "3"
    assert [warned.key for warned in analysis.study.warnings] == ["dropped"]
    assert list(about_records(replace(Records(n=1, source=""), dropped=0))) == []
    assert dict(analysis.study.settings)["traffic.capped"] == "no"


@pytest.mark.parametrize("name", ["aggregate.toml", "aggregate-private.toml"])
def test_the_example_meets_its_target(name: str) -> None:
    from hushuffle_network.queries import load_plan  # noqa: PLC0415

    specification = load_plan(Path(__file__).parents[2] / "examples" / name)
    wanted = specification.targets.epsilon
    assert wanted is not None
    assert traffic.plan_guarantee(specification.plan(6366), delta=specification.targets.delta).upper <= wanted
