"""Aggregates whose results have noise: what is refused, promised, simulated and published."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError, SpecificationError
from hushuffle.questions import traffic
from hushuffle.randomness import reproducible
from hushuffle_network.queries import Aggregate, PlanSpecification, parse_plan, run_aggregate
from hushuffle_network.queries.aggregate import AggregateQuery
from hushuffle_network.queries.analyse import analyse_plan
from hushuffle_network.queries.simulate import simulate_plan

PEOPLE = 300


def text(**changes: str) -> str:
    values = {
        "functions": '["count", "sum", "avg"]',
        "ranges": "ranges = { income = [0, 200] }",
        "epsilon": "1.0",
        "sigma": "0.2",
        "more": "",
        "traffic": "dummies = 5\nbatch = 100",
    } | changes
    return f"""
[query]
kind = "aggregate"
generated = {{ people = {PEOPLE} }}
columns = {{ age = 4, sex = 2 }}
grouping_sets = [["age"], ["sex", "age"]]
values = ["income"]
{values["ranges"]}
functions = {values["functions"]}
partitions = 2
noise = {{ epsilon = {values["epsilon"]} }}
{values["more"]}
[traffic]
sigma = {values["sigma"]}
{values["traffic"]}
[targets]
delta = 1e-6
[run]
seed = 1
"""


def spec(**changes: str) -> PlanSpecification:
    return parse_plan(text(**changes))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"functions": '["count", "min"]'}, r"query\.functions.*count, sum or avg.*min"),
        ({"ranges": ""}, r"query\.ranges.*every column of values.*income"),
        ({"epsilon": "0"}, r"query\.noise\.epsilon"),
        ({"epsilon": "1.0, kind = 'gaussian'"}, r"kind"),
        ({"functions": '"count"'}, r"query\.functions"),
        ({"sigma": "1.0"}, r"traffic\.sigma.*some messages carry data"),
        ({"ranges": "ranges = { income = [0, 1e200] }"}, r"ranges.*income"),
    ],
)
def test_what_cannot_have_noise_is_said_with_the_key(change: dict[str, str], message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        spec(**change).plan(PEOPLE)


def test_counts_alone_need_no_ranges() -> None:
    assert [one.epsilon for one in spec(functions='["count"]', ranges="").plan(PEOPLE).releases] == [0.5, 0.5]


def test_the_analysis_says_what_traffic_results_and_both_tell() -> None:
    study = analyse_plan(spec(traffic="")).study
    bounds = {one.question: one.bound for one in study.findings}
    both, messages, results = (bounds[key] for key in ("plan-dp", "plan-dp-traffic", "plan-dp-results"))
    assert both is not None
    assert messages is not None
    assert results is not None
    assert results.upper <= 1.0
    assert max(messages.upper, results.upper) < both.upper
    assert "the traffic and the noisy releases" in study.answers[0]
    assert "adds nothing" in study.answers[1]
    assert "floating-point" not in {one.key for one in study.warnings}
    each = spec(more='per_person = "one"', traffic="").plan(PEOPLE)
    assert [one.epsilon for one in each.releases] == [1.0, 1.0]
    apart = traffic.traffic_and_releases(each, delta=1e-6)
    assert apart is not None
    assert apart[1].upper <= 1.0


def test_estimates_are_right_on_average_and_their_error_includes_the_noise() -> None:
    specification = spec(sigma="0.5")
    assert isinstance(specification.query, AggregateQuery)
    records, plan = specification.query.records(Path()), specification.plan(PEOPLE)
    query, columns = specification.query.query(), specification.query.task().table(records.rows)
    runs = [run_aggregate(plan, query, columns, rng=reproducible(seed)) for seed in range(300)]
    assert runs[0].noise is not None
    assert runs[0].noise.epsilon == 0.5
    for place, share in ((0, 0.5), (1, 0.5)):
        true = runs[0].true[place]
        counts = np.array([run.estimated[place].count for run in runs])
        sums = np.array([run.estimated[place].sum["income"] for run in runs])
        noise = runs[0].noise.deviations["count"] / share
        spread = np.sqrt(true.count * (1 - share) / share + noise**2)
        assert np.abs((counts.mean(axis=0) - true.count) / spread).max() < 5 / math.sqrt(len(runs))
        assert counts.std(axis=0) / spread == pytest.approx(1.0, abs=0.2)
        assert sums.mean(axis=0) == pytest.approx(true.sum["income"], abs=5 * sums.std() / math.sqrt(len(runs)))
        averages = runs[0].estimated[place].results(query)["avg(income)"]
        known = averages[np.isfinite(averages)]
        assert ((known >= 0) & (known <= 200)).all()
        assert np.isnan(runs[0].received[place].min["income"]).all()
    (errors,) = [one for one in simulate_plan(specification).tables if one.key == "errors"]
    assert "with their noise" in errors.caption
    predicted = errors.rows[0][5]
    assert isinstance(predicted, float)
    assert predicted == pytest.approx(math.hypot(math.sqrt(PEOPLE / 4), runs[0].noise.deviations["count"] / 0.5))


def published(epsilon: str) -> tuple[dict[str, Any], Any]:
    """Return what a run over nodes publishes of the first set, and the true statistics."""
    specification = spec(epsilon=epsilon)
    task, records = specification.query.task(), specification.query.records(Path())
    assert isinstance(task, Aggregate)
    assert task.noise is not None
    contents, own = task.pack(1, records.rows), task.own(1, records.rows, None)
    parts = []
    for node in range(2):
        mine = [content for content, place in zip(contents, own.tolist(), strict=True) if place == node]
        merged = task.merge(1, task.empty(1), mine, [True] * len(mine))
        told = task.tell(1, node, merged, reproducible(node))
        assert np.isnan(told.reshape(4, -1)[2:]).all()
        parts.append(task.part(1, node, told))
    answer = task.answer(1, task.combine(1, parts), {"sources": PEOPLE}, lambda: 1.25)
    return answer, task.statistics(1, task.merge(1, task.empty(1), contents, [True] * PEOPLE))


def test_what_nodes_publish_is_noisy_and_says_how_noisy() -> None:
    answer, true = published("0.1")
    json.dumps(answer, allow_nan=False)
    assert answer["noise"]["epsilon"] == 0.05
    assert answer["noise"]["standard_deviations"]["count"] == pytest.approx(1.25 * math.sqrt(2) * 4 / 0.05, rel=1e-3)
    assert set(answer["noise"]["standard_deviations"]) == {"count", "sum(income)"}
    assert (np.array(answer["received"]) != true.count).any()
    assert set(answer["estimates"]) == {"count", "sum(income)", "avg(income)"}
    answer, true = published("40")  # a count's noise is nearly always zero
    assert answer["received"] == true.count.tolist()
    assert answer["estimates"]["sum(income)"] == pytest.approx((1.25 * true.sum["income"]).tolist(), abs=600)


def test_counts_below_nothing_are_taken_only_where_they_have_noise() -> None:
    noisy, plain = spec().query.task(), parse_plan(text().replace("noise = { epsilon = 1.0 }", "")).query.task()
    told = np.full(noisy.width(1), -3.0)
    assert noisy.part(1, 0, told)[0, 0] == -3.0
    with pytest.raises(DataError, match="counts of impossible records"):
        plain.part(1, 0, told)
    with pytest.raises(DataError, match="counts of impossible records"):
        noisy.part(1, 0, np.full(noisy.width(1), np.inf))
    assert spec().query.task() not in (plain, spec(epsilon="2.0").query.task())
