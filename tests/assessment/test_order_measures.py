"""The attack and the learner before and after a shuffle, on people whose values show where they live."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.assessment.order.measures import Measured, Scene, measured
from hushuffle.model import Bound
from hushuffle.questions import order

N = 400
PLACES = np.linspace(0.0, 1.0, N)[:, np.newaxis]
VALUES = (PLACES[:, 0] > 0.5).astype(np.int64)
NEAR = order.radius_groups(PLACES, 0.05)
LABELS = ("left", "right")


def scene(**changes: object) -> Scene:
    made = Scene(values=VALUES, labels=LABELS, near=NEAR, known=PLACES, places=PLACES)
    return replace(made, **changes)  # type: ignore[arg-type]


def run(made: Scene, *, theta: float = 0.05, k: int = 2, epsilon: float = 2.0) -> Measured:
    protocol = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon),
        shuffler=hs.MallowsShuffle(reference=range(N), theta=theta),
        n=N,
    )
    shares: list[float] = []
    found = measured(protocol, made, confidence=0.9, rng=hs.reproducible(8), done=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    return found


def test_the_shuffle_lies_between_none_and_a_uniform_one() -> None:
    found = run(scene())
    (table,), (finding,) = found.tables, found.findings
    assert table.columns == (
        "release",
        "share of people for whom the attack succeeds",
        "error of shares that an analyst learns near each person (uniform guess: 1)",
        'share of people with "left" for whom the attack succeeds',
        'share of people with "right" for whom the attack succeeds',
    )
    assert [row[0] for row in table.rows] == ["no shuffle", "this shuffle", "uniform shuffle"]
    figures = [[cell for cell in row if isinstance(cell, Bound)] for row in table.rows]
    rho = [row[0] for row in figures]
    error = [row[1] for row in figures]
    assert rho[0].lower > rho[1].upper
    assert rho[1].lower > rho[2].upper
    assert error[0].upper < error[1].lower
    assert error[1].upper < error[2].lower
    assert all(bound.confidence == 0.9 and bound.kind == "estimate" for row in figures for bound in row)
    assert finding.bound == rho[1]
    assert found.warnings == ()


def test_without_places_nothing_is_learned() -> None:
    found = run(scene(places=None, known=None))
    assert found.tables[0].columns == (
        "release",
        "share of people for whom the attack succeeds",
        'share of people with "left" for whom the attack succeeds',
        'share of people with "right" for whom the attack succeeds',
    )
    assert found.warnings == ()


def test_values_that_nobody_holds_and_many_of_them() -> None:
    labels = tuple(f"value {code}" for code in range(6))
    found = run(scene(labels=labels, places=None), k=6)
    assert found.tables[0].columns == ("release", "share of people for whom the attack succeeds")
    four = run(scene(labels=labels[:4], places=None), k=4)
    assert four.tables[0].columns[2:] == tuple(
        f'share of people with "value {code}" for whom the attack succeeds' for code in (2, 3, 0, 1)
    )
    for row in four.tables[0].rows:
        assert all(isinstance(cell, Bound) and cell.upper == 0 for cell in row[2:4])


def test_a_learner_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sklearn.calibration", "sklearn.ensemble", "sklearn.model_selection"):
        monkeypatch.setitem(sys.modules, module, None)
    found = run(scene())
    assert "error of shares that an analyst learns near each person (uniform guess: 1)" not in found.tables[0].columns
    (warning,) = found.warnings
    assert warning.key == "learnability-not-measured"
    assert "hushuffle[attacks]" in warning.advice


def test_too_few_reports_of_a_value() -> None:
    found = run(scene(values=np.zeros(N, dtype=np.int64)), epsilon=20.0)
    (warning,) = found.warnings
    assert "3 or more reports each" in warning.advice
