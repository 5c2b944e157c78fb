"""Binary HTTP on the server's side: decode requests, encode responses (RFC 9292).

Source: Thomson, Wood 2022, RFC 9292.
"""

from __future__ import annotations

from typing import NamedTuple

from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle.network.phones.formats import PhoneError, Reader, encode_fields, varint, with_length


class Request(NamedTuple):
    """One HTTP request; `headers` are pairs of a name in lower case and a value, in order."""

    method: str
    scheme: str
    authority: str
    path: str
    headers: list[tuple[str, str]]
    content: bytes


def decode_request(data: bytes) -> Request:
    """Return the request in a binary HTTP message, of known or indeterminate length.

    Raises:
        DataError: the message is not a request, ends too early, or goes on after its end.

    >>> decode_request(bytes.fromhex("00034745540568747470730b6578616d706c652e636f6d012f"))[:4]
    ('GET', 'https', 'example.com', '/')
    """
    try:
        return _request(Reader(data))
    except PhoneError as error:
        raise DataError(str(error)) from None


def _request(reader: Reader) -> Request:
    framing = reader.number()
    if framing not in (0, 2):
        fail("a binary HTTP message is no request.")
    known_length = framing == 0
    method, scheme, authority, path = (reader.text() for _ in range(4))
    headers, content = reader.fields(known_length=known_length), reader.content(known_length=known_length)
    reader.end(known_length=known_length)
    return Request(method, scheme, authority, path, headers, content)


def encode_response(status: int, headers: list[tuple[str, str]], content: bytes) -> bytes:
    """Return a binary HTTP response of known length; `status` is from 200 to 599.

    >>> encode_response(200, [], b"").hex()
    '0140c8000000'
    """
    return b"\x01" + varint(status) + encode_fields(headers) + with_length(content) + b"\0"
