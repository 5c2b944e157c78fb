"""Infer a person's value from the released values of similar people, or learn from them; scikit-learn loads late.

The 25 most similar people vote, so that noise on each value averages out. Shuffling within groups prevents the attack
to the extent that votes move to other people.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.errors import MissingDependencyError, NumericalError
from hushuffle.model import Citation
from hushuffle.model.groups import Groups, Integers

ATTACK: Final = Citation(
    key="meehan2022",
    text="C. Meehan, A. Roy Chowdhury, K. Chaudhuri, S. Jha, Privacy implications of shuffling, ICLR (2022)",
    where="section 5",
)

_BLOCK: Final = 4_000_000
"""Largest number of distances in memory at a time."""


def choose_voters(near: Groups, privileged: npt.ArrayLike | None = None, *, size: int = 25, seed: int = 1) -> Integers:
    """Return the people of `near` with the most similar attributes, shape (n, size); -1 where fewer are near.

    The distance is Euclidean: give categories as one column of 0 and 1 each. No privacy rests on `seed`.

    Source: Meehan et al. 2022, section 5.

    >>> from hushuffle.model.groups import Groups
    >>> choose_voters(Groups.of([[0, 1, 2], [0, 1, 2], [0, 1, 2]]), [1.0, 2.0, 4.0], size=1).tolist()
    [[1], [0], [1]]
    """
    votes = _checks.integer("size", size, low=1)
    if near.group_of is None:
        _checks.reject("near", "one group for each person", repr(near), "Use radius_groups or path_groups.")
    attributes = _attributes(privileged, near.n)
    rng = np.random.default_rng(seed)
    chosen = np.full((near.n, votes), -1, dtype=np.int64)
    by_group = np.argsort(near.group_of, kind="stable")
    ends = np.cumsum(np.bincount(near.group_of, minlength=len(near)))
    for group in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        members = near.members[near.offsets[group] : near.offsets[group + 1]]
        people = by_group[ends[group - 1] if group else 0 : ends[group]]
        step = max(1, _BLOCK // members.size)
        for start in range(0, people.size, step):
            block = people[start : start + step]
            chosen[block] = _most_similar(block, members, attributes, votes, rng)
    return chosen


def success_rates(
    released: npt.ArrayLike, values: npt.ArrayLike, voters: npt.ArrayLike, *, k: int, seed: int = 1
) -> Floats:
    """Return the share of draws (columns of `released`) in which each person's majority vote is right, shape (n,).

    Ties are broken at random; without voters, all values are equally likely.

    Source: Meehan et al. 2022, section 5.

    >>> success_rates([[0, 0], [0, 1], [1, 1]], [0, 0, 1], [[1], [0], [1]], k=2).tolist()
    [0.5, 1.0, 0.5]
    """
    values_of = _checks.codes("values", values, k=_checks.integer("k", k, low=2))
    n = values_of.size
    draws = np.asarray(released)
    who = np.asarray(voters)
    if draws.ndim != 2 or who.ndim != 2 or not len(draws) == len(who) == n or not draws.size:
        _checks.reject("released, voters", f"arrays of {n} rows, one for each person", f"<{draws.shape}, {who.shape}>")
    draws = _checks.codes("released", draws.reshape(-1), k=k).reshape(draws.shape)
    ballots = _ballots(_checks.codes("voters", who.reshape(-1) + 1, k=n + 1).reshape(who.shape) - 1)
    own = np.zeros(draws.shape, dtype=np.float32)
    best, equals = np.full_like(own, -1), np.zeros_like(own)
    for value in range(k):
        count = ballots @ (draws == value).astype(np.float32)
        mine = (values_of == value)[:, np.newaxis]
        own = np.where(mine, count, own)
        other = np.where(mine, np.float32(-1), count)
        equals = np.where(other > best, np.float32(1), equals + (other == best))
        best = np.maximum(best, other)
    coins = np.random.default_rng(seed).random(own.shape, dtype=np.float32)
    right = (own > best) | ((own == best) & (coins * (equals + 1) < 1))
    return np.asarray(right.mean(axis=1), dtype=np.float64)


def vulnerable(rates: npt.ArrayLike, *, level: float = 0.9) -> npt.NDArray[np.bool_]:
    """Return people whose value is guessed in at least a share `level` of the draws, shape (n,).

    A blind guess makes everyone with the most frequent value vulnerable: compare with a uniform shuffle.

    Source: Meehan et al. 2022, section 5.

    >>> vulnerable([45 / 50, 44 / 50]).tolist()
    [True, False]
    """
    bar = _checks.probability("level", level, low_open=True)
    return np.asarray(np.asarray(rates, dtype=np.float64) >= bar)


def _attributes(privileged: npt.ArrayLike | None, n: int) -> Floats | None:
    if privileged is None:
        return None
    attributes = np.asarray(privileged, dtype=np.float64)
    attributes = attributes[:, np.newaxis] if attributes.ndim == 1 else attributes
    if attributes.ndim != 2 or len(attributes) != n or not bool(np.isfinite(attributes).all()):
        _checks.reject("privileged", f"finite, of shape ({n},) or ({n}, d)", f"<shape {attributes.shape}>")
    return attributes


def _most_similar(
    people: Integers, members: Integers, attributes: Floats | None, votes: int, rng: np.random.Generator
) -> Integers:
    from scipy.spatial.distance import cdist  # noqa: PLC0415 - only when needed

    distance = (
        np.zeros((people.size, members.size)) if attributes is None else cdist(attributes[people], attributes[members])
    )
    distance[np.arange(people.size), np.searchsorted(members, people)] = np.inf  # nobody votes on themselves
    rows = np.full((people.size, votes), -1, dtype=np.int64)
    if members.size - 1 <= votes:
        order = np.argsort(distance, axis=1)[:, : members.size - 1]
        rows[:, : members.size - 1] = members[order]
        return rows
    edge = np.partition(distance, votes - 1, axis=1)[:, votes - 1, np.newaxis]
    lot = np.where(distance < edge, -1.0, np.where(distance == edge, rng.random(distance.shape), np.inf))
    rows[:] = members[np.argpartition(lot, votes - 1, axis=1)[:, :votes]]
    return rows


def _ballots(voters: Integers) -> csr_array:
    """Return a matrix of votes, shape (n, n): entry (i, j) counts the votes of person j on person i."""
    n = len(voters)
    there = voters >= 0
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    ones = np.ones(int(offsets[-1]), dtype=np.float32)
    return csr_array((ones, voters[there], offsets), shape=(n, n))


def library(name: str) -> Any:
    """Return a module of scikit-learn or of its dependencies; `MissingDependencyError` if it is not installed.

    >>> library("sklearn.ensemble").__name__
    'sklearn.ensemble'
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = (
            "Detection curves and learning from released values need scikit-learn. Install it with: "
            "pip install 'hushuffle[attacks]'"
        )
        raise MissingDependencyError(message) from error


def one_thread() -> AbstractContextManager[Any]:
    """Limit learners to one thread: on busy processors, waiting threads took thirty times as long."""
    limits: AbstractContextManager[Any] = library("threadpoolctl").threadpool_limits(limits=1)
    return limits


_FOLDS = 3


def local_shares(values: npt.ArrayLike, near: Groups, *, k: int) -> Floats:
    """Return the share of each value in each neighbourhood, shape (n, k): what a learner should predict.

    Source: Meehan et al. 2022, section 5.

    >>> local_shares([0, 1, 1], Groups.of([[0, 1], [0, 1, 2], [1, 2]]), k=2).round(3).tolist()
    [[0.5, 0.5], [0.333, 0.667], [0.0, 1.0]]
    """
    held = _checks.codes("values", values, k=_checks.integer("k", k, low=2))
    if near.group_of is None or held.size != near.n:
        _checks.reject("near", f"neighbourhoods with one group for each of {held.size} people", repr(near))
    first = near.offsets[:-1]
    members = held[near.members]
    counts = np.stack([np.add.reduceat((members == value).astype(np.int64), first) for value in range(k)], axis=1)
    return np.asarray((counts / near.sizes[:, np.newaxis])[near.group_of])


def learned_shares(
    features: npt.ArrayLike, reports: npt.ArrayLike, *, k: int, trees: int = 50, seed: int = 1
) -> Floats:
    """Return the predicted distribution of *reports*, with their noise, at each person's place, shape (n, k).

    The learner is gradient-boosted trees, calibrated by Platt scaling in three folds.

    Source: J. H. Friedman 2001 (gradient boosting); A. Niculescu-Mizil, R. Caruana 2005 (calibration); Meehan et al.
    2022, section 5.

    >>> places = np.repeat([[0.0], [1.0]], 300, axis=0)
    >>> reports = np.tile([0, 0, 1], 200) ^ (places[:, 0] == 1)
    >>> learned_shares(places, reports, k=2)[[0, -1]].round(2).tolist()
    [[0.66, 0.34], [0.34, 0.66]]
    """
    seen = _checks.codes("reports", reports, k=_checks.integer("k", k, low=2))
    inputs = _table(features, seen.size)
    counts = np.bincount(seen, minlength=k)
    present = np.flatnonzero(counts)
    if present.size < 2 or counts[present].min() < _FOLDS:
        message = f"Calibration needs two or more reported values with {_FOLDS} or more reports each."
        raise NumericalError(message)
    # Shuffled folds: people may come sorted by place.
    folds = library("sklearn.model_selection").StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    calibration = library("sklearn.calibration")
    model = calibration.CalibratedClassifierCV(_forest(trees, seed), method="sigmoid", cv=folds)
    places, which = np.unique(inputs, axis=0, return_inverse=True)
    shares = np.zeros((len(places), k))
    with one_thread():
        shares[:, present] = model.fit(inputs, seen).predict_proba(places)
    return shares[which.reshape(-1)]


def without_noise(shares: npt.ArrayLike, *, truth: float, lie: float) -> Floats:
    """Invert share = lie + (truth - lie) p; negative results become 0 and rows are scaled to 1, shape (n, k).

    >>> without_noise([[0.5, 0.5], [0.9, 0.1]], truth=0.9, lie=0.1).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    truthful = _checks.probability("truth", truth)
    if not _checks.probability("lie", lie) < truthful:
        _checks.reject("truth", "greater than lie", truth, "Otherwise reports reveal nothing about values.")
    cleared = np.maximum((np.asarray(shares, dtype=np.float64) - lie) / (truthful - lie), 0.0)
    return np.asarray(cleared / cleared.sum(axis=1, keepdims=True))


def relative_error(learned: npt.ArrayLike, local: npt.ArrayLike) -> float:
    """Return lambda: mean total variation distance from `local` (n, k), divided by that of a uniform guess.

    Source: Meehan et al. 2022, section 5.

    >>> relative_error([[0.75, 0.25], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]])
    0.5
    """
    p, q = np.asarray(learned, dtype=np.float64), np.asarray(local, dtype=np.float64)
    if p.ndim != 2 or p.shape != q.shape or not p.size:
        _checks.reject("learned, local", "of one shape (n, k)", f"<{p.shape}, {q.shape}>")
    blind = float(np.abs(q - 1 / q.shape[1]).sum())
    if blind == 0:
        _checks.reject("local", "not uniform everywhere", "<uniform>", "There is nothing to learn.")
    return float(np.abs(p - q).sum()) / blind


def accuracy(
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    at: npt.ArrayLike,
    truth: npt.ArrayLike,
    trees: int = 50,
    seed: int = 1,
) -> float:
    """Return the share of new people (`at`, `truth`) whose class trees trained on `labels` predict correctly.

    Source: J. H. Friedman 2001; Meehan et al. 2022, section 5 (figure 5).

    >>> places = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> accuracy(places, np.repeat([0, 1], 50), at=[[0.0], [1.0]], truth=[0, 1])
    1.0
    """
    seen = _checks.codes("labels", labels, k=2**31)
    wanted = _checks.codes("truth", truth, k=2**31)
    inputs, new = _table(features, seen.size), _table(at, wanted.size)
    if seen.min() == seen.max():
        return float(np.mean(wanted == seen[0]))
    forest = _forest(trees, seed)
    with one_thread():
        return float(np.mean(forest.fit(inputs, seen).predict(new) == wanted))


def _forest(trees: int, seed: int) -> Any:
    ensemble = library("sklearn.ensemble")
    rounds = _checks.integer("trees", trees, low=1)
    return ensemble.HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=15, early_stopping=False, random_state=seed
    )


def _table(features: npt.ArrayLike, n: int) -> Floats:
    table = np.asarray(features, dtype=np.float64)
    if table.ndim != 2 or len(table) != n or not n:
        _checks.reject("features", f"numbers, shape ({n}, d)", f"<shape {table.shape}>")
    return table
