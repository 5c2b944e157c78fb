"""The Gaussian process attack on data with a known answer."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError, MissingDependencyError
from hushuffle_papers.meehan2022.map import smoothed_guess


def test_noise_on_a_smooth_map_is_read_through() -> None:
    rng = np.random.default_rng(1)
    places = rng.random((200, 2))
    values = (places[:, 0] > 0.5).astype(int) + 2 * (places[:, 1] > 0.5)
    noisy = np.where(rng.random(200) < 0.7, values, rng.integers(0, 4, 200))
    guess = smoothed_guess(places, noisy, k=5)
    assert np.mean(noisy == values) < 0.85
    assert np.mean(guess == values) > 0.93


def test_values_that_do_not_depend_on_the_place_leave_a_blind_guess() -> None:
    rng = np.random.default_rng(2)
    values = (rng.random(150) < 0.2).astype(int)
    guess = smoothed_guess(rng.random((150, 1)), values, k=2)
    assert np.mean(guess == 0) > 0.9


def test_everybody_in_one_place() -> None:
    assert smoothed_guess(np.zeros((5, 1)), [0, 1, 1, 1, 0], k=2).tolist() == [1] * 5


def test_what_is_refused() -> None:
    for places in (np.zeros(3), np.zeros((2, 1))):
        with pytest.raises(InvalidInputError, match="points"):
            smoothed_guess(places, [0, 1, 1], k=2)
    with pytest.raises(InvalidInputError, match="4,000"):
        smoothed_guess(np.zeros((4001, 1)), np.zeros(4001, dtype=int), k=2)


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> Any:
        raise ImportError

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingDependencyError, match=r"hushuffle\[attacks\]"):
        smoothed_guess([[0.0], [1.0]], [0, 1], k=2)
