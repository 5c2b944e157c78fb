"""The messages of one cluster under sampling, flooding and scramblers, and an observer's view of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Integers
from hushuffle.plans import Cluster, Costs, Plan
from hushuffle.randomness import Randomness, secure


@dataclass(frozen=True, kw_only=True, eq=False)
class Exchange:
    """One run of a cluster: the observer's view of the messages, and the tuples that arrived.

    `graph` is the observer's view. With scramblers, it counts the messages from each scrambler to each target, shape
    (scramblers, T). Without, it lists the targets of each source, shape (S, flood + 1). `scrambler_of`, shape (S,), is
    each source's scrambler, also visible and drawn independently of the data; None without scramblers. `used`,
    shape (S,), is hidden: whether a source's tuple reached its own target.
    """

    cluster: Cluster
    graph: Integers
    scrambler_of: Integers | None
    used: Flags = field(repr=False)

    @property
    def received(self) -> Integers:
        """Number of messages that each target receives, shape (T,)."""
        if self.scrambler_of is None:
            return np.bincount(self.graph.ravel(), minlength=self.cluster.targets)
        return np.asarray(self.graph.sum(axis=0))

    @property
    def costs(self) -> Costs:
        """The costs of the run, as counted; a scrambler opens a channel to every target."""
        s = self.cluster.sources
        if self.scrambler_of is None:
            each, total = self.graph.shape[1], self.graph.size
            channels, busiest, scramblers = total, each, 0
        else:
            scramblers, targets = self.graph.shape
            chain, arrived = self.cluster.cascade, int(self.graph.sum())
            # Every scrambler of the cascade adds the same number of dummies.
            total = sum(s + (arrived - s) * hop // chain for hop in range(chain + 1))
            channels, most = s + scramblers * (chain - 1 + targets), int(np.bincount(self.scrambler_of).max())
            busiest = most + targets if chain == 1 else max(most, targets) + 1
        used = float(np.count_nonzero(self.used))
        return Costs(
            messages=total, unprotected=s, channels=channels, busiest=busiest, scramblers=scramblers, used=used
        )


def exchange(
    cluster: Cluster,
    targets: npt.ArrayLike,
    *,
    only_honest: bool = False,
    coins: Randomness | None = None,
    rng: Randomness | None = None,
) -> Exchange:
    """Return one run of `cluster`, where `targets`, shape (S,), are the sources' own targets.

    A tuple arrives if its source sends to its own target. With `only_honest` it arrives only if its
    source was not redirected (see `hushuffle.plans.use_chance`). Every other message is a dummy.

    Args:
        cluster: a cluster whose messages depend on data.
        targets: the sources' own targets, integers 0..T-1.
        only_honest: whether redirected messages carry no data; see `hushuffle.plans.Plan.coins_known`.
        coins: the randomness of the sampling, for example one stream for each source; default: `rng`.
        rng: source of randomness (default: `secure()`).

    Raises:
        InvalidInputError: the cluster is fixed, or the number or range of `targets` is wrong.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021 (Algorithm 1); docs/theory/traffic.md, Theorem 2.

    >>> from hushuffle.plans import messages
    >>> from hushuffle.randomness import reproducible
    >>> ages = messages("ages", sources=10, targets=3, sigma=0.2, reads=("people",), dummies=2, batch=5)
    >>> run = exchange(ages, [0] * 10, rng=reproducible(1))
    >>> run.graph.sum(axis=1).tolist(), run.costs.messages
    ([7, 7], 24)
    """
    if cluster.sampling is None:
        _checks.reject("cluster", "one with data-dependent messages", cluster.name, "A fixed cluster needs no run.")
    own = _checks.codes("targets", targets, k=cluster.targets)
    if own.size != cluster.sources:
        _checks.reject("targets", f"of {cluster.sources:,} sources", f"<{own.size:,}>")
    source = secure() if rng is None else rng
    sent, on_purpose = cluster.sampling.sample(own, rng=source if coins is None else coins)
    used = (sent == own) if sent.ndim == 1 else (sent == own[:, None]).any(axis=1)
    if only_honest:
        used = on_purpose
    if cluster.scrambler is None:
        return Exchange(cluster=cluster, graph=sent.reshape(own.size, -1), scrambler_of=None, used=used)
    # The order of the sources is drawn afresh: which sources share a scrambler does not depend on the data.
    scrambler_of = np.empty(own.size, dtype=np.int64)
    scrambler_of[source.permutation(own.size)] = np.arange(own.size) % cluster.scramblers
    scrambler, sampling, shape = cluster.scrambler, cluster.sampling, (cluster.scramblers, cluster.targets)
    cells = scrambler_of * cluster.targets + sent
    if scrambler.cap is None:
        dummies = cluster.cascade * scrambler.dummies  # every scrambler of a cascade adds the same number
        drawn = source.integers(cluster.targets, cluster.scramblers * dummies)
        cells = np.append(cells, np.repeat(np.arange(cluster.scramblers), dummies) * cluster.targets + drawn)
    graph = np.bincount(cells, minlength=cluster.scramblers * cluster.targets).reshape(shape)
    if scrambler.cap is not None:
        for row in graph:
            messages = np.repeat(np.arange(cluster.targets), row)
            completed = scrambler.complete(messages, draw=lambda count: sampling.dummies(count, rng=source))
            row[:] = np.bincount(completed, minlength=cluster.targets)
    return Exchange(cluster=cluster, graph=graph, scrambler_of=scrambler_of, used=used)


def asked_rows(plan: Plan, people: int, rng: Randomness) -> list[Integers]:
    """Return the rows that take part in each step: all, or a random share if each person answers only one step."""
    sets = len([cluster for cluster in plan.clusters if cluster.reads])
    if len(plan.data) == 1 and sets > 1:
        return [np.arange(people)] * sets
    ends = np.cumsum([data.items for data in plan.data])[:-1]
    return list(np.split(rng.permutation(people), ends))
