from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, MissingDependencyError
from hushuffle.numerics.row_programme import least_squares, spreads
from hushuffle.questions.dp import best_channel
from scripts import script

ROOT = Path(__file__).parents[3]
CROWD: dict[str, Any] = {"n": 10_000, "k": 3, "epsilon": 0.1, "delta": 1e-6, "local_epsilon_max": 1.0}


def matrix(mechanism: hs.MatrixRandomizer | hs.RandomizedResponse) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(mechanism.channel().matrix, dtype=np.float64)


@pytest.mark.parametrize("cap", [1.0, 6.0])
@pytest.mark.parametrize("loss", ["shares", "distribution", "match"])
def test_of_two_values_the_best_is_randomized_response(cap: float, loss: Any) -> None:
    found = hs.design(n=10_000, k=2, epsilon=0.1, delta=1e-6, local_epsilon_max=cap, loss=loss)
    assert found.randomizer.outputs == 2
    own = found.randomizer.local_epsilon
    assert matrix(found.randomizer).max() == pytest.approx(1 / (1 + math.exp(-own)), rel=1e-6)
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=10_000)
    most = hs.dp.calibrate(survey, parameter="epsilon", epsilon=0.1, delta=1e-6).value
    assert min(cap, most) * 0.99 <= own <= min(cap, most) * (1 + 1e-9)


def test_no_channel_of_two_values_beats_randomized_response_of_its_spread() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = rng.uniform(0.02, 1, size=(2, int(rng.integers(2, 6))))
        rows /= rows.sum(axis=1, keepdims=True)
        spread = spreads(rows).max()
        t = math.sqrt(spread / (4 + spread))  # 4t**2/(1 - t**2) is its spread
        usual = np.array([[1 + t, 1 - t], [1 - t, 1 + t]]) / 2
        assert spreads(usual).max() == pytest.approx(spread)
        assert least_squares(usual, np.eye(2)) <= least_squares(rows, np.eye(2)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("n", "k", "epsilon", "cap", "loss"),
    [(10_000, 5, 0.1, 1.0, "distribution"), (500, 3, 0.5, 5.0, "squared"), (20, 3, 1.0, 1.5, "shares")],
)
def test_both_promises_are_kept_and_the_error_is_no_worse_than_known_mechanisms(
    n: int, k: int, epsilon: float, cap: float, loss: Any
) -> None:
    found = hs.design(n=n, k=k, epsilon=epsilon, delta=1e-6, local_epsilon_max=cap, loss=loss)
    protocol = hs.Protocol(randomizer=found.randomizer, shuffler=hs.UniformShuffle(), n=n)
    assert hs.dp.epsilon(protocol, delta=1e-6) == found.bound
    assert found.bound.upper <= epsilon
    assert found.randomizer.local_epsilon <= cap
    assert found.error == found.error_of(found.randomizer)
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=1.0), shuffler=hs.UniformShuffle(), n=n)
    most = hs.dp.calibrate(survey, parameter="epsilon", epsilon=epsilon, delta=1e-6).value
    usual = hs.RandomizedResponse(k=k, epsilon=min(most, cap))
    # Randomized response has an exact law; that of a matrix is a bracket.
    assert found.error <= found.error_of(usual) * 1.01
    assert f"error {found.error:.4g}" in str(found)


def test_small_changes_that_keep_the_bounds_do_not_help() -> None:
    found = hs.design(**{**CROWD, "k": 4, "local_epsilon_max": 5.0, "loss": "distribution"})
    rows = matrix(found.randomizer)
    spread, rng, wanted = spreads(rows).max(), np.random.default_rng(0), np.tril(np.ones((3, 4)))
    here = least_squares(rows, wanted)
    for scale in (1e-3, 1e-2, 0.1):
        for _ in range(60):
            other = rows * np.exp(scale * rng.standard_normal(rows.shape))
            other /= other.sum(axis=1, keepdims=True)
            mean = other.mean(axis=0)
            if spreads(other).max() > spread:
                share = math.sqrt(spread / spreads(other).max())
                other = mean + share * (other - mean)
            if spreads(other).max() <= spread:
                assert least_squares(other, wanted) >= here * (1 - 3e-3)


def test_costs_may_be_any_matrix_and_keep_their_reports() -> None:
    away = np.abs(np.subtract.outer(np.arange(4.0), np.arange(2) * 3.0))
    found = hs.design(**{**CROWD, "k": 4, "loss": away})
    assert found.randomizer.outputs == 2
    assert found.error == pytest.approx((matrix(found.randomizer) * away).sum() / 4)
    assert found.error < away.sum() / 8  # better than a coin
    with pytest.raises(InvalidInputError, match="`randomizer` must be one of 2 reports"):
        found.error_of(hs.RandomizedResponse(k=4, epsilon=1.0))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 1}, "`n` must be an integer >= 2"),
        ({"k": 33}, "`k` must be an integer from 2 to 16"),
        ({"epsilon": 0.0}, "`epsilon` must be finite and > 0"),
        ({"epsilon": 41.0}, "`epsilon` must be at most 40"),
        ({"delta": 0.0}, "`delta` must be in"),
        ({"local_epsilon_max": 41.0}, "`local_epsilon_max` must be at most 40"),
        ({"loss": "regret"}, "`loss` must be one of shares, distribution, absolute, squared, match, or a matrix"),
        ({"loss": [[0, 1], [1, 0]]}, "`loss` must be a matrix of finite costs, k = 3 rows"),
        ({"loss": [["a"]]}, "`loss` must be a matrix of finite costs"),
        ({"loss": [[0, 1]] * 2 + [[1, -1]]}, "`loss` must be a matrix of costs >= 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.design(**{**CROWD, **changed})


def test_a_randomizer_for_other_values_is_not_compared() -> None:
    found = hs.design(**CROWD)
    with pytest.raises(InvalidInputError, match="`randomizer` must be for k = 3 values"):
        found.error_of(hs.RandomizedResponse(k=4, epsilon=1.0))


def test_without_a_solver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"hushuffle\[design\]"):
        hs.design(**CROWD)


def test_a_target_that_is_not_met_in_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_channel, "_TRIES", 1)
    with pytest.raises(InvalidInputError, match="`epsilon` must be a target that some channel meets"):
        hs.design(n=300, k=4, epsilon=0.5, delta=1e-6, local_epsilon_max=4.0, loss="match")


tables = script("benchmarks/design")
PAGE = (ROOT / "docs" / "how-to" / "own-mechanism.md").read_text(encoding="utf-8")


def test_the_page_has_a_table_of_every_case_and_nothing_in_it_beats_the_design() -> None:
    for case in tables.CASES:
        assert tables.heading(case) in PAGE
    assert PAGE.count("| design (") == len(tables.CASES)
    ratios = [float(line.split("|")[4]) for line in PAGE.splitlines() if re.match(r"\| .* \| \d", line)]
    assert len(ratios) == len(tables.CASES) * (1 + len(list(tables.rivals())))
    assert min(ratios) >= 1.0


def test_rows_of_the_page_are_what_the_library_prints() -> None:
    case = tables.CASES[0]
    lines = PAGE.split(tables.heading(case))[1].splitlines()
    best = float(next(line for line in lines if line.startswith("| design")).split("|")[3])
    name, build, known = next(iter(tables.rivals()))
    local = tables.calibrated(case, build)
    usual = least_squares(matrix(known(local)), np.tril(np.ones((tables.K - 1, tables.K))))
    error = math.sqrt(usual / (case.n * (tables.K - 1)))
    assert f"| {name} | {local:.2f} | {error:.5f} |" in "\n".join(lines)
    assert best < error
