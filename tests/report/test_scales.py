from __future__ import annotations

import math

import pytest

from hushuffle.report.scales import Scale, drawable, scale, tick


def test_what_has_a_place_on_an_axis() -> None:
    assert drawable(0.0, log=False)
    assert not drawable(0.0, log=True)
    assert not drawable(math.inf, log=False)
    assert not drawable(math.nan, log=False)


def test_no_axis_without_a_drawable_value() -> None:
    assert scale([math.inf], log=False) is None
    assert scale([0.0, -1.0], log=True) is None


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("values", [[3.0], [1.0, 2.0], [1e-9, 1e9], [0.5, 0.52], [1e-300]])
def test_every_drawable_value_lies_on_an_axis_of_positive_length(values: list[float], tight: bool, log: bool) -> None:
    axis = scale([*values, math.inf], log=log, tight=tight)
    assert axis is not None
    assert axis.low < axis.high
    for value in values:
        assert 0 <= axis.share(value) <= 1
        assert axis.clip(value) == value
    assert axis.clip(math.inf) == axis.high
    assert axis.clip(-math.inf) == axis.low


def test_linear_axes_start_at_zero_unless_that_wastes_half() -> None:
    assert scale([0.4, 1.0], log=False) == Scale(low=0.0, high=1.05, log=False)
    high = scale([0.6, 1.0], log=False)
    assert high is not None
    assert 0.5 < high.low < 0.6
    negative = scale([-1.0, 1.0], log=False)
    assert negative is not None
    assert negative.low < -1


def test_a_single_zero_gets_an_axis() -> None:
    assert scale([0.0], log=False) == Scale(low=-0.55, high=0.55, log=False)


def test_ticks_of_logarithmic_axes() -> None:
    assert Scale(low=100.0, high=1e6, log=True).ticks(6) == [100.0, 1e3, 1e4, 1e5, 1e6]
    assert Scale(low=2.0, high=21.0, log=True).ticks(6) == [2.0, 5.0, 10.0, 20.0]
    assert Scale(low=1e-6, high=1e-5, log=True).ticks(6)[0] == 1e-6
    assert len(Scale(low=1e-40, high=1.0, log=True).ticks(6)) <= 7
    assert Scale(low=3.0, high=4.0, log=True).ticks(6) == [3.0, 3.2, 3.4, 3.6, 3.8, 4.0]
    assert Scale(low=0.015, high=0.65, log=True).ticks(6) == [0.02, 0.05, 0.1, 0.2, 0.5]


def test_ticks_of_other_axes_are_round() -> None:
    assert Scale(low=0.0, high=4.0, log=False).ticks(6) == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    "axis",
    [
        Scale(low=0.0, high=120_000.0, log=False),
        Scale(low=10_000.0, high=18_500.0, log=False),
        Scale(low=1e-12, high=3e4, log=True),
        Scale(low=99_990.0, high=100_010.0, log=True),
        Scale(low=0.52111, high=0.52117, log=False),
    ],
)
def test_labels_stand_clear_of_each_other(axis: Scale) -> None:
    ticks = axis.labelled(300, 8, 6)
    half = [len(tick(value)) * 8 / 2 for value in ticks]
    places = [300 * axis.share(value) for value in ticks]
    assert len(ticks) >= 2
    for left, right, a, b in zip(places, places[1:], half, half[1:], strict=False):
        assert left + a < right - b
