"""Statements of the errata page about laws, each shown by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hushuffle.curves.laws.tilted_counts import Compositions, hockey_stick
from oracles import dp_enumeration as oracle


def clones_pair_delta(n: int, k: int, truth: Fraction, growth: Fraction) -> Fraction:
    """The popular pair law: counts at a and b, with all others' reports there by chance, nothing else seen."""
    lie = (1 - truth) / (k - 1)
    elsewhere: list[oracle.Number] = [lie, lie, 1 - 2 * lie]
    law: dict[oracle.Counts, oracle.Number] = {(0, 0, 0): Fraction(1)}
    for _ in range(n - 1):
        law = oracle.add_report(law, elsewhere)
    first: list[oracle.Number] = [truth, lie, 1 - truth - lie]
    second: list[oracle.Number] = [lie, truth, 1 - truth - lie]
    return Fraction(oracle.hockey_stick(oracle.add_report(law, first), oracle.add_report(law, second), growth))


def test_the_clones_pair_law_is_no_upper_bound() -> None:
    truth, growth = Fraction(20, 24), Fraction(5)
    exact = Fraction(oracle.worst_delta(5, 5, truth, growth))
    pair = clones_pair_delta(5, 5, truth, growth)
    assert f"{float(exact):.10f}" == "0.4584683391"
    assert f"{float(pair):.10f}" == "0.4584663297"
    assert exact > pair


def test_the_blanket_is_not_convex_in_the_number_of_reports() -> None:
    def value(reports: int) -> float:
        """(1/N) E[2 (A - 1.1 B)]_+ with A + B = N fair reports: k = 2, no noise of their own."""
        terms = (math.comb(reports, a) / 2**reports * max(0.0, a - 1.1 * (reports - a)) for a in range(reports + 1))
        return 2 * math.fsum(terms) / reports

    found = [round(value(reports), 6) for reports in (2, 3, 4)]
    assert found == [0.5, 0.475, 0.3625]
    assert found[1] > (found[0] + found[2]) / 2


def test_the_worst_composition_can_be_an_interior_one() -> None:
    truth = 1 / (1 + math.exp(-2.0))
    ones = np.array([0.0, 997.0, 999.0])
    low, high = hockey_stick(
        Compositions(ones=ones, zeros=999 - ones, dummies=0), truth=truth, lie=1 - truth, epsilon=0.3234
    )
    assert low[1] > max(high[0], high[2])
