"""Match traces and users by the places that they share: the cosine of visit counts, plain or weighted by rarity."""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse

from hushuffle import _checks
from hushuffle.attacks.linkage.profiles import MarkovProfiles, refuse_empty
from hushuffle.model.traces import Traces

Similarity = Literal["cosine", "tf-idf"]

SIMILARITIES: Final[tuple[Similarity, ...]] = get_args(Similarity)


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
