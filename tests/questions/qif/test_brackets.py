"""Brackets, forced where the exact answer is known: they must contain it."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from hushuffle.errors import NumericalError
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.questions.qif import many
from hushuffle.questions.qif.knowledge import Knowledge, Rates
from oracles.qif_guessing import channel, success, worst_success


def knowledge(k: int, truth: Fraction, m: int, unknown: int, known: tuple[int, ...] | None = None) -> Knowledge:
    law = Symmetric(k=k, truth=truth, lie=(1 - truth) / (k - 1))
    return Knowledge(law=law, m=m, known=known, unknown=unknown)


def contains(rates: Rates, vulnerability: Fraction, law: Symmetric) -> bool:
    rate = (vulnerability - law.lie) / law.theta
    return Fraction(rates.lower) <= rate <= Fraction(rates.upper)


def out_of_reach(*_: object, **__: object) -> float:
    message = "out of reach"
    raise NumericalError(message)


@pytest.fixture(params=["nothing exact", "one value exact", "some counts"])
def limited(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Switch the exact methods off, as large sizes would."""
    monkeypatch.setattr(many, "COMPOSITIONS_LIMIT", 0)
    monkeypatch.setattr(many, "CELLS_LIMIT", 6 if request.param == "some counts" else 0)
    if request.param != "one value exact":
        monkeypatch.setattr(many, "one_value_rate", out_of_reach)
    return str(request.param)


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("truth", [Fraction(2, 5), Fraction(9, 10)])
@pytest.mark.parametrize(("m", "unknown"), [(1, 0), (2, 0), (4, 0), (2, 1), (1, 2)])
@pytest.mark.usefixtures("limited")
def test_worst_case_brackets_contain_enumeration(m: int, unknown: int, k: int, truth: Fraction) -> None:
    asked = knowledge(k, truth, m, unknown)
    worst = worst_success(m, unknown, channel(k, truth))
    found = many.rates(asked)
    assert found.lower < found.upper or m == 1
    if found.lower < found.upper:
        assert contains(found, worst, asked.law)
    if found.known is not None:
        people = [value for value, count in enumerate(found.known) for _ in range(count)]
        attained = success([*people, *[None] * unknown], channel(k, truth))
        assert Fraction(found.lower) <= (attained - asked.law.lie) / asked.law.theta * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("truth", [Fraction(2, 5), Fraction(9, 10)])
@pytest.mark.parametrize(("m", "unknown"), [(2, 0), (4, 0), (2, 1)])
@pytest.mark.usefixtures("limited")
def test_brackets_of_a_composition_contain_enumeration(m: int, unknown: int, truth: Fraction) -> None:
    for values in combinations_with_replacement(range(3), m):
        known = tuple(values.count(value) for value in range(3))
        asked = knowledge(3, truth, m, unknown, known)
        found = many.rates(asked)
        exact = success([*values, *[None] * unknown], channel(3, truth))
        if found.lower < found.upper:
            assert contains(found, exact, asked.law)
        else:  # all at one value stays exact
            assert max(known) == m
            assert abs((exact - asked.law.lie) / asked.law.theta / Fraction(found.upper) - 1) < 1e-13


@pytest.mark.parametrize("truth", [Fraction(3, 5), Fraction(19, 20)])
@pytest.mark.parametrize("m", [1, 2, 5, 8, 9])
@pytest.mark.parametrize("unknown", [0, 1, 2, 3])
def test_two_values_contain_the_worst_composition(
    m: int, unknown: int, truth: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half and half is the worst when m and the number of unknown reports are even; else the bracket holds."""
    asked = knowledge(2, truth, m, unknown)
    law = asked.law
    people = [[1] * ones + [0] * (m - ones) for ones in range(m + 1)]
    if unknown == 0:
        worst = max(success(known, channel(2, truth)) for known in people)
    else:  # unknown people send uniform reports: dummies, checked against datasets elsewhere
        worst = max(success(known, channel(2, truth), unknown) for known in people)
    everything = many.rates_of_two(asked)
    assert abs((worst - law.lie) / law.theta / Fraction(everything.upper) - 1) < 1e-13
    if m % 2 == 0 and unknown % 2 == 0:
        assert everything.known == (m // 2, m // 2)
        return
    monkeypatch.setattr(many, "EVERY_COMPOSITION_UP_TO", 0)
    monkeypatch.setattr(many, "_TRIED", 1)
    bracket = many.rates_of_two(asked)
    assert contains(bracket, worst, law)
    assert bracket.lower < bracket.upper


def test_two_values_bracket_is_narrow_where_it_is_used() -> None:
    found = many.rates_of_two(knowledge(2, Fraction(3, 4), 10**6 - 1, 0))
    assert 0 < found.upper - found.lower < 1e-6 * (found.lower - 0.5)


def test_compositions_are_all_partitions() -> None:
    listed = list(many._compositions(6, 3))
    assert listed == [(6, 0, 0), (5, 1, 0), (4, 2, 0), (4, 1, 1), (3, 3, 0), (3, 2, 1), (2, 2, 2)]
    assert many._all_compositions_cost(knowledge(3, Fraction(1, 2), 6, 0)) == 7 * 64
