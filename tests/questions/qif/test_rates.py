"""The rate at which a truthful target is guessed: torus, one value, blanket, against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from hushuffle.errors import NumericalError
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.numerics.max_load import expected_max_ratio
from hushuffle.questions.qif import blanket, many
from hushuffle.questions.qif.knowledge import Knowledge
from oracles.qif_guessing import channel, success, worst_success


def symmetric(k: int, truth: Fraction) -> Symmetric:
    return Symmetric(k=k, truth=truth, lie=(1 - truth) / (k - 1))


def exact_rate(known: tuple[int, ...], unknown: int, law: Symmetric) -> Fraction:
    """G = (V - nu)/theta from the enumerated V."""
    people = [*[value for value, count in enumerate(known) for _ in range(count)], *[None] * unknown]
    return (success(people, channel(law.k, law.truth)) - law.lie) / law.theta


LAWS = [
    symmetric(2, Fraction(3, 4)),
    symmetric(3, Fraction(4, 5)),
    symmetric(3, Fraction(2, 5)),
    symmetric(4, Fraction(1)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("m", range(4))
@pytest.mark.parametrize("unknown", range(3))
def test_torus_equals_enumeration(m: int, unknown: int, law: Symmetric) -> None:
    for values in combinations_with_replacement(range(law.k), m):
        known = tuple(values.count(value) for value in range(law.k))
        truth = exact_rate(known, unknown, law)
        assert abs(Fraction(many.guess_rate(known, unknown, law)) / truth - 1) < 1e-14
        for axes in ([0], [law.k - 1]):
            assert many.guess_rate(known, unknown, law, axes=axes) <= truth + Fraction(1, 10**14)


def test_torus_narrower_than_the_range_equals_one_value() -> None:
    """At 3,000 people the torus holds a window of the counts only: two methods that share no code."""
    for truth in (Fraction(2, 5), Fraction(9, 10)):
        law = symmetric(3, truth)
        window = many.guess_rate((0, 3000, 0), 0, law)
        assert window == pytest.approx(blanket.one_value_rate(3000, law), rel=1e-13)


@pytest.mark.parametrize("lie", [Fraction(1, 10**4), Fraction(1, 10**8)])
def test_hardly_any_noise(lie: Fraction) -> None:
    """Where 1 - mu is tiny nothing may depend on it through 1 - float(mu)."""
    law = Symmetric(k=3, truth=1 - 2 * lie, lie=lie)
    rate = blanket.one_value_rate(20_000, law)
    assert blanket._three(20_001, law) / 3 == pytest.approx(rate, rel=1e-13)
    assert many.guess_rate((0, 0, 20_000), 0, law) == pytest.approx(rate, rel=1e-13)
    assert many.guess_rate((0, 0, 20_000), 0, law, axes=[2, 0]) == pytest.approx(rate, rel=1e-13)
    few = Symmetric(k=4, truth=1 - 3 * lie, lie=lie)
    exact = exact_rate((4, 0, 0, 0), 0, few)
    assert abs(Fraction(blanket.one_value_rate(4, few)) / exact - 1) < 1e-14


@pytest.mark.parametrize("k", [4, 7])
def test_the_ways_meet_where_one_hands_over(k: int) -> None:
    """(k - 1) n nu = 1/2: the sum over reports elsewhere and the general method."""
    n = 5_000
    lie = Fraction(1, 2 * (k - 1) * n)
    law = Symmetric(k=k, truth=1 - (k - 1) * lie, lie=lie)
    general = expected_max_ratio(n, blanket.classes(law))
    assert blanket._hardly_any_noise(n, law) == pytest.approx(general, rel=1e-12)


def test_torus_refuses_by_the_number_of_cells() -> None:
    law = symmetric(4, Fraction(1, 2))
    assert many.cells_needed((5, 0, 0, 0), 0, law) < many.CELLS_LIMIT
    assert many.cells_needed((10**6, 0, 0, 0), 0, law) == float("inf")
    assert many.affordable_axes((10**6, 0, 0, 0), 0, law, limit=10) == []
    assert many.affordable_axes((10**3, 0, 0, 0), 0, law, limit=10**6) == [1, 2]


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("truth", [Fraction(3, 5), Fraction(9, 10)])
@pytest.mark.parametrize("m", range(1, 5))
def test_one_value_equals_enumeration(m: int, k: int, truth: Fraction) -> None:
    law = symmetric(k, truth)
    exact = exact_rate((m, *[0] * (k - 1)), 0, law)
    assert abs(Fraction(blanket.one_value_rate(m, law)) / exact - 1) < 1e-13


@pytest.mark.parametrize("n", [2, 7, 100, 5_000])
def test_three_values_have_two_ways(n: int) -> None:
    """The general method and the sum over fair coins."""
    law = symmetric(3, Fraction(7, 10))
    general = expected_max_ratio(n, blanket.classes(law)) / 3
    assert blanket.one_value_rate(n - 1, law) == pytest.approx(general, rel=1e-13)


def test_one_value_refuses_beyond_its_window() -> None:
    with pytest.raises(NumericalError, match="smaller n"):
        blanket.one_value_rate(10**13, symmetric(3, Fraction(1, 2)))


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("truth", [Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize(("m", "unknown"), [(1, 0), (2, 0), (4, 0), (2, 1), (1, 2), (3, 1)])
def test_ends_contain_the_worst_case(m: int, unknown: int, k: int, truth: Fraction) -> None:
    law = symmetric(k, truth)
    knowledge = Knowledge(law=law, m=m, known=None, unknown=unknown)
    worst = (worst_success(m, unknown, channel(k, truth)) - law.lie) / law.theta
    assert Fraction(blanket.lower_rate(knowledge)) <= worst <= Fraction(blanket.upper_rate(knowledge))
    at_one = exact_rate((m, *[0] * (k - 1)), unknown, law)
    assert Fraction(blanket.lower_rate(knowledge)) <= at_one


def test_blanket_is_the_mean_over_its_size() -> None:
    """At few people every size is its own bin: sum_M P(M) V_S(M + 1), V_S = 1, 5/6... in rationals."""
    law = symmetric(3, Fraction(1, 2))  # gamma = 3/4
    value = blanket.upper_rate(Knowledge(law=law, m=2, known=None, unknown=0))
    masses = [Fraction(1, 16), Fraction(6, 16), Fraction(9, 16)]
    shares = [Fraction(1), Fraction(2, 3), Fraction(17, 27)]
    exact = sum((a * b for a, b in zip(masses, shares, strict=True)), Fraction(0))
    assert exact <= Fraction(value) <= exact * (1 + Fraction(1, 10**9))


def test_bins_widen_the_blanket_outward(monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge = Knowledge(law=symmetric(5, Fraction(1, 2)), m=300, known=None, unknown=50)
    fine_low, fine_high = blanket.lower_rate(knowledge), blanket.upper_rate(knowledge)
    monkeypatch.setattr(blanket, "_MOST_BINS", 3)
    assert blanket.lower_rate(knowledge) <= fine_low <= fine_high <= blanket.upper_rate(knowledge)
