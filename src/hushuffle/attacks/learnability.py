"""Learn from reports whose order reveals something about their senders; scikit-learn is loaded on first use."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import MissingDependencyError, NumericalError
from hushuffle.model.groups import Groups


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


Floats = npt.NDArray[np.float64]

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
