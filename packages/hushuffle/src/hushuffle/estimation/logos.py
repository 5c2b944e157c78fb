"""Estimate without bias how many columns of Bloom filters had each bit pattern before flipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.mechanisms.randomizers import Bits
from hushuffle.mechanisms.sketches import per_bit
from hushuffle.mechanisms.sketches.filters import MOST_COUNTED
from hushuffle.model import Histogram, Transcript, released_reports

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol

Reports = Transcript | npt.NDArray[np.int64] | Histogram

_DENSE = 10
_QUESTION = "Reach estimation"


@dataclass(frozen=True, kw_only=True, eq=False)
class LogoEstimate:
    """Unbiased estimates d_hat = P^-1 x of how many columns had each bit pattern, shape (2**k,); x: released counts.

    P is the transition matrix of the flips, d the true counts. The errors are over the flips, with covariance P^-1 B
    P^-1, where B = diag(P^T d) - P^T diag(d) P is the covariance of x. Its unbiased estimate, with d_hat in the place
    of d, is P^-1 diag(x) P^-1 - diag(d_hat). Counts may be negative: they are not clipped.

    Source: docs/theory/estimation.md, Theorem 6.
    """

    counts: Floats
    released: npt.NDArray[np.int64]
    flip: float

    @property
    def publishers(self) -> int:
        """Number k of publishers, each with one filter."""
        return self.counts.size.bit_length() - 1

    @property
    def standard_errors(self) -> Floats:
        """The standard error of each count over the flips, shape (2**k,); a negative variance estimate counts as 0."""
        return np.sqrt(
            np.maximum(per_bit(inverse(self.flip) ** 2, self.released.astype(np.float64)) - self.counts, 0.0)
        )

    def covariance_times(self, vector: npt.ArrayLike) -> Floats:
        """Return the covariance matrix of the counts times `vector`, shape (2**k,), in O(k 2**k).

        Raises:
            InvalidInputError: `vector` has another length.
        """
        v = np.asarray(vector, dtype=np.float64)
        if v.shape != self.counts.shape:
            _checks.reject("vector", f"of shape {self.counts.shape}", f"<shape {v.shape}>")
        back = inverse(self.flip)
        return per_bit(back, self.released * per_bit(back, v)) - self.counts * v

    def covariance(self) -> Floats:
        """Return the covariance matrix of the counts, shape (2**k, 2**k); k <= 10.

        Raises:
            UnsupportedProtocolError: k > 10.
        """
        if self.publishers > _DENSE:
            _checks.unsupported(
                f"The matrix for k = {self.publishers} has 4**k entries. Use `covariance_times`, or k <= {_DENSE}."
            )
        back = inverse(self.flip)
        half = per_bit(back, np.eye(self.counts.size))
        return per_bit(back, self.released[:, None] * half) - np.diag(self.counts)

    def __repr__(self) -> str:
        return f"LogoEstimate(publishers={self.publishers}, columns={int(self.released.sum())}, flip={self.flip:.4g})"


def true_logos(reports: Reports, *, protocol: Protocol) -> LogoEstimate:
    """Return unbiased estimates of how many columns had each bit pattern before flipping; k <= 20 publishers.

    Args:
        reports: a `Transcript`, its reports as an array of bit patterns, shape (m,), or their counts (a `Histogram`
            of 2**k values, for example `hushuffle.mechanisms.sketches.logo_counts(filters)`).
        protocol: the protocol that produced them: `BitFlipping(width=k, p=p)`, n = m columns.

    Raises:
        InvalidInputError: there are not n reports, or a bit pattern is out of range.
        UnsupportedProtocolError: another randomizer, dummies, or more than 20 publishers.

    Source: docs/theory/estimation.md, Theorem 6.

    >>> import hushuffle as hs
    >>> columns = hs.Protocol(randomizer=hs.BitFlipping(width=1, p=0.1), shuffler=hs.UniformShuffle(), n=100)
    >>> found = true_logos(hs.Histogram(counts=[74, 26]), protocol=columns)
    >>> found.counts.round(6).tolist(), found.standard_errors.round(4).tolist()
    ([80.0, 20.0], [3.75, 3.75])
    """
    bits = flipping(protocol)
    counts = marginal(reports, protocol=protocol, publishers=tuple(range(bits.width)))
    flip = float(bits.flip)
    return LogoEstimate(counts=per_bit(inverse(flip), counts.astype(np.float64)), released=counts, flip=flip)


def inverse(flip: float) -> Floats:
    """Return the inverse of the flipping matrix [[q, p], [p, q]], q = 1 - p, shape (2, 2)."""
    keep = 1 - flip
    return np.array([[keep, -flip], [-flip, keep]]) / (keep - flip)


def flipping(protocol: Protocol) -> Bits:
    """Return the distribution of a column of Bloom filters; raise `UnsupportedProtocolError` for other protocols."""
    bits = protocol.randomizer.law().flipped
    if bits is None:
        _checks.unsupported(f"{_QUESTION} needs the randomizer BitFlipping, not {type(protocol.randomizer).__name__}.")
    if protocol.shuffler.dummies:
        _checks.unsupported(f"{_QUESTION} does not support dummy columns. Use UniformShuffle().")
    return bits


def marginal(reports: Reports, *, protocol: Protocol, publishers: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return how many reports show each bit pattern of these publishers only, shape (2**len(publishers),)."""
    width = flipping(protocol).width
    if len(publishers) > MOST_COUNTED:
        _checks.unsupported(
            f"{_QUESTION} takes at most {MOST_COUNTED} publishers at a time, got {len(publishers)}. Pass fewer."
        )
    if isinstance(reports, Histogram):
        if reports.k != 1 << width:
            _checks.reject("reports", f"counts of 2**{width} bit patterns", reports.k)
        if reports.total != protocol.n:
            _checks.reject("reports", f"n = {protocol.n} columns in all", reports.total)
        others = tuple(width - 1 - each for each in range(width) if each not in publishers)
        # Axis j is publisher width - 1 - j.
        marginal: npt.NDArray[np.int64] = reports.counts.reshape((2,) * width).sum(axis=others)
        falling = sorted(publishers, reverse=True)
        return marginal.transpose([falling.index(each) for each in reversed(publishers)]).reshape(-1)
    logos = _checks.codes("reports", released_reports(reports), k=1 << width)
    if logos.size != protocol.n:
        _checks.reject("reports", f"n = {protocol.n} bit patterns", f"<{logos.size} bit patterns>")
    chosen = np.zeros_like(logos)
    for place, publisher in enumerate(publishers):
        chosen |= (logos >> publisher & 1) << place
    return np.bincount(chosen, minlength=1 << len(publishers))
