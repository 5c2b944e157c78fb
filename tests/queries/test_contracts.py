"""What every kind of query keeps: an example of each is all that a new one needs here."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, get_args

import numpy as np
import pytest

from hushuffle._checks import Floats
from hushuffle.errors import DataError
from hushuffle.randomness import reproducible
from hushuffle_network.queries import PlanSpecification, parse_plan
from hushuffle_network.queries.analyse import analyse_plan
from hushuffle_network.queries.query import Query, Records, Task
from hushuffle_network.queries.simulate import simulate_plan
from hushuffle_network.queries.specification import QUERIES

PEOPLE: Final = 60
EXAMPLES: Final = {
    "aggregate": """
        columns = { age = 7, sex = 2 }
        grouping_sets = [["age"], ["age", "sex"]]
        values = ["income"]
        ranges = { income = [0, 200] }
        functions = ["count", "sum", "avg", "min", "max"]
        partitions = 3
    """,
    "k-means": """
        centroids = 3
        iterations = 2
        variant = "private-centroids"
        noise = { kind = "gaussian", radius = 1.0, scale = 0.5 }
    """,
    "histogram": """
        columns = { age = { low = 0, high = 9, intervals = 3 }, bmi = { low = 0, high = 8, intervals = 4 } }
        partitions = 5
    """,
    "graph": """
        columns = { age = 7, sex = 2 }
        ranges = { income = [0, 200] }
        [[query.operators]]
        kind = "group"
        name = "by age"
        by = ["age"]
        nodes = 2
        [[query.operators]]
        kind = "group"
        name = "by age and sex"
        by = ["age", "sex"]
        nodes = 2
        [[query.operators]]
        kind = "aggregate"
        name = "ages and sexes"
        of = "by age and sex"
        values = ["income"]
        functions = ["count", "avg"]
        [[query.operators]]
        kind = "aggregate"
        name = "ages"
        of = "by age"
        values = ["income"]
        functions = ["count", "avg"]
    """,
}


@cache
def example(kind: str) -> tuple[PlanSpecification, Records, Task]:
    text = f"""
        traffic = {{ sigma = 0.2, dummies = 3, batch = 20 }}
        targets = {{ delta = 1e-6 }}
        run = {{ seed = 1 }}
        [query]
        kind = "{kind}"
        generated = {{ people = {PEOPLE} }}
        {EXAMPLES[kind]}
    """
    specification = parse_plan(text)
    records = specification.query.records(Path())
    start = None if records.start is None else records.start.tolist()
    return specification, records, specification.query.for_devices(start).task


def steps(kind: str) -> range:
    specification, _, _ = example(kind)
    return range(1, sum(bool(cluster.reads) for cluster in specification.plan(PEOPLE).clusters) + 1)


def of_nodes(kind: str, step: int) -> list[list[bytes]]:
    """Return the records of every node."""
    _, records, task = example(kind)
    own, contents = task.own(step, records.rows, task.start).tolist(), task.pack(step, records.rows)
    return [[one for one, node in zip(contents, own, strict=True) if node == place] for place in range(task.targets)]


def told(kind: str, step: int, node: int, contents: list[bytes]) -> tuple[Floats, Floats]:
    """Return what a node tells that has these records, and what the result makes of its numbers, filled up."""
    _, _, task = example(kind)
    merged = task.merge(step, task.empty(step), contents, [True] * len(contents))
    numbers = task.tell(step, node, merged, reproducible(node))
    filled = np.append(numbers, np.zeros(task.width(step) - numbers.size))
    return numbers, task.part(step, node, filled[: numbers.size] if task.rounds else filled)


def kinds(query: type[Query]) -> tuple[str, ...]:
    return get_args(query.model_fields["kind"].annotation)


def test_every_kind_has_an_example() -> None:
    assert {name for query in QUERIES for name in kinds(query)} == set(EXAMPLES)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_devices_receive_what_the_query_says(kind: str) -> None:
    specification, records, task = example(kind)
    start = None if records.start is None else records.start.tolist()
    form = specification.query.for_devices(start)
    assert (form.task, len(form.steps)) == (task, len(steps(kind)))
    assert all(set(columns) <= set(form.columns) for columns, _ in form.steps)
    clusters = [cluster for cluster in specification.plan(PEOPLE).clusters if cluster.reads]
    assert {cluster.targets for cluster in clusters} == {task.targets}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_node_takes_its_own_records_and_no_others(kind: str) -> None:
    _, _, task = example(kind)
    for step in steps(kind):
        for node, contents in enumerate(of_nodes(kind, step)):
            for content in (*contents, task.sample(step, node)):
                task.check(step, node, content)
                assert len(content) == task.size(step)
                for wrong in (content[:-1], content + b"\0", b""):
                    with pytest.raises(DataError):
                        task.check(step, node, wrong)
                if not task.rounds:
                    with pytest.raises(DataError):
                        task.check(step, (node + 1) % task.targets, content)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_neither_batches_nor_dummies_change_what_a_node_finds(kind: str) -> None:
    _, _, task = example(kind)
    for step in steps(kind):
        for node, contents in enumerate(of_nodes(kind, step)):
            whole = task.merge(step, task.empty(step), contents, [True] * len(contents))
            merged, cut = task.empty(step), len(contents) // 3
            for part in (contents[:cut], [], contents[cut:]):
                mixed = [*part, task.sample(step, node)]
                merged = task.merge(step, merged, mixed, [True] * len(part) + [False])
            np.testing.assert_allclose(merged, whole, rtol=1e-12, atol=1e-12)
            assert task.empty(step).shape == whole.shape


@pytest.mark.parametrize("kind", EXAMPLES)
def test_all_nodes_tell_no_more_than_there_is_room_for(kind: str) -> None:
    _, _, task = example(kind)
    came = {"sources": PEOPLE, "planned": PEOPLE, "lost_batches": 0}
    for step in steps(kind):
        parts = []
        for node, contents in enumerate(of_nodes(kind, step)):
            numbers, part = told(kind, step, node, contents)
            assert 0 < numbers.size <= task.width(step)
            parts.append(part)
        combined = task.combine(step, parts)
        answer = task.answer(step, combined, came, lambda: 2.0)
        assert came.items() <= answer.items()


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_cannot_be_are_refused(kind: str, number: float) -> None:
    _, _, task = example(kind)
    for step in steps(kind):
        numbers, _ = told(kind, step, 0, [])
        wrong = np.full(task.width(step), 0.0)
        wrong[: numbers.size] = numbers
        wrong[0] = number
        with pytest.raises(DataError):
            task.part(step, 0, wrong)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_it_is_analysed_and_simulated(kind: str) -> None:
    specification, _, _ = example(kind)
    assert analyse_plan(specification).refusals == ()
    study = simulate_plan(specification)
    assert study.tables[-1].key == "graph"
    assert len(study.answers) > 1


@pytest.mark.parametrize("kind", EXAMPLES)
def test_without_redirection_the_result_is_the_truth(kind: str) -> None:
    specification, records, task = example(kind)
    answers = []
    for step in steps(kind):
        parts = [told(kind, step, node, contents)[1] for node, contents in enumerate(of_nodes(kind, step))]
        answers.append(task.answer(step, task.combine(step, parts), {}, lambda: 1.0))
    shown = specification.query.compared(answers, records)
    if not task.rounds:
        for table in shown.tables:
            for row in table.rows:
                *_, exact, plan = row
                assert exact == pytest.approx(plan)
    assert shown.tables
