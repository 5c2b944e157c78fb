"""`TraceReports`: what the collector receives of many people, each event randomized on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import HasSymmetricLaw, LocalHashing, Randomizer, Symmetric
from hushuffle.model.traces import Traces
from hushuffle.randomness import Randomness, secure

_CELLS: Final = 1 << 22
"""Pairs of value and report looked at together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceReports:
    """Randomized events of n people, in order: those of person i are `reports[offsets[i]:offsets[i + 1]]`.

    The reports of one person are known to belong together (a pseudonym). `reports` has shape (total,), or
    (total, w) for local hashing; see `randomize`.
    """

    reports: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    randomizer: Randomizer

    @property
    def n(self) -> int:
        """Number of people."""
        return self.offsets.size - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of reports of each person, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def k(self) -> int:
        """Number of values an event can have."""
        return self.randomizer.inputs

    def __repr__(self) -> str:
        return f"TraceReports(n={self.n}, randomizer={self.randomizer!r})"

    def law(self) -> Symmetric:
        """Return the chances that a report supports the true value's class (`truth`) and any other one (`lie`).

        With randomized response the classes are the values, with local hashing the buckets of the report's hash.
        """
        if isinstance(self.randomizer, LocalHashing):
            return self.randomizer.bucket_law()
        assert isinstance(self.randomizer, HasSymmetricLaw)
        return self.randomizer.symmetric_law()

    def supports(self, at: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether value x is in the class that report `at[i]` names, shape (values.size, at.size).

        The likelihood of a report given its event is `truth` of `law` where it does, else `lie`, up to a constant.
        """
        rows = self.reports[at]
        if not isinstance(self.randomizer, LocalHashing):
            same: npt.NDArray[np.bool_] = values[:, None] == rows
            return same
        hashes, buckets = np.tile(rows[:, :-1], (values.size, 1)), rows[:, -1]
        sent = self.randomizer.hashes.buckets(hashes, np.repeat(values, at.size)).reshape(values.size, at.size)
        supported: npt.NDArray[np.bool_] = sent == buckets
        return supported

    def supported(self) -> npt.NDArray[np.int64]:
        """Return how many of the k values each report supports, shape (total,)."""
        at = np.arange(self.reports.shape[0])
        if not isinstance(self.randomizer, LocalHashing):
            return np.ones_like(at)
        found, together = np.zeros_like(at), max(1, _CELLS // max(at.size, 1))
        for start in range(0, self.k, together):
            found += self.supports(at, np.arange(start, min(start + together, self.k))).sum(axis=0)
        return found

    def as_traces(self) -> Traces:
        """Return the reported values as if they were events (randomized response only).

        Raises:
            UnsupportedProtocolError: the reports are no values.
        """
        if isinstance(self.randomizer, LocalHashing):
            message = "Reports of local hashing are no values: they cannot be read as events."
            raise UnsupportedProtocolError(message)
        return Traces(events=self.reports, offsets=self.offsets, k=self.k)


def randomize(traces: Traces, *, randomizer: Randomizer, rng: Randomness | None = None) -> TraceReports:
    """Return the reports of people who randomize every event of their traces with coins of its own.

    Raises:
        InvalidInputError: the randomizer is over another number of values than the traces.
        UnsupportedProtocolError: it is neither randomized response nor local hashing.

    Source: Murakami, Takahashi 2021, sections 4.2 to 4.4.

    >>> import hushuffle as hs
    >>> walks = Traces.of([[0, 1, 0, 2], [1, 1]], k=3)
    >>> silent = randomize(walks, randomizer=hs.RandomizedResponse(k=3, epsilon=float("inf")))
    >>> silent.reports.tolist()
    [0, 1, 0, 2, 1, 1]
    """
    if not isinstance(randomizer, HasSymmetricLaw | LocalHashing):
        message = f"Linkage needs randomized response or local hashing, which {type(randomizer).__name__} is not."
        raise UnsupportedProtocolError(message)
    if randomizer.inputs != traces.k:
        _checks.reject("randomizer", f"over the {traces.k} values of the traces", randomizer.inputs)
    reports = randomizer.randomize(traces.events, rng=secure() if rng is None else rng)
    return TraceReports(reports=reports, offsets=traces.offsets, randomizer=randomizer)
