"""`Histogram`, `Transcript`, `Estimate`: the release of the shuffler, and the frequencies estimated from it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.model import notebook

_SHOWN: Final = 20
"""The largest number of values that a notebook shows for an estimate."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """The number of reports for each value, shape (k,). `+` merges the histograms of two disjoint groups of people.

    With `noisy`, servers added noise to the numbers, so they may be negative.

    >>> import hushuffle as hs
    >>> print(hs.Histogram(counts=[3, 4]) + hs.Histogram(counts=[1, 0]))
    Histogram(4, 4)
    """

    counts: npt.NDArray[np.int64]
    noisy: bool

    def __init__(self, *, counts: npt.ArrayLike, noisy: bool = False) -> None:
        array = np.array(counts)
        if array.ndim != 1 or array.size < 1 or not np.issubdtype(array.dtype, np.integer):
            _checks.reject("counts", "a one-dimensional array of integers", f"<shape {array.shape}, {array.dtype}>")
        if (int(array.min()) < 0 and not noisy) or int(array.max()) >= 2**63:
            _checks.reject("counts", "from 0 to 2**63 - 1", int(array.min() if array.min() < 0 else array.max()))
        array = array.astype(np.int64)
        array.flags.writeable = False
        _checks.set_fields(self, counts=array, noisy=noisy)

    @property
    def total(self) -> int:
        """Sum of the counts."""
        return int(self.counts.sum())

    @property
    def k(self) -> int:
        """Number of values."""
        return self.counts.size

    def __add__(self, other: Histogram) -> Histogram:
        if self.k != other.k:
            _checks.reject("other", f"a histogram of {self.k} values", other.k)
        return Histogram(counts=self.counts + other.counts, noisy=self.noisy or other.noisy)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # an array is not hashable

    def __repr__(self) -> str:
        return f"Histogram({', '.join(str(count) for count in self.counts[:12])}{', ...' if self.k > 12 else ''})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Transcript:
    """The release of the shuffler: `reports`, shape (people + dummies, ...), in released order."""

    reports: npt.NDArray[np.int64]
    people: int
    dummies: int = 0

    def __post_init__(self) -> None:
        _checks.integer("people", self.people, low=1)
        _checks.integer("dummies", self.dummies, low=0)
        object.__setattr__(self, "reports", np.atleast_1d(self.reports))
        if self.reports.shape[0] != self.people + self.dummies:
            _checks.reject(
                "reports", f"{self.people + self.dummies} rows (people and dummies)", f"<shape {self.reports.shape}>"
            )

    def __repr__(self) -> str:
        return f"Transcript(people={self.people}, dummies={self.dummies})"


def released_reports(reports: Transcript | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the reports of a transcript or an array, one a row."""
    return reports.reports if isinstance(reports, Transcript) else np.atleast_1d(reports)


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """Unbiased estimates of the frequencies of the people's values, shape (k,), with the variances of the estimates.

    The variance of `frequencies[x]` when the true frequency is p is `variance_intercept + variance_slope * p`, over the
    randomness of the randomizers, for fixed values of the people. If the variance also depends on the frequencies of
    other values, `variance_matrix`, shape (k, k), times the true frequencies is added. Estimates may be negative or
    exceed 1: they are not clipped, since clipping biases them. Post-processing (`hushuffle.estimation`) returns another
    `Estimate` that names the method in `postprocessing`; its standard errors and intervals still describe the unbiased
    `raw` frequencies.
    """

    frequencies: npt.NDArray[np.float64]
    n: int
    variance_intercept: float
    variance_slope: float
    raw: npt.NDArray[np.float64]
    postprocessing: tuple[str, ...] = ()
    variance_matrix: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.variance_matrix is not None and self.variance_matrix.shape != (self.raw.size, self.raw.size):
            _checks.reject("variance_matrix", "a (k, k) array", f"<shape {self.variance_matrix.shape}>")
        if self.frequencies.ndim != 1 or self.frequencies.shape != self.raw.shape:
            _checks.reject("frequencies", "a (k,) array like raw", f"<shape {self.frequencies.shape}>")

    @property
    def k(self) -> int:
        """Number of values."""
        return self.frequencies.size

    @property
    def standard_errors(self) -> npt.NDArray[np.float64]:
        """Square root of the unbiased variance estimate at the raw frequencies, shape (k,)."""
        variance = self.variance_intercept + self.variance_slope * self.raw
        if self.variance_matrix is not None:
            variance = variance + self.variance_matrix @ self.raw
        return np.sqrt(np.maximum(variance, 0.0))

    @property
    def variances_if_absent(self) -> npt.NDArray[np.float64]:
        """Each estimate's variance if its true frequency is 0 and all others are as estimated, shape (k,)."""
        return self._line[0]

    @property
    def _line(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """(a, b), shape (k,) each: an estimate's variance is a + b p at true frequency p, other values as estimated."""
        intercept, slope = np.full(self.k, self.variance_intercept), np.full(self.k, self.variance_slope)
        if self.variance_matrix is None:
            return intercept, slope
        held = np.maximum(self.raw, 0.0) + 1.0 / self.n  # one person is added to each value: no frequency is 0
        own = np.diag(self.variance_matrix)
        others = (self.variance_matrix @ held - own * held) / (held.sum() - held)
        return intercept + others, slope + own - others

    def interval(self, confidence: float = 0.95) -> npt.NDArray[np.float64]:
        """Return score intervals for the true frequencies, shape (k, 2), each at `confidence`.

        The interval contains every p with |raw - p| <= z sqrt(variance at p) (normal approximation
        of the count). The variance is evaluated at p, not at the estimate, so coverage stays valid near 0 and 1.
        If the variance depends on the frequencies of other values, their estimates are used. Intervals are clipped
        to [0, 1], which loses no coverage.

        Source: the score interval of E. B. Wilson (1927) for a mixture of two success rates.
        """
        level = _checks.probability("confidence", confidence, low_open=True, high_open=True)
        z = NormalDist().inv_cdf(0.5 + level / 2)
        a, b = (z * z * part for part in self._line)
        centre = self.raw + b / 2
        half = np.sqrt(np.maximum(centre**2 - self.raw**2 + a, 0.0))
        return np.clip(np.stack([centre - half, centre + half], axis=1), 0.0, 1.0)

    def _repr_html_(self) -> str:
        ends = self.interval().tolist()
        order = np.argsort(-self.frequencies, kind="stable")[:_SHOWN].tolist()
        rows = [
            (
                str(value),
                f"{self.frequencies[value]:.4f}",
                f"{self.standard_errors[value]:.4f}",
                f"{ends[value][0]:.4f} to {ends[value][1]:.4f}",
            )
            for value in order
        ]
        left = f" {self.k - len(rows):,} smaller shares are not shown." if self.k > len(rows) else ""
        done = f" After {', '.join(self.postprocessing)}." if self.postprocessing else ""
        people = f"{self.n:,} people; 95 % confidence intervals.{done}{left}"
        return notebook.table(("value", "share", "standard error", "interval"), rows, more=people)

    def __repr__(self) -> str:
        done = f", postprocessing={self.postprocessing}" if self.postprocessing else ""
        return f"Estimate(k={self.k}, n={self.n}{done})"
