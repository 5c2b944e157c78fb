"""Seals: a source's messages that only their target can read; all messages have one size, including dummies."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from hushuffle import _checks
from hushuffle._checks import fail

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_LENGTH: Final = struct.Struct("<H")
_NO_DATA: Final = 0xFFFF

KEY: Final = 32
"""Number of bytes of the one-time public key at the start of every seal."""
OVERHEAD: Final = KEY + 16 + _LENGTH.size
"""Bytes that a seal adds to the content: a one-time public key, a tag, and the length of the content."""


@dataclass(frozen=True, kw_only=True)
class Seals:
    """The seals of one step of one run.

    Messages are sealed with HPKE in base mode (X25519, HKDF-SHA256, AES-256-GCM). HPKE's `info` contains run, plan,
    step and target, and the key is derived from it: a text sealed for another run, plan, step or target does not open.

    `digest`: SHA-256 of the run's document, 32 bytes. `size`: the number of bytes of every sealed text.

    Source: RFC 9180 (Barnes, Bhargavan, Lipp, Wood 2022), sections 5.1 and 8.1.

    >>> key = SealKey.generate()
    >>> seals = Seals(digest=bytes(32), step=1, size=200)
    >>> sealed = seals.seal(b"a record", key.public, target="compute-1")
    >>> len(sealed), seals.open(sealed, key, target="compute-1")
    (200, b'a record')
    >>> seals.open(seals.seal(None, key.public, target="compute-1"), key, target="compute-1") is None
    True
    """

    digest: bytes
    step: int
    size: int

    @property
    def room(self) -> int:
        """Largest number of bytes of the content of one message."""
        return self.size - OVERHEAD

    def _info(self, target: str) -> bytes:
        return b"hushuffle seal 1|" + self.digest + _LENGTH.pack(self.step) + target.encode()

    def seal(self, content: bytes | None, key: PublicSealKey, *, target: str) -> bytes:
        """Return `content`, or a dummy for None, sealed for `target`."""
        if content is not None and len(content) > self.room:
            rule = f"at most {self.room} bytes, so that all messages have one size"
            _checks.reject("content", rule, f"<{len(content)} bytes>", "Make the messages of the plan larger.")
        length = _NO_DATA if content is None else len(content)
        padded = _LENGTH.pack(length) + (content or b"").ljust(self.room, b"\0")
        try:
            return _SUITE.encrypt(padded, key.key, info=self._info(target))
        except ValueError:
            fail(f"nothing can be sealed for {target}: its public seal key is not a valid X25519 key.")

    def open(self, sealed: bytes, key: SealKey, *, target: str) -> bytes | None:
        """Return the content of a sealed text; None for a dummy."""
        try:
            padded = _SUITE.decrypt(sealed, key.key, info=self._info(target))
        except (InvalidTag, ValueError):
            fail("a message was not sealed for this node in this step of this run, or is damaged.")
        length = _LENGTH.unpack_from(padded)[0] if len(sealed) == self.size else None
        if length == _NO_DATA:
            return None
        if length is None or length > self.room:
            fail("a sealed message does not have the size of this run's messages.")
        return padded[_LENGTH.size : _LENGTH.size + length]


@dataclass(frozen=True, kw_only=True)
class PublicSealKey:
    key: X25519PublicKey

    @property
    def text(self) -> str:
        return self.key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()

    @classmethod
    def of(cls, text: str) -> PublicSealKey:
        """Return the key that `text` gives in 64 hexadecimal digits."""
        try:
            return cls(key=X25519PublicKey.from_public_bytes(bytes.fromhex(text)))
        except ValueError:
            fail("a public seal key must be 64 hexadecimal digits.")


@dataclass(frozen=True, kw_only=True)
class SealKey:
    key: X25519PrivateKey

    def __repr__(self) -> str:
        return "SealKey()"  # never the key

    @property
    def public(self) -> PublicSealKey:
        return PublicSealKey(key=self.key.public_key())

    @property
    def text(self) -> str:
        """The 32 secret bytes of the key in hexadecimal digits, for a file that only its owner can read."""
        return self.key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()).hex()

    @classmethod
    def generate(cls) -> SealKey:
        return cls(key=X25519PrivateKey.generate())

    @classmethod
    def of(cls, text: str) -> SealKey:
        try:
            return cls(key=X25519PrivateKey.from_private_bytes(bytes.fromhex(text.strip())))
        except ValueError:
            fail("a secret seal key must be 64 hexadecimal digits.")


class Once:
    """Records the one-time public keys of seals, so that each seal counts once.

    >>> once = Once()
    >>> once.first(bytes(64)), once.first(bytes(64))
    (True, False)
    """

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def __contains__(self, sealed: bytes) -> bool:
        return sealed[:KEY] in self._seen

    def first(self, sealed: bytes) -> bool:
        """Return whether this seal is new, and record it."""
        key = sealed[:KEY]
        if key in self._seen:
            return False
        self._seen.add(key)
        return True
