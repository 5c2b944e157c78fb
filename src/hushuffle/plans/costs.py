"""What a plan costs: messages, channels, load of a node, consents, and how many tuples are used."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hushuffle import _checks
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.plans.cluster import Cluster
from hushuffle.plans.plan import Plan


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

    Behind scramblers: 2 S + SF d messages, S + SF T channels, n + T of the busiest scrambler. Without:
    S (flood + 1) messages and channels.

    Args:
        cluster: the cluster.
        only_honest: redirected messages never carry data, not even to their own target.

    Source: docs/theory/traffic.md, Theorem 8.

    >>> sampling = TargetSampling(targets=20, sigma=0.2)
    >>> from hushuffle.mechanisms.shufflers import Scrambler
    >>> ages = Cluster(name="ages", sources=10_000, targets=20, reads=("people",), sampling=sampling,
    ...                scrambler=Scrambler(dummies=50), batch=100)
    >>> costs = cluster_costs(ages)
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
    return Costs(
        messages=2 * s + scramblers * cluster.scrambler.dummies,
        unprotected=s,
        channels=s + scramblers * t,
        busiest=-(-s // scramblers) + t,
        scramblers=scramblers,
        used=used,
    )


def plan_costs(plan: Plan) -> Costs:
    """Return the costs of a whole plan: sums over its clusters, the largest load of one of its nodes.

    >>> from hushuffle.plans.builders import k_means
    >>> kept = k_means(people=1000, centroids=10, iterations=2, variant="hidden", sigma=0.2, dummies=5, batch=100)
    >>> plan_costs(kept).messages  # 2 (2 S + 10 d), S + 10 K with the centroids back, K to the result
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

    >>> round(use_chance(TargetSampling(targets=20, sigma=0.2)), 6)
    0.81
    >>> use_chance(TargetSampling(targets=20, sigma=0.2), only_honest=True)
    0.8
    """
    first = replace(sampling, flood=0).symmetric_law()
    return float(first.theta) if only_honest else sampling.support_probabilities().true


def sources_needed(used: int, sampling: TargetSampling) -> int:
    """Return how many sources it takes until `used` tuples are used in expectation: S/(1 - sigma (1 - 1/T)).

    The further ones beyond `used` are the extra consents.

    Raises:
        InvalidInputError: no tuple ever reaches its target.

    Source: docs/theory/traffic.md, Theorem 8 (published: S/(1 - sigma), which ignores lucky draws).

    >>> sources_needed(8100, TargetSampling(targets=20, sigma=0.2))
    10000
    """
    wanted, chance = _checks.integer("used", used, low=1), use_chance(sampling)
    return math.ceil(wanted / chance * (1 - 1e-12))
