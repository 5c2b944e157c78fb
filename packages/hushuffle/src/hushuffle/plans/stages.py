"""`Stage`: people's messages to common compute nodes, once or in rounds; `staged` composes stages to a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hushuffle import _checks
from hushuffle.plans.cluster import Cluster, Traffic
from hushuffle.plans.plan import Carries, Data, Edge, Plan, Release, use_chance

RESULT = "result"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Clusters of people that send one message each to the same compute nodes, and what these nodes publish.

    Every item of the data in `reads` sends one message in each of `sends`: one cluster for a grouping, two for a join.
    In a stage that `repeats`, contents of the nodes return to the people of the next round, and the names of its
    clusters and releases end with the number of the round.

    Args:
        sends: names of the clusters of people, at least one.
        nodes: name of the cluster of compute nodes.
        targets: number of compute nodes, the one that discards messages included.
        reads: for each round, the names of the data whose items send.
        repeats: whether contents return to the people after each round but the last.
        steered: whether the targets of messages depend on the contents that return. Otherwise they depend only on the
            sender's own item, so that these contents change no target.
        carries: how the contents return, for a `steered` stage: see `Edge`.
        discards: whether one of the nodes discards its messages, and sends nothing.
        columns: the columns that decide the targets in each of `sends`; empty if any may. Clusters of different sends
            that share a column are tied: see `Plan`.
        release: the value that the nodes publish in each round with noise; its `start` is `nodes`.

    Raises:
        InvalidInputError: no cluster, no round, or one round without `repeats` that is not the only one.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021 (section II); docs/theory/traffic.md, Theorem 6.

    >>> import hushuffle as hs
    >>> join = hs.plans.Stage(sends=("send left", "send right"), nodes="match", targets=3, reads=(("people",),))
    >>> plan = hs.plans.staged("Join", data=(hs.plans.Data(name="people", items=50),), stages=(join,),
    ...     traffic=hs.plans.Traffic(sigma=0.2))
    >>> [cluster.name for cluster in plan.reachable("people")]
    ['send left', 'send right']
    """

    sends: tuple[str, ...]
    nodes: str
    targets: int
    reads: tuple[tuple[str, ...], ...]
    repeats: bool = False
    steered: bool = False
    carries: Carries = "hidden"
    discards: bool = False
    columns: tuple[frozenset[str], ...] = ()
    release: Release | None = None

    def __post_init__(self) -> None:
        if not self.sends or not self.reads:
            _checks.reject("sends and reads", "at least one cluster and one round", (len(self.sends), len(self.reads)))
        if len(self.reads) > 1 and not self.repeats:
            _checks.reject("reads", "of one round unless the stage repeats", f"{len(self.reads)} rounds")
        _checks.integer("targets", self.targets, low=1 + self.discards)

    def numbered(self, name: str, number: int) -> str:
        """Return the name of a cluster or a release in one round, counted from 1."""
        return f"{name} {number}" if self.repeats else name


def staged(
    name: str, *, data: Sequence[Data], stages: Sequence[Stage], traffic: Traffic, assumptions: Sequence[str] = ()
) -> Plan:
    """Return the plan of stages whose nodes all send to one result.

    Args:
        name: the computation of the plan.
        data: the disjoint sets of data items.
        stages: their order only determines the order of clusters.
        traffic: how the targets of people's messages are hidden, in every stage.
        assumptions: sentences under which the guarantee holds.

    Raises:
        InvalidInputError: names are repeated or unknown, or no message carries data although a release needs it.

    Source: docs/theory/traffic.md, Theorems 6 and 10.

    >>> import hushuffle as hs
    >>> release = hs.plans.Release(name="model", start="train", rho=0.01)
    >>> training = hs.plans.Stage(sends=("update",), nodes="train", targets=4, reads=(("people",),) * 3, repeats=True,
    ...     release=release)
    >>> plan = hs.plans.staged("Training", data=(hs.plans.Data(name="people", items=900),), stages=(training,),
    ...     traffic=hs.plans.Traffic(sigma=0.2, dummies=50))
    >>> [cluster.name for cluster in plan.moved_together("people")]
    ['update 1', 'update 2', 'update 3']
    >>> print(hs.traffic.plan_guarantee(plan, delta=1e-6))
    epsilon 1.194 to 1.810 nats (certified bracket) at delta = 1e-06, per item (replace one data item)
    """
    items = {part.name: part.items for part in data}
    clusters: list[Cluster] = []
    edges: list[Edge] = []
    releases: list[Release] = []
    tied: list[str] = []
    decided: set[str] = set()
    for stage in stages:
        _add(stage, items, traffic, clusters, edges, releases)
        for send, columns in zip(stage.sends, stage.columns, strict=False):
            if not decided.isdisjoint(columns):
                tied += [stage.numbered(send, number) for number in range(1, len(stage.reads) + 1)]
            decided |= columns
    return Plan(
        name=name,
        data=tuple(data),
        clusters=(*clusters, Cluster(name=RESULT, sources=1, targets=1, messages=0)),
        edges=tuple(edges),
        releases=tuple(releases),
        assumptions=tuple(assumptions),
        tied=tuple(tied),
    )


def _add(
    stage: Stage,
    items: dict[str, int],
    traffic: Traffic,
    clusters: list[Cluster],
    edges: list[Edge],
    releases: list[Release],
) -> None:
    sizes = [sum(items.get(name, 0) for name in reads) for reads in stage.reads]
    active = stage.targets - stage.discards
    for number, reads in enumerate(stage.reads, start=1):
        nodes, last = stage.numbered(stage.nodes, number), number == len(stage.reads)
        sends = [
            traffic.cluster(stage.numbered(name, number), sources=sizes[number - 1], targets=stage.targets, reads=reads)
            for name in stage.sends
        ]
        if stage.release is not None:
            sampling = sends[0].sampling
            assert sampling is not None
            if not stage.repeats and not use_chance(sampling, only_honest=True):  # results are scaled up by this
                hint = "If a plan releases results with noise, each message to a randomly drawn target is a dummy."
                _checks.reject("sigma", "smaller, so that some messages carry data", traffic.sigma, hint)
            releases.append(replace(stage.release, name=stage.numbered(stage.release.name, number), start=nodes))
        following = sizes[number - 1 if last else number]
        back = None if last or not stage.repeats else active * following
        if back is not None and sends[0].scramblers:  # each forwards what returns to people, not each node
            back = following + active * sends[0].scramblers
        sent = active if back is None and stage.discards else back
        towards = following if stage.repeats else 1
        clusters += [*sends, Cluster(name=nodes, sources=stage.targets, targets=towards, messages=sent)]
        edges += [Edge(start=send.name, end=nodes) for send in sends]
        if last:
            edges.append(Edge(start=nodes, end=RESULT))
        elif stage.steered:
            edges += [
                Edge(start=nodes, end=stage.numbered(name, number + 1), carries=stage.carries) for name in stage.sends
            ]
