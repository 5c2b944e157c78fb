"""A histogram over a grid: against plain counts of polars, as nodes know it, and by real nodes."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hushuffle.errors import DataError, SpecificationError
from hushuffle.randomness import reproducible
from hushuffle_network.queries import parse_plan
from hushuffle_network.queries.analyse import analyse_plan
from hushuffle_network.queries.histogram import Histogram
from hushuffle_network.queries.simulate import simulate_plan
from hushuffle_network.rehearse import rehearse
from hushuffle_network.study import phone_study

TASK = Histogram(columns=("age", "bmi"), sizes=(3, 4), partitions=5)
PLAN = """
[query]
kind = "histogram"
{data}
columns = {{ age = {{ low = 0, high = 90, intervals = 3 }}, bmi = {{ low = 15, high = 35, intervals = 4 }} }}
partitions = 5
[traffic]
sigma = {sigma}
{traffic}
[targets]
delta = 1e-6
[run]
seed = 1
[network]
least = 0.5
"""
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=30)


def plan(data: str = "generated = { people = 400 }", *, sigma: float = 0.2, traffic: str = "") -> str:
    return PLAN.format(data=data, sigma=sigma, traffic=traffic)


def people(folder: Path, count: int = 400) -> pl.DataFrame:
    """Write a table of people, some of them outside the grid, and return it."""
    generator = np.random.default_rng(3)
    table = pl.DataFrame({"age": generator.normal(45, 30, count).round(2), "bmi": generator.normal(25, 7, count)})
    table.write_csv(folder / "people.csv")
    return table


def counted(table: pl.DataFrame) -> list[int]:
    """Return the counts of all cells, the second column running fastest: what is outside counts at the border."""
    cells = table.select(
        age=(pl.col("age") / 30).floor().clip(0, 2).cast(pl.Int64),
        bmi=((pl.col("bmi") - 15) / 5).floor().clip(0, 3).cast(pl.Int64),
    )
    found = dict(cells.group_by((pl.col("age") * 4 + pl.col("bmi")).alias("cell")).len().rows())
    return [found.get(cell, 0) for cell in range(12)]


def shown(study: Any) -> list[tuple[Any, ...]]:
    return [row[2:] for table in study.tables if table.key == "cells" for row in table.rows]


def test_without_redirection_it_is_the_plain_count(tmp_path: Path) -> None:
    true = counted(people(tmp_path))
    study = simulate_plan(parse_plan(plan('data = "people.csv"', sigma=0.0)), base_folder=tmp_path)
    assert shown(study) == [(count, float(count)) for count in true]
    assert sum(true) == 400
    (cells,) = study.heat_maps
    assert np.array(cells.values).ravel().tolist() == true
    assert (len(cells.y), len(cells.x)) == (3, 4)
    assert cells.y[0] == "below 30"


def test_estimates_are_those_of_everybody(tmp_path: Path) -> None:
    true = np.array(counted(people(tmp_path, 40_000)))
    text = plan('data = "people.csv"', sigma=0.5, traffic="dummies = 10\nbatch = 4000")
    study = simulate_plan(parse_plan(text), base_folder=tmp_path)
    estimates = np.array([row[1] for row in shown(study)])
    used = 0.5 + 0.5 / 5
    spread = np.sqrt(true * (1 - used) / used)
    # Twelve cells, six standard deviations: a false alarm in forty million keys.
    assert np.abs(estimates - true).max() > 0
    assert (np.abs(estimates - true) <= 6 * spread).all()


def test_its_guarantee_is_that_of_one_step() -> None:
    analysis = analyse_plan(parse_plan(plan(traffic="dummies = 20\nbatch = 200")))
    assert analysis.refusals == ()
    assert analysis.study.title == "Histogram over age and bmi"
    assert [row[0] for table in analysis.study.tables if table.key == "guarantees" for row in table.rows] == [
        "send by age, bmi",
        "the whole plan",
        "simple sum (upper bound)",
    ]


@pytest.mark.slow
def test_services_count_what_arrives(tmp_path: Path) -> None:
    true = counted(people(tmp_path, 24))
    # Nothing is redirected: the plan asks for no guarantee.
    spec = parse_plan(plan(f'data = "{tmp_path}/people.csv"', sigma=0.0, traffic="dummies = 3\nbatch = 12"))
    run = rehearse(spec, out=tmp_path / "out")
    assert json.loads((tmp_path / "out" / "result.json").read_bytes()) == run.result
    (answer,) = run.result["answers"]
    assert answer["received"] == answer["estimates"] == true
    assert (answer["columns"], answer["sizes"], answer["sources"]) == (["age", "bmi"], [3, 4], 24)
    study = phone_study(spec, run)
    assert shown(study) == [(count, float(count)) for count in true]
    assert {one.key for one in study.heat_maps} == {"cells", "graph"}


@given(ROWS)
def test_nodes_count_the_people_of_their_cells(rows: list[tuple[int, int]]) -> None:
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    cells = [4 * age + bmi for age, bmi in rows]
    assert TASK.pack(1, table) == [struct.pack("<2i", *row) for row in rows]
    own = TASK.own(1, table, None).tolist()
    assert own == [cell * 5 // 12 for cell in cells]
    parts = []
    for node in range(5):
        mine = [content for content, other in zip(TASK.pack(1, table), own, strict=True) if other == node]
        merged = TASK.merge(1, TASK.empty(1), mine, [True] * len(mine))
        merged = TASK.merge(1, merged, [TASK.sample(1, node)], [False])  # a dummy is worked on, and does not count
        told = TASK.tell(1, node, merged, reproducible(1))
        assert told.size <= TASK.width(1) == 3
        parts.append(TASK.part(1, node, told))
    assert TASK.combine(1, parts).tolist() == [cells.count(cell) for cell in range(12)]


INTERVALS = st.tuples(st.integers(-1, 3), st.integers(-1, 4)).map(lambda pair: struct.pack("<2i", *pair))


@given(st.one_of(st.binary(max_size=10), INTERVALS), st.integers(0, 4))
def test_only_records_of_the_node_are_taken(content: bytes, node: int) -> None:
    age, bmi = struct.unpack("<2i", content) if len(content) == 8 else (-1, -1)
    good = 0 <= age < 3 and 0 <= bmi < 4 and (4 * age + bmi) * 5 // 12 == node
    if good:
        TASK.check(1, node, content)
        return
    with pytest.raises(DataError, match=r"a message (has|is not) an? (record|interval) [a-z' ]*\."):
        TASK.check(1, node, content)


@pytest.mark.parametrize("count", [-1.0, np.nan, np.inf])
def test_impossible_counts_are_refused(count: float) -> None:
    with pytest.raises(DataError, match="counts of impossible records"):
        TASK.part(1, 0, np.array([0.0, count, 0.0]))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (", bmi = { low = 15, high = 35, intervals = 4 }", "", "query.columns: must be two columns, got age"),
        ("partitions = 5", "partitions = 13", "query.partitions: must be at most the 12 cells, got 13"),
        ("high = 90", "high = -1", "query.columns.age: must have low < high"),
        ("{ low = 15, high = 35, intervals = 4 }", '["a", "b"]', "query.columns.bmi: must be a table"),
        (
            "generated = { people = 400 }",
            'generated = { people = 400 }\ndata = "a.csv"',
            "must have either data or gen",
        ),
        (
            "partitions = 5",
            "partitions = 5\nvalues = [1]",
            'query.values: is not a key here, got [1]. This key needs kind = "aggregate"',
        ),
    ],
)
def test_what_is_no_histogram_is_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(SpecificationError, match=re.escape(words)):
        parse_plan(plan().replace(old, new))


def test_a_document_with_more_nodes_than_cells_is_refused() -> None:
    with pytest.raises(ValidationError, match="partitions must be at most the 12 cells"):
        Histogram(columns=("age", "bmi"), sizes=(3, 4), partitions=13)
