"""`ReportLaw`: the distribution of a report. Analyses use it and do not depend on the class of the mechanism."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import unsupported
from hushuffle.mechanisms.randomizers.value_laws import Permutation, ValueLaws, different_pairs, ring_symmetries
from hushuffle.model import Channel, Citation
from hushuffle.model.citation import ARIMOTO, BLAHUT, SHANNON
from hushuffle.numerics.binomial import EPS
from hushuffle.numerics.capacity import capacity_ends
from hushuffle.numerics.exact import WIDE, log2, to_decimal

if TYPE_CHECKING:
    from hushuffle.model.prior import Prior

_WIDEST_MATRIX: Final = 12

LARGEST_MATRIX: Final = 20_000
"""Largest number of matrix entries for a mechanism with many different reports."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Blanket:
    """The privacy blanket, the common part of all values' report distributions: weight gamma, distribution omega.

    Q(.|x) = gamma omega + (1 - gamma) (a remainder that depends on x), gamma <= sum_y min_x Q(y|x).
    """

    weight: float
    law: npt.NDArray[np.float64]

    @classmethod
    def uniform(cls, weight: Fraction, outputs: int) -> Self:
        """Return the blanket of a mechanism whose dummies are uniform over all reports."""
        return cls(weight=float(weight), law=np.full(outputs, 1.0 / outputs))


@dataclass(frozen=True, kw_only=True)
class Support:
    """A report supports the true value with probability `true`, and each other value with probability `false`.

    `dummy`: probability that a dummy supports a given value. `inside`, `outside`: likelihoods of a report given a value
    that the report supports, or does not support, up to a factor that depends only on the report. `told`: probability
    that a report is drawn like a dummy that supports the true value; otherwise it is drawn like any dummy. `disjoint`:
    a dummy supports a fixed number of values, drawn without replacement.
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
    """k bits, one per value: the true value's bit is 1 with probability `own`, other bits with `raised` < `own`."""

    k: int
    own: Fraction
    raised: Fraction


class ReportLaw(ABC):
    """The conditional distribution Q(report | value) of a mechanism, up to renaming values and reports, for analyses.

    A subclass must define `values` and `channel`; all other members have a default that uses the matrix. A subclass
    with closed forms overrides the defaults, so that analyses need no matrix. Some closed forms have names, because
    specific formulas rest on them; they are None if a distribution has another form.

    - `pairs`: distributions over classes of reports for pairs of values (central and local differential privacy).
    - `blanket`: the part common to the reports of all values (the distribution of dummies).
    - `capacity`, `gain`, `bayes`, `contraction`: how much a report reveals about its sender (re-identification), or
      about the value of a known sender (guessing).
    - `support`: how reports count towards frequencies (estimation, linkage, guessing after a shuffle).
    - `symmetric`: k-ary randomized response. `bucket`: randomized response on a public hash of the value. `flipped`:
      independent flips of all bits. `one_hot`: one independently randomized bit for each value.
    """

    sources: tuple[Citation, ...] = (SHANNON, BLAHUT, ARIMOTO)

    @property
    @abstractmethod
    def values(self) -> int:
        """Number k of values."""

    @abstractmethod
    def channel(self) -> Channel:
        """Return Q(y|x) in floats, shape (values, outputs).

        Raises:
            UnsupportedProtocolError: the matrix is too large.
        """

    @property
    def symmetric(self) -> Symmetric | None:
        """This distribution if it is k-ary randomized response, else None."""
        return None

    @property
    def bucket(self) -> Symmetric | None:
        """Randomized response on the bucket of a fresh public hash (its k: number of buckets); None for other forms."""
        return None

    @property
    def collision(self) -> Fraction:
        """The probability that two different values share a bucket under a fresh public hash."""
        return Fraction(0)

    @property
    def flipped(self) -> Bits | None:
        """This distribution if it flips each bit independently with the same probability, else None."""
        return None

    @property
    def one_hot(self) -> OneHot | None:
        """This distribution if a report has an independently randomized bit for each value, else None."""
        return None

    @property
    def support(self) -> Support | None:
        """The probabilities by which frequencies are estimated from counts of supporting reports; else None."""
        return None

    @property
    def classes(self) -> Hashable:
        """Name of the classes of reports in `pairs`. Distributions with equal names differ only in probabilities."""
        return None

    @property
    def told(self) -> Fraction | None:
        """The probability theta that a report is truthful, if it is otherwise drawn as a dummy; else None."""
        return None

    @property
    def symmetries(self) -> tuple[Permutation, ...]:
        """Candidate symmetries: permutations of the values, shape (values,), that may amount to a renaming of reports.

        The default `pairs` checks each candidate and compares one pair of values per orbit of the valid ones. Override
        it with generators of the symmetry group if that is not the group of a ring or a line.
        """
        return ring_symmetries(self.values)

    def blanket(self) -> Blanket:
        """Return the privacy blanket over `channel`'s outputs."""
        shared = self._matrix().min(axis=0)
        weight = float(shared.sum())
        return Blanket(weight=weight, law=shared / weight if weight else shared)

    def pairs(self) -> tuple[ValueLaws, ...]:
        """Return report distributions for pairs of values; every ordered pair equals one of them, up to renaming."""
        return (_compared(self),)

    def capacity(self, people: int) -> tuple[Decimal, Decimal]:
        """Return bounds (bits) on I(person; report), maximized over the assignments of values to `people` people.

        If the bounds are equal, the capacity is exact. A lower bound of 0 is trivial. With fewer people than values,
        the upper bound is the capacity of all rows.
        """
        lower, upper = capacity_ends(self._matrix())
        most = min(Decimal(upper), log2(Fraction(people)))
        return (min(Decimal(lower), most) if people >= self.values else Decimal(0)), most

    def order_capacity(self, people: int, order: float) -> tuple[Decimal, Decimal]:
        """Return bounds (bits) as `capacity`, on Sibson's mutual information of an order > 1, which may be math.inf.

        It grows with the order, from `capacity` to log2 `gain`, so these are its bounds unless there is a closed form.

        Source: docs/theory/identity.md, Theorem 11.
        """
        return self.capacity(people)[0], log2(self.gain(people))

    def gain(self, people: int) -> Fraction:
        """Return an upper bound on sum_y max_x Q(y|x) over the values x that `people` people can have."""
        return min(self._up(Fraction(float(self._matrix().max(axis=0).sum()))), Fraction(people))

    def bayes(self, prior: Prior) -> tuple[Fraction, bool]:
        """Return an upper bound on the probability of naming a report's sender, and whether it is attained.

        It is at most `gain` times the largest prior, since the adversary names one person for each output.
        """
        outputs = self._matrix().shape[1]
        most = min(self.gain(prior.people) * prior.largest, prior.likeliest(outputs)[1])
        return most, prior.people >= self.values and prior.uniform

    def contraction(self) -> tuple[Fraction, bool]:
        """Return eta with I(person; report) <= eta I(person; value), and whether eta is the smallest such number.

        The default is 1 minus the common part of all rows (Doeblin).
        """
        shared = Fraction(float(self._matrix().min(axis=0).sum()))
        return min(self._up(max(1 - shared, Fraction(0))) + Fraction(EPS), Fraction(1)), False

    def _held(self, people: int) -> int:
        """Return the largest number of different values that `people` people can have."""
        return min(_checks.integer("people", people, low=1), self.values)

    def _matrix(self) -> npt.NDArray[np.float64]:
        return np.asarray(self.channel().matrix, dtype=np.float64)

    def _up(self, value: Fraction) -> Fraction:
        """Round a sum of matrix entries upwards, by a relative 3e-16 for each row and column."""
        return value * (1 + sum(self._matrix().shape) * Fraction(EPS))


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix(ReportLaw):
    """A report distribution that is given only by its matrix."""

    table: Channel

    @property
    def values(self) -> int:
        return int(self.table.matrix.shape[0])

    def channel(self) -> Channel:
        return self.table


@dataclass(frozen=True, kw_only=True)
class Symmetric(ReportLaw):
    """k-ary randomized response: report the true value with probability `truth`, each other value with `lie`.

    The probabilities are exact rationals. The true value is reported with probability `theta` = truth - lie; otherwise
    (`gamma` = k lie = 1 - theta) the report is uniform, so it may equal the true value by chance.
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
        """Probability of a truthful report: truth - lie."""
        return self.truth - self.lie

    @property
    def gamma(self) -> Fraction:
        """Weight of the blanket, the probability of a uniform report: k * lie."""
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
        """Return the only class of pairs; a report is the first value, the second value, a third, or another one."""
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
        """Return the exact capacity, mu log2(mu/a) + (j-1) nu log2(nu/a), j = min(people, k), a = (mu + (j-1) nu)/j.

        The j values are equally likely. Each of them then has the same divergence from the mean report (the k - j other
        reports have equal probabilities under all j values), which is the condition for capacity.

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

    def order_capacity(self, people: int, order: float) -> tuple[Decimal, Decimal]:
        """Return a/(a-1) log2(j ((mu**a + (j-1) nu**a)/j)**(1/a) + (k-j) nu), a the order, as both bounds.

        >>> law = Symmetric(k=2, truth=Fraction(3, 4), lie=Fraction(1, 4))
        >>> [round(law.order_capacity(2, order)[0], 4) for order in (2.0, math.inf)]
        [Decimal('0.3219'), Decimal('0.5850')]
        """
        j, a = self._held(people), Decimal(order)
        if math.isinf(order):
            return (log2(self.gain(people)),) * 2
        with localcontext(WIDE):
            truth, lie = to_decimal(self.truth), to_decimal(self.lie)
            total = j * ((truth**a + (j - 1) * lie**a) / j) ** (1 / a) + (self.k - j) * lie
            bits = a / (a - 1) * total.ln() / Decimal(2).ln()
        return bits, bits

    def gain(self, people: int) -> Fraction:
        """Return the exact gain, j mu + (k-j) nu, where j = min(people, k).

        Source: C. Braun, K. Chatzikokolakis, C. Palamidessi 2009; docs/theory/guessing.md, Theorem 9.

        >>> Symmetric(k=3, truth=Fraction(1, 2), lie=Fraction(1, 4)).gain(2)
        Fraction(5, 4)
        """
        j = self._held(people)
        return j * self.truth + (self.k - j) * self.lie

    def bayes(self, prior: Prior) -> tuple[Fraction, bool]:
        return self.named(prior, most=self.k), True

    def named(self, prior: Prior, *, most: int) -> Fraction:
        """Return the probability of naming the sender if people have at most `most` of the values.

        The people of largest prior have different values: mu p_1 + sum_i max(mu p_i, nu p_1) + ... For each report y
        the best guess is the likeliest person with value y, or the likeliest person overall. The likeliest people of
        different y are different people.
        """
        rows = min(most, self._held(prior.people))
        named, mass = prior.likeliest(rows, above=self.lie * prior.largest / self.truth)
        return self.truth * mass + (self.k - named) * self.lie * prior.largest

    def contraction(self) -> tuple[Fraction, bool]:
        """Return eta = (mu - nu)**2/(mu + nu); it is the same for two values and for all values."""
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
            unsupported(f"The matrix of reports with {self.width} bits is too large: 2**{2 * self.width} entries.")
        flip = float(self.flip)
        bit, matrix = np.array([[1 - flip, flip], [flip, 1 - flip]]), np.ones((1, 1))
        for _ in range(self.width):
            matrix = np.kron(matrix, bit)
        return Channel(matrix=matrix)

    def pairs(self) -> tuple[ValueLaws, ...]:
        """Return a pair of values for each Hamming distance; all other pairs follow by complements and exchanges."""
        return tuple(self._at_distance(h) for h in range(1, self.width + 1))

    def _at_distance(self, h: int) -> ValueLaws:
        """Return the pair 0, 2**h - 1; a class of reports is the numbers of set bits among the h and the other bits."""
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
    """Return the distribution of the number of set bits in a report on `bits` bits, `held` of them set in the value."""
    law = np.ones(1)
    for bit in range(bits):
        # Each probability is computed directly: 1 - (1 - flip) would round a small flip to 0.
        law = np.convolve(law, [flip, 1 - flip] if bit < held else [1 - flip, flip])
    return law


def is_processing(noisier: ReportLaw, law: ReportLaw) -> bool:
    """Return whether post-processing provably turns reports and dummies of `law` into those of `noisier`.

    False means that no such post-processing exists, or that there is no proof of it.

    Source: docs/theory/more-and-less.md, Theorem 2.

    >>> from hushuffle import RandomizedResponse
    >>> more, less = (RandomizedResponse(k=3, epsilon=epsilon).law() for epsilon in (1.0, 2.0))
    >>> is_processing(more, less), is_processing(less, more)
    (True, False)
    """
    if law.one_hot is not None and noisier.one_hot is not None:
        return law.one_hot.k == noisier.one_hot.k and _bits(noisier.one_hot, law.one_hot)
    alike = law.classes is not None and law.classes == noisier.classes
    return alike and noisier.told is not None and law.told is not None and noisier.told <= law.told


@lru_cache(maxsize=32)
def _compared(law: ReportLaw) -> ValueLaws:
    matrix, blanket = law.channel().matrix.astype(np.float64), law.blanket()
    return ValueLaws(
        rows=matrix,
        labels=tuple(range(law.values)),
        blanket=blanket.law,
        weight=blanket.weight,
        pairs=different_pairs(matrix, symmetries=law.symmetries),
        complete=True,
    )


def averages_to_dummies(law: ReportLaw) -> bool:
    """Return whether a report of a uniformly random value provably has the same distribution as a dummy.

    Source: docs/theory/more-and-less.md, Theorem 3.
    """
    return law.symmetric is not None or (law.support is not None and law.support.disjoint and law.told is not None)


def _bits(noisier: OneHot, law: OneHot) -> bool:
    """Return whether one binary channel maps `law`'s two probabilities of a 1 to those of `noisier`."""
    slope = (noisier.own - noisier.raised) / (law.own - law.raised)
    from_zero = noisier.raised - slope * law.raised
    return from_zero >= 0 and from_zero + slope <= 1
