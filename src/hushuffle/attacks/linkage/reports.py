"""`TraceReports`: the randomized events of many people, as the collector receives them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.randomizers import Mechanism, symmetric_law
from hushuffle.model.traces import Traces
from hushuffle.randomness import Randomness, secure


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceReports:
    """Randomized events of n people, in order; the reports of person i are `reports[offsets[i]:offsets[i + 1]]`.

    The collector knows which reports belong to one person (a pseudonym). `reports` has shape (total,), or
    (total, columns) if a report has several columns; see `randomize`.
    """

    reports: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    randomizer: Mechanism

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

    def likelihoods(
        self, at: npt.NDArray[np.int64], values: npt.NDArray[np.int64], *, believed: bool
    ) -> npt.NDArray[np.float64]:
        """Return Q(report at[i] | x), shape (values.size, at.size), up to a factor that depends only on the report.

        With `believed`, noise is ignored: the likelihood is 1 if the report supports x, else 0.
        """
        rows = self.reports[at]
        if believed:
            return self.randomizer.supports(rows, values).astype(np.float64)
        return self.randomizer.likelihoods(rows, values)

    def totals(self, *, believed: bool) -> npt.NDArray[np.float64]:
        """Return the sums of `likelihoods` over all k values, shape (total,)."""
        if believed:
            return self.randomizer.supported(self.reports).astype(np.float64)
        return self.randomizer.likelihood_totals(self.reports)

    def as_traces(self) -> Traces:
        """Return the reported values as if they were events (randomized response only).

        Raises:
            UnsupportedProtocolError: the reports are not values.
        """
        symmetric_law(self.randomizer, for_what="To read reports as events")
        return Traces(events=self.reports, offsets=self.offsets, k=self.k)


def randomize(traces: Traces, *, randomizer: Mechanism, rng: Randomness | None = None) -> TraceReports:
    """Return the reports of people who randomize every event of their traces independently.

    Raises:
        InvalidInputError: the randomizer and the traces are over different numbers of values.

    Source: Murakami, Takahashi 2021, sections 4.2 to 4.4.

    >>> import hushuffle as hs
    >>> walks = Traces.of([[0, 1, 0, 2], [1, 1]], k=3)
    >>> silent = randomize(walks, randomizer=hs.RandomizedResponse(k=3, epsilon=float("inf")))
    >>> silent.reports.tolist()
    [0, 1, 0, 2, 1, 1]
    """
    if randomizer.inputs != traces.k:
        _checks.reject("randomizer", f"a mechanism over the same {traces.k} values as the traces", randomizer.inputs)
    reports = randomizer.randomize(traces.events, rng=secure() if rng is None else rng)
    return TraceReports(reports=reports, offsets=traces.offsets, randomizer=randomizer)
