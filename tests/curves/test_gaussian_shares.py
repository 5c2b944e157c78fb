"""Discrete Laplace noise of split and mix against Gaussian noise of the same guarantee."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest

import hushuffle as hs
from hushuffle.numerics.roots import halved


def gaussian_width(epsilon: float, delta: float) -> float:
    """The standard deviation of Gaussian noise for a sensitivity of 1 (Balle, Wang 2018)."""
    below = NormalDist().cdf

    def private(width: float) -> bool:
        near, far = 1 / (2 * width), epsilon * width
        return below(near - far) - math.exp(epsilon) * below(-near - far) <= delta

    return halved(private, good=1e4, bad=1e-3, times=60)


def test_gaussian_noise_is_wider_for_one_number_and_narrower_for_many() -> None:
    assert 3.8 < gaussian_width(1.0, 1e-9) / math.sqrt(2) < 4.2
    protocol = hs.SplitAndMix(low=0, high=1, n=10_000, epsilon=2.0, delta=1e-9, coordinates=1024)
    found = hs.dp.epsilon(protocol, delta=1e-9)
    wide = protocol.standard_error()
    assert wide / (math.sqrt(1024) * gaussian_width(found.upper, 1e-9)) == pytest.approx(math.sqrt(2), rel=0.05)
