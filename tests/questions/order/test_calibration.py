from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.questions import order
from hushuffle.questions.order.sensitivity import DISTANCES, Distance
from oracles import order_sensitivity as oracle


def test_theta_and_alpha_are_inverse_and_safe() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        n = int(rng.integers(2, 200))
        reference, group = rng.permutation(n), rng.choice(n, size=int(rng.integers(2, n + 1)), replace=False)
        alpha = float(rng.choice([1e-6, 0.1, 1.0, 4.0])) * float(rng.random())
        delta = order.kendall_sensitivity(reference, [group])
        theta = order.theta_for_alpha(alpha, reference=reference, groups=[group])
        assert Fraction(theta) * delta <= Fraction(alpha) < Fraction(math.nextafter(theta, 1e9)) * delta
        back = order.alpha_for_theta(theta, reference=reference, groups=[group])
        assert back.kind == "exact"
        assert Fraction(theta) * delta <= Fraction(back.upper) <= Fraction(alpha)


@pytest.mark.parametrize("distance", DISTANCES)
def test_other_groups_by_enumeration(distance: Distance) -> None:
    reference, groups, others = (1, 3, 0, 2), [(0, 1)], [(0, 2, 3), (1, 2)]
    alpha = 0.7
    theta = order.theta_for_alpha(alpha, reference=reference, groups=groups, distance=distance)
    law = oracle.mallows(reference, theta, distance)
    assert oracle.alpha(law, groups, range(4)) == pytest.approx(alpha, rel=1e-12)
    moved = order.alpha_for_groups(alpha, reference=reference, groups=groups, others=others, distance=distance)
    assert oracle.alpha(law, others, range(4)) == pytest.approx(moved.upper, rel=1e-12)
    assert order.alpha_for_theta(theta, reference=reference, groups=others, distance=distance).upper <= moved.upper


def test_the_printed_line_of_theorem_4_4_divides() -> None:
    # Two people side by side against three: theta = 0.6, alpha' = 1.8; "theta / sensitivity'" would be 0.2.
    reference, groups, others = (0, 1, 2), [(0, 1)], [(0, 1, 2)]
    law = oracle.mallows(reference, 0.6, "kendall")
    true = oracle.alpha(law, others, range(3))
    assert true == pytest.approx(1.8, rel=1e-12)
    assert order.alpha_for_groups(0.6, reference=reference, groups=groups, others=others).upper == pytest.approx(true)
    printed = 0.6 / order.kendall_sensitivity(reference, others)
    assert printed == pytest.approx(0.2)


def test_mixing_the_exact_and_the_published_sensitivity_is_unsafe() -> None:
    # Theta from the exact sensitivity of two people 3 ranks apart (5), alpha' with the published 6 below the ratio.
    reference, groups, others, alpha = (0, 1, 2, 3), [(0, 3)], [(0, 1, 2, 3)], 1.0
    theta = order.theta_for_alpha(alpha, reference=reference, groups=groups)
    mixed = alpha * order.kendall_sensitivity(reference, others) / order.published_sensitivity(reference, groups)
    true = oracle.alpha(oracle.mallows(reference, theta, "kendall"), others, range(4))
    assert mixed == pytest.approx(1.0)
    assert true == pytest.approx(1.2)


def test_the_ends_of_theta() -> None:
    pair, alone = [[0, 1]], [[0], [1]]
    assert order.alpha_for_theta(math.inf, reference=[0, 1], groups=pair).upper == math.inf
    assert order.alpha_for_theta(math.inf, reference=[0, 1], groups=alone).upper == 0.0
    assert order.alpha_for_theta(0, reference=[0, 1], groups=pair).upper == 0.0
    assert order.alpha_for_theta(1e308, reference=range(100), groups=[range(100)]).upper == math.inf
    assert order.theta_for_alpha(0.0, reference=[0, 1], groups=pair) == 0.0


def test_everybody() -> None:
    for distance, delta in (("kendall", 10), ("hamming", 5), ("footrule", 12), ("spearman", 40)):
        bound = order.everybody_alpha(0.5, n=5, distance=distance)  # type: ignore[arg-type]
        assert bound.upper == 0.5 * delta
    law = oracle.mallows((2, 0, 1), 0.4, "kendall")
    assert oracle.alpha(law, [range(3)], range(3)) == pytest.approx(order.everybody_alpha(0.4, n=3).upper)


def belief_changes(p: Fraction) -> list[Fraction]:
    """Of a belief `p` in one order and 1 - p in another, when the release is 20 times likelier under the first."""
    one, other = (0, 1), (1, 0)
    prior: dict[oracle.Order, Fraction] = {one: p, other: 1 - p}
    return [oracle.belief_change(prior, {one: Fraction(20), other: Fraction(1)}, 0, j) for j in (0, 1)]


def test_no_belief_about_who_holds_what_moves_further() -> None:
    theta, reference = 0.4, (2, 0, 1)
    law = oracle.mallows(reference, theta, "kendall")
    most = math.exp(order.everybody_alpha(theta, n=3).upper)
    rng, people = np.random.default_rng(2), list(oracle.orders(3))
    reached = 1.0
    for sharp in (0.05, 0.3, 1.0):
        for _ in range(20):
            weights = [Fraction(w) for w in rng.dirichlet(np.full(6, sharp)) + 1e-9]
            prior = {order_: w / sum(weights) for order_, w in zip(people, weights, strict=True)}
            for seen in people:
                likelihood = {o: Fraction(law[oracle.after(oracle.inverse(o), seen)]) for o in people}
                changes = [oracle.belief_change(prior, likelihood, i, j) for i in range(3) for j in range(3)]
                reached = max(reached, float(max(changes)), float(1 / min(changes)))
    assert 0.8 * most < reached <= most * (1 + 1e-9)


def test_the_proof_that_every_belief_needs_alpha_uses_the_wrong_prior() -> None:
    # With one half on each of two orders, and likelihoods 20 to 1, no belief moves 20-fold in either direction;
    # with a small prior one nearly does, so the property itself holds.
    changes = belief_changes(Fraction(1, 2))
    assert max(*changes, *(1 / change for change in changes)) == Fraction(21, 2)
    assert max(belief_changes(Fraction(1, 10**6))) > Fraction(1999, 100)


def test_bad_input() -> None:
    alone = [[0], [1]]
    with pytest.raises(InvalidInputError, match=r"`groups` must be groups, at least one of them of two or more people"):
        order.theta_for_alpha(1.0, reference=[0, 1], groups=alone)
    with pytest.raises(InvalidInputError, match=r"alpha is 0 for every theta"):
        order.alpha_for_groups(1.0, reference=[0, 1], groups=alone, others=[[0, 1]])
    with pytest.raises(InvalidInputError, match=r"`alpha` must be finite and >= 0"):
        order.theta_for_alpha(math.inf, reference=[0, 1], groups=[[0, 1]])
    with pytest.raises(InvalidInputError, match=r"`theta` must be > 0 .*theta = 0 is the uniform shuffle"):
        order.alpha_for_theta(-1.0, reference=[0, 1], groups=[[0, 1]])
    with pytest.raises(InvalidInputError, match=r"`n` must be an integer >= 1"):
        order.everybody_alpha(1.0, n=0)
