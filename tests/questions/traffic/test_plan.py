from __future__ import annotations

import math

import pytest

import hushuffle as hs
from hushuffle.curves.laws.released import CoinsKnown
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import symmetric_law
from hushuffle.plans import CentroidNoise, Cluster, Data, GroupingQuery, GroupingSet, Plan, aggregate, k_means


def query(count: int, partitions: int = 8) -> GroupingQuery:
    sets = tuple(GroupingSet(columns=(f"c{number}",), sizes=(partitions,)) for number in range(count))
    return GroupingQuery(grouping_sets=sets, partitions=partitions)


def test_one_cluster_has_the_figure_of_its_scrambler() -> None:
    plan = aggregate(query(1), people=400, sigma=0.2, dummies=30, batch=100)  # 80 of a batch at least
    for delta in (0.0, 1e-5):
        alone = hs.traffic.scrambler_epsilon(targets=8, sources=80, sigma=0.2, dummies=30, delta=delta)
        found = hs.traffic.plan_guarantee(plan, delta=delta)
        assert (found.lower, found.upper) == (alone.lower, alone.upper)
        assert found.delta == delta


def test_pure_figures_add_up_over_all_grouping_sets() -> None:
    plan = aggregate(query(3), people=400, sigma=0.2)
    one = hs.traffic.sampling_epsilon(targets=8, sigma=0.2).upper
    found = hs.traffic.plan_guarantee(plan, delta=0.0)
    assert found.upper == pytest.approx(3 * one, rel=1e-12)
    assert found.epsilon.kind == "exact"
    assert hs.traffic.theorem_one(plan, delta=0.0).upper == pytest.approx(3 * one, rel=1e-12)


def test_composition_of_losses_beats_the_sum() -> None:
    plan = aggregate(query(4), people=2000, sigma=0.3, dummies=50, batch=500)
    composed, added = hs.traffic.plan_guarantee(plan, delta=1e-4), hs.traffic.theorem_one(plan, delta=1e-4)
    alone = [bound for _, bound in hs.traffic.cluster_guarantees(plan, delta=1e-4)]
    assert len(alone) == 4
    assert max(bound.upper for bound in alone) < composed.upper < 0.8 * added.upper
    shares = [bound.upper for _, bound in hs.traffic.cluster_guarantees(plan, delta=1e-4 / 4)]
    assert added.upper == pytest.approx(sum(shares), rel=1e-12)


def test_one_grouping_set_per_person_counts_once() -> None:
    every = aggregate(query(3), people=900, sigma=0.2)
    one = aggregate(query(3), people=900, sigma=0.2, per_person="one")
    assert hs.traffic.plan_guarantee(one, delta=0.0).upper == pytest.approx(
        hs.traffic.plan_guarantee(every, delta=0.0).upper / 3
    )


def test_hidden_centroids_are_refused_with_the_reason() -> None:
    plan = k_means(people=200, centroids=2, iterations=2, variant="hidden", sigma=0.2)
    for question in (hs.traffic.plan_guarantee, hs.traffic.theorem_one):
        with pytest.raises(UnsupportedProtocolError, match="hidden contents"):
            question(plan, delta=1e-5)


def test_private_centroids_cost_their_noise_as_well() -> None:
    gaussian = CentroidNoise(kind="gaussian", radius=1.0, scale=40.0)
    laplace = CentroidNoise(kind="laplace", radius=1.0, scale=60.0)
    plans = [
        k_means(
            people=500,
            centroids=4,
            iterations=2,
            variant="private-centroids",
            sigma=0.3,
            dummies=40,
            batch=250,
            noise=noise,
        )
        for noise in (gaussian, laplace)
    ]
    public = k_means(
        people=500, centroids=4, iterations=2, variant="public-centroids", sigma=0.3, dummies=40, batch=250
    )
    conditional = hs.traffic.plan_guarantee(public, delta=1e-5)
    for plan in plans:
        found = hs.traffic.plan_guarantee(plan, delta=1e-5)
        assert conditional.upper < found.upper < hs.traffic.theorem_one(plan, delta=1e-5).upper
    assert hs.traffic.plan_guarantee(plans[0], delta=0.0).upper == math.inf
    assert public.assumptions


def test_known_coins_without_scramblers_are_the_local_figure() -> None:
    plan = k_means(
        people=500,
        centroids=4,
        iterations=1,
        variant="private-centroids",
        sigma=0.3,
        noise=CentroidNoise(kind="laplace", radius=1.0, scale=8.0),
    )
    local = hs.traffic.sampling_epsilon(targets=4, sigma=0.3).upper
    assert hs.traffic.plan_guarantee(plan, delta=0.0).upper == pytest.approx(local + 0.5, rel=1e-12)


def test_sources_whose_coins_are_known_hide_nobody_behind_a_scrambler() -> None:
    plan = k_means(
        people=500,
        centroids=2,
        iterations=1,
        variant="private-centroids",
        sigma=0.3,
        dummies=40,
        batch=250,
        noise=CentroidNoise(kind="laplace", radius=1.0, scale=40000.0),
    )
    (cluster,) = [cluster for cluster in plan.clusters if not cluster.fixed]
    assert plan.coins_known(cluster)
    sampling = cluster.protocol.randomizer
    only_dummies = CoinsKnown.of(
        law=symmetric_law(sampling, for_what="this test"), local_epsilon=sampling.local_epsilon, n=250, dummies=40
    )
    alone, unknown = only_dummies.epsilon(1e-5).upper, hs.dp.epsilon(cluster.protocol, delta=1e-5).upper
    assert hs.traffic.plan_guarantee(plan, delta=1e-5).upper >= alone > 1.01 * unknown


def test_a_plan_without_data_dependent_messages_reveals_nothing() -> None:
    fixed = Cluster(name="poll", sources=5, targets=1)
    plan = Plan(name="fixed", data=(Data(name="people", items=5),), clusters=(fixed,))
    assert hs.traffic.plan_guarantee(plan, delta=0.0).upper == 0
    assert hs.traffic.cluster_guarantees(plan, delta=0.0) == ()
    assert hs.traffic.theorem_one(plan, delta=0.0).upper == 0


def test_wrong_delta() -> None:
    with pytest.raises(InvalidInputError, match="`delta`"):
        hs.traffic.plan_guarantee(aggregate(query(1), people=40, sigma=0.2), delta=2.0)
