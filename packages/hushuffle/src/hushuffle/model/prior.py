"""`Prior`: an adversary's probabilities, before it sees a report, that each person is the sender."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks

_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Prior:
    """A prior over people, as pairs (probability, number of people who have it); the largest probability is first."""

    blocks: tuple[tuple[Fraction, int], ...]

    @classmethod
    def of(cls, n: int, *, prior: npt.ArrayLike | None = None, largest_prior: float | None = None) -> Self:
        """Return a prior on n people: `prior` if given, the worst case for `largest_prior` if given, else uniform.

        The worst case assigns `largest_prior` to as many people as possible, the remaining probability to one person,
        and 0 to the rest. The success of every guess is convex in the prior, so a vertex of this form is the worst
        prior whose largest probability is `largest_prior`.
        """
        if prior is not None:
            if largest_prior is not None:
                _checks.reject("largest_prior", "left out where prior is given", largest_prior)
            return cls(blocks=_blocks(prior, n))
        if largest_prior is None:
            return cls(blocks=((Fraction(1, n), n),))
        most = largest_probability(n, largest_prior)
        full = min(math.floor(1 / most), n)
        rest = 1 - full * most
        return cls(blocks=((most, full), (rest, 1)) if rest > 0 and full < n else ((most, full),))

    @property
    def people(self) -> int:
        return sum(count for _, count in self.blocks)

    @property
    def largest(self) -> Fraction:
        return self.blocks[0][0]

    @property
    def uniform(self) -> bool:
        return len(self.blocks) == 1

    def likeliest(self, most: int, *, above: Fraction = Fraction(0)) -> tuple[int, Fraction]:
        """Return how many of the `most` likeliest people have a probability > `above`, and their total probability."""
        people, total = 0, Fraction(0)
        for weight, count in self.blocks:
            if weight <= above or people == most:
                break
            taken = min(count, most - people)
            people, total = people + taken, total + taken * weight
        return people, total


def largest_probability(n: int, largest_prior: float) -> Fraction:
    """Return `largest_prior` as a fraction; raise an error if it is not in [1/n, 1]."""
    largest = _checks.probability("largest_prior", largest_prior)
    if largest < 1 / n:
        _checks.reject("largest_prior", f"at least 1/n = {1 / n:.6g}", largest)
    return Fraction(largest)


def _blocks(prior: npt.ArrayLike, n: int) -> tuple[tuple[Fraction, int], ...]:
    try:
        weights = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        _checks.reject("prior", f"{n} probabilities", f"<{type(prior).__name__}>")
    if weights.shape != (n,):
        _checks.reject("prior", f"of shape ({n},)", f"<shape {weights.shape}>")
    proper = bool(np.all((weights >= 0) & (weights <= 1)))
    total = math.fsum(weights) if proper else math.nan
    if not (proper and abs(total - 1) <= _TOLERANCE):
        _checks.reject("prior", "probabilities that sum to 1", f"<a sum of {total:.12g}>")
    distinct, counts = np.unique(weights / total, return_counts=True)
    return tuple((Fraction(float(w)), int(c)) for w, c in zip(distinct[::-1], counts[::-1], strict=True))
