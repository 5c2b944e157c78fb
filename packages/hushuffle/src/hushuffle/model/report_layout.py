"""`ReportLayout`: reports as columns of small integers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushuffle import _checks

Packed = npt.NDArray[np.void]
"""Reports as records, shape (n,), of the smallest suitable type, `ReportLayout.dtype`."""


@dataclass(frozen=True, kw_only=True)
class ReportLayout:
    """The columns of reports: integers from 0 to `limits[i]` - 1 in the column `names[i]`.

    >>> ReportLayout(names=("hash", "bucket"), limits=(70_000, 4)).dtype.itemsize
    5
    """

    names: tuple[str, ...]
    limits: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.limits) or len(set(self.names)) != len(self.names):
            _checks.reject("names, limits", "one limit for each name, without repetitions", (self.names, self.limits))
        for limit in self.limits:
            _checks.integer("limits", limit, low=1, high=2**63)

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The type of one packed report: the smallest unsigned integer for each column."""
        return np.dtype(
            [(name, np.min_scalar_type(limit - 1)) for name, limit in zip(self.names, self.limits, strict=True)]
        )

    @property
    def bits(self) -> float:
        """The size of one report in bits: log2 of the number of distinct reports.

        >>> ReportLayout(names=("hash", "bucket"), limits=(65_536, 4)).bits
        18.0
        """
        return math.fsum(map(math.log2, self.limits))

    def pack(self, reports: npt.NDArray[np.int64]) -> Packed:
        """Pack reports of shape (n,) or (n, columns) into an array with one record per report."""
        rows = reports if reports.ndim == 2 else reports[:, np.newaxis]
        packed = np.empty(rows.shape[0], dtype=self.dtype)
        for position, name in enumerate(self.names):
            packed[name] = rows[:, position]
        return packed

    def unpack(self, packed: Packed) -> npt.NDArray[np.int64]:
        """Return packed reports in the form that randomizers return: shape (n,) for one column, else (n, columns)."""
        if len(self.names) == 1:
            return packed[self.names[0]].astype(np.int64)
        return np.stack([packed[name].astype(np.int64) for name in self.names], axis=1)

    def columns(self, packed: Packed) -> dict[str, npt.NDArray[np.unsignedinteger]]:
        return {name: np.ascontiguousarray(packed[name]) for name in self.names}
