"""The gateway of Oblivious HTTP: opens requests in binary HTTP that a relay forwarded, and seals the responses.

Source: Thomson, Wood 2024, RFC 9458, sections 3.1, 4.3 and 4.4; Thomson, Wood 2022, RFC 9292.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle_network import formats

_HEADER: Final = 7
"""Bytes of a request's header: key id, KEM, KDF, AEAD."""


@dataclass(frozen=True, kw_only=True)
class GatewayKey:
    """The key of a gateway: X25519 with HKDF-SHA256, then AES-256-GCM or AES-128-GCM as the client chooses.

    `number`: the id of the key in its configuration, 0 to 255; a new key gets another id.

    >>> from hushuffle_network.formats import encapsulate
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
        return cls(private=secrets.token_bytes(32), number=number)

    @property
    def config(self) -> bytes:
        """The key configuration, 45 bytes; a list of type application/ohttp-keys has its length in front, 2 bytes."""
        public = X25519PrivateKey.from_private_bytes(self.private).public_key().public_bytes_raw()
        return formats.key_config(public, self.number)

    def open(self, message: bytes, draw: formats.Draw = secrets.token_bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
        """Return the request in an encapsulated message, and a function that seals its response."""
        start = _HEADER + formats.ENC
        header, enc, sealed = message[:_HEADER], message[_HEADER:start], message[start:]
        suite, aead = formats.KEM.to_bytes(2) + formats.KDF.to_bytes(2), int.from_bytes(header[5:])
        if header[:5] != self.number.to_bytes(1) + suite or aead not in formats.AES_KEYS:
            fail("a request is not sealed for this gateway's key.")
        try:
            keys = formats.receiver_keys(self.private, enc, formats.request_info(header), aead)
            request = keys.open(b"", sealed)
        except formats.PhoneError as error:
            raise DataError(str(error)) from None

        def seal_response(response: bytes) -> bytes:
            first = draw(formats.AES_KEYS[aead])
            cipher, nonce = formats.response_keys(keys, aead, first)
            return first + cipher.encrypt(nonce, response, b"")

        return request, seal_response


class Request(NamedTuple):
    """One HTTP request; `headers` are pairs of a name in lower case and a value, in order."""

    method: str
    scheme: str
    authority: str
    path: str
    headers: list[tuple[str, str]]
    content: bytes


def decode_request(data: bytes) -> Request:
    """Return the request in a binary HTTP message, of known or indeterminate length; no bytes may follow its end.

    >>> decode_request(bytes.fromhex("00034745540568747470730b6578616d706c652e636f6d012f"))[:4]
    ('GET', 'https', 'example.com', '/')
    """
    reader = formats.Reader(data)
    try:
        framing = reader.number()
        if framing not in (0, 2):
            fail("a binary HTTP message is no request.")
        known_length = framing == 0
        method, scheme, authority, path = (reader.text() for _ in range(4))
        headers, content = reader.fields(known_length=known_length), reader.content(known_length=known_length)
        reader.end(known_length=known_length)
    except formats.PhoneError as error:
        raise DataError(str(error)) from None
    return Request(method, scheme, authority, path, headers, content)


def encode_response(status: int, headers: list[tuple[str, str]], content: bytes) -> bytes:
    """Return a binary HTTP response of known length; `status` is from 200 to 599.

    >>> encode_response(200, [], b"").hex()
    '0140c8000000'
    """
    return b"\x01" + formats.varint(status) + formats.encode_fields(headers) + formats.with_length(content) + b"\0"
