from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from oracles.number_enumeration import square_wave_channel


@pytest.mark.parametrize(("bins", "width"), [(2, 0), (4, 1), (7, 2), (9, 3)])
@pytest.mark.parametrize("growth", [Fraction(3, 2), Fraction(4), Fraction(60)])
def test_the_channel_is_that_of_the_definition(bins: int, width: int, growth: Fraction) -> None:
    wave = hs.SquareWave(bins=bins, epsilon=math.log(growth), width=width)
    expected = np.array(square_wave_channel(bins, width, growth), dtype=np.float64)
    assert wave.channel().matrix == pytest.approx(expected, abs=1e-12)
    assert wave.local_epsilon == pytest.approx(math.log(growth), rel=1e-12)
    assert wave.local_epsilon <= math.log(growth) * (1 + 1e-15)


def test_the_implemented_epsilon_is_that_of_the_integers_rounded_up() -> None:
    wave = hs.SquareWave(bins=10, epsilon=2.0, width=2)
    told = Fraction(wave.threshold, 2**64)
    ratio = 1 + told / 5 / ((1 - told) / 14)
    assert math.exp(wave.local_epsilon) >= float(ratio) * (1 - 1e-15)
    assert wave.local_epsilon == pytest.approx(math.log(ratio), rel=1e-15)


def test_a_wave_of_no_width_is_randomized_response() -> None:
    wave, response = hs.SquareWave(bins=6, epsilon=1.3, width=0), hs.RandomizedResponse(k=6, epsilon=1.3)
    assert wave.channel().matrix == pytest.approx(response.channel().matrix, abs=1e-15)
    assert wave.local_epsilon == response.local_epsilon


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_the_width_maximizes_the_published_upper_end_of_the_information(epsilon: float) -> None:
    """Of a number in [0, 1]: the entropy of a uniform report less that of a report whose number is known."""
    growth, widths = math.exp(epsilon), np.linspace(0.001, 0.6, 4000)
    far = 1 / (2 * widths * growth + 1)
    known = -(2 * widths * growth * far * np.log(growth * far) + far * np.log(far))
    best = widths[int(np.argmax(np.log(1 + 2 * widths) - known))]
    assert hs.SquareWave.best_width(1000, epsilon) / 1000 == pytest.approx(best, abs=0.0015)


def test_hundreds_of_bins_have_a_law() -> None:
    wave = hs.SquareWave(bins=300, epsilon=1.0)
    assert wave.channel().matrix.shape == (300, wave.places)
    assert wave.layout.limits == (wave.places,)


def test_the_central_guarantee_is_a_narrow_bracket() -> None:
    survey = hs.Protocol(randomizer=hs.SquareWave(bins=8, epsilon=1.0), shuffler=hs.UniformShuffle(), n=10_000)
    found = hs.dp.epsilon(survey, delta=1e-6)
    assert 0.0366 < found.lower <= found.upper < 0.0369


def test_without_limits_no_wave_is_as_wide_as_all_bins() -> None:
    assert [hs.SquareWave(bins=10, epsilon=epsilon).width for epsilon in (1e-6, 1.0, 900.0, math.inf)] == [4, 2, 0, 0]
    assert hs.SquareWave(bins=2, epsilon=1.0).width == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bins": 1, "epsilon": 1.0}, "`bins` must be an integer from 2 to 2048, got bins=1"),
        ({"bins": 8, "epsilon": 0.0}, "`epsilon` must be > 0"),
        (
            {"bins": 8, "epsilon": 1e-30},
            r"`epsilon` must be large enough that a report depends on the value at bins=8",
        ),
        ({"bins": 8, "epsilon": 1.0, "width": 4}, "`width` must be an integer from 0 to 3, got width=4"),
    ],
)
def test_what_cannot_be_is_refused_by_name(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.SquareWave(**arguments)  # type: ignore[arg-type]


def test_its_law_knows_how_often_a_near_place_is_told_on_purpose() -> None:
    wave = hs.SquareWave.from_settings(9, {"epsilon": 1.0, "width": 2})
    assert wave.law().told == Fraction(wave.threshold, 2**64)
    assert wave.law().blanket().weight == pytest.approx(1 - float(wave.law().told))
