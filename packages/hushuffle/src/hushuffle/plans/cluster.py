"""`Cluster`: nodes that send one message each to a common set of targets. `Traffic`: how their targets are hidden."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Required, TypedDict

from hushuffle import _checks
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.mechanisms.randomizers.target_sampling import Convention
from hushuffle.mechanisms.shufflers import NoShuffle, Scrambler

MOST_SCRAMBLERS: Final = 10
"""Largest number of scramblers that process a batch one after the other."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Nodes (devices or servers) with disjoint data: each of `sources` nodes sends a message to one of `targets` nodes.

    Messages have one size and sealed content. An observer of the network sees which scrambler or source sends how
    many messages to which target. Every run of a cluster draws fresh randomness.

    Without `sampling` the cluster is *fixed*: the targets of its messages do not depend on any data, so they reveal
    nothing. A cluster with data-dependent, unprotected messages has `TargetSampling(targets=T, sigma=0)`.

    Args:
        name: unique in a plan.
        sources: number of nodes, >= 1.
        targets: number of targets, >= 1.
        reads: names of the plan's data of which each source has its own part; empty if the sources use only the
            messages that they receive.
        sampling: how a message's target is drawn; None in a fixed cluster.
        scrambler: the shuffler of a batch, with its dummies; None: no scramblers. A cap needs batches of one size.
        batch: the largest number of sources that share a scrambler (default: one scrambler for all). Sources are
            spread evenly, so that batch sizes differ by at most one.
        min_batch: the smallest number of sources with which a scrambler releases its batch; the guarantee is for this
            number (default: the whole smallest batch). More sources protect better than fewer: a batch of n + 1 is a
            batch of n with an independent message added.
        cascade: number of scramblers that each batch passes in sequence, run by different parties; each adds its
            dummies. The cluster's guarantee needs one honest scrambler. More than one excludes a cap.
        moves: the largest number of this cluster's messages whose target changes if one data item changes, whatever
            hidden contents the earlier clusters have before and after the change. Default: 1 if the sources only read
            their own data and public values, otherwise all messages (see `Plan.moves`).
        messages: the total number of messages of a fixed cluster (default: one for each source).

    Raises:
        InvalidInputError: an argument is out of range or contradicts another argument; the message says which.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021 (definitions 3 and 4); docs/theory/traffic.md, Theorems 2 and 6.

    >>> import hushuffle as hs
    >>> sampling = hs.TargetSampling(targets=20, sigma=0.2)
    >>> ages = hs.plans.Cluster(name="ages", sources=10_050, targets=20, reads=("people",), sampling=sampling,
    ...                scrambler=hs.Scrambler(dummies=50), batch=100)
    >>> ages.scramblers, ages.smallest, ages.protocol.n
    (101, 99, 99)
    """

    name: str
    sources: int
    targets: int
    reads: tuple[str, ...] = ()
    sampling: TargetSampling | None = None
    scrambler: Scrambler | None = None
    batch: int | None = None
    min_batch: int | None = None
    cascade: int = 1
    moves: int | None = None
    messages: int | None = None

    def __post_init__(self) -> None:
        if not self.name:
            _checks.reject("name", "not empty", repr(self.name))
        set_ = object.__setattr__
        set_(self, "sources", _checks.integer("sources", self.sources, low=1))
        set_(self, "targets", _checks.integer("targets", self.targets, low=1))
        set_(self, "reads", tuple(self.reads))
        if len(set(self.reads)) != len(self.reads):
            _checks.reject("reads", "different names", self.reads, "The data of two sources must be disjoint.")
        if self.moves is not None:
            set_(self, "moves", _checks.integer("moves", self.moves, low=0, high=self.sources))
        if self.sampling is None:
            self._check_fixed()
        else:
            self._check_sampling(self.sampling)
        if self.scrambler is not None:
            self._check_scrambler(self.scrambler)
        else:
            for name in ("batch", "min_batch"):
                if getattr(self, name) is not None:
                    _checks.reject(name, "None without a scrambler", getattr(self, name))
        set_(self, "cascade", _checks.integer("cascade", self.cascade, low=1, high=MOST_SCRAMBLERS))
        if self.cascade > 1 and (self.scrambler is None or self.scrambler.cap is not None):
            hint = "A cascade needs dummies or a batch, and no cap, because only the last scrambler knows the targets."
            _checks.reject("cascade", "1 without a scrambler, and with a cap", self.cascade, hint)

    def _check_fixed(self) -> None:
        if self.reads or self.scrambler is not None or self.moves is not None:
            hint = "If the targets of messages depend on data, set TargetSampling(targets=T, sigma=...)."
            _checks.reject("sampling", "set for clusters with data, a scrambler or `moves`", None, hint)
        if self.messages is not None:
            object.__setattr__(self, "messages", _checks.integer("messages", self.messages, low=0))

    def _check_sampling(self, sampling: TargetSampling) -> None:
        if sampling.targets != self.targets:
            hint = "All sources of a cluster have the same targets."
            _checks.reject("sampling", f"for the cluster's {self.targets} targets", sampling.targets, hint)
        if self.messages is not None:
            _checks.reject("messages", "None unless the cluster is fixed", self.messages)
        if sampling.flood and self.scrambler is not None:
            _checks.reject("flood", "0 behind a scrambler", sampling.flood, "Let the scrambler add dummies instead.")

    def _check_scrambler(self, scrambler: Scrambler) -> None:
        batch = self.sources if self.batch is None else self.batch
        object.__setattr__(self, "batch", _checks.integer("batch", batch, low=1, high=self.sources))
        if scrambler.cap is not None and self.sources % self.scramblers:
            hint = f"The cap is the number of sources per scrambler: scramblers must divide {self.sources}."
            _checks.reject("batch", "equal for all scramblers if there is a cap", self.batch, hint)
        least = self.smallest if self.min_batch is None else self.min_batch
        object.__setattr__(self, "min_batch", _checks.integer("min_batch", least, low=1, high=self.smallest))
        if scrambler.cap is not None and self.min_batch != self.smallest:
            hint = "The cap is the number of sources, so no source may be missing."
            _checks.reject("min_batch", f"the {self.smallest} sources of each batch if capped", self.min_batch, hint)
        scrambler.check(n=self.smallest, values=self.targets)

    @property
    def fixed(self) -> bool:
        """Whether the targets of the messages are independent of all data."""
        return self.sampling is None

    @property
    def scramblers(self) -> int:
        """Number of parallel scramblers, or of parallel cascades; 0 without scramblers."""
        return 0 if self.batch is None else math.ceil(self.sources / self.batch)

    @property
    def smallest(self) -> int:
        """Number of sources of the smallest complete batch; all sources without scramblers."""
        return self.sources // max(self.scramblers, 1)

    @property
    def protocol(self) -> Protocol:
        """The protocol that hides one source's message; its guarantee is that of the cluster, per moved message.

        Parallel scramblers serve disjoint sources, so the cluster's guarantee is that of its smallest batch, with
        `min_batch` sources. In a cascade, only the dummies of one scrambler count: the honest one.

        Raises:
            InvalidInputError: the cluster is fixed, and reveals nothing.
        """
        if self.sampling is None:
            _checks.reject("cluster", "one with data-dependent messages", self.name, "A fixed cluster reveals nothing.")
        return Protocol(
            randomizer=self.sampling, shuffler=self.scrambler or NoShuffle(), n=self.min_batch or self.smallest
        )

    def describe(self) -> str:
        """Return the cluster in one line."""
        size = f"{self.sources:,} source{'s' if self.sources > 1 else ''}"
        if self.sampling is None:
            return f"{size}, whose messages do not depend on the data"
        behind = ""
        if self.scrambler is not None:
            most = f" or {self.smallest + 1:,}" if self.sources % self.scramblers else ""
            missing = "" if self.min_batch == self.smallest else f" ({self.min_batch:,} at least)"
            behind = (
                f"; {self.scramblers:,} scrambler{'s' if self.scramblers > 1 else ''} of {self.smallest:,}{most} "
                f"sources{missing} and {self.scrambler.dummies:,} dummies"
            )
            if self.cascade > 1:
                behind += f", {self.cascade} of them one after the other for each batch"
        return f"{size}: {self.sampling.describe()}{behind}"


class TrafficNumbers(TypedDict, total=False):
    """The fields of `Traffic` as keyword arguments of the builders of plans."""

    sigma: Required[float]
    convention: Convention
    flood: int
    dummies: int | None
    batch: int | None
    min_batch: int | None
    scramblers: int | None
    capped: bool


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """How the targets of a cluster's messages are hidden.

    With `dummies` (even 0) or `batch`, messages go through scramblers: shufflers that add dummies.

    Args:
        sigma: probability that a message goes to a random target instead of its own.
        convention: the random target is drawn among all ("uniform"), or among all but its own ("exclusive").
        flood: additional messages of each source to distinct other targets; only without scramblers.
        dummies: number of dummies of each scrambler.
        batch: the largest number of sources of one scrambler (default: one scrambler serves all).
        min_batch: the smallest number of sources with which a scrambler releases its batch; the guarantee is for this
            number (default: four fifths of the smallest batch, rounded up; the whole batch under a cap).
        scramblers: number of scramblers that each batch passes in sequence, run by different parties (default: one).
        capped: no target gets more messages from a scrambler than it has sources; batches must be of one size.

    >>> import hushuffle as hs
    >>> hidden = hs.plans.Traffic(sigma=0.2, dummies=50, batch=100)
    >>> hidden.cluster("ages", sources=1000, targets=20, reads=("people",)).scramblers
    10
    """

    sigma: float
    convention: Convention = "uniform"
    flood: int = 0
    dummies: int | None = None
    batch: int | None = None
    min_batch: int | None = None
    scramblers: int | None = None
    capped: bool = False

    @classmethod
    def of(cls, cluster: Cluster) -> Traffic:
        """Return the traffic settings of a cluster with sampled targets, except `batch`, which is None."""
        sampling, scrambler = cluster.sampling, cluster.scrambler
        assert sampling is not None
        return cls(
            sigma=sampling.sigma,
            convention=sampling.convention,
            flood=sampling.flood,
            dummies=None if scrambler is None else scrambler.dummies,
            min_batch=cluster.min_batch,
            scramblers=cluster.cascade if cluster.cascade > 1 else None,
            capped=scrambler is not None and scrambler.cap is not None,
        )

    @property
    def scrambled(self) -> bool:
        """Whether messages go through scramblers."""
        return self.dummies is not None or self.batch is not None

    def given(self) -> dict[str, Any]:
        """Return the settings that are not None, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def sampling(self, targets: int) -> TargetSampling:
        """Return the distribution of a message's target among `targets`."""
        return TargetSampling(targets=targets, sigma=self.sigma, flood=self.flood, convention=self.convention)

    def scrambler(self, sources: int) -> Scrambler:
        """Return the scrambler for a number of sources, with the dummies and cap of these settings."""
        return Scrambler(dummies=self.dummies or 0, cap=sources if self.capped else None)

    def cluster(self, name: str, *, sources: int, targets: int, reads: tuple[str, ...] = ()) -> Cluster:
        """Return a cluster whose messages are hidden by these settings.

        Raises:
            InvalidInputError: a setting is out of range, or contradicts another setting.
        """
        cluster = Cluster(name=name, sources=sources, targets=targets, reads=reads, sampling=self.sampling(targets))
        chain = 1 if self.scramblers is None else self.scramblers
        if self.scrambled:
            open_ended = replace(self, capped=False).scrambler(sources)
            cluster = replace(cluster, scrambler=open_ended, batch=self.batch, min_batch=self.min_batch, cascade=chain)
            if self.capped:
                return replace(cluster, scrambler=self.scrambler(cluster.smallest))
            least = -(-4 * cluster.smallest // 5) if self.min_batch is None else self.min_batch
            return replace(cluster, min_batch=least)
        if self.min_batch is not None:
            _checks.reject("min_batch", "None without scramblers", self.min_batch, "Give `batch` and `dummies`.")
        if self.capped:
            _checks.reject("capped", "False without scramblers", self.capped, "Give `batch` and `dummies`.")
        if chain != 1:
            _checks.reject("scramblers", "None without dummies and batch", chain, "Give `batch` and `dummies`.")
        return cluster
