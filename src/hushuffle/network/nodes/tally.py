"""What compute nodes tell the result, and whether the numbers of each batch add up: one scrambler is not believed."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle.errors import DataError
from hushuffle.network.nodes.document import RESULT, Batch, RunDocument, Step

Counts: TypeAlias = tuple[tuple[int, int], ...]
"""For each batch of a step the sources behind it and its messages at one target; (0, 0): it did not come whole."""

_EACH: Final = 16
_HEAD: Final = struct.Struct("<Q")


def counts_size(step: Step) -> int:
    """Return the bytes of a target's counts.

    >>> step = Step(name="ages", computes=("a", "b"), sigma=0.2, min_batch=1, dummies=1,
    ...             batches=(Batch(scrambler="s", holders=("ann", "bob")),))
    >>> counts_size(step), unpack_counts(pack_counts(((2, 1),)))
    (16, ((2, 1),))
    """
    return _EACH * len(step.batches)


def pack_counts(counts: Counts) -> bytes:
    """Return counts as bytes."""
    return np.array(counts, dtype="<u8").tobytes()


def unpack_counts(data: bytes) -> Counts:
    """Return the counts in bytes."""
    return tuple((sources, messages) for sources, messages in np.frombuffer(data, dtype="<u8").reshape(-1, 2).tolist())


@dataclass(frozen=True, kw_only=True, eq=False)
class Told:
    """What a compute node tells of one step: what it saw of each batch, and the numbers that it found."""

    step: int
    counts: Counts
    numbers: npt.NDArray[np.float64]


class ToldCodec:
    """What compute nodes tell, as contents of messages: of a step always as many, whatever it is.

    In rounds the number of the step comes first, then counts and numbers, 8 bytes each, up to the most that a node of
    the step can have.
    """

    def __init__(self, document: RunDocument) -> None:
        self._document, self._task, self.room = document, document.query, document.seals(RESULT).room
        self._first = _HEAD.size if self._task.rounds else 0

    def size(self, step: int) -> int:
        """Return the bytes that a node of a step tells; in rounds all steps have one number of batches."""
        return self._first + self._counts(step) + 8 * self._task.width(step)

    def _counts(self, step: int) -> int:
        return counts_size(self._document.step(1 if self._task.rounds else step))

    def messages(self, step: int) -> int:
        """Return how many messages that takes."""
        return -(-self.size(step) // self.room)

    @property
    def all_messages(self) -> int:
        """How many messages all nodes send in all."""
        return sum(len(step.computes) * self.messages(number) for number, step in enumerate(self._document.steps, 1))

    def pack(self, told: Told) -> list[bytes]:
        """Return the contents of the messages of one node."""
        head = _HEAD.pack(told.step) if self._first else b""
        return self.cut(told.step, head + pack_counts(told.counts) + told.numbers.astype("<f8").tobytes())

    def cut(self, step: int, whole: bytes) -> list[bytes]:
        """Return what a node tells in pieces of one message each."""
        whole = whole.ljust(self.size(step), b"\0")
        return [whole[start : start + self.room] for start in range(0, len(whole), self.room)]

    def unpack(self, place: tuple[int, int], contents: Sequence[bytes]) -> Told:
        """Return what the node in a place told: (step, node), in rounds its place in the first step.

        A step that the run does not have is returned as it is, its numbers unread.
        """
        (step, node), whole = place, b"".join(contents)
        if len(whole) != self.size(step):
            message = "what a compute node sent is not the part of the result that it should be."
            raise DataError(message)
        if self._first:
            (step,) = _HEAD.unpack_from(whole)
        start = self._first + self._counts(place[0])
        counts, numbers = unpack_counts(whole[self._first : start]), np.frombuffer(whole, dtype="<f8", offset=start)
        if 1 <= step <= len(self._document.steps):
            numbers = self._task.part(step, node, numbers)
        return Told(step=step, counts=counts, numbers=numbers)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What came of a step to all its targets: `sources` behind the batches, their `messages`, `lost` batches."""

    sources: int
    messages: int
    lost: int


def tally(step: Step, told: Sequence[Counts]) -> Tally:
    """Return what came of a step, from the counts of each of its targets.

    A batch has one message for each source and the planned dummies, all targets together; it came to all targets or
    to none. A scrambler that keeps messages back, so that the result shows those that it chose, cannot make that so;
    one that puts dummies of its own in their place can.

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


def _sources(step: Step, batch: Batch, told: Sequence[tuple[int, int]]) -> int:
    """Return how many sources are behind a batch, 0 if it is lost."""
    claimed = {sources for sources, _ in told}
    messages = sum(count for _, count in told)
    if claimed == {0}:
        return 0
    (most, least), who = (max(claimed), min(claimed)), f"the batch of {batch.scrambler}"
    if not least:
        whole = sum(sources > 0 for sources, _ in told)
        _fail(step, f"{who} came whole to {whole} of {len(told)} compute nodes")
    if most != least:
        _fail(step, f"{who} was said to have {least:,} sources at one compute node, {most:,} at another")
    if messages != most + step.dummies:
        wanted = f"{most:,} sources and {step.dummies:,} dummies"
        _fail(step, f"{who} has {messages:,} messages for {wanted}")
    return most


def _fail(step: Step, why: str) -> NoReturn:
    message = f"{step.name!r}: {why}. What arrived may have been chosen: nothing is published."
    raise DataError(message)
