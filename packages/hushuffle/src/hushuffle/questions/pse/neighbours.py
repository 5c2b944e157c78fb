"""Divergence D(f_G || f_I) of two lists of scores: by nearest neighbours, from counts, or for normal distributions."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from hushuffle import _checks
from hushuffle.errors import NumericalError
from hushuffle.model import Bound, Citation
from hushuffle.model.citation import PIE

Floats = npt.NDArray[np.float64]

_BLOCK: Final = 1 << 16
_TIES: Final = (
    "Scores that repeat are discrete or rounded, and have no density. Give resolution=h, the step of the scores "
    "(1 for integers): the estimate is then that of the scores rounded to multiples of h. Or count the values and "
    "use pse.plug_in."
)


def knn_divergence(genuine: npt.ArrayLike, impostor: npt.ArrayLike, k: int = 1) -> float:
    """Return the k-nearest-neighbour estimate of D(f_G || f_I) in bits: a number, without interval.

    The estimate is mean_i log2(nu_i / rho_i) + log2(m / (n - 1)). rho_i is the distance of the genuine score x_i to the
    k-th nearest of the other n - 1 genuine scores, nu_i to the k-th nearest of the m impostor scores. `genuine` (n,)
    and `impostor` (m,) have densities f_G and f_I. It may be negative, and converges to D as n and m grow. If the two
    distributions hardly overlap, it converges slowly, from below (see `trend`). Time O((n + m) log(n + m)) for fixed k.

    Raises:
        InvalidInputError: not two lists of finite numbers with n > k and m >= k.
        NumericalError: scores repeat, so that a distance is 0.

    Source: Wang, Kulkarni, Verdu 2009, equation (5); docs/theory/identity.md, Lemma 8.

    >>> import hushuffle as hs
    >>> hs.pse.knn_divergence([4.0, 6.0], [1.0, 9.0])
    1.584962500721156
    """
    ours = np.sort(scores_of("genuine", genuine))
    others = np.sort(scores_of("impostor", impostor))
    return sorted_divergence(ours, others, _checks.integer("k", k, low=1))


def scores_of(name: str, values: npt.ArrayLike) -> Floats:
    """Return `values` as a one-dimensional array of finite numbers; error messages contain no score."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        _checks.reject(name, "a one-dimensional array of finite numbers", f"<{array.dtype}, shape {array.shape}>")
    return array.astype(np.float64, copy=False)


def sorted_divergence(genuine: Floats, impostor: Floats, k: int) -> float:
    """Return the estimate of `knn_divergence` from scores in ascending order."""
    if genuine.size <= k or impostor.size < k:
        rule = f"more than k={k} genuine scores and at least as many impostor scores"
        _checks.reject("genuine, impostor", rule, f"<{genuine.size} and {impostor.size} scores>")
    among = np.full(genuine.size, np.inf)
    for before in range(k + 1):
        # the window from position i - before to i - before + k
        width = genuine.size - k
        inside = slice(before, before + width)
        reach = np.maximum(genuine[inside] - genuine[:width], genuine[k:] - genuine[inside])
        np.minimum(among[inside], reach, out=among[inside])
    across = _distances_to(genuine, impostor, k)
    zeros = np.count_nonzero(among == 0), np.count_nonzero(across == 0)
    if any(zeros):
        message = (
            f"Of {genuine.size:,} genuine scores, {zeros[0]:,} have at least {k} others, and {zeros[1]:,} at least "
            f"{k} impostor scores, at distance 0: the nearest-neighbour estimate does not exist. {_TIES}"
        )
        raise NumericalError(message)
    total = sum(
        float(np.log2(across[start : start + _BLOCK] / among[start : start + _BLOCK]).sum())
        for start in range(0, genuine.size, _BLOCK)
    )
    return total / genuine.size + float(np.log2(impostor.size / (genuine.size - 1)))


def _distances_to(points: Floats, others: Floats, k: int) -> Floats:
    """Return each point's distance to its k-th nearest of `others`; both ascending."""
    edge = np.full(k, np.inf)
    padded = np.concatenate((-edge, others, edge))
    position = np.searchsorted(others, points) + k  # padded[position - 1] < point <= padded[position]
    nearest = np.full(points.size, np.inf)
    for before in range(k + 1):
        low = position - before
        reach = (
            np.maximum(points - padded[low], padded[low + k - 1] - points) if before else padded[low + k - 1] - points
        )
        if before == k:
            reach = points - padded[low]
        np.minimum(nearest, reach, out=nearest)
    return nearest


MILLER: Final = Citation(
    key="miller1955",
    text="G. A. Miller, Note on the bias of information estimates, Information Theory in Psychology (1955)",
)

Counts = npt.NDArray[np.int64]


def plug_in(genuine_counts: npt.ArrayLike, impostor_counts: npt.ArrayLike, *, confidence: float = 0.95) -> Bound:
    """Return an interval in bits for D(f_G || f_I) from counts of genuine (f_G) and impostor (f_I) scores of K values.

    `genuine_counts[v]` and `impostor_counts[v]`, shape (K,), count value v among n and m independent scores; p and q
    are the shares. The estimate is sum p log p/q, less its bias (Miller, Madow) (K' - 1)/(2n) + (sum p/q - 1)/(2m) nats
    with K' values where p > 0. The normal interval has variance Var_p(log p/q)/n + Var_q(p/q)/m + (K'-1)(1/n+1/m)^2/2.

    Raises:
        InvalidInputError: not two lists of counts of one length, or nothing counted.
        NumericalError: a genuine score has a value that no impostor score has: the estimate is infinite.

    Source: Miller 1955; the other terms by the delta method; docs/theory/identity.md, Lemma 8.

    >>> import hushuffle as hs
    >>> print(hs.pse.plug_in([10, 90], [900, 100]))
    2.079 to 2.966 bits (95% interval)
    """
    ours, others = _counts("genuine_counts", genuine_counts), _counts("impostor_counts", impostor_counts)
    if ours.size != others.size:
        _checks.reject("genuine_counts, impostor_counts", "of one length", (ours.size, others.size))
    sure = _checks.probability("confidence", confidence, low_open=True, high_open=True)
    seen = ours > 0
    if np.any(others[seen] == 0):
        alone = int(ours[others == 0].sum())
        message = (
            f"{alone:,} of {ours.sum():,} genuine scores have values that no impostor score has: the estimate is "
            "infinite. Merge values until every value has impostor scores (pse.score_counts does), which can "
            "only lower the divergence."
        )
        raise NumericalError(message)
    n, m = float(ours.sum()), float(others.sum())
    p, q = ours[seen] / n, others[seen] / m
    loss, ratio = np.log(p / q), p / q
    value, spread = float(p @ loss), float(p @ ratio) - 1  # spread: the chi-squared divergence
    bias = (p.size - 1) / (2 * n) + (float(ratio.sum()) - 1) / (2 * m)
    variance = float(p @ (loss - value) ** 2) / n + max(spread, 0.0) / m + (p.size - 1) * (1 / n + 1 / m) ** 2 / 2
    half = float(ndtri((1 + sure) / 2)) * math.sqrt(variance)
    lower, upper = (max(0.0, (value - bias + sign * half) / math.log(2)) for sign in (-1, 1))
    sources = (MILLER, PIE.at("Theorem 3.2"))
    return Bound(lower=lower, upper=upper, kind="estimate", unit="bits", confidence=sure, sources=sources)


def score_counts(
    genuine: npt.ArrayLike, impostor: npt.ArrayLike, *, resolution: float = 1.0, least: int = 10
) -> tuple[Counts, Counts]:
    """Count genuine and impostor scores in cells, for `plug_in`; return the two arrays of counts.

    Scores are rounded to multiples of `resolution`. From the lowest value up, values are merged until each cell has at
    least `least` impostor scores; the remaining values join the last cell. Rounding and merging only lower the
    divergence (data processing), by much if most genuine scores are above every impostor score.

    Raises:
        InvalidInputError: not lists of finite numbers, fewer than `least` impostor scores, or no genuine score.

    Source: docs/theory/identity.md, Lemma 8.

    >>> import hushuffle as hs
    >>> [counts.tolist() for counts in hs.pse.score_counts([3, 7, 9, 9], [1, 1, 2, 3, 3, 3], least=2)]
    [[0, 4], [2, 4]]
    """
    step, fewest = _checks.positive("resolution", resolution), _checks.integer("least", least, low=1)
    ours, others = scores_of("genuine", genuine), scores_of("impostor", impostor)
    if not ours.size or others.size < fewest:
        rule = f"at least 1 genuine score and {fewest} impostor scores"
        _checks.reject("genuine, impostor", rule, f"<{ours.size} and {others.size} scores>")
    values, where = np.unique(np.rint(np.concatenate((ours, others)) / step), return_inverse=True)
    by_value = [np.bincount(part, minlength=values.size) for part in np.split(where, [ours.size])]
    starts, held = [0], 0
    for position, count in enumerate(by_value[1].tolist()):
        if held >= fewest and by_value[1][position:].sum() >= fewest:
            starts.append(position)
            held = 0
        held += count
    merged = [np.add.reduceat(part, starts).astype(np.int64) for part in by_value]
    return merged[0], merged[1]


def gaussian_divergence(genuine: tuple[float, float], impostor: tuple[float, float]) -> float:
    """Return D(N(a, s^2) || N(b, t^2)) in bits; the arguments are (a, s) and (b, t).

    Raises:
        InvalidInputError: a standard deviation is not finite and > 0.

    Source: docs/theory/identity.md, Lemma 8.

    >>> import hushuffle as hs
    >>> round(hs.pse.gaussian_divergence((5.064, 1.0), (0.0, 1.0)), 1)
    18.5
    """
    s = _checks.positive("genuine[1]", genuine[1])
    t = _checks.positive("impostor[1]", impostor[1])
    return (math.log(t / s) + (s * s + (genuine[0] - impostor[0]) ** 2) / (2 * t * t) - 0.5) / math.log(2)


def _counts(name: str, values: npt.ArrayLike) -> Counts:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any() or not array.sum():
        _checks.reject(name, "a list of counts, not all 0", f"<{array.dtype}, shape {array.shape}>")
    return array.astype(np.int64, copy=False)
