from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from hushuffle.attacks.detection import identification_error, identified
from hushuffle.errors import InvalidInputError
from oracles.pse_matching import chance_in_top


def test_hit_rates_are_those_over_every_order_of_equal_scores() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        n = int(rng.integers(2, 6))
        scores = rng.integers(0, 4, (n, n))
        tops = range(1, n + 1)
        expected = [float(chance_in_top(scores.tolist(), top)) for top in tops]
        assert identified(scores, list(tops)).tolist() == pytest.approx(expected, abs=1e-12)


def test_ties_against_the_attacker() -> None:
    scores = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [3.0, 3.0, 3.0]])
    assert identified(scores, (1, 2, 3), ties="against").tolist() == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert identified(scores, (1, 2, 3)).tolist() == pytest.approx([(0.5 + 1 + 1 / 3) / 3, (2 + 2 / 3) / 3, 1.0])


def test_the_curve_rises_to_one() -> None:
    curve = identified(np.random.default_rng(2).random((40, 40)), np.arange(1, 41))
    assert np.all(np.diff(curve) >= 0)
    assert curve[-1] == 1.0


def test_the_interval_is_clopper_pearson() -> None:
    rng = np.random.default_rng(3)
    scores = rng.random((60, 60)) + 0.95 * np.eye(60)
    wrong = round(60 * (1 - identified(scores)[0]))
    assert 0 < wrong < 60
    expected = binomtest(wrong, 60).proportion_ci(0.9, method="exact")
    bound = identification_error(scores, confidence=0.9)
    assert (bound.lower, bound.upper) == pytest.approx((expected.low, expected.high))
    assert (bound.kind, bound.unit, bound.confidence) == ("estimate", "probability", 0.9)


def test_never_and_always_wrong() -> None:
    assert identification_error(np.eye(30)).lower == 0.0
    assert identification_error(-np.eye(30)).upper == 1.0


def test_bad_questions() -> None:
    with pytest.raises(InvalidInputError, match="`ties`"):
        identified(np.eye(3), ties="for")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="`tops` must be from 1 to n = 3"):
        identified(np.eye(3), [0])
    with pytest.raises(InvalidInputError, match="`tops`"):
        identified(np.eye(3), [4])
    with pytest.raises(InvalidInputError, match="`scores`"):
        identified([1, 2, 3])
