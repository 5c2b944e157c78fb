"""What goes over a connection: messages, all of one size, and short control frames, all of another."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from hushuffle import _checks
from hushuffle.errors import DataError

_HEAD: Final = struct.Struct("<BBHII4x")  # version, kind, step, slot, target
_REST: Final = struct.Struct("<H2x5Q4x")  # of a control frame: reason, numbers
_DIGEST: Final = struct.Struct("<4Q")  # 32 bytes as the numbers of a control frame
VERSION: Final = 2

CONTROL: Final = _HEAD.size + _REST.size
"""Bytes of a control frame."""

SMALLEST, LARGEST = 256, 16_384
"""A message is one record of TLS, which holds at most 16,384 bytes."""


class Kind(enum.IntEnum):
    """What a frame is."""

    MESSAGE = 1
    END = 2
    """All messages were sent: numbers = (messages on this connection, sources behind them)."""
    ABORT = 3
    """There will be no batch: reason."""
    ACCEPTED = 4
    REFUSED = 5
    """reason."""
    HEALTH = 6
    """A question; the answer has numbers = (state, accepted, rejected, sent, repeated)."""
    WANT = 7
    """A question after the centroids that a step starts from; the answer is messages and an END."""
    HELLO = 8
    """The first frame of each side on every connection: numbers = the digest of the run's document, 32 bytes."""


class Reason(enum.IntEnum):
    """Why something was refused, or a batch given up."""

    NONE = 0
    CERTIFICATE = 1
    """No certificate of the authority, expired, or not valid yet."""
    IDENTITY = 2
    """A good certificate, but of nobody who takes part here."""
    STEP = 3
    SLOT = 4
    """A place in the batch that belongs to somebody else."""
    TARGET = 5
    CONFLICT = 6
    """The place is taken by another message: there is one message for each record, for ever."""
    LATE = 7
    MALFORMED = 8
    """No frame of this protocol, or a sealed text that holds no message."""
    UNREADABLE = 9
    """Sealed for another node, run, plan or step; or damaged."""
    DUPLICATE = 10
    TRUNCATED = 11
    """The connection ended before all that was announced had come."""
    SLOW = 12
    BELOW_MINIMUM = 13
    STOPPED = 14
    NOT_YET = 15
    """Ask again."""
    BUSY = 16
    """Too many connections of one node at a time."""
    OTHER_RUN = 17
    """The other end holds another document: of another run, or a changed one."""
    MISCOUNTED = 18
    """The numbers of a batch do not add up: sources, dummies, messages."""

    @property
    def words(self) -> str:
        """The reason as one word or two."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class Message:
    """A sealed message on its way; a scrambler reads where it goes, nobody on the wire does."""

    step: int
    slot: int
    target: int
    sealed: bytes


@dataclass(frozen=True, slots=True)
class Control:
    """A short frame about messages."""

    kind: Kind
    step: int = 0
    reason: Reason = Reason.NONE
    numbers: tuple[int, ...] = ()


Frame: TypeAlias = Message | Control


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The frames of one run: `size` bytes for every message, header and seal included.

    `digest` is the SHA-256 of the run's document, 32 bytes. Each end of a connection says it first, whole: whoever
    holds another document, however alike, is not heard, nor are nodes of an earlier run on the same hosts.

    >>> Layout(size=1024).sealed, len(Layout(size=1024).pack(Control(kind=Kind.END)))
    (1008, 64)
    """

    size: int
    digest: bytes = bytes(_DIGEST.size)
    hello: Control = field(init=False, repr=False, compare=False)
    """What each end of a connection says first."""

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
        """Return the bytes of a frame."""
        if isinstance(frame, Message):
            if len(frame.sealed) != self.sealed:
                _checks.reject("sealed", f"of {self.sealed} bytes", f"<{len(frame.sealed)} bytes>")
            return _HEAD.pack(VERSION, Kind.MESSAGE, frame.step, frame.slot, frame.target) + frame.sealed
        numbers = (*frame.numbers, 0, 0, 0, 0, 0)[:5]
        return _HEAD.pack(VERSION, frame.kind, frame.step, 0, 0) + _REST.pack(frame.reason, *numbers)

    def left(self, head: bytes) -> int:
        """Return how many bytes follow the first `HEAD` ones."""
        version, kind, *_ = _HEAD.unpack(head)
        if version != VERSION or kind not in _KINDS:
            message = "these bytes are no frame of this protocol."
            raise DataError(message)
        return self.sealed if kind == Kind.MESSAGE else _REST.size

    def unpack(self, head: bytes, rest: bytes) -> Frame:
        """Return the frame of `HEAD` bytes and what follows them."""
        _version, kind, step, slot, target = _HEAD.unpack(head)
        if kind == Kind.MESSAGE:
            return Message(step, slot, target, rest)
        reason, *numbers = _REST.unpack(rest)
        if reason not in _REASONS:
            message = "a control frame gives an unknown reason."
            raise DataError(message)
        return Control(Kind(kind), step, Reason(reason), tuple(numbers))


HEAD: Final = _HEAD.size
_KINDS: Final = frozenset(int(kind) for kind in Kind)
_REASONS: Final = frozenset(int(reason) for reason in Reason)
