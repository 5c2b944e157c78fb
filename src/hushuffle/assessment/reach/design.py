"""`Design`: the numbers that a reach study is made of."""

from __future__ import annotations

from dataclasses import dataclass

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import BitFlipping
from hushuffle.mechanisms.shufflers import UniformShuffle


@dataclass(frozen=True, kw_only=True)
class Design:
    """Filters of the publishers `names`, their bits and hash functions, the flip probability, and delta."""

    names: tuple[str, ...]
    bits: int
    hashes: int
    p: float
    delta: float

    @property
    def filters(self) -> int:
        """Number of filters."""
        return len(self.names)

    @property
    def protocol(self) -> Protocol:
        """The collection of columns: each of them is what a person's report is elsewhere."""
        return Protocol(randomizer=BitFlipping(width=self.filters, p=self.p), shuffler=UniformShuffle(), n=self.bits)
