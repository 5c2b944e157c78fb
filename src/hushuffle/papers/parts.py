"""What the figures on guessing share: deployments, lines, words."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Bound, number
from hushuffle.questions import qif


def deployment(k: int, p: float, n: int) -> Protocol:
    """Return k values, the truth reported with probability `p`, n people, shuffled."""
    return Protocol(randomizer=RandomizedResponse.from_truth_probability(k=k, p=p), shuffler=UniformShuffle(), n=n)


@lru_cache(maxsize=4096)
def guessed(k: int, p: float, n: int) -> Bound:
    """Return how often somebody who knows nobody guesses right after noise and shuffle; p = 1 is the shuffle alone."""
    return qif.vulnerability(deployment(k, p, n))


def sizes(low: int, high: int, per_decade: int) -> list[int]:
    """Return about evenly spaced sizes on a logarithmic axis, both ends among them.

    >>> sizes(10, 1000, 2)
    [10, 32, 100, 316, 1000]
    """
    steps, size = [], float(low)
    while size < high * 0.999:
        steps.append(round(size))
        size *= 10 ** (1 / per_decade)
    return sorted({*steps, high})


def first_below(p: float, k: int) -> int:
    """Return the fewest people for whom the shuffle alone leaves a guesser right less often than `p`.

    The shuffle alone never does worse with more people, so halving finds it.

    >>> first_below(0.6, 2)
    16
    """

    def below(n: int) -> bool:
        return guessed(k, 1.0, n).upper < p

    high = 1
    while not below(high):
        high *= 2
    return smallest(below, high // 2, high)


def smallest(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest number in (low, high] for which `holds`, given that it holds for `high` and all beyond.

    >>> smallest(lambda n: n * n >= 10, 0, 100)
    4
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def verdict(*, holds: bool) -> str:
    """Return the word that opens an answer about a claim of the paper."""
    return "Confirmed" if holds else "Not confirmed"


def said(bound: Bound, digits: int = 4) -> str:
    """Return the figure in an answer: the number, or both ends of a bracket."""
    if bound.lower == bound.upper:
        return number(bound.upper, digits=digits)
    return f"{number(bound.lower, up=False, digits=digits)} to {number(bound.upper, up=True, digits=digits)}"
