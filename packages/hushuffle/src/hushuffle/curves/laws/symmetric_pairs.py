"""k-ary randomized response: explicit pairs of neighbouring datasets, one class for each family of pairs.

Each class computes the hockey-stick divergence of a pair, rounded downwards, and the output probabilities of its two
datasets (for composition). There are n people; the target's value is a in one dataset and b in the other.
lambda = mu/nu.

All others at a third value c, with S reports at a or b, R = (reports at a) - (reports at b), C at c:

    (1/n) E [(lambda - 1)(1 + e**eps)/2 R - (e**eps - 1)((lambda - 1) S/2 + n - C (1 - 1/lambda))]_+ ;

p and q are proportional to W + (lambda - 1) R/2 and W - (lambda - 1) R/2, W = (lambda + 1) S/2 + (n - S)(k - 2) nu/(1 -
2 nu) (how the other reports divide does not depend on R, so that only their mean enters).

All others at a, with A and B reports at a and b and ell = 1 + (B (lambda - 1) - A (1 - 1/lambda))/n
the likelihood ratio of "target at b" to "target at a":

    max(E_a [ell - e**eps]_+, E_a [1 - e**eps ell]_+).

Bins are rounded downwards: by Jensen's inequality for C (the value is convex in C), and to the worse boundary for S
and B. The ratios are linear in the counts, so an event that merges many counts needs only its probability and mean. If
neighbouring counts S (or n - B) share a row, Bernoulli trials add reports (or thin them out) until the whole row has
the same number, which keeps the means in closed form.

Source: docs/theory/datasets.md, Corollaries 2 and 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.pairs.exact_loss import exact_pairs
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Witness
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, LOG_TAIL, CountRows, Floats, beside_traces, fair_signs, positive_mean

AT_THIRD: Final = "all others at a third value"
AT_FIRST: Final = "all others at the target's value"
"""Family names of the witnesses: the value that all other people have."""

_FEW: Final = 400
"""Largest number of people for which every count at c is a bin of its own."""

_TRACE: Final = 1e-45
"""Smallest probability of a cell; less probable cells are dropped, which only lowers a lower bound."""

FINE: Final = 1 / 20
"""Width of a cell in standard deviations: decreases the variance of the loss by at most 1/4800."""

_ROW: Final = 1 / 20
"""Width of a row in standard deviations of its count; up to four times this width at large counts."""

_DIRECT: Final = 20_000
"""Largest length of windows that are convolved directly."""

_TABLE: Final = 1 << 20
"""Largest number of binomial probabilities that are summed one by one."""

_DEEP: Final = -250.0
"""Logarithm of a tail so rare that floats cannot hold the first probability in it."""

_SPARE: Final = 6.0
"""Nats by which the tail probability outside windows is lowered, so that omitted terms are negligible."""

_SHARP: Final = 256.0
"""Largest relative error of a cell's probability, in units of `binomial.margin`; other cells are omitted."""

_FAINT: Final = 1e-11
"""Negligible relative error of likelihood ratios."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AllAtThird:
    """Datasets in which all others have a third value; arrays have one element per row of S and bin of C."""

    n: int
    truth: float
    lie: float
    rise: float  # lambda - 1
    signs: Floats
    weight: Floats
    bias: Floats

    @classmethod
    def of(
        cls, *, n: int, truth: float, lie: float, theta: float | None = None, log_tail: float = LOG_TAIL
    ) -> AllAtThird:
        """Tabulates the joint distribution of S and C for n people.

        >>> round(AllAtThird.of(n=1, truth=0.5, lie=0.25).lower(0.0), 9)
        0.25
        """
        gap = truth - lie if theta is None else theta
        rise, fall = gap / lie, gap / truth
        rows = CountRows.of(n, 2 * lie, log_tail=log_tail)
        mass, mean = _bins(n - rows.last, min(truth / (1 - 2 * lie), 1.0), _cuts(n, truth, lie))
        weight = rows.at_least[:, None] * mass
        bias = rise / 2 * rows.last[:, None] + n - mean * fall
        keep = weight > min(_TRACE, math.exp(log_tail))
        signs = np.broadcast_to(rows.first[:, None], weight.shape)
        return cls(n=n, truth=truth, lie=lie, rise=rise, signs=signs[keep], weight=weight[keep], bias=bias[keep])

    def without_traces(self, delta: float) -> AllAtThird:
        """Without the least probable cells, which lowers the bound by at most delta/10**6."""
        keep = beside_traces(self.weight, 1e-6 * delta / (1 + self.rise))
        return replace(self, signs=self.signs[keep], weight=self.weight[keep], bias=self.bias[keep])

    def lower(self, epsilon: float) -> float:
        slope = self.rise * (1 + float(np.exp(epsilon))) / 2
        threshold = float(np.expm1(epsilon)) * self.bias
        most = slope * self.signs
        value = fair_signs(self.signs, slope, threshold, (most - threshold, most + threshold))[0]
        total = float(np.sum(self.weight * value)) / self.n
        return total * (1 - EPS * (64 + self.weight.size))


@dataclass(frozen=True, kw_only=True, eq=False)
class AllAtFirst:
    """Datasets in which all others have the target's first value; `rows` is the distribution of B."""

    n: int
    truth: float
    lie: float
    theta: float
    rows: CountRows

    @classmethod
    def of(
        cls, *, n: int, truth: float, lie: float, theta: float | None = None, log_tail: float = LOG_TAIL
    ) -> AllAtFirst:
        """Tabulates the distribution of B for n people.

        >>> round(AllAtFirst.of(n=1, truth=0.5, lie=0.25).lower(0.0), 9)
        0.25
        """
        gap = truth - lie if theta is None else theta
        return cls(n=n, truth=truth, lie=lie, theta=gap, rows=CountRows.of(n, lie, log_tail=log_tail))

    def lower(self, epsilon: float) -> float:
        """Lower bound on delta, the larger one over the two orders of the datasets."""
        return max(self.directions(epsilon))

    def directions(self, epsilon: float) -> tuple[float, float]:
        """Lower bounds on the divergence of the dataset with the target's first value, and in reversed order."""
        growth, excess = float(np.exp(epsilon)), float(np.expm1(epsilon))
        chance, slope = min(self.truth / (1 - self.lie), 1.0), self.theta / self.truth / self.n
        lift, first, last = self.theta / self.lie / self.n, self.rows.first, self.rows.last
        toward = positive_mean(self.n - first, chance, slope=-slope, offset=first * lift - excess)
        away = positive_mean(self.n - last, chance, slope=growth * slope, offset=-excess - growth * lift * last)
        weight = self.rows.at_least
        sums = (float(np.sum(weight * end)) * (1 - EPS * (64 + weight.size)) for end in (away, toward))
        return next(sums), next(sums)


def at_third(law: Symmetric, n: int, log_tail: float) -> DatasetPair:
    """The pair: p if the target's value is 0, and q if it is 1; all others have value 2."""
    k, truth, lie = law.k, float(law.truth), float(law.lie)
    rows = BinomialCells.of(np.array([float(n)]), 2 * lie, log_tail=log_tail, width=row_width(2 * n * lie))
    mean, last = rows.mean[0], rows.last[0]
    # Uniform random reports complete the reports at 0 or 1 to the same number for the whole row.
    coins = BinomialCells.of(last, 0.5, log_tail=log_tail, width=FINE)
    ratio, real = truth / lie, mean / np.maximum(last, 1.0)
    weight = ((ratio + 1) / 2 * mean + (n - mean) * (k - 2) * lie / (1 - 2 * lie))[:, None] / n
    gap = (ratio - 1) / 2 * real[:, None] * (2 * coins.mean - last[:, None]) / n
    slopes = (ratio * (1 + rows.blur[0])[:, None] - ratio + (ratio - 1) * real[:, None] * coins.blur) / n
    witness = Witness(family=AT_THIRD, others=(0, 0, n - 1) + (0,) * (k - 3), target=(0, 1))
    return assemble(witness, rows.mass[0][:, None] * coins.mass, (weight + gap, weight - gap), slopes=slopes, n=n)


def at_first(law: Symmetric, n: int, log_tail: float) -> DatasetPair:
    """The pair: p if the target's value is 1, and q if it is 0; all others have value 0."""
    k, truth, lie = law.k, float(law.truth), float(law.lie)
    rows = BinomialCells.of(np.array([float(n)]), lie, log_tail=log_tail, width=FINE if k == 2 else row_width(n * lie))
    mean, last = rows.mean[0], rows.last[0]
    # Reports other than 1, thinned out to the same number for the whole row.
    firsts = BinomialCells.of(n - last, min(truth / (1 - lie), 1.0), log_tail=log_tail, width=FINE)
    zeros = firsts.mean + ((last - mean) * min(truth / (1 - lie), 1.0))[:, None]
    ratio = truth / lie
    likelihood = 1 + (mean[:, None] * (ratio - 1) - zeros * (1 - 1 / ratio)) / n
    slopes = ((ratio - 1) * rows.blur[0][:, None] + (1 - 1 / ratio) * firsts.blur) / n
    witness = Witness(family=AT_FIRST, others=(n - 1,) + (0,) * (k - 1), target=(1, 0))
    mass = rows.mass[0][:, None] * firsts.mass
    return assemble(witness, mass, (likelihood, np.ones_like(likelihood)), slopes=slopes, n=n)


def all_alike(law: Symmetric, n: int, dummies: int, log_tail: float) -> tuple[DatasetPair, ...]:
    """Pairs in which all others have a third value, or the target's first; dummies are uniform."""
    k, truth, lie = law.k, float(law.truth), float(law.lie)
    rows = [np.array([truth, lie, lie, (k - 3) * lie]), np.array([lie, truth, lie, (k - 3) * lie])]
    rows.append(np.array([lie, lie, truth, (k - 3) * lie]))
    uniform = np.array([1.0, 1.0, 1.0, k - 3.0]) / k
    if k == 2:
        rows, uniform = [row[:2] for row in rows[:2]], uniform[:2]
    pairs: list[DatasetPair] = []
    for held in (2, 0) if k > 2 else (0,):
        name = AT_THIRD if held else AT_FIRST
        others = (0,) * held + (n - 1,) + (0,) * (k - 1 - held)
        witness = Witness(family=name, others=others, target=(0, 1))
        pairs += exact_pairs(witness, (rows[0], rows[1]), ((n - 1, rows[held]), (dummies, uniform)), log_tail=log_tail)
    return tuple(pairs)


def composition(report: Symmetric, n: int, ones: int, dummies: int, log_tail: float) -> tuple[DatasetPair, ...]:
    """The pair for k = 2 if `ones` others have value 1; none if the convolution would take too long."""
    groups = ((ones, float(report.truth)), (n - 1 - ones, float(report.lie)), (dummies, 0.5))
    windows = (binomial.window(*group, log_tail - _SPARE) for group in groups)
    if any(high - low > _DIRECT for low, high in windows):
        return ()
    law, missing = binomial.window_sum(groups, log_tail - _SPARE)
    truth, lie = float(report.truth), float(report.lie)
    doubt = 3 * binomial.margin(n + dummies) + EPS * (16 + 3 * law.size)
    witness = Witness(family="one composition", others=(n - 1 - ones, ones), target=(1, 0))
    p, q = np.convolve(law, [lie, truth]), np.convolve(law, [truth, lie])
    return (DatasetPair(witness=witness, p=p, q=q, doubt=doubt, p_error=missing, q_error=missing),)


def _cuts(n: int, truth: float, lie: float) -> Floats:
    """Boundaries of bins of C, in standard deviations: wider bins for a smaller expected epsilon."""
    size = 8 * (truth - lie) / np.sqrt(2 * lie * n + 1)
    spacing = min(3.0, max(0.35, 0.07 / size))
    return np.concatenate([[-14.0, -11.0, -9.0, -7.5], np.arange(-6.5, 6.6, spacing), [9.0]])


def _bins(trials: Floats, chance: float, deviations: Floats) -> tuple[Floats, Floats]:
    """Probability and mean of Bin(trials, chance) in each bin, both rounded down, shape (rows, bins)."""
    mean = (trials * chance)[:, None]
    if float(trials.max()) <= _FEW:
        inner = np.broadcast_to(np.arange(trials.max()), (trials.size, int(trials.max())))
    else:
        spread = np.sqrt(np.maximum(trials * chance * (1 - chance), 0.0))[:, None]
        inner = np.floor(mean + deviations * spread)
    inner = np.clip(inner, -1.0, trials[:, None])
    cuts = np.hstack([np.full_like(mean, -1.0), inner, trials[:, None]])
    below = binomial.lower_tail(cuts, trials[:, None], chance)
    # E[Bin - mean; Bin <= x] = -(trials - x) chance P(Bin = x)
    lever = np.where(cuts < 0, 0.0, (trials[:, None] - cuts) * chance * binomial.pmf(cuts, trials[:, None], chance))
    noise = binomial.margin(float(np.max(trials, initial=1.0)))
    mass = np.diff(below, axis=1)
    doubt = noise * (below[:, 1:] + below[:, :-1])
    safe = np.where(mass > 4 * doubt, mass, 1.0)
    shift = (lever[:, :-1] - lever[:, 1:] - noise * (lever[:, :-1] + lever[:, 1:])) / safe
    shift = shift - np.abs(shift) * doubt / safe
    point = np.clip(mean + shift - 8 * EPS * mean, np.maximum(cuts[:, :-1] + 1, 0.0), cuts[:, 1:].clip(min=0.0))
    return np.where(mass > 4 * doubt, mass - doubt, 0.0), point


def row_width(count: float) -> float:
    """Width of the rows of a count, in standard deviations; merging decreases the loss only slightly."""
    return max(_ROW, min(4 * _ROW, 2e-4 * math.sqrt(count)))


def assemble(witness: Witness, mass: Floats, factors: tuple[Floats, Floats], *, slopes: Floats, n: int) -> DatasetPair:
    """The pair p, q = `mass` * `factors`, without inaccurate events; `slopes` bounds the factors' errors."""
    first, second = factors
    least = np.minimum(first, second)
    sound = (mass > 0) & (least > 0)
    error = np.divide(slopes, least, out=np.zeros(mass.shape), where=sound)
    allowed = max(8 * float((error * mass).sum()), _FAINT)
    keep = np.flatnonzero(sound & (error <= allowed))
    return DatasetPair(
        witness=witness,
        p=(mass * first).ravel()[keep],
        q=(mass * second).ravel()[keep],
        doubt=2 * allowed + 64 * EPS,
        common=3 * _SHARP * binomial.margin(n),
        mirrored=witness.family == AT_THIRD,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class BinomialCells:
    """Bin(trials[i], chance) in cells of neighbouring counts; arrays have shape (rows, cells).

    `last` is the largest count of a cell, `mass` its probability, `mean` its conditional mean, and `blur` the error of
    the mean. A cell has mass 0 if the relative error of its probability exceeds `_SHARP` margins.
    """

    last: Floats
    mass: Floats
    mean: Floats
    blur: Floats

    @classmethod
    def of(cls, trials: Floats, chance: float, *, log_tail: float, width: float) -> BinomialCells:
        mean = (trials * chance)[:, None]
        spread = np.sqrt(np.maximum(mean * (1 - chance), 0.0))
        reach = -log_tail / 3 + np.sqrt((log_tail / 3) ** 2 - 2 * log_tail * spread**2)
        low, high = np.maximum(np.floor(mean - reach), 0.0), np.minimum(np.ceil(mean + reach), trials[:, None])
        step = max(1.0, float(np.floor(width * spread.max())))
        ends = low + step * (1 + np.arange(int(((high - low).max() + 1) // step) + 1)) - 1
        last = np.minimum(ends, trials[:, None])
        count, noise = trials[:, None], binomial.margin(float(trials.max(initial=1.0)))
        if 0 < chance < 1 and log_tail > _DEEP and last.size * step <= _TABLE:
            each = binomial.runs(low[:, 0], last.shape[1] * int(step), trials, chance)
            each = each.reshape(*last.shape, int(step))
            mass = each.sum(axis=2)
            shift = np.einsum("rcs,s->rc", each, np.arange(step)) / np.where(mass > 0, mass, 1.0)
            doubt = 2 * (step - 1) * (noise + 4 * EPS * last.shape[1] * step)
            mean = np.minimum(ends - step + 1 + shift, last)
            return cls(last=last, mass=mass, mean=mean, blur=doubt + 8 * EPS * mean)
        first = np.minimum(ends - step, trials[:, None]) + 1
        if step == 1:
            mass = np.where(first > last, 0.0, binomial.pmf(last, count, chance))
            return cls(last=last, mass=mass, mean=last, blur=8 * EPS * last)
        cuts = np.concatenate([low - 1, last], axis=1)
        mass, tails = binomial.between(cuts, count, chance)
        doubt = noise * tails
        mass = np.where((first <= last) & (doubt <= _SHARP * noise * mass), mass, 0.0)
        safe = np.where(mass > 0, mass, 1.0)
        # E[X - mean; X <= x] = -(trials - x) chance P(X = x)
        lever = (count - cuts) * chance * binomial.pmf(cuts, count, chance)
        shift = (lever[:, :-1] - lever[:, 1:]) / safe
        blur = (noise * (lever[:, :-1] + lever[:, 1:]) + 2 * doubt * np.abs(shift)) / safe + 8 * EPS * mean
        return cls(last=last, mass=mass, mean=np.clip(mean + shift, first, last), blur=blur)
