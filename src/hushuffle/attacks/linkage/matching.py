"""Matching rules: the best-score rule and lists of candidates, and how often each of them is right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.attacks.detection import BINOMIAL
from hushuffle.model import Bound, Citation
from hushuffle.model.citation import PIE
from hushuffle.numerics.trials import clopper_pearson
from hushuffle.randomness import Randomness, secure

UNLIKE_TRIALS = Citation(
    key="hoeffding1956",
    text="W. Hoeffding, On the distribution of the number of successes in independent trials, "
    "Annals of Mathematical Statistics 27 (1956)",
)


def ranks(scores: npt.ArrayLike, *, rng: Randomness | None = None) -> npt.NDArray[np.int64]:
    """Return the rank of the right user among all users for each report, shape (n,); rank 1 is an identification.

    `scores[i, j]` says how well the reports of user i fit user j, shape (n, n); a larger score is better. Users with
    equal scores are ranked in a random order.

    Raises:
        InvalidInputError: scores are not a square matrix of numbers.

    Source: Murakami, Takahashi 2021, section 3.1 (best score rule).

    >>> ranks([[3.0, 1.0, 2.0], [5.0, 4.0, 0.0], [0.0, 1.0, 9.0]]).tolist()
    [1, 2, 1]
    """
    table = _square(scores)
    right = np.diagonal(table)[:, None]
    better = np.count_nonzero(table > right, axis=1)
    tied = np.count_nonzero(table == right, axis=1)
    source = secure() if rng is None else rng
    # The share of the interval [0, 1) that a 64-bit word falls into: equal shares up to 2**-53.
    share = (source.words(tied.size) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    place = np.floor(share * tied).astype(np.int64)
    reached: npt.NDArray[np.int64] = 1 + better + place
    return reached


def candidates(scores: npt.ArrayLike, *, top: int) -> npt.NDArray[np.int64]:
    """Return the positions of the `top` users with the best scores for each report, best first, shape (m, top).

    Among users with equal scores, those with the smaller positions are listed.

    Raises:
        InvalidInputError: scores are not a matrix, or top is not from 1 to the number of users.

    >>> candidates([[3.0, 1.0, 2.0], [5.0, 4.0, 9.0]], top=2).tolist()
    [[0, 2], [2, 0]]
    """
    table = _matrix(scores)
    wanted = _checks.integer("top", top, low=1, high=table.shape[1])
    return np.argsort(-table, axis=1, kind="stable")[:, :wanted].astype(np.int64)


def hit_rate(places: npt.ArrayLike, *, top: int, confidence: float = 0.95) -> Bound:
    """Return a Clopper-Pearson interval for the rate at which the right user is among the `top` best scores.

    `places` are the `ranks` of independent trials. The trials' success probabilities may differ; the interval is for
    their mean, over the mechanism's randomness and random tie-breaking, for these users.

    Raises:
        InvalidInputError: places are not integers >= 1, top < 1, or confidence is not in (0, 1).

    Source: Clopper, Pearson 1934; Hoeffding 1956 (unlike trials spread less than like ones).

    >>> print(hit_rate([1, 3, 1, 1, 7, 1, 1, 1, 2, 1], top=1))
    0.3475 to 0.9333 (95% interval)
    """
    reached = _places(places)
    hits = int(np.count_nonzero(reached <= _checks.integer("top", top, low=1)))
    return _interval(hits, reached.size, confidence)


def miss_rate(places: npt.ArrayLike, *, confidence: float = 0.95) -> Bound:
    """Return a Clopper-Pearson interval for the rate at which another user has the best score (1 - `hit_rate`).

    `hushuffle.attacks.detection.identification_error` is the same for one matrix of scores, but averages over ties.

    Raises:
        InvalidInputError: the reasons are those of `hit_rate`.

    Source: Murakami, Takahashi 2021, section 5.3 (identification error rate); Clopper, Pearson 1934.

    >>> print(miss_rate([1, 3, 1, 1, 7, 1, 1, 1, 2, 1]))
    0.06673 to 0.6525 (95% interval)
    """
    reached = _places(places)
    return _interval(int(np.count_nonzero(reached > 1)), reached.size, confidence, PIE.at("Section 5.3"))


def genuine_scores(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the scores of each user's reports against the same user, shape (n,).

    >>> genuine_scores([[3.0, 1.0], [5.0, 4.0]]).tolist()
    [3.0, 4.0]
    """
    return np.diagonal(_square(scores)).copy()


def impostor_scores(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the scores of each user's reports against all other users, row by row, shape (n (n - 1),).

    >>> impostor_scores([[3.0, 1.0], [5.0, 4.0]]).tolist()
    [1.0, 5.0]
    """
    table = _square(scores)
    return table[~np.eye(table.shape[0], dtype=np.bool_)]


def _interval(hits: int, trials: int, confidence: float, *more: Citation) -> Bound:
    sure = _checks.probability("confidence", confidence, low_open=True, high_open=True)
    lower, upper = clopper_pearson(hits, trials, sure)
    sources = (*more, BINOMIAL, UNLIKE_TRIALS)
    return Bound(lower=lower, upper=upper, kind="estimate", unit="probability", confidence=confidence, sources=sources)


def _matrix(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.size == 0 or bool(np.isnan(table).any()):
        _checks.reject("scores", "a matrix of numbers", f"<shape {table.shape}>")
    return table


def _square(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    table = _matrix(scores)
    if table.shape[0] != table.shape[1]:
        _checks.reject("scores", "a square matrix with a row and a column for each user", f"<shape {table.shape}>")
    return table


def _places(places: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(places)
    if array.ndim != 1 or not array.size or not np.issubdtype(array.dtype, np.integer) or int(array.min()) < 1:
        _checks.reject("places", "an array of integers >= 1, one for each trial", f"<shape {array.shape}>")
    return array.astype(np.int64, copy=False)
