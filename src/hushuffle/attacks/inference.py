"""Infer a person's value from the released values of similar people.

The 25 most similar people vote, so that noise on each value averages out. Shuffling within groups prevents the attack
to the extent that votes move to other people.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from hushuffle import _checks
from hushuffle.model import Citation
from hushuffle.model.groups import Groups, Integers

Floats = npt.NDArray[np.float64]

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
        _checks.reject("near", "one group for each person", repr(near), "radius_groups and path_groups make such.")
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
