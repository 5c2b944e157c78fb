"""Compute the likelihood of reports whose true events are hidden, by the forward algorithm over sparse profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse

from hushuffle import _checks
from hushuffle.attacks.linkage.profiles import MarkovProfiles
from hushuffle.attacks.linkage.reports import TraceReports

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Chain:
    """A user's Markov model: a move to y weighs `base[x]` from a visited x, else `elsewhere`, plus `moves[x, y]`."""

    places: npt.NDArray[np.int64]
    first: Floats
    first_elsewhere: float
    moves: scipy.sparse.csr_array
    base: Floats
    elsewhere: float


def report_scores(
    profiles: MarkovProfiles,
    reports: TraceReports,
    *,
    noise_known: bool = True,
    tell: Callable[[float], None] = lambda _share: None,
) -> Floats:
    """Return the log-likelihood of each person's reports under each user's profile, shape (reports.n, n), nats.

    The likelihood is the sum over all true events x_1..x_t of pi_j(x_1) Lambda_j(x_1, x_2) ... times Q(y_1|x_1) ...
    Q(y_t|x_t), up to a term that is the same for every user (the likelihood of the hashes).

    With `noise_known`, Q is the randomizer's distribution, and the floored profiles are normalised to probabilities,
    which gives the exact likelihood. Without, reports are taken as true, as if Q had no noise, and floored weights are
    not normalised, as in the paper; for randomized response the result is `trace_scores` of the reported values. A
    bucket to which the hash sends no value is ignored.

    The work is, for each user, the number of visited places times that of reports. `tell` receives the fraction done.

    Raises:
        InvalidInputError: a person has no reports, or reports and profiles are over different numbers of values.

    Source: L. R. Rabiner, A tutorial on hidden Markov models (1989), forward procedure; docs/theory/identity.md,
    Lemma 9.

    >>> import hushuffle as hs
    >>> from hushuffle.attacks.linkage import randomize, train
    >>> from hushuffle.model.traces import Traces
    >>> profiles = train(Traces.of([[0, 1, 0, 2], [1, 1]], k=3))
    >>> survey = hs.RandomizedResponse(k=3, epsilon=1.0)
    >>> reports = TraceReports(reports=np.array([0, 1]), offsets=np.array([0, 2]), randomizer=survey)
    >>> np.exp(report_scores(profiles, reports)).round(4).tolist()
    [[0.1424, 0.1221]]
    """
    if reports.k != profiles.k:
        _checks.reject("reports", f"reports over the same {profiles.k} values as the profiles", reports.k)
    if bool(np.any(reports.lengths == 0)):
        _checks.reject("reports", "at least one report for each person", "<a person without reports>")
    seen = _Seen.of(reports, believed=not noise_known)
    scores = np.empty((reports.n, profiles.n))
    for user in range(profiles.n):
        scores[seen.people, user] = _forward(_chain(profiles, user, normalised=noise_known), seen)
        tell((user + 1) / profiles.n)
    return scores


@dataclass(frozen=True, kw_only=True, eq=False)
class _Seen:
    """Reports of all people: `people` by decreasing length, `totals` of likelihoods over k values, shape (total,)."""

    reports: TraceReports
    people: npt.NDArray[np.int64]
    believed: bool
    totals: Floats

    @classmethod
    def of(cls, reports: TraceReports, *, believed: bool) -> Self:
        people = np.argsort(-reports.lengths, kind="stable")
        return cls(reports=reports, people=people, believed=believed, totals=reports.totals(believed=believed))

    def steps(self) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the positions of all first reports, then of all second reports, and so on."""
        lengths = self.reports.lengths[self.people]
        starts = self.reports.offsets[self.people]
        for step in range(int(lengths[0])):
            yield starts[: int(np.count_nonzero(lengths > step))] + step

    def likelihoods(self, at: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return Q(report at[i] | x) for the values x in `places`, and the sum of Q over all other values."""
        here = self.reports.likelihoods(at, places, believed=self.believed)
        totals = self.totals[at]
        silent = totals == 0
        here[:, silent] = 1.0
        totals = np.where(silent, float(self.reports.k), totals)
        # Never below 0: the sum over fewer values of the same non-negative numbers, up to rounding.
        return here, np.maximum(totals - here.sum(axis=0), 0.0)


def _chain(profiles: MarkovProfiles, user: int, *, normalised: bool) -> _Chain:
    k, floor = profiles.k, profiles.floor
    shares, places = _row(profiles.visits, user)
    chances, columns = _row(profiles.moves, user)
    pairs = profiles.pairs[columns]
    before, after = np.searchsorted(places, pairs // k), np.searchsorted(places, pairs % k)
    kinds = np.bincount(before, minlength=places.size)
    seen = np.bincount(before, weights=chances, minlength=places.size)
    total = seen + (k - kinds) * floor if normalised else np.ones(places.size)
    all_first = float(shares.sum()) + (k - places.size) * floor if normalised else 1.0
    table = scipy.sparse.coo_array(
        ((chances - floor) / total[before], (after, before)), shape=(places.size, places.size)
    ).tocsr()
    return _Chain(
        places=places,
        first=shares / all_first,
        first_elsewhere=floor / all_first,
        moves=table,  # transposed: a step is one product from the left
        base=floor / total,
        elsewhere=1.0 / k if normalised else floor,
    )


def _row(table: scipy.sparse.csr_array, i: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    stored = slice(int(table.indptr[i]), int(table.indptr[i + 1]))
    return table.data[stored], table.indices[stored].astype(np.int64)


def _forward(chain: _Chain, seen: _Seen) -> Floats:
    """Return the log-likelihoods of all people's reports, rescaled at every event against underflow."""
    result = np.zeros(seen.people.size)
    inside, outside = np.empty((chain.places.size, 0)), np.empty(0)
    for step, at in enumerate(seen.steps()):
        here, beyond = seen.likelihoods(at, chain.places)
        if step == 0:
            inside, outside = chain.first[:, None] * here, chain.first_elsewhere * beyond
        else:
            inside, outside = inside[:, : at.size], outside[: at.size]
            common = chain.base @ inside + chain.elsewhere * outside
            inside, outside = (chain.moves @ inside + common) * here, common * beyond
        scale = inside.sum(axis=0) + outside
        result[: at.size] += np.log(scale)
        inside, outside = inside / scale, outside / scale
    return result
