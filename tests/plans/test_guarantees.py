"""The plan guarantee against whole small plans, enumerated with feedback."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from hushuffle.plans import GroupingQuery, GroupingSet, Plan, aggregate, k_means
from hushuffle.plans.plan import Data
from hushuffle.questions import traffic
from oracles.plan_enumeration import (
    Law,
    Outcomes,
    Stage,
    excess,
    noisy_count,
    noisy_counts,
    outlier_among_many,
    plan_law,
    ratio,
    scrambled,
    seen_senders,
)

HALF, FIFTH, TENTH = Fraction(1, 2), Fraction(1, 5), Fraction(1, 10)
Views = tuple[Any, ...]


def by_column(column: int, targets: int, sigma: Fraction, dummies: int, cap: int | None) -> Stage:
    """Return a scrambled cluster whose targets are one column of the rows; rows without it take no part."""

    def stage(data: Sequence[tuple[int | None, ...]], _views: Views, _hidden: Views) -> Outcomes:
        truths = [row[column] for row in data]
        return scrambled([t for t in truths if t is not None], targets, sigma, dummies=dummies, cap=cap)

    return stage


def laws(stages: Sequence[Stage], one: Any, other: Any) -> tuple[Law, Law]:
    return plan_law(stages, one), plan_law(stages, other)


def two_sets(sigma: Fraction, dummies: int, people: int, *, capped: bool, per_person: Any = "all") -> Plan:
    sets = tuple(GroupingSet(columns=(name,), sizes=(3,)) for name in ("a", "b"))
    return aggregate(
        GroupingQuery(grouping_sets=sets, partitions=3),
        people=people,
        sigma=float(sigma),
        dummies=dummies,
        batch=people if per_person == "all" else people // 2,
        capped=capped,
        per_person=per_person,
    )


@pytest.mark.parametrize(("sigma", "dummies"), [(HALF, 1), (FIFTH, 2), (Fraction(3, 4), 0)])
def test_aggregate_loses_the_sum_over_all_reachable_clusters_not_the_longest_path(
    sigma: Fraction, dummies: int
) -> None:
    plan = two_sets(sigma, dummies, 2, capped=True)
    reachable = plan.reachable("people")
    assert [cluster.name for cluster in reachable] == ["send by a", "send by b"]
    assert plan.applies
    stages = [by_column(column, 3, sigma, dummies, cap=2) for column in (0, 1)]
    others = list(product(range(3), repeat=2))
    worst = {
        count: max(
            ratio(*laws(stages[:count], [(0,) * count, other[:count]], [(1,) * count, other[:count]]))
            for other in others
        )
        for count in (1, 2)
    }
    assert worst[2] == worst[1] ** len(reachable)
    assert worst[2] > worst[1]  # a path from a person to the result passes only one cluster of data-dependent messages


def test_the_sum_holds_with_delta_and_one_cluster_s_figure_does_not() -> None:
    stages = [by_column(column, 3, FIFTH, 2, cap=None) for column in (0, 1)]
    for other in product(range(3), repeat=2):
        single = [laws(stages[c : c + 1], [(0, 0), other], [(1, 1), other]) for c in (0, 1)]
        both = laws(stages, [(0, 0), other], [(1, 1), other])
        for growth in (Fraction(1), Fraction(3, 2), Fraction(3), Fraction(6)):
            total = excess(*both, growth**2)
            assert total <= sum(excess(*pair, growth) for pair in single)
            assert excess(*both, growth) > max(excess(*pair, growth) for pair in single)


@pytest.mark.parametrize(("sigma", "dummies"), [(HALF, 1), (FIFTH, 2), (Fraction(3, 4), 0)])
def test_both_ends_of_a_plan_hold_its_enumeration(sigma: Fraction, dummies: int) -> None:
    """The lower end is that of an item that moves in both clusters: more than either of them says."""
    plan = two_sets(sigma, dummies, 2, capped=False)
    stages = [by_column(column, 3, sigma, dummies, cap=None) for column in (0, 1)]
    pairs = [laws(stages, [(0, 0), other], [(1, 1), other]) for other in product(range(3), repeat=2)]
    for delta in (0.2, 0.05, 0.01):
        found = traffic.plan_guarantee(plan, delta=delta).epsilon
        alone = max(bound.upper for _, bound in traffic.cluster_guarantees(plan, delta=delta))
        least, most = (
            max(excess(*pair, Fraction(math.exp(level))) for pair in pairs)
            for level in (found.lower * (1 - 1e-9), found.upper)
        )
        assert most <= delta * (1 + 1e-9)
        assert least >= delta * (1 - 1e-9)
        assert found.lower > alone


def test_one_grouping_set_for_each_person_costs_the_maximum() -> None:
    plan = two_sets(HALF, 1, 4, capped=True, per_person="one")
    assert [[c.name for c in plan.reachable(data.name)] for data in plan.data] == [["send by a"], ["send by b"]]
    assert plan.assumptions
    stages = [by_column(column, 3, HALF, 1, cap=2) for column in (0, 1)]
    rest: list[tuple[int | None, int | None]] = [(2, None), (None, 0), (None, 2)]
    whole = ratio(*laws(stages, [(0, None), *rest], [(1, None), *rest]))
    assert whole == ratio(*laws(stages[:1], [(0, None), *rest], [(1, None), *rest]))


def test_a_changed_target_touches_two_nodes_downstream() -> None:
    # Stage one is a broadcast and reveals nothing; the target that got the tuple, and only it, then sends to node 1.
    def first(data: Sequence[int], _views: Views, _hidden: Views) -> Outcomes:
        return scrambled(data, 2, Fraction(0), dummies=1, cap=1)

    def second(data: Sequence[int], _views: Views, _hidden: Views) -> Outcomes:
        return seen_senders([1 - data[0], data[0]], 2, TENTH)

    assert ratio(*laws([first], (0,), (1,))) == 1
    one_message = Fraction(19)  # 1 + (1 - sigma) T / sigma
    assert ratio(*laws([first, second], (0,), (1,))) == one_message**2


def test_hidden_centroids_break_the_published_sum() -> None:
    claimed = Fraction(9) ** 2  # e**(2 epsilon), epsilon = ln((1 - sigma) T/sigma + 1)
    assert round(math.log(claimed), 2) == 4.39
    true = outlier_among_many(200, FIFTH, claimed)
    assert abs(true - Fraction(9, 10)) < Fraction(1, 10**43)
    hidden = k_means(people=200, centroids=2, iterations=2, variant="hidden", sigma=0.2)
    assert "200 messages" in hidden.refusals()[0]


def test_the_formula_for_an_outlier_is_the_enumeration_of_two_rounds() -> None:
    def first(data: Sequence[int], _views: Views, _hidden: Views) -> Outcomes:
        return scrambled(data, 2, FIFTH)

    def second(data: Sequence[int], _views: Views, hidden: Views) -> Outcomes:
        moved = data[0] == 1 and hidden[0][0]
        return scrambled([data[0], *([0] if moved else [1]) * (len(data) - 1)], 2, FIFTH)

    for people, growth in ((2, Fraction(1)), (3, Fraction(2)), (4, Fraction(3, 2))):
        others = [1] * (people - 1)
        pair = laws([first, second], [1, *others], [0, *others])
        assert excess(*pair, growth) == outlier_among_many(people, FIFTH, growth)


def counts_released(noise: Fraction, targets: int, *, known: bool) -> list[Stage]:
    """Return traffic in which redirected messages never carry data, then noisy counts of what arrived.

    `known`: the watcher is told which of the others were redirected, and there is no release.
    """

    def traffic(data: Sequence[int], _views: Views, _hidden: Views) -> Outcomes:
        law: Outcomes = defaultdict(Fraction)
        for (view, arrived), chance in scrambled(data, targets, HALF, dummies=1, lucky=False).items():
            law[(view, arrived[1:]) if known else view, arrived] += chance
        return dict(law)

    def release(data: Sequence[int], _views: Views, hidden: Views) -> Outcomes:
        counts = [sum(x == t and ok for x, ok in zip(data, hidden[0], strict=True)) for t in range(targets)]
        return {(values, None): chance for values, chance in noisy_counts(counts, len(data), noise).items()}

    return [traffic] if known else [traffic, release]


@pytest.mark.parametrize("noise", [Fraction(1, 2), Fraction(1, 10)])
@pytest.mark.parametrize(("targets", "others"), [(2, (0, 1)), (2, (0, 0)), (3, (2,)), (3, (0,))])
def test_a_release_composes_with_traffic_whose_coins_are_known(
    noise: Fraction, targets: int, others: tuple[int, ...]
) -> None:
    step = 1 / noise**2  # one replaced tuple moves two counts by one
    for one, other in ((0, 1), (1, 0)):
        both = laws(counts_released(noise, targets, known=False), (one, *others), (other, *others))
        known = laws(counts_released(noise, targets, known=True), (one, *others), (other, *others))
        for growth in (Fraction(1), Fraction(3, 2), Fraction(2)):
            assert excess(*both, growth * step) <= excess(*known, growth)


def test_noisy_counts_are_laws() -> None:
    for count in range(4):
        law = noisy_count(count, 3, Fraction(1, 3))
        assert sum(law.values()) == 1
    near, next_one = noisy_count(1, 3, Fraction(1, 3)), noisy_count(2, 3, Fraction(1, 3))
    assert max(max(near[v] / next_one[v], next_one[v] / near[v]) for v in near) == 3


@pytest.mark.parametrize("growth", [Fraction(1), Fraction(3, 2), Fraction(9, 2)])
def test_a_break_of_the_channels_costs_its_advantage_once_for_each_dataset(growth: Fraction) -> None:
    """docs/theory/traffic.md, Theorem 9: laws within a of the ideal ones stay within delta + (1 + e**epsilon) a, and
    reach it."""
    stage = by_column(0, 3, FIFTH, 2, cap=None)
    ideal, other = laws([stage], [(0,), (2,)], [(1,), (2,)])
    delta = excess(ideal, other, growth)
    seen = [view for view in ideal if ideal[view] > growth * other[view]]
    hidden = [view for view in ideal if view not in seen]
    for advantage in (Fraction(0), Fraction(1, 1000), Fraction(1, 50)):
        real = moved(ideal, hidden, seen, advantage)
        real_other = moved(other, seen, hidden, advantage)
        assert excess(real, real_other, growth) == delta + (1 + growth) * advantage
        assert excess(real_other, real, growth) <= excess(other, ideal, growth) + (1 + growth) * advantage
    assert f"{(1 + math.exp(5)) * 1e4 * 2.0**-80:.1e}" == "1.2e-18"


def moved(law: Law, start: Sequence[Any], end: Sequence[Any], share: Fraction) -> Law:
    """Return the law with `share` of its mass moved from the views at `start` to those at `end`, in proportion."""
    changed: Law = dict(law)
    for views, sign in ((start, -1), (end, 1)):
        whole = sum(law[view] for view in views)
        for view in views:
            changed[view] += sign * share * law[view] / whole
    return changed


@pytest.mark.parametrize(("noise", "others"), [(HALF, (0, 1)), (Fraction(1, 10), (0, 0)), (Fraction(4, 5), (0, 1))])
def test_noisy_results_and_traffic_are_within_the_guarantee_of_both(noise: Fraction, others: tuple[int, ...]) -> None:
    """docs/theory/traffic.md, Theorem 10: counts of what arrived, with noise, seen together with the messages."""
    query = GroupingQuery(grouping_sets=(GroupingSet(columns=("a",), sizes=(2,)),), partitions=2)
    plan = aggregate(query, people=3, epsilon=-2 * math.log(noise), sigma=0.5, dummies=1, batch=3)
    assert plan.coins_known(plan.cluster("send by a"))
    pairs = [laws(counts_released(noise, 2, known=False), (a, *others), (1 - a, *others)) for a in (0, 1)]
    for delta in (0.0, 0.01, 0.1):
        upper = traffic.plan_guarantee(plan, delta=delta).epsilon.upper
        assert max(excess(*pair, Fraction(math.exp(upper))) for pair in pairs) <= delta + 1e-12
        apart = traffic.traffic_and_releases(plan, delta=delta)
        assert apart is not None
        for place, bound in enumerate(apart):
            seen = [(marginal(one, place), marginal(other, place)) for one, other in pairs]
            assert max(excess(*pair, Fraction(math.exp(bound.upper))) for pair in seen) <= delta + 1e-12
            assert bound.upper < upper


def test_two_noisy_grouping_sets_of_the_same_people_share_epsilon() -> None:
    sets = tuple(GroupingSet(columns=(name,), sizes=(2,)) for name in ("a", "b"))
    query = GroupingQuery(grouping_sets=sets, partitions=2)
    plan = aggregate(query, people=2, epsilon=4 * math.log(2), sigma=0.5, dummies=0, batch=2)
    assert [release.epsilon for release in plan.releases] == [2 * math.log(2)] * 2

    def of_column(column: int) -> list[Stage]:
        def send(data: Sequence[tuple[int, int]], _views: Views, _hidden: Views) -> Outcomes:
            return scrambled([row[column] for row in data], 2, HALF, lucky=False)

        def release(data: Sequence[tuple[int, int]], _views: Views, hidden: Views) -> Outcomes:
            arrived = [row[column] for row, came in zip(data, hidden[-1], strict=True) if came]
            law = noisy_counts([arrived.count(0), arrived.count(1)], 2, HALF)
            return {(values, None): chance for values, chance in law.items()}

        return [send, release]

    upper = traffic.plan_guarantee(plan, delta=0.0).epsilon.upper
    results = traffic.traffic_and_releases(plan, delta=0.0)
    assert results is not None
    assert results[1].upper == pytest.approx(4 * math.log(2))
    for other in product(range(2), repeat=2):
        one, two = laws([*of_column(0), *of_column(1)], [(0, 0), other], [(1, 1), other])
        assert ratio(one, two) <= Fraction(math.exp(upper)) * (1 + Fraction(1, 10**9))
        released = [marginal(law, 1, 3) for law in (one, two)]
        assert ratio(*released) <= Fraction(math.exp(results[1].upper))


def marginal(law: Law, *places: int) -> Law:
    """Return the law of some of the views."""
    seen: Law = defaultdict(Fraction)
    for views, chance in law.items():
        seen[tuple(views[place] for place in places)] += chance
    return dict(seen)


@pytest.mark.parametrize("per_person", ["all", "one"])
def test_delta_and_epsilon_of_a_plan_belong_together(per_person: Any) -> None:
    plan = two_sets(FIFTH, 4, 6, capped=False, per_person=per_person)
    sizes = [0.0, 0.5, 2.0]
    deltas = [traffic.plan_delta(plan, epsilon=epsilon).upper for epsilon in sizes]
    assert deltas == sorted(deltas, reverse=True)
    for epsilon, delta in zip(sizes, deltas, strict=True):
        assert traffic.plan_guarantee(plan, delta=delta * (1 + 1e-6)).epsilon.upper <= epsilon + 1e-3
        assert traffic.plan_guarantee(plan, delta=delta * 0.9).epsilon.upper > epsilon
    few = two_sets(FIFTH, 4, 6, capped=False)
    several = replace(
        few,
        data=(*few.data, Data(name="more", items=6)),
        clusters=(*few.clusters, replace(few.clusters[0], name="m", reads=("more",))),
    )
    assert traffic.plan_delta(several, epsilon=0.5) == traffic.plan_delta(few, epsilon=0.5)


def test_distance_of_a_plan_is_no_less_than_enumerated() -> None:
    plan = two_sets(HALF, 1, 2, capped=False)
    stages = [by_column(column, 3, HALF, 1, None) for column in (0, 1)]
    most = max(
        excess(*laws(stages, [(0, 0), rest], [(1, 1), rest]), Fraction(1)) for rest in [(0, 0), (1, 1), (2, 2), (0, 1)]
    )
    found = traffic.plan_delta(plan, epsilon=0.0).upper
    assert float(most) <= found <= 1.2 * float(most)


def test_a_plan_whose_messages_are_fixed_tells_nothing() -> None:
    plan = two_sets(HALF, 1, 2, capped=False)
    still = replace(plan, clusters=tuple(replace(one, moves=0) if not one.fixed else one for one in plan.clusters))
    assert traffic.plan_delta(still, epsilon=0.0).upper == 0
