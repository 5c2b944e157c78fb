"""What one report can carry about its sender, by what the randomizer offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from hushuffle.curves.capacity import ARIMOTO, BLAHUT, SHANNON, bayes_capacity, channel_capacity, log2, shannon_capacity
from hushuffle.mechanisms.randomizers import HasChannel, HasSymmetricLaw, Symmetric, has, require
from hushuffle.mechanisms.randomizers.local_hashing import HasBucketLaw
from hushuffle.model import Channel, Citation
from hushuffle.numerics.binomial import EPS

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.questions.pie.prior import Prior

QUESTION: Final = "Re-identification (PIE)"


class OneReport(ABC):
    """The most that one report says about which of n people sent it, over every law of values given persons."""

    sources: tuple[Citation, ...] = (SHANNON,)

    @abstractmethod
    def bits(self) -> tuple[Decimal, Decimal]:
        """Return the ends of sup I(U;Y) in bits, 0 if nothing better is known below; equal: exact."""

    @abstractmethod
    def gain(self) -> Fraction:
        """Return sum_y max_x Q(y|x) over the rows that n people can hold, or more."""

    @abstractmethod
    def success(self, prior: Prior) -> Fraction:
        """Return the chance of naming the sender, or more."""

    @abstractmethod
    def attained(self, prior: Prior) -> bool:
        """Return whether some law of values given persons attains `success`."""

    @abstractmethod
    def contraction(self) -> tuple[Fraction, bool]:
        """Return eta with I(U;Y) <= eta I(U;X), and whether no smaller one will do."""


@dataclass(frozen=True, kw_only=True)
class SymmetricReport(OneReport):
    """Symmetric randomized response, or one on the buckets of a public hash.

    Given the hash a report is that of randomized response on g buckets, of which `rows` = min(n, k, g) can be in
    use; every figure below is the same for each hash. It is attained where no two values share a bucket.
    """

    law: Symmetric
    rows: int
    collision: Fraction = Fraction(0)

    def bits(self) -> tuple[Decimal, Decimal]:
        most = shannon_capacity(self.law, rows=self.rows)
        return (Decimal(0) if self.collision else most), most

    def gain(self) -> Fraction:
        return bayes_capacity(self.law, rows=self.rows)

    def success(self, prior: Prior) -> Fraction:
        """Give the likeliest people values (buckets) of their own: mu p_1 + sum_i max(mu p_i, nu p_1) + ...

        For each y the best guess is the likeliest holder of y, or else the likeliest person of all, and the
        likeliest holders of different y are different people.
        """
        truth, lie = self.law.truth, self.law.lie
        people, mass = prior.likeliest(self.rows, above=lie * prior.largest / truth)
        return truth * mass + (self.law.k - people) * lie * prior.largest

    def attained(self, prior: Prior) -> bool:
        del prior
        return self.collision == 0

    def contraction(self) -> tuple[Fraction, bool]:
        """Two inputs decide, and the reports of two values differ only under hashes that keep them apart."""
        return (1 - self.collision) * self.law.theta**2 / (self.law.truth + self.law.lie), True


@dataclass(frozen=True, kw_only=True, eq=False)
class FiniteReport(OneReport):
    """Any finite channel, in floats; sums are rounded upwards, by a relative 3e-16 for each row and column."""

    channel: Channel
    n: int
    sources = (SHANNON, BLAHUT, ARIMOTO)

    @property
    def enough(self) -> bool:
        """Whether there are people for all rows; otherwise all rows together are a bound for the best of them."""
        return self.n >= len(self.channel.inputs)

    def bits(self) -> tuple[Decimal, Decimal]:
        every = channel_capacity(self.channel)
        most = min(Decimal(every.upper), log2(Fraction(self.n)))
        return (min(Decimal(every.lower), most) if self.enough else Decimal(0)), most

    def gain(self) -> Fraction:
        total = Fraction(float(self.channel.matrix.max(axis=0).sum()))
        return min(self._up(total), Fraction(self.n))

    def success(self, prior: Prior) -> Fraction:
        """At most `gain` times the largest prior; and each of the outputs names one person."""
        outputs = self.channel.matrix.shape[1]
        return min(self.gain() * prior.largest, prior.likeliest(outputs)[1])

    def attained(self, prior: Prior) -> bool:
        return self.enough and prior.uniform

    def contraction(self) -> tuple[Fraction, bool]:
        """One minus what all rows share (Doeblin)."""
        shared = Fraction(float(self.channel.matrix.min(axis=0).sum()))
        return min(self._up(max(1 - shared, Fraction(0))) + Fraction(EPS), Fraction(1)), False

    def _up(self, value: Fraction) -> Fraction:
        return value * (1 + sum(self.channel.matrix.shape) * Fraction(EPS))


def one_report(protocol: Protocol) -> OneReport:
    """Return what one report carries, or refuse.

    Raises:
        UnsupportedProtocolError: neither a symmetric law, nor one on the buckets of a hash, nor a finite channel.
    """
    randomizer, people = protocol.randomizer, min(protocol.n, protocol.randomizer.inputs)
    if has(randomizer, HasSymmetricLaw):
        return SymmetricReport(law=randomizer.symmetric_law(), rows=people)
    if has(randomizer, HasBucketLaw):
        law = randomizer.bucket_law()
        return SymmetricReport(law=law, rows=min(people, law.k), collision=randomizer.collision)
    channel = require(randomizer, HasChannel, for_what=QUESTION).channel()
    return FiniteReport(channel=channel, n=protocol.n)


def people_who_differ(protocol: Protocol) -> int:
    """Return min(n, k): how many of the values n people can hold at once."""
    return min(protocol.n, protocol.randomizer.inputs)
