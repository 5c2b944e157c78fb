"""Clusters and plans: what is refused, what an item reaches, when Theorem 1 applies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.mechanisms.shufflers import NoShuffle, Scrambler
from hushuffle.plans import Cluster, Data, Edge, Plan, Release, messages

SAMPLING = TargetSampling(targets=3, sigma=0.5)
PEOPLE = Data(name="people", items=6)


def send(name: str = "send", **changes: Any) -> Cluster:
    values: dict[str, Any] = {"sources": 6, "targets": 3, "reads": ("people",), "sampling": SAMPLING}
    return Cluster(name=name, **(values | changes))


def forward(name: str = "forward", **changes: Any) -> Cluster:
    """Return a cluster of three nodes whose targets depend on what they receive."""
    return send(name, **({"sources": 3, "reads": ()} | changes))


def plan(*clusters: Cluster, edges: tuple[tuple[str, ...], ...] = (), **changes: Any) -> Plan:
    values: dict[str, Any] = {"name": "test", "data": (PEOPLE,), "clusters": clusters}
    made = tuple(Edge(start=edge[0], end=edge[1], carries=(*edge, "hidden")[2]) for edge in edges)  # type: ignore[arg-type]
    return Plan(**(values | {"edges": made} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "`name` must be not empty"),
        ({"sources": 0}, "`sources` must be an integer >= 1"),
        ({"targets": 0}, "`targets` must be an integer >= 1"),
        ({"reads": ("people", "people")}, "`reads` must be different names"),
        ({"moves": 7}, "`moves` must be an integer from 0 to 6"),
        ({"targets": 4}, "`sampling` must be for the cluster's 4 targets"),
        ({"messages": 9}, "`messages` must be None unless"),
        ({"batch": 3}, "`batch` must be None without a scrambler"),
        ({"sampling": None}, "`sampling` must be set for clusters with data"),
        ({"sampling": None, "reads": (), "moves": 1}, "`sampling` must be set for clusters with data"),
        ({"sampling": None, "reads": (), "messages": -1}, "`messages` must be an integer >= 0"),
        ({"scrambler": Scrambler(dummies=1), "batch": 7}, "`batch` must be an integer from 1 to 6"),
        ({"sources": 7, "scrambler": Scrambler(dummies=1, cap=4), "batch": 4}, "`batch` must be equal for all"),
        ({"scrambler": Scrambler(dummies=1, cap=2), "batch": 3}, "`cap` must be None or the number of people"),
        (
            {"scrambler": Scrambler(dummies=1), "sampling": TargetSampling(targets=3, sigma=0.5, flood=1)},
            "`flood` must be 0 behind a scrambler",
        ),
        ({"min_batch": 1}, "`min_batch` must be None without a scrambler"),
        ({"scrambler": Scrambler(dummies=1), "min_batch": 0}, "`min_batch` must be an integer from 1 to 6"),
        ({"scrambler": Scrambler(dummies=1), "min_batch": 7}, "`min_batch` must be an integer from 1 to 6"),
        ({"scrambler": Scrambler(dummies=1), "batch": 4, "min_batch": 4}, "`min_batch` must be an integer from 1 to 3"),
        (
            {"scrambler": Scrambler(dummies=1, cap=3), "batch": 3, "min_batch": 2},
            "`min_batch` must be the 3 sources of each batch if capped",
        ),
    ],
)
def test_clusters_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        send(**changes)


def test_batches_are_spread_evenly_and_the_smallest_counts() -> None:
    cluster = send(scrambler=Scrambler(dummies=2), batch=4)
    assert (cluster.scramblers, cluster.smallest) == (2, 3)
    assert (cluster.protocol.n, cluster.protocol.shuffler) == (3, Scrambler(dummies=2))
    assert send(scrambler=Scrambler(dummies=2)).batch == 6
    capped = send(scrambler=Scrambler(dummies=2, cap=3), batch=3)
    assert capped.protocol.n == 3


def test_a_cluster_without_scramblers_is_the_local_model() -> None:
    cluster = send()
    assert (cluster.scramblers, cluster.smallest, cluster.fixed) == (0, 6, False)
    assert cluster.protocol.shuffler == NoShuffle()
    assert "6 sources: every message goes to its own one of 3 targets" in cluster.describe()


def test_a_fixed_cluster_has_no_protocol() -> None:
    fixed = Cluster(name="result", sources=1, targets=1, messages=0)
    assert fixed.fixed
    assert fixed.describe() == "1 source, whose messages do not depend on the data"
    with pytest.raises(InvalidInputError, match="one with data-dependent messages"):
        _ = fixed.protocol


def test_descriptions_name_the_scramblers() -> None:
    many = send(sources=5, scrambler=Scrambler(dummies=2), batch=4)
    assert "; 2 scramblers of 2 or 3 sources and 2 dummies" in many.describe()
    assert "; 1 scrambler of 6 sources" in send(scrambler=Scrambler(dummies=2)).describe()


def test_a_shortcut_makes_clusters() -> None:
    made = messages("send", sources=6, targets=3, sigma=0.5, reads=("people",), dummies=2, batch=3, capped=True)
    assert made == send(scrambler=Scrambler(dummies=2, cap=3), batch=3)
    assert messages("send", sources=6, targets=3, sigma=0.5, reads=("people",)) == send()
    assert messages("send", sources=6, targets=3, sigma=0.5, batch=3).scrambler == Scrambler(dummies=0)
    with pytest.raises(InvalidInputError, match="`capped` must be False without scramblers"):
        messages("send", sources=6, targets=3, sigma=0.5, capped=True)


FIXED = Cluster(name="compute", sources=3, targets=1)


@pytest.mark.parametrize(
    ("clusters", "changes", "message"),
    [
        ((), {}, "`data and clusters` must be at least one of each"),
        ((send(),), {"data": ()}, "`data and clusters` must be at least one of each"),
        ((send(), send()), {}, "`clusters` must be nodes with distinct names"),
        ((send(),), {"data": (PEOPLE, PEOPLE)}, "`data` must be nodes with distinct names"),
        ((send(reads=("cars",)),), {}, "`reads of send` must be among the data people"),
        ((send(sources=7),), {}, "`sources of send` must be at most its 6 data items.* two of its messages"),
        ((send(reads=()),), {}, "`reads of send` must be non-empty"),
        ((send(),), {"edges": (("send", "end"),)}, "`the end of an edge` must be one of the clusters send"),
        ((send(),), {"edges": (("start", "send"),)}, "`the start of an edge` must be one of"),
        ((send(), FIXED), {"edges": (("send", "compute"),) * 2}, "`edges` must be nodes with distinct names"),
        ((send(), replace(FIXED, sources=4)), {"edges": (("send", "compute"),)}, "`targets of send` must be 4"),
        (
            (send(), FIXED, replace(FIXED, name="again")),
            {"edges": (("send", "compute"), ("send", "again"))},
            "`edges of send` must be at most one",
        ),
        ((send(), FIXED), {"edges": (("send", "compute", "released"),)}, "covered by a Release"),
        ((send(), FIXED), {"edges": (("send", "compute", "assumed public"),)}, "`assumptions` must be a text"),
        ((send(), FIXED), {"edges": (("send", "compute", "open"),)}, "`carries` must be one of hidden"),
        (
            (send(), forward("x"), forward("y")),
            {"edges": (("x", "y"), ("y", "x"))},
            "`edges` must be without a cycle, got edges=one through x, y",
        ),
    ],
)
def test_plans_that_do_not_fit(clusters: tuple[Cluster, ...], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        plan(*clusters, **changes)


def test_releases_are_checked() -> None:
    release = Release(name="sums", start="compute", epsilon=0.5)
    assert plan(send(), FIXED, releases=(release,)).releases == (release,)
    with pytest.raises(InvalidInputError, match="`the start of a release` must be"):
        plan(send(), releases=(release,))
    with pytest.raises(InvalidInputError, match="`epsilon, rho` must be exactly one"):
        Release(name="sums", start="compute")
    with pytest.raises(InvalidInputError, match="`rho` must be finite and > 0"):
        Release(name="sums", start="compute", rho=0.0)


def test_names_are_looked_up() -> None:
    made = plan(send())
    assert made.cluster("send") is made.clusters[0]
    with pytest.raises(InvalidInputError, match="`name` must be one of the clusters send"):
        made.cluster("receive")
    with pytest.raises(InvalidInputError, match="`data` must be one of people"):
        made.reachable("cars")


def test_data_dependent_forwarding_is_refused_unless_stated() -> None:
    made = plan(send(), forward(), edges=(("send", "forward"),))
    assert [c.name for c in made.reachable("people")] == ["send", "forward"]
    assert [made.moves(c) for c in made.clusters] == [1, 3]
    assert not made.applies
    assert made.refusals()[0].startswith("One item can move 3 messages of the cluster 'forward'")
    stated = plan(send(), forward(moves=1), edges=(("send", "forward"),))
    assert stated.applies
    assert [c.name for c in stated.reachable("people")] == ["send", "forward"]
    assert [c.name for c in plan(send(moves=0), FIXED).reachable("people")] == []


def test_hidden_contents_pass_through_fixed_clusters() -> None:
    again = forward("again", sources=1)
    made = plan(send(), FIXED, again, edges=(("send", "compute"), ("compute", "again")))
    assert [c.name for c in made.reachable("people")] == ["send", "again"]
    assert [made.moves(c) for c in made.clusters] == [1, 0, 1]  # one node sends one message
    assert [[c.name for c in layer] for layer in made.layers] == [["send"], ["compute"], ["again"]]


def test_released_contents_stop_there_and_make_coins_known() -> None:
    release = Release(name="sums", start="compute", rho=0.1)
    made = plan(
        send(), FIXED, send("again"), edges=(("send", "compute"), ("compute", "again", "released")), releases=(release,)
    )
    assert made.applies
    assert [c.name for c in made.reachable("people")] == ["send", "again"]
    assert made.releases_reached("people") == (release,)
    assert [made.coins_known(c) for c in made.clusters] == [True, True, False]


def test_data_reach_their_own_clusters_only() -> None:
    cars = Data(name="cars", items=6)
    made = plan(send(), send("drive", reads=("cars",)), data=(PEOPLE, cars))
    assert [[c.name for c in made.reachable(d.name)] for d in made.data] == [["send"], ["drive"]]
    assert made.releases_reached("cars") == ()


def test_a_guarantee_is_stated_for_the_fewest_that_a_scrambler_releases() -> None:
    batches: dict[str, Any] = {"sources": 7, "scrambler": Scrambler(dummies=2), "batch": 4}
    everybody, fewer = send(**batches), send(**batches, min_batch=2)
    assert (everybody.smallest, everybody.min_batch, everybody.protocol.n) == (3, 3, 3)
    assert (fewer.smallest, fewer.min_batch, fewer.protocol.n) == (3, 2, 2)
    assert "sources and" in everybody.describe()
    assert "sources (2 at least) and" in fewer.describe()
    assert send().min_batch is None
    assert send().protocol.n == 6
