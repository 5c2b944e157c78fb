"""Connections between nodes: mutual TLS 1.3 over TCP, time limits, and frames: messages have one size."""

from __future__ import annotations

import asyncio
import enum
import random
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.errors import DataError, HushuffleError
from hushuffle.network.nodes.identities import Identity

_HEAD: Final = struct.Struct("<BBHII4x")  # version, kind, step, slot, target
_REST: Final = struct.Struct("<H2x5Q4x")  # of a control frame: reason, numbers
_DIGEST: Final = struct.Struct("<4Q")  # 32 bytes as the numbers of a control frame
VERSION: Final = 2

CONTROL: Final = _HEAD.size + _REST.size
"""Number of bytes of a control frame."""

SMALLEST, LARGEST = 256, 16_384
"""Smallest and largest size of a message: it must fit into one TLS record of at most 16,384 bytes."""


class Kind(enum.IntEnum):
    MESSAGE = 1
    END = 2
    """All messages were sent; numbers = (messages on this connection, sources of these messages)."""
    ABORT = 3
    """No batch will be sent; the frame states the reason."""
    ACCEPTED = 4
    REFUSED = 5
    """The messages were refused; the frame states the reason."""
    HEALTH = 6
    """A health query; the answer has numbers = (state, accepted, rejected, sent, repeated)."""
    WANT = 7
    """A query for the start centroids of a step; the answer is messages followed by an END frame."""
    HELLO = 8
    """The first frame of each peer on every connection: numbers = the digest of the run's document, 32 bytes."""


class Reason(enum.IntEnum):
    NONE = 0
    CERTIFICATE = 1
    """The certificate is missing, not from the authority, expired, or not yet valid."""
    IDENTITY = 2
    """The certificate is valid, but its node takes no part here."""
    STEP = 3
    SLOT = 4
    """The place in the batch belongs to another node."""
    TARGET = 5
    CONFLICT = 6
    """The place already has another message; each record permanently has one message."""
    LATE = 7
    MALFORMED = 8
    """The bytes are not a frame of this protocol, or the sealed text has no valid message."""
    UNREADABLE = 9
    """The message was sealed for another node, run, plan or step, or is damaged."""
    DUPLICATE = 10
    TRUNCATED = 11
    """The connection ended before all announced messages had arrived."""
    SLOW = 12
    BELOW_MINIMUM = 13
    STOPPED = 14
    NOT_YET = 15
    """The answer is not available yet; the peer should retry."""
    BUSY = 16
    """One node has too many open connections, or there is no place for a further one."""
    OTHER_RUN = 17
    """The peer has another document: of another run, or a changed one."""
    MISCOUNTED = 18
    """The counts of a batch do not add up: sources, dummies, messages."""

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class Message:
    """A sealed message in transit. A scrambler can read its target; an observer of the connection cannot."""

    step: int
    slot: int
    target: int
    sealed: bytes


@dataclass(frozen=True, slots=True)
class Control:
    kind: Kind
    step: int = 0
    reason: Reason = Reason.NONE
    numbers: tuple[int, ...] = ()


Frame: TypeAlias = Message | Control


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The layout of the frames of one run: every message has `size` bytes, including header and seal.

    `digest`: SHA-256 of the run's document, which each peer sends first. A node with any other document is rejected,
    for example a node of an earlier run on the same hosts.

    >>> Layout(size=1024).sealed, len(Layout(size=1024).pack(Control(kind=Kind.END)))
    (1008, 64)
    """

    size: int
    digest: bytes = bytes(_DIGEST.size)
    hello: Control = field(init=False, repr=False, compare=False)
    """The first frame that each peer sends."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _checks.integer("size", self.size, low=SMALLEST, high=LARGEST))
        if len(self.digest) != _DIGEST.size:
            _checks.reject("digest", f"of {_DIGEST.size} bytes", f"<{len(self.digest)} bytes>")
        numbers = (*_DIGEST.unpack(self.digest), 0)
        object.__setattr__(self, "hello", Control(Kind.HELLO, numbers=numbers))

    @property
    def sealed(self) -> int:
        """Bytes of a sealed message."""
        return self.size - _HEAD.size

    def pack(self, frame: Frame) -> bytes:
        if isinstance(frame, Message):
            if len(frame.sealed) != self.sealed:
                _checks.reject("sealed", f"of {self.sealed} bytes", f"<{len(frame.sealed)} bytes>")
            return _HEAD.pack(VERSION, Kind.MESSAGE, frame.step, frame.slot, frame.target) + frame.sealed
        numbers = (*frame.numbers, 0, 0, 0, 0, 0)[:5]
        return _HEAD.pack(VERSION, frame.kind, frame.step, 0, 0) + _REST.pack(frame.reason, *numbers)

    def left(self, head: bytes) -> int:
        """Return how many bytes of a frame follow its first `HEAD` bytes."""
        version, kind, *_ = _HEAD.unpack(head)
        if version != VERSION or kind not in _KINDS:
            fail("these bytes are not a frame of this protocol.")
        return self.sealed if kind == Kind.MESSAGE else _REST.size

    def unpack(self, head: bytes, rest: bytes) -> Frame:
        _version, kind, step, slot, target = _HEAD.unpack(head)
        if kind == Kind.MESSAGE:
            return Message(step, slot, target, rest)
        reason, *numbers = _REST.unpack(rest)
        if reason not in _REASONS:
            fail("a control frame has an unknown reason.")
        return Control(Kind(kind), step, Reason(reason), tuple(numbers))


HEAD: Final = _HEAD.size
_KINDS: Final = frozenset(int(kind) for kind in Kind)
_REASONS: Final = frozenset(int(reason) for reason in Reason)


BUFFER: Final = 1 << 18
"""Bytes that a connection buffers before it stops reading, or before the sender must wait."""

_BLOCK: Final = 1 << 16
"""Bytes that are read at a time."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class ConnectionLostError(HushuffleError):
    """A connection could not be opened, or broke. `reason` gives the cause; `final` states that a retry is useless."""

    def __init__(self, reason: Reason, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.final = final


class Connection:
    """A connection to the node `peer`, whose certificate was checked; the peer must have the same document."""

    def __init__(
        self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, layout: Layout, patience: float
    ) -> None:
        self.peer = peer
        self._reader, self._writer = reader, writer
        self._layout, self._patience = layout, patience
        # Received bytes that were not yet returned start at `_place` of `_block`: frames are cut out of blocks.
        self._block, self._place = b"", 0
        self._greeted = False

    def greet(self) -> None:
        """Send the digest of the run's document as the first frame."""
        self._writer.write(self._layout.pack(self._layout.hello))

    async def receive(self) -> Frame | None:
        """Return the next frame; None if the peer closed the connection between two frames."""
        frame = self._next()
        if frame is not None:
            return frame
        async with self._peer_in_time():
            while frame is None:
                if not (more := await self._reader.read(_BLOCK)):
                    if self._place == len(self._block):
                        return None
                    raise _lost(self.peer, Reason.TRUNCATED)
                self._block, self._place = self._block[self._place :] + more, 0
                frame = self._next()
        return frame

    @asynccontextmanager
    async def _peer_in_time(self) -> AsyncIterator[None]:
        """Raise ConnectionLostError if the peer is too slow, refuses this node's certificate, or breaks off."""
        try:
            async with asyncio.timeout(self._patience):
                yield
        except TimeoutError:
            raise _lost(self.peer, Reason.SLOW) from None
        except ssl.SSLError as error:
            raise _refused(self.peer, error) from None
        except OSError:
            raise _lost(self.peer, Reason.TRUNCATED) from None

    def _next(self) -> Frame | None:
        """Return the next frame of the received bytes; None if the frame is incomplete."""
        first = self._place + HEAD
        head = self._block[self._place : first]
        if len(head) < HEAD:
            return None
        end = first + self._layout.left(head)
        if end > len(self._block):
            return None
        self._place = end
        frame = self._layout.unpack(head, self._block[first:end])
        if self._greeted:
            return frame
        if frame != self._layout.hello:
            raise _lost(self.peer, Reason.OTHER_RUN)
        self._greeted = True
        return self._next()

    async def send(self, *frames: Frame) -> None:
        """Send frames, each in its own TLS record; wait while the peer reads too slowly."""
        writer, transport = self._writer, self._writer.transport
        # This way of writing in asyncio creates one TLS record per frame, and needs one system call for all frames.
        writer.writelines([self._layout.pack(frame) for frame in frames])
        if transport.get_write_buffer_size() <= BUFFER and not transport.is_closing():
            return
        async with self._peer_in_time():
            await writer.drain()

    async def answer(self) -> Control:
        try:
            frame = await self.receive()
        except DataError:
            raise _lost(self.peer, Reason.MALFORMED) from None
        if not isinstance(frame, Control):
            raise _lost(self.peer, Reason.TRUNCATED)
        return frame

    async def close(self) -> None:
        """Close the connection after all bytes were sent."""
        with suppress(OSError, TimeoutError):
            self._writer.close()
            async with asyncio.timeout(self._patience):
                await self._writer.wait_closed()

    def abort(self) -> None:
        self._writer.transport.abort()


class Pauses:
    """Increasing waiting times between retries, which are public and independent of all data."""

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE

    async def wait(self, most: float) -> None:
        await asyncio.sleep(min(self._next * random.uniform(0.5, 1.5), most))  # noqa: S311
        self._next = min(2 * self._next, _LONGEST_PAUSE)


async def connect(
    name: str,
    place: tuple[str, int],
    identity: Identity,
    *,
    layout: Layout,
    patience: float,
    until: float,
    stop: asyncio.Event | None = None,
) -> Connection:
    """Return a connection to the node `name`; retry until the event loop's time is `until`, or until `stop` is set.

    A peer with a wrong certificate gets no data; it is retried, since an interceptor may be absent at the next try.
    """
    loop, context, pauses = asyncio.get_running_loop(), identity.client(), Pauses()
    local = None if identity.address is None else (identity.address, 0)
    while True:
        try:
            async with asyncio.timeout(patience):
                reader, writer = await asyncio.open_connection(
                    *place, ssl=context, server_hostname=name, local_addr=local, limit=BUFFER
                )
        except ssl.SSLCertVerificationError as error:
            message = f"{name} showed an untrusted certificate: {error.verify_message}."
            problem = ConnectionLostError(Reason.CERTIFICATE, message)
        except (OSError, TimeoutError):
            problem = ConnectionLostError(Reason.SLOW, f"{name} could not be reached in time.")
        else:
            connection = Connection(name, reader, writer, layout=layout, patience=patience)
            connection.greet()
            return connection
        left = until - loop.time()
        if left <= 0 or (stop is not None and stop.is_set()):
            raise problem
        await pauses.wait(left)


_WORDS: Final = {
    Reason.SLOW: "was too slow",
    Reason.MALFORMED: "does not speak this protocol",
    Reason.OTHER_RUN: "has another document of the run: all nodes need exactly the same file",
}


def _lost(peer: str, reason: Reason) -> ConnectionLostError:
    words = _WORDS.get(reason, "ended the connection early")
    return ConnectionLostError(reason, f"{peer or 'a node without a name'} {words}.")


def _refused(peer: str, error: ssl.SSLError) -> ConnectionLostError:
    """Return the error for a TLS failure after the handshake: in TLS 1.3 the peer refuses a certificate only then."""
    why = (error.reason or "an error").replace("_", " ").lower()
    if "certificate" not in why and "unknown ca" not in why:
        return _lost(peer, Reason.TRUNCATED)
    return ConnectionLostError(Reason.CERTIFICATE, f"{peer} refuses the certificate of this node ({why}).")
