"""Guarantees for message traffic: for one scrambler's messages, for a whole plan, and for controlled scramblers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.curves.base import PrivacyCurve, bracket
from hushuffle.curves.laws.released import CoinsKnown, ConcentratedRelease, PureRelease
from hushuffle.curves.pairs.composition import composed_delta, composed_epsilon
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Convention, TargetSampling, symmetric_law
from hushuffle.mechanisms.shufflers import Reveals, Scrambler
from hushuffle.model import Bound, Guarantee
from hushuffle.model.citation import LADJEL

if TYPE_CHECKING:
    from hushuffle.plans import Cluster, Plan


def sampling_epsilon(targets: int, sigma: float, flood: int = 0, *, convention: Convention = "uniform") -> Bound:
    """Return the exact epsilon (nats, delta = 0) of sampling and flooding, if the sender of each message is visible.

    The result is ln(1 + (1 - sigma) T / (sigma (d + 1))) in the uniform convention with d = `flood` <= T - 2, and 0 for
    a broadcast. Relation: replace the true target of the message.

    Args:
        targets: number of targets T, >= 2.
        sigma: probability that the target is replaced by a random target.
        flood: number of further messages, to distinct other targets.
        convention: a random target is drawn among all T ("uniform") or among the other T - 1 ("exclusive").

    Raises:
        InvalidInputError: an argument out of range.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021 (sampling and flooding); docs/theory/traffic.md, Theorem 1.

    >>> import hushuffle as hs
    >>> print(hs.traffic.sampling_epsilon(targets=20, sigma=0.2, flood=5))
    2.663 nats (exact)
    """
    sampling = TargetSampling(targets=targets, sigma=sigma, flood=flood, convention=convention)
    return Bound.exact(sampling.local_epsilon, unit="nats", sources=(LADJEL.at("sampling and flooding"),))


def scrambler_epsilon(
    targets: int,
    sources: int,
    sigma: float,
    dummies: int,
    cap: int | None = None,
    *,
    delta: float = 0.0,
    convention: Convention = "uniform",
) -> Bound:
    """Return a certified bracket of the epsilon (nats) of n sources behind a scrambler, at `delta`.

    Relation: replace the true target of one source. The adversary knows the true targets of all other sources, and sees
    how many messages each target receives. The result equals `hushuffle.dp.epsilon` of the protocol.

    Args:
        targets: number of targets T, >= 2.
        sources: number of sources n that share the scrambler.
        sigma: probability that a source replaces its target by a random target.
        dummies: number of dummies d, to uniform targets.
        cap: largest number of messages for one target: n, or None. With a cap and delta = 0, the result is exact for
            d < n and an upper bound for d >= n.
        delta: in [0, 1).
        convention: a random target is drawn among all T ("uniform") or among the other T - 1 ("exclusive").

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/traffic.md, Theorems 2 to 5.

    >>> import hushuffle as hs
    >>> print(hs.traffic.scrambler_epsilon(targets=3, sources=5, sigma=0.5, dummies=3, cap=5))
    1.233 nats (exact)
    >>> print(hs.traffic.scrambler_epsilon(targets=20, sources=2000, sigma=0.2, dummies=50, delta=1e-6))
    1.094 to 1.095 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, high_open=True)
    sampling = TargetSampling(targets=targets, sigma=sigma, convention=convention)
    protocol = Protocol(randomizer=sampling, shuffler=Scrambler(dummies=dummies, cap=cap), n=sources)
    return privacy_curve(protocol).epsilon(level)


RELATION = "replace one data item"


def plan_guarantee(plan: Plan, *, delta: float) -> Guarantee:
    """Return the certified guarantee of a plan against an observer of all its traffic.

    Relation: replace one data item. Epsilon composes all clusters and noisy releases that the item reaches, by their
    dominating pairs; it is the largest over the plan's sets of data. Explicit datasets attain the lower bound: one item
    moves its message in all of `plan.moved_together` at once, and all other items are equal. A query can have these
    items if its columns may have any values; clusters in `plan.tied` are omitted. The guarantee requires
    `plan.assumptions`: show them together.

    Args:
        plan: the plan.
        delta: in [0, 1).

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: the plan has no guarantee; the message gives the reasons, `plan.refusals`.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021, Theorem 1, corrected; docs/theory/traffic.md, Theorem 6;
    docs/theory/composition.md, Theorem 3.

    >>> import hushuffle as hs
    >>> from hushuffle.plans import GroupingQuery, GroupingSet, aggregate
    >>> sets = tuple(GroupingSet(columns=(name,), sizes=(20,)) for name in ("age", "bmi"))
    >>> query = GroupingQuery(grouping_sets=sets, partitions=20)
    >>> plan = aggregate(query, people=10_000, sigma=0.2, dummies=50, batch=1000)
    >>> print(hs.traffic.plan_guarantee(plan, delta=1e-5))
    epsilon 2.149 to 2.151 nats (certified bracket) at delta = 1e-05, per item (replace one data item)
    """
    level = _checks.probability("delta", delta, high_open=True)
    _refuse(plan)
    figures = [_composed(plan, data.name, level) for data in plan.data]
    worst, least = (max(figures, key=end) for end in (attrgetter("upper"), attrgetter("lower")))
    low, high, exact = least.lower, worst.upper, least.lower == worst.upper
    total = bracket(low, high, unit="nats", sources=worst.sources, witness=least.witness, exact=exact)
    return Guarantee(epsilon=total, delta=level, relation=RELATION, per="item")


def plan_delta(plan: Plan, *, epsilon: float) -> Bound:
    """Return an upper bound on the smallest delta at `epsilon` (nats) against an observer of all traffic of a plan.

    Relation, adversary and assumptions are those of `plan_guarantee`. At epsilon = 0 delta bounds the total variation
    distance, and 1/2 + delta/2 bounds the probability to distinguish two equally likely items.

    Args:
        plan: the plan.
        epsilon: in nats, finite, >= 0.

    Raises:
        InvalidInputError: epsilon out of range.
        UnsupportedProtocolError: the plan has no guarantee (`plan.refusals`).

    Source: Ladjel, Anciaux, Bellet, Scerri 2021, Theorem 1, corrected; docs/theory/traffic.md, Theorem 6.

    >>> import hushuffle as hs
    >>> from hushuffle.plans import GroupingQuery, GroupingSet, aggregate
    >>> query = GroupingQuery(grouping_sets=(GroupingSet(columns=("age",), sizes=(20,)),), partitions=20)
    >>> plan = aggregate(query, people=10_000, sigma=0.2, dummies=50, batch=1000)
    >>> print(hs.traffic.plan_delta(plan, epsilon=0.0))
    at most 0.1385 (upper bound)
    """
    level = _checks.non_negative("epsilon", epsilon)
    _refuse(plan)
    every = [_laws(plan, data.name) for data in plan.data]
    figures = [_delta_together(laws, level) for laws in every if laws]
    upper = max((figure.upper for figure in figures), default=0.0)
    return Bound(lower=0.0, upper=upper, kind="upper", unit="probability", sources=(LADJEL.at("Theorem 1, corrected"),))


def _delta_together(laws: Sequence[tuple[PrivacyCurve, int]], epsilon: float) -> Bound:
    match laws:
        case [(law, 1)]:
            return law.delta(epsilon)
    return composed_delta(laws, epsilon=epsilon)


def theorem_one(plan: Plan, *, delta: float) -> Bound:
    """Return the sum of the clusters' epsilons (nats) at equal shares of delta: an upper bound on the plan's epsilon.

    The sum is over all clusters and releases that an item reaches; the result is the largest over the plan's sets of
    data. It is simpler than `plan_guarantee`, and larger.

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: the plan has no guarantee (`plan.refusals`).

    Source: Ladjel, Anciaux, Bellet, Scerri 2021, Theorem 1, corrected; docs/theory/traffic.md, Theorem 6.

    >>> import hushuffle as hs
    >>> from hushuffle.plans import GroupingQuery, GroupingSet, aggregate
    >>> sets = tuple(GroupingSet(columns=(name,), sizes=(20,)) for name in ("age", "bmi"))
    >>> plan = aggregate(GroupingQuery(grouping_sets=sets, partitions=20), people=10_000, sigma=0.2)
    >>> print(hs.traffic.theorem_one(plan, delta=0.0))
    at most 8.789 nats (upper bound)
    """
    level = _checks.probability("delta", delta, high_open=True)
    _refuse(plan)
    totals = []
    for data in plan.data:
        laws = _laws(plan, data.name)
        share = level / max(sum(times for _, times in laws), 1)
        totals.append(math.fsum(times * law.epsilon(share).upper for law, times in laws))
    upper = max(totals) * (1 + 2.0**-50)
    return Bound(lower=0.0, upper=upper, kind="upper", unit="nats", sources=(LADJEL.at("Theorem 1, corrected"),))


def traffic_and_releases(plan: Plan, *, delta: float) -> tuple[Bound, Bound] | None:
    """Return epsilon (nats) of the traffic alone and of the releases alone, each the largest over the sets of data.

    The result is None if the plan has no noisy releases, or if later messages depend on a release.

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: the plan has no guarantee (`plan.refusals`).

    Source: docs/theory/traffic.md, Theorems 6 and 10.

    >>> import hushuffle as hs
    >>> from hushuffle.plans import GroupingQuery, GroupingSet, aggregate
    >>> query = GroupingQuery(grouping_sets=(GroupingSet(columns=("age",), sizes=(20,)),), partitions=20)
    >>> plan = aggregate(query, people=10_000, epsilon=1.0, sigma=0.2)
    >>> [str(bound) for bound in hs.traffic.traffic_and_releases(plan, delta=0.0)]
    ['4.394 nats (exact)', 'at most 1.000 nats (upper bound)']
    """
    if not plan.releases or any(edge.carries == "released" for edge in plan.edges):
        return None
    messages = plan_guarantee(replace(plan, releases=()), delta=delta).epsilon
    every = [_together(_releases(plan, data.name), delta) for data in plan.data]
    upper = max(bound.upper for bound in every)
    return messages, Bound(lower=0.0, upper=upper, kind="upper", unit="nats", sources=every[0].sources)


def cluster_guarantees(plan: Plan, *, delta: float) -> tuple[tuple[Cluster, Bound], ...]:
    """Return pairs (cluster with data-dependent targets, epsilon at `delta` if one message's target changes).

    >>> import hushuffle as hs
    >>> from hushuffle.plans import GroupingQuery, GroupingSet, aggregate
    >>> query = GroupingQuery(grouping_sets=(GroupingSet(columns=("age",), sizes=(20,)),), partitions=20)
    >>> plan = aggregate(query, people=10_000, sigma=0.2)
    >>> [(cluster.name, str(bound)) for cluster, bound in hs.traffic.cluster_guarantees(plan, delta=0.0)]
    [('send by age', '4.394 nats (exact)')]
    """
    level = _checks.probability("delta", delta, high_open=True)
    bounds: dict[object, Bound] = {}
    rows = []
    for cluster in plan.clusters:
        if cluster.fixed:
            continue
        protocol = cluster.protocol
        if protocol not in bounds:
            bounds[protocol] = privacy_curve(protocol).epsilon(level)
        rows.append((cluster, bounds[protocol]))
    return tuple(rows)


def _refuse(plan: Plan) -> None:
    reasons = plan.refusals()
    if reasons:
        raise UnsupportedProtocolError(" ".join(reasons))


def _composed(plan: Plan, data: str, delta: float) -> Bound:
    laws = _laws(plan, data)
    if not laws:
        return Bound.exact(0.0, unit="nats", sources=(LADJEL.at("Theorem 1"),))
    together = _together(laws, delta)
    sure, reached = plan.moved_together(data), plan.reachable(data)
    if plan.releases_reached(data) or len(sure) < len(reached):
        alike = Counter(cluster.protocol for cluster in sure)
        least = _together([(privacy_curve(protocol), times) for protocol, times in alike.items()], delta)
        sources, witness = together.sources, least.witness
        together = bracket(least.lower, together.upper, unit="nats", sources=sources, witness=witness)
    if sum(times for _, times in laws) == 1:
        return together
    return replace(together, sources=tuple(dict.fromkeys([LADJEL.at("Theorem 1, corrected"), *together.sources])))


def _together(laws: Sequence[tuple[PrivacyCurve, int]], delta: float) -> Bound:
    match laws:
        case []:
            return Bound.exact(0.0, unit="nats")
        case [(law, 1)]:
            return law.epsilon(delta)
    return composed_epsilon(laws, delta=delta)


def _laws(plan: Plan, data: str) -> list[tuple[PrivacyCurve, int]]:
    """Return the privacy curves that apply to one item of `data`, with their multiplicities."""
    alike = Counter((cluster.protocol, plan.coins_known(cluster)) for cluster in plan.reachable(data))
    laws = [(_law(protocol, coins_known=known), times) for (protocol, known), times in alike.items()]
    return [*laws, *_releases(plan, data)]


def _releases(plan: Plan, data: str) -> list[tuple[PrivacyCurve, int]]:
    laws: list[tuple[PrivacyCurve, int]] = []
    for release in plan.releases_reached(data):
        if release.epsilon is not None:
            laws.append((PureRelease(promised=release.epsilon), 1))
        else:
            assert release.rho is not None
            laws.append((ConcentratedRelease(rho=release.rho), 1))
    return laws


def _law(protocol: Protocol, *, coins_known: bool) -> PrivacyCurve:
    if not coins_known or protocol.shuffler.reveals is Reveals.SENDERS:
        return privacy_curve(protocol)
    return CoinsKnown.of(
        law=symmetric_law(protocol.randomizer, for_what="A scrambler whose sources' random choices are known"),
        local_epsilon=protocol.randomizer.local_epsilon,
        n=protocol.n,
        dummies=protocol.shuffler.dummies,
    )


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
