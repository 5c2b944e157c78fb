"""Secure aggregation: servers add up the clients' vectors without seeing any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle import _checks
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.mechanisms.shufflers.base import Integers, Reveals, Shuffler
from hushuffle.mechanisms.shufflers.source import Source, Trials

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness

MOST_COINS: Final = 10**8
"""Maximum number of random bits that a server adds to each sum."""

MOST_SERVERS: Final = 100


@dataclass(frozen=True, kw_only=True)
class SecureAggregation(Shuffler):
    """Servers that release only the sums of the reports' vectors, as Prio and DAP do.

    A one-hot encoding is a vector of bits. A report y that is one number is sent as a vector whose entry y is 1; the
    sums are then the counts of the reports, which a uniform shuffle also reveals. Reports of several numbers (hashes,
    sets) are not vectors and are refused.

    Servers may add noise: each server adds `coins` fair random bits to each sum. Guarantees hold against all
    servers except the `honest` ones, which keep their random bits secret. Noise needs a one-hot encoding.

    Args:
        coins: number of fair random bits that each server adds to each sum, >= 0.
        servers: number of servers, >= 1.
        honest: number of servers that keep their random bits secret, 0 to `servers`.

    Raises:
        InvalidInputError: a number is out of range.

    Source: Corrigan-Gibbs, Boneh 2017 (Prio); Dwork, Kenthapadi, McSherry, Mironov, Naor 2006 (noise of several
    servers); docs/theory/secure-sums.md, Theorem 1 and Theorem 8.

    >>> import hushuffle as hs
    >>> votes = hs.RandomizedResponse(k=3, epsilon=float("inf"))
    >>> hs.Protocol(randomizer=votes, shuffler=hs.SecureAggregation(), n=4).sums([0, 2, 2, 2])
    Histogram(1, 0, 3)
    """

    coins: int = 0
    servers: int = 2
    honest: int = 1
    reveals = Reveals.SUMS
    table = SettingsTable(
        kind="secure-aggregation",
        about="The servers release only sums over all reports: of one-hot encodings, or of reports of a single number.",
        settings={
            "coins": Setting(
                type="integer",
                about="For one-hot encodings: fair Bernoulli trials per server and sum; a server adds the number of "
                "successes.",
                limits={"ge": 0, "le": MOST_COINS},
                default=0,
            ),
            "servers": Setting(
                type="integer", about="Number of servers.", limits={"ge": 1, "le": MOST_SERVERS}, default=2
            ),
            "honest": Setting(
                type="integer",
                about="Number of servers whose noise stays secret; the guarantee holds against all others.",
                limits={"ge": 0, "le": MOST_SERVERS},
                default=1,
            ),
        },
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "coins", _checks.integer("coins", self.coins, low=0, high=MOST_COINS))
        object.__setattr__(self, "servers", _checks.integer("servers", self.servers, low=1, high=MOST_SERVERS))
        object.__setattr__(self, "honest", _checks.integer("honest", self.honest, low=0, high=self.servers))

    @property
    def sources(self) -> tuple[Source, ...]:
        return (Source(count=Trials(number=self.secret_coins, p=0.5), each=True),) if self.secret_coins else ()

    @property
    def all_coins(self) -> int:
        """Number of random bits that all servers add to each sum."""
        return self.coins * self.servers

    @property
    def secret_coins(self) -> int:
        """Number of the random bits in each sum that honest servers keep secret."""
        return self.coins * self.honest

    def noisy(self, sums: Integers, *, rng: Randomness) -> Integers:
        heads = np.zeros(sums.size, dtype=np.int64)
        whole, left = divmod(self.all_coins, 64)
        for place in range(whole + (left > 0)):
            thrown = np.uint64((1 << (64 if place < whole else left)) - 1)
            heads += np.bitwise_count(rng.words(sums.size) & thrown)
        return sums + heads

    def release(self, messages: Integers, *, rng: Randomness) -> Integers:
        """Raise an error, since secure aggregation releases no message.

        Raises:
            UnsupportedProtocolError: always.
        """
        del messages, rng
        _checks.unsupported("Secure aggregation releases no reports. Use `protocol.sums(values)`.")

    def describe(self) -> str:
        noise = (
            f", each with {self.coins:,} fair random bits from each of {self.servers:,} servers, {self.honest:,} of "
            "which keep them secret"
            if self.coins
            else ""
        )
        return f"secure aggregation releases only the sums of all reports{noise}"
