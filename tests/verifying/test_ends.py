"""What the checker computes lies on the right side of enumerations in rational numbers."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx

from oracles import dp_enumeration, finite_enumeration
from shuffle_certificate import coins
from shuffle_certificate.ends import Law, ball, blanket_above, pair_below
from shuffle_certificate.few import MOST, FewAbove, FewBelow
from shuffle_certificate.pool import Pool
from shuffle_certificate.response import Response

F = Fraction
ROWS = (
    [[F(7, 10), F(2, 10), F(1, 10)], [F(1, 10), F(8, 10), F(1, 10)], [F(3, 10), F(3, 10), F(4, 10)]],
    [[F(3, 4), F(1, 4), F(0)], [F(1, 4), F(1, 2), F(1, 4)]],
)
GROWTHS = (F(1), F(5, 4), F(2))
HAIR = F(1, 10**20)


@pytest.fixture(autouse=True)
def precision() -> None:
    ctx.prec = 128


def exactly(value: arb) -> tuple[Fraction, Fraction]:
    """Return the ends of a ball."""
    middle, radius = (F(int(m)) * F(2) ** int(e) for m, e in (value.mid().man_exp(), value.rad().man_exp()))
    return middle - radius, middle + radius


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("n", "dummies"), [(1, 2), (3, 0), (3, 1)])
def test_ends_of_any_matrix_hold(rows: list[list[Fraction]], n: int, dummies: int, growth: Fraction) -> None:
    common = [min(column) for column in zip(*rows, strict=True)]
    dummy = finite_enumeration.blanket_of(rows)[1]
    worst: dict[tuple[int, int], Fraction] = {}
    for delta, others, pair in finite_enumeration.every_delta(rows, n, growth, dummies):
        worst[pair] = max(worst.get(pair, F(0)), F(delta))
        laws = rows[pair[0]], rows[pair[1]]
        known: list[tuple[int, Law]] = [(count, rows[x]) for x, count in enumerate(others) if count]
        known += [(dummies, [F(mass) for mass in dummy])] * bool(dummies)
        exact = exactly(FewBelow(laws, known)(ball(growth)))
        assert exact[0] <= delta <= exact[1] + HAIR
        for lift in (0.0, 0.5, -3.0):
            assert exactly(pair_below(laws, known, ball(growth), fineness=5, lift=lift))[0] <= delta
    for pair, delta in worst.items():
        laws = rows[pair[0]], rows[pair[1]]
        few = FewAbove(laws, common, people=n - 1, dummies=dummies)
        assert few.counts < MOST
        least = exactly(few(ball(growth)))
        assert least[1] >= delta
        smooth = blanket_above(laws, common, ball(growth), people=n - 1, dummies=dummies, fineness=20)
        assert float(least[0]) - 1e-12 <= float(smooth.upper()) <= float(least[1]) * 1.1 + 1e-3


@pytest.mark.parametrize("growth", [F(9, 8), F(3, 2)])
@pytest.mark.parametrize(("n", "dummies"), [(6, 0), (5, 2)])
def test_the_pool_holds_for_every_dataset(n: int, dummies: int, growth: Fraction) -> None:
    chance = random.Random(3)  # noqa: S311
    for _ in range(2):
        counts = [[chance.randint(2, 9) for _ in range(3)] for _ in range(2)]
        rows = [[F(count, sum(row)) for count in row] for row in counts]
        common = [min(column) for column in zip(*rows, strict=True)]
        dummy = [F(mass) for mass in finite_enumeration.blanket_of(rows)[1]]
        truth = dict.fromkeys([(0, 1), (1, 0)], F(0))
        for delta, _, pair in finite_enumeration.every_delta(rows, n, growth, dummies):
            truth[pair] = max(truth[pair], F(delta))
        for pair, delta in truth.items():
            pool = Pool((rows[pair[0]], rows[pair[1]]), rows, common, n - 1, dummies, dummy)
            for found in (
                pool.above(ball(growth), float(delta), fineness=10, spare=1.0),
                pool.sliced(ball(growth), float(delta), fineness=10),
                pool.sliced(ball(growth), 0.9, fineness=10),
            ):
                assert not found.is_finite() or exactly(found)[1] >= delta


@pytest.mark.parametrize("dummies", [0, 3])
@pytest.mark.parametrize("truth", [F(3, 4), F(99, 100)])
def test_two_values_are_exact(truth: Fraction, dummies: int) -> None:
    n = 6
    rows = dp_enumeration.channel(2, truth)
    for ones, growth in itertools.product(range(n), (F(1), F(11, 10), F(5, 2))):
        known = dp_enumeration.counts_law((n - 1 - ones, ones), rows, dummies)
        pair = (dp_enumeration.add_report(known, rows[1]), dp_enumeration.add_report(known, rows[0]))
        group = [(ones, truth), (n - 1 - ones, 1 - truth), (dummies, F(1, 2))]
        low, high = exactly(coins.divergence(group, truth, ball(growth)))
        assert low <= F(dp_enumeration.hockey_stick(*pair, growth)) <= high
        assert high - low < F(1, 10**12)


@pytest.mark.parametrize("people", [0, 1, 6, 75])
@pytest.mark.parametrize("growth", [F(21, 20), F(2)])
def test_no_composition_is_above_the_largest(people: int, growth: Fraction) -> None:
    def at(ones: int, zeros: int) -> Any:
        return coins.divergence([(ones, F(3, 4)), (zeros, F(1, 4)), (2, F(1, 2))], F(3, 4), ball(growth))

    worst = max(exactly(at(ones, people - ones))[0] for ones in range(people + 1))
    assert worst <= exactly(coins.largest(people, at, None))[1] <= worst + HAIR
    for level in (worst * F(101, 100), F(1)):
        assert worst <= exactly(coins.largest(people, at, ball(level)))[1] <= max(level, exactly(at(0, 0))[1])


@pytest.mark.parametrize("growth", [F(11, 10), F(2)])
@pytest.mark.parametrize(("n", "dummies"), [(1, 0), (4, 0), (3, 2)])
def test_randomized_response_holds(n: int, dummies: int, growth: Fraction) -> None:
    k, truth = 4, F(1, 2)
    response = Response(k=k, truth=truth, people=n - 1, dummies=dummies)
    worst = F(dp_enumeration.worst_delta(n, k, truth, growth, dummies))
    assert exactly(response.above(ball(growth)))[1] >= worst
    rows = dp_enumeration.channel(k, truth)
    for held, third, swapped in ((2, True, False), (0, False, False), (0, False, True)):
        known = dp_enumeration.counts_law(tuple((n - 1) * (x == held) for x in range(k)), rows, dummies)
        pair = [dp_enumeration.add_report(known, rows[x]) for x in ((1, 0) if swapped else (0, 1))]
        truly = F(dp_enumeration.hockey_stick(pair[0], pair[1], growth))
        low = exactly(response.below(ball(growth), third=third, swapped=swapped))[0]
        assert low <= truly + HAIR
        assert truly - low < F(1, 10**12)
