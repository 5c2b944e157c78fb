"""Binary HTTP against the examples of RFC 9292, and what is refused."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from hushuffle.errors import DataError
from hushuffle_network.formats import PhoneError, decode_response, encode_request, varint
from hushuffle_network.oblivious_http import decode_request, encode_response
from network.vectors import published

EXAMPLES = {name: bytes.fromhex(text) for name, text in published("binary-http").items() if name != "source"}
HEADERS = [
    ("user-agent", "curl/7.16.3 libcurl/7.16.3 OpenSSL/0.9.7l zlib/1.2.3"),
    ("host", "www.example.com"),
    ("accept-language", "en, mi"),
]


def test_requests_of_the_standard() -> None:
    known, other = EXAMPLES["request"], EXAMPLES["request_of_indeterminate_length"]
    assert encode_request("GET", "https", "", "/hello.txt", HEADERS, b"") == known
    expected = ("GET", "https", "", "/hello.txt", HEADERS, b"")
    for data in (known, known[:-1], known[:-2], other, other[:-10], other[:-12]):
        assert decode_request(data) == expected


def test_responses_of_the_standard() -> None:
    status, headers, content = decode_response(EXAMPLES["response_with_interim"])
    assert (status, len(headers), headers[-1]) == (200, 8, ("content-type", "text/plain"))
    assert content == b"Hello World! My content includes a trailing CRLF.\r\n"
    assert decode_response(EXAMPLES["response_with_trailer"]) == (200, [], b"This content contains CRLF.\r\n")


@pytest.mark.parametrize("size", [0, 1, 63, 64, 16_383, 16_384, 70_000])
def test_what_one_side_writes_the_other_reads(size: int) -> None:
    content, headers = (bytes(range(256)) * 300)[:size], [("content-type", "a/b"), ("x-empty", "")]
    request = decode_request(encode_request("POST", "https", "a.example", "/x", headers, content))
    assert (request.method, request.headers, request.content) == ("POST", headers, content)
    assert decode_response(encode_response(503, headers, content)) == (503, headers, content)


@pytest.mark.parametrize(
    ("value", "text"), [(37, "25"), (15_293, "7bbd"), (494_878_333, "9d7f3e7d"), (2**61, "e" + "0" * 15)]
)
def test_integers_of_variable_length(value: int, text: str) -> None:
    assert varint(value).hex() == text


def test_an_integer_that_is_too_large() -> None:
    with pytest.raises(PhoneError, match="below 2\\*\\*62"):
        varint(2**62)


def test_a_message_that_ends_too_early() -> None:
    known, other = EXAMPLES["request"], EXAMPLES["request_of_indeterminate_length"]
    # A message may end before its headers (after 23 bytes of control data), its content, its trailers, nowhere else.
    for size in range(len(known) - 2):
        if size != 23:
            with pytest.raises(DataError, match="ends too early"):
                decode_request(known[:size])
    for size in range(24, len(other) - 12):
        with pytest.raises(DataError, match="ends too early"):
            decode_request(other[:size])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("04", "no request"),
        ("0140c8", "no request"),
        ("00034745540568747470730000" + "0000" + "0001", "goes on after its end"),
        ("0003474554056874747073000004" + "01410130" + "00" * 2, "does not allow"),  # a name in capitals
        ("0003474554056874747073000003" + "000130" + "00" * 2, "does not allow"),  # no name
        ("0003474554056874747073000005" + "016102610a" + "00" * 2, "does not allow"),  # a line's end in a value
        ("0003474554056874747073000004" + "01610120" + "00" * 2, "does not allow"),  # a space around a value
    ],
)
def test_requests_that_are_refused(data: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        decode_request(bytes.fromhex(data))


@pytest.mark.parametrize(("data", "said"), [("00", "no response"), ("014258", "status"), ("0132", "status")])
def test_responses_that_are_refused(data: str, said: str) -> None:
    with pytest.raises(PhoneError, match=said):
        decode_response(bytes.fromhex(data))


def test_fields_are_checked_where_they_are_written() -> None:
    with pytest.raises(PhoneError, match="does not allow"):
        encode_response(200, [("x", "a\r\nb")], b"")


def test_any_bytes_are_read_or_refused() -> None:
    chance = random.Random(5)  # noqa: S311 - to be repeated
    for _ in range(3000):
        data = bytearray(EXAMPLES[chance.choice(list(EXAMPLES))])
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        for read, refused in ((decode_request, DataError), (decode_response, PhoneError)):
            with suppress(refused):
                read(bytes(data))
