"""`Traffic`: the seven numbers that hide where messages go, the same ones wherever they are spoken of."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Required, TypedDict

from hushuffle import _checks
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.mechanisms.randomizers.target_sampling import Convention
from hushuffle.mechanisms.shufflers import Scrambler
from hushuffle.plans.cluster import Cluster


class TrafficNumbers(TypedDict, total=False):
    """The fields of `Traffic` as arguments of the builders of plans."""

    sigma: Required[float]
    convention: Convention
    flood: int
    dummies: int | None
    batch: int | None
    min_batch: int | None
    capped: bool


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What hides where the messages of a cluster go.

    With `dummies` (0 too) or `batch` messages go through scramblers, else not.

    Args:
        sigma: probability that a message goes to a random target instead of its own.
        convention: the random target is among all ("uniform") or among the others ("exclusive").
        flood: further messages of each source to distinct other targets; only without scramblers.
        dummies: of each scrambler.
        batch: the most sources of one scrambler (default: one scrambler serves all).
        min_batch: sources without which a scrambler releases nothing (default: all).
        capped: no target gets more messages from a scrambler than it has sources; batches must be of one size.

    >>> hidden = Traffic(sigma=0.2, dummies=50, batch=100)
    >>> hidden.cluster("ages", sources=1000, targets=20, reads=("people",)).scramblers
    10
    """

    sigma: float
    convention: Convention = "uniform"
    flood: int = 0
    dummies: int | None = None
    batch: int | None = None
    min_batch: int | None = None
    capped: bool = False

    @classmethod
    def of(cls, cluster: Cluster) -> Traffic:
        """Return what a cluster with sampled targets was made of, every default spelled out, batches apart."""
        sampling, scrambler = cluster.sampling, cluster.scrambler
        assert sampling is not None
        return cls(
            sigma=sampling.sigma,
            convention=sampling.convention,
            flood=sampling.flood,
            dummies=None if scrambler is None else scrambler.dummies,
            min_batch=cluster.min_batch,
            capped=scrambler is not None and scrambler.cap is not None,
        )

    @property
    def scrambled(self) -> bool:
        """Whether messages go through scramblers."""
        return self.dummies is not None or self.batch is not None

    def given(self) -> dict[str, Any]:
        """Return the numbers that are not left out, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def sampling(self, targets: int) -> TargetSampling:
        """Return where a message to one of so many targets goes."""
        return TargetSampling(targets=targets, sigma=self.sigma, flood=self.flood, convention=self.convention)

    def scrambler(self, sources: int) -> Scrambler:
        """Return what a scrambler of so many sources does."""
        return Scrambler(dummies=self.dummies or 0, cap=sources if self.capped else None)

    def cluster(self, name: str, *, sources: int, targets: int, reads: tuple[str, ...] = ()) -> Cluster:
        """Return a cluster whose messages are hidden so.

        Raises:
            InvalidInputError: a number out of range, or at odds with another.
        """
        cluster = Cluster(name=name, sources=sources, targets=targets, reads=reads, sampling=self.sampling(targets))
        if self.scrambled:
            open_ended = replace(self, capped=False).scrambler(sources)
            cluster = replace(cluster, scrambler=open_ended, batch=self.batch, min_batch=self.min_batch)
            return replace(cluster, scrambler=self.scrambler(cluster.smallest)) if self.capped else cluster
        if self.min_batch is not None:
            _checks.reject("min_batch", "None without scramblers", self.min_batch, "Give `batch` and `dummies`.")
        if self.capped:
            _checks.reject("capped", "False without scramblers", self.capped, "Give `batch` and `dummies`.")
        return cluster
