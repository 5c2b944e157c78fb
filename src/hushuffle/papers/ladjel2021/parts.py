"""What the figures on traffic share: one scrambler by every formula, lines, words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

from hushuffle.curves.divergence import divergence
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Convention, TargetSampling
from hushuffle.mechanisms.shufflers import Scrambler
from hushuffle.model import Bound, Series
from hushuffle.questions import traffic
from hushuffle.questions.traffic import published

TARGETS_OF: Final = 20
"""Number of targets T in the paper's figures."""

DELTA: Final = 1e-4
SAMPLES: Final = 5000


@lru_cache(maxsize=4096)
def certified(n: int, sigma: float, dummies: int, delta: float = DELTA) -> Bound:
    """Return the certified bracket of one uncapped scrambler with 20 targets."""
    return traffic.scrambler_epsilon(TARGETS_OF, n, sigma, dummies, delta=delta)


@lru_cache(maxsize=4096)
def capped(n: int, sigma: float, dummies: int, convention: Convention = "uniform") -> Bound:
    """Return the pure figure of one scrambler with a cap; an upper bound for `dummies` >= n."""
    return traffic.scrambler_epsilon(TARGETS_OF, n, sigma, dummies, cap=n, convention=convention)


@lru_cache(maxsize=4096)
def bennett(n: int, sigma: float, dummies: int, delta: float = DELTA) -> Bound:
    """Return Theorem 4 refined by Bennett's inequality, corrected."""
    return published.theorem_four_epsilon(TARGETS_OF, n, sigma, dummies, delta=delta, inequality="bennett")


@lru_cache(maxsize=4096)
def as_printed(n: int, sigma: float, dummies: int, delta: float = DELTA) -> float:
    """Return the same as printed, which is no bound."""
    return published.printed_bennett_epsilon(TARGETS_OF, n, sigma, dummies, delta=delta)


def meets(n: int, sigma: float, dummies: int, *, epsilon: float) -> bool:
    """Say whether the certified delta at `epsilon` is at most 1e-4."""
    sampling = TargetSampling(targets=TARGETS_OF, sigma=sigma)
    law = divergence(Protocol(randomizer=sampling, shuffler=Scrambler(dummies=dummies), n=n))
    return law.near(DELTA).upper(epsilon * (1 - 1e-6)) <= DELTA


def drawn(label: str, x: Sequence[float], figures: Iterable[Bound | float]) -> Series:
    """Return the line through figures or plain numbers, without the points that are infinite.

    >>> drawn("line", [1, 2], [0.5, math.inf]).x
    (1.0,)
    """
    ends = [(f.lower, f.upper) if isinstance(f, Bound) else (f, f) for f in figures]
    kept = [(float(at), *pair) for at, pair in zip(x, ends, strict=True) if math.isfinite(pair[1])]
    at, lower, upper = zip(*kept, strict=True) if kept else ((), (), ())
    return Series(label=label, x=at, lower=lower, upper=upper)


def least(holds: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest integer in 0..most for which `holds`, true from there on; None if there is none.

    >>> least(lambda n: n * n >= 10, 50), least(lambda n: n > 50, 50)
    (4, None)
    """
    if holds(0):
        return 0
    low, high = 0, 1
    while not holds(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def verdict(*, holds: bool) -> str:
    """Return the word that opens an answer about a claim of the paper."""
    return "Confirmed" if holds else "Contradicted"
