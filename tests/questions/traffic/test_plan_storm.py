"""Random plans: never above the plain sum of their parts, never below one of them, and what the parts move together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.plans import CentroidNoise, Cluster, Data, Edge, Plan, Release, k_means

DELTAS = (0.0, 1e-9, 1e-6, 1e-4, 1e-2, 0.2)


def random_plan(rng: np.random.Generator, sizes: tuple[int, ...]) -> Plan:
    """Return up to twenty clusters that read the same people, of up to four kinds."""
    people = int(rng.choice(sizes))
    clusters: list[Cluster] = []
    for kind in range(int(rng.integers(1, 5))):
        targets = int(rng.choice([2, 3, 5, 20]))
        sampling = TargetSampling(targets=targets, sigma=float(rng.choice([0.05, 0.2, 0.5, 0.9])))
        hidden: dict[str, Any] = {}
        if rng.random() < 0.8:
            batch = max(1, people // int(rng.choice([1, 1, 2, 7])))
            hidden = {"scrambler": hs.Scrambler(dummies=int(rng.choice([0, 0, 1, 10, 50]))), "batch": batch}
        for copy in range(int(rng.choice([1, 1, 2, 5]))):
            name = f"{kind} {copy}"
            common: dict[str, Any] = {"sources": people, "targets": targets, "reads": ("people",)}
            clusters.append(Cluster(name=name, sampling=sampling, **common, **hidden))
    releases = []
    if rng.random() < 0.15:
        cost: dict[str, Any] = {"epsilon": 0.4} if rng.random() < 0.5 else {"rho": float(rng.uniform(1e-4, 0.05))}
        releases = [Release(name="noisy", start="0 0", **cost)]
    data = (Data(name="people", items=people),)
    return Plan(name="random", data=data, clusters=tuple(clusters), releases=tuple(releases))


def check(seed: int, sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    plan, delta = random_plan(rng, sizes), float(rng.choice(DELTAS))
    whole, added = hs.traffic.plan_guarantee(plan, delta=delta), hs.traffic.theorem_one(plan, delta=delta)
    assert whole.lower <= whole.upper <= added.upper * (1 + 1e-12), (seed, whole, added)
    if not plan.releases:
        alone = max(bound.lower for _, bound in hs.traffic.cluster_guarantees(plan, delta=delta))
        assert whole.lower >= alone * (1 - 1e-4) - 1e-12, (seed, whole, alone)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("start", [0, pytest.param(8, marks=pytest.mark.slow)])
def test_small_plans_cost_no_more_than_the_sum_and_no_less_than_a_part(start: int) -> None:
    for seed in range(start, start + (8 if start == 0 else 240)):
        check(seed, (2, 3, 10, 60))


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("start", range(1000, 2000, 50))
def test_plans_cost_no_more_than_the_sum_and_no_less_than_a_part(start: int) -> None:
    for seed in range(start, start + 50):
        check(seed, (2, 3, 10, 60, 400, 3000))


def test_what_an_item_moves_together() -> None:
    noise = CentroidNoise(kind="gaussian", radius=1.0, scale=40.0)
    common: dict[str, Any] = {"people": 100, "centroids": 4, "iterations": 3, "sigma": 0.3}
    public = k_means(variant="public-centroids", **common)
    assert [cluster.name for cluster in public.moved_together("people")] == ["assign 1", "assign 2", "assign 3"]
    # Where centroids are noisy, so is where the next message goes: only the first one is sure to move.
    private = k_means(variant="private-centroids", noise=noise, **common)
    assert [cluster.name for cluster in private.moved_together("people")] == ["assign 1"]
    first = hs.traffic.cluster_guarantees(private, delta=1e-5)[0][1]
    assert hs.traffic.plan_guarantee(private, delta=1e-5).lower == pytest.approx(first.lower, rel=1e-9)


def test_a_cluster_fed_by_others_coins_is_not_counted_below() -> None:
    sampling = TargetSampling(targets=2, sigma=0.5)
    ask = Cluster(name="ask", sources=9, targets=2, reads=("people",), sampling=sampling)
    forward = Cluster(name="forward", sources=2, targets=2, sampling=sampling, moves=1)
    data = (Data(name="people", items=9),)
    plan = Plan(name="fed", data=data, clusters=(ask, forward), edges=(Edge(start="ask", end="forward"),))
    assert [cluster.name for cluster in plan.moved_together("people")] == ["ask"]
    one = hs.traffic.sampling_epsilon(targets=2, sigma=0.5).upper
    found = hs.traffic.plan_guarantee(plan, delta=0.0)
    assert [found.lower, found.upper] == pytest.approx([one, 2 * one])
    # An item that only moves what others' coins decide: nothing is sure.
    silent = Cluster(name="ask", sources=9, targets=2, reads=("people",), sampling=sampling, moves=0)
    plan = Plan(name="fed", data=data, clusters=(silent, forward), edges=(Edge(start="ask", end="forward"),))
    found = hs.traffic.plan_guarantee(plan, delta=0.0)
    assert [found.lower, found.upper] == pytest.approx([0.0, one])
