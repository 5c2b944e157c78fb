"""Cascades of scramblers, and the epsilon against an adversary who controls some of the scramblers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hushuffle import _checks
from hushuffle.mechanisms.shufflers import Scrambler
from hushuffle.model import Bound
from hushuffle.plans import Cluster, Plan
from hushuffle.questions.traffic.plan import plan_guarantee


@dataclass(frozen=True, kw_only=True)
class Collusion:
    """Epsilons of a plan against an observer of all links who controls all but `honest` scramblers of each cascade.

    `curious`: epsilon if the controlled scramblers follow the protocol. `active`: epsilon if they, or the party that
    selects the participants, suppress messages and replace messages by their own.
    """

    honest: int
    curious: Bound
    active: Bound


def collusions(plan: Plan, *, delta: float) -> tuple[Collusion, ...]:
    """Return epsilons (nats) of a plan for every number of honest scramblers of a cascade, from all to none.

    Only the number of honest scramblers matters: n sources share their dummies, and the last honest scrambler hides the
    order. An active adversary can remove all other sources, so that the dummies of honest scramblers hide a single
    source. The result is empty if the plan has no scramblers.

    Args:
        plan: the plan; its longest cascade determines the number of results.
        delta: in [0, 1).

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: the plan has no guarantee, as for `plan_guarantee`.

    Source: docs/theory/traffic.md, Theorems 11 and 12.

    >>> import hushuffle as hs
    >>> sets = (hs.plans.GroupingSet(columns=("age",), sizes=(20,)),)
    >>> query = hs.plans.GroupingQuery(grouping_sets=sets, partitions=20)
    >>> plan = hs.plans.aggregate(query, people=1000, sigma=0.2, dummies=50, batch=500, scramblers=2)
    >>> for row in hs.traffic.collusions(plan, delta=1e-4):
    ...     print(row.honest, row.curious, row.active, sep="; ")
    2; 1.399 to 1.401 nats (certified bracket); 2.044 nats (certified bracket)
    1; 1.778 to 1.780 nats (certified bracket); 2.540 nats (certified bracket)
    0; 4.394 nats (exact); 4.394 nats (exact)
    """
    level = _checks.probability("delta", delta, high_open=True)
    longest = max((cluster.cascade for cluster in plan.clusters if cluster.scrambler is not None), default=0)
    if not longest:
        return ()
    rows = []
    for honest in range(longest, -1, -1):
        curious, active = (_figure(plan, honest, delta=level, active=active) for active in (False, True))
        rows.append(Collusion(honest=honest, curious=curious, active=active))
    return tuple(rows)


def _figure(plan: Plan, honest: int, *, delta: float, active: bool) -> Bound:
    """Return the epsilon of the plan with only the honest scramblers' dummies and order."""
    left = replace(plan, clusters=tuple(_left(cluster, honest, active=active) for cluster in plan.clusters))
    figure = plan_guarantee(left, delta=delta).epsilon
    capped = any(cluster.scrambler is not None and cluster.scrambler.cap is not None for cluster in plan.clusters)
    if capped and active and honest:  # a cap only hides more: the figure without it is an upper bound
        return Bound(lower=0.0, upper=figure.upper, kind="upper", unit="nats", sources=figure.sources)
    return figure


def _left(cluster: Cluster, honest: int, *, active: bool) -> Cluster:
    if cluster.scrambler is None:
        return cluster
    if not honest:
        return replace(cluster, scrambler=None, batch=None, min_batch=None, cascade=1)
    dummies = min(honest, cluster.cascade) * cluster.scrambler.dummies
    if active:
        return replace(cluster, scrambler=Scrambler(dummies=dummies), min_batch=1, cascade=1)
    return replace(cluster, scrambler=Scrambler(dummies=dummies, cap=cluster.scrambler.cap), cascade=1)
