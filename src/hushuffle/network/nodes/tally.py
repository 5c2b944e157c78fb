"""Reports of compute nodes to the result, and the check of each batch's counts, which trusts no scrambler."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail
from hushuffle.network.nodes.document import RESULT, Batch, RunDocument, Step

Counts: TypeAlias = tuple[tuple[int, int], ...]
"""For each batch of a step, its numbers of sources and messages at one target; (0, 0) for an incomplete batch."""

_EACH: Final = 16
_HEAD: Final = struct.Struct("<Q")


def counts_size(step: Step) -> int:
    """Return the number of bytes of a target's encoded counts.

    >>> step = Step(name="ages", computes=("a", "b"), sigma=0.2, min_batch=1, dummies=1,
    ...             batches=(Batch(scrambler="s", holders=("ann", "bob")),))
    >>> counts_size(step), unpack_counts(pack_counts(((2, 1),)))
    (16, ((2, 1),))
    """
    return _EACH * len(step.batches)


def pack_counts(counts: Counts) -> bytes:
    return np.array(counts, dtype="<u8").tobytes()


def unpack_counts(data: bytes) -> Counts:
    return tuple((sources, messages) for sources, messages in np.frombuffer(data, dtype="<u8").reshape(-1, 2).tolist())


@dataclass(frozen=True, kw_only=True, eq=False)
class Told:
    """The report of a compute node for one step: the counts of each batch, and the sums over the records."""

    step: int
    counts: Counts
    numbers: npt.NDArray[np.float64]


class ToldCodec:
    """Encodes reports of compute nodes as contents of messages; all reports of a step have the same number of messages.

    In a query with iterations, the number of the step comes first; then counts and numbers, 8 bytes each, padded to the
    largest report of the step.
    """

    def __init__(self, document: RunDocument) -> None:
        self._document, self._task, self.room = document, document.query, document.seals(RESULT).room
        self._first = _HEAD.size if self._task.rounds else 0

    def size(self, step: int) -> int:
        """Return the bytes of a node's report for a step; with iterations, all steps have equally many batches."""
        return self._first + self._counts(step) + 8 * self._task.width(step)

    def _counts(self, step: int) -> int:
        return counts_size(self._document.step(1 if self._task.rounds else step))

    def messages(self, step: int) -> int:
        return -(-self.size(step) // self.room)

    @property
    def all_messages(self) -> int:
        """The total number of messages with which all nodes send their reports, over all steps."""
        return sum(len(step.computes) * self.messages(number) for number, step in enumerate(self._document.steps, 1))

    def pack(self, told: Told) -> list[bytes]:
        head = _HEAD.pack(told.step) if self._first else b""
        return self.cut(told.step, head + pack_counts(told.counts) + told.numbers.astype("<f8").tobytes())

    def cut(self, step: int, whole: bytes) -> list[bytes]:
        whole = whole.ljust(self.size(step), b"\0")
        return [whole[start : start + self.room] for start in range(0, len(whole), self.room)]

    def unpack(self, place: tuple[int, int], contents: Sequence[bytes]) -> Told:
        """Return the report of a node; `place`: (step, node), of the first step in a query with iterations.

        The numbers of a report for a step outside the run are not decoded.
        """
        (step, node), whole = place, b"".join(contents)
        if len(whole) != self.size(step):
            fail(
                f"the report of a compute node has {len(whole):,} bytes, but its part of the result must have "
                f"{self.size(step):,} bytes."
            )
        if self._first:
            (step,) = _HEAD.unpack_from(whole)
        start = self._first + self._counts(place[0])
        counts, numbers = unpack_counts(whole[self._first : start]), np.frombuffer(whole, dtype="<f8", offset=start)
        if 1 <= step <= len(self._document.steps):
            numbers = self._task.part(step, node, numbers)
        return Told(step=step, counts=counts, numbers=numbers)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The counts of a step over all targets: `sources` and `messages` of arrived batches, and `lost` batches."""

    sources: int
    messages: int
    lost: int


def tally(step: Step, told: Sequence[Counts]) -> Tally:
    """Return the counts of a step, checked and summed over all of its targets.

    Over all targets together, a batch has one message for each source and the planned dummies; it arrives at all
    targets or at none. A scrambler that withholds some messages to single out others fails this check. A scrambler that
    replaces messages by its own dummies passes it.

    >>> step = Step(name="ages", computes=("a", "b"), sigma=0.2, min_batch=1, dummies=1,
    ...             batches=(Batch(scrambler="s", holders=("ann", "bob")),))
    >>> tally(step, [((2, 1),), ((2, 2),)])
    Tally(sources=2, messages=3, lost=0)
    """
    if not step.scrambled:
        messages = sum(count for counts in told for _, count in counts)
        if messages > step.sources * (step.flood + 1):
            _fail(step, f"compute nodes have {messages:,} messages, more than {step.sources:,} sources can send")
        return Tally(sources=messages // (step.flood + 1), messages=messages, lost=0)
    sources = [_sources(step, batch, [counts[place] for counts in told]) for place, batch in enumerate(step.batches)]
    messages = sum(count for counts in told for _, count in counts)
    return Tally(sources=sum(sources), messages=messages, lost=sources.count(0))


def _sources(step: Step, batch: Batch, pairs: Sequence[tuple[int, int]]) -> int:
    """Return the number of sources of a batch; 0 if the batch is lost."""
    claimed = {sources for sources, _ in pairs}
    messages = sum(count for _, count in pairs)
    if claimed == {0}:
        return 0
    (most, least), who = (max(claimed), min(claimed)), f"the batch of {batch.scrambler}"
    if not least:
        whole = sum(sources > 0 for sources, _ in pairs)
        _fail(step, f"{who} is complete at {whole} of {len(pairs)} compute nodes")
    if most != least:
        _fail(step, f"{who} has {least:,} sources at one compute node, {most:,} at another")
    if messages != most + step.dummies:
        wanted = f"{most:,} sources and {step.dummies:,} dummies"
        _fail(step, f"{who} has {messages:,} messages for {wanted}")
    return most


def _fail(step: Step, why: str) -> NoReturn:
    fail(f"{step.name!r}: {why}. A scrambler may have selected messages, so nothing was published.")
