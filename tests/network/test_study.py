"""The report of a run over the network, from runs that never took place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.model import Report, Table
from hushuffle.network.node import result_table
from hushuffle.network.nodes.recorder import Trace, record_size
from hushuffle.network.nodes.result import RunResult, StepResult
from hushuffle.network.run import NetworkRun
from hushuffle.network.setup import deploy
from hushuffle.network.study import network_study
from hushuffle.plans import group_statistics
from hushuffle.queries import Aggregate, PlanSpecification, parse_plan
from hushuffle.randomness import reproducible
from hushuffle.report import terminal, to_json, write

AGES = """
title = "Ages"
[query]
kind = "aggregate"
generated = { people = 12 }
columns = { age = 4 }
grouping_sets = [["age"]]
partitions = 2
[traffic]
sigma = 0.2
dummies = 1
batch = 6
[targets]
delta = 0
[run]
seed = 1
"""
CLUSTERS = """
[query]
kind = "k-means"
generated = { people = 12 }
centroids = 3
iterations = 2
variant = "public-centroids"
[traffic]
sigma = 0.2
flood = 1
[targets]
delta = 0
"""
COINS = bytes(range(32))


def counters(state: str = "done", **more: Any) -> dict[str, Any]:
    return {"state": state, "accepted": 0, "sent": 0, "repeated": 0, "dummies": 0, "rejected": {}} | more


def fabricated(text: str, **changes: Any) -> tuple[PlanSpecification, NetworkRun]:
    """Return a run in which all came through; `changes`: other parts of it."""
    specification = parse_plan(text)
    records = specification.query.records(Path())
    plan = specification.plan(records.n)
    made = deploy(specification, plan, records, address=lambda name: f"{name}:1", rng=reproducible(1))
    document = made.document
    hosts = {name: name for name in (*document.servers, *document.places)}
    trace = Trace(hosts=hosts, cell=record_size(document.message))
    step = document.steps[0]
    for batch in step.batches:
        for name in batch.holders:
            trace.add(name, batch.scrambler or step.computes[0], 81)  # a control frame: none of the messages
            trace.add(name, batch.scrambler or step.computes[0], trace.cell)
        for place in range(7 if batch.scrambler else 0):
            trace.add(batch.scrambler or "", step.computes[place % 2], trace.cell)
    for name in step.computes:
        trace.add(name, "result", trace.cell)
    whole = {"sources": 12, "planned": 12, "lost_batches": 0}
    task = document.query
    if isinstance(task, Aggregate):
        found = group_statistics(task.query, 0, task.table(records.rows)).count.tolist()
        answers = [{**whole, "received": found, "estimates": {"count": [None, *found[1:]]}}]
        result: dict[str, Any] = {"answers": answers}
    else:
        assert records.start is not None
        result = {"iterations": [{**whole, "centroids": records.start.tolist()} for _ in range(2)]}
    scramblers = {batch.scrambler: counters(accepted=6, sent=7, dummies=1) for batch in step.batches if batch.scrambler}
    said: dict[str, Any] = {name: counters(sent=1) for name in document.places}
    said |= scramblers | {name: counters(accepted=7, sent=1) for name in step.computes} | {"result": counters()}
    values: dict[str, Any] = {
        "deployment": made,
        "plan": plan,
        "records": records,
        "result": result,
        "counters": said,
        "failures": {},
        "trace": trace,
        "coins": COINS,
    }
    return specification, NetworkRun(**(values | changes))


def table(study: Report, key: str) -> Table:
    return next(one for one in study.tables if one.key == key)


def rows(study: Report, key: str) -> dict[Any, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in table(study, key).rows}


def test_all_came_through() -> None:
    specification, run = fabricated(AGES)
    study = network_study(specification, run)
    assert study.title == "Ages"
    assert study.answers[0] == "12 of 12 messages of sources came through to the result."
    assert study.answers[1].startswith("An observer of the connections saw 28 messages, all of 1,024 bytes")
    assert not any("lost" in sentence for sentence in study.answers)
    assert ("run", run.deployment.document.run) in study.settings
    (finding,) = study.findings
    assert finding.sentence.startswith("This bounds what the traffic reveals about one person, at delta = 0,")
    assert finding.bound is not None
    assert list(rows(study, "coverage").values()) == [(12, 12, 0, 12)]
    assert rows(study, "wire") == {
        "compute to result": ("-", 2),
        "scrambler to compute": (14, 14),
        "source to scrambler": (12, 12),
    }
    nodes = rows(study, "nodes")
    assert nodes["source"] == (12, "12 done", 0, 12, 0, "none")
    assert nodes["scrambler"] == (2, "2 done", 12, 14, 2, "none")
    (graph,) = study.heat_maps
    assert graph.values == ((4.0, 3.0), (4.0, 3.0))
    assert {one.key for one in study.warnings} == {"one-machine", "fixed-seed"}
    assert "--hosts" in next(one.advice for one in study.warnings if one.key == "one-machine")


def test_what_was_lost_is_said() -> None:
    specification, run = fabricated(AGES)
    answer = run.result["answers"][0] | {"sources": 6, "lost_batches": 1}
    said = dict(run.counters)
    first, second = (name for name in said if name.startswith("scrambler"))
    said[first] = counters("gave up", accepted=2, rejected={"below minimum": 1, "conflict": 3})
    del said[second]  # killed: it has not said anything
    specification, run = fabricated(
        AGES, result={"answers": [answer]}, counters=said, failures={"scrambler-nodes-1": "killed by signal 9"}
    )
    study = network_study(specification, run)
    assert study.answers[0] == "6 of 12 messages of sources came through to the result."
    assert study.answers[1] == "1 of 2 batches were lost."
    assert rows(study, "nodes")["scrambler"] == (1, "1 gave up", 2, 0, 0, "3 conflict, 1 below minimum")
    assert next(iter(rows(study, "coverage").values()))[1:3] == (6, 1)
    failed = [one.sentence for one in study.warnings if one.key == "node-failed"]
    assert failed == ["scrambler-nodes-1: killed by signal 9"]


def test_a_role_of_which_nobody_said_anything_is_left_out() -> None:
    _, run = fabricated(AGES)
    said = {name: one for name, one in run.counters.items() if not name.startswith("compute")}
    study = network_study(*fabricated(AGES, counters=said))
    assert set(rows(study, "nodes")) == {"source", "scrambler", "result"}


def test_what_was_planned_and_never_seen_is_shown() -> None:
    trace = Trace(hosts={}, cell=record_size(1024))
    trace.add("source-01", "scrambler-1-1", trace.cell)
    study = network_study(*fabricated(AGES, trace=trace))
    assert rows(study, "wire") == {"scrambler to compute": (14, 0), "source to scrambler": (12, 1)}
    assert study.heat_maps[0].values == ((0.0, 0.0), (0.0, 0.0))


def test_clusters_with_their_assumption() -> None:
    specification, run = fabricated(CLUSTERS)
    study = network_study(specification, run)
    assert study.title == run.plan.name
    assert study.answers[0] == "24 of 24 messages of sources came through to the result."
    assert any("Rand index" in sentence for sentence in study.answers)
    assert [row[-1] for row in table(study, "coverage").rows] == ["not told", "not told"]
    assert study.heat_maps == ()
    assert rows(study, "wire")["source to compute"] == (48, 12)
    (assumption,) = [one.sentence for one in study.warnings if one.key == "assumption"]
    assert "centroids of every iteration are public" in assumption
    assert "fixed-seed" not in {one.key for one in study.warnings}
    assert len(study.charts) == 2


def test_a_plan_without_guarantee_has_no_finding() -> None:
    specification, run = fabricated(CLUSTERS)
    hidden = parse_plan(CLUSTERS.replace("public-centroids", "hidden"))
    values = {name: getattr(run, name) for name in run.__dataclass_fields__}
    study = network_study(specification, NetworkRun(**(values | {"plan": hidden.plan(12)})))
    assert study.findings == ()
    assert "no-guarantee" in {one.key for one in study.warnings}


def test_true_values_are_warned_of(tmp_path: Path) -> None:
    ages = np.array(["young", "old"])[np.arange(12) % 2]
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(ages) + "\n")
    text = AGES.replace("generated = { people = 12 }", f'data = "{tmp_path}/people.csv"')
    text = text.replace("age = 4", 'age = ["young", "old"]')
    study = network_study(*fabricated(text))
    assert "true-values-shown" in {one.key for one in study.warnings}


@pytest.mark.parametrize("text", [AGES, CLUSTERS])
def test_reports_are_written_without_any_key(text: str, tmp_path: Path) -> None:
    specification, run = fabricated(text)
    study = network_study(specification, run)
    write(study, tmp_path)
    said = to_json(study) + terminal(study, width=80, color=False) + repr(run)
    said += "".join(path.read_text(encoding="utf-8") for path in tmp_path.iterdir())
    assert COINS.hex() not in said
    assert repr(COINS) not in said
    for key in run.deployment.seals.values():
        assert key.text not in said


def test_released_centroids_are_part_of_what_is_told() -> None:
    noise = 'variant = "private-centroids"\nnoise = { kind = "gaussian", radius = 2.0, scale = 1.5 }'
    study = network_study(
        *fabricated(CLUSTERS.replace('variant = "public-centroids"', noise).replace("= 0\n", "= 1e-6\n"))
    )
    assert "the traffic and the noisy releases reveal about one person" in study.findings[0].sentence
    assert {"large-epsilon", "floating-point"} <= {one.key for one in study.warnings}
    assert "assumption" not in {one.key for one in study.warnings}


def test_what_one_scrambler_could_do_is_said_beside_the_numbers() -> None:
    specification, run = fabricated(AGES)
    document = run.deployment.document
    task, whole = document.query, run.records.rows
    step = StepResult(
        name="ages",
        combined=task.merge(1, task.empty(1), task.pack(1, whole), [True] * 12),
        people=12,
        planned=12,
        sources=12,
        messages=14,
        lost_batches=0,
        sampling=document.step(1).sampling,
    )
    table = result_table(document, RunResult(run=document.run, steps=(step,), people=12))
    (caution,) = table["cautions"]
    assert "passed only one scrambler" in caution
    study = network_study(specification, replace(run, result=table))
    assert caution in [one.sentence for one in study.warnings if one.key == "one-scrambler"]
    assert "passed only one scrambler" in " ".join(terminal(study, width=100, color=False).split())
    specification, run = fabricated(CLUSTERS)  # without scramblers
    result = RunResult(run=document.run, people=12, steps=())
    assert result_table(run.deployment.document, result)["cautions"] == []


def test_of_many_nodes_that_failed_some_are_named() -> None:
    specification, run = fabricated(AGES, failures={f"source-{number:02d}": "gone" for number in range(40)})
    warned = [one for one in network_study(specification, run).warnings if one.key.startswith("node")]
    assert len(warned) == 31
    assert warned[-1].sentence == "10 more nodes failed."
