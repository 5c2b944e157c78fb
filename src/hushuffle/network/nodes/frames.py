"""The frames of a connection: all messages have one size, and all control frames have a shorter size."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from hushuffle import _checks
from hushuffle._checks import fail

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
