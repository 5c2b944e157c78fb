"""Guesses where the number of dummies is random, against enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from oracles import dummy_mixture

LAW = hs.DummyLaw.of({0: 0.25, 1: 0.5, 3: 0.25})
NUMBERS = {0: Fraction(1, 4), 1: Fraction(1, 2), 3: Fraction(1, 4)}


def survey(k: int, n: int, law: hs.DummyLaw = LAW) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=1.5), shuffler=hs.Scrambler(dummies=law), n=n)


def rows(protocol: hs.Protocol) -> list[list[Fraction]]:
    return [[Fraction(mass) for mass in row] for row in protocol.randomizer.channel().matrix.tolist()]


@pytest.mark.parametrize(("k", "n"), [(2, 3), (3, 3)])
def test_somebody_who_knows_nobody_is_right_as_often_as_enumerated(k: int, n: int) -> None:
    found = hs.qif.vulnerability(survey(k, n))
    true = float(dummy_mixture.guess(rows(survey(k, n)), n, (0,) * k, NUMBERS))
    assert found.kind == "exact"
    assert found.upper == pytest.approx(true, rel=1e-10)


@pytest.mark.parametrize(("k", "n", "m"), [(2, 4, 3), (2, 4, 2), (3, 3, 2), (3, 3, 1)])
def test_the_worst_case_over_known_people_is_held(k: int, n: int, m: int) -> None:
    true = float(dummy_mixture.worst_guess(rows(survey(k, n)), n, m, NUMBERS))
    for figure in (hs.qif.vulnerability, hs.qif.quick_vulnerability):
        found = figure(survey(k, n), adversary=hs.Informed(m=m))
        assert found.lower <= true * (1 + 1e-10)
        assert found.upper >= true * (1 - 1e-10)
        assert found.upper < 1.15 * true
        assert found.lower > 1 / k


def test_given_known_people_are_exact() -> None:
    known = hs.Histogram(counts=[2, 0, 0])
    found = hs.qif.vulnerability(survey(3, 3), adversary=hs.Strong(others=known))
    assert found.lower == pytest.approx(float(dummy_mixture.guess(rows(survey(3, 3)), 3, (2, 0, 0), NUMBERS)), rel=1e-9)
    assert found.kind == "exact"


def test_frequencies() -> None:
    found = hs.qif.iid_vulnerability(survey(2, 3), frequencies=[0.25, 0.75])
    shares = [Fraction(1, 4), Fraction(3, 4)]
    true = float(dummy_mixture.guess_by_frequencies(rows(survey(2, 3)), 3, shares, NUMBERS))
    assert found.upper == pytest.approx(true, rel=1e-10)
    assert found.kind == "exact"
    shares = [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
    bound = hs.qif.iid_vulnerability(survey(3, 3), frequencies=[0.25, 0.25, 0.5])
    assert 0.5 <= float(dummy_mixture.guess_by_frequencies(rows(survey(3, 3)), 3, shares, NUMBERS)) <= bound.upper


def test_many_numbers_are_a_narrow_bracket() -> None:
    law = hs.DummyLaw.binomial(trials=400, p=0.5)
    found = hs.qif.vulnerability(survey(2, 100, law))
    ends = [hs.qif.vulnerability(survey(2, 100).with_dummies(0)).upper]
    ends += [hs.qif.vulnerability(survey(2, 100, law).with_dummies(int(law.numbers[end]))).upper for end in (0, -1)]
    assert found.kind == "bracket"
    assert ends[2] < found.lower < found.upper < ends[1] < ends[0]
    assert found.upper - 0.5 < 1.06 * (found.lower - 0.5)


def test_other_mechanisms_have_upper_ends_or_brackets() -> None:
    for randomizer in (hs.SubsetSelection(k=5, w=2, epsilon=1.0), hs.LocalHashing(k=5, g=3, epsilon=1.0)):
        protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=LAW), n=20)
        found = hs.qif.vulnerability(protocol, adversary=hs.Strong())
        parts = [hs.qif.vulnerability(protocol.with_dummies(d), adversary=hs.Strong()) for d in (0, 1, 3)]
        mean = np.array([0.25, 0.5, 0.25]) @ np.array([part.upper for part in parts])
        assert found.upper == pytest.approx(mean, rel=1e-9)
        assert found.lower >= 0.2 * (1 - 1e-12)
