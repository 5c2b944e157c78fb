"""`Traces`: the event sequences of many users (check-ins, ratings), stored in memory linear in the events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Traces:
    """The event sequences (traces) of n users, each in order of time, concatenated in one array.

    `events`: codes 0..k-1, shape (total,). The events of the user at position i are `events[offsets[i]:offsets[i +
    1]]`; `offsets` has shape (n + 1,). A trace may be empty. `users`: distinct integers that identify the users, shape
    (n,); default 0..n-1. `labels`: the names of the codes, or None. The arrays are read-only.

    Raises:
        InvalidInputError: shapes or codes are inconsistent (the message shows no event and no user).

    Source: Murakami, Takahashi 2021, section 5.1.

    >>> import hushuffle as hs
    >>> walks = hs.Traces.of([[2, 0, 0], [1, 2]], k=3)
    >>> walks, walks.trace(1).tolist()
    (Traces(k=3, n=2), [1, 2])
    >>> training, rest = walks.split(1)
    >>> training.events.tolist(), rest.events.tolist()
    ([2, 1], [0, 0, 2])
    """

    events: Integers
    offsets: Integers
    k: int
    users: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        k = _checks.integer("k", self.k, low=1)
        events = _checks.codes("events", self.events, k=k)
        offsets = _integers("offsets", self.offsets)
        users = _integers("users", self.users)
        if offsets.size < 2 or offsets[0] != 0 or offsets[-1] != events.size or bool(np.any(np.diff(offsets) < 0)):
            rule = f"ascending from 0 to the number of events ({events.size}), with one entry per user and one more"
            _checks.reject("offsets", rule, f"<{offsets.size} integers>")
        if not users.size:
            users = np.arange(offsets.size - 1, dtype=np.int64)
        if users.size != offsets.size - 1 or not _checks.distinct(users):
            _checks.reject("users", f"{offsets.size - 1} distinct integers", f"<{users.size} integers>")
        if self.labels is not None and len(self.labels) != k:
            _checks.reject("labels", f"{k} labels", f"<{len(self.labels)} labels>")
        for name, array in (("events", events), ("offsets", offsets), ("users", users)):
            shown = array.view()
            shown.flags.writeable = False
            object.__setattr__(self, name, shown)

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]], *, k: int) -> Self:
        """Return the traces of the users 0, 1, ..., given one sequence of codes for each user."""
        parts = [_checks.codes("sequences", sequence, k=k) for sequence in sequences]
        offsets = np.cumsum([0, *(part.size for part in parts)], dtype=np.int64)
        events = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
        return cls(events=events, offsets=offsets, k=k)

    @classmethod
    def from_table(
        cls,
        users: npt.ArrayLike,
        events: npt.ArrayLike,
        times: npt.ArrayLike,
        *,
        k: int,
        labels: tuple[str, ...] | None = None,
    ) -> Self:
        """Return the traces of a table with one row for each event, each column of shape (total,), in any order.

        Events of one user at the same time stay in the order of the rows; users are sorted.

        >>> import hushuffle as hs
        >>> hs.Traces.from_table([7, 5, 7], [0, 1, 2], [30, 10, 20], k=3).events.tolist()
        [1, 2, 0]
        """
        names, codes, when = _integers("users", users), _checks.codes("events", events, k=k), np.asarray(times)
        if not names.shape == codes.shape == when.shape:
            _checks.reject("users, events, times", "of one length", (names.size, codes.size, when.size))
        order = np.lexsort((when, names))  # stable
        names, starts = names[order], np.ones(names.size, dtype=np.bool_)
        starts[1:] = names[1:] != names[:-1]
        offsets, names = np.append(np.flatnonzero(starts), names.size), names[starts]
        return cls(events=codes[order], offsets=offsets, k=k, users=names, labels=labels)

    def __repr__(self) -> str:
        return f"Traces(k={self.k}, n={self.n})"

    @property
    def n(self) -> int:
        """Number of users."""
        return self.users.size

    @property
    def lengths(self) -> Integers:
        """Number of events of each user, shape (n,)."""
        return np.diff(self.offsets)

    def trace(self, i: int) -> Integers:
        """Return the events of the user at position i, in order of time.

        Raises:
            InvalidInputError: no user has this position.
        """
        position = _checks.integer("i", i, low=0, high=self.n - 1)
        return self.events[self.offsets[position] : self.offsets[position + 1]]

    def first(self, m: int) -> Self:
        """Return the traces cut to the first m events of every user (shorter traces stay whole)."""
        return self.split(np.minimum(self.lengths, _checks.integer("m", m, low=0)))[0]

    def split(self, counts: int | npt.ArrayLike) -> tuple[Self, Self]:
        """Return (training, rest): the first `counts` events of each user, and all later events.

        `counts` is one number for all users, or one per user, shape (n,): `traces.split(traces.lengths // 2)`.

        Raises:
            InvalidInputError: a count is negative or above the number of that user's events.
        """
        wanted = _integers("counts", counts if np.ndim(counts) else np.full(self.n, counts))
        lengths = self.lengths
        if wanted.size != self.n or bool(np.any((wanted < 0) | (wanted > lengths))):
            hint = "Exclude users with shorter traces: traces.select(traces.lengths >= m)."
            _checks.reject("counts", f"one number, or {self.n}, from 0 to the user's events", "<other numbers>", hint)
        position = np.arange(self.events.size) - np.repeat(self.offsets[:-1], lengths)
        early = position < np.repeat(wanted, lengths)
        return self._keep(early, wanted), self._keep(~early, lengths - wanted)

    def select(self, users: npt.ArrayLike) -> Self:
        """Return the traces of selected users; `users` has distinct positions 0..n-1 in any order, or is a mask (n,).

        Raises:
            InvalidInputError: `users` is neither positions nor a mask, or selects no user.

        >>> import hushuffle as hs
        >>> walks = hs.Traces.of([[0], [1, 1], [2, 2, 2]], k=3)
        >>> walks.select(walks.lengths >= 2).users.tolist()
        [1, 2]
        """
        chosen = np.asarray(users)
        if chosen.dtype == np.bool_ and chosen.shape == (self.n,):
            chosen = np.flatnonzero(chosen)
        chosen = _checks.codes("users", chosen, k=self.n)
        if not chosen.size:
            _checks.reject("users", "at least one", "<none>")
        lengths = self.lengths[chosen]
        offsets = np.append(0, np.cumsum(lengths))
        source = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return type(self)(
            events=self.events[source], offsets=offsets, k=self.k, users=self.users[chosen], labels=self.labels
        )

    def _keep(self, mask: npt.NDArray[np.bool_], lengths: Integers) -> Self:
        offsets = np.append(0, np.cumsum(lengths))
        return type(self)(events=self.events[mask], offsets=offsets, k=self.k, users=self.users, labels=self.labels)


def _integers(name: str, values: npt.ArrayLike) -> Integers:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        _checks.reject(name, "a one-dimensional array of integers", f"<{array.dtype}, shape {array.shape}>")
    return array.astype(np.int64, copy=False)
