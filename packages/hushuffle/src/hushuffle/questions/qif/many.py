"""Vulnerability: exact if that can be evaluated, otherwise a certified bracket.

More than two values. Exact: an uninformed adversary; no noise (the shuffle alone); all other people have one value; or
few enough people for a torus. The worst case is exact if every composition (the counts of known values, up to their
order) is exact.

Otherwise the upper bound is that of the privacy blanket. A given composition has a second one, from the people with
its most frequent value: the adversary may be given the other people's reports. Lower bounds are those of exact
compositions, and of an adversary that uses only the counts of one or more values: for one value,
V >= (1 + theta max f)/k with f the distribution of its count among the others. The worst case has two more: the
uninformed adversary, and all people with one value whose count is not used.

`largest_probability` is the mode probability of a sum of independent Bernoulli trials, for any number of trials.

Two values (k = 2): the exact vulnerability for any knowledge of the adversary, and its worst case. With f
the pmf of the number of ones among the other reports, the release's distributions for the target's two values differ
by theta (f(s-1) - f(s)). f is log-concave, so the total variation distance TV is theta max f, and

    V = (1 + TV)/2 = (1 + theta max_s f(s))/2.

Worst case over y, the number of known ones. For every y, f's characteristic function has the same modulus
(1 - 4 mu nu sin(t/2)**2)**(m/2) |cos(t/2)|**unknown, so max f is at most the mean of this over t. If m and `unknown`
are even, y = m/2 attains the mean, since the phase vanishes at the (whole) mean number of ones: half ones, half zeros
is the worst case. Otherwise one known person (whose report the adversary may be given) and one unknown person are left
out: an upper bound, too large by about a share 1/m of V - 1/2.

The torus gives the exact probability to guess the value of a truthful target, for small problems. With f the
distribution of the histogram of the other reports, P(h|x) = nu sum_r f(h - e_r) + theta f(h - e_x), so

    V = (1/k) sum_h max_x P(h|x) = nu + theta G,   G = (1/k) sum_h max_x f(h - e_x).

f has k - 1 free coordinates. It is computed on a torus that is wide enough for its mass (Bernstein's
inequality), by one inverse Fourier transform of the product of the others' characteristic functions.

Source: docs/theory/guessing.md, Theorem 5; J. N. Darroch 1964.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from scipy.fft import next_fast_len

from hushuffle.errors import NumericalError
from hushuffle.numerics.binomial import Floats
from hushuffle.numerics.exact import complex_log1p, exponential, turn_parts
from hushuffle.numerics.max_load import TOLERANCE
from hushuffle.questions.qif.blanket import COARSE, lower_rate, one_value_rate, shuffle_rate, upper_rate
from hushuffle.questions.qif.knowledge import Knowledge, Rates

if TYPE_CHECKING:
    from hushuffle.mechanisms.randomizers import Symmetric

ACCURACY: Final = 1e-12
"""Relative error of every exact rate; brackets are widened by it.

Measured on the torus: below 1e-13, against exact rationals and finer grids. Measured for `largest_probability`: below
1e-14, against exact rationals (1,600 trials) and 40 digits (10**9).
"""

COMPOSITIONS_LIMIT: Final = 2_000_000
"""Maximum number of torus cells over all compositions for an exact worst case (about a second)."""

_FEW_VALUES: Final = 8  # values up to which the torus may hold enough counts to matter

_NAMED_UP_TO: Final = 1_000  # values up to which a composition is written out as a witness

Known = tuple[int, ...]


def rates(knowledge: Knowledge) -> Rates:
    """Return G for k > 2: exact (error 1e-12) or a certified bracket.

    Source: docs/theory/guessing.md, Theorem 7.

    >>> from fractions import Fraction
    >>> from hushuffle.questions.qif.knowledge import Knowledge
    >>> from hushuffle.mechanisms.randomizers import Symmetric
    >>> law = Symmetric(k=3, truth=Fraction(1, 2), lie=Fraction(1, 4))
    >>> rates(Knowledge(law=law, m=2, known=None, unknown=0)).known
    (1, 1, 0)
    """
    if knowledge.m == 0 or knowledge.law.lie == 0:
        rate = shuffle_rate(knowledge.unknown + 1, knowledge.law.k)
        return Rates(lower=rate, upper=rate)
    return _worst(knowledge) if knowledge.known is None else _given(knowledge, knowledge.known)


def _given(knowledge: Knowledge, composition: Known) -> Rates:
    alone = all_at_one(knowledge) if max(composition) == knowledge.m else None
    if alone is not None:
        return Rates(lower=alone, upper=alone)
    rate, exact = _on_torus(knowledge, composition)
    if exact:
        return Rates(lower=rate, upper=rate)
    lower = max(rate, *(one_count(knowledge, count) for count in set(composition)))
    commonest = all_at_one(replace(knowledge, m=max(composition), unknown=0), COARSE)
    upper = upper_rate(knowledge)
    return _bracket(lower, upper if commonest is None else min(upper, commonest * (1 + COARSE + ACCURACY)))


def _worst(knowledge: Knowledge) -> Rates:
    m, k, law = knowledge.m, knowledge.law.k, knowledge.law
    if _all_compositions_cost(knowledge) <= COMPOSITIONS_LIMIT:
        tried = [(guess_rate(known, knowledge.unknown, law), known) for known in _compositions(m, k)]
        best, worst = max(tried)
        return Rates(lower=best, upper=best, known=worst)
    one_value = _spread(m, 1, k)
    alone = all_at_one(knowledge, TOLERANCE if m == 1 else COARSE)
    if m == 1 and alone is not None:
        return Rates(lower=alone, upper=alone, known=one_value)
    candidates: list[tuple[float, Known | None]] = [(shuffle_rate(knowledge.others + 1, k), None)]
    if alone is not None:
        candidates.append((alone * (1 - COARSE), one_value))
    if k <= _FEW_VALUES:  # counts of fewer than k - 1 values were never the best candidate in 300 random cases
        spreads = [_spread(m, values, k) for values in ((1, 2, k) if alone is None else (2, k))]
        fit = [known for known in spreads if known and math.isfinite(cells_needed(known, knowledge.unknown, law))]
        candidates += [(guess_rate(known, knowledge.unknown, law), known) for known in fit]
    if alone is None:
        candidates.append((one_count(knowledge, 0), one_value))
        candidates.append((lower_rate(knowledge, wanted=max(rate for rate, _ in candidates)), one_value))
    lower, witness = max(candidates, key=lambda candidate: candidate[0])
    return replace(_bracket(lower, upper_rate(knowledge)), known=witness)


def _bracket(lower: float, upper: float) -> Rates:
    return Rates(lower=min(lower * (1 - ACCURACY), upper), upper=upper)


def _on_torus(knowledge: Knowledge, composition: Known) -> tuple[float, bool]:
    """Return a lower bound on the rate for the known values from as many counts as fit, and whether it is exact."""
    law, unknown = knowledge.law, knowledge.unknown
    axes = affordable_axes(composition, unknown, law, limit=CELLS_LIMIT)
    if not axes:
        return 1 / law.k, False
    return guess_rate(composition, unknown, law, axes=axes), len(axes) == law.k - 1


def all_at_one(knowledge: Knowledge, tolerance: float = TOLERANCE) -> float | None:
    """Return the exact rate if the m people have the same value and no other report is unknown, else None."""
    if knowledge.unknown:
        return None
    try:
        return one_value_rate(knowledge.m, knowledge.law, tolerance=tolerance)
    except NumericalError:
        return None


def one_count(knowledge: Knowledge, holders: int) -> float:
    """Return a lower bound on the rate from the count of one value that `holders` of the known people have."""
    law = knowledge.law
    counts = [[holders, knowledge.m - holders, knowledge.unknown]]
    return (1 + float(largest_probability(counts, [law.truth, law.lie, Fraction(1, law.k)])[0])) / law.k


def _spread(m: int, values: int, k: int) -> Known | None:
    """Return m people spread evenly over the first `values` values, None for too many values to write out."""
    if k > _NAMED_UP_TO:
        return None
    return tuple(m // values + (value < m % values) if value < values else 0 for value in range(k))


def _compositions(m: int, k: int) -> Iterator[Known]:
    """Yield the ways to spread m people over k values, up to the names of the values: falling counts."""

    def falling(left: int, places: int, most: int) -> Iterator[Known]:
        if places == 1:
            yield (left,)
            return
        for first in range(min(left, most), -(-left // places) - 1, -1):
            for rest in falling(left - first, places - 1, first):
                yield (first, *rest)

    return falling(m, k, m)


def _all_compositions_cost(knowledge: Knowledge) -> float:
    """Return the approximate number of torus cells for all compositions; inf if a composition has too many."""
    m, k = knowledge.m, knowledge.law.k
    even = _spread(m, k, k)
    cells = math.inf if even is None else cells_needed(even, knowledge.unknown, knowledge.law)
    if cells * m > COMPOSITIONS_LIMIT:
        return math.inf  # there are at least m compositions up to m = 3, and more than m beyond
    ways = [1] + [0] * m  # partitions into parts of at most k: as many as into at most k parts
    for part in range(1, k + 1):
        for total in range(part, m + 1):
            ways[total] += ways[total - part]
    return cells * float(ways[m])


_LOG_TAIL: Final = 45.0
_ROWS: Final = 1 << 14


def largest_probability(counts: npt.ArrayLike, chances: Sequence[Fraction]) -> Floats:
    """Return max_s P(sum_g Bin(counts[r, g], chances[g]) = s), shape (rows,); `counts`, shape (rows, groups).

    Mode and mean differ by less than 1, so two points suffice; the trapezoidal rule needs tens of nodes for any counts.

    Source: J. N. Darroch 1964 (mode and mean); docs/theory/two-values.md, Lemma 2.

    >>> largest_probability([[4, 0], [2, 2]], [Fraction(1, 2), Fraction(1, 4)]).round(6).tolist()
    [0.375, 0.375]
    """
    table = np.asarray(counts, dtype=np.float64)
    # Trials are complemented so that each succeeds with probability at most 1/2, which avoids rounding errors.
    turned = np.array([chance > Fraction(1, 2) for chance in chances])
    rare = np.array([float(min(chance, 1 - chance)) for chance in chances])
    result = np.zeros(table.shape[0])
    for start in range(0, table.shape[0], _ROWS):
        result[start : start + _ROWS] = _block(table[start : start + _ROWS], rare, np.where(turned, -1.0, 1.0))
    return result


def _block(counts: Floats, rare: Floats, signs: Floats) -> Floats:
    """Return the largest probability of sum_g signs[g] Bin(counts[r, g], rare[g]), a translate of the required sum."""
    variance, mean = counts @ (rare * (1 - rare)), counts @ (rare * signs)
    angles, weights = _nodes(float(counts.sum(axis=1).max()), float(variance.min()), float(variance.max()))
    away, sine = turn_parts(angles)
    size = counts @ (0.5 * np.log1p(-2 * np.outer(rare * (1 - rare), away)))
    turn = np.arctan2(np.outer(rare, sine), 1 - np.outer(rare, away)) - np.outer(rare, angles)
    phase = (counts * signs) @ turn  # the mean is taken out
    weighted, above = weights * np.exp(size), mean - np.floor(mean)
    # The value at a whole number beyond the range is 0, up to rounding, so both neighbours of the mean may be read.
    values = [
        (weighted * (1 - turn_parts(phase + angles * shift[:, None])[0])).sum(axis=1) for shift in (above, above - 1)
    ]
    return np.asarray(np.minimum(np.maximum(*values), 1.0))


def _nodes(total: float, least: float, most: float) -> tuple[Floats, Floats]:
    """Return the angles >= 0 and their weights, for variances from `least` to `most`.

    P(|sum - mean| >= x) <= 2 exp(-x**2 / (2 (variance + x/3))), so a period beyond x folds nothing back.
    """
    reach = _LOG_TAIL / 3 + math.sqrt((_LOG_TAIL / 3) ** 2 + 2 * _LOG_TAIL * most)
    period = 2 * math.ceil(min(reach + 2, total + 1) / 2) + 1
    # |characteristic function| <= exp(-2 variance sin(angle/2)**2)
    sine = min(1.0, math.sqrt(_LOG_TAIL / (2 * max(least, 1e-9))))
    used = min((period - 1) // 2, math.ceil(period * math.asin(sine) / math.pi))
    index = np.arange(used + 1, dtype=np.float64)
    return 2 * np.pi * index / period, np.where(index == 0, 1.0, 2.0) / period


EVERY_COMPOSITION_UP_TO: Final = 100_000
"""Maximum number m of known people for which every composition is tried if m or `unknown` is odd."""

_TRIED: Final = 10_000


def rates_of_two(knowledge: Knowledge) -> Rates:
    """Return G for k = 2: exact, or a bracket (worst case, m or `unknown` odd); relative error below 1e-12.

    >>> from fractions import Fraction
    >>> from hushuffle.questions.qif.knowledge import Knowledge
    >>> from hushuffle.mechanisms.randomizers import Symmetric
    >>> law = Symmetric(k=2, truth=Fraction(4, 5), lie=Fraction(1, 5))
    >>> worst = rates_of_two(Knowledge(law=law, m=200, known=None, unknown=0))
    >>> worst.known, round(0.2 + 0.6 * worst.upper, 5)
    ((100, 100), 0.52116)
    """
    if knowledge.known is not None:
        rate = float(_rate(knowledge, np.array([knowledge.known[1]]))[0])
        return Rates(lower=rate, upper=rate)
    m = knowledge.m
    if m % 2 == 0 and knowledge.unknown % 2 == 0:
        return _best(knowledge, np.array([m // 2]))
    if m <= EVERY_COMPOSITION_UP_TO:
        return _best(knowledge, np.arange((m + 1) // 2, m + 1))
    even = replace(knowledge, m=m - m % 2, unknown=knowledge.unknown - knowledge.unknown % 2)
    upper = _best(even, np.array([even.m // 2])).upper
    tried = _best(knowledge, np.append(np.arange((m + 1) // 2, (m + 1) // 2 + _TRIED), m))
    return replace(tried, lower=tried.lower * (1 - ACCURACY), upper=min(1.0, upper * (1 + ACCURACY)))


def _best(knowledge: Knowledge, ones: npt.NDArray[np.int_]) -> Rates:
    """Return the largest rate over the given numbers y of known ones; y and m - y ones have equal rates."""
    values = _rate(knowledge, ones)
    place = int(np.argmax(values))
    count, rate = int(ones[place]), float(values[place])
    return Rates(lower=rate, upper=rate, known=(knowledge.m - count, count))


def _rate(knowledge: Knowledge, ones: npt.NDArray[np.int_]) -> Floats:
    unknown = np.full_like(ones, knowledge.unknown)
    counts = np.stack([ones, knowledge.m - ones, unknown], axis=1)
    return np.asarray((1 + largest_probability(counts, [knowledge.law.truth, knowledge.law.lie, Fraction(1, 2)])) / 2)


CELLS_LIMIT: Final = 1 << 22
"""Maximum number of cells of one torus: 4 million, about a second and 300 MB."""


def guess_rate(known: Sequence[int], unknown: int, law: Symmetric, *, axes: Sequence[int] | None = None) -> float:
    """Return the success rate G for truthful targets, given counts of known values and `unknown` uniform reports.

    With `axes`, only the counts of these values are used: a lower bound on G, exact for k - 1 values.

    Source: docs/theory/guessing.md, Lemma 3.

    >>> from fractions import Fraction
    >>> from hushuffle.mechanisms.randomizers import Symmetric
    >>> law = Symmetric(k=2, truth=Fraction(3, 4), lie=Fraction(1, 4))
    >>> round(guess_rate((1, 0), 0, law), 12), round(guess_rate((0, 0), 1, law), 12)
    (0.875, 0.75)
    """
    order, widths = _widths(known, unknown, law)
    chosen = order[:-1] if axes is None else list(axes)
    shape = tuple(_cells(widths[value]) for value in chosen)
    pmf = np.fft.irfftn(_transform(known, unknown, law, chosen, shape), s=shape, axes=range(len(shape)))
    best = pmf  # the target reports a value that has no axis
    for axis in range(len(shape)):
        best = np.maximum(best, np.roll(pmf, 1, axis=axis))
    return min(1.0, float(best.sum()) / law.k)


def affordable_axes(known: Sequence[int], unknown: int, law: Symmetric, *, limit: float) -> list[int]:
    """Return the values whose counts vary least, at most k - 1 of them, as many as `limit` torus cells allow."""
    order, widths = _widths(known, unknown, law)
    axes: list[int] = []
    size = 1
    for value in order[:-1]:
        size *= _cells(widths[value])
        if size > limit:
            break
        axes.append(value)
    return axes


def cells_needed(known: Sequence[int], unknown: int, law: Symmetric) -> float:
    """Return the number of torus cells for the exact `guess_rate`, or math.inf if it exceeds `CELLS_LIMIT`."""
    if len(affordable_axes(known, unknown, law, limit=CELLS_LIMIT)) < law.k - 1:
        return math.inf
    order, widths = _widths(known, unknown, law)
    return math.prod(_cells(widths[value]) for value in order[:-1])


def _cells(width: float) -> int:
    return int(next_fast_len(int(width), real=True))


def _widths(composition: Sequence[int], unknown: int, law: Symmetric) -> tuple[list[int], Floats]:
    """Return the values, narrowest count first, and by value how many cells hold its count."""
    counts = np.asarray(composition, dtype=np.float64)
    total, truth, lie = int(sum(composition)) + unknown, float(law.truth), float(law.lie)
    rest = counts.sum() - counts
    variance = counts * truth * (1 - truth) + rest * lie * (1 - lie) + unknown * (1 - 1 / law.k) / law.k
    budget = _LOG_TAIL + math.log(law.k)
    reach = budget / 3 + np.sqrt((budget / 3) ** 2 + 2 * budget * variance)
    widths = np.asarray(np.minimum(total + 2, 2 * np.ceil(reach) + 4))
    return np.argsort(variance, kind="stable").tolist(), widths


def _transform(
    composition: Sequence[int], unknown: int, law: Symmetric, axes: Sequence[int], shape: tuple[int, ...]
) -> npt.NDArray[np.complex128]:
    """Return E e**(-i angle . counts), up to a translation, on the torus' frequencies, the last axis halved."""
    turns = []  # e**(-i angle_r) - 1, accurate near 0
    for position, size in enumerate(shape):
        last = position == len(shape) - 1
        frequencies = np.asarray(np.fft.rfftfreq(size) if last else np.fft.fftfreq(size), dtype=np.float64)
        angles = -2 * np.pi * frequencies.reshape([-1 if axis == position else 1 for axis in range(len(shape))])
        away, sine = turn_parts(angles)
        turns.append(-away + 1j * sine)
    spread = np.asarray(sum(turns), dtype=np.complex128)
    lie = float(law.lie)
    exponent = unknown * complex_log1p(spread / law.k)
    elsewhere = sum(composition)
    for value, turn in zip(axes, turns, strict=True):
        if composition[value]:
            # Seen from the person's own value (a translation of f), everything is a multiple of nu: it may be tiny.
            back = turn.conjugate()
            exponent = exponent + composition[value] * complex_log1p(
                lie * ((spread - turn) * (1 + back) + (law.k - 1) * back)
            )
            elsewhere -= composition[value]
    if elsewhere:
        exponent = exponent + elsewhere * complex_log1p(lie * spread)
    return exponential(exponent.real, exponent.imag)
