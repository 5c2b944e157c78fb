"""Explicit neighbouring datasets and the law of what an adversary learns from them: lower ends under composition.

A `Distinction` lists atoms: an event has probability `p` with the target at one value and `q` with the target at
the other. Merging events, or adding noise that does not depend on the target, is post-processing, so a
distinction may only understate. lambda = mu/nu; n people in all.

- all others at the target's first value a, A and B reports at a and b: base law "target at a", likelihood
  ratio 1 + (B (lambda - 1) - A (1 - 1/lambda))/n;
- all others at a third value, A and B reports at a and b, S = A + B, R = A - B: p, q proportional to
  W + (lambda - 1) R/2 and W - (lambda - 1) R/2, W = (lambda + 1) S/2 + (n - S)(k - 2) nu/(1 - 2 nu)
  (how the other reports divide does not depend on R, so that only their mean enters);
- k = 2, any composition: the count of ones by direct convolution.

The ratios are linear in the counts, so an event made of many counts needs only its mass and mean. Where
neighbouring counts S (or n - B) share a row, the larger binomial is completed with coins (or the smaller
thinned) to the same size for the whole row, which keeps the means in closed form.

Source: theory.md sections 1.1, 1.3 and 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle.laws.base import Divergence
from hushuffle.laws.loss_sum import LossLattice
from hushuffle.laws.noisy_order import NoisyOrder
from hushuffle.laws.symmetric import Binary, Kary, Local
from hushuffle.model import Witness
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.randomizers import Symmetric

_FINE: Final = 1 / 20
"""Width of a cell in standard deviations: loses at most 1/4800 of the variance of the loss."""

_ROW: Final = 1 / 16
"""Width of a row in standard deviations of the count that it groups, and four times that at large counts."""

_DIRECT: Final = 20_000
"""Windows up to this long are convolved directly."""

_SHARP: Final = 256.0
"""Cells whose mass is known less well than this many times `binomial.margin` are left out."""

_HAIR: Final = 1e-12
"""Ratios this close, in nats, are taken to be equal; counted as a relative error of the masses."""

_FAINT: Final = 1e-11
"""A relative error of likelihood ratios that hardly counts."""

_BEST: Final = 2_000
"""Up to so many people the composition that is worst in one round is tried as well."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Distinction:
    """Probabilities of the same events, `p` and `q`, shape (events,).

    Each is known up to the relative error `doubt`, and besides up to a factor within `common` of 1 that is the
    same for p and q.
    """

    witness: Witness
    p: Floats
    q: Floats
    doubt: float
    common: float = 0.0

    def swapped(self) -> Distinction:
        """Return the same datasets in the other order."""
        first, second = self.witness.target
        witness = Witness(family=self.witness.family, others=self.witness.others, target=(second, first))
        return Distinction(witness=witness, p=self.q, q=self.p, doubt=self.doubt, common=self.common)


def distinctions(law: Divergence, *, log_tail: float) -> tuple[Distinction, ...]:
    """Return datasets to try; events rarer than e**log_tail may be left out. Empty if none are known for this law.

    >>> import hushuffle as hs
    >>> from hushuffle.laws.divergence import divergence
    >>> one = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=1)
    >>> distinctions(divergence(one), log_tail=-40.0)[0].p.round(4).tolist()
    [0.2689, 0.7311]
    """
    found = _candidates(law.hidden if isinstance(law, NoisyOrder) else law, log_tail)
    return tuple(pair for pair in found if bool(np.any((pair.p > 0) & (pair.q > 0))))


def _candidates(law: Divergence, log_tail: float) -> tuple[Distinction, ...]:
    match law:
        case Local(law=report, n=n):
            return (_alone(report, n),)
        case Binary(law=report, n=n, dummies=0):
            ends = _all_at_first(report, n, log_tail)
            if n > _BEST:
                return (ends,)
            others = law.lower(law.guess())[1].others
            ones = others[1] if len(others) > 1 else 0
            return (ends, *_composition(report, n, ones, 0, log_tail))
        case Binary(law=report, n=n, dummies=dummies):
            return _composition(report, n, 0, dummies, log_tail)
        case Kary(law=report, n=n, dummies=0):
            return (_all_at_third(report, n, log_tail), _all_at_first(report, n, log_tail))
        case _:
            return ()


def inscribed(pair: Distinction, *, step: float) -> LossLattice:
    """Return a pair of laws on the lattice that `pair` dominates: chords of its error curve with slopes e**(step m).

    Events are taken by falling likelihood ratio and merged (the last one in part) until the ratio of the
    merged event is on the lattice; what stays below is lost in the ratio, not in the mean.

    >>> witness = Witness(family="alone", others=(0, 0), target=(0, 1))
    >>> pair = Distinction(witness=witness, p=np.array([0.6, 0.4]), q=np.array([0.4, 0.6]), doubt=0.0)
    >>> lattice = inscribed(pair, step=math.log(1.5))
    >>> lattice.mass.round(6).tolist(), lattice.first
    ([0.4, 0.0, 0.6], -1)
    """
    p, q = _by_ratio(pair, step / 16)
    ratios = np.log(p / q)
    masses: dict[int, float] = {}
    place, slope, gained, lost = 0, 1.0, 0.0, 0.0
    for each_p, each_q, ratio in zip(p.tolist(), q.tolist(), ratios.tolist(), strict=True):
        left_p, left_q = each_p, each_q
        while True:
            if lost == 0:
                # A ratio that rounding leaves just below a lattice point belongs to it.
                place = math.floor((ratio + _HAIR) / step)
                slope = math.exp(step * place)
                if ratio - step * place <= _HAIR:
                    masses[place] = masses.get(place, 0.0) + left_p
                    break
            excess, deficit = gained - slope * lost, slope * left_q - left_p
            if excess >= deficit:
                gained, lost = gained + left_p, lost + left_q
                break
            share = max(excess, 0.0) / deficit
            masses[place] = masses.get(place, 0.0) + gained + share * left_p
            left_p, left_q, gained, lost = (1 - share) * left_p, (1 - share) * left_q, 0.0, 0.0
    if lost > 0:
        masses[place] = masses.get(place, 0.0) + min(gained, slope * lost)
    first = min(masses)
    mass = np.zeros(max(masses) - first + 1)
    mass[np.array(list(masses)) - first] = list(masses.values())
    return LossLattice(step=step, first=first, mass=mass, doubt=pair.doubt + 4 * _HAIR, common=pair.common)


def _by_ratio(pair: Distinction, width: float) -> tuple[Floats, Floats]:
    """Return the events by falling ln(p/q), those within `width` of each other merged."""
    sound = (pair.p > 0) & (pair.q > 0)
    p, q = pair.p[sound], pair.q[sound]
    place = -np.floor(np.log(p / q) / width).astype(np.int64)
    place -= place.min()
    size = int(place.max()) + 1
    first, second = np.zeros(size), np.zeros(size)
    np.add.at(first, place, p)
    np.add.at(second, place, q)
    return first[second > 0], second[second > 0]


def _alone(report: Symmetric, n: int) -> Distinction:
    """Each report is seen with its sender: two values and everything else."""
    truth, lie, rest = float(report.truth), float(report.lie), (report.k - 2) * float(report.lie)
    others = (n - 1,) + (0,) * (report.k - 1)
    p, q = np.array([lie, truth, rest]), np.array([truth, lie, rest])
    keep = p > 0
    return Distinction(
        witness=Witness(family="any dataset", others=others, target=(1, 0)), p=p[keep], q=q[keep], doubt=8 * EPS
    )


def _composition(report: Symmetric, n: int, ones: int, dummies: int, log_tail: float) -> tuple[Distinction, ...]:
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
    return (Distinction(witness=witness, p=p[inner], q=q[inner], doubt=doubt),)


def _all_at_first(report: Symmetric, n: int, log_tail: float) -> Distinction:
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


def _all_at_third(report: Symmetric, n: int, log_tail: float) -> Distinction:
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


def _assemble(witness: Witness, mass: Floats, factors: tuple[Floats, Floats], *, slopes: Floats, n: int) -> Distinction:
    """Return the events (p, q) = mass * factors, the factors known up to `slopes`, if known well."""
    first, second = factors
    least = np.minimum(first, second)
    sound = (mass > 0) & (least > 0)
    error = np.where(sound, slopes / np.where(sound, least, 1.0), np.inf)
    allowed = max(8 * float(error[sound] @ mass[sound]), _FAINT)
    keep = sound & (error <= allowed)
    return Distinction(
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
