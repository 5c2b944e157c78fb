"""Secure aggregation: servers that add up everybody's vector, and see none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness

MOST_COINS: Final = 10**8
"""Most coins of a server."""

MOST_SERVERS: Final = 100


@dataclass(frozen=True, kw_only=True)
class SecureAggregation(Shuffler):
    """Releases the sums of the reports' vectors and nothing else, as Prio and DAP do.

    A one-hot encoding is a vector of bits as it is. A report that is one number is sent as the vector with a 1 in its
    place: the sums are then how often each report occurs, all that a uniform shuffle reveals. Reports of several
    numbers (hashes, sets) are no vectors, and refused.

    Servers may add noise: each adds to each sum the number of heads of `coins` fair coins. Privacy is that against
    all servers but the `honest` ones, whose coins alone nobody else knows. Noise is understood for one-hot encodings.

    Args:
        coins: that each server throws for each sum, >= 0.
        servers: how many there are, >= 1.
        honest: of how many of them nobody else knows the coins, 0 to `servers`.

    Raises:
        InvalidInputError: a number out of range.

    Source: Corrigan-Gibbs, Boneh 2017 (Prio); Dwork, Kenthapadi, McSherry, Mironov, Naor 2006 (coins of several
    servers); docs/theory/secure-sums.md, Theorem 1 and Theorem 8.

    >>> import hushuffle as hs
    >>> votes = hs.RandomizedResponse(k=3, epsilon=float("inf"))
    >>> hs.Protocol(randomizer=votes, shuffler=hs.SecureAggregation(), n=4).sums([0, 2, 2, 2])
    Histogram(1, 0, 3)
    """

    coins: int = 0
    servers: int = 2
    honest: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "coins", _checks.integer("coins", self.coins, low=0, high=MOST_COINS))
        object.__setattr__(self, "servers", _checks.integer("servers", self.servers, low=1, high=MOST_SERVERS))
        object.__setattr__(self, "honest", _checks.integer("honest", self.honest, low=0, high=self.servers))

    @property
    def all_coins(self) -> int:
        """How many coins all servers throw for each sum."""
        return self.coins * self.servers

    @property
    def secret_coins(self) -> int:
        """How many of them hide something."""
        return self.coins * self.honest

    def divided(self, batches: int) -> Shuffler:
        """Return a share of the coins that nobody else knows: each batch has sums, and noise, of its own."""
        return SecureAggregation(coins=self.secret_coins // batches, servers=1, honest=1)

    def noisy(self, sums: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        heads = np.zeros(sums.size, dtype=np.int64)
        whole, left = divmod(self.all_coins, 64)
        for place in range(whole + (left > 0)):
            thrown = np.uint64((1 << (64 if place < whole else left)) - 1)
            heads += np.bitwise_count(rng.words(sums.size) & thrown)
        return sums + heads

    @property
    def reveals(self) -> Reveals:
        return Reveals.SUMS

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Refuse: no message leaves.

        Raises:
            UnsupportedProtocolError: always.
        """
        del messages, rng
        message = "Secure aggregation releases no reports: `protocol.sums(values)` gives what leaves."
        raise UnsupportedProtocolError(message)

    def describe(self) -> str:
        noise = (
            f", each with the heads of {self.coins:,} fair coins of each of {self.servers:,} servers, "
            f"{self.honest:,} of which keep them secret,"
            if self.coins
            else ""
        )
        return f"secure aggregation releases the sums of all reports{noise} and nothing else"
