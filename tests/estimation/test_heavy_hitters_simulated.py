"""Lists of values that are told from noise, over many collections: a small version of the benchmark."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

BENCHMARK: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "heavy_hitters.py"))
TIMES = 200


@pytest.mark.parametrize("case", list(BENCHMARK["cases"](people=40_000, values=2_000)), ids=lambda case: case.name)
def test_lists_are_seldom_wrong_and_miss_little(case: Any) -> None:
    """At most one collection in twenty lists a value held by nobody; lists are as long as known noise allows."""
    outcome = BENCHMARK["study"](case, repetitions=TIMES, seed=8, largest=400)
    most = binom.ppf(1 - 1e-4, TIMES, 0.05) / TIMES
    assert outcome.wrong <= most
    assert outcome.wrong_intervals <= most
    assert outcome.listed >= 1
    assert outcome.best >= 0.9
    assert outcome.kept >= 0.95 or outcome.normal_wrong > 0.04  # a normal threshold lets noise of few reports pass


@pytest.mark.parametrize("case", list(BENCHMARK["cases"](people=4_000, values=200)), ids=lambda case: case.name)
def test_counts_are_drawn_from_the_law_of_true_reports(case: Any) -> None:
    assert BENCHMARK["difference"](case, collections=20, seed=9) < 5
