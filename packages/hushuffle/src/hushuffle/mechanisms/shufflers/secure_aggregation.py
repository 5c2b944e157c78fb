"""Secure aggregation: servers add up the clients' vectors without seeing any of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle import _checks
from hushuffle._checks import Integers
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler
from hushuffle.mechanisms.shufflers.source import LaplaceNoise, Source, Trials

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness

MOST_COINS: Final = 10**8
"""Maximum number of random bits that a server adds to each sum."""

MOST_SERVERS: Final = 100
LEAST_SCALE: Final = 0.1
MOST_SCALE: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class SecureAggregation(Shuffler):
    """Servers that release only the sums of the reports' vectors, as Prio and DAP do.

    A one-hot encoding is a vector of bits. A report y that is one number is sent as a vector whose entry y is 1; the
    sums are then the counts of the reports, which a uniform shuffle also reveals. Reports of several numbers (hashes,
    sets) are not vectors and are refused.

    Servers may add noise: each server adds `coins` fair random bits to each sum, or an integer x with probability
    proportional to e**(-|x|/laplace), as aggregators of DAP do. Guarantees hold against all servers except the `honest`
    ones, which keep their noise secret. Noise is allowed only with `UnaryEncoding`.

    Args:
        coins: number of fair random bits that each server adds to each sum, >= 0.
        laplace: scale of the discrete Laplace noise that each server adds to each sum: 0 (none), or 0.1 to 10,000.
        servers: number of servers, >= 1.
        honest: number of servers that keep their noise secret, 0 to `servers`.

    Raises:
        InvalidInputError: a number is out of range.

    Source: Corrigan-Gibbs, Boneh 2017 (Prio); Dwork, Kenthapadi, McSherry, Mironov, Naor 2006 (noise of several
    servers); docs/theory/secure-sums.md, Theorems 1, 8 and 11.

    >>> import hushuffle as hs
    >>> votes = hs.RandomizedResponse(k=3, epsilon=float("inf"))
    >>> hs.Protocol(randomizer=votes, shuffler=hs.SecureAggregation(), n=4).sums([0, 2, 2, 2])
    Histogram(1, 0, 3)
    """

    coins: int = 0
    laplace: float = 0.0
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
            "laplace": Setting(
                type="number",
                about="For one-hot encodings: scale of the discrete Laplace noise that each server adds to each sum, "
                f"0 (none) or {LEAST_SCALE} to {MOST_SCALE:,}.",
                limits={"ge": 0, "le": MOST_SCALE},
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
        scale = _checks.finite("laplace", self.laplace)
        if scale and not LEAST_SCALE <= scale <= MOST_SCALE:
            _checks.reject("laplace", f"0, or from {LEAST_SCALE} to {MOST_SCALE:,}", scale)
        object.__setattr__(self, "laplace", scale)
        object.__setattr__(self, "servers", _checks.integer("servers", self.servers, low=1, high=MOST_SERVERS))
        object.__setattr__(self, "honest", _checks.integer("honest", self.honest, low=0, high=self.servers))

    @property
    def sources(self) -> tuple[Source, ...]:
        coins, noise = Trials(number=self.coins * self.honest, p=0.5), self._noise(self.honest)
        return tuple(Source(count=count, each=True) for count in (coins, noise) if count is not None and count.number)

    @property
    def all_coins(self) -> int:
        """Number of random bits that all servers add to each sum."""
        return self.coins * self.servers

    @property
    def sum_noise(self) -> LaplaceNoise | None:
        return self._noise(self.servers)

    def _noise(self, servers: int) -> LaplaceNoise | None:
        return LaplaceNoise(ratio=math.exp(-1 / self.laplace), number=servers) if self.laplace else None

    def noisy(self, sums: Integers, *, rng: Randomness) -> Integers:
        heads = np.zeros(sums.size, dtype=np.int64)
        whole, left = divmod(self.all_coins, 64)
        for place in range(whole + (left > 0)):
            thrown = np.uint64((1 << (64 if place < whole else left)) - 1)
            heads += np.bitwise_count(rng.words(sums.size) & thrown)
        return sums + heads + (0 if self.sum_noise is None else self.sum_noise.draws(sums.size, rng))

    def release(self, messages: Integers, *, rng: Randomness) -> Integers:
        """Raise an error, since secure aggregation releases no message.

        Raises:
            UnsupportedProtocolError: always.
        """
        _checks.unsupported("Secure aggregation releases no reports. Use `protocol.sums(values)`.")

    def describe(self) -> str:
        parts = [f"{self.coins:,} fair random bits"] if self.coins else []
        parts += [f"discrete Laplace noise of scale {self.laplace:.6g}"] if self.laplace else []
        who = f"from each of {self.servers:,} servers, {self.honest:,} of which keep them secret"
        noise = f", each with {' and '.join(parts)} {who}" if parts else ""
        return f"secure aggregation releases only the sums of all reports{noise}"
