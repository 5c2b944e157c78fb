"""`Plan`: clusters of nodes, who feeds whom, and what one person's data can influence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from hushuffle import _checks
from hushuffle.mechanisms.randomizers import TargetSampling, support_law
from hushuffle.plans.cluster import Cluster

Carries = Literal["hidden", "released", "assumed public"]


@dataclass(frozen=True, kw_only=True)
class Data:
    """`items` data items, one for each person (or tuple): the guarantee is for changing one of them.

    Two `Data` of one plan are disjoint: no item is in both.
    """

    name: str
    items: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", _checks.integer("items", self.items, low=1))


@dataclass(frozen=True, kw_only=True)
class Edge:
    """The targets of cluster `start` are the sources of cluster `end`.

    `carries`: "hidden" contents, which may decide where the messages of `end` go; "released" contents,
    accounted for by a `Release` of `start`; or contents "assumed public", for which the plan's
    `assumptions` say what is not accounted for.
    """

    start: str
    end: str
    carries: Carries = "hidden"

    def __post_init__(self) -> None:
        if self.carries not in get_args(Carries):
            _checks.reject("carries", f"one of {', '.join(get_args(Carries))}", self.carries)


@dataclass(frozen=True, kw_only=True)
class Release:
    """A value that cluster `start` computes from its contents with noise, and that everybody may see.

    Its cost for one item, whatever else is known: `epsilon` (pure) or `rho` (zero-concentrated), exactly one.
    `exact`: the noise is drawn from its law exactly, and not made of floating-point numbers.
    """

    name: str
    start: str
    epsilon: float | None = None
    rho: float | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            _checks.reject("epsilon, rho", "exactly one of the two", (self.epsilon, self.rho))
        for name in ("epsilon", "rho"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _checks.positive(name, value))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """An execution plan: a graph of clusters without cycles.

    How to state its guarantee (Theorem 1, made precise): if `refusals()` is empty, then changing one item of
    data `d` is hidden by the composition of

    - `cluster.protocol` of every cluster in `reachable(d)`: all of them, not those on the longest path;
      where `coins_known(cluster)`, with a figure that still holds if the watcher is told which sources were
      redirected (the local epsilon, or the privacy blanket's bound), not with the exact figure;
    - every release in `releases_reached(d)`.

    The plan's guarantee is the worst over its data. It holds under `assumptions`, and is to be shown with them.
    Why it holds: for every view of the watcher so far, and any two hidden states, the targets of one
    cluster differ in at most one place, its coins are fresh, and composition is adaptive.

    Args:
        name: what it computes.
        data: the disjoint sets of data items.
        clusters: in any order.
        edges: who feeds whom.
        releases: noisy values that everybody may see.
        assumptions: sentences under which the guarantee holds.

    Raises:
        InvalidInputError: unknown or repeated names, a cycle, data of two sources that overlap, targets that are
            not the next cluster's sources, or contents called public without reason.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021 (Theorem 1, corrected); docs/theory/traffic.md, Theorem 6.

    >>> import hushuffle as hs
    >>> from hushuffle.mechanisms.randomizers import TargetSampling, support_law
    >>> sampling = hs.TargetSampling(targets=2, sigma=0.5)
    >>> ask = hs.plans.Cluster(name="ask", sources=9, targets=2, reads=("people",), sampling=sampling)
    >>> compute = hs.plans.Cluster(name="compute", sources=2, targets=1)
    >>> plan = hs.plans.Plan(name="count", data=(hs.plans.Data(name="people", items=9),), clusters=(ask, compute),
    ...             edges=(hs.plans.Edge(start="ask", end="compute"),))
    >>> [cluster.name for cluster in plan.reachable("people")], plan.refusals()
    (['ask'], ())
    """

    name: str
    data: tuple[Data, ...]
    clusters: tuple[Cluster, ...]
    edges: tuple[Edge, ...] = ()
    releases: tuple[Release, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("data", "clusters", "edges", "releases", "assumptions"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        for field in ("data", "clusters", "releases"):
            _distinct(field, [value.name for value in getattr(self, field)])
        _distinct("edges", [f"{edge.start} to {edge.end}" for edge in self.edges])
        if not self.clusters or not self.data:
            _checks.reject("data and clusters", "at least one of each", (len(self.data), len(self.clusters)))
        for cluster in self.clusters:
            self._check_reads(cluster)
        for edge in self.edges:
            self._check_edge(edge)
        for release in self.releases:
            self._known("the start of a release", release.start)
        _ = self.layers  # refuses a cycle

    def _known(self, what: str, name: str) -> Cluster:
        if name not in self._by_name:
            _checks.reject(what, f"one of the clusters {', '.join(self._by_name)}", name)
        return self._by_name[name]

    def _check_reads(self, cluster: Cluster) -> None:
        items = {data.name: data.items for data in self.data}
        for name in cluster.reads:
            if name not in items:
                _checks.reject(f"reads of {cluster.name}", f"among the data {', '.join(items)}", name)
        held = sum(items[name] for name in cluster.reads)
        if cluster.reads and cluster.sources > held:
            hint = "Otherwise two of its messages depend on one item; make two clusters of them."
            _checks.reject(f"sources of {cluster.name}", f"at most its {held} data items", cluster.sources, hint)
        fed = any(edge.end == cluster.name for edge in self.edges)
        if not (cluster.fixed or cluster.reads or fed):
            _checks.reject(f"reads of {cluster.name}", "not empty where nobody feeds the cluster", ())

    def _check_edge(self, edge: Edge) -> None:
        start, end = self._known("the start of an edge", edge.start), self._known("the end of an edge", edge.end)
        if not start.fixed and start.targets != end.sources:
            rule = f"the {end.sources} sources of {end.name}: the targets of a cluster are one common set"
            _checks.reject(f"targets of {start.name}", rule, start.targets)
        if not start.fixed and sum(other.start == edge.start for other in self.edges) > 1:
            hint = "The targets of a cluster are one common set: make it two clusters, or let its targets forward."
            _checks.reject(f"edges of {start.name}", "at most one", "several", hint)
        if edge.carries == "released" and not any(release.start == edge.start for release in self.releases):
            _checks.reject(f"contents of {edge.start}", "accounted for by a Release of it", "released")
        if edge.carries == "assumed public" and not self.assumptions:
            _checks.reject("assumptions", "what is not accounted for where contents are assumed public", ())

    @cached_property
    def _by_name(self) -> dict[str, Cluster]:
        return {cluster.name: cluster for cluster in self.clusters}

    def cluster(self, name: str) -> Cluster:
        """Return the cluster of that name."""
        return self._known("name", name)

    @cached_property
    def layers(self) -> tuple[tuple[Cluster, ...], ...]:
        """The clusters by round: those that nobody feeds, then those that they feed, and so on."""
        left, rounds = dict(self._by_name), []
        while left:
            waiting = {edge.end for edge in self.edges if edge.start in left}
            ready = tuple(cluster for name, cluster in left.items() if name not in waiting)
            if not ready:
                hint = "Make the nodes of every iteration clusters of their own."
                _checks.reject("edges", "without a cycle", f"one through {', '.join(left)}", hint)
            rounds.append(ready)
            left = {name: cluster for name, cluster in left.items() if name in waiting}
        return tuple(rounds)

    def _downstream(self, names: set[str]) -> set[str]:
        """Return `names` and every cluster that hidden contents take to."""
        for layer in self.layers:
            for cluster in layer:
                if any(e.end == cluster.name and e.start in names and e.carries == "hidden" for e in self.edges):
                    names = names | {cluster.name}
        return names

    def _reached(self, data: str) -> set[str]:
        if data not in {one.name for one in self.data}:
            _checks.reject("data", f"one of {', '.join(one.name for one in self.data)}", data)
        return self._downstream({cluster.name for cluster in self.clusters if data in cluster.reads})

    def reachable(self, data: str) -> tuple[Cluster, ...]:
        """Return the clusters in which one item of `data` may move a message: those to be summed."""
        names = self._reached(data)
        return tuple(c for layer in self.layers for c in layer if c.name in names and not c.fixed and c.moves != 0)

    def moved_together(self, data: str) -> tuple[Cluster, ...]:
        """Return the clusters in which one item of `data` can move its message in all at once, whatever the coins.

        Those that read the data and are fed nothing that depends on anybody's coins: where their messages go is a
        function of the item and of what is assumed public. Two items that differ in every column, or two points that
        stay near centroids of their own, move all of them.
        """
        upstream = set().union(*(self._reached(one.name) for one in self.data))
        fed = {edge.end for edge in self.edges if edge.start in upstream and edge.carries != "assumed public"}
        return tuple(one for one in self.reachable(data) if data in one.reads and one.name not in fed)

    def releases_reached(self, data: str) -> tuple[Release, ...]:
        """Return the releases that one item of `data` may change."""
        names = self._reached(data)
        return tuple(release for release in self.releases if release.start in names)

    def coins_known(self, cluster: Cluster) -> bool:
        """Say whether a release is made of the contents of the cluster's messages.

        Which messages carried data depends on the same coins as where they went, so that a release tells
        something about the others' coins too.
        """
        names = self._downstream({cluster.name})
        return any(release.start in names for release in self.releases)

    def moves(self, cluster: Cluster) -> int:
        """Return how many messages of `cluster` one item can move at most.

        Contents that nobody sees depend on everybody's coins upstream: two hidden states that look alike may
        differ in all of them. So a cluster that is fed hidden contents counts all of its messages, unless its
        `moves` says otherwise.
        """
        if cluster.moves is not None:
            return cluster.moves
        if cluster.fixed:
            return 0
        upstream = set().union(*(self._reached(data.name) for data in self.data))
        fed = any(e.end == cluster.name and e.start in upstream and e.carries == "hidden" for e in self.edges)
        return cluster.sources if fed else 1

    def refusals(self) -> tuple[str, ...]:
        """Return why Theorem 1 does not apply, in plain sentences; empty if it applies."""
        sentences = []
        for layer in self.layers:
            for cluster in layer:
                count = self.moves(cluster)
                if count > 1:
                    sentences.append(
                        f"One item can move {count:,} messages of the cluster {cluster.name!r}, whose targets depend "
                        "on contents that nobody sees: the guarantee of one message says nothing about so many. "
                        "Release these contents with noise, or state the guarantee for public contents."
                    )
        return tuple(sentences)

    @property
    def applies(self) -> bool:
        """Whether Theorem 1 applies: nothing in `refusals`."""
        return not self.refusals()


def _distinct(what: str, names: list[str]) -> None:
    for name in names:
        if not name or names.count(name) > 1:
            _checks.reject(what, "with a name of its own each", repr(name))


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Costs of a cluster or plan.

    `messages`: sent in all. `unprotected`: the same without scramblers, dummies and flooding. `channels`: opened in
    all; scramblers open one to every target, used or not. `busiest`: most channels of one sending node.
    `used`: expected number of tuples that reach their own targets.
    """

    messages: int
    unprotected: int
    channels: int
    busiest: int
    scramblers: int
    used: float

    @property
    def overhead(self) -> int:
        """Messages added by the protection."""
        return self.messages - self.unprotected


def cluster_costs(cluster: Cluster, *, only_honest: bool = False) -> Costs:
    """Return the costs of one cluster; the messages are exact, `used` is an expectation.

    Behind scramblers: 2 S + SF d messages, S + SF T channels, n + T of the busiest scrambler. Behind m of them one
    after the other: (m + 1) S + SF d m (m + 1)/2 messages, S + SF (m - 1 + T) channels, the larger of n + 1 and T + 1.
    Without: S (flood + 1) messages and channels.

    Args:
        cluster: the cluster.
        only_honest: redirected messages never carry data, not even to their own target.

    Source: docs/theory/traffic.md, Theorems 8 and 13.

    >>> import hushuffle as hs
    >>> sampling = hs.TargetSampling(targets=20, sigma=0.2)
    >>> ages = hs.plans.Cluster(name="ages", sources=10_000, targets=20, reads=("people",), sampling=sampling,
    ...                scrambler=hs.Scrambler(dummies=50), batch=100)
    >>> costs = hs.plans.cluster_costs(ages)
    >>> costs.messages, costs.channels, costs.busiest, round(costs.used)
    (25000, 12000, 120, 8100)
    """
    s, t, scramblers = cluster.sources, cluster.targets, cluster.scramblers
    if cluster.sampling is None:
        sent = s if cluster.messages is None else cluster.messages
        return Costs(messages=sent, unprotected=sent, channels=sent, busiest=-(-sent // s), scramblers=0, used=0.0)
    used = s * use_chance(cluster.sampling, only_honest=only_honest)
    if cluster.scrambler is None:
        each = cluster.sampling.flood + 1
        return Costs(messages=s * each, unprotected=s, channels=s * each, busiest=each, scramblers=0, used=used)
    batch, chain = -(-s // scramblers), cluster.cascade
    return Costs(
        messages=(chain + 1) * s + scramblers * cluster.scrambler.dummies * chain * (chain + 1) // 2,
        unprotected=s,
        channels=s + scramblers * (chain - 1 + t),
        busiest=batch + t if chain == 1 else max(batch, t) + 1,
        scramblers=scramblers,
        used=used,
    )


def plan_costs(plan: Plan) -> Costs:
    """Return the costs of a whole plan: sums over its clusters, the largest load of one of its nodes.

    >>> import hushuffle as hs
    >>> kept = hs.plans.k_means(people=1000, centroids=10, iterations=2, variant="hidden", sigma=0.2, dummies=5,
    ...     batch=100)
    >>> hs.plans.plan_costs(kept).messages  # 2 (2 S + 10 d), S + 10 K with the centroids back, K to the result
    5210
    """
    every = [cluster_costs(cluster, only_honest=plan.coins_known(cluster)) for cluster in plan.clusters]
    return Costs(
        messages=sum(costs.messages for costs in every),
        unprotected=sum(costs.unprotected for costs in every),
        channels=sum(costs.channels for costs in every),
        busiest=max(costs.busiest for costs in every),
        scramblers=sum(costs.scramblers for costs in every),
        used=sum(costs.used for costs in every),
    )


def use_chance(sampling: TargetSampling, *, only_honest: bool = False) -> float:
    """Return the probability that a tuple reaches its own target: 1 - sigma + sigma/T without flooding.

    A source whose own target is among those it sends to, by luck or by flooding, sends its data there. With
    `only_honest` it does so only where the privacy blanket tells the truth on purpose, with probability theta, the
    difference of the chances of its own target and of another: 1 - sigma in the uniform convention. Who carries
    data then says nothing about where the others' messages went.

    Source: docs/theory/traffic.md, Theorem 8.

    >>> import hushuffle as hs
    >>> round(hs.plans.use_chance(hs.TargetSampling(targets=20, sigma=0.2)), 6)
    0.81
    >>> hs.plans.use_chance(hs.TargetSampling(targets=20, sigma=0.2), only_honest=True)
    0.8
    """
    return float(sampling.first.theta) if only_honest else support_law(sampling, for_what="The use of messages").true


def sources_needed(used: int, sampling: TargetSampling) -> int:
    """Return how many sources it takes until `used` tuples are used in expectation: S/(1 - sigma (1 - 1/T)).

    The further ones beyond `used` are the extra consents.

    Raises:
        InvalidInputError: no tuple ever reaches its target.

    Source: docs/theory/traffic.md, Theorem 8 (published: S/(1 - sigma), which ignores lucky draws).

    >>> import hushuffle as hs
    >>> hs.plans.sources_needed(8100, hs.TargetSampling(targets=20, sigma=0.2))
    10000
    """
    wanted, chance = _checks.integer("used", used, low=1), use_chance(sampling)
    return math.ceil(wanted / chance * (1 - 1e-12))
