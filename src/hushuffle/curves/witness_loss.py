"""k-ary randomized response: explicit neighbouring datasets and the law of what tells them apart.

lambda = mu/nu; n people in all.

- all others at the target's first value a, A and B reports at a and b: base law "target at a", likelihood
  ratio 1 + (B (lambda - 1) - A (1 - 1/lambda))/n;
- all others at a third value, A and B reports at a and b, S = A + B, R = A - B: p, q proportional to
  W + (lambda - 1) R/2 and W - (lambda - 1) R/2, W = (lambda + 1) S/2 + (n - S)(k - 2) nu/(1 - 2 nu)
  (how the other reports divide does not depend on R, so that only their mean enters);
- k = 2, any composition: the count of ones by direct convolution.

The ratios are linear in the counts, so an event made of many counts needs only its mass and mean. Where
neighbouring counts S (or n - B) share a row, the larger binomial is completed with coins (or the smaller
thinned) to the same size for the whole row, which keeps the means in closed form.

Source: docs/theory/composition.md, Lemma 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Witness
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats

_FINE: Final = 1 / 20
"""Width of a cell in standard deviations: loses at most 1/4800 of the variance of the loss."""

_ROW: Final = 1 / 16
"""Width of a row in standard deviations of the count that it groups, and four times that at large counts."""

_DIRECT: Final = 20_000
"""Windows up to this long are convolved directly."""

_SHARP: Final = 256.0
"""Cells whose mass is known less well than this many times `binomial.margin` are left out."""

_FAINT: Final = 1e-11
"""A relative error of likelihood ratios that hardly counts."""


def alone(report: Symmetric, n: int) -> DatasetPair:
    """Each report is seen with its sender: two values and everything else."""
    truth, lie, rest = float(report.truth), float(report.lie), (report.k - 2) * float(report.lie)
    others = (n - 1,) + (0,) * (report.k - 1)
    p, q = np.array([lie, truth, rest]), np.array([truth, lie, rest])
    keep = p > 0
    return DatasetPair(
        witness=Witness(family="any dataset", others=others, target=(1, 0)), p=p[keep], q=q[keep], doubt=8 * EPS
    )


def composition(report: Symmetric, n: int, ones: int, dummies: int, log_tail: float) -> tuple[DatasetPair, ...]:
    """Two values, `ones` ones among the others: nothing if direct convolution would take too long."""
    law = np.ones(1)
    groups = ((ones, float(report.truth)), (n - 1 - ones, float(report.lie)), (dummies, 0.5))
    for trials, chance in groups:
        low, high = binomial.window(trials, chance, log_tail)
        if high - low > _DIRECT:
            return ()
        law = np.convolve(law, binomial.pmf(np.arange(low, high + 1, dtype=np.float64), trials, chance))
    truth, lie = float(report.truth), float(report.lie)
    doubt = 3 * binomial.margin(n + dummies) + EPS * (16 + 3 * law.size)
    witness = Witness(family="one composition", others=(n - 1 - ones, ones), target=(1, 0))
    p, q = np.convolve(law, [lie, truth]), np.convolve(law, [truth, lie])
    # At the ends of the window the two laws lack different terms: their ratio would be wrong there.
    inner = slice(None) if law.size == n + dummies else slice(1, -1)
    return (DatasetPair(witness=witness, p=p[inner], q=q[inner], doubt=doubt),)


def all_at_first(report: Symmetric, n: int, log_tail: float) -> DatasetPair:
    """All others at 0: p with the target at 1, q at 0."""
    k, truth, lie = report.k, float(report.truth), float(report.lie)
    rows = _Cells.of(np.array([float(n)]), lie, log_tail=log_tail, width=_FINE if k == 2 else _row_width(n * lie))
    mean, last = rows.mean[0], rows.last[0]
    # Those who did not report 1, thinned to the same number for the whole row.
    firsts = _Cells.of(n - last, min(truth / (1 - lie), 1.0), log_tail=log_tail, width=_FINE)
    zeros = firsts.mean + ((last - mean) * min(truth / (1 - lie), 1.0))[:, None]
    ratio = truth / lie
    likelihood = 1 + (mean[:, None] * (ratio - 1) - zeros * (1 - 1 / ratio)) / n
    slopes = ((ratio - 1) * rows.blur[0][:, None] + (1 - 1 / ratio) * firsts.blur) / n
    witness = Witness(family="all others at the target's value", others=(n - 1,) + (0,) * (report.k - 1), target=(1, 0))
    mass = rows.mass[0][:, None] * firsts.mass
    return _assemble(witness, mass, (likelihood, np.ones_like(likelihood)), slopes=slopes, n=n)


def all_at_third(report: Symmetric, n: int, log_tail: float) -> DatasetPair:
    """All others at 2: p with the target at 0, q at 1."""
    k, truth, lie = report.k, float(report.truth), float(report.lie)
    rows = _Cells.of(np.array([float(n)]), 2 * lie, log_tail=log_tail, width=_row_width(2 * n * lie))
    mean, last = rows.mean[0], rows.last[0]
    # The reports at 0 or 1, completed with coins to the same number for the whole row.
    coins = _Cells.of(last, 0.5, log_tail=log_tail, width=_FINE)
    ratio, real = truth / lie, mean / np.maximum(last, 1.0)
    weight = ((ratio + 1) / 2 * mean + (n - mean) * (k - 2) * lie / (1 - 2 * lie))[:, None] / n
    gap = (ratio - 1) / 2 * real[:, None] * (2 * coins.mean - last[:, None]) / n
    slopes = (ratio * (1 + rows.blur[0])[:, None] - ratio + (ratio - 1) * real[:, None] * coins.blur) / n
    witness = Witness(family="all others at a third value", others=(0, 0, n - 1) + (0,) * (k - 3), target=(0, 1))
    return _assemble(witness, rows.mass[0][:, None] * coins.mass, (weight + gap, weight - gap), slopes=slopes, n=n)


def _row_width(count: float) -> float:
    """Return the width, in standard deviations, of rows of a count of this size: coins cost width/(2 sqrt(count))."""
    return max(_ROW, min(4 * _ROW, 2e-4 * math.sqrt(count)))


def _assemble(witness: Witness, mass: Floats, factors: tuple[Floats, Floats], *, slopes: Floats, n: int) -> DatasetPair:
    """Return the events (p, q) = mass * factors, the factors known up to `slopes`, if known well."""
    first, second = factors
    least = np.minimum(first, second)
    sound = (mass > 0) & (least > 0)
    error = np.where(sound, slopes / np.where(sound, least, 1.0), np.inf)
    allowed = max(8 * float(error[sound] @ mass[sound]), _FAINT)
    keep = sound & (error <= allowed)
    return DatasetPair(
        witness=witness,
        p=(mass * first)[keep],
        q=(mass * second)[keep],
        doubt=2 * allowed + 64 * EPS,
        common=3 * _SHARP * binomial.margin(n),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Cells:
    """Bin(trials[i], chance) in cells ending at `last`, all of shape (rows, cells): mass, mean and its error `blur`.

    Cells whose mass is not known up to _SHARP margins are given mass 0.
    """

    last: Floats
    mass: Floats
    mean: Floats
    blur: Floats

    @classmethod
    def of(cls, trials: Floats, chance: float, *, log_tail: float, width: float) -> _Cells:
        mean = (trials * chance)[:, None]
        spread = np.sqrt(np.maximum(mean * (1 - chance), 0.0))
        reach = -log_tail / 3 + np.sqrt((log_tail / 3) ** 2 - 2 * log_tail * spread**2)
        low, high = np.maximum(np.floor(mean - reach), 0.0), np.minimum(np.ceil(mean + reach), trials[:, None])
        step = max(1.0, float(np.floor(width * spread.max())))
        ends = low + step * (1 + np.arange(int(((high - low).max() + 1) // step) + 1)) - 1
        last = np.minimum(ends, trials[:, None])
        first = np.minimum(ends - step, trials[:, None]) + 1
        count, noise = trials[:, None], binomial.margin(float(trials.max(initial=1.0)))
        if step == 1:
            mass = np.where(first > last, 0.0, binomial.pmf(last, count, chance))
            return cls(last=last, mass=mass, mean=last, blur=8 * EPS * last)
        left = last < mean
        below = binomial.lower_tail(last, count, chance), binomial.lower_tail(first - 1, count, chance)
        above = binomial.upper_tail(first, count, chance), binomial.upper_tail(last + 1, count, chance)
        mass = np.where(left, below[0] - below[1], above[0] - above[1])
        doubt = noise * np.where(left, below[0] + below[1], above[0] + above[1])
        mass = np.where((first <= last) & (doubt <= _SHARP * noise * mass), mass, 0.0)
        safe = np.where(mass > 0, mass, 1.0)
        # E[X - mean; X <= x] = -(trials - x) chance P(X = x)
        lever = [(count - x) * chance * binomial.pmf(x, count, chance) for x in (first - 1, last)]
        shift = (lever[0] - lever[1]) / safe
        blur = (noise * (lever[0] + lever[1]) + 2 * doubt * np.abs(shift)) / safe + 8 * EPS * mean
        return cls(last=last, mass=mass, mean=np.clip(mean + shift, first, last), blur=blur)
