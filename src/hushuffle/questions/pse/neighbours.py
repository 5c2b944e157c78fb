"""The nearest-neighbour estimate of a divergence in one dimension, by sorting."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import NumericalError

Floats = npt.NDArray[np.float64]

_BLOCK: Final = 1 << 16
_TIES: Final = (
    "Scores that repeat are discrete or rounded, and have no density. Give resolution=h, the step of the scores "
    "(1 for integers): the estimate is then that of the scores rounded to multiples of h. Or count the values and "
    "use pse.plug_in."
)


def knn_divergence(genuine: npt.ArrayLike, impostor: npt.ArrayLike, k: int = 1) -> float:
    """Return the k-nearest-neighbour estimate of D(f_G || f_I) in bits: a number, without interval.

    mean_i log2(nu_i / rho_i) + log2(m / (n - 1)): rho_i is the distance of the genuine score x_i to its k-th
    nearest of the other n - 1 genuine scores, nu_i to its k-th nearest of the m impostor scores. `genuine` has
    shape (n,), `impostor` (m,). Time O((n + m) log(n + m)) for fixed k. It may come out below 0. It converges to D as
    n and m grow, from below where the two laws hardly overlap, and then slowly: see `trend`.

    Raises:
        InvalidInputError: not two lists of finite numbers with n > k and m >= k.
        NumericalError: a distance is 0: scores repeat.

    Source: Wang, Kulkarni, Verdu 2009, equation (5); theory.md section 4.

    >>> knn_divergence([4.0, 6.0], [1.0, 9.0])
    1.584962500721156
    """
    ours = np.sort(scores_of("genuine", genuine))
    others = np.sort(scores_of("impostor", impostor))
    return sorted_divergence(ours, others, _checks.integer("k", k, low=1))


def scores_of(name: str, values: npt.ArrayLike) -> Floats:
    """Return `values` as a one-dimensional array of finite numbers; the message shows none of them."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        _checks.reject(name, "a one-dimensional array of finite numbers", f"<{array.dtype}, shape {array.shape}>")
    return array.astype(np.float64, copy=False)


def sorted_divergence(genuine: Floats, impostor: Floats, k: int) -> float:
    """Return the estimate from scores in ascending order."""
    if genuine.size <= k or impostor.size < k:
        rule = f"more than k={k} genuine scores and at least as many impostor scores"
        _checks.reject("genuine, impostor", rule, f"<{genuine.size} and {impostor.size} scores>")
    among = _distances_within(genuine, k)
    across = _distances_to(genuine, impostor, k)
    zeros = np.count_nonzero(among == 0), np.count_nonzero(across == 0)
    if any(zeros):
        message = (
            f"of {genuine.size:,} genuine scores, {zeros[0]:,} have at least {k} others, and {zeros[1]:,} at least "
            f"{k} impostor scores, at distance 0: the nearest-neighbour estimate does not exist. {_TIES}"
        )
        raise NumericalError(message)
    total = sum(
        float(np.log2(across[start : start + _BLOCK] / among[start : start + _BLOCK]).sum())
        for start in range(0, genuine.size, _BLOCK)
    )
    return total / genuine.size + float(np.log2(impostor.size / (genuine.size - 1)))


def _distances_within(points: Floats, k: int) -> Floats:
    """Return each point's distance to its k-th nearest other: the k + 1 neighbours in order that hold it, tightest."""
    nearest = np.full(points.size, np.inf)
    for before in range(k + 1):
        # the window from position i - before to i - before + k
        width = points.size - k
        inside = slice(before, before + width)
        reach = np.maximum(points[inside] - points[:width], points[k:] - points[inside])
        np.minimum(nearest[inside], reach, out=nearest[inside])
    return nearest


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
