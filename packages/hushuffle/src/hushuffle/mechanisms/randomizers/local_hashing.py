"""Local hashing: a report consists of a fresh public hash function and a randomized bucket of the value."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Integers
from hushuffle.errors import Problem
from hushuffle.mechanisms.randomizers._hash_families import AffineHashes, BinaryHashes, HashFamily
from hushuffle.mechanisms.randomizers.base import Mechanism, truth_threshold
from hushuffle.mechanisms.randomizers.report_law import LARGEST_MATRIX, Blanket, ReportLaw, Support, Symmetric
from hushuffle.mechanisms.randomizers.value_laws import ValueLaws
from hushuffle.mechanisms.settings import BEST, SILENT, Setting, SettingsTable
from hushuffle.model import Channel, Histogram
from hushuffle.model.citation import HASHING, SHANNON
from hushuffle.model.report_layout import ReportLayout
from hushuffle.randomness import SCALE, Randomness, epsilon_of_threshold, threshold_for_truth

if TYPE_CHECKING:
    from hushuffle.model.prior import Prior

Family = Literal["auto", "binary", "affine"]

_LARGEST_VALUE = 2**27
_LARGEST_BUCKET = 2 * 10**9
_LARGEST_BINARY = 256
_LARGEST_POWER = 2**16


@dataclass(frozen=True, kw_only=True)
class LocalHashing(Mechanism):
    """Hash the value to one of g buckets with a fresh hash function; report the function and the randomized bucket.

    The report shows the value's bucket with the probability theta of `RandomizedResponse(k=g)`, else a uniform bucket.
    A report is a row of integers: one ("binary") or two ("affine") for the hash function, then the bucket.

    There are two families of hash functions. "binary" (g a power of two): two values collide with probability 1/g
    exactly, and counting takes n g + k log k steps. "affine" (any g, faster for large g): the collision probability is
    `collision`, and counting takes n ceil(P/g) steps for a prime P >= k. "auto" takes binary for powers of two up to
    256, else affine.

    Args:
        k: number of values, 2 to 2**27.
        g: number of buckets, 2 to 2 * 10**9; default: `best_fast_g`.
        epsilon: local epsilon in nats, > 0. With `math.inf`, the bucket is always truthful, and only `BlanketMessages`
            protect it; about as many are needed as for `RandomizedResponse` with g values.
        family: "auto", "binary" or "affine".

    Raises:
        InvalidInputError: an argument is out of range, or the family is "binary" but g is no power of two <= 2**16.

    Source: Wang, Blocki, Li, Jha 2017 (optimized local hashing); docs/theory/blanket.md, Theorem 5;
    docs/theory/estimation.md, Theorem 2; docs/theory/histograms.md, Theorem 9 (without noise).

    >>> import hushuffle as hs
    >>> hashing = hs.LocalHashing(k=100_000, g=4, epsilon=1.0)
    >>> round(hashing.law().support.true, 6), hashing.collision
    (0.475367, Fraction(1, 4))
    """

    k: int
    g: int = BEST
    epsilon: float
    family: Family = "auto"
    threshold: int = field(init=False, repr=False, compare=False)
    hashes: HashFamily = field(init=False, repr=False, compare=False)
    sources = (HASHING,)
    besides_epsilon = "number of buckets"
    table = SettingsTable(
        kind="local-hashing",
        about=("Local hashing, for many categories: randomized response on the value's bucket under a fresh hash."),
        settings={
            "epsilon": Setting(type="epsilon", about=('Local privacy loss in nats; "inf": no noise, which needs g.')),
            "g": Setting(
                type="integer",
                about="Number of buckets. Default: the best number for rare categories, or the best power of two if "
                "that number is at most 256.",
                limits={"ge": 2, "le": _LARGEST_BUCKET},
                optional=True,
                tried=(16, 256, 4096),
            ),
        },
    )

    def __post_init__(self) -> None:
        k = _checks.integer("k", self.k, low=2, high=_LARGEST_VALUE)
        hint = "math.inf means that reports have the true bucket."
        epsilon = _checks.positive("epsilon", self.epsilon, allow_infinite=True, hint=hint)
        chosen = self.best_fast_g(epsilon) if self.g is BEST and not math.isinf(epsilon) else self.g
        g = _checks.integer("g", chosen, low=2, high=_LARGEST_BUCKET)
        threshold = truth_threshold(g, epsilon, f" at g={g}")
        _checks.set_fields(self, k=k, g=g, epsilon=epsilon, threshold=threshold, hashes=_family(k, g, self.family))

    @classmethod
    def from_theta(cls, k: int, g: int, theta: float, *, family: Family = "auto") -> Self:
        """Return local hashing whose bucket is truthful with probability theta and otherwise uniform, 0 < theta <= 1.

        epsilon = ln(1 + g theta/(1 - theta)); the implemented theta is not larger than asked for.

        Source: Murakami, Takahashi 2021, Theorem 4.4 (theta_GLH).

        >>> import hushuffle as hs
        >>> round(hs.LocalHashing.from_theta(k=100_000, g=4, theta=0.5).epsilon, 6)
        1.609438
        """
        buckets = _checks.integer("g", g, low=2, high=_LARGEST_BUCKET)
        share = _checks.probability("theta", theta, low_open=True)
        if share == 1:
            return cls(k=k, g=buckets, epsilon=math.inf, family=family)
        with localcontext(Context(prec=40)):
            exact = Decimal(share)
            growth = (1 + buckets * exact / (1 - exact)).ln()
            nearest = float(growth)
            epsilon = nearest if Decimal(nearest) <= growth else math.nextafter(nearest, 0.0)
            return cls(k=k, g=buckets, epsilon=epsilon, family=family)

    @staticmethod
    def best_g(epsilon: float) -> int:
        """Return the number of buckets with the least variance for a rare value: e**epsilon + 1 rounded up or down.

        >>> import hushuffle as hs
        >>> hs.LocalHashing.best_g(1.0), hs.LocalHashing.best_g(3.0)
        (4, 21)
        """
        growth = math.exp(min(_checks.positive("epsilon", epsilon), 40.0))
        near = math.floor(growth) + 1
        wanted = min((near, near + 1), key=lambda g: (g + growth - 1) ** 2 / (g - 1))
        return min(wanted, _LARGEST_BUCKET)

    @staticmethod
    def best_fast_g(epsilon: float) -> int:
        """Return the power of two up to 256 with the least variance for a rare value, or `best_g` if that is larger.

        With powers of two, counting takes n g + k log k steps; the variance is at most 8 % above that of `best_g`.

        >>> import hushuffle as hs
        >>> hs.LocalHashing.best_fast_g(1.0), hs.LocalHashing.best_fast_g(3.0), hs.LocalHashing.best_fast_g(6.0)
        (4, 16, 404)
        """
        best = LocalHashing.best_g(epsilon)
        if best > _LARGEST_BINARY:
            return best
        growth = math.expm1(epsilon)
        return min((1 << bits for bits in range(1, 9)), key=lambda g: (g + growth) ** 2 / (g - 1))

    @classmethod
    def problems(cls, raw: Mapping[str, Any], k: int | None) -> Iterator[Problem]:
        settings = cls.table.given(raw) or {}
        if settings.get("epsilon") == math.inf and "g" not in settings:
            hint = "Without noise more buckets are more accurate; fewer buckets reveal less or need fewer messages."
            yield Problem(key="randomizer.g", rule='must be given with epsilon = "inf"', value="nothing", hint=hint)
        elif settings and k is not None:
            buckets = settings.get("g") or cls.best_fast_g(settings["epsilon"])
            if threshold_for_truth(buckets, settings["epsilon"]) == 0:
                rule, value = f"must be larger for g = {buckets:,}", f"{settings['epsilon']}"
                yield Problem(key="randomizer.epsilon", rule=rule, value=value, hint=SILENT)

    @property
    def collision(self) -> Fraction:
        """The probability that two different values share a bucket."""
        return self.hashes.collision

    @property
    def local_epsilon(self) -> float:
        return epsilon_of_threshold(self.g, self.threshold)

    @property
    def layout(self) -> ReportLayout:
        words = self.hashes.limits
        names = ("hash",) if len(words) == 1 else tuple(f"hash_{number}" for number in range(1, len(words) + 1))
        return ReportLayout(names=(*names, "bucket"), limits=(*words, self.g))

    def law(self) -> Hashed:
        lie = Fraction(SCALE - self.threshold, SCALE * self.g)
        return Hashed(response=Symmetric(k=self.g, truth=1 - (self.g - 1) * lie, lie=lie), hashes=self.hashes)

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        truth = _checks.codes("values", values, k=self.k)
        hashes = self.hashes.draw(truth.size, rng)
        honest, other = rng.coins(self.threshold, truth.size), rng.integers(self.g, truth.size)
        return np.column_stack([hashes, np.where(honest, self.hashes.buckets(hashes, truth), other)])

    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        """Return `count` reports with fresh hash functions and uniform buckets."""
        size = _checks.integer("count", count, low=0)
        return np.column_stack([self.hashes.draw(size, rng), rng.integers(self.g, size)])

    def counts(self, reports: Integers) -> Histogram:
        rows, limits = np.asarray(reports), (*self.hashes.limits, self.g)
        if rows.ndim != 2 or rows.shape[1] != len(limits):
            _checks.reject("reports", f"of shape (n, {len(limits)})", f"<shape {rows.shape}>")
        columns = [_checks.codes("reports", column, k=limit) for column, limit in zip(rows.T, limits, strict=True)]
        hashes, buckets = np.stack(columns[:-1], axis=1), columns[-1]
        drawn = self.hashes.drawn(hashes)
        if not drawn.all():  # no device of the protocol sends these rows: they support no value
            hashes, buckets = hashes[drawn], buckets[drawn]
        return Histogram(counts=self.hashes.supporters(hashes, buckets))

    def supports(self, reports: Integers, values: Integers) -> Flags:
        hashes, buckets = np.tile(reports[:, :-1], (values.size, 1)), reports[:, -1]
        sent = self.hashes.buckets(hashes, np.repeat(values, buckets.size)).reshape(values.size, buckets.size)
        supported: Flags = (sent == buckets) & self.hashes.drawn(reports[:, :-1])
        return supported

    def supported(self, reports: Integers) -> Integers:
        prime = self.hashes.prime
        if prime is None:
            return super().supported(reports)
        every = ((prime - 1 - reports[:, -1]) // self.g + 1) * self.hashes.drawn(reports[:, :-1])
        beyond: Integers = self.supports(reports, np.arange(self.k, prime)).sum(axis=0)
        return every - beyond

    def describe(self) -> str:
        if self.threshold == SCALE:
            return f"every person reports a fresh hash of one of {self.k:,} values to {self.g:,} buckets (no noise)"
        return (
            f"every person reports a fresh hash of one of {self.k:,} values to {self.g:,} buckets, with a randomized "
            f"bucket (local hashing, local epsilon {self.local_epsilon:.4g})"
        )


@dataclass(frozen=True, kw_only=True)
class Hashed(ReportLaw):
    """Report distribution: a fresh public hash, independent of the value, and `response` on the value's bucket.

    Given the hash function, the report is randomized response on g buckets, of which at most min(people, k, g) are in
    use. That gives an upper bound on what a report reveals about its sender, attained if no two values share a bucket.
    """

    response: Symmetric
    hashes: HashFamily
    sources = (SHANNON,)

    @property
    def values(self) -> int:
        return self.hashes.k

    @property
    def collision(self) -> Fraction:
        return self.hashes.collision

    @property
    def bucket(self) -> Symmetric:
        return self.response

    @property
    def classes(self) -> Hashable:
        return self.hashes

    @property
    def told(self) -> Fraction:
        return self.response.theta

    @property
    def support(self) -> Support:
        law, collision = self.response, self.collision
        return Support(
            true=float(law.truth),
            false=float(collision * law.truth + (1 - collision) * law.lie),
            dummy=1.0 / law.k,
            inside=float(law.truth),
            outside=float(law.lie),
            told=float(law.theta),
        )

    def channel(self) -> Channel:
        k, g, law = self.values, self.response.k, self.response
        if self.hashes.size * g * k > LARGEST_MATRIX:
            _checks.unsupported(f"The matrix of local hashing with {self.hashes.size:,} hash functions is too large.")
        hashes, values = list(self.hashes.every()), np.arange(k)
        rows = np.array([self.hashes.buckets(np.tile(np.array(h), (k, 1)), values) for h in hashes])
        supports = rows.T[:, :, None] == np.arange(g)
        matrix = np.where(supports, float(law.truth), float(law.lie)) / len(hashes)
        return Channel(matrix=matrix.reshape(k, -1), outputs=[(*h, y) for h in hashes for y in range(g)])

    def blanket(self) -> Blanket:
        return Blanket.uniform(self.response.gamma, self.channel().matrix.shape[1])

    def pairs(self) -> tuple[ValueLaws, ...]:
        """Return the only class of pairs of values; a report's class states which of three values it supports.

        The blanket is a fresh hash function with a uniform bucket.
        """
        if self.values == 2:
            return (self._classes([(1, 1), (0, 1)], [self.collision, 1 - self.collision]),)
        first, *bounds = self.hashes.triples
        also: ValueLaws | None = None
        for shared in sorted({*bounds} - {first}, reverse=True):
            also = replace(self._of_three(shared), also=also)
        return (replace(self._of_three(first), also=also),)

    def _of_three(self, shared: Fraction) -> ValueLaws:
        """Return the report distributions of three values that share a common bucket with probability `shared`."""
        two = self.collision - shared
        buckets: list[tuple[int, ...]] = [(1, 1, 1), (0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 2)]
        return self._classes(buckets, [shared, two, two, two, 1 - shared - 3 * two])

    def _classes(self, buckets: list[tuple[int, ...]], chances: list[Fraction]) -> ValueLaws:
        """Return distributions over classes: which values share a bucket, and which of their buckets is reported."""
        law, values = self.response, range(len(buckets[0]))
        rows: list[tuple[Fraction, ...]] = []
        for held, chance in zip(buckets, chances, strict=True):
            rows += [
                (chance / law.k, *(chance * (law.truth if held[x] == bucket else law.lie) for x in values))
                for bucket in sorted(set(held))
            ]
            others = law.k - len(set(held))
            rows.append((others * chance / law.k, *(others * chance * law.lie for _ in values)))
        blanket, *laws = np.array([row for row in rows if row[0] > 0], dtype=np.float64).T
        return ValueLaws(
            rows=np.array(laws),
            labels=tuple(values),
            blanket=blanket,
            weight=float(law.gamma),
            pairs=((0, 1),),
            complete=len(values) == min(self.values, 3),
        )

    def capacity(self, people: int) -> tuple[Decimal, Decimal]:
        most = self.response.capacity(min(people, self.values))[1]
        return (Decimal(0) if self.collision else most), most

    def order_capacity(self, people: int, order: float) -> tuple[Decimal, Decimal]:
        most = self.response.order_capacity(min(people, self.values), order)[1]
        return (Decimal(0) if self.collision else most), most

    def gain(self, people: int) -> Fraction:
        return self.response.gain(min(people, self.values))

    def bayes(self, prior: Prior) -> tuple[Fraction, bool]:
        return self.response.named(prior, most=self.values), self.collision == 0

    def contraction(self) -> tuple[Fraction, bool]:
        """Return the response's eta times the probability that two values are hashed to different buckets."""
        return (1 - self.collision) * self.response.contraction()[0], True


def _family(k: int, g: int, name: str) -> HashFamily:
    if name not in ("auto", "binary", "affine"):
        _checks.reject("family", "auto, binary or affine", name)
    power = g & (g - 1) == 0
    if name == "affine" or (name == "auto" and not (power and g <= _LARGEST_BINARY)):
        return AffineHashes(k=k, g=g)
    if not power or g > _LARGEST_POWER:
        _checks.reject("g", f"a power of two up to {_LARGEST_POWER} for binary hashes", g)
    return BinaryHashes(k=k, g=g)
