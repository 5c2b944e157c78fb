"""`Release`: what an observer sees, as data that every analysis reads.

A release is a view of a sum of independent contributions: the people's reports, and messages that depend on no value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from hushuffle.mechanisms.shufflers import Reveals, Source

if TYPE_CHECKING:
    from hushuffle.mechanisms.mixed_protocol import MixedProtocol
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.mechanisms.randomizers import Mechanism
    from hushuffle.mechanisms.split_and_mix import SplitAndMix


@dataclass(frozen=True, kw_only=True)
class ReleaseGroup:
    """People who are alike: their number, and the randomizer of each. All people of a release send one report each."""

    people: int
    device: Mechanism


@dataclass(frozen=True, kw_only=True)
class Release:
    """What an observer sees of one release: all messages through `view`, if a report is kept with probability `keep`.

    `sources` are messages that depend on no value, and that the adversary does not know. A dropped report leaves no
    trace. `honest` is the number of people who do not collude with the adversary (None: all); colluding people reveal
    their reports and their additional messages. `shares` is the protocol of split-and-mix sums, whose messages have no
    distribution by themselves; else None.
    """

    groups: tuple[ReleaseGroup, ...]
    sources: tuple[Source, ...] = ()
    keep: float = 1.0
    view: Reveals = Reveals.MULTISET
    honest: int | None = None
    shares: SplitAndMix | None = None

    @classmethod
    def of(cls, protocol: Protocol | MixedProtocol | SplitAndMix) -> Self:
        """Return the release of a protocol.

        >>> import hushuffle as hs
        >>> response = hs.RandomizedResponse(k=4, epsilon=1.0)
        >>> survey = hs.Protocol(randomizer=response, shuffler=hs.Scrambler(dummies=20), n=100)
        >>> Release.of(survey).describe()
        '100 reports; 20 dummies; seen: multiset'
        """
        if protocol.shared is not None:
            return cls(groups=(), shares=protocol.shared)
        shuffler, n = protocol.shuffler, protocol.n
        honest, _ = shuffler.secret(n)
        return cls(
            groups=tuple(ReleaseGroup(people=people, device=device) for people, device in protocol.parts),
            sources=shuffler.sources,
            keep=shuffler.kept,
            view=shuffler.reveals,
            honest=None if honest == n else honest,
        )

    @property
    def n(self) -> int:
        return sum(group.people for group in self.groups)

    @property
    def device(self) -> Mechanism:
        return self.groups[0].device

    @property
    def dummies(self) -> int:
        """Number of dummies from the privacy blanket, fixed or the smallest possible number."""
        return sum(source.fewest for source in self.sources if not source.each)

    def describe(self) -> str:
        if self.shares is not None:
            return self.shares.describe().rstrip(".")
        parts = [f"{group.people:,} reports" for group in self.groups]
        parts += [source.describe() for source in self.sources]
        parts += [f"a report is kept with probability {self.keep:.6g}"] if self.keep < 1 else []
        parts += [f"{self.honest:,} people are honest"] if self.honest is not None else []
        return "; ".join([*parts, f"seen: {self.view.value}"])
