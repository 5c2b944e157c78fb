"""Thousands of random runs of the real nodes, each with random faults, in virtual time; a seed is a run.

A seed that fails can be run alone, with everything that happened in it printed:
`HUSHUFFLE_SIMULATION=1234 pytest -s tests/network/simulation -k asked_for`.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from network.simulation.simulate import simulate

ASKED_FOR: Final = "HUSHUFFLE_SIMULATION"
EACH: Final = 200
"""Seeds of one slow test."""


def problems(seeds: Iterable[int]) -> str:
    """Return what went wrong in which simulations, as one text; empty if nothing did."""
    reports = []
    for number, seed in enumerate(seeds):
        report = simulate(seed)
        if report.problems:
            reports.append(str(report))
        if number % 50 == 49:
            gc.collect()
    return "\n".join(reports)


def test_a_few_runs_with_faults_break_no_rule() -> None:
    assert problems(range(25)) == ""


def test_without_faults_everybody_counts_and_no_node_complains() -> None:
    for seed in range(8):
        report = simulate(seed, faults=0)
        assert report.problems == []
        assert [process.error for process in report.world.lives] == [None] * len(report.world.lives)


def test_a_seed_goes_the_same_way_again() -> None:
    for seed in (3, 32):
        first, second = simulate(seed).world, simulate(seed).world
        assert first.trace == second.trace
        assert len(first.trace) > 50
    assert simulate(3).world.digest != simulate(4).world.digest


def test_real_seals_go_the_way_of_those_without_cryptography() -> None:
    report = simulate(5, faults=0, real=True)
    assert report.problems == []
    assert report.world.trace == simulate(5, faults=0).world.trace


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, EACH))
def test_many_runs_with_faults_break_no_rule(first: int) -> None:
    assert problems(range(first, first + EACH)) == ""


@pytest.mark.slow
def test_a_seed_goes_the_same_way_in_another_process() -> None:
    words = "from network.simulation.simulate import simulate; print(simulate({}).world.digest)"
    tests = Path(__file__).parents[2]
    for seed in (32, 33):
        digests = {
            subprocess.run(
                [sys.executable, "-c", words.format(seed)],
                env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), *sys.path]), "PYTHONHASHSEED": order},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for order in ("1", "2")
        }
        assert digests == {simulate(seed).world.digest + "\n"}


@pytest.mark.skipif(ASKED_FOR not in os.environ, reason=f"{ASKED_FOR} names no seed")
def test_the_seed_that_was_asked_for() -> None:
    report = simulate(int(os.environ[ASKED_FOR]))
    print("\n".join(report.world.trace))
    print(report)
    assert report.problems == []
