from __future__ import annotations

import math
import time

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.questions import pse
from oracles.pse_neighbours import divergence_by_integration, divergence_of_pairs


def test_equals_the_estimate_over_all_pairs() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        n, m, k = int(rng.integers(2, 40)), int(rng.integers(1, 60)), int(rng.integers(1, 6))
        if n <= k or m < k:
            continue
        genuine, impostor = rng.normal(rng.uniform(0, 8), 1, n), rng.standard_t(2, m)
        expected = divergence_of_pairs(genuine.tolist(), impostor.tolist(), k)
        assert pse.knn_divergence(genuine, impostor, k) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_ties_that_leave_a_distance_are_fine() -> None:
    genuine, impostor = [1.0, 1.0, 2.0, 4.0], [0.0, 0.0, 5.0, 1.5]
    assert pse.knn_divergence(genuine, impostor, 2) == pytest.approx(divergence_of_pairs(genuine, impostor, 2))


def test_scale_and_place_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    genuine, impostor = rng.normal(1, 1, 500), rng.normal(0, 2, 700)
    assert pse.knn_divergence(3 - 5 * genuine, 3 - 5 * impostor) == pytest.approx(pse.knn_divergence(genuine, impostor))


@pytest.mark.parametrize(("genuine", "impostor"), [((1.0, 1.0), (0.0, 1.0)), ((0.3, 0.5), (0.0, 1.0))])
@pytest.mark.parametrize("k", [1, 4])
def test_converges_to_the_divergence_of_normal_laws(
    genuine: tuple[float, float], impostor: tuple[float, float], k: int
) -> None:
    """The estimate's standard deviation was measured as 0.0055 bits at most: 0.04 is above six of them (1e-9)."""
    rng = np.random.default_rng(3)
    expected = pse.gaussian_divergence(genuine, impostor)
    assert expected == pytest.approx(divergence_by_integration(genuine, impostor), abs=1e-9)
    estimate = pse.knn_divergence(rng.normal(*genuine, 200_000), rng.normal(*impostor, 400_000), k)
    assert estimate == pytest.approx(expected, abs=0.04)


def test_repeated_scores_are_refused_with_advice() -> None:
    message = r"Of 3 genuine scores, 2 have at least 1 others, and 1 at least 1 impostor scores, at distance 0"
    with pytest.raises(NumericalError, match=message) as caught:
        pse.knn_divergence([7, 7, 8], [8, 9, 3])
    assert "resolution=h" in str(caught.value)
    assert "pse.plug_in" in str(caught.value)


@pytest.mark.parametrize(
    ("genuine", "impostor", "k"),
    [([1.0], [2.0], 1), ([1.0, 2.0], [], 1), ([1.0, 2.0], [3.0], 2), ([1.0, 2.0], [3.0], 0)],
)
def test_too_few_scores(genuine: list[float], impostor: list[float], k: int) -> None:
    with pytest.raises(InvalidInputError):
        pse.knn_divergence(genuine, impostor, k)


@pytest.mark.parametrize("wrong", [[[1.0, 2.0]], [1.0, math.nan], [1.0, math.inf], ["a", "b"]])
def test_no_scores(wrong: list[object]) -> None:
    with pytest.raises(InvalidInputError, match="`impostor` must be a one-dimensional array of finite numbers"):
        pse.knn_divergence([1.0, 2.0], np.asarray(wrong))


def test_takes_a_few_sorts() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.random(10**6)
    genuine, impostor = rng.normal(1, 1, 140_000), rng.normal(0, 1, 140_000)
    sorting, estimating = [], []
    for _ in range(3):
        start = time.process_time()
        np.sort(numbers)
        middle = time.process_time()
        pse.knn_divergence(genuine, impostor)
        sorting.append(middle - start)
        estimating.append(time.process_time() - middle)
    assert min(estimating) < 6 * min(sorting)  # measured 1.4
