"""Markov models that an attacker learns from past events (`MarkovProfiles`), and scores of traces against them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse

from hushuffle import _checks
from hushuffle.model.traces import Traces

FLOOR: Final = 1e-8
"""The probability that a profile assigns to an event that was never observed, as in the paper."""

Similarity = Literal["cosine", "tf-idf"]
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


def visit_scores(profiles: MarkovProfiles, traces: Traces, *, how: Similarity) -> npt.NDArray[np.float64]:
    """Return the cosine similarity of the visits of trace i and user j, in [0, 1], shape (traces.n, n).

    "cosine" compares the numbers of visits to each place. "tf-idf" weights each place by ln(n/number of users who were
    there), and by 0 if all users or no users were there. The order of events is ignored. All scores of a trace or a
    user without any weighted visit are 0.

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
    if how not in SIMILARITIES:
        _checks.reject("how", " or ".join(SIMILARITIES), how)
    refuse_empty(traces)
    if traces.k != profiles.k:
        _checks.reject("traces", f"traces over the same {profiles.k} values as the profiles", traces.k)
    people = np.repeat(np.arange(traces.n), traces.lengths)
    counts = scipy.sparse.coo_array((np.ones(people.size), (people, traces.events)), shape=(traces.n, traces.k)).tocsr()
    weights = np.ones(profiles.k)
    if how == "tf-idf":
        held = np.bincount(profiles.visits.indices, minlength=profiles.k)
        weights = np.log(profiles.n / np.maximum(held, 1)) * (held > 0)
    scores: npt.NDArray[np.float64] = (_unit(counts, weights) @ _unit(profiles.visits, weights).T).toarray()
    return np.clip(scores, 0.0, 1.0)


def _unit(rows: scipy.sparse.csr_array, weights: npt.NDArray[np.float64]) -> scipy.sparse.csr_array:
    """Return rows weighted by column and scaled to length 1; zero rows stay zero."""
    weighted = (rows @ scipy.sparse.diags_array(weights)).tocsr()
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    unit: scipy.sparse.csr_array = (scipy.sparse.diags_array(scale) @ weighted).tocsr()
    return unit
