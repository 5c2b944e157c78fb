"""`Intake`: the messages that one target accepts in one step. `tally`: the check of all targets' counts."""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail
from hushuffle.errors import DataError, HushuffleError
from hushuffle.network.nodes.connections import ConnectionLostError, Control, Kind, Message, Reason
from hushuffle.network.nodes.document import RESULT, Batch, RunDocument, Step
from hushuffle.network.nodes.journal import Journal, Spool, unpack_batch
from hushuffle.network.nodes.seals import KEY, Once, SealKey

Arrived: TypeAlias = dict[bytes, tuple[bytes, bool] | None]
"""The messages of one connection, by the one-time keys of their seals. A value is a record, and whether it counts (a
dummy does not); None marks an unreadable message, a fault of its source that its scrambler cannot detect.
"""


class Intake:
    """The batches of one step that arrive at one target. All numbers include dummies, and count complete batches only.

    `check` raises DataError for content that is not a record of this target. `merge` receives the records of a complete
    batch, and for each record whether it counts. A dummy is processed as the record `sample`, so that the response time
    of the target does not depend on the number of messages with data.
    """

    def __init__(
        self,
        document: RunDocument,
        number: int,
        name: str,
        *,
        key: SealKey,
        check: Callable[[bytes], None],
        merge: Callable[[list[bytes], list[bool]], None],
        sample: bytes,
        journal: Journal,
    ) -> None:
        self._number, self._name, self._key = number, name, key
        self._step, self._seals = document.step(number), document.seals(number)
        self._check, self._merge, self._sample, self._journal = check, merge, sample, journal
        self._once = Once()
        # The permitted senders, each with its largest number of sources.
        self._senders: dict[str, int] = {}
        for batch in self._step.batches:
            if batch.scrambler is None:
                self._senders |= Counter(batch.holders)
            else:
                self._senders[batch.scrambler] = len(batch.holders)
        self._ended: set[str] = set()
        self._came: dict[str, tuple[int, int]] = {}
        self._closed = False
        self.all_ended = asyncio.Event()
        self.sources = self.messages = 0

    @property
    def senders(self) -> frozenset[str]:
        return frozenset(self._senders)

    @property
    def counts(self) -> Counts:
        if not self._step.scrambled:
            return ((self.sources, self.messages),)
        return tuple(self._came.get(batch.scrambler or "", (0, 0)) for batch in self._step.batches)

    def expects(self, peer: str, end: Control) -> bool:
        """Return whether the batch of a sender can still be counted."""
        right = (end.kind, end.step) == (Kind.END, self._number)
        return right and peer in self._senders and peer not in self._ended and not self._closed

    def close(self) -> None:
        """Accept no further messages, since the result of the step is computed now."""
        self._closed = True

    def most(self, peer: str) -> int:
        """Return the largest number of messages of a sender; under a cap, this is the number of its sources."""
        return self._senders.get(peer, 0) + (0 if self._step.capped else self._step.dummies)

    def open(self, message: Message, arrived: Arrived) -> None:
        """Open a message, and store its content until its batch is complete."""
        reason = Reason.STEP if message.step != self._number else self._opened(message.sealed, arrived)
        if reason is not Reason.NONE:
            self._journal.reject(reason)

    def _opened(self, sealed: bytes, arrived: Arrived) -> Reason:
        try:
            content = self._seals.open(sealed, self._key, target=self._name)
        except DataError:
            arrived.setdefault(sealed[:KEY], None)
            return Reason.UNREADABLE
        if sealed[:KEY] in arrived:
            return Reason.DUPLICATE
        record = self._sample if content is None else content
        try:
            self._check(record)
        except DataError:
            arrived[sealed[:KEY]] = None
            return Reason.MALFORMED
        arrived[sealed[:KEY]] = record, content is not None
        return Reason.NONE

    def broke(self, peer: str) -> None:
        """Abandon the batch of a scrambler whose connection broke, since a scrambler sends its batch only once."""
        if self._step.scrambled and peer in self._senders:
            self._ends(peer)

    def _ends(self, peer: str) -> None:
        self._ended.add(peer)
        if len(self._ended) == len(self._senders):
            self.all_ended.set()

    def end(self, peer: str, end: Control, count: int, arrived: Arrived) -> Control:
        """Count a complete batch that arrived in time, or mark the batch as lost; return the answer to the sender."""
        if peer in self._ended:
            if not self._step.scrambled and all(key in self._once for key in arrived):
                # A source repeats its messages, because the first answer was lost.
                self._journal.repeated += count
                return Control(Kind.ACCEPTED, self._number)
            return self._journal.refuse(self._number, Reason.DUPLICATE)
        if self._closed:
            return self._journal.refuse(self._number, Reason.LATE)
        self._ends(peer)
        announced, sources = end.numbers[:2]
        reason = Reason.NONE
        if (end.kind, end.step, announced) != (Kind.END, self._number, count):
            reason = end.reason or Reason.TRUNCATED
        elif not self._possible(peer, sources, count):
            reason = Reason.MISCOUNTED
        if reason is not Reason.NONE:
            return self._journal.refuse(self._number, reason)
        # Seals are recorded only now: messages from a connection that broke may arrive again, and then count.
        new = [one for key, one in arrived.items() if self._once.first(key)]
        if len(new) < len(arrived):
            self._journal.reject(Reason.DUPLICATE, len(arrived) - len(new))
        fresh = [one for one in new if one is not None]
        self._journal.accepted += len(fresh)
        self._merge([record for record, _ in fresh], [counts for _, counts in fresh])
        self._came[peer] = sources, len(arrived)
        self.sources += sources
        self.messages += len(arrived)
        return Control(Kind.ACCEPTED, self._number)

    def _possible(self, peer: str, sources: int, count: int) -> bool:
        """Return whether a sender can have sent so many messages here; the result checks the sum over all targets."""
        if not self._step.scrambled:
            return sources == count
        return self._step.min_batch <= sources <= self._senders[peer] and count <= sources + self._step.dummies


async def take_batch(
    messages: AsyncIterator[Message],
    ends: list[Control],
    peer: str,
    intakes: Mapping[int, Intake],
    journal: Journal,
    *,
    keep: Callable[[str, Control, list[bytes]], Awaitable[None]] | None = None,
) -> Control:
    """Accept the messages of one sender for one step, and return the control frame that answers the sender.

    `ends` receives the frame that ends the messages. `keep` receives the sender, this frame and the sealed messages
    before the batch counts.
    """
    arrived, count, intake, sealed = Arrived(), 0, next(iter(intakes.values())), list[bytes]()
    try:
        async for message in messages:
            if not count:
                intake = intakes.get(message.step, intake)
            count += 1
            if count > intake.most(peer):
                raise ConnectionLostError(
                    Reason.MALFORMED, f"{peer} sends more messages than its sources and dummies allow."
                )
            intake.open(message, arrived)
            sealed.append(message.sealed)
    except HushuffleError:
        if count:
            intake.broke(peer)
        raise
    (end,) = ends
    if end.kind is Kind.HEALTH:
        return journal.health()
    if not count:
        intake = intakes.get(end.step, intake)
    if peer not in intake.senders:  # the peer is this node itself, or a sender of another step
        return journal.refuse(end.step, Reason.IDENTITY)
    if keep is not None and intake.expects(peer, end):
        await keep(peer, end, sealed)
    return intake.end(peer, end, count, arrived)


def restored(spool: Spool | None, intakes: Mapping[int, Intake], document: RunDocument) -> None:
    """Restore the batches that a node had stored before it was stopped."""
    for record in () if spool is None else spool.read():
        peer, number, sources, sealed = unpack_batch(record, document.layout.sealed)
        intake, arrived = intakes[number], Arrived()
        for content in sealed:
            intake.open(Message(number, 0, 0, content), arrived)
        intake.end(peer, Control(Kind.END, number, numbers=(len(sealed), sources)), len(sealed), arrived)


Counts: TypeAlias = tuple[tuple[int, int], ...]
"""For each batch of a step, its numbers of sources and messages at one target; (0, 0) for an incomplete batch."""

_EACH: Final = 16
_HEAD: Final = struct.Struct("<Q")


def pack_counts(counts: Counts) -> bytes:
    """Return a target's encoded counts, 16 bytes for each batch.

    >>> len(pack_counts(((2, 1),))), unpack_counts(pack_counts(((2, 1),)))
    (16, ((2, 1),))
    """
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
        return _EACH * len(self._document.step(1 if self._task.rounds else step).batches)

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
