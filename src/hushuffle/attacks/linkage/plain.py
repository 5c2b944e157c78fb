"""The published score: the reported values are taken for the true ones."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy.sparse

from hushuffle import _checks
from hushuffle.attacks.linkage.profiles import MarkovProfiles, moves_of, refuse_empty
from hushuffle.model.traces import Traces


def trace_scores(profiles: MarkovProfiles, traces: Traces) -> npt.NDArray[np.float64]:
    """Return log pi_j(y_1) + sum_t log Lambda_j(y_t, y_{t+1}) for each trace i and user j, shape (traces.n, n), nats.

    Where a user was never seen, the floor of the profiles counts. One product of two sparse matrices: the first
    events and moves of every trace, and how far above the floor they are for every user.

    Raises:
        InvalidInputError: a trace is empty, or over another number of values than the profiles.

    Source: Murakami, Takahashi 2021, section 5.1; docs/theory/identity.md, Lemma 9.

    >>> from hushuffle.attacks.linkage import train
    >>> profiles = train(Traces.of([[0, 1, 0, 2], [1, 1]], k=3))
    >>> trace_scores(profiles, Traces.of([[0, 1], [1, 1]], k=3)).round(2).tolist()
    [[-1.39, -36.84], [-19.81, 0.0]]
    """
    refuse_empty(traces)
    if traces.k != profiles.k:
        _checks.reject("traces", f"over the {profiles.k} values of the profiles", traces.k)
    lowest = math.log(profiles.floor)
    above = scipy.sparse.hstack([profiles.visits, profiles.moves], format="csr")
    above.data = np.log(above.data) - lowest
    scores: npt.NDArray[np.float64] = (_features(profiles, traces) @ above.T).toarray()
    scores += lowest * traces.lengths[:, None]
    return scores


def _features(profiles: MarkovProfiles, traces: Traces) -> scipy.sparse.csr_array:
    """Return the first event (one of k) and the number of moves of each known kind of every trace."""
    walkers, codes = moves_of(traces)
    places = np.minimum(np.searchsorted(profiles.pairs, codes), max(profiles.pairs.size - 1, 0))
    known = profiles.pairs[places] == codes if profiles.pairs.size else np.zeros(codes.size, dtype=np.bool_)
    rows = np.concatenate([np.arange(traces.n), walkers[known]])
    columns = np.concatenate([traces.events[traces.offsets[:-1]], profiles.k + places[known]])
    shape = (traces.n, profiles.k + profiles.pairs.size)
    return scipy.sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=shape).tocsr()
