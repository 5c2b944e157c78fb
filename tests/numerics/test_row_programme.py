from __future__ import annotations

import importlib
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushuffle.errors import NumericalError
from hushuffle.numerics import row_programme
from hushuffle.numerics.row_programme import RowProgramme, information, least_squares, spreads, together
from oracles import channel_error

Floats = npt.NDArray[np.float64]


def drawn(rng: np.random.Generator, k: int, columns: int) -> Floats:
    rows = rng.integers(1, 30, size=(k, columns)).astype(np.float64)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def rational(rows: Floats) -> list[list[Fraction]]:
    exact = [[Fraction(entry).limit_denominator(2000) for entry in row] for row in rows.tolist()]
    return [[entry / sum(row) for entry in row] for row in exact]


def test_spreads_are_those_of_plain_sums() -> None:
    rng = np.random.default_rng(1)
    for k, columns in ((2, 2), (3, 5), (4, 3)):
        rows = rational(drawn(rng, k, columns))
        floats = np.array(rows, dtype=np.float64)
        assert spreads(floats).max() == pytest.approx(float(channel_error.spread(rows)), rel=1e-12)


def test_least_squares_has_the_variance_of_its_coefficients_and_no_unbiased_estimate_has_less() -> None:
    rng = np.random.default_rng(2)
    for k, columns in ((2, 2), (3, 3), (3, 5), (4, 7)):
        rows = rational(drawn(rng, k, columns))
        wanted = [[Fraction(int(v)) for v in line] for line in rng.integers(-2, 3, size=(2, k))]
        best = channel_error.least_squares(rows, wanted)
        least = channel_error.variance(rows, best)
        # The oracle has one person of each value, the formula is about one draw.
        error = least_squares(np.array(rows, dtype=np.float64), np.array(wanted, dtype=np.float64))
        assert error / k == pytest.approx(float(least), rel=1e-9)
        for line, coefficients in zip(wanted, best, strict=True):
            for x in range(k):
                assert sum(p * c for p, c in zip(rows[x], coefficients, strict=True)) == line[x]
        if columns > k:
            basis = np.linalg.svd(np.array(rows, dtype=np.float64))[2][k:]
            moved = [[Fraction(c) + Fraction(d) for c, d in zip(best[0], basis[0].tolist(), strict=True)], best[1]]
            assert channel_error.variance(rows, moved) > least


def test_rows_that_say_nothing_have_an_infinite_error() -> None:
    assert least_squares(np.full((3, 2), 0.5), np.eye(3)) == math.inf
    assert least_squares(np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]), np.eye(3)) == math.inf


def test_cuts_hold_for_every_matrix_of_less_spread_and_touch_where_they_are_made() -> None:
    rng = np.random.default_rng(3)
    for mirror in (False, True):
        rows = [drawn(rng, 4, 3) for _ in range(40)]
        if mirror:
            rows = [half / np.hstack([half, half[::-1]]).sum(axis=1, keepdims=True) for half in rows]
        programme = RowProgramme(spread=1.0, ratio=40.0, wanted=np.eye(4), mirror=mirror)
        for half in rows[:5]:
            here = spreads(programme.full(half)).max()
            unit = RowProgramme(spread=here, ratio=40.0, wanted=np.eye(4), mirror=mirror)
            cuts = unit._cuts(half)
            assert (cuts * half).sum(axis=(1, 2)).max() == pytest.approx(1.0)
            for other in rows:
                assert (cuts * other).sum(axis=(1, 2)).max() * here <= spreads(unit.full(other)).max() * (1 + 1e-12)


def test_the_tangent_of_the_information_is_less_information() -> None:
    rng = np.random.default_rng(4)
    programme = RowProgramme(spread=2.0, ratio=40.0, wanted=np.tril(np.ones((3, 4))))
    for _ in range(20):
        here = drawn(rng, 4, 6)
        near = here * rng.uniform(0.97, 1.03, size=here.shape)
        near /= near.sum(axis=1, keepdims=True)
        assert programme._promised(here, here) == pytest.approx(programme.error(here))
        assert programme._promised(here, near) >= programme.error(near) * (1 - 1e-12)
        m, r = near.mean(axis=0), here.mean(axis=0)
        part = (near / r) @ here.T
        tangent = part + part.T - (here * (m / r**2)) @ here.T
        assert np.linalg.eigvalsh(information(near) - tangent).min() > -1e-12


def test_adding_columns_up_never_adds_spread_and_alike_columns_are_added_up() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        rows = drawn(rng, 3, 4)
        merged = np.column_stack([rows[:, 0] + rows[:, 1], rows[:, 2:]])
        assert spreads(merged).max() <= spreads(rows).max() * (1 + 1e-12)
    rows = np.array([[0.3, 0.1, 0.6, 0.0], [0.15, 0.05, 0.8, 0.0]])
    assert np.allclose(together(rows), [[0.4, 0.6], [0.2, 0.8]], atol=1e-15)


def test_matrices_are_drawn_inside_both_bounds() -> None:
    rng = np.random.default_rng(6)
    for ratio, spread in ((3.0, 50.0), (30.0, 0.2)):
        programme = RowProgramme(spread=spread, ratio=ratio, wanted=np.eye(3))
        for _ in range(5):
            inside = programme.inside(drawn(rng, 3, 4))
            assert inside.sum(axis=1) == pytest.approx(np.ones(3))
            assert spreads(inside).max() <= spread * (1 + 1e-12)
            assert (inside.max(axis=0) / inside.min(axis=0)).max() <= ratio * (1 + 1e-12)


def test_the_least_cost_is_that_of_a_linear_programme_where_only_the_ratio_binds() -> None:
    programme = RowProgramme(spread=1e6, ratio=3.0, costs=1 - np.eye(3))
    best = programme.best(np.full((3, 3), 1 / 3))
    assert programme.error(best) == pytest.approx(2 / 5, rel=1e-3)  # randomized response tells the truth 3 in 5 times


@pytest.mark.parametrize(("k", "spread", "ratio"), [(3, 0.5, 20.0), (4, 5.0, 50.0), (3, 2.0, 100.0)])
def test_the_least_cost_is_that_of_the_whole_convex_programme(k: int, spread: float, ratio: float) -> None:
    cp: Any = importlib.import_module("cvxpy")
    costs = np.abs(np.subtract.outer(np.arange(k), np.linspace(0, k - 1, k)))
    rows, least = cp.Variable((k, k)), cp.Variable((1, k), nonneg=True)
    floor = np.ones((k, 1)) @ least
    rules = [cp.sum(rows, axis=1) == 1, rows >= floor, rows <= ratio * floor]
    for a, b, x in itertools.product(range(k), repeat=3):
        terms = [cp.quad_over_lin(rows[a, y] - rows[b, y], rows[x, y]) for y in range(k)]
        rules += [sum(terms) <= spread] if a < b else []
    whole = cp.Problem(cp.Minimize(cp.sum(cp.multiply(costs, rows)) / k), rules)
    whole.solve(solver=cp.CLARABEL)
    programme = RowProgramme(spread=spread, ratio=ratio, costs=costs)
    found = programme.error(programme.best(np.full((k, k), 1 / k)))
    assert whole.value * (1 - 1e-5) <= found <= whole.value * 1.005


def test_columns_that_cannot_be_mixed_are_an_error() -> None:
    programme = RowProgramme(spread=0.1, ratio=9.0, wanted=np.eye(2))
    with pytest.raises(NumericalError, match="not solved"):
        programme.mixed(np.array([[0.9, 0.1], [0.1, 0.9]]))


def test_the_scale_of_columns_to_mix_does_not_matter() -> None:
    rng = np.random.default_rng(7)
    columns = np.hstack([np.full((3, 3), 0.1) + 0.4 * np.eye(3), rng.uniform(0.1, 1.0, size=(3, 6))])
    programme = RowProgramme(spread=1.0, ratio=30.0, wanted=np.eye(3))
    large, small = (programme.inside(programme.mixed(columns * scale)) for scale in (10.0, 0.1))
    assert programme.error(large) == pytest.approx(programme.error(small), rel=1e-3)
    usual = programme.inside(np.full((3, 3), 0.1) + 0.7 * np.eye(3))
    assert programme.error(large) <= programme.error(usual) * 1.2


def test_a_search_that_is_cut_short_keeps_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    programme = RowProgramme(spread=50.0, ratio=9.0, costs=1 - np.eye(3))
    least = programme.error(programme.best(np.full((3, 3), 1 / 3)))
    monkeypatch.setattr(row_programme, "_STEPS", 1)
    short = programme.best(np.full((3, 3), 1 / 3))
    assert (short.max(axis=0) / short.min(axis=0)).max() <= 9 * (1 + 1e-12)
    assert programme.error(short) > least
