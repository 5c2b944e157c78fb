"""Flipped columns in small crowds: pools of halves, against enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.laws import flipped_faces
from hushuffle.curves.laws.flipped_columns import FlippedColumns
from hushuffle.curves.laws.flipped_faces import Face, FacePools
from hushuffle.mechanisms.release import Release
from oracles import bloom_enumeration as oracle
from oracles.dp_enumeration import add_report, hockey_stick
from oracles.face_enumeration import faces_bound


def test_pools_of_halves_bound_every_dataset() -> None:
    """In rationals: two bits, up to four other columns, every pair of logos, pools of different sizes."""
    rng, closest = np.random.default_rng(4), 0.0
    for case in range(120):
        rows = oracle.channel(2, Fraction(int(rng.integers(1, 5)), 10))
        others = [int(z) for z in rng.integers(0, 4, size=int(rng.integers(0, 5 if case % 10 == 0 else 4)))]
        a, b = (int(z) for z in rng.choice(4, size=2, replace=False))
        growth = 1 + Fraction(int(rng.integers(0, 30)), 10)
        parts = [Fraction(int(rng.integers(1, 10)), 10) for _ in range(int(rng.integers(1, 4)))]
        bound = faces_bound(dict(enumerate(rows)), others, (rows[a], rows[b]), growth, parts)
        base = oracle.release(rows, others)
        first, second = (add_report(base, list(rows[value])) for value in (a, b))
        exact = Fraction(hockey_stick(first, second, growth))
        assert exact <= bound, (case, others, a, b)
        closest = max(closest, float(exact / bound) if bound else 0.0)


@pytest.mark.parametrize("sides", list(itertools.chain([()], [(0,), (1,)], [(0, 0), (0, 1), (1, 1)])))
@pytest.mark.parametrize("distance", [2, 3])
def test_laws_of_a_face_are_those_of_its_logos(sides: tuple[int, ...], distance: int) -> None:
    """Class by class: how likely a report is for a logo of the face outside all pools, and for the target's two."""
    width, flip = 3, Fraction(1, 5)
    rows = [[float(mass) for mass in law] for law in oracle.channel(width, flip)]
    face = Face.whole(width=width, flip=flip, distance=distance)
    inside = list(range(1 << width))
    taken = np.zeros(1 << width)
    for fixed in range(len(sides) + 1):
        if fixed:  # the last of the bits in which the pair differs
            face = face.half(sides[fixed - 1])
            inside = [logo for logo in inside if logo >> (distance - fixed) & 1 == sides[fixed - 1]]
        share = face.shares(50)[-1]
        face = face.without(share)
        for y in range(1 << width):
            bits = [y >> i & 1 for i in range(width)]
            free = distance - fixed
            taken[y] += share[(sum(bits[:free]), sum(bits[distance:]), *bits[free:distance][::-1])]
        assert all(taken[y] <= 0.8 * rows[z][y] * (1 + 1e-12) for z in inside for y in range(1 << width))
    kinds, rest = face.kinds(), 1 - taken.sum()
    assert face.rest == pytest.approx(rest, rel=1e-12)
    place, free = 0, distance - len(sides)
    for w, v in itertools.product(range(free + 1), range(width - distance + 1)):
        logo = sum(1 << i for i in range(w)) + sum(1 << distance + i for i in range(v))
        logo += sum(side << (distance - 1 - j) for j, side in enumerate(sides))
        expected: dict[tuple[float, ...], float] = {}
        for y in range(1 << width):
            own = (rows[logo][y] - taken[y]) / rest
            ratios = tuple(round(rows[z][y] / own, 9) for z in (0, (1 << distance) - 1))
            expected[ratios] = expected.get(ratios, 0.0) + own
        part = kinds.part(place)
        found: dict[tuple[float, ...], float] = {}
        for near, far, own in zip(part.near, part.far, part.own, strict=True):
            ratios = (round(near / own, 9), round(far / own, 9))
            found[ratios] = found.get(ratios, 0.0) + own
        assert found.keys() == expected.keys()
        assert all(found[key] == pytest.approx(expected[key], rel=1e-9) for key in found)
        place += 1
    assert place == kinds.starts.size


@pytest.mark.parametrize(("width", "n"), [(1, 4), (2, 1), (2, 3), (2, 4)])
def test_no_divergence_exceeds_the_bound(width: int, n: int) -> None:
    for tenths, growth in ((1, Fraction(3, 2)), (1, Fraction(6)), (3, Fraction(2))):
        worst = oracle.worst(width, n, Fraction(tenths, 10), growth)[0]
        pools = FacePools(width=width, flip=Fraction(tenths, 10), people=n - 1)
        assert float(worst) <= pools.upper(math.log(growth)) * (1 + 1e-12)


def test_no_divergence_exceeds_the_bound_by_cases_of_who_holds_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flipped_faces, "_HOMES", 1)
    monkeypatch.setattr(flipped_faces, "_FAR", math.inf)
    for n, growth in ((3, Fraction(3, 2)), (4, Fraction(2))):
        worst = float(oracle.worst(2, n, Fraction(1, 5), growth)[0])
        for level in (None, worst / 10, worst * 1.2):
            pools = FacePools(width=2, flip=Fraction(1, 5), people=n - 1, level=level)
            assert worst <= pools.upper(math.log(growth)) * (1 + 1e-12)


def test_cases_of_who_holds_most_only_lower_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    with_homes = FacePools(width=3, flip=Fraction(1, 10), people=999, level=1e-4).upper(2.06, (3,))
    monkeypatch.setattr(flipped_faces, "_HOMES", math.inf)
    without = FacePools(width=3, flip=Fraction(1, 10), people=999, level=1e-4).upper(2.06, (3,))
    assert 1e-5 < with_homes < without / 2


def test_halves_help_where_the_pool_of_all_logos_is_empty() -> None:
    for width, low, high in ((2, 1.09, 1.15), (3, 1.84, 2.05)):
        flipping = hs.BitFlipping(width=width, p=0.1)
        protocol = hs.Protocol(randomizer=flipping, shuffler=hs.UniformShuffle(), n=1000)
        assert hs.dp.delta(protocol, epsilon=low).lower > 1e-4 >= hs.dp.delta(protocol, epsilon=high).upper


def test_a_choice_made_elsewhere_is_a_bound_too() -> None:
    pools, fresh = (FacePools(width=2, flip=Fraction(1, 10), people=600) for _ in range(2))
    pools.upper(0.3)
    there, here = pools.upper(1.4), fresh.upper(1.4)
    truth = FlippedColumns.of(
        Release.of(hs.Protocol(randomizer=hs.BitFlipping(width=2, p=0.1), shuffler=hs.UniformShuffle(), n=601))
    ).lower(1.4)[0]
    assert truth <= min(there, here)
