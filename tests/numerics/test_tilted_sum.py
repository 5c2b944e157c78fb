from __future__ import annotations

import math

import numpy as np
import pytest

from hushuffle.numerics import binomial
from hushuffle.numerics.tilted_sum import Steps, TiltedSum, moments


def law_by_convolution(groups: list[tuple[int, float, float]]) -> tuple[np.ndarray, int]:
    """Law of the sum and the value of its first entry."""
    law, start = np.array([1.0]), 0
    for count, plus, minus in groups:
        for _ in range(count):
            law = np.convolve(law, [minus, 1 - plus - minus, plus])
            start -= 1
    return law, start


@pytest.mark.parametrize("tilt", [0.05, 0.7, 3.0])
@pytest.mark.parametrize(
    "groups",
    [
        [(7, 0.3, 0.0), (4, 0.9, 0.0)],
        [(5, 0.2, 0.2), (3, 1 / 3, 1 / 3)],
        [(60, 0.01, 0.01), (10, 0.5, 0.5)],
        [(2, 1.0, 0.0), (9, 0.1, 0.4)],
        [(400, 0.25, 0.1)],
    ],
)
def test_points_and_tails_match_a_convolution(groups: list[tuple[int, float, float]], tilt: float) -> None:
    law, start = law_by_convolution(groups)
    values = np.arange(start, start + law.size)
    mean = float(values @ law)
    asked = np.unique(np.round(mean + np.linspace(-1, 4, 9) * math.sqrt(float((values - mean) ** 2 @ law)) + 0.0))
    asked = asked[(asked > start) & (asked < start + law.size)]
    asked = asked[:, None]
    steps = tuple(Steps(count=np.full_like(asked, count), plus=plus, minus=minus) for count, plus, minus in groups)
    tabulated = TiltedSum.of(steps, np.full_like(asked, tilt))
    for w0, w1, b in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.8, -0.3, 0.1)):
        value, error = (part[:, 0, 0] for part in tabulated.differences(asked, 1, (w0, w1), b, 0.0))
        for position, u in enumerate(asked[:, 0].astype(int)):
            at = u - start
            exact = w0 * law[at] + w1 * law[at - 1] - b * law[at + 1 :].sum()
            assert abs(value[position] - exact) <= error[position] + 1e-13 * (law[at] + law[at - 1] + law[at:].sum())


def test_moments_by_the_definition() -> None:
    groups = [(7, 0.3, 0.1), (4, 0.9, 0.0)]
    law, start = law_by_convolution(groups)
    values = np.arange(start, start + law.size)
    tilted = law * np.exp(0.4 * values)
    tilted /= tilted.sum()
    mean = float(values @ tilted)
    steps = tuple(Steps(count=np.array([[float(c)]]), plus=plus, minus=minus) for c, plus, minus in groups)
    found = moments(steps, np.array([[0.4]]))
    assert found[0][0, 0] == pytest.approx(mean, rel=1e-12)
    assert found[1][0, 0] == pytest.approx(float((values - mean) ** 2 @ tilted), rel=1e-12)


@pytest.mark.parametrize("n", [10**4, 10**6, 10**9])
def test_large_sums_match_binomial_tails(n: int) -> None:
    deviations = np.array([0.0, 2.0, 6.0, 11.0])
    spread = math.sqrt(n * 0.3 * 0.7)
    u = np.round(0.3 * n + deviations * spread)
    tabulated = TiltedSum.of(
        (Steps(count=np.full((4, 1), float(n)), plus=0.3),), np.maximum(deviations, 2.0)[:, None] / spread
    )
    value, error = (part[:, 0, 0] for part in tabulated.differences(u[:, None], 1, (0.0, 0.0), 1.0, 0.0))
    exact = binomial.upper_tail(u + 1, n, 0.3)
    assert np.all(np.abs(-value - exact) <= error + binomial.margin(n) * exact)
    assert np.all(error <= 1e-4 * exact)
