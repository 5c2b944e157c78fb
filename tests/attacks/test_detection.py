from __future__ import annotations

import importlib
import os
from pathlib import Path

import numpy as np
import pytest

from hushuffle.attacks.detection import (
    _equal_error,
    _steps,
    detection_curve,
    equal_error_rate,
    identification_error,
    matrix_equal_error_rate,
)
from hushuffle.errors import InvalidInputError, MissingDependencyError
from hushuffle_papers.murakami2021.sources import load_scores
from oracles.pse_matching import equal_error, error_rates


def test_rates_are_those_counted_at_every_threshold() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        genuine = rng.integers(2, 12, int(rng.integers(1, 12))).tolist()
        impostor = rng.integers(0, 9, int(rng.integers(1, 20))).tolist()
        curve = detection_curve(genuine, impostor)
        assert (curve.thresholds[0], curve.false_accept[0], curve.false_reject[0]) == (np.inf, 0.0, 1.0)
        assert (curve.false_accept[-1], curve.false_reject[-1]) == (1.0, 0.0)
        for threshold, accept, reject in zip(curve.thresholds, curve.false_accept, curve.false_reject, strict=True):
            expected = error_rates(genuine, impostor, threshold)
            assert (accept, reject) == pytest.approx((float(expected[0]), float(expected[1])), abs=1e-12)
        assert curve.equal_error == pytest.approx(float(equal_error(genuine, impostor)), abs=1e-12)


def test_reject_at_a_false_accept_rate() -> None:
    curve = detection_curve([3.0, 5.0, 6.0, 7.0], [1.0, 2.0, 4.0, 4.5, 0.0])
    assert curve.reject_at(0.0) == 0.25
    assert curve.reject_at(0.39) == 0.25
    assert curve.reject_at(0.4) == 0.0
    assert curve.reject_at(1.0) == 0.0
    with pytest.raises(InvalidInputError, match="`false_accept`"):
        curve.reject_at(1.5)


def test_the_interval_holds_the_measured_rate() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        genuine, impostor = rng.integers(4, 12, 40).tolist(), rng.integers(0, 9, 70).tolist()
        bound = equal_error_rate(genuine, impostor, replicates=20)
        assert float(equal_error(genuine, impostor)) in bound
        cuts = np.unique(genuine)
        steps = (_steps(np.array(part), cuts) for part in (genuine, impostor))
        measured = _equal_error(*(np.bincount(part, minlength=2 * cuts.size + 1) for part in steps))
        assert measured == pytest.approx(float(equal_error(genuine, impostor)), abs=1e-12)
    assert (bound.kind, bound.unit, bound.confidence) == ("estimate", "probability", 0.95)


def test_95_percent_intervals_hold_the_equal_error_rate() -> None:
    """Of 150 samples at most 30 miss; at a coverage of 93% more have chance 4e-8."""
    rng = np.random.default_rng(3)
    expected = 0.15865525393145707  # of N(2, 1) against N(0, 1)
    missed = sum(
        expected not in equal_error_rate(rng.normal(2, 1, 300), rng.normal(0, 1, 900), replicates=100)
        for _ in range(150)
    )
    assert missed <= 30


def test_people_are_drawn_with_their_rows_and_columns() -> None:
    """Effects of persons make impostor scores dependent: the interval is wider than for independent scores."""
    rng = np.random.default_rng(4)
    n = 100
    scores = rng.normal(0, 0.7, n)[:, None] + rng.normal(0, 0.6, n) + rng.normal(0, 0.15**0.5, (n, n)) + 2 * np.eye(n)
    same = np.eye(n, dtype=np.bool_)
    bound = matrix_equal_error_rate(scores)
    assert detection_curve(scores[same], scores[~same]).equal_error in bound
    assert bound.width > 0.8 * equal_error_rate(scores[same], scores[~same]).width
    assert 0.15865525393145707 in bound


def test_a_matcher_without_errors_is_not_called_perfect() -> None:
    scores = np.eye(50)
    for bound in (matrix_equal_error_rate(scores), equal_error_rate(np.ones(50), np.zeros(900))):
        assert bound.lower == 0.0
        assert bound.upper == pytest.approx(1 - 0.05 ** (1 / 50))


@pytest.mark.parametrize("wrong", [[], [np.nan], [[1.0]], ["a"]])
def test_no_scores(wrong: list[object]) -> None:
    with pytest.raises(InvalidInputError, match="`genuine` must be a list of finite numbers"):
        detection_curve(np.asarray(wrong), [1.0])


def test_no_matrix() -> None:
    with pytest.raises(InvalidInputError, match="`scores` must be a square matrix for at least 2 people"):
        matrix_equal_error_rate(np.zeros((3, 4)))
    with pytest.raises(InvalidInputError, match="`scores` must be a matrix for at least 20 people"):
        matrix_equal_error_rate(np.eye(19))
    with pytest.raises(InvalidInputError, match="`replicates`"):
        matrix_equal_error_rate(np.eye(20), replicates=1)


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingDependencyError, match=r"hushuffle\[attacks\]"):
        detection_curve([1.0], [0.0])


@pytest.mark.data
@pytest.mark.skipif("HUSHUFFLE_DATA" not in os.environ, reason="HUSHUFFLE_DATA does not name a folder of data sets")
@pytest.mark.parametrize(("name", "rank_one"), [("face_C", 0.886), ("finger_left", 0.865)])
def test_error_rates_of_biometric_matchers(name: str, rank_one: float) -> None:
    matrices = load_scores(Path(os.environ["HUSHUFFLE_DATA"], "nist_bssr1_set1", "bssr1_set1.npz"))
    scores = matrices[name].scores
    same = np.eye(len(scores), dtype=np.bool_)
    curve, error = detection_curve(scores[same], scores[~same]), identification_error(scores)
    rate = matrix_equal_error_rate(scores)
    assert 1 - rank_one in error
    assert curve.equal_error in rate
