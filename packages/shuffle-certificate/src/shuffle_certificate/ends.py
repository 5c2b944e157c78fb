"""Bounds on delta at one epsilon, in ball arithmetic: upper bounds for all datasets, lower bounds for one dataset.

A distribution is a list of rationals, one for each possible report. `growth` is e**epsilon, a ball.

Source: docs/theory/blanket.md, Theorem 1; docs/theory/pool.md, Theorem 1, Lemma 2 and Corollary 5;
docs/theory/index.md, Lemma 3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from flint import acb, acb_poly, arb, arb_poly, fmpq

from .sums import Grid, Scores, Transform, exceeds, least, positive_part

Law = Sequence[Fraction]
Groups = Sequence[tuple[int, Fraction]]

FAINT = 1e-40
"""Counts with a smaller probability are omitted."""

_ORDER = 10
"""Number of terms in the expansion of 1/N around the mean of N; even."""

_FEW = 500
"""If the expected number of blanket reports is at most this, each count is evaluated separately."""

_BINS = 1024
"""Largest number of bins of numbers of blanket reports, if people have different randomizers."""


def ball(number: Fraction | int) -> Any:
    """Return the ball of a rational number."""
    return arb(fmpq(number.numerator, number.denominator))


def log(number: Fraction) -> Any:
    """Return the ball of the logarithm of a rational number."""
    return ball(number).log()


def masses_of(trials: int, chance: Fraction, faint: float = FAINT) -> tuple[int, list[Any]]:
    """Return the first count of Bin(trials, chance) with probability `faint`, and the probabilities from it on."""
    if chance in {0, 1}:
        return (trials if chance else 0), [arb(1)]
    p, q = ball(chance), ball(1 - chance)
    mode = min(trials, int((trials + 1) * chance))
    up, down = [arb.bin(arb(trials), mode) * p**mode * q ** (trials - mode)], list[Any]()
    last = up[0]
    for u in range(mode, trials):
        last = last * p * (trials - u) / (q * (u + 1))
        if float(last) < faint:
            break
        up.append(last)
    last = up[0]
    for u in range(mode, 0, -1):
        last = last * q * u / (p * (trials - u + 1))
        if float(last) < faint:
            break
        down.append(last)
    return mode - len(down), down[::-1] + up


def gains(first: Law, second: Law, growth: Any) -> list[Any]:
    """Return Q_a - e**epsilon Q_b for each report, where Q_a and Q_b are the distributions `first` and `second`."""
    return [ball(a) - growth * ball(b) for a, b in zip(first, second, strict=True)]


def alone(first: Law, second: Law, growth: Any) -> Any:
    """Return the divergence between two report distributions, for a report that is released with its sender."""
    return sum((_plus(gain) for gain in gains(first, second, growth)), arb(0))


def _plus(number: Any) -> Any:
    return arb.max(number, arb(0))


def tilts(scores: Scores) -> tuple[float, float]:
    """Return an interval that contains the best tilt t."""
    size = max(abs(float(x)) for x in scores.x) or 1.0
    spread = math.sqrt(scores.variance(0.0)) or size
    return 1e-8 / spread, 600.0 / min(size, spread * 600)


def blanket_above(
    pair: tuple[Law, Law], common: Law, growth: Any, *, people: int, dummies: int, fineness: float, groups: Groups = ()
) -> Any:
    """Return a ball with a number >= delta for all datasets; `common` is at most every value's report distribution.

    `people` is the number of other people. Dummies are drawn from `common`, divided by its sum. `groups` are further
    people, who draw from the same distribution with a probability of their own.
    """
    weight = sum(common, Fraction(0))
    gain = gains(*pair, growth)
    inside = [y for y, part in enumerate(common) if part]
    certain = sum((_plus(gain[y]) for y, part in enumerate(common) if not part), arb(0))
    if not weight:
        return certain
    scores = Scores([gain[y] * ball(weight / common[y]) for y in inside], [ball(common[y] / weight) for y in inside])
    if all(score <= 0 for score in scores.x):
        return certain
    mixed = _Blanket(people=people, dummies=dummies, weight=weight, groups=groups)
    reports = 1 + dummies + people * float(weight) + math.fsum(count * float(part) for count, part in groups)
    low, high = tilts(scores)
    t = least(lambda t: mixed.log_mean(scores, t) - 2 * math.log(t), low / math.sqrt(reports), high)
    spread = math.sqrt(reports * scores.variance(t))
    grid = Grid.of(t, mixed.log_mean(scores, t), spread, fineness)
    transform = Transform(scores, grid.t, grid.h)
    at_start = mixed.mean(Transform(scores, grid.t, grid.h).here()).real
    rare = mixed.left_out * max((abs(x) for x in scores.x), key=float)
    return positive_part(lambda _: mixed.mean(transform.here()), at_start, grid) + certain + rare


class _Blanket:
    """E (1/N) f**N, N = 1 + dummies + Bin(people, weight), with a polynomial that is at least 1/N in place of 1/N.

    With x = (N - c)/c and even m, 1/(c (1 + x)) <= (sum over j < m of (-x)**j + x**m c/(1 + dummies))/c. Its mean is a
    sum of factorial moments. Without dummies it is E f**K/(n weight), K = Bin(n, weight), where K = 0 is an empty sum.
    """

    def __init__(self, *, people: int, dummies: int, weight: Fraction, groups: Groups = ()) -> None:
        self.people, self.dummies, self.weight, self.groups = people, dummies, ball(weight), groups
        self.about = float(weight)
        self.left_out = arb(0)
        self._few: Any = None
        if groups or (dummies and people * self.about <= _FEW):
            self._first, counts = 0, arb_poly([1])
            for count, part in ((people, weight), *groups):
                first, masses = masses_of(count, part)
                self._first, counts = self._first + first, counts * arb_poly(masses)
                self.left_out += arb(FAINT) * (count + 1)
            certain, listed = self._first + 1 + dummies, counts.coeffs()
            self._width = width = -(
                -len(listed) // _BINS
            )  # a bin counts as its smallest number: more reports hide more
            starts = range(0, len(listed), width)
            self._few = acb_poly([acb(sum(listed[at : at + width], arb(0)) / (certain + at)) for at in starts])
        elif dummies:
            self._factors = self._weights(Fraction(round(1 + dummies + people * weight)))

    def _weights(self, centre: Fraction) -> list[Any]:
        """Return the polynomial in M = N - 1 - dummies, by falling factorials, times falling factorials of people."""
        shift = (1 + self.dummies - centre) / centre
        poly, power = [Fraction(0)], [Fraction(1)]
        for j in range(_ORDER + 1):
            factor = (Fraction(-1) ** j if j < _ORDER else centre / (1 + self.dummies)) / centre
            poly = [a + factor * b for a, b in _padded(poly, power)]
            power = [a + b for a, b in _padded([shift * c for c in power], [Fraction(0), *(c / centre for c in power)])]
        falling = list[Fraction]()
        for j in range(len(poly)):  # divide by M - j repeatedly: the remainders are the coefficients
            rest = Fraction(0)
            quotient = list[Fraction]()
            for c in reversed(poly):
                rest = c + rest * j
                quotient.append(rest)
            falling.append(quotient[-1])
            poly = quotient[-2::-1]
        weights, each = list[Any](), Fraction(1)
        for j, c in enumerate(falling):
            weights.append(ball(c * each))
            each *= max(self.people - j, 0)
        return weights

    def mean(self, f: Any) -> Any:
        """Return E (1/N) f**N, or a larger number; f is the scores' transform at a node."""
        if not self.dummies and self._few is None:
            n = self.people + 1
            return (1 - self.weight + self.weight * f) ** n / (n * self.weight)
        if self._few is not None:
            return self._few(f**self._width) * f ** (self._first + 1 + self.dummies)
        base, step = 1 - self.weight + self.weight * f, self.weight * f
        total, most = acb(0), min(_ORDER, self.people)
        grown = base ** (self.people - most)
        powers = [acb(1)]
        for _ in range(most):
            powers.append(powers[-1] * base)
        rise = acb(1)
        for j in range(most + 1):
            total += self._factors[j] * rise * powers[most - j] * grown
            rise *= step
        return total * f ** (1 + self.dummies)

    def log_mean(self, scores: Scores, t: float) -> float:
        """Return approximately ln E (1/N) f**N, where f is the scores' transform at the tilt t."""
        each = scores.log_mean(t)
        if each > 500:
            return math.inf
        apart = bool(self.dummies or self.groups)
        crowd = [(self.people + (not apart), self.about), *((count, float(part)) for count, part in self.groups)]
        grown = math.fsum(count * math.log1p(part * math.expm1(each)) for count, part in crowd)
        reports = math.fsum(count * part for count, part in crowd)
        return grown + (1 + self.dummies) * each * apart - math.log(reports + apart + self.dummies)


def _padded(first: list[Fraction], second: list[Fraction]) -> Iterator[tuple[Fraction, Fraction]]:
    return itertools.zip_longest(first, second, fillvalue=Fraction(0))


def pair_below(
    pair: tuple[Law, Law], others: Sequence[tuple[int, Law]], growth: Any, *, fineness: float, lift: float = 0.0
) -> Any:
    """Return a ball with a number <= delta for this pair of values and given numbers of other people by distribution.

    The result is that of a test. The test accepts if some report cannot be of another person, or if the sum of
    (Q_a - e**epsilon Q_b)/(mean distribution of the other people), plus a normal number of standard deviation tau, is
    positive. If other people's values differ, a shift of the sum may improve the test: `lift` times its standard
    deviation, divided by the root of the number of other people."""
    first, second = pair
    gain, crowd = gains(first, second, growth), sum(count for count, _ in others)
    if not crowd:
        return alone(first, second, growth)
    mean = [sum((count * law[y] for count, law in others), Fraction(0)) / crowd for y in range(len(first))]
    inside = [y for y, part in enumerate(mean) if part]
    certain = sum((_plus(gain[y]) for y, part in enumerate(mean) if not part), arb(0))
    x = [gain[y] / ball(mean[y]) for y in inside]
    if all(score <= 0 for score in x):
        return certain
    parts = [(count, Scores(x, [ball(law[y]) for y in inside])) for count, law in others if count]
    own = [Scores(x, [ball(law[y]) for y in inside]) for law in pair]

    def log_mean(t: float) -> float:
        total = sum(count * scores.log_mean(t) for count, scores in parts)
        return total + own[0].log_mean(t, whole=False) if total < 1e6 else math.inf

    low, high = tilts(parts[0][1])
    t = least(lambda t: log_mean(t) - math.log(t), low / math.sqrt(crowd), high)
    spread = math.sqrt(sum(count * scores.variance(t) for count, scores in parts) + own[0].variance(t))
    grid = Grid.of(t, log_mean(t), spread, fineness)
    s = least(lambda s: log_mean(s) - (s - t) * 2 * math.pi / grid.h, t * 1.0001, 60 * t)

    lifted = lift * spread / math.sqrt(crowd)

    def known(transforms: Sequence[Transform], w: Any) -> Any:
        value = (w * lifted).exp()
        for (count, _), transform in zip(parts, transforms, strict=True):
            value *= transform.here() ** count
        return value

    def made(at: float) -> list[Transform]:
        return [Transform(scores, at, grid.h) for scores in (*(scores for _, scores in parts), *own)]

    def start(at: float) -> list[Any]:
        *crowd_here, first, second = made(at)
        whole = known(crowd_here, acb(at)).real
        return [whole * first.here().real, whole * second.here().real]

    *crowd_here, first_here, second_here = made(t)
    both = start(t)
    hidden = exceeds(
        lambda m: known(crowd_here, acb(grid.t, arb(grid.h) * m)) * (first_here.here() - growth * second_here.here()),
        both[0] + growth * both[1],
        (s, start(s)[0]),
        grid,
    )
    return hidden + certain
