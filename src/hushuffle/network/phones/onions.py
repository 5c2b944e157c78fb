"""What is inside a message: seals around seals, one for each scrambler and one for the target, of one size for all."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from hushuffle import _checks
from hushuffle.errors import DataError
from hushuffle.network.phones.task import SEAL, TOKEN, Place, TaskDocument
from hushuffle.randomness import Randomness

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_NUMBER: Final = struct.Struct(">H")
_NO_DATA: Final = 0xFFFF
_NO_TOKEN: Final = bytes(TOKEN)
ONCE: Final = 32
"""Bytes of the one-time public key that every message starts with."""


class Onions:
    """The messages of one step of a task.

    Each is sealed with HPKE in base mode (X25519, HKDF-SHA256, AES-256-GCM), for the target first: token, length of
    the record (2 bytes, 65,535 for none), record, zeros; then number of the target (2 bytes) and that, for the last
    scrambler; then for the one before it.

    Source: RFC 9180 (Barnes, Bhargavan, Lipp, Wood 2022), section 5.1.
    """

    def __init__(self, task: TaskDocument, number: int) -> None:
        self.task, self.number, self.step = task, number, task.step(number)
        self._targets = [_Receiver(one, task.info(number, one.name)) for one in self.step.targets]
        self._chain = [_Receiver(one, task.info(number, one.name)) for one in task.chain]

    def inner(self, target: int, token: bytes | None, record: bytes | None) -> bytes:
        """Return what is sealed for a target: a token or none, a record or none."""
        if record is not None and len(record) > self.task.room:
            _checks.reject("record", f"of at most {self.task.room} bytes", f"<{len(record)} bytes>")
        if token is not None and len(token) != TOKEN:
            _checks.reject("token", f"of {TOKEN} bytes", f"<{len(token)} bytes>")
        length = _NO_DATA if record is None else len(record)
        padded = (record or b"").ljust(self.task.room, b"\0")
        return self._targets[target].seal((token or _NO_TOKEN) + _NUMBER.pack(length) + padded)

    def wrap(self, target: int, inner: bytes, *, after: int = -1) -> bytes:
        """Return a message for the scrambler that comes `after` one of the chain, -1 for the first."""
        message = _NUMBER.pack(target) + inner
        for receiver in reversed(self._chain[after + 1 :]):
            message = receiver.seal(message)
        return message

    def message(self, target: int, token: bytes | None, record: bytes | None) -> bytes:
        """Return what a phone sends."""
        return self.wrap(target, self.inner(target, token, record))

    def dummies(self, count: int, *, hop: int, rng: Randomness) -> list[bytes]:
        """Return what a scrambler adds: messages without data or token to random targets, for whoever comes next."""
        return [
            self.wrap(target, self.inner(target, None, None), after=hop)
            for target in self.step.sampling.dummies(count, rng=rng).tolist()
        ]

    def opened(self, message: bytes, key: X25519PrivateKey, *, hop: int) -> bytes | None:
        """Return what a scrambler finds in a message; None if it is none for it, or names no target."""
        inside = self._chain[hop].open(message, key)
        if inside is None or (hop == len(self._chain) - 1 and target_of(inside) >= len(self._targets)):
            return None
        return inside

    def taken(self, message: bytes, key: X25519PrivateKey, *, target: int) -> tuple[bytes, bytes | None]:
        """Return token and record of a message at its target; the token of a dummy is all zeros.

        Raises:
            DataError: it is no message for this target.
        """
        inside = self._targets[target].open(message, key) if len(message) == self.task.inner else None
        if inside is None:
            reason = "a message was not sealed for this target in this step of this task, or is damaged."
            raise DataError(reason)
        (length,) = _NUMBER.unpack_from(inside, TOKEN)
        if length != _NO_DATA and length > self.task.room:
            reason = "a message does not say how long its record is."
            raise DataError(reason)
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
    """Say whether there is a token at all: a dummy has none."""
    return token != _NO_TOKEN


def target_of(message: bytes) -> int:
    """Return the target of a message as the last scrambler finds it."""
    return int(_NUMBER.unpack_from(message)[0])


def without_target(message: bytes) -> bytes:
    """Return a message as its target gets it."""
    return message[_NUMBER.size :]


def by_target(messages: Iterable[bytes], targets: int) -> list[list[bytes]]:
    """Return the messages for each target, in their order, as they leave the last scrambler."""
    found: list[list[bytes]] = [[] for _ in range(targets)]
    for message in messages:
        found[target_of(message)].append(without_target(message))
    return found


assert SEAL == ONCE + 16
