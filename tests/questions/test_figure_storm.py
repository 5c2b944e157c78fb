"""A storm of random calls: no figure contradicts what cheap rational truths say, and no error is a foreign one."""

from __future__ import annotations

import pytest

import figure_storm


@pytest.mark.parametrize("seed", [0, pytest.param(10, marks=pytest.mark.slow)])
def test_figures_of_random_protocols(seed: int) -> None:
    for place in range(seed, seed + 10):
        assert figure_storm.check(place, composed=False)[1] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_figures_of_random_protocols_and_rounds(seed: int) -> None:
    compared, wrong = figure_storm.check(seed)
    assert wrong == []
    assert compared > 0


def test_any_call_of_a_public_function_ends_in_a_figure_or_a_clear_error() -> None:
    assert [problem for seed in range(500) for problem in figure_storm.call(seed, quick=True)] == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 21_000, 500))
def test_twenty_thousand_calls_of_public_functions(start: int) -> None:
    assert [problem for seed in range(start, start + 500) for problem in figure_storm.call(seed, quick=False)] == []
