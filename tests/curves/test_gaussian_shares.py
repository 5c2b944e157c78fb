"""What docs/theory/split-and-mix.md says of discrete Gaussian noise."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.numerics.roots import halved


@pytest.mark.parametrize("width", [0.4, 1.0, 2.0])
@pytest.mark.parametrize("shares", [2, 3])
def test_a_share_of_discrete_gaussian_noise_would_have_negative_chances(width: float, shares: int) -> None:
    places = np.arange(-512, 512)
    law = np.exp(-(places**2) / (2 * width**2))
    transformed = np.fft.fft(np.fft.ifftshift(law / law.sum())).real
    assert transformed.min() > 0  # so that there is one root that a symmetric law could have
    share = np.fft.ifft(transformed ** (1 / shares)).real
    assert share.sum() == pytest.approx(1)
    assert share.min() < -1e-7


@pytest.mark.parametrize("width", [0.5, 1.0])
def test_its_generating_function_has_simple_zeros(width: float) -> None:
    ratio = math.exp(-1 / (2 * width**2))
    places = np.arange(-60, 61)
    for power in (1, 3):
        zero = -(ratio**-power)
        terms = ratio ** (places.astype(float) ** 2) * zero**places
        slope = places * terms / zero
        assert abs(math.fsum(terms)) < 1e-12 * np.abs(terms).max()
        assert abs(math.fsum(slope)) > 1e-3 * np.abs(slope).max()


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
