"""Transition probabilities of a flipped column of Bloom filters, and the signal-to-noise ratio of a changed column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from hushuffle import _checks
from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.laws.flipped_pairs import AllAlike
from hushuffle.curves.question import Question
from hushuffle.curves.rules.batches import PersonCurve, of_person
from hushuffle.curves.search import privacy_curve, solve
from hushuffle.errors import NumericalError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import BitFlipping
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Citation
from hushuffle.numerics.binomial import pmf

BUFFLING: Final = Citation(
    key="buffling",
    text="Technical details of the buffling package: signal to noise and privacy of shuffled, flipped Bloom filters",
)


_LEAST: Final = 1e-290
"""Smallest flip probability (smaller floats lose digits)."""

_RARE = 1e-7


def columns(filters: int, bits: int, p: float) -> Protocol:
    """Return the protocol that flips the bits of `bits` columns of `filters` bits each, and shuffles the columns."""
    width = _checks.integer("filters", filters, low=1, high=62)
    return Protocol(
        randomizer=BitFlipping(width=width, p=p), shuffler=UniformShuffle(), n=_checks.integer("bits", bits, low=1)
    )


def law_of(filters: int, bits: int, p: float) -> PrivacyCurve:
    """Return the privacy curve over all pairs of datasets that differ in one column."""
    return privacy_curve(columns(filters, bits, p))


def person_law_of(filters: int, bits: int, p: float, changed: int) -> PersonCurve:
    """Return the privacy curve over all pairs of datasets that differ in at most `changed` columns, 2 or more."""
    return of_person(Question.of(columns(filters, bits, p), changed), solve)


def pair_law(filters: int, bits: int, p: float, *, others: int, target: tuple[int, int]) -> AllAlike:
    """Return the privacy curve of one pair of datasets, with all other columns equal to one bit pattern."""
    flips = BitFlipping(width=_checks.integer("filters", filters, low=1, high=62), p=p)
    if flips.p < _RARE:
        message = f"p = {p!r} is too small for the epsilon of one pair of datasets. Use p >= {_RARE:g}."
        raise NumericalError(message)
    n = _checks.integer("bits", bits, low=1)
    return AllAlike.of(width=flips.width, flip=flips.flip, n=n, others=others, target=target)


def published_pair_law(filters: int, bits: int, p: float) -> AllAlike:
    """Return the privacy curve of the published pair: all columns 0...0, against one column 1...1."""
    last = (1 << _checks.integer("filters", filters, low=1, high=62)) - 1
    return pair_law(filters, bits, p, others=0, target=(0, last))


WIDEST = 10


def transition_matrix(filters: int, p: float) -> npt.NDArray[np.float64]:
    """Return P[i, j], the probability that bit pattern i becomes bit pattern j, shape (2**k, 2**k), k <= 10.

    P[i, j] = p**H q**(k - H) with H the Hamming distance of i and j, and q = 1 - p. P is symmetric.

    Args:
        filters: k, 1 to 10.
        p: flip probability in (0, 1/2).

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/randomizers.md, Theorem 15. The paper ('buffling') prints the exponent m - H; k - H is correct.

    >>> import hushuffle as hs
    >>> hs.bloom.transition_matrix(2, 0.1)[0].round(4).tolist()
    [0.81, 0.09, 0.09, 0.01]
    """
    k, flip = checked(filters, p)
    logos = np.arange(1 << k)
    distance = np.bitwise_count(logos[:, None] ^ logos[None, :]).astype(np.int64)
    by_distance = flip ** np.arange(k + 1) * (1 - flip) ** np.arange(k, -1, -1)
    matrix: npt.NDArray[np.float64] = by_distance[distance]
    return matrix


def ones_matrix(filters: int, p: float) -> npt.NDArray[np.float64]:
    """Return pi[y, z], the probability that a bit pattern with y ones becomes one with z ones, shape (k+1, k+1).

    pi[y, .] is the distribution of Bin(y, q) + Bin(k - y, p), so every row sums to 1. (The double sum printed by
    buffling also adds up the C(k, y) bit patterns with y ones, so its row y sums to C(k, y).)

    Args:
        filters: k, 1 to 10.
        p: flip probability in (0, 1/2).

    Raises:
        InvalidInputError: an argument out of range.
        NumericalError: p below 1e-290.

    Source: docs/theory/randomizers.md, Theorem 15.

    >>> import hushuffle as hs
    >>> hs.bloom.ones_matrix(2, 0.1).round(4).tolist()
    [[0.81, 0.18, 0.01], [0.09, 0.82, 0.09], [0.01, 0.18, 0.81]]
    """
    k, flip = checked(filters, p)
    if flip < _LEAST:
        message = f"p = {p!r} is too small for a matrix of floats. Use p >= {_LEAST:g}."
        raise NumericalError(message)
    rows = [
        np.convolve(pmf(np.arange(y + 1), y, 1 - flip), pmf(np.arange(k - y + 1), k - y, flip)) for y in range(k + 1)
    ]
    return np.array(rows)


def checked(filters: int, p: float) -> tuple[int, float]:
    """Return the number k of filters and p after checking them, or raise `InvalidInputError`."""
    flip = _checks.probability("p", p, low_open=True)
    if flip >= 0.5:
        _checks.reject("p", "< 1/2", flip, "At p = 1/2 reports are independent of values.")
    return _checks.integer("filters", filters, low=1, high=WIDEST), flip


Array = npt.NDArray[np.float64]
_TIES = 1e-9  # ratios this close, relative, count as equal


@dataclass(frozen=True, kw_only=True)
class LargestRatio:
    """The largest signal-to-noise ratio over changes j -> i of a bit pattern, and all (j, i), j < i, that attain it."""

    ratio: float
    changes: tuple[tuple[int, int], ...]


def skewed_counts(filters: int, *, bits: int, skewness: float) -> Array:
    """Return how many of the m columns have each bit pattern i, proportional to (1 - s)**|i|, shape (2**k,).

    |i| is the number of ones in i. At s = 0 the counts are uniform; at s = 1 all filters are empty. In between, every
    bit of a column is 1 with probability (1 - s)/(2 - s), independently. Counts are real numbers with sum m.

    Args:
        filters: k, 1 to 10.
        bits: m >= 1.
        skewness: s in [0, 1].

    Raises:
        InvalidInputError: an argument out of range.

    Source: a choice of this library; the technical details of buffling name no family of counts.

    >>> skewed_counts(2, bits=9, skewness=0.5).tolist()
    [4.0, 2.0, 2.0, 1.0]
    """
    k = _checks.integer("filters", filters, low=1, high=WIDEST)
    m = _checks.integer("bits", bits, low=1)
    each = 1.0 - _checks.probability("skewness", skewness)
    ones = np.bitwise_count(np.arange(1 << k)).astype(np.float64)
    return m * each**ones / (1 + each) ** k


def ratios(counts: npt.ArrayLike, *, p: float) -> Array:
    """Return the signal-to-noise ratio of every change j -> i of one column, shape (2**k, 2**k); symmetric.

    SNR = max over c of (a.c)**2 / (c.B c) = a.B^+ a: the squared shift of the mean of c.x, divided by the variance of
    c.x. Here x are the released counts, B = diag(P d) - P diag(d) P is their covariance, and a = P (e_i - e_j).

    Args:
        counts: d, columns by bit pattern before flipping, shape (2**k,), >= 0, not all 0; k <= 10.
        p: flip probability in (0, 1/2).

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/randomizers.md, Theorem 19 (buffling writes the standard deviation in place of the variance).

    >>> ratios([10, 0], p=0.1).round(6).tolist()  # [(p**2/q + q**2/p) - 1]/m
    [[0.0, 0.711111], [0.711111, 0.0]]
    """
    system = _System.of(counts, p)
    # With B = L L^T in these coordinates, every ratio is a squared distance between two points.
    points = solve_triangular(cholesky(system.matrix, lower=True), system.root[:, None] * system.channel, lower=True)
    squares = np.einsum("ij,ij->j", points, points)
    distances = squares[:, None] + squares[None, :] - 2 * points.T @ points
    np.fill_diagonal(distances, 0.0)
    symmetric: Array = np.maximum((distances + distances.T) / 2, 0.0)
    return symmetric


def largest(counts: npt.ArrayLike, *, p: float) -> LargestRatio:
    """Return the largest signal-to-noise ratio and all changes that attain it up to a relative 1e-9.

    Arguments and errors as for `ratios`.

    Source: docs/theory/randomizers.md, Theorem 19.

    >>> largest(skewed_counts(3, bits=1000, skewness=1.0), p=0.1).changes
    ((0, 7),)
    """
    table = ratios(counts, p=p)
    peak = float(table.max())
    pairs = np.argwhere(np.triu(table >= peak * (1 - _TIES), 1))
    return LargestRatio(ratio=peak, changes=tuple((int(j), int(i)) for j, i in pairs))


def coefficients(counts: npt.ArrayLike, *, p: float, change: tuple[int, int]) -> Array:
    """Return the weights c of the counts that attain the signal-to-noise ratio of a change j -> i, shape (2**k,).

    c solves B c = a (see `ratios`), up to a factor and a constant; here its sum is 0, its Euclidean length 1, and a.c >
    0. For empty filters and 0 -> 2**k - 1, c_i is proportional to (q/p)**(2|i| - k) + constant, q = 1 - p.

    Args:
        counts: d, columns by bit pattern before flipping, shape (2**k,).
        p: flip probability in (0, 1/2).
        change: (j, i), the column's bit pattern before and after, different.

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/randomizers.md, Theorem 19.

    >>> coefficients([10, 0], p=0.1, change=(0, 1)).round(4).tolist()
    [-0.7071, 0.7071]
    """
    system = _System.of(counts, p)
    before, after = (_checks.integer("change", each, low=0, high=system.root.size - 1) for each in change)
    if before == after:
        _checks.reject("change", "two different bit patterns", change)
    signal = system.channel[after] - system.channel[before]
    weights = system.root * cho_solve(cho_factor(system.matrix, lower=True), system.root * signal)
    centred: Array = weights - weights.mean()
    return centred / float(np.linalg.norm(centred))


def ratio_from_empty(filters: int, *, bits: int, p: float) -> float:
    """Return ((p**2/q + q**2/p)**k - 1)/m, q = 1 - p: the signal-to-noise ratio if an empty column becomes 1...1.

    Args:
        filters: k, 1 to 10.
        bits: m >= 1.
        p: flip probability in (0, 1/2).

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/randomizers.md, Theorem 19.

    >>> round(ratio_from_empty(3, bits=1000, p=0.1), 6)
    0.532631
    """
    k, flip = checked(filters, p)
    m = _checks.integer("bits", bits, low=1)
    keep = 1 - flip
    return math.expm1(k * math.log(flip * flip / keep + keep * keep / flip)) / m


@dataclass(frozen=True, kw_only=True, eq=False)
class _System:
    """B in the scale in which it is well conditioned, made regular.

    With x = P d and R = diag(x)**-1/2, R B R = I - (R P diag(d)**1/2)(...)^T has eigenvalues from 1 - (1 - 2p)**2 (for
    product inputs) to 1, except 0 at the unit vector sqrt(x/m), which is added. B + 11^T/m would do in exact
    arithmetic, but its eigenvalues spread over a factor of about p**-k.
    """

    matrix: Array
    root: Array
    channel: Array

    @classmethod
    def of(cls, counts: npt.ArrayLike, p: float) -> _System:
        d = np.asarray(counts, dtype=np.float64)
        if d.ndim != 1 or d.size < 2 or d.size & (d.size - 1) or d.size > 1 << WIDEST:
            _checks.reject("counts", f"2**k numbers, k from 1 to {WIDEST}", f"<shape {d.shape}>")
        if not np.all((d >= 0) & np.isfinite(d)) or not d.sum() > 0:
            _checks.reject("counts", "finite, >= 0 and not all 0", "<other numbers>")
        channel = transition_matrix(d.size.bit_length() - 1, p)
        released = channel @ d
        root = 1 / np.sqrt(released)
        half = root[:, None] * channel * np.sqrt(d)
        unit = np.sqrt(released / d.sum())
        return cls(matrix=np.eye(d.size) - half @ half.T + np.outer(unit, unit), root=root, channel=channel)
