"""The intake of one target in one step, without a network: what counts, once, and what does not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from hushuffle.errors import DataError
from hushuffle.network.nodes.connections import ConnectionLostError, Control, Kind, Message, Reason
from hushuffle.network.nodes.intake import Intake, take_batch
from hushuffle.network.nodes.journal import Journal
from runtime_cases import Case, bounded, case, holders, seal_key, step

NAME = "compute-1-1"
ACCEPTED = Control(Kind.ACCEPTED, 1)


class Taken:
    """An intake whose contents are words; "bad" is none."""

    def __init__(self, one: Case) -> None:
        self.one, self.words, self.journal = one, list[bytes](), Journal(node=NAME)
        self.intake = Intake(
            one.document,
            1,
            NAME,
            key=seal_key(NAME),
            check=self._check,
            merge=self._merge,
            sample=b"some",
            journal=self.journal,
        )

    def _merge(self, contents: list[bytes], used: list[bool]) -> None:
        assert all(counts or content == b"some" for content, counts in zip(contents, used, strict=True))
        self.words.extend(content for content, counts in zip(contents, used, strict=True) if counts)

    @staticmethod
    def _check(content: bytes) -> None:
        if content == b"bad":
            message = "no word"
            raise DataError(message)

    def sealed(self, content: bytes | None, *, number: int = 1) -> Message:
        document = self.one.document
        return Message(number, 0, 0, document.seals(number).seal(content, document.seal_key(NAME), target=NAME))

    def take(self, peer: str, messages: Sequence[Message], end: Control | None = None) -> Control:
        """Take the messages of one connection; without `end` it breaks then."""

        async def work() -> Control:
            ends = list[Control]()

            async def come() -> AsyncIterator[Message]:
                for message in messages:
                    yield message
                if end is None:
                    error = "broke"
                    raise ConnectionLostError(Reason.TRUNCATED, error)
                ends.append(end)

            return await take_batch(come(), ends, peer, {1: self.intake}, self.journal)

        return bounded(work())

    def batch(self, peer: str, *contents: bytes | None, sources: int = 1) -> Control:
        """Take a batch that is whole."""
        return self.take(peer, [self.sealed(one) for one in contents], end(len(contents), sources))

    @property
    def sums(self) -> tuple[int, int, int, int, bool]:
        own = self.intake
        came = [sources for sources, _ in own.counts if sources]
        assert own.sources == sum(sources for sources, _ in own.counts)
        assert own.messages == sum(messages for _, messages in own.counts)
        return own.sources, own.messages, len(came), len(own.counts) - len(came), own.all_ended.is_set()


def end(count: int, sources: int, *, number: int = 1, kind: Kind = Kind.END) -> Control:
    return Control(kind, number, numbers=(count, sources, 0, 0, 0))


def refused(reason: Reason) -> Control:
    return Control(Kind.REFUSED, 1, reason)


@pytest.fixture
def scrambled() -> Iterator[Taken]:
    with case(step(1, [holders(3), holders(2, start=3)], dummies=2)) as one:
        yield Taken(one)


@pytest.fixture
def alone() -> Iterator[Taken]:
    with case(step(1, [["source-0", "source-1", "source-1"]], scrambled=False)) as one:
        yield Taken(one)


def test_batches_count_when_they_are_whole(scrambled: Taken) -> None:
    assert scrambled.intake.senders == {"scrambler-1-1", "scrambler-1-2"}
    assert scrambled.intake.most("scrambler-1-1") == 5
    assert scrambled.batch("scrambler-1-1", b"a", None, b"b", sources=3) == ACCEPTED
    assert scrambled.sums == (3, 3, 1, 1, False)
    assert scrambled.batch("scrambler-1-2", None, sources=2) == ACCEPTED
    assert scrambled.sums == (5, 4, 2, 0, True)
    assert scrambled.words == [b"a", b"b"]
    assert (scrambled.journal.accepted, dict(scrambled.journal.rejected)) == (4, {})


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (end(0, 3), Reason.TRUNCATED),
        (end(2, 3), Reason.TRUNCATED),
        (end(1, 4), Reason.MISCOUNTED),
        (end(1, 0), Reason.MISCOUNTED),
        (end(1, 3, number=2), Reason.TRUNCATED),
        (end(1, 3, kind=Kind.ACCEPTED), Reason.TRUNCATED),
        (Control(Kind.ABORT, 1, Reason.STOPPED, (1, 3, 0, 0, 0)), Reason.STOPPED),
    ],
)
def test_what_is_not_whole_is_lost_for_good(scrambled: Taken, last: Control, reason: Reason) -> None:
    assert scrambled.take("scrambler-1-1", [scrambled.sealed(b"a")], last) == refused(reason)
    assert scrambled.batch("scrambler-1-1", b"a", sources=3) == refused(Reason.DUPLICATE)
    assert scrambled.sums == (0, 0, 0, 2, False)
    assert scrambled.words == []


def test_a_scrambler_whose_connection_breaks_has_lost_its_batch_and_is_not_waited_for(scrambled: Taken) -> None:
    with pytest.raises(ConnectionLostError):
        scrambled.take("scrambler-1-1", [])  # nothing was sent yet: it may come again
    assert scrambled.batch("scrambler-1-1", b"a", sources=3) == ACCEPTED
    with pytest.raises(ConnectionLostError):
        scrambled.take("scrambler-1-2", [scrambled.sealed(b"b")])
    assert scrambled.sums == (3, 1, 1, 1, True)
    assert scrambled.words == [b"a"]


def test_each_message_that_cannot_be_used_is_counted_by_its_reason(scrambled: Taken) -> None:
    twice = scrambled.sealed(b"a")
    batch = [twice, twice, scrambled.sealed(b"bad"), Message(2, 0, 0, twice.sealed)]
    flipped = Message(1, 0, 0, twice.sealed[:-1] + bytes([twice.sealed[-1] ^ 1]))
    assert scrambled.take("scrambler-1-1", [*batch, flipped], end(5, 3)) == ACCEPTED
    assert scrambled.words == [b"a"]
    assert scrambled.take("scrambler-1-2", [twice], end(1, 2)) == ACCEPTED
    assert scrambled.words == [b"a"]
    rejected = {Reason.DUPLICATE: 2, Reason.MALFORMED: 1, Reason.STEP: 1, Reason.UNREADABLE: 1}
    assert scrambled.journal.rejected == rejected


def test_nobody_sends_more_than_there_can_be(scrambled: Taken) -> None:
    with pytest.raises(ConnectionLostError, match="more messages than"):
        scrambled.batch("scrambler-1-2", *[b"a"] * 5, sources=2)
    assert scrambled.words == []
    assert scrambled.batch("scrambler-1-2", b"a", sources=2) == refused(Reason.DUPLICATE)


def test_sources_alone_may_come_again_with_the_same(alone: Taken) -> None:
    first = [alone.sealed(b"a"), alone.sealed(None)]
    with pytest.raises(ConnectionLostError):
        alone.take("source-1", first[:1])
    assert alone.take("source-1", first, end(2, 2)) == ACCEPTED
    assert alone.take("source-1", first, end(2, 2)) == ACCEPTED
    assert alone.words == [b"a"]
    assert (alone.journal.accepted, alone.journal.repeated) == (2, 2)
    assert alone.batch("source-1", b"other") == refused(Reason.DUPLICATE)
    assert alone.sums == (2, 2, 1, 0, False)
    assert alone.batch("source-0", b"b") == ACCEPTED
    assert alone.sums == (3, 3, 1, 0, True)
    assert alone.words == [b"a", b"b"]


def test_after_its_end_a_step_takes_nothing_more(alone: Taken) -> None:
    first = [alone.sealed(b"a")]
    assert alone.take("source-0", first, end(1, 1)) == ACCEPTED
    alone.intake.close()
    assert alone.batch("source-1", b"b") == refused(Reason.LATE)
    assert alone.take("source-0", first, end(1, 1)) == ACCEPTED  # it had been in time
    assert alone.words == [b"a"]
    assert alone.sums == (1, 1, 1, 0, False)


def test_others_are_told_that_they_have_no_part(alone: Taken) -> None:
    answer: Any = alone.take(NAME, [], end(0, 0))
    assert answer == Control(Kind.REFUSED, 1, Reason.IDENTITY)
    assert alone.take(NAME, [], Control(Kind.HEALTH)).kind is Kind.HEALTH


def test_what_cannot_be_read_is_counted_and_what_is_there_twice_is_not(scrambled: Taken) -> None:
    good, other = scrambled.sealed(b"a"), scrambled.sealed(b"b")
    damaged = Message(1, 0, 0, other.sealed[:-1] + bytes([other.sealed[-1] ^ 1]))
    batch = [good, good, damaged, scrambled.sealed(b"bad")]
    assert scrambled.take("scrambler-1-1", batch, end(4, 3)) == ACCEPTED
    assert scrambled.intake.counts == ((3, 3), (0, 0))
    assert scrambled.words == [b"a"]


def test_a_cap_holds_at_the_target() -> None:
    with case(step(1, [holders(2)], dummies=3, capped=True, min_batch=2)) as one:
        taken = Taken(one)
        assert taken.intake.most("scrambler-1-1") == 2
        with pytest.raises(ConnectionLostError, match="more messages than"):
            taken.batch("scrambler-1-1", b"a", b"b", b"c", sources=2)


def test_a_batch_below_its_minimum_is_not_believed() -> None:
    with case(step(1, [holders(5)], min_batch=4)) as one:
        taken = Taken(one)
        assert taken.batch("scrambler-1-1", b"a", sources=3) == refused(Reason.MISCOUNTED)
        assert taken.words == []


@pytest.mark.parametrize("sources", [0, 2])
def test_a_source_without_a_scrambler_stands_behind_its_own_messages(alone: Taken, sources: int) -> None:
    assert alone.batch("source-1", b"a", sources=sources) == refused(Reason.MISCOUNTED)
