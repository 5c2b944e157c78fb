from __future__ import annotations

import random
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from hushuffle.numerics.exact import solve

Equations = list[tuple[dict[int, Fraction], Fraction]]


@given(seed=st.integers(0, 2**32))
def test_solutions_satisfy_every_equation(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - examples, not secrets
    unknowns = source.randrange(1, 7)
    truth = [Fraction(source.randrange(-3, 4), 2) for _ in range(unknowns)]
    equations: Equations = []
    for _ in range(source.randrange(1, 9)):
        chosen = source.sample(range(unknowns), source.randrange(1, unknowns + 1))
        terms = {i: Fraction(source.randrange(-2, 3)) for i in chosen}
        equations.append((terms, sum((c * truth[i] for i, c in terms.items()), Fraction(0))))
    found = solve(equations, unknowns=unknowns)
    assert found is not None
    for terms, value in equations:
        assert sum(c * found[i] for i, c in terms.items()) == value


def test_contradictions_have_no_solution() -> None:
    one = Fraction(1)
    assert solve([({0: one, 1: one}, one), ({0: one, 1: one}, 2 * one)], unknowns=2) is None
    assert solve([({}, one)], unknowns=1) is None


def test_free_unknowns_are_zero() -> None:
    assert solve([({1: Fraction(2)}, Fraction(1)), ({}, Fraction(0))], unknowns=3) == [0, Fraction(1, 2), 0]
