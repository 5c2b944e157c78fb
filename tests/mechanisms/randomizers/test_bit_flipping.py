from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import BitFlipping
from hushuffle.randomness import SCALE


@pytest.mark.parametrize("p", [1e-19, 0.1, 0.25, 1 / 3, 0.4999999999999999])
@pytest.mark.parametrize("width", [1, 3, 62])
def test_the_implemented_p_is_never_below_the_one_asked_for(width: int, p: float) -> None:
    randomizer = BitFlipping(width=width, p=p)
    assert Fraction(p) <= randomizer.flip < Fraction(p) + Fraction(1, SCALE)
    with mpmath.workdps(100):
        flip = mpmath.mpf(randomizer.threshold) / SCALE
        exact = width * mpmath.log((1 - flip) / flip)
        assert 0 <= mpmath.mpf(randomizer.local_epsilon) - exact <= 3e-16 * exact + mpmath.mpf(10) ** -45


def test_channel_by_hamming_distance() -> None:
    matrix, q = BitFlipping(width=3, p=0.1).channel().matrix, 0.9
    for x in range(8):
        for y in range(8):
            distance = (x ^ y).bit_count()
            assert matrix[x, y] == pytest.approx(0.1**distance * q ** (3 - distance), rel=1e-12)


def test_value_laws_are_the_channel_by_classes() -> None:
    randomizer = BitFlipping(width=4, p=0.2)
    matrix = randomizer.channel().matrix
    for h, law in enumerate(randomizer.law().pairs(), start=1):
        near, far = (1 << h) - 1, 15 ^ ((1 << h) - 1)
        place = [(y & near).bit_count() * (5 - h) + (y & far).bit_count() for y in range(16)]
        for row, label in zip(law.rows, law.labels, strict=True):
            assert row == pytest.approx(np.bincount(place, weights=matrix[label], minlength=row.size), rel=1e-12)
        assert [law.labels[r] for r in law.pairs[0]] == [0, near]
        assert law.blanket == pytest.approx(np.bincount(place, minlength=law.blanket.size) / 16, rel=1e-12)
        assert law.weight == pytest.approx(0.4**4)


def test_long_inputs_and_wide_logos() -> None:
    n = 3 * (1 << 16) + 5
    reports = BitFlipping(width=2, p=0.2).randomize(np.full(n, 3), rng=hs.reproducible(1))
    assert abs((reports == 3).mean() - 0.64) < 5.4 * math.sqrt(0.64 * 0.36 / n)  # 7e-8, two-sided
    wide = BitFlipping(width=62, p=0.3)
    assert wide.randomize([2**62 - 1], rng=hs.reproducible(1)).dtype == np.int64
    for law in (wide.channel, wide.law().blanket):
        with pytest.raises(UnsupportedProtocolError, match="reports with 62 bits"):
            law()


@pytest.mark.parametrize(
    ("width", "p", "message"),
    [
        (0, 0.1, r"`width` must be an integer from 1 to 62, got width=0"),
        (63, 0.1, r"`width` must be"),
        (3, 0.0, r"`p` must be in \(0, 1\], got p=0.0"),
        (3, 0.5, r"`p` must be < 1/2, got p=0.5. At p = 1/2, reports are independent of values."),
        (3, 0.7, r"`p` must be < 1/2"),
        (3, math.nan, r"`p` must be"),
    ],
)
def test_bad_parameters(width: int, p: float, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        BitFlipping(width=width, p=p)
