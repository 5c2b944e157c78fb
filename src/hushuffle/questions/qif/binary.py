"""Two values (k = 2): the exact vulnerability for any knowledge of the adversary, and its worst case.

With f the pmf of the number of ones among the other reports, the release's distributions for the target's two values
differ by theta (f(s-1) - f(s)). f is log-concave, so the total variation distance TV is theta max f, and

    V = (1 + TV)/2 = (1 + theta max_s f(s))/2.

Worst case over y, the number of known ones. For every y, f's characteristic function has the same modulus
(1 - 4 mu nu sin(t/2)**2)**(m/2) |cos(t/2)|**unknown, so max f is at most the mean of this over t. If m and `unknown`
are even, y = m/2 attains the mean, since the phase vanishes at the (whole) mean number of ones: half ones, half zeros
is the worst case. Otherwise one known person (whose report the adversary may be given) and one unknown person are left
out: an upper bound, too large by about a share 1/m of V - 1/2.

Source: docs/theory/guessing.md, Theorem 5; J. N. Darroch 1964.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.questions.qif.knowledge import Knowledge, Rates
from hushuffle.questions.qif.many import ACCURACY, largest_probability

if TYPE_CHECKING:
    import numpy.typing as npt

    from hushuffle.numerics.binomial import Floats

EVERY_COMPOSITION_UP_TO: Final = 100_000
"""Maximum number m of known people for which every composition is tried if m or `unknown` is odd."""

_TRIED: Final = 10_000


def rates(knowledge: Knowledge) -> Rates:
    """Return G for k = 2: exact, or a bracket (worst case, m or `unknown` odd); relative error below 1e-12.

    >>> from fractions import Fraction
    >>> from hushuffle.questions.qif.knowledge import Knowledge
    >>> from hushuffle.mechanisms.randomizers import Symmetric
    >>> law = Symmetric(k=2, truth=Fraction(4, 5), lie=Fraction(1, 5))
    >>> worst = rates(Knowledge(law=law, m=200, known=None, unknown=0))
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
