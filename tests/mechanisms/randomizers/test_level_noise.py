from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError

BOTH = (hs.DiscreteLaplace, hs.RoundedGaussian)


@pytest.mark.parametrize("levels", [2, 3, 7, 20])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_discrete_laplace_is_a_two_sided_geometric_number_moved_inside(levels: int, epsilon: float) -> None:
    """Against the law on all integers, summed beyond the ends."""
    matrix = hs.DiscreteLaplace(levels=levels, epsilon=epsilon).channel().matrix
    alpha, reach = math.exp(-epsilon / (levels - 1)), int(40 * levels / epsilon) + levels
    for x in range(levels):
        law = np.zeros(levels)
        for z in range(-reach, reach + 1):
            law[min(max(x + z, 0), levels - 1)] += (1 - alpha) / (1 + alpha) * alpha ** abs(z)
        assert matrix[x] == pytest.approx(law, abs=1e-12)


@pytest.mark.parametrize("levels", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_a_rounded_gaussian_is_a_normal_number_rounded_and_moved_inside(levels: int, epsilon: float) -> None:
    """Against normal tails, by the complementary error function."""
    noise = hs.RoundedGaussian(levels=levels, epsilon=epsilon)

    def above(edge: float) -> float:
        return 0.5 * math.erfc(edge / noise.sigma / math.sqrt(2))

    for x, row in enumerate(noise.channel().matrix.tolist()):
        edges = [above(y - 0.5 - x) for y in range(1, levels)]
        law = np.array([1.0, *edges]) - np.array([*edges, 0.0])
        assert row == pytest.approx(law.tolist(), abs=1e-12)


@pytest.mark.parametrize("noise", BOTH)
@pytest.mark.parametrize(("levels", "epsilon"), [(2, 0.001), (2, 40.0), (5, 0.3), (64, 3.0), (30, 12.0), (9, 40.0)])
def test_it_is_never_less_private_than_asked_and_hardly_more(noise: type, levels: int, epsilon: float) -> None:
    made = noise(levels=levels, epsilon=epsilon)
    assert made.local_epsilon <= epsilon
    assert made.local_epsilon == pytest.approx(epsilon, rel=1e-4 if epsilon < 39 else 0.01)


def test_neighbouring_levels_are_told_apart_by_a_step_of_epsilon() -> None:
    matrix = hs.DiscreteLaplace(levels=9, epsilon=4.0).channel().matrix
    assert np.abs(np.diff(np.log(matrix), axis=0)).max() == pytest.approx(0.5, rel=1e-9)


def test_central_guarantees_are_narrow_brackets() -> None:
    for noise in BOTH:
        survey = hs.Protocol(randomizer=noise(levels=6, epsilon=2.0), shuffler=hs.UniformShuffle(), n=20_000)
        found = hs.dp.epsilon(survey, delta=1e-6)
        assert 0.0 < found.lower <= found.upper < 1.02 * found.lower


@pytest.mark.parametrize("noise", BOTH)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"levels": 129}, "`levels` must be an integer from 2 to 128, got levels=129"),
        ({"epsilon": math.inf}, "`epsilon` must be finite and > 0, got epsilon=inf. Without noise"),
        ({"epsilon": 41.0}, "`epsilon` must be from 0.001 to 40, got epsilon=41.0"),
        ({"epsilon": 1e-4}, "`epsilon` must be from 0.001 to 40, got epsilon=0.0001. Reports would not depend"),
    ],
)
def test_what_cannot_be_is_refused_by_name(noise: type, changed: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        noise(**{"levels": 5, "epsilon": 1.0, **changed})


@pytest.mark.parametrize("noise", BOTH)
def test_a_specification_says_the_levels_and_reports_are_levels(noise: Any) -> None:
    made = noise.from_settings(7, {"epsilon": 1.5})
    assert made == noise(levels=7, epsilon=1.5)
    assert made.layout.limits == (7,)
