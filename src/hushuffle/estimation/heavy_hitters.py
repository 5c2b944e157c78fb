"""Heavy hitters: the values whose frequency is statistically significant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.estimation.readout import counted

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.model import Estimate


@dataclass(frozen=True, kw_only=True, eq=False)
class HeavyHitters:
    """Values whose frequency is statistically significant, the most frequent first.

    `values` are codes, shape (m,); `frequencies` their unbiased estimates, shape (m,). `intervals`, shape (m, 2),
    hold the true frequencies of all k values at once with probability about 1 - `level` (normal approximation), so
    selection does not invalidate them. `threshold` is the smallest significant estimate.
    """

    values: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.float64]
    intervals: npt.NDArray[np.float64]
    threshold: float
    level: float

    def among(self, k: int) -> npt.NDArray[np.bool_]:
        """Return, for each of the k values, whether its frequency is significant, shape (k,)."""
        return np.isin(np.arange(k), self.values)

    def __len__(self) -> int:
        return self.values.size

    def __repr__(self) -> str:
        return f"HeavyHitters({len(self)} values above {self.threshold:.4g}, level={self.level:g})"


def heavy_hitters(
    estimate: Estimate, *, protocol: Protocol, level: float = 0.05, top: int | None = None
) -> HeavyHitters:
    """Return the values whose frequency is significantly above 0, at most `top` of them.

    The probability that any value of frequency 0 is listed is at most `level` (Bonferroni over the k values). A
    value is listed if an estimate this large has probability at most level / k at frequency 0. If reports support
    values, the estimate is a sum of independent Bernoulli trials and its tail is exact. The test is then valid for
    any n and k, even if the normal approximation fails. Otherwise a Chernoff bound of the tail is used, which holds
    for any values of the other people.

    Args:
        estimate: the result of `hushuffle.estimate`; its `raw` frequencies are used.
        protocol: the protocol that produced the reports; if dummies are random, `protocol.with_dummies(number)`.
        level: family-wise error rate allowed, in (0, 1).
        top: the largest number of values to return; None returns all.

    Raises:
        InvalidInputError: an argument is out of range, or the estimate has another number of values or people.
        UnsupportedProtocolError: the randomizer's reports cannot be counted, or the number of dummies is not fixed.

    Source: Erlingsson, Pihur, Korolova 2014 (Bonferroni); docs/theory/estimation.md, Theorems 5 and 11.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(
    ...     randomizer=hs.LocalHashing(k=1000, g=8, epsilon=3.0), shuffler=hs.UniformShuffle(), n=5000
    ... )
    >>> values = np.where(np.arange(5000) < 1500, 7, np.arange(5000) % 1000)
    >>> reports = survey.collect(values, rng=hs.reproducible(1))
    >>> heavy_hitters(hs.estimate(reports, protocol=survey), protocol=survey).values.tolist()
    [7]
    """
    wanted = _checks.probability("level", level, low_open=True, high_open=True)
    read, others = counted(protocol)
    n, dummies, k = protocol.n, int(others), protocol.randomizer.inputs
    if (estimate.k, estimate.n) != (k, n):
        _checks.reject("estimate", f"of {k} values of {n} people", f"<{estimate.k} values of {estimate.n} people>")
    most = k if top is None else _checks.integer("top", top, low=1)
    thresholds = read.thresholds(n=n, dummies=dummies, chance=wanted / k)
    significant = np.flatnonzero(estimate.raw > thresholds - read.slack / n)
    order = significant[np.argsort(-estimate.raw[significant], kind="stable")][:most]
    return HeavyHitters(
        values=order.astype(np.int64),
        frequencies=estimate.raw[order],
        intervals=estimate.interval(1 - wanted / k)[order],
        threshold=float(thresholds.min()),
        level=wanted,
    )
