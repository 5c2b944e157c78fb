from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from oracles.number_enumeration import report_law, response_channel, rounding_law


def released(laws: list[list[Fraction]]) -> dict[tuple[int, ...], Fraction]:
    """Law of the counts of reports."""
    found = {(0,) * len(laws[0]): Fraction(1)}
    for law in laws:
        after: dict[tuple[int, ...], Fraction] = {}
        for counts, chance in found.items():
            for y, share in enumerate(law):
                key = tuple(count + (place == y) for place, count in enumerate(counts))
                after[key] = after.get(key, Fraction(0)) + chance * share
        found = after
    return found


def divergence(numbers: list[Fraction], other: Fraction, growth: Fraction, truth: Fraction, levels: int) -> Fraction:
    """HS of the releases of `numbers` and of the same with `other` for the first."""
    channel = response_channel(levels, truth)
    laws = [report_law(rounding_law(number, Fraction(0), Fraction(1), levels), channel) for number in numbers]
    changed = report_law(rounding_law(other, Fraction(0), Fraction(1), levels), channel)
    first, second = released(laws), released([changed, *laws[1:]])
    return sum((max(first[key] - growth * second[key], Fraction(0)) for key in first), Fraction(0))


@pytest.mark.parametrize("growth", [Fraction(1), Fraction(6, 5), Fraction(2)])
@pytest.mark.parametrize("levels", [2, 3])
def test_numbers_between_levels_are_hidden_at_least_as_well(growth: Fraction, levels: int) -> None:
    truth, rng = Fraction(3, 5), np.random.default_rng(1)
    points = [Fraction(level, levels - 1) for level in range(levels)]
    most = max(
        divergence([a, *others], b, growth, truth, levels)
        for a in points
        for b in points
        for others in ([x, y] for x in points for y in points)
    )
    for _ in range(30):
        numbers = [Fraction(int(part), 12) for part in rng.integers(0, 13, size=4)]
        assert divergence(numbers[:3], numbers[3], growth, truth, levels) <= most


def test_figures_are_those_of_randomized_response_on_the_levels() -> None:
    rounded = hs.RoundedResponse(levels=6, epsilon=3.0, low=-1, high=4)
    plain = hs.RandomizedResponse(k=6, epsilon=3.0)
    protocols = [hs.Protocol(randomizer=each, shuffler=hs.UniformShuffle(), n=500) for each in (rounded, plain)]
    assert rounded.law() == plain.law()
    assert rounded.local_epsilon == plain.local_epsilon
    for question in (lambda p: hs.dp.epsilon(p, delta=1e-6), hs.qif.vulnerability, hs.pie.alpha):
        assert len({str(question(protocol)) for protocol in protocols}) == 1
    assert rounded.with_epsilon(2.0).epsilon == 2.0
    assert rounded.with_epsilon(2.0).grid == rounded.grid


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"levels": 1}, "`levels` must be an integer from 2 to 16384, got levels=1"),
        ({"levels": 2.5}, "`levels` must be an integer"),
        ({"epsilon": 0.0}, "`epsilon` must be > 0"),
        ({"epsilon": math.nan}, "`epsilon` must be > 0"),
        ({"high": 0.0}, "`high` must be above low = 0"),
    ],
)
def test_what_cannot_be_is_refused_by_name(changed: dict[str, float], message: str) -> None:
    arguments: dict[str, float] = {"levels": 5, "epsilon": 1.0, "low": 0.0, "high": 1.0, **changed}
    with pytest.raises(InvalidInputError, match=message):
        hs.RoundedResponse(**arguments)  # type: ignore[arg-type]


def test_a_report_supports_one_level() -> None:
    rounded = hs.RoundedResponse(levels=4, epsilon=1.0, low=0, high=1)
    assert rounded.supported(np.array([0, 3, 3])).tolist() == [1, 1, 1]
