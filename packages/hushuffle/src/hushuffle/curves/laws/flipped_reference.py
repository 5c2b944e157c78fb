"""Weighted pools of columns of flipped bits: similar columns contribute more than others.

If n p**k is about 1, all bit patterns have too little in common for a pool (see the module `pooled`). Here a
*reference*, a bit pattern r, has a pool to which a column with bit pattern z contributes with weight

    o_z = product over bits of (1 if z agrees with r there, else a factor between p/q and 1) .

With smaller factors all columns have more in common, but fewer columns count. Slices of the pool (see the module
`slices`) together take at most o_z P(y) <= Q_z(y) of each report y. If the weights of all other columns add up to T or
more, the bound is the largest over z of a bound for T/o_z columns that all have bit pattern z.

With the factor p/q in all bits, P = Q_r: a column of weight o_z reports as if it had pattern r with probability o_z.
The target is then also among B others that all report as r does, where B is a sum of independent Bernoulli variables
with mean T at least. This bound reveals the other reports.

Source: docs/theory/crowds.md, Theorems 3 and 4, Corollary 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, product
from typing import Final

import numpy as np
from scipy.special import erfcx

from hushuffle.curves.laws.flipped_pairs import chances, ways
from hushuffle.curves.laws.kinds import Kinds, gain, local
from hushuffle.curves.laws.mixed_sums import kernel, nodes_at
from hushuffle.curves.laws.pooled import MOST, rounded
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.roots import halved
from hushuffle.numerics.score_sums import Nodes, ReportScores, ScoreTransform, positive_part

_STEP: Final = 0.25
"""Step between powers that are tried."""

_SPARE: Final = 3.0
"""Expected number of columns in all slices, above ln(1/delta)."""

_ENOUGH: Final = 0.5
"""Smallest expected number of columns in all slices, above ln(1/delta)."""

_TILTS: Final = np.geomspace(0.003, 300.0, 120)
"""Tilts that are tried, in units of one over the largest score."""

_LEAST: Final = 1e-9 - 1
"""Smallest E[e**(tilt score)] - 1 of an estimate."""

_HALVINGS: Final = 8
"""Number of halvings of the interval of the logarithm of a threshold."""

_LESS: Final = 0.9
"""Part of the deepest slices at which they are tried to end as well."""

_LEVELS: Final = 100
"""Number of depths of slices that are tabulated."""

_NEGATIVE: Final = 0.4
_TRACE: Final = 0.01
"""Weights of a negative score, and of all probabilities, in the order in which slices take reports."""

_FEW: Final = (6.5, 5.0, 4.0, 3.0, 1.5, 0.0)
_MANY: Final = (8.0, 6.5, 5.5, 5.0, 4.5, 4.0, 3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 0.6, 0.3, 0.0)
"""Boundaries of the bins of B, in standard deviations below its mean."""

_SINGLE: Final = 30.0
"""Mean of B below which each bin has one number."""

_FINE: Final = 0.01
_ROUGH: Final = 0.05
"""Smoothing of a sum of B scores, in its standard deviations, with many bins and with few."""

Depth = tuple[float, float, float]
"""Two levels to which slices fill the pool, and the part between them."""

Table = tuple[Floats, Floats, Floats, Floats]
"""Probabilities of classes of reports, shape (classes,) each."""

Bits = tuple[int, int, int, int]
"""Numbers of bits: the pair differs and the reference is 1, differs and 0, is equal and 0, is equal and 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """All `number` bit patterns of one type, for a target's pair 0...0 and 1...1 on the first two parts of `bits`.

    A column that differs from the reference in one bit has the weight p/q to the power `powers`, by the bit's part. The
    weights of all other columns add up to `threshold` at least.
    """

    bits: Bits
    flip: Fraction
    powers: tuple[float, ...]
    threshold: float = 1.0

    @classmethod
    def every(cls, width: int, flip: Fraction, distance: int, powers: Iterable[float]) -> list[Reference]:
        """Return the references with one of these powers in all bits, for a target's pair at this Hamming distance.

        >>> [each.bits for each in Reference.every(2, Fraction(1, 4), 2, [1])]
        [(0, 2, 0, 0), (1, 1, 0, 0), (2, 0, 0, 0)]
        """
        kinds = product(range(distance + 1), range(width - distance + 1), powers)
        return [
            cls(bits=(ones, distance - ones, width - distance - apart, apart), flip=flip, powers=(power,) * 4)
            for ones, apart, power in kinds
        ]

    def near(self) -> Iterator[Reference]:
        """Yield references that differ by one step of one power."""
        for part, step in product(range(4), (-_STEP, _STEP)):
            power = self.powers[part] + step
            if self.bits[part] and 0 <= power <= 1:
                yield replace(self, powers=(*self.powers[:part], power, *self.powers[part + 1 :]))

    @cached_property
    def factors(self) -> tuple[float, ...]:
        """Weights of columns that differ in one bit."""
        least = float(self.flip / (1 - self.flip)) * (1 + 1e-12)
        return tuple(least**power for power in self.powers)

    @property
    def number(self) -> int:
        """Number of bit patterns of this type."""
        first, second, third, fourth = self.bits
        return math.comb(first + second, first) * math.comb(third + fourth, fourth)

    @cached_property
    def common(self) -> float:
        """The largest probability that a pool can take from a column with weight 1."""
        p = float(self.flip)
        return math.prod((p + p / factor) ** size for size, factor in zip(self.bits, self.factors, strict=True))

    @cached_property
    def apart(self) -> list[Bits]:
        """The types of other columns: in how many bits of each part they differ from the reference."""
        return _apart(self.bits)

    @cached_property
    def weights(self) -> Floats:
        """Weights of the types of other columns, shape (kinds,)."""
        return np.array([math.prod(f**d for f, d in zip(self.factors, kind, strict=True)) for kind in self.apart])

    def total(self) -> dict[tuple[int, int], float]:
        """Return the sum of a column's weights over all references of this type, by the column's numbers of ones.

        The numbers are those of the bits in which the pair differs, and of those in which it is equal.
        """
        first, second, third, last = self.bits
        sums: dict[tuple[int, int], float] = {}
        for (i, j, u, v), weight in zip(self.apart, self.weights.tolist(), strict=True):
            ones, apart = first - i + j, last - v + u
            hits = math.comb(ones, first - i) * math.comb(first + second - ones, i)
            beside = math.comb(apart, last - v) * math.comb(third + last - apart, v)
            sums[ones, apart] = sums.get((ones, apart), 0.0) + hits * beside * weight
        return sums

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """For each type of other columns Q_a, Q_b and Q_z, and the most that a pool takes, summed over classes."""
        p, tables = float(self.flip), list[Table]()
        sizes, logs = np.array(self.bits), np.log(self.factors)
        for near, far, own, logos, off in _classes(self.bits, self.flip):
            share = logos * np.exp((off - sizes) @ logs) * p ** sum(self.bits)
            tables.append((near, far, own, share))
        return tuple(tables)

    def kinds(self, epsilon: float, before: float, after: float, depth: Depth) -> Kinds:
        """Distributions outside slices that take `after` to this depth; scores times odds of the last slice.

        `before` is what the earlier slices take. Without slices (all 0), odds are the weights.
        """
        parts = []
        for (near, far, own, share), weight in zip(self.tables, self.weights.tolist(), strict=True):
            rest = 1 - weight * after
            odds = weight * (after - before if after else 1.0) / rest
            taken = _filled(depth, _scores(near, far, share, epsilon)) * share if after else 0.0
            parts.append((odds * near, odds * far, (own - weight * taken) / rest))
        return Kinds.listed(parts)

    def fitted(self, epsilon: float, level: float, people: int) -> Reference:
        """Return the reference with about the smallest threshold with a bound of `level` by slices, or infinite."""
        least = (_ENOUGH - math.log(level)) / (MOST * self.common)
        sums = _Sums.of(self.kinds(epsilon, 0.0, 0.0, (1.0, 1.0, 0.0)), epsilon, _TILTS[::2])

        def bound(threshold: float) -> float:
            counts = threshold / self.weights
            logs = sums.likely(counts, counts * sums.logs).max(axis=1).min(initial=np.inf)
            return math.exp(min(float(logs) - math.log(threshold), 0.0))

        if least > people or bound(4.0 * people) > level:
            return replace(self, threshold=math.inf)
        each = self._with(bound, level, 4 * people)
        return replace(each, threshold=max(each.threshold, least))

    def closer(self, epsilon: float, level: float, people: int) -> Reference:
        """Return the reference with a threshold that is closer to the smallest with a bound of `level` by slices."""
        excess = math.log(max(self.bound(epsilon, level), 1e-300) / level) / -math.log(level)
        return replace(self, threshold=min(self.threshold * max(1 + excess, 0.5), 4.0 * people))

    def alone(self, epsilon: float, level: float, people: int) -> Reference:
        """Return the reference with about the smallest threshold with a bound of `level` by `among`, or `people`."""
        return self._with(lambda t: replace(self, threshold=t).among(people, epsilon, fine=False), level, people)

    def _with(self, bound: Callable[[float], float], level: float, most: int) -> Reference:
        """Return the reference with the smallest threshold whose bound is at most `level`, or with threshold `most`."""
        good = math.log(most)
        logarithm = halved(lambda log: bound(math.exp(log)) <= level, good=good, bad=0.0, times=_HALVINGS)
        return replace(self, threshold=math.exp(logarithm))

    def among(self, people: int, epsilon: float, *, fine: bool) -> float:
        """Return an upper bound on E H(1 + B) over all B of `people` columns; infinite unless all powers are 1."""
        if any(size and power < 1 for size, power in zip(self.bits, self.powers, strict=True)):
            return math.inf
        numbers, weights = alike(people, self.threshold * (1 - 1e-10), _MANY if fine else _FEW)
        near, far, own, _ = self.tables[0]
        scores = Kinds.listed([(near, far, own)]).scores(epsilon)
        return positive_part(scores, numbers, weights / numbers, smoothing=_FINE if fine else _ROUGH)

    def _empty(self, epsilon: float, mass: float) -> Floats:
        """Return the divergence of one report times the probability that slices of this mass are empty, by type."""
        near, far, *_ = self.tables[0]
        alone = min(float(local(near, far, epsilon)), 1.0) * (1 + 1e-9)
        each: Floats = alone * np.exp(self.threshold / self.weights * np.log1p(-self.weights * mass))
        return each

    def slices(self, epsilon: float, mass: float) -> list[tuple[float, Depth]]:
        """Return what the first j slices take together, `mass` in the end, and their depths (see `_filled`)."""
        near, far, _, share = self.tables[0]
        score = _scores(near, far, share, epsilon)
        depths = np.geomspace(score.min() / 2, score.max() / (1 - MOST) * 2, _LEVELS)
        masses = _filled((depths[:, None], depths[:, None], 0.0), score) @ share
        size, sizes = 1.0, list[float]()
        while size < 0.9 * mass * self.threshold:
            sizes.append(size / self.threshold)
            size = 1.5 * size + 0.6
        slices = [(0.0, (1.0, 1.0, 0.0))]
        for end in (*sizes, mass * (1 - 1e-9)):
            place = min(max(int(np.searchsorted(masses, end)), 1), _LEVELS - 1)
            part = (end - masses[place - 1]) / (masses[place] - masses[place - 1])
            slices.append((end, (float(depths[place - 1]), float(depths[place]), float(part))))
        return slices

    def bound(self, epsilon: float, level: float, *, above: float = 0.0) -> float:
        """Upper bound on delta by slices; if it is at most `above`, maybe any number up to `above`.

        All slices are empty with a probability below `level`, if the columns have so much in common.
        """
        wanted, most = (_SPARE - math.log(level)) / self.threshold, MOST * self.common
        tried = (wanted,) if wanted < _LESS * most else (min(wanted, most), _LESS * most)
        return min(self._sum(self.slices(epsilon, mass), epsilon, above) for mass in tried)

    def _sum(self, ends: list[tuple[float, Depth]], epsilon: float, above: float) -> float:
        """Return what `bound` does, for slices with these ends."""
        empty = self._empty(epsilon, ends[-1][0])
        slices = [_Slice.of(self, epsilon, before, after) for before, after in pairwise(ends)]
        coarse = np.stack([each.coarse for each in slices])
        total, worst = empty + coarse.sum(axis=0), above
        for kind in np.argsort(-total).tolist():
            terms = [float(empty[kind]), *coarse[:, kind].tolist()]
            for place in np.argsort(-coarse[:, kind]).tolist():
                if math.fsum(terms) <= worst:
                    break
                terms[place + 1] = min(terms[place + 1], slices[place].close(kind))
            worst = max(worst, math.fsum(terms))
        return worst


@lru_cache(maxsize=128)
def _classes(bits: Bits, flip: Fraction) -> tuple[tuple[Floats, Floats, Floats, Floats, Floats], ...]:
    """Return, by type of other columns, Q_a, Q_b, Q_z and sizes of classes, and how the reports are.

    The last array has the number of bits of each part in which reports of a class differ from the reference, shape
    (classes, 4).
    """
    table = chances(sum(bits), flip)
    distance, parts = bits[0] + bits[1], []
    for kind in _apart(bits):
        sizes = [size for each, d in zip(bits, kind, strict=True) for size in (each - d, d)]
        grid = np.indices([size + 1 for size in sizes]).reshape(len(sizes), -1)
        logos = math.prod(ways(size)[row] for size, row in zip(sizes, grid, strict=True))
        off = grid[::2] + grid[1::2]  # the report differs from the reference
        ones, beside = bits[0] - off[0] + off[1], off[2] + bits[3] - off[3]
        flips = grid[::2].sum(axis=0) + sum(kind) - grid[1::2].sum(axis=0)
        laws = (logos * table[each] for each in (ones + beside, distance - ones + beside, flips))
        parts.append((*laws, logos, off.T.astype(np.float64)))
    return tuple(parts)


def _apart(bits: Bits) -> list[Bits]:
    """Return the types of other columns: in how many bits of each part they differ from the reference."""
    return [(i, j, u, v) for i, j, u, v in product(*(range(size + 1) for size in bits))]


def _scores(near: Floats, far: Floats, share: Floats, epsilon: float) -> Floats:
    """Return |score| of each class relative to the pool, rounded; negative scores matter less."""
    value, size = gain(near, far, epsilon)
    return rounded((np.where(value < 0, -_NEGATIVE * value, value) + _TRACE * (size + share)) / share)


def _filled(depth: tuple[Floats, Floats, float] | Depth, score: Floats) -> Floats:
    """Return the part of the pool that slices take of classes with these scores: they fill it like water."""
    first, last = (np.clip(1 - score / each, 0.0, MOST) for each in depth[:2])
    return first + depth[2] * (last - first)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    """Scores of all types, in units, with their moments at the tilts `_TILTS` at which no type has E[e**(tX)] > 1."""

    kinds: Kinds
    scores: ReportScores
    unit: float
    tilts: Floats
    logs: Floats
    variances: Floats

    @classmethod
    def of(cls, kinds: Kinds, epsilon: float, tilts: Floats = _TILTS) -> _Sums:
        plain = kinds.scores(epsilon)
        unit = float(plain.value.max())
        scores = replace(plain, value=plain.value / unit, size=plain.size / unit)
        plus = np.expm1(np.multiply.outer(tilts, scores.value)) * scores.mass
        excess, grown = np.add.reduceat(plus, kinds.starts, axis=1), plus + scores.mass
        sums = np.add.reduceat(grown, kinds.starts, axis=1)
        squares = np.add.reduceat(grown * scores.value**2, kinds.starts, axis=1)
        means = np.add.reduceat(grown * scores.value, kinds.starts, axis=1) / np.maximum(sums, 1e-300)
        fit = (excess < -1e-12).all(axis=1)
        return cls(
            kinds=kinds,
            scores=scores,
            unit=unit,
            tilts=tilts[fit],
            logs=np.log1p(np.maximum(excess, _LEAST))[fit],
            variances=np.maximum(squares / np.maximum(sums, 1e-300) - means**2, 0.0)[fit],
        )

    def likely(self, counts: Floats, logs: Floats) -> Floats:
        """Estimate ln E[sum of scores]_+ for each tilt and type, if `logs` has ln E[e**(t sum)], (tilts, kinds)."""
        spread = self.tilts[:, None] * np.sqrt(counts * self.variances / 2)
        with np.errstate(divide="ignore"):
            each: Floats = logs + np.log(erfcx(spread) / (2 * self.tilts[:, None])) + math.log(self.unit)
        return each

    def part(self, kind: int) -> ReportScores:
        """Return the scores of type number `kind`."""
        starts = self.kinds.starts
        inside = slice(starts[kind], starts[kind + 1] if kind + 1 < starts.size else None)
        return ReportScores(
            value=self.scores.value[inside], size=self.scores.size[inside], mass=self.scores.mass[inside]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Slice:
    """One slice: `counts` columns of each type join it with probability `joined`; `outside`: in no slice so far."""

    sums: _Sums
    counts: Floats
    joined: Floats
    outside: Floats

    @classmethod
    def of(
        cls, reference: Reference, epsilon: float, before: tuple[float, Depth], after: tuple[float, Depth]
    ) -> _Slice:
        return cls(
            sums=_Sums.of(reference.kinds(epsilon, before[0], *after), epsilon),
            counts=reference.threshold / reference.weights,
            joined=reference.weights * (after[0] - before[0]),
            outside=1 - reference.weights * after[0],
        )

    def _hidden(self, logs: Floats, kind: int | slice = slice(None)) -> Floats:
        """Return ln of the mean of (`outside` e**`logs` + s `joined`)**count over 0 < s < 1, rounded up."""
        counts, joined, log = self.counts[kind] + 1, self.joined[kind], logs + np.log(self.outside[kind])
        more = np.log1p(joined * np.exp(-log))
        value: Floats = counts * (log + more) + np.log(-np.expm1(-counts * more)) - np.log(joined * counts)
        return value + 1e-11 + 32 * EPS * counts

    @cached_property
    def _best(self) -> int | None:
        """Number of the tilt with the best estimate."""
        sums = self.sums
        if not sums.tilts.size:
            return None
        return int(sums.likely(self.counts, self._hidden(sums.logs)).max(axis=1).argmin())

    @cached_property
    def _nodes(self) -> Nodes:
        sums, best = self.sums, self._best
        assert best is not None
        spread = math.sqrt(float((self.counts * sums.variances[best]).max()))
        return nodes_at(float(sums.tilts[best]), spread)

    @cached_property
    def _tops(self) -> Floats:
        """Upper bounds on ln E[e**(tX)] for all types, shape (kinds,)."""
        tops = []
        for kind in range(self.counts.size):
            excess, noise = self.sums.part(kind).excess(self._nodes.tilt)
            tops.append(math.log1p(max(excess + noise, 1e-300 - 1)) + 4 * EPS)
        return np.array(tops)

    @cached_property
    def coarse(self) -> Floats:
        """Upper bounds for all types, from |phi| at u = 0, shape (kinds,); infinite where none holds for all types."""
        if self._best is None or bool((self._tops > 0).any()):
            return np.full(self.counts.size, np.inf)
        weights, tail = kernel(self._nodes)
        whole = (float(weights.sum()) + tail) * self.sums.unit * (1 + 1e-9)
        return np.asarray(whole * np.exp(self._hidden(self._tops)))

    def close(self, kind: int) -> float:
        """Upper bound for one type, from |phi| at all nodes."""
        if not math.isfinite(self.coarse[kind]):
            return math.inf
        weights, tail = kernel(self._nodes)
        try:
            transform = ScoreTransform.of(self.sums.part(kind), self._nodes)
        except ArithmeticError:
            return float(self.coarse[kind])
        top = transform.log_mass + transform.slack
        logs = top + np.log(np.exp(transform.exponent.real) + transform.doubt)
        total = float(weights @ np.exp(self._hidden(logs, kind))) + tail * math.exp(self._hidden(np.array(top), kind))
        return total * self.sums.unit * (1 + 1e-9)


def alike(people: int, threshold: float, ends: tuple[float, ...] = _MANY) -> tuple[Floats, Floats]:
    """Return bins of 1 + B, each with its smallest number, and the weights for which a falling function is largest.

    B is any sum of `people` independent Bernoulli variables with mean at least `threshold`. Bins begin at `ends`
    standard deviations below the mean. Shapes (bins,).

    >>> numbers, weights = alike(4, 2.0)
    >>> numbers.tolist(), weights.round(4).tolist()  # P(B = 0) <= 1/16, P(B <= 1) <= 5/16
    ([1.0, 2.0, 3.0], [0.0625, 0.25, 0.6875])
    """
    threshold = min(threshold, float(people))
    spread = math.sqrt(threshold * max(1 - threshold / people, 0.0))
    lows = np.unique(np.maximum(np.floor(threshold - spread * np.array(ends)), 0.0))
    if threshold < _SINGLE:
        lows = np.arange(math.floor(threshold) + 1.0)
    # P(B < low) is at most that of a binomial number with this mean, if low <= threshold (Hoeffding).
    below = binomial.lower_tail(lows - 1, people, min(threshold / people, 1.0)) * (1 + 1e-9)
    below[0] = 0.0
    weights = np.diff(np.append(below, 1.0)) + 4 * EPS
    return 1 + lows, weights
