"""The gateway of Oblivious HTTP: opens requests that a relay forwarded, and seals the responses (RFC 9458).

Source: Thomson, Wood 2024, RFC 9458, sections 3.1, 4.3 and 4.4.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle.network.phones.formats import (
    AES_KEYS,
    ENC,
    KDF,
    KEM,
    Draw,
    PhoneError,
    key_config,
    receiver_keys,
    request_info,
    response_keys,
)

_HEADER: Final = 7
"""Bytes of a request's header: key id, KEM, KDF, AEAD."""


@dataclass(frozen=True, kw_only=True)
class GatewayKey:
    """The key of a gateway: X25519 with HKDF-SHA256, then AES-256-GCM or AES-128-GCM as the client chooses.

    `number`: the id of the key in its configuration, 0 to 255; a new key gets another id.

    Raises:
        DataError: the secret is not 32 bytes.
        InvalidInputError: the number is out of range.

    >>> from hushuffle.network.phones.formats import encapsulate
    >>> key = GatewayKey.generate()
    >>> message, open_response = encapsulate(key.config, b"a request")
    >>> request, seal_response = key.open(message)
    >>> request, open_response(seal_response(b"an answer"))
    (b'a request', b'an answer')
    """

    private: bytes = field(repr=False)
    number: int = 1

    def __post_init__(self) -> None:
        _checks.integer("number", self.number, low=0, high=255)
        if len(self.private) != 32:
            fail("a gateway's secret key must be 64 hexadecimal digits.")

    @classmethod
    def generate(cls, number: int = 1) -> GatewayKey:
        """Return a new key."""
        return cls(private=secrets.token_bytes(32), number=number)

    @classmethod
    def of(cls, text: str, number: int = 1) -> GatewayKey:
        """Return the key whose 32 secret bytes are given in 64 hexadecimal digits."""
        try:
            private = bytes.fromhex(text.strip())
        except (ValueError, AttributeError):
            private = b""  # `__post_init__` refuses it
        return cls(private=private, number=number)

    @property
    def text(self) -> str:
        """The 32 secret bytes of the key in hexadecimal digits, for a file that only its owner can read."""
        return self.private.hex()

    @property
    def config(self) -> bytes:
        """The key configuration, 45 bytes; a list of type application/ohttp-keys has its length in front, 2 bytes."""
        public = X25519PrivateKey.from_private_bytes(self.private).public_key().public_bytes_raw()
        return key_config(public, self.number)

    def open(self, message: bytes, draw: Draw = secrets.token_bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
        """Return the request in an encapsulated message, and a function that seals its response.

        Raises:
            DataError: the message is for another key or cipher suite, or is damaged.
        """
        header, enc, sealed = message[:_HEADER], message[_HEADER : _HEADER + ENC], message[_HEADER + ENC :]
        aead = int.from_bytes(header[5:])
        if header[:5] != self.number.to_bytes(1) + KEM.to_bytes(2) + KDF.to_bytes(2) or aead not in AES_KEYS:
            fail("a request is not sealed for this gateway's key.")
        try:
            keys = receiver_keys(self.private, enc, request_info(header), aead)
            request = keys.open(b"", sealed)
        except PhoneError as error:
            raise DataError(str(error)) from None

        def seal_response(response: bytes) -> bytes:
            first = draw(AES_KEYS[aead])
            cipher, nonce = response_keys(keys, aead, first)
            return first + cipher.encrypt(nonce, response, b"")

        return request, seal_response
