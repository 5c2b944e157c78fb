"""`Plan`: clusters of nodes, the edges between clusters, and the messages that one person's data can influence."""

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
    """`items` data items, one for each person (or record): the guarantee is for changing one of them.

    Two `Data` of one plan are disjoint: no item is in both.
    """

    name: str
    items: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", _checks.integer("items", self.items, low=1))


@dataclass(frozen=True, kw_only=True)
class Edge:
    """The targets of cluster `start` are the sources of cluster `end`.

    `carries`: "hidden" contents, which may determine the targets of `end`; "released" contents, accounted for by a
    `Release` of `start`; or contents "assumed public", for which the plan's `assumptions` state what is not counted.
    """

    start: str
    end: str
    carries: Carries = "hidden"

    def __post_init__(self) -> None:
        if self.carries not in get_args(Carries):
            _checks.reject("carries", f"one of {', '.join(get_args(Carries))}", self.carries)


@dataclass(frozen=True, kw_only=True)
class Release:
    """A public value that cluster `start` computes from its contents with noise.

    Exactly one of `epsilon` (pure) and `rho` (zero-concentrated) is given: the privacy loss of one item against any
    adversary. `exact`: the noise is an exact sample of its distribution, without floating-point error.
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

    The guarantee (Theorem 1 of Ladjel et al. 2021, corrected): if `refusals()` is empty, a change of one item of data
    `d` is hidden by the composition of

    - `cluster.protocol` of every cluster in `reachable(d)`, not only of those on the longest path. If
      `coins_known(cluster)`, its epsilon must hold for an observer who knows which sources were redirected (the
      local epsilon, or the privacy blanket's bound); the exact epsilon does not;
    - every release in `releases_reached(d)`.

    The plan's guarantee is the worst guarantee over its data. It holds under `assumptions`, which must be shown
    with it. It holds because, for every view of the observer so far and any two hidden states, the targets of one
    cluster differ in at most one place, its randomness is fresh, and composition is adaptive.

    Args:
        name: the computation of the plan.
        data: the disjoint sets of data items.
        clusters: in any order.
        edges: pairs of clusters; the targets of the first are the sources of the second.
        releases: public values with noise.
        assumptions: sentences under which the guarantee holds.
        tied: names of clusters whose targets follow from the columns that decide those of another cluster. An item need
            not be able to move its message there as well, so the lower bound of the guarantee omits these clusters.

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
    tied: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("data", "clusters", "edges", "releases", "assumptions", "tied"):
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
        for name in self.tied:
            self._known("a name in tied", name)
        _ = self.layers  # raises an error if there is a cycle

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
            hint = "Otherwise one item could affect two of its messages. Split the cluster in two."
            _checks.reject(f"sources of {cluster.name}", f"at most its {held} data items", cluster.sources, hint)
        fed = any(edge.end == cluster.name for edge in self.edges)
        if not (cluster.fixed or cluster.reads or fed):
            _checks.reject(f"reads of {cluster.name}", "non-empty if no edge leads to the cluster", ())

    def _check_edge(self, edge: Edge) -> None:
        start, end = self._known("the start of an edge", edge.start), self._known("the end of an edge", edge.end)
        if not start.fixed and start.targets != end.sources:
            rule = f"{end.sources}, the sources of {end.name}, because all messages of a cluster have the same targets"
            _checks.reject(f"targets of {start.name}", rule, start.targets)
        if not start.fixed and sum(other.start == edge.start for other in self.edges) > 1:
            hint = "A cluster has one common set of targets. Split it into two clusters, or let its targets forward."
            _checks.reject(f"edges of {start.name}", "at most one", "several", hint)
        if edge.carries == "released" and not any(release.start == edge.start for release in self.releases):
            _checks.reject(f"contents of {edge.start}", "covered by a Release of this cluster", "released")
        if edge.carries == "assumed public" and not self.assumptions:
            _checks.reject("assumptions", "a text that states what is not counted if contents are assumed public", ())

    @cached_property
    def _by_name(self) -> dict[str, Cluster]:
        return {cluster.name: cluster for cluster in self.clusters}

    def cluster(self, name: str) -> Cluster:
        """Return the cluster of that name."""
        return self._known("name", name)

    @cached_property
    def layers(self) -> tuple[tuple[Cluster, ...], ...]:
        """The clusters by round: first those without incoming edges, then those that receive from earlier rounds."""
        left, rounds = dict(self._by_name), []
        while left:
            waiting = {edge.end for edge in self.edges if edge.start in left}
            ready = tuple(cluster for name, cluster in left.items() if name not in waiting)
            if not ready:
                hint = "Use a separate cluster for the nodes of every iteration."
                _checks.reject("edges", "without a cycle", f"one through {', '.join(left)}", hint)
            rounds.append(ready)
            left = {name: cluster for name, cluster in left.items() if name in waiting}
        return tuple(rounds)

    def _downstream(self, names: set[str]) -> set[str]:
        """Return the names `names`, and those of every cluster that hidden contents from these clusters reach."""
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
        """Return the clusters in which one item of `data` may change a message's target; their epsilons add up."""
        names = self._reached(data)
        return tuple(c for layer in self.layers for c in layer if c.name in names and not c.fixed and c.moves != 0)

    def moved_together(self, data: str) -> tuple[Cluster, ...]:
        """Return clusters whose messages one item of `data` can move in all of them at once, for any randomness.

        These clusters read the data, and their inputs do not depend on any randomness: a message's target is a function
        of the item and of public values. Two items that differ in every column, or two points that stay near
        two different centroids, move their messages in all of these clusters.
        """
        upstream = set().union(*(self._reached(one.name) for one in self.data))
        fed = {edge.end for edge in self.edges if edge.start in upstream and edge.carries != "assumed public"}
        return tuple(one for one in self.reachable(data) if data in one.reads and one.name not in fed | set(self.tied))

    def releases_reached(self, data: str) -> tuple[Release, ...]:
        """Return the releases that one item of `data` may change."""
        names = self._reached(data)
        return tuple(release for release in self.releases if release.start in names)

    def coins_known(self, cluster: Cluster) -> bool:
        """Return whether a release is computed from the contents of the cluster's messages.

        The same randomness determines which messages carry data and where they go. A release therefore reveals
        something about the randomness of the other sources too.
        """
        names = self._downstream({cluster.name})
        return any(release.start in names for release in self.releases)

    def moves(self, cluster: Cluster) -> int:
        """Return the largest number of messages of `cluster` that one item can move.

        Hidden contents depend on the randomness of all previous clusters: two hidden states that look alike may differ
        in all of it. A cluster with hidden inputs therefore counts all of its messages, unless its `moves` is set.
        """
        if cluster.moves is not None:
            return cluster.moves
        if cluster.fixed:
            return 0
        upstream = set().union(*(self._reached(data.name) for data in self.data))
        fed = any(e.end == cluster.name and e.start in upstream and e.carries == "hidden" for e in self.edges)
        return cluster.sources if fed else 1

    def refusals(self) -> tuple[str, ...]:
        """Return sentences that state why the plan's guarantee (see the class) does not apply; empty if it applies."""
        sentences = []
        for layer in self.layers:
            for cluster in layer:
                count = self.moves(cluster)
                if count > 1:
                    sentences.append(
                        f"One item can move {count:,} messages of the cluster {cluster.name!r}, because their targets "
                        "depend on hidden contents. The guarantee for one message does not cover this many. Release "
                        "these contents with noise, or state the guarantee for public contents."
                    )
        return tuple(sentences)

    @property
    def applies(self) -> bool:
        """Whether the plan's guarantee applies: `refusals` is empty."""
        return not self.refusals()


def _distinct(what: str, names: list[str]) -> None:
    for name in names:
        if not name or names.count(name) > 1:
            _checks.reject(what, "nodes with distinct names", repr(name))


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The costs of a cluster or of a plan.

    `messages`: number of messages sent. `unprotected`: number of messages without scramblers, dummies and flooding.
    `channels`: number of opened channels; a scrambler opens a channel to every target. `busiest`: the largest
    number of channels of one sending node. `used`: expected number of records that reach their own targets.
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

    S sources send to T targets. Each of SF scramblers serves n sources and adds d dummies: 2 S + SF d messages,
    S + SF T channels, n + T channels of the busiest scrambler. With m scramblers in sequence:
    (m + 1) S + SF d m (m + 1)/2 messages, S + SF (m - 1 + T) channels, and the busiest scrambler has the larger of
    n + 1 and T + 1 channels. Without scramblers: S (flood + 1) messages and channels.

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
    """Return the costs of a whole plan: sums over its clusters, and the largest load of a node.

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
    """Return the probability that a record reaches its own target: 1 - sigma + sigma/T without flooding.

    A source sends its data if it sends to its own target, by chance or by flooding. With
    `only_honest` it does so only if its message is truthful in the decomposition of the privacy blanket. This has
    probability theta, the probability of its own target minus that of another target: 1 - sigma in the uniform
    convention. Which sources carry data is then independent of the targets of the other sources.

    Source: docs/theory/traffic.md, Theorem 8.

    >>> import hushuffle as hs
    >>> round(hs.plans.use_chance(hs.TargetSampling(targets=20, sigma=0.2)), 6)
    0.81
    >>> hs.plans.use_chance(hs.TargetSampling(targets=20, sigma=0.2), only_honest=True)
    0.8
    """
    return float(sampling.first.theta) if only_honest else support_law(sampling, for_what="The use of messages").true


def sources_needed(used: int, sampling: TargetSampling) -> int:
    """Return the number of sources for `used` records to arrive in expectation: used/(1 - sigma (1 - 1/T)).

    The sources in excess of `used` are the additional consents.

    Raises:
        InvalidInputError: no record ever reaches its target.

    Source: docs/theory/traffic.md, Theorem 8 (published: S/(1 - sigma), without random hits).

    >>> import hushuffle as hs
    >>> hs.plans.sources_needed(8100, hs.TargetSampling(targets=20, sigma=0.2))
    10000
    """
    wanted, chance = _checks.integer("used", used, low=1), use_chance(sampling)
    return math.ceil(wanted / chance * (1 - 1e-12))
