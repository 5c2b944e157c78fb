"""The report of a run with phones, from runs that never took place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.model import Report
from hushuffle.report import terminal, to_json, write
from hushuffle_network.crowd import Crowd
from hushuffle_network.promise import check_task, draw_task
from hushuffle_network.queries import PlanSpecification, parse_plan
from hushuffle_network.recorder import Trace
from hushuffle_network.rehearse import PhoneRun
from hushuffle_network.study import phone_study
from network.phone_cases import plan_text, services

AGES = plan_text(sets='[["age"]]', partitions=2, more='per_person = "all"').replace(
    "[targets]", "[run]\nseed = 1\n[targets]"
)
CLUSTERS = """
[query]
kind = "k-means"
generated = { people = 24, dimensions = 2 }
centroids = 2
iterations = 2
variant = "public-centroids"
[traffic]
sigma = 0.2
dummies = 3
batch = 8
min_batch = 5
scramblers = 2
[targets]
delta = 1e-6
"""
NOISY = 'private-centroids"\nnoise = { kind = "gaussian", radius = 2.0, scale = 1.5 }'
BARE = plan_text(sets='[["age"]]', partitions=2, traffic="flood = 0")


def recorded(run: PhoneRun, sizes: list[int]) -> Trace:
    """Return the trace of a run whose last scrambler sent batches of these sizes, in turn to every target."""
    trace, step = Trace(), run.document.steps[0]
    targets = [one.name for one in step.targets]
    for _ in range(step.sources):
        trace.rows += [("phones", "relay", None, None, 1704, 1), ("relay", "scrambler-1", None, None, 1704, 1)]
    for batch, size in enumerate(sizes, 1):
        if len(run.document.chain) > 1:
            trace.rows.append(("scrambler-1", "scrambler-2", 1, batch, 9000, size - step.dummies))
        for place, target in enumerate(targets):
            messages = len(range(place, size, len(targets)))
            trace.rows.append((run.document.chain[-1].name, target, 1, batch, 1000 * messages, messages))
    return trace


def fabricated(
    text: str, *, chain: int = 2, sizes: list[int] | None = None, **changes: Any
) -> tuple[PlanSpecification, PhoneRun]:
    """Return a run in which all messages came through; `changes`: other fields of it."""
    specification = parse_plan(text)
    records = specification.query.records(Path())
    start, steps = (None, 1) if records.start is None else (records.start.tolist(), 2)
    keys = services(steps, 2, chain)
    document = draw_task(specification, records.n, replace(keys, targets=keys.targets[:1]), centroids=start)
    task = check_task(document).task
    came = {"sources": 24, "planned": 24, "lost_batches": 0, "without_token": 0}
    if document.round is None:
        merged = task.merge(1, task.empty(1), task.pack(1, records.rows), [True] * records.n)
        answers = {"answers": [task.answer(1, merged, came, lambda: 1.0) | came]}
    else:
        answers = {"iterations": [{**came, "centroids": document.round.centroids}] * document.round.rounds}
    values: dict[str, Any] = {
        "document": document,
        "plan": specification.plan(records.n),
        "records": records,
        "result": {**answers, "cautions": ["All messages passed 2 scramblers."]},
        "counters": {"relay": {"messages": 24}, "issuer": {"tokens": 48}, "result": {"refused late": 2}},
        "crowd": Crowd(taken=24),
        "trace": Trace(),
        "passed": (24, 24),
        "seconds": 1.0,
    }
    run = PhoneRun(**values)
    trace = recorded(run, [14, 14, 14] if sizes is None else sizes)
    return specification, PhoneRun(**(values | {"trace": trace} | changes))


def rows(study: Report, key: str) -> dict[Any, tuple[Any, ...]]:
    table = next(one for one in study.tables if one.key == key)
    return {row[0]: row[1:] for row in table.rows}


def warned(study: Report) -> set[str]:
    return {one.key for one in study.warnings}


def test_planned_and_recorded_messages_stand_side_by_side() -> None:
    study = phone_study(*fabricated(AGES))
    assert study.answers[0] == "24 of 24 messages of phones arrived at the result, each with a valid token."
    assert study.answers[3] == (
        "In send by age, an observer saw 3 batches with 14 messages or more; the guarantee holds for 11 or more."
    )
    assert rows(study, "wire") == {
        "phones to relay": (24, 24),
        "relay to scrambler": (24, 24),
        "scrambler to scrambler": (33, 33),
        "scrambler to target": (42, 42),
    }
    (graph,) = study.heat_maps
    assert graph.values == ((7.0, 7.0),) * 3
    assert rows(study, "services")["result"][-1] == "2 late"
    assert rows(study, "services")["issuer"][-2] == 48
    assert list(rows(study, "coverage").values()) == [(24, 24, 0, 0, 24)]
    assert warned(study) == {"one-machine", "fixed-seed", "scramblers"}
    assert "plan run --hosts" in next(one.advice for one in study.warnings if one.key == "one-machine")


def test_a_batch_that_is_smaller_than_the_guarantee_assumes_is_a_warning() -> None:
    exact, small = (phone_study(*fabricated(AGES, sizes=[14, size])) for size in (11, 10))
    assert "small-batch" not in warned(exact)
    (sentence,) = [one.sentence for one in small.warnings if one.key == "small-batch"]
    assert sentence == "In send by age, a batch had 10 messages, fewer than 11."


def test_without_scramblers_no_size_of_a_batch_is_promised() -> None:
    study = phone_study(*fabricated(BARE, chain=1, sizes=[1, 23]))
    assert "small-batch" not in warned(study)
    assert not any("batches with" in sentence for sentence in study.answers)
    assert rows(study, "wire")["scrambler to target"] == (24, 24)


def test_clusters_with_their_assumption() -> None:
    study = phone_study(*fabricated(CLUSTERS))
    assert study.answers[0] == "48 of 48 messages of phones arrived at the result, each with a valid token."
    assert any("Rand index" in sentence for sentence in study.answers)
    assert list(rows(study, "coverage")) == ["assign 1", "assign 2"]
    assert {row[-1] for row in rows(study, "coverage").values()} == {"not told"}
    assert len(study.charts) == 2
    (assumption,) = [one.sentence for one in study.warnings if one.key == "assumption"]
    assert "centroids of every iteration are public" in assumption
    assert "the traffic reveals about one person" in study.findings[0].sentence
    assert "fixed-seed" not in warned(study)


def test_released_centroids_are_part_of_the_guarantee() -> None:
    study = phone_study(*fabricated(CLUSTERS.replace('public-centroids"', NOISY)))
    (finding,) = study.findings
    assert "the traffic and the noisy releases reveal about one person" in finding.sentence
    assert {"large-epsilon", "floating-point"} <= warned(study)
    assert "assumption" not in warned(study)


def test_refused_phones_and_a_trace_without_batches_are_shown() -> None:
    crowd = Crowd(taken=22)
    crowd.refused["ticket 401"] += 2
    study = phone_study(*fabricated(AGES, crowd=crowd, trace=Trace()))
    assert "2 phones were refused: ticket 401." in [one.sentence for one in study.warnings]
    assert study.heat_maps == ()
    assert rows(study, "wire")["scrambler to target"] == (42, 0)


def test_true_values_are_a_warning(tmp_path: Path) -> None:
    ages, pays = np.arange(24) * 2, np.arange(24)
    lines = [f"{age},a,{pay}" for age, pay in zip(ages, pays, strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex,pay", *lines, ""]))
    study = phone_study(*fabricated(AGES.replace("generated = { people = 24 }", f'data = "{tmp_path}/people.csv"')))
    assert "true-values-shown" in warned(study)


@pytest.mark.parametrize(("text", "chain"), [(AGES, 2), (BARE, 1), (CLUSTERS, 2)])
def test_a_report_contains_no_code_and_no_record(text: str, chain: int, tmp_path: Path) -> None:
    crowd = Crowd(taken=24, nonces={(1, 0): [b"\xabsecret\xab" * 4]})
    specification, run = fabricated(text, chain=chain, crowd=crowd)
    study = phone_study(specification, run)
    write(study, tmp_path)
    shown = to_json(study) + terminal(study, width=80, color=False) + repr(run)
    shown += "".join(path.read_text(encoding="utf-8") for path in tmp_path.iterdir())
    assert "secret" not in shown
    assert json.loads(to_json(study))["key"] == "plan-phones"
