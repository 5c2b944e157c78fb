"""Choose sampling, dummies and batches with the fewest messages for a target epsilon, under limits."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from hushuffle import _checks
from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Convention, TargetSampling
from hushuffle.mechanisms.shufflers import Scrambler
from hushuffle.model import Bound
from hushuffle.model.solver import Parameter, Requirement, solve
from hushuffle.plans import Cluster, Costs, cluster_costs, messages, sources_needed

_MARGIN: Final = 3e-6
"""The search aims below the target by this fraction, so that the returned epsilon still meets the target."""

_TOLERANCE: Final = 0.02
"""The search ignores configurations that are cheaper by less than this fraction."""

_LEAST_SAMPLING: Final = 1e-9
_MOST_DUMMIES: Final = 10**8
_MOST_FLOODED: Final = 1000
_FIRST: Final = 64
"""The search for dummies begins at this number."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A cluster that meets (epsilon, delta), with its certified epsilon and its costs.

    `cluster` can be put into a plan as it is.
    """

    cluster: Cluster
    epsilon: Bound
    delta: float
    costs: Costs

    @property
    def sampling(self) -> TargetSampling:
        """The sampling randomizer of each source."""
        assert self.cluster.sampling is not None
        return self.cluster.sampling

    @property
    def sigma(self) -> float:
        """The probability sigma that a source replaces its target by a random target."""
        return self.sampling.sigma

    @property
    def dummies(self) -> int | None:
        """Number of dummies of each scrambler; None without scramblers."""
        return None if self.cluster.scrambler is None else self.cluster.scrambler.dummies

    @property
    def batch(self) -> int | None:
        """Maximum number of sources of one scrambler; None without scramblers."""
        return self.cluster.batch

    def __str__(self) -> str:
        if self.batch is None:
            behind = f"no scramblers, {self.sampling.flood:,} further messages each"
        else:
            many = _several(self.costs.scramblers, "scrambler")
            behind = f"{many} of up to {self.batch:,} sources and {self.dummies:,} dummies"
        return (
            f"{_several(self.cluster.sources, 'source')}, sigma = {self.sigma:.4g}, {behind}: "
            f"{_several(self.costs.messages, 'message')}, at most {_several(self.costs.busiest, 'channel')} at one "
            f"node, epsilon {self.epsilon} at delta = {self.delta:g}"
        )


def cheapest(
    *,
    targets: int,
    contributions: int,
    epsilon: float,
    delta: float,
    messages_at_most: int | None = None,
    channels_at_most: int | None = None,
    sources_at_most: int | None = None,
    convention: Convention = "uniform",
) -> Configuration:
    """Return the configuration with the fewest messages that meets (epsilon, delta) for one cluster, under limits.

    The deterministic search covers sampling and flooding alone, and sampling behind scramblers with dummies. The
    certified upper bound on the result's epsilon is at most `epsilon`. No configuration needs 2 % fewer messages,
    because epsilon falls as sampling, dummies and batches grow (each is a post-processing).

    If a data item passes G such clusters of a plan, use epsilon/G and delta/G here; `plan_guarantee` then returns the
    usually smaller epsilon of the whole plan.

    Args:
        targets: number of targets T, >= 2.
        contributions: expected number of records that arrive at their targets.
        epsilon: target in nats, > 0.
        delta: in [0, 1); at 0, scramblers (which have no cap here) do not help and are not tried.
        messages_at_most: limit on all messages (network load).
        channels_at_most: limit on the channels of one sending node: batch + T of a scrambler, flood + 1 of a source.
        sources_at_most: limit on the sources; those beyond `contributions` are additional people who consent.
        convention: how a random target is drawn: "uniform" or "exclusive", as in `TargetSampling`.

    Raises:
        InvalidInputError: an argument out of range; or no configuration meets all limits. The message then contains the
            cheapest configuration without each limit.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021, section V (trade-offs).

    >>> import hushuffle as hs
    >>> print(hs.traffic.cheapest(targets=5, contributions=1000, epsilon=1.0, delta=1e-4, channels_at_most=105))
    2,472 sources, sigma = 0.7442, no scramblers, 0 further messages each: 2,472 messages, at most 1 channel at one \
node, epsilon 0.999997 nats (exact) at delta = 0.0001
    >>> found = hs.traffic.cheapest(targets=20, contributions=200, epsilon=1.0, delta=0.01, sources_at_most=220)
    >>> found.cluster.sources, found.costs.scramblers, found.batch, found.dummies, found.costs.messages
    (215, 1, 215, 128, 558)
    """
    task = _Task(
        targets=_checks.integer("targets", targets, low=2),
        wanted=_checks.integer("contributions", contributions, low=1),
        epsilon=_checks.positive("epsilon", epsilon),
        delta=_checks.probability("delta", delta, high_open=True),
        messages=_limit("messages_at_most", messages_at_most, 1),
        channels=_limit("channels_at_most", channels_at_most, 1),
        sources=_limit("sources_at_most", sources_at_most, contributions),
        convention=convention,
    )
    plan = task.search()
    if plan is None:
        _checks.reject("epsilon", "within reach of the limits", epsilon, task.nearest())
    return plan


def _limit(name: str, value: int | None, low: int) -> float:
    return math.inf if value is None else _checks.integer(name, value, low=low)


@dataclass(frozen=True, kw_only=True)
class _Task:
    """The target and the limits of a search; limits are numbers or infinity."""

    targets: int
    wanted: int
    epsilon: float
    delta: float
    messages: float
    channels: float
    sources: float
    convention: Convention

    def search(self) -> Configuration | None:
        """Return the cheapest configuration within the limits."""
        alone = min(
            self._without_scramblers(),
            key=lambda cluster: (cluster_costs(cluster).messages, cluster.sources),
            default=None,
        )
        best = self._behind_scramblers(alone)
        if best is None or cluster_costs(best).messages > self.messages:
            return None
        figure = privacy_curve(best.protocol).epsilon(self.delta)
        return Configuration(cluster=best, epsilon=figure, delta=self.delta, costs=cluster_costs(best))

    def nearest(self) -> str:
        """Return, in words, the cheapest configuration that remains if one limit is dropped, for each limit."""
        names = {"messages": "messages_at_most", "channels": "channels_at_most", "sources": "sources_at_most"}
        lines = []
        for limit_of, name in names.items():
            limit = getattr(self, limit_of)
            if limit < math.inf:
                lifted: dict[str, Any] = {limit_of: math.inf}
                plan = replace(self, **lifted).search()
                with_it = "nothing meets the others either" if plan is None else f"the cheapest is {plan}"
                lines.append(f"Without {name} = {limit:,}: {with_it}.")
        return " ".join(lines)

    def _without_scramblers(self) -> Iterator[Cluster]:
        """Return sampling and flooding alone, with every number of further messages within the limits.

        A set of d + 1 targets tells t from t' if it has only one of them; that leaves, for linear mu and nu,
        delta = (T - 1 - d)/(T - 1) (mu + d nu - e**epsilon (d + 1) nu).
        """
        t, growth = self.targets, math.exp(self.epsilon * (1 - _MARGIN))
        for flood in range(int(min(t, _MOST_FLOODED + 1, self.channels))):
            if flood == t - 1:
                sigma = 0.0
            else:
                excess = (flood + 1) * (growth - 1)
                slope = 1 + (excess / t if self.convention == "uniform" else (1 + excess) / (t - 1))
                sigma = max(1 - self.delta * (t - 1) / (t - 1 - flood), _LEAST_SAMPLING) / slope
            sampling = TargetSampling(targets=t, sigma=sigma, flood=flood, convention=self.convention)
            sources = sources_needed(self.wanted, sampling)
            if sources <= self.sources:
                yield messages(
                    "send",
                    sources=sources,
                    targets=t,
                    sigma=sigma,
                    reads=("people",),
                    convention=self.convention,
                    flood=flood,
                )

    def _behind_scramblers(self, rival: Cluster | None) -> Cluster | None:
        """Return the best cluster found with scramblers, `rival` if none beats it.

        The number of sources S, below T times what is wanted, fixes sigma. With S in [a, b] there are at least 2a
        messages of the sources, on at least ceil(a/batch) scramblers, each with the dummies that b sources and a full
        batch need: where that is too much, the interval is done with, else it is halved.
        """
        if self.delta == 0 or self.channels <= self.targets:
            return rival
        best = self._better(self.wanted, rival)
        intervals = deque([(self.wanted + 1, int(min(self.sources, self.wanted * self.targets)))])
        while intervals:
            low, high = intervals.popleft()
            high = int(min(high, self._goal(best) // 2))
            batch = int(min(self.channels - self.targets, high))
            if low > high or self._excess(high, batch, self._room(low, best)) > 0:
                continue
            middle = (low + high) // 2
            best = self._better(middle, best)
            intervals += [(low, middle - 1), (middle + 1, high)]
        return best

    def _goal(self, best: Cluster | None) -> float:
        """Return how many messages a configuration may need to be of interest next to `best`, or to a broadcast."""
        price = self.wanted * self.targets if best is None else cluster_costs(best).messages
        return self.messages if price > self.messages else price * (1 - _TOLERANCE)

    def _room(self, sources: int, best: Cluster | None) -> int:
        """Return how many dummies each scrambler of so many sources may have; negative if not even none."""
        return int(min((self._goal(best) - 2 * sources) // self._scramblers(sources), _MOST_DUMMIES))

    def _better(self, sources: int, best: Cluster | None) -> Cluster | None:
        """Return the cluster of so many sources with the fewest dummies if it is of interest, else `best`."""
        scramblers, room = self._scramblers(sources), self._room(sources, best)
        excess = partial(self._excess, sources, sources // scramblers)
        if room < 0 or excess(room) > 0:
            return best
        number = Parameter(name="dummies", apply=int, easiest=room, hardest=0, start=_FIRST, stride=2, whole=True)
        fewest = solve(replace(number, resolution=0), Requirement(excess=excess))
        assert fewest is not None  # `room` dummies meet the target
        return messages(
            "send",
            sources=sources,
            targets=self.targets,
            sigma=self._sigma(sources),
            reads=("people",),
            convention=self.convention,
            dummies=int(fewest.value),
            batch=math.ceil(sources / scramblers),
        )

    def _excess(self, sources: int, batch: int, dummies: int) -> float:
        """Return how far (ln) delta is above the target for the sigma of so many sources, one batch and dummies."""
        sampling = TargetSampling(targets=self.targets, sigma=self._sigma(sources), convention=self.convention)
        law = privacy_curve(Protocol(randomizer=sampling, shuffler=Scrambler(dummies=dummies), n=batch))
        value = law.near(self.delta).upper(self.epsilon * (1 - _MARGIN))
        return math.log(max(value, 1e-300)) - math.log(self.delta)

    def _scramblers(self, sources: int) -> int:
        return math.ceil(sources / min(self.channels - self.targets, sources))

    def _sigma(self, sources: int) -> float:
        """Return the most sampling at which `sources` bring the wanted contributions."""
        share, t = 1 - self.wanted / sources, self.targets
        return share * t / (t - 1) if self.convention == "uniform" else share


def _several(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"
