from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model.groups import Groups
from hushuffle.questions.order.sensitivity import (
    DISTANCES,
    Distance,
    kendall_sensitivity,
    published_sensitivity,
    ranks,
    sensitivities,
    sensitivity,
    width,
    widths,
)
from oracles import order_sensitivity as oracle


def subsets(n: int) -> list[tuple[int, ...]]:
    return [group for size in range(1, n + 1) for group in itertools.combinations(range(n), size)]


def random_order(n: int, seed: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).permutation(n).tolist())


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_every_reference_and_every_group(n: int, distance: Distance) -> None:
    groups = subsets(n)
    for reference in oracle.orders(n):
        found = sensitivities(reference, list(groups), distance=distance)
        assert found.tolist() == [oracle.sensitivity(reference, group, distance) for group in groups]


@pytest.mark.parametrize(("n", "seed"), [(5, 2), pytest.param(6, 1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("distance", DISTANCES)
def test_every_group(distance: Distance, n: int, seed: int) -> None:
    reference, groups = random_order(n, seed), subsets(n)
    found = sensitivities(reference, list(groups), distance=distance)
    assert found.tolist() == [oracle.sensitivity(reference, group, distance) for group in groups]


@pytest.mark.parametrize("distance", DISTANCES)
def test_groups_of_seven(distance: Distance) -> None:
    reference = random_order(7, 5)
    for seed, size in enumerate((2, 3)):
        group = sorted(random_order(7, seed)[:size])
        assert sensitivity(reference, [group], distance=distance) == oracle.sensitivity(reference, group, distance)


def test_kendall_by_the_sum_over_ranks_between() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(2, 60))
        reference = rng.permutation(n)
        group = rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False)
        held = sorted(ranks(reference)[group].tolist())
        m = len(held)
        between = [w for w in range(held[0], held[-1]) if w not in held]
        summed = sum(min(sum(r < w for r in held), sum(r > w for r in held)) for w in between)
        assert kendall_sensitivity(reference, [group]) == m * (m - 1) // 2 + 2 * summed


def test_published_bound_is_above_and_met_by_a_filled_window() -> None:
    rng = np.random.default_rng(4)
    for _ in range(100):
        n = int(rng.integers(2, 40))
        reference = rng.permutation(n)
        groups = [rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False) for _ in range(4)]
        assert kendall_sensitivity(reference, groups) <= published_sensitivity(reference, groups)
    for size in (1, 2, 7):
        group = list(range(3, 3 + size))
        assert kendall_sensitivity(range(12), [group]) == published_sensitivity(range(12), [group])
    assert kendall_sensitivity(range(3), [[0, 2]]) == published_sensitivity(range(3), [[0, 2]]) == 3


def test_published_sensitivity_is_printed_as_equal_to_the_exact_one() -> None:
    # Two people 3 ranks apart: 6 printed, 5 true.
    assert published_sensitivity(range(4), [[0, 3]]) == 6
    assert kendall_sensitivity(range(4), [[0, 3]]) == oracle.sensitivity((0, 1, 2, 3), (0, 3), "kendall") == 5
    # 100 ranks apart: 5050 printed, 199 true.
    assert published_sensitivity(range(101), [[0, 100]]) == 5050
    assert kendall_sensitivity(range(101), [[0, 100]]) == 199


def test_other_ways_to_compose_or_to_count_have_another_sensitivity() -> None:
    reference, group = (0, 3, 1, 2), (0, 3)
    assert kendall_sensitivity(reference, [group]) == 1 == oracle.sensitivity(reference, group, "kendall")
    back = oracle.inverse(reference)

    def by_places(drawn: oracle.Order) -> int:  # what comparing the raw lists counts
        pairs = itertools.combinations(range(4), 2)
        return sum((drawn[a] < drawn[b]) != (reference[a] < reference[b]) for a, b in pairs)

    def composed_on_the_other_side(drawn: oracle.Order) -> int:  # drawn = tau o reference
        return oracle.kendall(oracle.after(drawn, back), range(4))

    assert oracle.sensitivity_at_places(reference, group, by_places) == 5
    assert oracle.sensitivity_at_places(reference, group, composed_on_the_other_side) == 5
    # The printed reference**-1 o drawn, as functions, is tau itself: the reference has no part in it.
    theta, law = 0.1, oracle.mallows(reference, 0.1, "kendall")
    printed: oracle.Law = {}
    for tau in oracle.orders(4):
        drawn = oracle.after(reference, tau)
        people = oracle.after(reference, oracle.after(tau, back))  # as released here
        printed[oracle.after(back, drawn)] = law[people]
    assert oracle.alpha(law, [group], range(4)) == pytest.approx(theta)
    assert oracle.alpha(printed, [group], range(4)) == pytest.approx(5 * theta)


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_mechanism_reaches_theta_times_the_sensitivity(distance: Distance) -> None:
    reference, theta = (2, 0, 3, 1), 0.3
    law = oracle.mallows(reference, theta, distance)
    for group in subsets(4):
        expected = theta * sensitivity(reference, [group], distance=distance)
        assert oracle.alpha(law, [group], range(4)) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    # Records that repeat hide the order further, never less.
    both = [(0, 1, 2), (1, 3)]
    assert oracle.alpha(law, both, (0, 1, 0, 1)) <= theta * sensitivity(reference, both, distance=distance) + 1e-12


def test_the_seeds_example_of_a_width() -> None:
    assert width([0, 2, 6, 7, 5, 3, 4, 1, 8, 9], [[0, 6, 7, 1, 4, 5]]) == 7
    # Appendix A.10: the fourth group spans the whole order, 28 by the printed formula.
    assert published_sensitivity([4, 1, 2, 7, 3, 0, 5, 6], [[3, 4, 6]]) == 28
    assert kendall_sensitivity([4, 1, 2, 7, 3, 0, 5, 6], [[3, 4, 6]]) == 13


def test_large_sums_do_not_overflow() -> None:
    n = 100_000
    everybody = [np.arange(n)]
    assert kendall_sensitivity(range(n), everybody) == n * (n - 1) // 2
    assert sensitivity(range(n), everybody, distance="footrule") == n * n // 2
    assert sensitivity(range(n), everybody, distance="spearman") == n * (n * n - 1) // 3
    assert sensitivity(range(n), everybody, distance="hamming") == n
    ends = [[0, n - 1]]
    assert kendall_sensitivity(range(n), ends) == 2 * (n - 1) - 1
    assert sensitivity(range(n), ends, distance="spearman") == 2 * (n - 1) ** 2


def test_every_form_of_groups_gives_the_same() -> None:
    lists = [np.array([2, 0]), np.array([1, 3, 2])]
    pair = (np.array([0, 2, 5]), np.array([2, 0, 1, 3, 2]))
    reference = [3, 0, 2, 1]
    for groups in (lists, pair, Groups.of(lists)):
        assert sensitivities(reference, groups).tolist() == [1, 5]
        assert widths(reference, groups).tolist() == [1, 3]


def test_bad_input() -> None:
    with pytest.raises(InvalidInputError, match=r"`reference` must be a permutation of 0..n-1, got .*1 of 3 people"):
        ranks([0, 0, 2])
    with pytest.raises(InvalidInputError, match=r"`reference` must be a permutation"):
        ranks([])
    with pytest.raises(InvalidInputError, match=r"`reference` must be integers from 0 to 1"):
        width([0, 2], [[0]])
    with pytest.raises(InvalidInputError, match=r"`members` must be integers from 0 to 2"):
        kendall_sensitivity([0, 1, 2], [[0, 3]])
    with pytest.raises(InvalidInputError, match=r"`groups` must be groups of 4 people"):
        kendall_sensitivity([0, 1, 2, 3], Groups.of([[0, 1]]))
    with pytest.raises(InvalidInputError, match=r"`distance` must be one of kendall, hamming"):
        sensitivity([0, 1], [[0]], distance="cayley")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"at most 2,000,000 for Spearman"):
        sensitivity(np.arange(2_000_001), [[0, 1]], distance="spearman")
    assert math.isfinite(sensitivity(np.arange(2_000_001), [[0, 1]], distance="footrule"))
