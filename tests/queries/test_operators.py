"""Plans of operators: what they send, which combinations they refuse, and what a run gives without protection."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import tomli_w

from hushuffle.errors import SpecificationError, UnsupportedProtocolError
from hushuffle.plans import k_means
from hushuffle.plans.centroids import CentroidNoise
from hushuffle.questions.traffic import plan_guarantee
from hushuffle_network.queries import PlanSpecification, load_plan, parse_plan
from hushuffle_network.queries.analyse import analyse_plan
from hushuffle_network.queries.operator_query import OperatorQuery
from hushuffle_network.queries.simulate import simulate_plan

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
COLUMNS: Final[dict[str, Any]] = {"role": ["asks", "offers", "neither"], "key": ["x", "y", "z"], "size": 4}
RANGES: Final = {"v": [60, 140], "w": [60, 140]}
ASKS: Final[dict[str, Any]] = {"kind": "select", "name": "asking", "where": {"role": ["asks"]}}
OFFERS: Final[dict[str, Any]] = {"kind": "select", "name": "offering", "where": {"role": ["offers"]}}
GROUP: Final[dict[str, Any]] = {"kind": "group", "name": "group", "by": ["key"], "nodes": 3}
COUNT: Final[dict[str, Any]] = {"kind": "aggregate", "name": "count", "of": "group"}
JOIN: Final[dict[str, Any]] = {
    "kind": "join",
    "name": "join",
    "of": ["asking", "offering"],
    "by": ["key", "key"],
    "nodes": 3,
    "most": [500, 500],
}
MODEL: Final[dict[str, Any]] = {"kind": "iterate", "name": "model", "of": "group", "label": "v", "rounds": 4}
NOISE: Final = {"kind": "gaussian", "radius": 1.0, "scale": 20.0}


def spec(*operators: dict[str, Any], people: int = 400, **traffic: Any) -> PlanSpecification:
    return parse_plan(
        tomli_w.dumps(
            {
                "query": {
                    "kind": "graph",
                    "generated": {"people": people},
                    "columns": COLUMNS,
                    "ranges": RANGES,
                    "operators": list(operators),
                },
                "traffic": {"sigma": 0.2} | traffic,
                "targets": {"delta": 1e-5},
                "run": {"seed": 3},
            }
        )
    )


def graph(specification: PlanSpecification) -> Any:
    assert isinstance(specification.query, OperatorQuery)
    return specification.query.graph


def test_a_plan_composes_every_cluster_that_a_person_reaches() -> None:
    plan = spec(ASKS, OFFERS, GROUP, COUNT, JOIN, {**COUNT, "name": "pairs", "of": "join"}).plan(400)
    assert [(one.name, one.targets) for one in plan.reachable("people")] == [
        ("group", 3),
        ("join, left", 4),
        ("join, right", 4),
    ]
    assert [one.name for one in plan.moved_together("people")] == ["group"]  # the key decides the other two as well


def test_people_take_turns_in_rounds() -> None:
    plan = spec(GROUP, {**MODEL, "per_person": 2, "noise": NOISE}).plan(401)
    assert [(one.name, one.items) for one in plan.data] == [("people, part 1", 201), ("people, part 2", 200)]
    assert [one.name for one in plan.reachable("people, part 2")] == ["group 2", "group 4"]
    assert [one.name for one in plan.releases_reached("people, part 1")] == ["results of model 1", "results of model 3"]
    assert len(plan.assumptions) == 1
    # A group beside it is for everybody.
    both = spec(GROUP, {**MODEL, "per_person": 2}, {**GROUP, "name": "all"}, {**COUNT, "of": "all"}).plan(401)
    assert [one.name for one in both.reachable("people, part 2")] == ["group 2", "group 4", "all"]


def test_the_built_in_queries_are_plans_of_the_same_stages() -> None:
    ours = spec(GROUP, COUNT, {**GROUP, "name": "by size", "by": ["size"]}, {**COUNT, "name": "sizes", "of": "by size"})
    sets = parse_plan(
        tomli_w.dumps(
            ours.plain()
            | {
                "query": {
                    "kind": "aggregate",
                    "generated": {"people": 400},
                    "columns": COLUMNS,
                    "grouping_sets": [["key"], ["size"]],
                    "partitions": 3,
                }
            }
        )
    )
    costs = [
        [(one.sources, one.targets, one.sampling, one.messages) for one in each.plan(400).clusters]
        for each in (ours, sets)
    ]
    assert costs[0] == costs[1]
    steered = {key: value for key, value in GROUP.items() if key != "by"}
    noise = CentroidNoise(kind="gaussian", radius=1.0, scale=20.0)
    models = spec(steered, {**MODEL, "noise": NOISE}).plan(400)
    means = k_means(people=400, centroids=3, iterations=4, variant="private-centroids", noise=noise, sigma=0.2)
    assert [(one.sources, one.targets, one.sampling, one.messages) for one in models.clusters] == [
        (one.sources, one.targets, one.sampling, one.messages) for one in means.clusters
    ]
    assert [edge.carries for edge in models.edges] == [edge.carries for edge in means.edges]


def test_hidden_models_that_steer_messages_have_no_guarantee() -> None:
    steered = {key: value for key, value in GROUP.items() if key != "by"}
    refused = analyse_plan(spec(steered, MODEL))
    assert "One item can move 400 messages" in refused.refusals[0]
    assert analyse_plan(spec(steered, {**MODEL, "noise": NOISE})).refusals == ()
    public = analyse_plan(spec(steered, {**MODEL, "assume_public": True}))
    assert public.refusals == ()
    assert any("models of every round are public" in warned.sentence for warned in public.study.warnings)
    # Groups of a person's own columns do not depend on the models.
    assert analyse_plan(spec(GROUP, MODEL)).refusals == ()


@pytest.mark.parametrize(
    ("operators", "key", "rule"),
    [
        ([GROUP], "operators[0].name", "used by exactly one later aggregate or iterate"),
        ([GROUP, COUNT, {**COUNT, "name": "again"}], "operators[0].name", "used by exactly one"),
        ([ASKS, GROUP, COUNT], "operators[0].name", "used by a later group, join or select"),
        ([GROUP, COUNT, {**GROUP, "name": "b", "of": "count"}, {**COUNT, "name": "c", "of": "b"}],
         "operators[2].of", "people, or the name of an earlier select"),
        ([{**GROUP, "by": ["weight"]}, COUNT], "operators[0].by", "name columns of query.columns"),
        ([{**GROUP, "by": ["key", "key"]}, COUNT], "operators[0].by", "different columns"),
        ([{**GROUP, "nodes": 4}, COUNT], "operators[0].nodes", "at most 3"),
        ([{**GROUP, "name": "people"}, {**COUNT, "of": "people"}], "operators[0].name", "differ from other names"),
        ([{**ASKS, "where": {"role": ["nobody"]}}, {**GROUP, "of": "asking"}, COUNT],
         "operators[0].where.role", "labels among asks, offers, neither"),
        ([{**ASKS, "where": {"age": ["1"]}}, {**GROUP, "of": "asking"}, COUNT],
         "operators[0].where", "name columns of query.columns"),
        ([ASKS, OFFERS, {**JOIN, "by": ["key", "size"]}, {**COUNT, "of": "join"}],
         "operators[2].by", "two columns with equally many groups"),
        ([ASKS, OFFERS, JOIN, {**COUNT, "of": "join", "functions": ["sum"], "values": ["v"]}],
         "operators[3].functions", "a join only counts pairs"),
        ([GROUP, {**COUNT, "functions": ["avg"]}], "operators[1].values", "different columns of numbers for avg"),
        ([GROUP, {**COUNT, "values": ["x"]}], "operators[1].values", "name columns of query.ranges"),
        ([GROUP, {**COUNT, "functions": ["max"], "values": ["v"], "noise": {"epsilon": 1.0}}],
         "operators[1].functions", "count, sum or avg"),
        ([GROUP, {**MODEL, "label": "x"}], "operators[1].label", "name a column of query.ranges"),
        ([GROUP, {**MODEL, "per_person": 3}], "operators[1].per_person", "divide 4"),
        ([GROUP, {**MODEL, "noise": NOISE, "assume_public": True}], "operators[1].assume_public", "false if results"),
        ([GROUP, {**MODEL, "per_person": 2}, {**GROUP, "name": "b"},
          {**MODEL, "name": "c", "of": "b", "per_person": 1}], "operators[1].per_person", "1 or 4 parts"),
    ],
)  # fmt: skip
def test_combinations_without_a_meaning_are_refused(operators: list[Any], key: str, rule: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        spec(*operators)
    assert any(problem.key == f"query.{key}" and rule in problem.rule for problem in caught.value.problems)


def test_a_wrong_key_of_an_operator_is_named() -> None:
    with pytest.raises(SpecificationError, match=r"(?s)operators\[0\].nods.*Did you mean nodes"):
        spec({**GROUP, "nods": 3}, COUNT)
    with pytest.raises(SpecificationError, match=r"(?s)operators\[0\].kind.*Did you mean \"group\""):
        spec({**GROUP, "kind": "grup"}, COUNT)


def test_without_redirection_results_are_the_truth() -> None:
    study = simulate_plan(
        spec(
            ASKS, OFFERS, {**GROUP, "of": "asking"}, {**COUNT, "values": ["v"], "functions": ["count", "sum"]}, JOIN,
            {**COUNT, "name": "pairs", "of": "join"}, {**GROUP, "name": "b"}, {**MODEL, "of": "b"}, sigma=0.0,
        )
    )  # fmt: skip
    tables = {table.key: table for table in study.tables}
    for row in tables["result-1"].rows:
        assert [row[1], row[3]] == pytest.approx([row[2], row[4]])
    for row in tables["result-2"].rows:
        assert row[1] == row[2] == row[3]
    for row in tables["result-3"].rows:
        assert row[1] == pytest.approx(row[2])


def test_a_select_and_a_join_are_those_of_a_plain_count() -> None:
    specification = spec(ASKS, OFFERS, JOIN, {**COUNT, "of": "join"}, sigma=0.0, people=300)
    records = specification.query.records(Path())
    role, key = records.rows.T
    assert graph(specification).columns == ("role", "key")
    expected = [
        sum(1 for i in range(300) for j in range(300) if role[i] == 0 and role[j] == 1 and key[i] == key[j] == place)
        for place in range(3)
    ]
    (table,) = [one for one in simulate_plan(specification).tables if one.key == "result-1"]
    assert [row[1] for row in table.rows] == expected


def test_limits_of_a_join_bound_what_one_person_moves() -> None:
    disjoint = graph(spec(ASKS, OFFERS, {**JOIN, "most": [2, 5]}, {**COUNT, "of": "join"}))
    assert disjoint.pairs_moved(disjoint.named("join")) == 10
    itself = graph(spec({**JOIN, "of": ["people", "people"], "most": [2, 5]}, {**COUNT, "of": "join"}))
    assert itself.pairs_moved(itself.named("join")) == 12
    rng = np.random.default_rng(1)
    for _ in range(300):
        a, b, people = (int(one) for one in rng.integers(1, 6, 3))
        keys = rng.integers(0, 2, (2, people, 2))
        keys[1, 1:] = keys[0, 1:]

        def pairs(keys: Any, a: int = a, b: int = b) -> Any:
            left, right = (np.bincount(column, minlength=2) for column in keys.T)
            return np.minimum(left, a) * np.minimum(right, b)

        assert np.abs(pairs(keys[0]) - pairs(keys[1])).sum() <= 2 * (a + b - 1)


def test_services_run_groups_with_equal_aggregates_only() -> None:
    plain = spec(GROUP, {**COUNT, "noise": {"epsilon": 1.0}})
    assert plain.query.for_devices().steps == ((("key",), (3,)),)
    for operators in (
        [ASKS, {**GROUP, "of": "asking"}, COUNT],
        [GROUP, MODEL],
        [GROUP, COUNT, {**GROUP, "name": "b", "nodes": 2, "by": ["size"]}, {**COUNT, "name": "c", "of": "b"}],
        [GROUP, COUNT, {**GROUP, "name": "b"}, {**COUNT, "name": "c", "of": "b"}],
    ):
        with pytest.raises(UnsupportedProtocolError, match="Use plan analyse and plan simulate"):
            spec(*operators).query.for_devices()


@pytest.mark.parametrize("noise", [NOISE, None])
@pytest.mark.parametrize("by", [["key"], None])
def test_training_reduces_the_error(noise: Any, by: Any) -> None:
    group = {key: value for key, value in GROUP.items() if key != "by" or by}
    rounds = {**MODEL, "rounds": 8} | ({"noise": noise} if noise else {"assume_public": True})
    study = simulate_plan(spec(group, rounds, people=4000, dummies=20, batch=500))
    for series in study.charts[0].series:
        errors = series.upper
        assert len(errors) == 9
        assert errors[-1] < errors[0]
    drawn = spec(group, rounds).query.drawn
    assert drawn is not None
    assert len(drawn[0].plan(400, spec(group, rounds).traffic.build()).clusters) < 12


@pytest.mark.parametrize(("name", "epsilon"), [("join", 1.135), ("federated", 1.483)])
def test_the_examples_have_their_guarantees(name: str, epsilon: float) -> None:
    specification = load_plan(EXAMPLES / f"{name}.toml")
    plan = specification.plan(specification.query.counted(EXAMPLES).n)
    figure = plan_guarantee(plan, delta=specification.targets.delta).upper
    assert figure == pytest.approx(epsilon, abs=2e-3)
    assert specification.targets.epsilon is not None
    assert figure < specification.targets.epsilon
