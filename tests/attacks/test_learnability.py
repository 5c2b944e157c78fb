"""Local distributions and lambda against plain loops; the learners on data with a known answer."""

from __future__ import annotations

import importlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hushuffle.attacks.inference import accuracy, learned_shares, local_shares, relative_error, without_noise
from hushuffle.errors import InvalidInputError, MissingDependencyError, NumericalError
from hushuffle.model.groups import Groups
from oracles import order_attack


def test_local_shares_against_loops() -> None:
    rng = np.random.default_rng(1)
    for k in (2, 5):
        rows = [np.union1d([i], rng.choice(12, 4, replace=False)) for i in range(12)]
        values = rng.integers(0, k, 12)
        truth = order_attack.local_shares(values.tolist(), [row.tolist() for row in rows], k)
        assert np.allclose(local_shares(values, Groups.of(rows, n=12), k=k), np.array(truth, dtype=float))


def test_relative_error_against_loops() -> None:
    rng = np.random.default_rng(2)
    for k in (2, 3, 4):
        counts = rng.integers(1, 9, (2, 5, k))
        learned, local = ([[Fraction(int(c), int(row.sum())) for c in row] for row in part] for part in counts)
        exact = order_attack.relative_error(learned, local)
        assert relative_error(np.array(learned, dtype=float), np.array(local, dtype=float)) == pytest.approx(
            float(exact)
        )


def test_without_noise_inverts_the_channel() -> None:
    rng = np.random.default_rng(3)
    true = rng.dirichlet(np.ones(4), 6)
    noisy = 0.1 + 0.6 * true
    assert np.allclose(without_noise(noisy, truth=0.7, lie=0.1), true)
    for truth, lie in ((0.1, 0.1), (0.1, 0.2)):
        with pytest.raises(InvalidInputError, match="truth"):
            without_noise(noisy, truth=truth, lie=lie)


def test_learned_shares_find_local_shares_even_when_people_come_sorted() -> None:
    rng = np.random.default_rng(4)
    places = np.repeat(np.arange(6.0), 400)[:, np.newaxis]
    shares = np.linspace(0.1, 0.9, 6)
    reports = (rng.random(2400) < np.repeat(shares, 400)).astype(int) * 2  # value 1 is never reported
    learned = learned_shares(places, reports, k=3)
    assert np.allclose(learned.sum(axis=1), 1)
    assert np.all(learned[:, 1] == 0)
    # 400 reports: 0.12 is five standard deviations and more, calibration included.
    assert np.abs(learned[::400, 2] - shares).max() < 0.12
    same = learned_shares(places, reports, k=3)
    assert np.array_equal(learned, same)


def test_accuracy_of_separate_classes_of_one_class_and_of_noise() -> None:
    rng = np.random.default_rng(5)
    places, new = rng.random((600, 2)), rng.random((500, 2))
    labels, truth = (places[:, 0] > 0.5).astype(int), (new[:, 0] > 0.5).astype(int)
    assert accuracy(places, labels, at=new, truth=truth) > 0.97
    assert accuracy(places, np.ones(600, dtype=int), at=new, truth=truth) == truth.mean()
    # Labels that say nothing: 500 guesses, 0.125 is exceeded with probability 2 exp(-2 * 500 * 0.125**2) < 4e-7.
    assert abs(accuracy(places, rng.permutation(labels), at=new, truth=rng.integers(0, 2, 500)) - 0.5) < 0.125


def test_what_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="near"):
        local_shares([0, 1], Groups.of([[0, 1]], n=2), k=2)
    with pytest.raises(InvalidInputError, match="near"):
        local_shares([0, 1, 1], Groups.of([[0, 1], [0, 1]]), k=2)
    for reports in ([0, 0, 0, 0], [0, 0, 0, 1, 1]):
        with pytest.raises(NumericalError, match="3 or more reports each"):
            learned_shares(np.zeros((len(reports), 1)), reports, k=2)
    for features in (np.zeros(4), np.zeros((3, 1))):
        with pytest.raises(InvalidInputError, match="features"):
            learned_shares(features, [0, 0, 1, 1], k=2)
    with pytest.raises(InvalidInputError, match="one shape"):
        relative_error([[0.5, 0.5]], [0.5, 0.5])
    with pytest.raises(InvalidInputError, match="not uniform"):
        relative_error([[1.0, 0.0]], [[0.5, 0.5]])


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> Any:
        raise ImportError

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingDependencyError, match=r"hushuffle\[attacks\]"):
        accuracy([[0.0], [1.0]], [0, 1], at=[[0.0]], truth=[0])
