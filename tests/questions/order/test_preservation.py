"""(eta, delta)-preservation against enumeration, and simulation against both."""

from __future__ import annotations

import importlib
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.mechanisms.shufflers import MallowsShuffle
from hushuffle.questions.order.preservation import Losses, preservation, preserved_share
from oracles import mallows_preservation as oracle


def hamming(n: int, theta: float) -> MallowsShuffle:
    return MallowsShuffle(reference=np.arange(n)[::-1], theta=theta, distance="hamming")


def shares(size: int) -> list[Fraction]:
    """Every share that matters, and one between."""
    return [*(Fraction(kept, size) for kept in range(size + 1)), Fraction(4, 5)]


@pytest.mark.parametrize("theta", [0.0, 0.3, 1.5, 6.0])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_hamming_is_that_of_enumeration(n: int, theta: float) -> None:
    for size in range(1, n + 1):
        for eta in shares(size):
            exact = oracle.failure(n, theta, "hamming", range(size), eta)
            bound = preservation(hamming(n, theta), [range(size)], eta=eta)[0]
            assert bound.lower - 1e-15 <= exact <= bound.upper + 1e-15
            assert bound.width <= 1e-8 * bound.upper + 1e-16
            assert exact == pytest.approx(oracle.hamming_sum(n, size, theta, eta), abs=1e-13)


@pytest.mark.parametrize("eta", [Fraction(1, 2), Fraction(4, 5), Fraction(1)])
def test_hamming_for_seven_people_by_enumeration(eta: Fraction) -> None:
    for size in (2, 5):
        exact = oracle.failure(7, 0.8, "hamming", range(size), eta)
        assert preservation(hamming(7, 0.8), [range(size)], eta=eta)[0].upper == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize(("n", "size", "theta"), [(30, 12, 2.0), (40, 9, 4.0), (25, 20, 0.5)])
def test_hamming_is_the_sum_of_the_paper_corrected(n: int, size: int, theta: float) -> None:
    for eta in (Fraction(1, 3), Fraction(7, 9), Fraction(1)):
        exact = oracle.hamming_sum(n, size, theta, eta)
        bound = preservation(hamming(n, theta), [range(size)], eta=eta)[0]
        assert bound.lower * (1 - 1e-12) - 1e-30 <= exact <= bound.upper


def test_the_printed_sum_of_hamming_counts_too_many_orders_and_allows_too_many_losses() -> None:
    # Four people, two of them in the subset, nobody keeps a place: one order of nine also keeps the subset's reports.
    lost = [
        tau
        for tau in itertools.permutations(range(4))
        if all(item != place for place, item in enumerate(tau)) and {tau[0], tau[1]} != {0, 1}
    ]
    one, two = 2 * 2 * 1 * 1, 2 * 2  # places lost: f(1,1) = 1 twice, f(0,2) = 2 twice
    assert len(lost) == one + two == 8
    assert math.comb(2, 1) * one + math.comb(2, 2) * two == 12  # with the printed C(i + j, j): more than all nine
    # Three quarters of two places is both: none may be lost. The printed limit is one, which allows the half.
    allowed = math.ceil((1 - Fraction(3, 4)) * 2)
    assert allowed == 1
    exact = oracle.failure(5, 1.0, "hamming", [0, 1], Fraction(3, 4))
    printed = oracle.failure(5, 1.0, "hamming", [0, 1], Fraction(2 - allowed, 2))
    assert (f"{exact:.3f}", f"{printed:.3f}") == ("0.618", "0.085")
    assert math.floor(1 / math.e + 0.5) == 0  # printed as the number of orders of nothing, which is 1


def test_a_share_is_rational() -> None:
    """0.8 of 5 is 4, in floats as well: 0.8 * 5 = 4.000000000000000222 as binary fractions."""
    members = [range(5)]
    assert preservation(hamming(9, 1.0), members, eta=0.8) == preservation(hamming(9, 1.0), members, eta=Fraction(4, 5))


def test_kendall_at_the_ends_is_solved() -> None:
    groups = [[0, 1, 2], [0, 4]]
    uniform = MallowsShuffle(reference=range(6), theta=0.0)
    assert preservation(uniform, groups, eta=0.5) == preservation(hamming(6, 0.0), groups, eta=0.5)
    kept = MallowsShuffle(reference=range(6), theta=math.inf)
    assert [bound.upper for bound in preservation(kept, groups, eta=1.0)] == [0.0, 0.0]
    assert [bound.lower for bound in preserved_share(kept, groups, delta=0.0)] == [1.0, 1.0]


@pytest.mark.parametrize("table", [True, False])
def test_kendall_intervals_hold_the_enumerated_figure(table: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Confidence 1 - 1e-7 for each of six intervals: a false alarm has probability below 1e-6."""
    monkeypatch.setattr(importlib.import_module(preservation.__module__), "_TABLE", 100 if table else 1)
    reference, theta = np.array([3, 0, 5, 1, 4, 2]), 0.4
    groups = [[3, 0, 5], [2, 3], [0, 1, 2, 3, 4]]
    rank = np.argsort(reference)
    shuffler, trust = MallowsShuffle(reference=reference, theta=theta), 1 - 1e-7
    bounds = preservation(shuffler, groups, eta=0.6, samples=3000, confidence=trust, rng=hs.reproducible(1))
    best = preserved_share(shuffler, groups, delta=0.3, samples=3000, confidence=trust, rng=hs.reproducible(2))
    for group, bound, share in zip(groups, bounds, best, strict=True):
        places = rank[group].tolist()
        assert oracle.failure(6, theta, "kendall", places, Fraction(3, 5)) in bound
        largest = max(eta for eta in shares(len(group)) if oracle.failure(6, theta, "kendall", places, eta) <= 0.3)
        assert share.lower - 1e-12 <= float(largest) <= share.upper + 1e-12
        assert bound.width < 0.12
        assert (bound.confidence, bound.kind) == (trust, "estimate")


@pytest.mark.parametrize("theta", [0.5, 5.0])
def test_the_largest_share_of_hamming(theta: float) -> None:
    n, size = 6, 4
    for delta in (0.0, 0.01, 0.2, 0.9):
        met = [eta for eta in shares(size)[:-1] if oracle.failure(n, theta, "hamming", range(size), eta) <= delta]
        found = preserved_share(hamming(n, theta), [range(size)], delta=delta)[0]
        assert found.lower == found.upper == pytest.approx(float(max(met)))


def test_ends_that_disagree_are_a_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Losses, "beyond", lambda _, lost: (0.1 / (lost + 1), 0.3 / (lost + 1)))
    bound = preserved_share(hamming(10, 1.0), [range(5)], delta=0.1)[0]
    assert bound.kind == "bracket"
    assert (bound.lower, bound.upper) == pytest.approx((0.6, 1.0))


def test_few_permutations_say_little() -> None:
    shuffler = MallowsShuffle(reference=range(50), theta=0.1)
    everybody, most = preserved_share(shuffler, [range(50), range(40)], delta=1e-3, samples=3, rng=hs.reproducible(1))
    assert (everybody.lower, everybody.upper) == (1.0, 1.0)
    assert most.lower == pytest.approx(30 / 40)
    never = preservation(shuffler, [range(20)], eta=0.0, samples=3, rng=hs.reproducible(1))[0]
    always = preservation(
        MallowsShuffle(reference=range(50), theta=1e-9), [[7]], eta=1.0, samples=2, rng=hs.reproducible(1)
    )[0]
    assert never.lower == 0.0 < never.upper < 1.0
    assert always.upper == 1.0 > always.lower
    none = preserved_share(shuffler, [[0]], delta=0.999, samples=2, rng=hs.reproducible(1))[0]
    assert none.upper == 1.0


def test_the_sweep_of_the_paper() -> None:
    """Figure 7: ten thousand people, a subset in the middle, 50 permutations; larger groups keep more."""
    n, middle = 10_000, 5_000
    groups = [range(middle - half, middle + half) for half in (100, 1000, 4000)]
    theta = 3 / (30 * 31 / 2)
    shuffler = MallowsShuffle(reference=range(n), theta=theta)
    found = preserved_share(shuffler, groups, delta=0.01, samples=50, rng=hs.reproducible(4))
    tops = [bound.upper for bound in found]
    assert tops == sorted(tops)
    assert 0.2 < tops[0] < 0.9
    assert tops[2] > 0.97


def test_larger_sums_are_refused() -> None:
    big = hamming(20_001, 1.0)
    with pytest.raises(NumericalError, match="up to 20,000 people, got 20,001"):
        preservation(big, [range(9)], eta=0.5)
    assert preservation(big, [range(20_001)], eta=1.0)[0].upper == 0.0


def test_fifty_trials_do_not_show_what_ninety_nine_of_a_hundred_satisfy() -> None:
    """By enumeration: of all shuffles 2.2 % keep less than two of three, and all of 50 draws keep them with 33 %."""
    fails = oracle.failure(6, 1.0, "kendall", [0, 1, 2], Fraction(2, 3))
    assert fails == pytest.approx(0.0222, abs=1e-4)
    assert (1 - fails) ** 50 == pytest.approx(0.326, abs=1e-3)
    assert Fraction(99, 100) ** 298 > Fraction(5, 100) > Fraction(99, 100) ** 299  # so many draws would show it


def test_ten_thousand_people() -> None:
    shuffler = hamming(10_000, 3.0)
    assert preserved_share(shuffler, [range(2000)], delta=0.01)[0].upper == pytest.approx(0.1835, abs=0.003)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eta": 1.5}, "`eta` must be in"),
        ({"groups": [[9]]}, "`members` must be integers"),
        ({"samples": 0}, "`samples` must be an integer >= 1"),
        ({"confidence": 0.0}, "`confidence` must be in"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"shuffler": hamming(5, 1.0), "groups": [[0, 1]], "eta": 0.5, **arguments}
    with pytest.raises(InvalidInputError, match=message):
        preservation(**given)
    with pytest.raises(InvalidInputError, match="`delta` must be in"):
        preserved_share(hamming(5, 1.0), [[0]], delta=1.0)
