"""`Groups`: sets of people whose reports should be hard to distinguish, stored in memory linear in the memberships."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks

Integers: TypeAlias = npt.NDArray[np.int64]


_MOST: Final = 2**40
"""The largest number of people."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """Groups of people numbered 0..n-1; the members of group i are `members[offsets[i]:offsets[i + 1]]`, ascending.

    For g groups, `offsets`, shape (g + 1,), increases strictly from 0; `members`, shape (memberships,), lists no person
    twice in one group. `group_of`, shape (n,), assigns to each person the index of a group that contains the person;
    several people may have the same group, which is stored once. Without `group_of`, person i has group i if there are
    n groups and each group i contains person i; otherwise people have no groups.

    Groups are public, so they must be derived from public data only.

    Raises:
        InvalidInputError: there is no group or an empty group, a member is repeated or outside 0..n-1, or a person
            is not in the assigned group.

    Source: Meehan et al. 2022, section 4.2.

    >>> import hushuffle as hs
    >>> groups = hs.Groups.of([[0, 1], [1, 0], [2, 1]])
    >>> groups.n, len(groups), groups[2].tolist(), groups.group_of.tolist()
    (3, 3, [1, 2], [0, 1, 2])
    """

    offsets: Integers
    members: Integers
    n: int
    group_of: Integers | None = None

    def __post_init__(self) -> None:
        n = _checks.integer("n", self.n, low=1)
        members = _checks.codes("members", self.members, k=n)
        offsets = _offsets(self.offsets, len(members))
        owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        keys = owners * n + members  # no overflow of 2**63: arrays of that size do not fit in memory
        if not bool(np.all(keys[1:] > keys[:-1])):
            keys.sort()
            members = keys - owners * n
        repeated = int(np.count_nonzero(keys[1:] == keys[:-1]))
        if repeated:
            _checks.reject("groups", "without repeated members in one group", f"<{repeated} repeated>")
        group_of = self.group_of
        if group_of is None and len(offsets) == n + 1 and _among(keys, np.arange(n) * (n + 1)) == n:
            group_of = np.arange(n)
        if group_of is not None:
            group_of = _checks.codes("group_of", group_of, k=len(offsets) - 1)
            if len(group_of) != n:
                _checks.reject("group_of", f"one group for each of {n} people", f"<{len(group_of)} groups>")
            outside = n - _among(keys, group_of * n + np.arange(n))
            if outside:
                _checks.reject("group_of", "a group that contains the person", f"<{outside} people outside their own>")
        for name, value in (("offsets", offsets), ("members", members), ("group_of", group_of)):
            own = value if value is None or not value.flags.writeable else value.copy()
            if own is not None:
                own.flags.writeable = False
            object.__setattr__(self, name, own)
        object.__setattr__(self, "n", n)

    @classmethod
    def of(cls, groups: GroupsLike, *, n: int | None = None) -> Self:
        """Return `groups` as `Groups` of `n` people (default: the largest member plus 1).

        `groups` is a `Groups`, a tuple (offsets, members) of two arrays, or a list of one integer array per group.

        Raises:
            InvalidInputError: the groups are invalid (see the class), or have another number of people.

        >>> import hushuffle as hs
        >>> hs.Groups.of((np.array([0, 2, 3]), np.array([0, 2, 1]))).sizes.tolist()
        [2, 1]
        """
        if isinstance(groups, cls):
            if n is not None and n != groups.n:
                _checks.reject("groups", f"groups of {n} people", f"<groups of {groups.n} people>")
            return groups
        offsets, members = _pair(groups)
        if n is not None:
            n = _checks.integer("n", n, low=0, high=_MOST)
        else:
            n = int(members.max()) + 1 if members.size and np.issubdtype(members.dtype, np.integer) else 1
        return cls(offsets=offsets, members=members, n=max(n, 1))

    @property
    def sizes(self) -> Integers:
        """Number of members of each group, shape (g,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, group: int) -> Integers:
        """Return the members of the group with index `group`, ascending."""
        place = _checks.integer("group", group, low=0, high=len(self) - 1)
        return self.members[self.offsets[place] : self.offsets[place + 1]]

    def __repr__(self) -> str:
        return f"Groups({len(self):,} groups, {len(self.members):,} memberships, {self.n:,} people)"


GroupsLike: TypeAlias = Groups | tuple[npt.ArrayLike, npt.ArrayLike] | Sequence[npt.ArrayLike]


def _pair(groups: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    if isinstance(groups, tuple) and len(groups) == 2:
        return np.asarray(groups[0]), np.asarray(groups[1])
    if not isinstance(groups, Iterable):
        _checks.reject("groups", "a list of one-dimensional arrays, one for each group", f"<{type(groups).__name__}>")
    rows = [np.asarray(row) for row in groups]
    if not rows or any(row.ndim != 1 for row in rows):
        _checks.reject("groups", "a list of one-dimensional arrays, one for each group", f"<{len(rows)} groups>")
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return offsets, np.concatenate(rows)


def _offsets(offsets: npt.ArrayLike, memberships: int) -> Integers:
    array = np.asarray(offsets)
    if array.ndim != 1 or array.size < 2 or not np.issubdtype(array.dtype, np.integer):
        _checks.reject("offsets", "integers, one more than groups", f"<{array.dtype}, shape {array.shape}>")
    array = array.astype(np.int64)
    if array[0] != 0 or array[-1] != memberships:
        _checks.reject("offsets", f"from 0 to {memberships} (memberships)", f"<{array[0]}..{array[-1]}>")
    empty = int(np.count_nonzero(array[1:] <= array[:-1]))
    if empty:
        hint = "The group of person i must contain person i."
        _checks.reject("groups", "non-empty", f"<{empty} of {len(array) - 1} empty>", hint)
    return array


def _among(keys: Integers, wanted: Integers) -> int:
    """Return how many of `wanted` occur in the ascending `keys`."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return int(np.count_nonzero(keys[places] == wanted))
