"""Columns of several filters, and the law by which flipping turns one into another."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from hushuffle import _checks
from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.divergence import divergence
from hushuffle.curves.flipped_pairs import AllAlike
from hushuffle.errors import NumericalError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import BitFlipping
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Citation

BUFFLING: Final = Citation(
    key="buffling",
    text="Technical details of the buffling package: signal to noise and privacy of shuffled, flipped Bloom filters",
)


_RARE = 1e-7


def columns(filters: int, bits: int, p: float) -> Protocol:
    """Return `bits` columns of `filters` bits each, flipped and shuffled."""
    width = _checks.integer("filters", filters, low=1, high=62)
    return Protocol(
        randomizer=BitFlipping(width=width, p=p),
        shuffler=UniformShuffle(),
        n=_checks.integer("bits", bits, low=1),
    )


def law_of(filters: int, bits: int, p: float) -> PrivacyCurve:
    """Return the divergence over all pairs of datasets that differ in one column."""
    return divergence(columns(filters, bits, p))


def pair_law(filters: int, bits: int, p: float, *, others: int, target: tuple[int, int]) -> AllAlike:
    """Return the divergence of one pair of datasets, all other columns at one logo."""
    if 0 < p < _RARE:
        message = f"p = {p!r} is too small for the figure of one pair of datasets: at least {_RARE:g}."
        raise NumericalError(message)
    flips = BitFlipping(width=_checks.integer("filters", filters, low=1, high=62), p=p)
    n = _checks.integer("bits", bits, low=1)
    return AllAlike.of(width=flips.width, flip=flips.flip, n=n, others=others, target=target)


def published_pair_law(filters: int, bits: int, p: float) -> AllAlike:
    """Return the divergence of the published pair: all columns 0...0, against one of them at 1...1."""
    last = (1 << _checks.integer("filters", filters, low=1, high=62)) - 1
    return pair_law(filters, bits, p, others=0, target=(0, last))


WIDEST = 10


def transition_matrix(filters: int, p: float) -> npt.NDArray[np.float64]:
    """Return P[i, j], the probability that logo i becomes logo j, shape (2**k, 2**k), k <= 10.

    P[i, j] = p**H q**(k - H), H the Hamming distance of i and j, q = 1 - p. Symmetric.

    Args:
        filters: k, 1 to 10.
        p: flip probability in (0, 1/2).

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/columns.md, Theorem 1 (buffling's exponent m - H should read k - H).

    >>> transition_matrix(2, 0.1)[0].round(4).tolist()
    [0.81, 0.09, 0.09, 0.01]
    """
    k, flip = checked(filters, p)
    logos = np.arange(1 << k)
    distance = np.bitwise_count(logos[:, None] ^ logos[None, :]).astype(np.int64)
    by_distance = flip ** np.arange(k + 1) * (1 - flip) ** np.arange(k, -1, -1)
    matrix: npt.NDArray[np.float64] = by_distance[distance]
    return matrix


def ones_matrix(filters: int, p: float) -> npt.NDArray[np.float64]:
    """Return pi[y, z], the probability that a logo with y ones becomes one with z ones, shape (k+1, k+1).

    pi[y, .] is the law of Bin(y, q) + Bin(k - y, p): a matrix of transitions, its rows sum to 1. (The double sum
    printed by buffling also adds up the C(k, y) logos with y ones, so that its row y sums to C(k, y).)

    Args:
        filters: k, 1 to 10.
        p: flip probability in (0, 1/2).

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/columns.md, Theorem 1.

    >>> ones_matrix(2, 0.1).round(4).tolist()
    [[0.81, 0.18, 0.01], [0.09, 0.82, 0.09], [0.01, 0.18, 0.81]]
    """
    k, flip = checked(filters, p)
    rows = [
        np.convolve(binom.pmf(np.arange(y + 1), y, 1 - flip), binom.pmf(np.arange(k - y + 1), k - y, flip))
        for y in range(k + 1)
    ]
    return np.array(rows)


def checked(filters: int, p: float) -> tuple[int, float]:
    """Return k and p, or raise `InvalidInputError`."""
    flip = _checks.probability("p", p, low_open=True)
    if flip >= 0.5:
        _checks.reject("p", "< 1/2", flip, "At p = 1/2 reports are independent of values.")
    return _checks.integer("filters", filters, low=1, high=WIDEST), flip
