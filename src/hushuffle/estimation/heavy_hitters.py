"""Heavy hitters: the values that somebody holds, told from noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.curves.readout import counted

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.model import Estimate


@dataclass(frozen=True, kw_only=True, eq=False)
class HeavyHitters:
    """Values whose reports are more than noise, the most frequent first.

    `values` are codes, shape (m,); `frequencies` their unbiased estimates, shape (m,); `intervals` hold the true
    frequencies of all k values at once with probability about 1 - `level` (normal approximation), so that having
    been selected does not spoil them, shape (m, 2). `threshold` is the smallest estimate that counts.
    """

    values: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.float64]
    intervals: npt.NDArray[np.float64]
    threshold: float
    level: float

    def among(self, k: int) -> npt.NDArray[np.bool_]:
        """Return for each of the k values whether it is one of them, shape (k,)."""
        return np.isin(np.arange(k), self.values)

    def __len__(self) -> int:
        return self.values.size

    def __repr__(self) -> str:
        return f"HeavyHitters({len(self)} values above {self.threshold:.4g}, level={self.level:g})"


def heavy_hitters(
    estimate: Estimate, *, protocol: Protocol, level: float = 0.05, top: int | None = None
) -> HeavyHitters:
    """Return the values whose frequency exceeds 0 significantly, at most `top` of them.

    The probability that any value which nobody holds is among them is at most `level` (Bonferroni over the k
    values): a value is listed if such an estimate would come, were it held by nobody, with probability at most
    level / k. Where reports support values, it comes from a sum of independent coins, whose tail is computed exactly:
    it holds for any n and k, also where a value expects fewer than one false report and a normal threshold lets noise
    pass. Reports that are read by a matrix have a bound of that tail, for any values of the others (Chernoff).

    Args:
        estimate: what `estimate` returned; its `raw` frequencies are used.
        protocol: the protocol that produced it, with a random number of dummies `protocol.with_dummies(number)`.
        level: family-wise error allowed, in (0, 1).
        top: keep the most frequent ones only; None keeps all.

    Raises:
        InvalidInputError: an argument out of range, or an estimate of another number of values or people.
        UnsupportedProtocolError: the randomizer's reports cannot be counted, or the number of dummies is not said.

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
    kept = np.flatnonzero(estimate.raw > thresholds - read.slack / n)
    order = kept[np.argsort(-estimate.raw[kept], kind="stable")][:most]
    return HeavyHitters(
        values=order.astype(np.int64),
        frequencies=estimate.raw[order],
        intervals=estimate.interval(1 - wanted / k)[order],
        threshold=float(thresholds.min()),
        level=wanted,
    )
