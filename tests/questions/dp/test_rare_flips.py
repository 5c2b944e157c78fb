"""Many bits that are hardly ever flipped: hardly anything is hidden, and every figure says so or refuses."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

import hushuffle as hs
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import HushuffleError
from oracles import cheap_truths as truths

ONCE_ZERO = [(30, 1e-11, 1), (35, 1e-9, 1), (32, 1e-10, 1), (28, 2e-12, 1000), (16, 2.0**-64, 1)]
"""Width, p and n whose composition was printed as 0, or at most 2e-300."""

CORNERS = [
    (2, 1e-12, 4),
    (5, 1e-16, 2),
    (8, 2.0**-64, 2),
    (12, 7.6e-10, 2),
    (26, 1.9e-15, 2),
    (30, 8e-12, 10),
    (30, 2.7e-6, 10),
    (40, 1.4e-4, 2),
    (50, 2e-4, 1000),
    (50, 5.5e-17, 1000),
    (62, 3.1e-18, 2),
]
"""Where floats overflowed, vanished or filled the memory."""


def columns(width: int, p: float, n: int, shuffler: Any = None) -> hs.Protocol:
    flips = hs.BitFlipping(width=width, p=p)
    return hs.Protocol(randomizer=flips, shuffler=shuffler or hs.UniformShuffle(), n=n)


def law_of(width: int, p: float) -> truths.Classes:
    return truths.flipped_bits(width, hs.BitFlipping(width=width, p=p).flip)


@pytest.mark.parametrize(("width", "p", "n"), ONCE_ZERO)
def test_two_rounds_hide_no_more_than_one(width: int, p: float, n: int) -> None:
    rounds = [columns(width, p, n)] * 2
    pure = rounds[0].randomizer.local_epsilon
    together, alone = hs.dp.compose(rounds, delta=1e-6), hs.dp.epsilon(rounds[0], delta=1e-6)
    assert 300 <= alone.lower <= together.lower
    assert pure < together.upper <= 2 * pure * (1 + 1e-9)
    assert together.kind == "bracket"
    least = float(truths.least_delta([law_of(width, p)], truths.growth_of(1.0), n - 1))
    assert least > 0.999
    joint = hs.dp.compose_delta(rounds, epsilon=1.0)
    assert joint.lower == pytest.approx(1)
    assert joint.upper >= least


@pytest.mark.parametrize(("width", "p"), [(10, 1e-17), (12, 1e-12), (7, 6e-20)])
def test_rounds_seen_with_their_senders(width: int, p: float) -> None:
    # Two rounds of so many bits are one round of twice as many.
    seen = columns(width, p, 1, hs.NoShuffle())
    for epsilon in (0.0, 1.0, 200.0):
        true = float(truths.local_delta([law_of(2 * width, p)], truths.growth_of(epsilon)))
        found = hs.dp.compose_delta([seen] * 2, epsilon=epsilon)
        assert found.lower * (1 - 1e-9) <= true <= found.upper
        assert found.lower > 0.999
    assert hs.dp.compose([seen] * 2, delta=1e-6).upper > 300


@pytest.mark.parametrize(
    ("width", "p", "n"),
    [
        *ONCE_ZERO,
        *(pytest.param(*corner, marks=pytest.mark.slow if corner[0] in {50, 62} else ()) for corner in CORNERS),
    ],
)
def test_one_round_lies_between_cheap_truths(width: int, p: float, n: int) -> None:
    protocol, law = columns(width, p, n), [law_of(width, p)]
    curve = privacy_curve(protocol)
    for epsilon in (0.0, min(300.0, 0.999 * curve.pure)):
        growth = truths.growth_of(epsilon)
        least, most = float(truths.least_delta(law, growth, n - 1)), float(truths.local_delta(law, growth))
        found = hs.dp.delta(protocol, epsilon=epsilon)
        assert least * (1 - 1e-9) - 1e-14 <= found.upper <= most * (1 + 1e-9) + 1e-14
        assert found.lower <= most * (1 + 1e-9)


@pytest.mark.parametrize(
    ("width", "p", "n"),
    [
        pytest.param(*corner, marks=() if place in {2, 4, 6, 9} else pytest.mark.slow)
        for place, corner in enumerate(CORNERS)
    ],
)
def test_a_bracket_and_no_foreign_error(width: int, p: float, n: int) -> None:
    found = hs.bloom.epsilon(filters=width, bits=n, p=p, delta=1e-6)
    assert 0 < found.lower <= found.upper <= columns(width, p, n).randomizer.local_epsilon * (1 + 1e-9)


def test_a_witness_of_wide_reports_is_short() -> None:
    found = hs.dp.delta(columns(50, 2e-17, 1000), epsilon=1.0)
    assert found.witness is not None
    assert sum(found.witness.others) == 999
    assert len(found.witness.others) <= 2**20


@pytest.mark.parametrize(
    ("rows", "n", "dummies"),
    [
        ([[0.32254178930667754, 0.6774582106933225], [1e-17, 1.0]], 2, 1),
        ([[1.0, 1e-19], [1e-19, 1.0]], 3, 1),
        ([[0.25, 0.025, 0.0, 0.725], [0.0, 1.0, 0.0, 0.0]], 3, 1),
    ],
)
def test_matrices_with_next_to_nothing_in_them(rows: list[list[float]], n: int, dummies: int) -> None:
    asked = hs.MatrixRandomizer(channel=hs.Channel(matrix=rows))
    protocol = hs.Protocol(randomizer=asked, shuffler=hs.Scrambler(dummies=dummies), n=n)
    most = truths.local_delta(truths.matrix(asked.channel().matrix.tolist()), truths.growth_of(15.0))
    found = hs.dp.delta(protocol, epsilon=15.0)
    assert 0 < found.lower <= found.upper <= float(most) * (1 + 1e-9)
    assert hs.dp.epsilon(protocol, delta=0.01).upper > 15


def test_local_hashing_with_hardly_any_noise() -> None:
    for family in ("binary", "affine"):
        hashing = hs.LocalHashing(k=2, g=2, epsilon=40.0, family=family)
        protocol = hs.Protocol(randomizer=hashing, shuffler=hs.Scrambler(dummies=1), n=2)
        found = hs.dp.delta(protocol, epsilon=27.0)
        assert 0 < found.lower <= found.upper < 1


def test_near_equal_rows_are_a_bracket() -> None:
    rows = [[0.3698250628594368, 0.6301749371405632], [0.3698251631675715, 0.6301748368324285]]
    asked = hs.MatrixRandomizer(channel=hs.Channel(matrix=rows))
    seen = hs.Protocol(randomizer=asked, shuffler=hs.NoShuffle(), n=1)
    epsilon = 2.7096003776236037e-07
    found = hs.dp.delta(seen, epsilon=epsilon)
    growth = Fraction(1) + Fraction(epsilon) + Fraction(epsilon) ** 2 / 2 + Fraction(epsilon) ** 3 / 6
    true = float(truths.local_delta(truths.matrix(asked.channel().matrix.tolist()), growth))
    assert found.kind == "bracket"
    assert found.lower <= true <= found.upper
    plain = hs.dp.delta(seen, epsilon=1e-8)
    assert plain.lower <= plain.upper


def test_hardly_any_pure_guarantee_is_a_bracket() -> None:
    found = hs.traffic.scrambler_epsilon(targets=2, sources=4, sigma=0.999999999, dummies=3, cap=4)
    assert found.kind == "bracket"
    assert found.lower <= 6.249999829097303e-10 <= found.upper


def test_no_certain_report_in_a_probability_that_vanishes() -> None:
    # p**62 is no float, but not 0.
    wide = columns(62, 2.0**-64, 2)
    assert privacy_curve(wide).certain == 0
    assert math.isfinite(hs.dp.compose([wide] * 2, delta=1e-6).upper)
    with pytest.raises(HushuffleError):
        hs.bloom.published_pair_epsilon(filters=62, bits=2, p=2.0**-64, delta=1e-6)
