"""Markov models that an attacker learns from past events (`MarkovProfiles`); scores of traces and of reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.attacks.linkage.reports import Scene, TraceReports
from hushuffle.model.traces import Traces

FLOOR: Final = 1e-8
"""The probability that a profile assigns to an event that was never observed, as in the paper."""

Similarity = Literal["cosine", "tf-idf"]
_TOGETHER: Final = 256
SIMILARITIES: Final[tuple[Similarity, ...]] = get_args(Similarity)


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkovProfiles:
    """Markov models of n users, each with a visit vector pi_i, shape (k,), and a transition matrix Lambda_i, (k, k).

    `visits[i, x]` = pi_i(x), shape (n, k). `moves[i, c]` = Lambda_i(a, b), shape (n, distinct moves), where
    `pairs[c]` = a k + b, ascending. Only observed events and moves are stored; every other entry is `floor`, without
    renormalisation, so all entries are `floor` in a row of Lambda_i without an observed move.
    """

    visits: scipy.sparse.csr_array
    moves: scipy.sparse.csr_array
    pairs: npt.NDArray[np.int64]
    floor: float

    @property
    def n(self) -> int:
        """Number of users."""
        return int(self.visits.shape[0])

    @property
    def k(self) -> int:
        """Number of values."""
        return int(self.visits.shape[1])

    def __repr__(self) -> str:
        return f"MarkovProfiles(n={self.n}, k={self.k})"


def train(traces: Traces, *, floor: float = FLOOR) -> MarkovProfiles:
    """Return the maximum-likelihood profiles: relative frequencies of events, and of moves out of each event.

    Raises:
        InvalidInputError: a trace is empty, or floor is not in (0, 1).

    Source: Murakami, Takahashi 2021, section 5.1; docs/theory/identity.md, Lemma 9.

    >>> profiles = train(Traces.of([[0, 1, 0, 2], [1, 1]], k=3))
    >>> profiles.visits.toarray().tolist()
    [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]
    >>> [divmod(int(pair), 3) for pair in profiles.pairs], profiles.moves.toarray().tolist()
    ([(0, 1), (0, 2), (1, 0), (1, 1)], [[0.5, 0.5, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    """
    least = _checks.probability("floor", floor, low_open=True, high_open=True)
    refuse_empty(traces)
    people = np.repeat(np.arange(traces.n), traces.lengths)
    visits = _counts(people, traces.events, shape=(traces.n, traces.k))
    visits.data /= np.repeat(traces.lengths, np.diff(visits.indptr))
    walkers, codes = moves_of(traces)
    pairs, columns = np.unique(codes, return_inverse=True)
    moves = _counts(walkers, columns, shape=(traces.n, pairs.size))
    rows = np.repeat(np.arange(traces.n), np.diff(moves.indptr))
    departures = rows * traces.k + pairs[moves.indices] // traces.k
    _, group = np.unique(departures, return_inverse=True)
    moves.data /= np.bincount(group, weights=moves.data)[group]
    return MarkovProfiles(visits=visits, moves=moves, pairs=pairs, floor=least)


def moves_of(traces: Traces) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return every move from an event a to the next event b, as the position of its user and the number a k + b."""
    people = np.repeat(np.arange(traces.n), traces.lengths)
    within = people[1:] == people[:-1]
    before, after = traces.events[:-1][within], traces.events[1:][within]
    return people[1:][within], before * traces.k + after


def refuse_empty(traces: Traces) -> None:
    if bool(np.any(traces.lengths == 0)):
        missing = int(np.count_nonzero(traces.lengths == 0))
        hint = "Exclude users without events: traces.select(traces.lengths > 0)."
        _checks.reject("traces", "at least one event for each user", f"<{missing} of {traces.n} empty>", hint)


def _counts(
    rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], *, shape: tuple[int, int]
) -> scipy.sparse.csr_array:
    table = scipy.sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=shape).tocsr()
    table.sum_duplicates()
    return table


def trace_scores(profiles: MarkovProfiles, traces: Traces) -> npt.NDArray[np.float64]:
    """Return log pi_j(y_1) + sum_t log Lambda_j(y_t, y_{t+1}) for each trace i and user j, shape (traces.n, n), nats.

    This is the published score, which treats reports as true events. An event that a user never had contributes the
    floor. The scores are one product of two sparse matrices: the first events and moves of each trace, and the excess
    over the floor for each user.

    Raises:
        InvalidInputError: a trace is empty, or traces and profiles are over different numbers of values.

    Source: Murakami, Takahashi 2021, section 5.1; docs/theory/identity.md, Lemma 9.

    >>> from hushuffle.attacks.linkage import train
    >>> profiles = train(Traces.of([[0, 1, 0, 2], [1, 1]], k=3))
    >>> trace_scores(profiles, Traces.of([[0, 1], [1, 1]], k=3)).round(2).tolist()
    [[-1.39, -36.84], [-19.81, 0.0]]
    """
    refuse_empty(traces)
    if traces.k != profiles.k:
        _checks.reject("traces", f"traces over the same {profiles.k} values as the profiles", traces.k)
    lowest = math.log(profiles.floor)
    above = scipy.sparse.hstack([profiles.visits, profiles.moves], format="csr")
    above.data = np.log(above.data) - lowest
    scores: npt.NDArray[np.float64] = (_features(profiles, traces) @ above.T).toarray()
    scores += lowest * traces.lengths[:, None]
    return scores


def _features(profiles: MarkovProfiles, traces: Traces) -> scipy.sparse.csr_array:
    """Return, for every trace, the first event (one of k) and how often each known move occurs."""
    walkers, codes = moves_of(traces)
    places = np.minimum(np.searchsorted(profiles.pairs, codes), max(profiles.pairs.size - 1, 0))
    listed = profiles.pairs[places] == codes if profiles.pairs.size else np.zeros(codes.size, dtype=np.bool_)
    rows = np.concatenate([np.arange(traces.n), walkers[listed]])
    columns = np.concatenate([traces.events[traces.offsets[:-1]], profiles.k + places[listed]])
    shape = (traces.n, profiles.k + profiles.pairs.size)
    return scipy.sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=shape).tocsr()


def place_weights(profiles: MarkovProfiles) -> Floats:
    """Return the tf-idf weights of the k places: ln(n/number of users who were there), 0 if no users were there.

    >>> from hushuffle.attacks.linkage import train
    >>> place_weights(train(Traces.of([[0, 1], [0, 2]], k=4))).round(2).tolist()
    [0.0, 0.69, 0.69, 0.0]
    """
    held = np.bincount(profiles.visits.indices, minlength=profiles.k)
    weights: Floats = np.log(profiles.n / np.maximum(held, 1)) * (held > 0)
    return weights


def visit_scores(profiles: MarkovProfiles, traces: Traces, *, how: Similarity | Floats) -> Floats:
    """Return the cosine similarity of the visits of trace i and user j, in [0, 1], shape (traces.n, n).

    "cosine" compares the numbers of visits to each place. "tf-idf" weights each place by ln(n/number of users who were
    there), and by 0 if all users or no users were there. Pass `place_weights` of all users instead if `profiles` are
    only a part of them. The order of events is ignored. A trace or user without weighted visits has scores 0.

    Raises:
        InvalidInputError: a trace is empty, traces and profiles have different numbers of values, or `how` is unknown.

    Source: named as matching algorithms by Murakami, Takahashi 2021, section 3.1.

    >>> from hushuffle.attacks.linkage import train
    >>> profiles = train(Traces.of([[0, 1], [0, 2]], k=3))
    >>> visit_scores(profiles, Traces.of([[0, 1, 1]], k=3), how="cosine").round(3).tolist()
    [[0.949, 0.316]]
    >>> visit_scores(profiles, Traces.of([[0, 1, 1]], k=3), how="tf-idf").tolist()
    [[1.0, 0.0]]
    """
    if isinstance(how, str) and how not in SIMILARITIES:
        _checks.reject("how", " or ".join(SIMILARITIES), how)
    refuse_empty(traces)
    if traces.k != profiles.k:
        _checks.reject("traces", f"traces over the same {profiles.k} values as the profiles", traces.k)
    people = np.repeat(np.arange(traces.n), traces.lengths)
    counts = scipy.sparse.coo_array((np.ones(people.size), (people, traces.events)), shape=(traces.n, traces.k)).tocsr()
    tf_idf = place_weights(profiles) if isinstance(how, str) and how == "tf-idf" else np.ones(profiles.k)
    weights = tf_idf if isinstance(how, str) else how
    scores: Floats = (_unit(counts, weights) @ _unit(profiles.visits, weights).T).toarray()
    return np.clip(scores, 0.0, 1.0)


def _unit(rows: scipy.sparse.csr_array, weights: npt.NDArray[np.float64]) -> scipy.sparse.csr_array:
    """Return rows weighted by column and scaled to length 1; zero rows stay zero."""
    weighted = (rows @ scipy.sparse.diags_array(weights)).tocsr()
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    unit: scipy.sparse.csr_array = (scipy.sparse.diags_array(scale) @ weighted).tocsr()
    return unit


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
    which gives the exact likelihood. Without it, reports are taken as true, as if Q had no noise, and floored weights
    are not normalised, as published; for randomized response the result is `trace_scores` of the reported values. A
    bucket to which the hash sends no value is ignored.

    The work is, for each user, the number of visited places times that of reports. `tell` receives the fraction done.

    Raises:
        InvalidInputError: a person has no reports, or reports and profiles are over different numbers of values.

    Source: Rabiner, A tutorial on hidden Markov models (1989), forward procedure; docs/theory/identity.md, Lemma 9.

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
    if int(reports.lengths.max()) == 1:
        return _of_one_report(profiles, seen, normalised=noise_known)
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
        """Return Q(report at[i] | x) for the values x in `places`, and the sum of Q over all k values."""
        here = self.reports.likelihoods(at, places, believed=self.believed)
        totals = self.totals[at]
        silent = totals == 0
        here[:, silent] = 1.0
        return here, np.where(silent, float(self.reports.k), totals)


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


def _of_one_report(profiles: MarkovProfiles, seen: _Seen, *, normalised: bool) -> Floats:
    """Return the logarithms of Q(y|x) (pi_j(x) - floor), summed over the visited places x, plus the floor of all x."""
    k, floor, scores = profiles.k, profiles.floor, []
    for start in range(0, profiles.n, _TOGETHER):
        visits = profiles.visits[start : start + _TOGETHER]
        places, columns = np.unique(visits.indices, return_inverse=True)
        shape = visits.shape[0], places.size
        above = scipy.sparse.csr_array((visits.data - floor, columns, visits.indptr), shape=shape)
        here, totals = seen.likelihoods(np.arange(seen.people.size), places.astype(np.int64))
        weights = above @ here + floor * totals
        if normalised:
            weights /= (visits.sum(axis=1) + (k - np.diff(visits.indptr)) * floor)[:, None]
        scores.append(np.log(weights).T)
    return np.concatenate(scores, axis=1)


def _row(table: scipy.sparse.csr_array, i: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    stored = slice(int(table.indptr[i]), int(table.indptr[i + 1]))
    return table.data[stored], table.indices[stored].astype(np.int64)


def _forward(chain: _Chain, seen: _Seen) -> Floats:
    """Return the log-likelihoods of all people's reports, rescaled at every event against underflow."""
    result = np.zeros(seen.people.size)
    inside, outside = np.empty((chain.places.size, 0)), np.empty(0)
    for step, at in enumerate(seen.steps()):
        here, totals = seen.likelihoods(at, chain.places)
        # Never below 0: the sum over fewer values of the same non-negative numbers, up to rounding.
        beyond = np.maximum(totals - here.sum(axis=0), 0.0)
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


def scores_against(
    people: Traces,
    divided: Callable[[Traces], Scene],
    reports: TraceReports,
    positions: npt.NDArray[np.int64],
    *,
    how: Literal["bayes", "plain", "cosine"] | Floats,
    tell: Callable[[float], None] = lambda _share: None,
) -> Floats:
    """Return the scores of reports against the people at these positions, for `ranks_among`; `divided` is a `scene`.

    "bayes" uses the likelihood of the reports, "plain" takes them as true events, "cosine" or `place_weights` of all
    people compare visits. `tell` receives the fraction of all people.

    Raises:
        InvalidInputError: the reasons are those of `train`, `report_scores` and `visit_scores`.

    >>> from hushuffle import RandomizedResponse
    >>> from hushuffle.attacks.linkage import randomize, scene
    >>> walks = Traces.of([[0, 0, 0, 0], [1, 1, 1, 1]], k=2)
    >>> sent = randomize(scene(walks).reported, randomizer=RandomizedResponse(k=2, epsilon=float("inf")))
    >>> scores_against(walks, scene, sent, np.array([0]), how="plain").round(2).tolist()
    [[0.0], [-18.42]]
    """
    profiles = train(divided(people.select(positions)).training)
    if not isinstance(how, str) or how == "cosine":
        return visit_scores(profiles, reports.as_traces(), how=how)
    law = reports.randomizer.law().symmetric
    if law is not None and (how == "plain" or law.lie == 0):
        return trace_scores(profiles, reports.as_traces())
    start, width = positions[0] / people.n, positions.size / people.n
    tell(start)
    return report_scores(profiles, reports, noise_known=how == "bayes", tell=lambda share: tell(start + share * width))
