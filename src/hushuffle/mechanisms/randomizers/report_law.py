"""`ReportLaw`: the law of one report, up to its symmetries. Analyses ask it, and never which mechanism it is of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.randomizers.value_laws import ValueLaws, different_pairs
from hushuffle.model import Channel, Citation
from hushuffle.model.citation import ARIMOTO, BLAHUT, SHANNON
from hushuffle.numerics.binomial import EPS
from hushuffle.numerics.capacity import capacity_ends
from hushuffle.numerics.exact import WIDE, log2, to_decimal

if TYPE_CHECKING:
    from hushuffle.model.prior import Prior

_WIDEST_MATRIX: Final = 12

LARGEST_MATRIX: Final = 20_000
"""Entries of the largest matrix of a mechanism with many reports."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Blanket:
    """What every value's report has in common: weight gamma and law omega, shape (outputs,).

    Q(.|x) = gamma omega + (1 - gamma) (rest depending on x), gamma = sum_y min_x Q(y|x) or less.
    """

    weight: float
    law: npt.NDArray[np.float64]

    @classmethod
    def uniform(cls, weight: Fraction, outputs: int) -> Self:
        """Return the blanket of a mechanism whose dummies are any report alike."""
        return cls(weight=float(weight), law=np.full(outputs, 1.0 / outputs))


@dataclass(frozen=True, kw_only=True)
class Support:
    """Reports that support values: its own with probability `true`, any other with `false`; a dummy any with `dummy`.

    Up to a factor of its own it has the probability `inside` given a value that it supports, `outside` given another.
    `told`: with this probability the report is a dummy's, given that it supports the own value, else a dummy's.
    `disjoint`: a dummy supports a fixed number of values, drawn without replacement.
    """

    true: float
    false: float
    dummy: float
    inside: float
    outside: float
    told: float
    disjoint: bool = False


@dataclass(frozen=True, kw_only=True)
class OneHot:
    """k bits, one for each value: the own one is 1 with probability `kept`, every other one with `raised` < `kept`."""

    k: int
    kept: Fraction
    raised: Fraction


class ReportLaw(ABC):
    """What analyses read of a mechanism: Q(report | value), up to renaming values and reports.

    `values` and `channel` are enough: everything else has a default that reads the matrix. A law with a closed form
    overrides it, so that it holds where no matrix could be written down. Some closed forms are named, because
    formulas of their own rest on them; a law that has none of them leaves them None.

    - `pairs`: every ordered pair of values, by classes of reports (central and local differential privacy).
    - `blanket`: what all values have in common (the law of dummies).
    - `capacity`, `gain`, `bayes`, `contraction`: how much one report says about who sent it (re-identification, and
      guessing one's value from a report seen next to one's name).
    - `support`: how reports count towards frequencies (estimation, linkage, guessing after a shuffle).
    - `symmetric`: the law is that of k-ary randomized response. `bucket`: of randomized response on a public hash of
      the value. `flipped`: bits, each flipped on its own. `one_hot`: a bit for each value, each randomized on its own.
    """

    sources: tuple[Citation, ...] = (SHANNON, BLAHUT, ARIMOTO)

    @property
    @abstractmethod
    def values(self) -> int:
        """How many values there are."""

    @abstractmethod
    def channel(self) -> Channel:
        """Return Q(y|x) in floats, shape (values, outputs).

        Raises:
            UnsupportedProtocolError: it is too large.
        """

    @property
    def symmetric(self) -> Symmetric | None:
        """The law itself if all values and all reports are alike, the own one apart."""
        return None

    @property
    def bucket(self) -> Symmetric | None:
        """The randomized response on the bucket of a fresh public hash; its k is the number of buckets."""
        return None

    @property
    def collision(self) -> Fraction:
        """The probability that two different values share the bucket of such a hash."""
        return Fraction(0)

    @property
    def flipped(self) -> Bits | None:
        """The law itself if each of some bits is flipped with the same probability."""
        return None

    @property
    def one_hot(self) -> OneHot | None:
        """The law itself if a report has a bit for each value, every one randomized on its own."""
        return None

    @property
    def support(self) -> Support | None:
        """The probabilities that link counts of supporting reports to frequencies."""
        return None

    @property
    def classes(self) -> Hashable:
        """A name of the classes of reports in `pairs`: laws of one name differ in probabilities only; None: no name."""
        return None

    @property
    def told(self) -> Fraction | None:
        """The probability with which the value (or its bucket) is told on purpose, where a report is else a dummy's."""
        return None

    def blanket(self) -> Blanket:
        """Return the privacy blanket over `channel`'s outputs."""
        shared = self._matrix().min(axis=0)
        weight = float(shared.sum())
        return Blanket(weight=weight, law=shared / weight if weight else shared)

    def pairs(self) -> tuple[ValueLaws, ...]:
        """Return laws among whose pairs every ordered pair of values occurs, up to renaming."""
        matrix, blanket = self._matrix(), self.blanket()
        return (
            ValueLaws(
                rows=matrix,
                labels=tuple(range(self.values)),
                blanket=blanket.law,
                weight=blanket.weight,
                pairs=different_pairs(matrix),
                complete=True,
            ),
        )

    def capacity(self, people: int) -> tuple[Decimal, Decimal]:
        """Return the ends of sup I(person; report) in bits over all laws of values given so many people.

        Equal: exact. 0 if nothing better is known below. With fewer people than values the best rows are not looked
        for: the capacity of all of them is a bound.
        """
        lower, upper = capacity_ends(self._matrix())
        most = min(Decimal(upper), log2(Fraction(people)))
        return (min(Decimal(lower), most) if people >= self.values else Decimal(0)), most

    def gain(self, people: int) -> Fraction:
        """Return sum_y max_x Q(y|x) over the values that so many people can hold, or more."""
        return min(self._up(Fraction(float(self._matrix().max(axis=0).sum()))), Fraction(people))

    def bayes(self, prior: Prior) -> tuple[Fraction, bool]:
        """Return the chance of naming the sender of one report, or more; and whether some law of values attains it.

        At most `gain` times the largest prior; and each of the outputs names one person.
        """
        outputs = self._matrix().shape[1]
        most = min(self.gain(prior.people) * prior.largest, prior.likeliest(outputs)[1])
        return most, prior.people >= self.values and prior.uniform

    def contraction(self) -> tuple[Fraction, bool]:
        """Return eta with I(person; report) <= eta I(person; value), and whether no smaller one will do.

        Here one minus what all rows share (Doeblin).
        """
        shared = Fraction(float(self._matrix().min(axis=0).sum()))
        return min(self._up(max(1 - shared, Fraction(0))) + Fraction(EPS), Fraction(1)), False

    def _held(self, people: int) -> int:
        """Return how many values so many people can hold at once."""
        return min(_checks.integer("people", people, low=1), self.values)

    def _matrix(self) -> npt.NDArray[np.float64]:
        return np.asarray(self.channel().matrix, dtype=np.float64)

    def _up(self, value: Fraction) -> Fraction:
        """Return a sum over floats of the matrix, rounded upwards by a relative 3e-16 for each row and column."""
        return value * (1 + sum(self._matrix().shape) * Fraction(EPS))


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix(ReportLaw):
    """A law that is known by its matrix only."""

    table: Channel

    @property
    def values(self) -> int:
        return int(self.table.matrix.shape[0])

    def channel(self) -> Channel:
        return self.table


@dataclass(frozen=True, kw_only=True)
class Symmetric(ReportLaw):
    """k-ary randomized response: the true value with probability `truth`, each other one with `lie`.

    Exact rationals. With probability `theta` = truth - lie the truth is told on purpose, with
    `gamma` = k lie = 1 - theta a uniform value is drawn (which may be the truth by chance).
    """

    k: int
    truth: Fraction
    lie: Fraction
    sources = (SHANNON,)

    def __post_init__(self) -> None:
        if self.truth + (self.k - 1) * self.lie != 1 or not 0 <= self.lie <= self.truth:
            _checks.reject("truth, lie", "truth >= lie >= 0, truth + (k-1) lie = 1", (self.truth, self.lie))

    @property
    def theta(self) -> Fraction:
        """Truth - lie."""
        return self.truth - self.lie

    @property
    def gamma(self) -> Fraction:
        """K * lie."""
        return self.k * self.lie

    @property
    def values(self) -> int:
        return self.k

    @property
    def symmetric(self) -> Symmetric:
        return self

    @property
    def classes(self) -> Hashable:
        return "values", self.k

    @property
    def told(self) -> Fraction:
        return self.theta

    @property
    def support(self) -> Support:
        return Support(
            true=float(self.truth),
            false=float(self.lie),
            dummy=1.0 / self.k,
            inside=float(self.truth),
            outside=float(self.lie),
            told=float(self.theta),
            disjoint=True,
        )

    def channel(self) -> Channel:
        matrix = np.full((self.k, self.k), float(self.lie))
        np.fill_diagonal(matrix, float(self.truth))
        return Channel(matrix=matrix)

    def blanket(self) -> Blanket:
        return Blanket.uniform(self.gamma, self.k)

    def pairs(self) -> tuple[ValueLaws, ...]:
        """Return the one pair there is: a report is the first value, the second, a third one, or another."""
        held, rest = min(self.k, 3), np.array([1.0] * min(self.k, 3) + [self.k - 3.0] * (self.k > 3))
        rows = float(self.lie) * np.tile(rest, (held, 1))
        np.fill_diagonal(rows, float(self.truth))
        return (
            ValueLaws(
                rows=rows,
                labels=tuple(range(held)),
                blanket=rest / self.k,
                weight=float(self.gamma),
                pairs=((0, 1),),
                complete=True,
            ),
        )

    def capacity(self, people: int) -> tuple[Decimal, Decimal]:
        """Return mu log2(mu/a) + (j-1) nu log2(nu/a), j = min(people, k), a = (mu + (j-1) nu)/j: exact.

        The j values are used equally: every one then has the same divergence from the mean report (on the k - j other
        reports all agree), which is the condition for capacity.

        Source: C. E. Shannon 1948; docs/theory/identity.md, Theorem 1.

        >>> law = Symmetric(k=2, truth=Fraction(89, 100), lie=Fraction(11, 100))
        >>> [round(end, 4) for end in law.capacity(2)]
        [Decimal('0.5001'), Decimal('0.5001')]
        """
        j = self._held(people)
        mean = (self.truth + (j - 1) * self.lie) / j
        with localcontext(WIDE):
            bits = to_decimal(self.truth) * log2(self.truth / mean)
            if self.lie:
                bits += to_decimal((j - 1) * self.lie) * log2(self.lie / mean)
        return bits, bits

    def gain(self, people: int) -> Fraction:
        """Return j mu + (k-j) nu, j = min(people, k): exact.

        Source: C. Braun, K. Chatzikokolakis, C. Palamidessi 2009; docs/theory/guessing.md, Theorem 9.

        >>> Symmetric(k=3, truth=Fraction(1, 2), lie=Fraction(1, 4)).gain(2)
        Fraction(5, 4)
        """
        j = self._held(people)
        return j * self.truth + (self.k - j) * self.lie

    def bayes(self, prior: Prior) -> tuple[Fraction, bool]:
        return self.named(prior, most=self.k), True

    def named(self, prior: Prior, *, most: int) -> Fraction:
        """Return the chance of naming the sender where people hold at most so many of the values.

        The likeliest people have values of their own: mu p_1 + sum_i max(mu p_i, nu p_1) + ... For each y the best
        guess is the likeliest holder of y, or else the likeliest person of all, and the likeliest holders of different
        y are different people.
        """
        rows = min(most, self._held(prior.people))
        named, mass = prior.likeliest(rows, above=self.lie * prior.largest / self.truth)
        return self.truth * mass + (self.k - named) * self.lie * prior.largest

    def contraction(self) -> tuple[Fraction, bool]:
        """Two inputs decide: (mu - nu)**2/(mu + nu)."""
        return self.theta**2 / (self.truth + self.lie), True


@dataclass(frozen=True, kw_only=True)
class Bits(ReportLaw):
    """Each of `width` bits is flipped with probability `flip`. The blanket is uniform, gamma = (2 flip)**width."""

    width: int
    flip: Fraction

    @property
    def values(self) -> int:
        return 1 << self.width

    @property
    def flipped(self) -> Bits:
        return self

    def channel(self) -> Channel:
        if self.width > _WIDEST_MATRIX:
            message = f"Bits of width {self.width}: a matrix would have 2**{2 * self.width} entries."
            raise UnsupportedProtocolError(message)
        flip = float(self.flip)
        one, matrix = np.array([[1 - flip, flip], [flip, 1 - flip]]), np.ones((1, 1))
        for _ in range(self.width):
            matrix = np.kron(matrix, one)
        return Channel(matrix=matrix)

    def pairs(self) -> tuple[ValueLaws, ...]:
        """Return the pairs by their distance: complementing and exchanging bits renames all others."""
        return tuple(self._at_distance(h) for h in range(1, self.width + 1))

    def _at_distance(self, h: int) -> ValueLaws:
        """Return the pair 0, 2**h - 1 by how many of these h bits, and of the others, are set in the report."""
        rest, flip = self.width - h, float(self.flip)
        near = [_ones(h, x, flip) for x in range(h + 1)]
        far = [_ones(rest, x, flip) for x in sorted({0, rest})]
        names = [(1 << x) - 1 | ((1 << y) - 1 << h) for x in range(h + 1) for y in sorted({0, rest})]
        uniform = np.outer(_ones(h, 0, 0.5), _ones(rest, 0, 0.5)).ravel()
        return ValueLaws(
            rows=np.array([np.outer(a, b).ravel() for a in near for b in far]),
            labels=tuple(names),
            blanket=uniform,
            weight=float((2 * self.flip) ** self.width),
            pairs=((0, h * len(far)),),
        )


def _ones(bits: int, held: int, flip: float) -> npt.NDArray[np.float64]:
    """Return the law of the number of set bits in a report of `bits` bits of which `held` are set."""
    law = np.ones(1)
    for bit in range(bits):
        # Each as it is known: 1 - (1 - flip) would lose a rare flip.
        law = np.convolve(law, [flip, 1 - flip] if bit < held else [1 - flip, flip])
    return law
