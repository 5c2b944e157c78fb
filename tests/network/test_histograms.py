"""A histogram over a grid is asked of phones as any aggregate is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle_network.choices import record_of
from hushuffle_network.client import Task
from hushuffle_network.queries import parse_plan
from hushuffle_network.queries.histogram import Histogram
from hushuffle_network.rehearse import rehearse
from hushuffle_network.study import phone_study
from network.phone_cases import drawn
from network.phone_stage import PhoneStage

PLAN = """
[query]
kind = "histogram"
generated = { people = 24 }
columns = { age = { low = 0, high = 60, intervals = 4 }, bmi = { low = 10, high = 40, intervals = 3 } }
partitions = 3
[traffic]
sigma = 0.3
dummies = 3
batch = 8
min_batch = 5
scramblers = 2
[targets]
delta = 1e-6
[network]
collect = 60.0
patience = 5.0
least = 0.5
"""
GRID: dict[str, Any] = {"columns": ("age", "bmi"), "sizes": (4, 3), "partitions": 3}


def test_a_histogram_counts_the_records_that_came(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN) as stage:
            await stage.start_all()
            sent = stage.sendings()
            await stage.phones().send(sent)
            (answer,) = (await stage.result())["answers"]
            assert (answer["sources"], answer["sizes"]) == (24, [4, 3])
            assert np.array_equal(answer["received"], stage.used(sent)[1])
            assert sum(answer["received"]) == sum(one.record is not None for one in sent) > 0

    asyncio.run(run())


def test_a_phone_writes_the_record_that_the_target_counts() -> None:
    """For every cell: own target, bytes, and the cell that is counted, as the target's task computes them."""
    histogram = Histogram(**GRID)
    assert parse_plan(PLAN).query.for_devices().task == histogram
    task = Task(drawn(PLAN, steps=1).content)
    for age in range(4):
        for bmi in range(3):
            found = record_of(task.document, task.steps[0], {"age": 15 * age + 2, "bmi": 10 * bmi + 11})
            row = np.array([[age, bmi]], dtype=np.float64)
            assert found == (int(histogram.own(1, row, None)[0]), histogram.pack(1, row)[0])
            histogram.check(1, found[0], found[1])
            counts = histogram.merge(1, histogram.empty(1), [found[1]], [True])
            assert np.flatnonzero(counts).tolist() == [3 * age + bmi]


@pytest.mark.parametrize(
    ("node", "row"), [(0, (-1, 0)), (0, (0, 3)), (2, (4, 0)), (1, (0, 0)), (0, (0, -1)), (0, (0, 2**31 - 1))]
)
def test_records_of_other_cells_are_refused(node: int, row: tuple[int, int]) -> None:
    task = Histogram(**GRID)
    with pytest.raises(DataError):
        task.check(1, node, np.array(row, dtype="<i4").tobytes())
    with pytest.raises(DataError):
        task.check(1, node, bytes(4))
    for place in range(3):
        task.check(1, place, task.sample(1, place))


@pytest.mark.slow
def test_a_histogram_is_rehearsed_with_its_report(tmp_path: Path) -> None:
    specification = parse_plan(PLAN.replace("people = 24", "people = 60"))
    run = rehearse(specification, out=tmp_path)
    report = phone_study(specification, run)
    assert {table.key for table in report.tables} >= {"coverage", "cells", "services"}
