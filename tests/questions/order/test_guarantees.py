from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.questions import order
from oracles import order_sensitivity as oracle


@pytest.mark.parametrize(("reference", "group"), [((0, 2, 1), (0, 1)), ((1, 0, 2), (0, 1, 2)), ((2, 0, 1), (1, 2))])
def test_odds_stay_within_theorem_4_1(reference: tuple[int, ...], group: tuple[int, ...]) -> None:
    rng, theta = np.random.default_rng(1), 0.5
    law = oracle.mallows(reference, theta, "kendall")
    alpha = order.alpha_for_theta(theta, reference=reference, groups=[group]).upper
    channel, reached = oracle.randomized_response(2, 1.5), 0.0
    for _ in range(25):
        weights = rng.dirichlet(np.full(8, 0.3)).tolist()
        prior = dict(zip(itertools.product(range(2), repeat=3), weights, strict=True))
        # Members only: records outside the group are known beforehand.
        shift = oracle.odds_shift(prior, channel, law, group)
        assert shift <= alpha + 1e-9
        reached = max(reached, shift)
    assert reached > 0.3 * alpha
    bounds = order.posterior_odds(alpha, prior_odds=3.0)
    assert bounds.lower <= 3.0 * math.exp(-reached)
    assert 3.0 * math.exp(reached) <= bounds.upper


def test_odds_and_probabilities_agree() -> None:
    for alpha, prior in itertools.product((0.0, 1e-9, 0.3, 5.0, 50.0), (1e-12, 0.01, 0.5, 0.999)):
        odds = order.posterior_odds(alpha, prior_odds=prior / (1 - prior))
        chance = order.posterior_probability(alpha, prior=prior)
        assert chance.upper == pytest.approx(odds.upper / (1 + odds.upper), rel=1e-12)
        assert chance.lower == pytest.approx(odds.lower / (1 + odds.lower), rel=1e-12)
        assert chance.lower <= prior <= chance.upper <= 1
    assert (order.posterior_probability(9.0, prior=0).upper, order.posterior_probability(9.0, prior=1).lower) == (0, 1)
    far = order.posterior_odds(1000.0, prior_odds=2.0)
    assert (far.lower, far.upper) == (0.0, math.inf)
    assert order.posterior_odds(1000.0, prior_odds=0.0).upper == 0.0
    assert order.posterior_probability(1000.0, prior=0.5).upper == 1.0


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("theta", [0.0, 0.15, 0.6])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_finding_one_person_stays_within_theorem_4_2(n: int, theta: float, epsilon: float) -> None:
    reference = tuple(np.random.default_rng(n).permutation(n).tolist())
    law, channel = oracle.mallows(reference, theta, "kendall"), oracle.randomized_response(2, epsilon)
    group = list(range(n)) if n < 5 else [0, 2, 3]
    alpha = order.alpha_for_theta(theta, reference=reference, groups=[group]).upper
    for values in ([1] + [0] * (n - 1), [0] * n, [i % 2 for i in range(n)]):
        won, lost = oracle.best_chance(law, channel, values, group[:1])
        bound = order.reidentification(alpha, epsilon=epsilon, group=len(group), wanted=1)
        assert won <= bound.upper + 1e-12
        assert lost >= (len(group) - 1) * math.exp(-(2 * epsilon + alpha)) * won - 1e-12


def test_finding_two_people_of_five() -> None:
    law, channel = oracle.mallows((3, 0, 4, 1, 2), 0.1, "kendall"), oracle.randomized_response(2, 0.2)
    alpha = order.alpha_for_theta(0.1, reference=(3, 0, 4, 1, 2), groups=[range(5)]).upper
    won, lost = oracle.best_chance(law, channel, [1, 1, 0, 0, 0], (0, 1))
    assert won <= order.reidentification(alpha, epsilon=0.2, group=5, wanted=2).upper
    assert lost >= math.exp(-(4 * 0.2 + alpha)) * won


def test_theorem_4_2_is_tight_without_information() -> None:
    won, _ = oracle.best_chance(
        oracle.mallows((0, 1, 2), 0.0, "kendall"), oracle.randomized_response(2, 0.0), [0] * 3, [0]
    )
    bound = order.reidentification(0.0, epsilon=0.0, group=3, wanted=1)
    assert won == pytest.approx(1 / 3)
    assert bound.upper == pytest.approx(1 / 3)


def test_theorem_4_2_fails_for_a_shuffle_that_looks_at_the_records() -> None:
    # Sorting forgets the order altogether (alpha = 0), yet the first place is person 0's more often than 1/3.
    for records in itertools.product(range(2), repeat=3):
        for moved in itertools.permutations(records):
            (turn,) = oracle.by_sorting(moved)
            assert [moved[i] for i in turn] == sorted(records)
    won, lost = oracle.best_chance_of(oracle.by_sorting, oracle.randomized_response(2, 0.0), [0, 0, 0], [0])
    assert won == pytest.approx(0.75)
    assert lost < 2 * won  # what the theorem would ask for at alpha = epsilon = 0
    assert won > order.reidentification(0.0, epsilon=0.0, group=3, wanted=1).upper


def test_composed_by_enumeration() -> None:
    reference, groups = (1, 0, 2), [(0, 2), (1, 2)]
    one, two = oracle.mallows(reference, 0.3, "kendall"), oracle.mallows((0, 1, 2), 0.5, "kendall")
    alphas = [oracle.alpha(law, groups, range(3)) for law in (one, two)]
    assert joint_alpha(one, two, groups) <= order.composed_alpha(alphas).upper + 1e-12
    again = order.alpha_for_theta(0.3, reference=reference, groups=groups).upper
    assert joint_alpha(one, one, groups) == pytest.approx(order.composed_alpha([again, again]).upper)


def joint_alpha(one: oracle.Law, two: oracle.Law, groups: Sequence[tuple[int, ...]]) -> float:
    """alpha of two releases of the same records, coins of their own."""
    worst = 0.0
    for start, group in itertools.product(oracle.orders(3), groups):
        for changed in oracle.neighbours(start, group):
            ratios = [
                max(math.log(p / oracle.releases(law, changed)[z]) for z, p in oracle.releases(law, start).items())
                for law in (one, two)
            ]
            worst = max(worst, sum(ratios))
    return worst


def test_mixed_and_processed_by_enumeration() -> None:
    groups = [(0, 2), (1, 2)]
    one, two = oracle.mallows((1, 0, 2), 0.3, "kendall"), oracle.mallows((0, 1, 2), 0.5, "kendall")
    alphas = [oracle.alpha(law, groups, range(3)) for law in (one, two)]
    mixed = {turn: 0.4 * one[turn] + 0.6 * two[turn] for turn in one}
    assert oracle.alpha(mixed, groups, range(3)) <= order.mixed_alpha(alphas).upper
    # Processing: only whether the first place holds record 0.
    for start, group in itertools.product(oracle.orders(3), groups):
        for changed in oracle.neighbours(start, group):
            first = [
                math.fsum(p for z, p in oracle.releases(one, records).items() if z[0] == 0)
                for records in (start, changed)
            ]
            assert math.log(first[0] / first[1]) <= alphas[0] + 1e-12


def test_sums_are_rounded_up() -> None:
    assert order.composed_alpha([0.1] * 10).upper >= 1.0
    assert order.composed_alpha([0.25, 0.5]).upper == 0.75
    assert order.mixed_alpha(iter([0.25, 0.5])).upper == 0.5
    assert order.composed_alpha([1e308, 1e308]).upper == math.inf


def test_no_noise_or_a_large_alpha_promises_nothing() -> None:
    assert order.reidentification(0.0, epsilon=math.inf, group=10, wanted=1).upper == 1.0
    assert order.reidentification(2000.0, epsilon=0.0, group=10, wanted=1).upper == 1.0


def test_findings_in_words() -> None:
    belief, chance = order.findings(0.5, epsilon=0.2, group=60, wanted=4)
    assert belief.sentence.endswith("is 37.75 % to 62.25 % probable after it.")
    assert chance.sentence == (
        "An adversary who knows all values finds more than half of the reports of 4 people, among the 60 reports of a "
        "group, with probability at most 36.85 %."
    )
    assert (
        "the report of one person, among the 3 reports of a group"
        in order.findings(0.5, epsilon=0.2, group=3, wanted=1)[1].sentence
    )
    assert len(order.findings(0.5, epsilon=0.2, group=8, wanted=4)) == 1
    assert belief.bound.kind == "bracket"
    assert chance.bound.sources[0].key == "meehan2022"


def test_bad_input() -> None:
    with pytest.raises(InvalidInputError, match=r"`wanted` must be an integer from 1 to 2, got wanted=3"):
        order.reidentification(1.0, epsilon=1.0, group=6, wanted=3)
    with pytest.raises(InvalidInputError, match=r"`epsilon` must be > 0"):
        order.reidentification(1.0, epsilon=-1.0, group=6, wanted=1)
    with pytest.raises(InvalidInputError, match=r"`alphas` must be at least one number"):
        order.composed_alpha([])
    with pytest.raises(InvalidInputError, match=r"`alphas` must be finite and >= 0"):
        order.mixed_alpha([-1.0])
    with pytest.raises(InvalidInputError, match=r"`prior` must be in \[0, 1\]"):
        order.posterior_probability(1.0, prior=1.5)
    with pytest.raises(InvalidInputError, match=r"`prior_odds` must be finite"):
        order.posterior_odds(1.0, prior_odds=math.inf)
