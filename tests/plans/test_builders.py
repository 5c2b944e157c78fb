"""The plans of Aggregate and k-means, their costs and their drawings."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.plans import (
    CentroidNoise,
    GroupingQuery,
    GroupingSet,
    Plan,
    aggregate,
    cluster_costs,
    describe,
    k_means,
    layout,
    plan_costs,
    sources_needed,
    svg,
    use_chance,
)
from hushuffle.plans.builders import CENTROIDS_PUBLIC, CHOSEN_BLINDLY
from hushuffle.plans.drawing import HEIGHT, WIDTH

NOISE = CentroidNoise(kind="gaussian", radius=1.0, scale=10.0)
SETS = tuple(GroupingSet(columns=(name,), sizes=(20,)) for name in ("age", "bmi"))
QUERY = GroupingQuery(grouping_sets=SETS, partitions=20)


def two_means(variant: Any, **changes: Any) -> Plan:
    values: dict[str, Any] = {"people": 200, "centroids": 2, "iterations": 3, "sigma": 0.2}
    return k_means(variant=variant, **(values | changes))


def test_aggregate_costs_are_the_formulas() -> None:
    plan = aggregate(QUERY, people=10_050, sigma=0.2, dummies=50, batch=100)
    costs = plan_costs(plan)
    assert costs.messages == 2 * (2 * 10_050 + 101 * 50) + 2 * 20
    assert costs.channels == 2 * (10_050 + 101 * 20) + 2 * 20
    assert (costs.busiest, costs.scramblers) == (100 + 20, 202)
    assert costs.overhead == costs.messages - 2 * 10_050 - 2 * 20
    assert costs.used == pytest.approx(2 * 10_050 * 0.81)


def test_flooding_costs() -> None:
    plan = aggregate(QUERY, people=100, sigma=0.2, flood=3)
    costs = cluster_costs(plan.cluster("send by age"))
    assert (costs.messages, costs.channels, costs.busiest, costs.scramblers) == (400, 400, 4, 0)
    assert costs.used == pytest.approx(100 * (0.81 + 0.19 * 3 / 19))


def test_more_sources_make_up_for_lost_tuples() -> None:
    sampling = TargetSampling(targets=20, sigma=0.2)
    assert sources_needed(10_000, sampling) == 12_346  # the published S/(1 - sigma) asks for 12,500
    assert sources_needed(8_100, sampling) == 10_000
    exclusive = TargetSampling(targets=20, sigma=0.19, convention="exclusive")  # the same chances as `sampling`
    assert use_chance(exclusive, only_honest=True) == pytest.approx(use_chance(sampling, only_honest=True))
    assert use_chance(sampling) * 12_346 >= 10_000 > use_chance(sampling) * 12_345


def test_aggregate_with_one_set_for_each_person() -> None:
    plan = aggregate(QUERY, people=101, sigma=0.2, per_person="one")
    assert [data.items for data in plan.data] == [51, 50]
    assert plan.assumptions == (CHOSEN_BLINDLY,)
    with pytest.raises(InvalidInputError, match="`people` must be an integer >= 2"):
        aggregate(QUERY, people=1, sigma=0.2, per_person="one")
    with pytest.raises(InvalidInputError, match="`per_person` must be all or one"):
        aggregate(QUERY, people=1, sigma=0.2, per_person="some")  # type: ignore[arg-type]


def test_one_grouping_set_is_named_in_the_singular() -> None:
    query = GroupingQuery(grouping_sets=SETS[:1], partitions=2)
    assert aggregate(query, people=10, sigma=0.2).name == "Aggregate over 1 grouping set"


def test_hidden_centroids_have_no_guarantee() -> None:
    plan = two_means("hidden")
    assert [cluster.name for cluster in plan.reachable("people")] == ["assign 1", "assign 2", "assign 3"]
    assert [plan.moves(cluster) for cluster in plan.reachable("people")] == [1, 200, 200]
    assert len(plan.refusals()) == 2
    assert "no guarantee: One item can move 200 messages" in describe(plan)
    assert two_means("hidden", iterations=1).applies  # nothing is fed back


def test_public_centroids_say_so() -> None:
    plan = two_means("public-centroids")
    assert plan.applies
    assert plan.assumptions == (CENTROIDS_PUBLIC,)
    assert not any(plan.coins_known(cluster) for cluster in plan.clusters)
    assert f"assumed: {CENTROIDS_PUBLIC}" in describe(plan)
    assert "2 assign 2" not in describe(plan)
    assert "3 assign 2 <- people, update 1 (assumed public)" in describe(plan)


@pytest.mark.parametrize(
    ("noise", "cost"), [(NOISE, "rho 0.02"), (CentroidNoise(kind="laplace", radius=1.0, scale=8.0), "epsilon 0.5")]
)
def test_private_centroids_are_accounted_for(noise: CentroidNoise, cost: str) -> None:
    plan = two_means("private-centroids", noise=noise)
    assert plan.applies
    assert not plan.assumptions
    assert len(plan.releases_reached("people")) == 3
    assert [plan.coins_known(plan.cluster(f"assign {i}")) for i in (1, 2, 3)] == [True] * 3
    assert f"released with noise: centroids 3, after update 3 ({cost} for one item)" in describe(plan)
    # A redirected message carries nothing then, not even to its own target.
    assert plan_costs(plan).used == pytest.approx(3 * 200 * 0.8)
    assert plan_costs(two_means("hidden")).used == pytest.approx(3 * 200 * 0.9)


def test_centroids_travel_back_through_the_scramblers() -> None:
    with_them = two_means("hidden", dummies=5, batch=50)
    assert cluster_costs(with_them.cluster("update 1")).messages == 200 + 2 * 4
    assert cluster_costs(with_them.cluster("update 3")).messages == 2
    assert cluster_costs(two_means("hidden").cluster("update 1")).messages == 400


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant": "open"}, "`variant` must be one of private-centroids"),
        ({"variant": "private-centroids"}, "`noise` must be set if and only if centroids are private"),
        ({"variant": "hidden", "noise": NOISE}, "`noise` must be set if and only if centroids are private"),
        ({"variant": "hidden", "centroids": 1}, "`centroids` must be an integer >= 2"),
        ({"variant": "hidden", "iterations": 0}, "`iterations` must be an integer >= 1"),
    ],
)
def test_k_means_plans_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        two_means(**changes)


@pytest.mark.parametrize(
    "plan",
    [
        aggregate(QUERY, people=100, sigma=0.2, flood=2),
        two_means("private-centroids", noise=NOISE, dummies=5, batch=50),
        two_means("public-centroids", iterations=1),
    ],
    ids=["aggregate", "private", "one iteration"],
)
def test_drawings_are_inside_their_frame_and_apart(plan: Plan) -> None:
    drawing = layout(plan)
    assert len(drawing.boxes) == len(plan.data) + len(plan.clusters)
    assert all(0 < box.x <= drawing.width - WIDTH for box in drawing.boxes)
    assert all(0 < box.y <= drawing.height - HEIGHT for box in drawing.boxes)
    places = [(box.x, box.y) for box in drawing.boxes]
    assert len(set(places)) == len(places)
    ys = [sorted(y for x, y in places if x == column) for column in {x for x, _ in places}]
    assert all(b - a >= HEIGHT for column in ys for a, b in pairwise(column))
    root = ET.fromstring(svg(plan))  # noqa: S314 - our own
    assert root.attrib["width"] == str(drawing.width)
    # One arrowhead, and one path for each arrow.
    assert sum(element.tag.endswith("}path") for element in root.iter()) == len(drawing.arrows) + 1


def test_drawings_show_what_hides_the_messages_and_mark_public_contents() -> None:
    private = svg(two_means("private-centroids", noise=NOISE, dummies=5, batch=50))
    assert "sigma 0.2, 4 scramblers, d = 5" in private
    assert private.count("stroke-dasharray") == 2
    assert "stroke-dasharray" not in svg(two_means("hidden"))
    assert "flooding 2" in svg(aggregate(QUERY, people=100, sigma=0.2, flood=2))


def test_drawings_escape_and_shorten_names() -> None:
    strange = GroupingSet(columns=("a<b & a rather long name of it all",), sizes=(2,))
    plan = aggregate(GroupingQuery(grouping_sets=(strange,), partitions=2), people=4, sigma=0.5)
    picture = svg(plan)
    ET.fromstring(picture)  # noqa: S314 - our own
    assert "send by a&lt;b &amp; a rather long name …" in picture


def test_fewest_sources_of_a_scrambler_in_every_cluster() -> None:
    traffic: dict[str, Any] = {"sigma": 0.2, "dummies": 5, "batch": 50, "min_batch": 30}
    for plan in (
        aggregate(QUERY, people=200, **traffic),
        k_means(people=200, centroids=2, iterations=3, variant="hidden", **traffic),
    ):
        sent = [cluster for cluster in plan.clusters if cluster.reads]
        assert [(cluster.min_batch, cluster.protocol.n) for cluster in sent] == [(30, 30)] * len(sent)
    (everybody, *_) = aggregate(QUERY, people=200, sigma=0.2, dummies=5, batch=50).clusters
    assert everybody.min_batch == 40  # four fifths: one that is missing costs no batch
    (capped, *_) = aggregate(QUERY, people=200, sigma=0.2, dummies=5, batch=50, capped=True).clusters
    assert capped.min_batch == 50


def test_fewest_sources_need_scramblers_and_all_of_them_under_a_cap() -> None:
    with pytest.raises(InvalidInputError, match="`min_batch` must be None without scramblers"):
        aggregate(QUERY, people=200, sigma=0.2, min_batch=3)
    capped: dict[str, Any] = {"people": 200, "sigma": 0.2, "dummies": 5, "batch": 50, "capped": True}
    assert aggregate(QUERY, **capped, min_batch=50).clusters[0].protocol.n == 50
    with pytest.raises(InvalidInputError, match="`min_batch` must be the 50 sources of each batch if capped"):
        aggregate(QUERY, **capped, min_batch=49)
