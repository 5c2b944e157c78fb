"""What is inside a message: one person's record, or what a compute node found; as bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle.errors import DataError
from hushuffle.network.nodes.document import RESULT, RunDocument
from hushuffle.network.nodes.tally import Counts, counts_size, pack_counts, unpack_counts
from hushuffle.plans import GroupingQuery, GroupStatistics, group_statistics

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class RecordCodec:
    """One record for one grouping set: the group's number in each column, then the values; 4 and 8 bytes each.

    >>> from hushuffle.plans import GroupingSet
    >>> sets = (GroupingSet(columns=("age",), sizes=(6,)),)
    >>> query = GroupingQuery(grouping_sets=sets, values=("x",), functions=("sum",), partitions=2)
    >>> codec = RecordCodec(query=query, position=0)
    >>> contents = codec.pack({"age": np.array([3, 5]), "x": np.array([0.5, 2.0])})
    >>> codec.size, codec.own({"age": np.array([3, 5])}).tolist()
    (12, [1, 1])
    >>> codec.statistics(contents[:1]).sum["x"].tolist()
    [0.0, 0.0, 0.0, 0.5, 0.0, 0.0]
    """

    query: GroupingQuery
    position: int

    @property
    def _type(self) -> np.dtype[np.void]:
        columns = [(f"c{place}", "<i4") for place, _ in enumerate(self._columns)]
        return np.dtype([*columns, *((f"v{place}", "<f8") for place, _ in enumerate(self.query.values))])

    @property
    def _columns(self) -> tuple[str, ...]:
        return self.query.grouping_sets[self.position].columns

    @property
    def size(self) -> int:
        """Bytes of a record."""
        return self._type.itemsize

    def own(self, table: Mapping[str, npt.ArrayLike]) -> Integers:
        """Return each record's own target, shape (n,).

        Raises:
            InvalidInputError: a column is missing, or its numbers are no groups.
        """
        return self.query.nodes(self.position, self.query.grouping_sets[self.position].codes(table))

    def pack(self, table: Mapping[str, npt.ArrayLike]) -> list[bytes]:
        """Return each record's bytes."""
        first = np.asarray(table[self._columns[0]])
        rows = np.empty(first.size, dtype=self._type)
        for place, name in enumerate(self._columns):
            rows[f"c{place}"] = table[name]
        for place, name in enumerate(self.query.values):
            rows[f"v{place}"] = table[name]
        return [row.tobytes() for row in rows]

    def check(self, content: bytes, *, node: int) -> None:
        """Refuse what is no record of this node's groups; the message shows nothing of it.

        Raises:
            DataError: not of the size of a record, a number that is no group, values that are not finite or outside
                their public ranges.
        """
        if len(content) != self.size:
            _fail("a message does not hold a record of this plan.")
        table = self._table(content)
        groups = self.query.grouping_sets[self.position]
        inside = all(0 <= int(table[name][0]) < size for name, size in zip(groups.columns, groups.sizes, strict=True))
        finite = all(np.isfinite(table[name]).all() for name in self.query.values)
        if not inside or not finite or int(self.own(table)[0]) != node:
            _fail("a message holds a record of other groups than this node's.")
        if not all(low <= float(table[name][0]) <= high for name, (low, high) in self.query.ends.items()):
            _fail("a message holds a value outside its public range.")

    def sample(self, *, node: int) -> bytes:
        """Return some record of this node's groups: what is computed with where a message carries no data."""
        groups = self.query.grouping_sets[self.position]
        everyone = np.arange(groups.groups)
        group = int(everyone[self.query.nodes(self.position, everyone) == node][0])
        row = np.zeros(1, dtype=self._type)
        for place, code in enumerate(np.unravel_index(group, groups.sizes)):
            row[f"c{place}"] = code
        for place, name in enumerate(self.query.values):
            row[f"v{place}"] = self.query.ends.get(name, (0.0, 0.0))[0]
        return row.tobytes()

    def statistics(self, contents: Sequence[bytes], used: Sequence[bool] | None = None) -> GroupStatistics:
        """Return the statistics of records that `check` has let through, of those `used` (default: all)."""
        mask = None if used is None else np.array(used, dtype=np.bool_)
        return group_statistics(self.query, self.position, self._table(b"".join(contents)), used=mask)

    def _table(self, content: bytes) -> dict[str, npt.NDArray[np.generic]]:
        rows = np.frombuffer(content, dtype=self._type)
        columns = {name: rows[f"c{place}"] for place, name in enumerate(self._columns)}
        return columns | {name: rows[f"v{place}"] for place, name in enumerate(self.query.values)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """What one compute node found: the statistics of its groups, and what it saw of each batch."""

    statistics: GroupStatistics
    counts: Counts


@dataclass(frozen=True, kw_only=True)
class PartCodec:
    """What a compute node sends to the result: as many messages, whatever it found; `head` bytes are its counts."""

    query: GroupingQuery
    position: int
    head: int
    room: int

    def _groups(self, node: int) -> Integers:
        everyone = np.arange(self.query.grouping_sets[self.position].groups)
        return np.flatnonzero(self.query.nodes(self.position, everyone) == node)

    @property
    def _size(self) -> int:
        """Bytes of the largest part of this grouping set."""
        groups = self.query.grouping_sets[self.position].groups
        largest = -(-groups // self.query.partitions)
        return self.head + 8 * largest * (1 + 3 * len(self.query.values))

    @property
    def messages(self) -> int:
        """How many messages a part takes."""
        return -(-self._size // self.room)

    def pack(self, part: Part, *, node: int) -> list[bytes]:
        """Return the contents of the messages of one node's part."""
        groups, found = self._groups(node), part.statistics
        arrays = [found.count, *(one[name] for one in (found.sum, found.min, found.max) for name in self.query.values)]
        numbers = b"".join(array[groups].astype("<f8").tobytes() for array in arrays)
        whole = (pack_counts(part.counts) + numbers).ljust(self._size, b"\0")
        return [whole[start : start + self.room] for start in range(0, self._size, self.room)]

    def unpack(self, contents: Sequence[bytes], *, node: int) -> Part:
        """Return the part in the contents of `messages` messages; all other groups are empty.

        Raises:
            DataError: these are not all bytes of a part, or numbers of records that are none.
        """
        whole = b"".join(contents)
        if len(whole) != self._size:
            _fail("what a compute node sent is not the part of the result that it should be.")
        groups, names = self._groups(node), self.query.values
        floats = np.frombuffer(whole, dtype="<f8", offset=self.head)[: groups.size * (1 + 3 * len(names))]
        total = self.query.grouping_sets[self.position].groups
        columns = np.full((1 + 3 * len(names), total), np.nan)
        columns[: 1 + len(names)] = 0.0  # counts and sums
        columns[:, groups] = floats.reshape(columns.shape[0], groups.size)
        if not (np.isfinite(columns[0]) & (columns[0] >= 0)).all():
            _fail("what a compute node sent counts records that cannot be.")
        sums, least, greatest = (
            dict(zip(names, columns[1 + start * len(names) :], strict=False)) for start in range(3)
        )
        statistics = GroupStatistics(
            name=self.query.grouping_sets[self.position].name, count=columns[0], sum=sums, min=least, max=greatest
        )
        return Part(statistics=statistics, counts=unpack_counts(whole[: self.head]))


def part_codec(document: RunDocument, number: int) -> PartCodec:
    """Return what the compute nodes of a step send to the result."""
    head, room = counts_size(document.step(number)), document.seals(RESULT).room
    return PartCodec(query=document.grouping, position=number - 1, head=head, room=room)


def _fail(message: str) -> NoReturn:
    raise DataError(message)
