"""Messages in nested seals, one for each scrambler and one for the target; all messages of a task have one size."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.network.phones.task import SEAL, TOKEN, Place, TaskDocument
from hushuffle.randomness import Randomness

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_NUMBER: Final = struct.Struct(">H")
_NO_DATA: Final = 0xFFFF
_NO_TOKEN: Final = bytes(TOKEN)
ONCE: Final = 32
"""Length in bytes of the one-time public key at the start of every message."""


class Onions:
    """Creates and opens the messages of one step of a task.

    Every seal is HPKE in base mode (X25519, HKDF-SHA256, AES-256-GCM). The inner seal is for the target; it contains
    the token, the length of the record (2 bytes, 65,535 for no record), the record, and zeros. The seal for the last
    scrambler contains the number of the target (2 bytes) and the inner seal. The seal for every other scrambler
    contains the seal for the next scrambler.

    Source: RFC 9180 (Barnes, Bhargavan, Lipp, Wood 2022), section 5.1.
    """

    def __init__(self, task: TaskDocument, number: int) -> None:
        self.task, self.number, self.step = task, number, task.step(number)
        self._targets = [_Receiver(one, task.info(number, one.name)) for one in self.step.targets]
        self._chain = [_Receiver(one, task.info(number, one.name)) for one in task.chain]

    def inner(self, target: int, token: bytes | None, record: bytes | None) -> bytes:
        """Return a text sealed for a target: a token or none, and a record or none."""
        if record is not None and len(record) > self.task.room:
            _checks.reject("record", f"of at most {self.task.room} bytes", f"<{len(record)} bytes>")
        if token is not None and len(token) != TOKEN:
            _checks.reject("token", f"of {TOKEN} bytes", f"<{len(token)} bytes>")
        length = _NO_DATA if record is None else len(record)
        padded = (record or b"").ljust(self.task.room, b"\0")
        return self._targets[target].seal((token or _NO_TOKEN) + _NUMBER.pack(length) + padded)

    def wrap(self, target: int, inner: bytes, *, after: int = -1) -> bytes:
        """Return a target's sealed text, also sealed for the scramblers after number `after` (-1: for all)."""
        message = _NUMBER.pack(target) + inner
        for receiver in reversed(self._chain[after + 1 :]):
            message = receiver.seal(message)
        return message

    def message(self, target: int, token: bytes | None, record: bytes | None) -> bytes:
        return self.wrap(target, self.inner(target, token, record))

    def dummies(self, count: int, *, hop: int, rng: Randomness) -> list[bytes]:
        """Return a scrambler's dummies: messages without data or token, to random targets, for the next service."""
        return [
            self.wrap(target, self.inner(target, None, None), after=hop)
            for target in self.step.sampling.dummies(count, rng=rng).tolist()
        ]

    def opened(self, message: bytes, key: X25519PrivateKey, *, hop: int) -> bytes | None:
        """Return the content of a message at a scrambler; None if the message does not open, or names no target."""
        inside = self._chain[hop].open(message, key)
        if inside is None or (hop == len(self._chain) - 1 and target_of(inside) >= len(self._targets)):
            return None
        return inside

    def taken(self, message: bytes, key: X25519PrivateKey, *, target: int) -> tuple[bytes, bytes | None]:
        """Return token and record of a message at its target; the token of a dummy is all zeros."""
        inside = self._targets[target].open(message, key) if len(message) == self.task.inner else None
        if inside is None:
            fail("a message was not sealed for this target in this step of this task, or is damaged.")
        (length,) = _NUMBER.unpack_from(inside, TOKEN)
        if length != _NO_DATA and length > self.task.room:
            fail("a message has no valid length of its record.")
        start = TOKEN + _NUMBER.size
        return inside[:TOKEN], None if length == _NO_DATA else inside[start : start + length]


class _Receiver:
    def __init__(self, place: Place, info: bytes) -> None:
        self._key, self._info = X25519PublicKey.from_public_bytes(bytes.fromhex(place.key)), info

    def seal(self, content: bytes) -> bytes:
        return _SUITE.encrypt(content, self._key, info=self._info)

    def open(self, sealed: bytes, key: X25519PrivateKey) -> bytes | None:
        try:
            return _SUITE.decrypt(sealed, key, info=self._info)
        except (InvalidTag, ValueError):
            return None


def is_token(token: bytes) -> bool:
    """Return whether a token is present: a dummy has zeros in its place."""
    return token != _NO_TOKEN


def target_of(message: bytes) -> int:
    """Return the target's number in a message that the last scrambler has opened."""
    return int(_NUMBER.unpack_from(message)[0])


def without_target(message: bytes) -> bytes:
    return message[_NUMBER.size :]


def by_target(messages: Iterable[bytes], targets: int) -> list[list[bytes]]:
    """Return one list of messages for each target, in order, from messages that the last scrambler has opened."""
    messages_of: list[list[bytes]] = [[] for _ in range(targets)]
    for message in messages:
        messages_of[target_of(message)].append(without_target(message))
    return messages_of


assert SEAL == ONCE + 16
