"""HPKE and Oblivious HTTP against RFC 9180, RFC 9458 and a second implementation of HPKE."""

from __future__ import annotations

import os

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from hushuffle.errors import DataError, InvalidInputError
from hushuffle_network.formats import (
    ENC,
    PhoneError,
    encapsulate,
    encode_request,
    hpke_open,
    hpke_seal,
    receiver_keys,
    sender_keys,
)
from hushuffle_network.oblivious_http import GatewayKey
from network.vectors import drawing

SUITES = {
    1: Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM),
    2: Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM),
}


def test_the_first_vector_of_hpke() -> None:
    """RFC 9180, appendix A.1.1: base mode, X25519, HKDF-SHA256, AES-128-GCM."""
    once = bytes.fromhex("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736")
    public = bytes.fromhex("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d")
    private = bytes.fromhex("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8")
    info = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
    plain, aad = bytes.fromhex("4265617574792069732074727574682c20747275746820626561757479"), b"Count-0"
    sealed = "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a"
    exports = {
        b"": "3853fe2b4035195a573ffc53856e77058e15d9ea064de3e59f4961d0095250ee",
        b"\0": "2e8f0b54673c7029649d4eb9d5e33bf1872cf76d623ff164ac185da9e88c21a5",
        b"TestContext": "e9e43065102c3836401bed8c3c3c75ae46be1639869391d62c61f1ec7af54931",
    }
    sender = sender_keys(public, info, 1, drawing(once))
    assert sender.enc.hex() == "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431"
    receiver = receiver_keys(private, sender.enc, info, 1)
    assert sender.seal(aad, plain).hex() == sealed
    assert receiver.open(aad, bytes.fromhex(sealed)) == plain
    for context, expected in exports.items():
        assert sender.export(context, 32).hex() == receiver.export(context, 32).hex() == expected


@pytest.mark.parametrize("aead", [1, 2])
def test_hpke_against_another_implementation(aead: int) -> None:
    key = X25519PrivateKey.generate()
    public, private = key.public_key().public_bytes_raw(), key.private_bytes_raw()
    for size in (0, 1, 1000):
        plain, info = os.urandom(size), os.urandom(size % 50)
        keys = sender_keys(public, info, aead)
        assert SUITES[aead].decrypt(keys.enc + keys.seal(b"", plain), key, info=info) == plain
        sealed = SUITES[aead].encrypt(plain, X25519PublicKey.from_public_bytes(public), info=info)
        assert receiver_keys(private, sealed[:ENC], info, aead).open(b"", sealed[ENC:]) == plain


def test_what_is_sealed_opens_for_its_purpose_alone() -> None:
    key = X25519PrivateKey.generate()
    public, private = key.public_key().public_bytes_raw(), key.private_bytes_raw()
    sealed = hpke_seal(public, b"step 1", b"", b"record")
    assert hpke_open(private, b"step 1", b"", sealed) == b"record"
    with pytest.raises(InvalidTag):
        SUITES[2].decrypt(sealed, key, info=b"step 2")
    for wrong in (
        (os.urandom(32), b"step 1", b"", sealed),
        (private, b"step 2", b"", sealed),
        (private, b"step 1", b"x", sealed),
    ):
        with pytest.raises(PhoneError, match="not sealed for this key and purpose"):
            hpke_open(*wrong)
    for position in range(ENC, len(sealed)):
        damaged = bytearray(sealed)
        damaged[position] ^= 1
        with pytest.raises(PhoneError):
            hpke_open(private, b"step 1", b"", bytes(damaged))
    for cut in (0, 10, ENC, ENC + 5):
        with pytest.raises(PhoneError):
            hpke_open(private, b"step 1", b"", sealed[:cut])


def test_a_key_that_nobody_has() -> None:
    with pytest.raises(PhoneError, match="not a valid X25519 key"):
        hpke_seal(bytes(32), b"", b"", b"record")


# RFC 9458, appendix A
PRIVATE = "3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a"
CONFIG = bytes.fromhex("01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003")
ONCE = bytes.fromhex("bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73")
PLAIN = bytes.fromhex("00034745540568747470730b6578616d706c652e636f6d012f")
REQUEST = bytes.fromhex(
    "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b4726374e469135906992e1268c594d2a10c695d85"
    "8c40a026e7965e7d86b83dd440b2c0185204b4d63525"
)
NONCE = bytes.fromhex("c789e7151fcba46158ca84b04464910d")
RESPONSE = bytes.fromhex("c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd")


def test_the_complete_example_of_oblivious_http() -> None:
    sealed, open_response = encapsulate(CONFIG, PLAIN, drawing(ONCE))
    assert sealed == REQUEST
    request, seal_response = GatewayKey(private=bytes.fromhex(PRIVATE), number=1).open(sealed, drawing(NONCE))
    assert request == PLAIN
    assert encode_request("GET", "https", "example.com", "/", [], b"").startswith(PLAIN)
    assert seal_response(bytes.fromhex("0140c8")) == RESPONSE
    assert open_response(RESPONSE) == bytes.fromhex("0140c8")
    assert GatewayKey(private=bytes.fromhex(PRIVATE)).config[:35] == CONFIG[:35]


@pytest.mark.parametrize("aead", [1, 2])
def test_both_suites_of_a_gateway(aead: int) -> None:
    key = GatewayKey.generate(number=7)
    config = key.config[:35] + bytes.fromhex("00040001") + aead.to_bytes(2)
    sealed, open_response = encapsulate(config, b"question")
    assert sealed[:7] == bytes.fromhex("0700200001") + aead.to_bytes(2)
    request, seal_response = key.open(sealed)
    first, second = seal_response(b"answer"), seal_response(b"answer")
    assert (request, open_response(first), open_response(second)) == (b"question", b"answer", b"answer")
    assert first != second
    assert len(first) == (16, 32)[aead - 1] + len(b"answer") + 16


def test_a_client_takes_the_first_suite_that_it_knows() -> None:
    key = GatewayKey.generate()
    assert encapsulate(key.config, b"")[0][5:7] == b"\0\2"
    config = key.config[:35] + bytes.fromhex("000800010003") + bytes.fromhex("00010001")
    assert encapsulate(config, b"")[0][5:7] == b"\0\1"


@pytest.mark.parametrize(
    "config",
    [
        b"",
        CONFIG[:-1],
        CONFIG[:37],
        CONFIG[:1] + b"\0\x10" + CONFIG[3:],
        CONFIG[:36] + b"\4" + CONFIG[37:],
        CONFIG[:35] + b"\0\4\0\1\0\3",
    ],
)
def test_configurations_that_are_refused(config: bytes) -> None:
    with pytest.raises(PhoneError, match="key configuration"):
        encapsulate(config, b"question")


def test_requests_that_a_gateway_refuses() -> None:
    key = GatewayKey(private=bytes.fromhex(PRIVATE), number=1)
    wrong = [
        b"",
        REQUEST[:7],
        REQUEST[:38],
        REQUEST[:-1],
        REQUEST + b"\0",
        b"\2" + REQUEST[1:],
        REQUEST[:6] + b"\3" + REQUEST[7:],
    ]
    wrong += [REQUEST[:6] + b"\2" + REQUEST[7:], REQUEST[:7] + bytes(32) + REQUEST[39:]]
    for message in wrong:
        with pytest.raises(DataError):
            key.open(message)


def test_responses_that_a_client_refuses() -> None:
    key = GatewayKey.generate()
    sealed, open_response = encapsulate(key.config, b"question")
    other, _ = encapsulate(key.config, b"question")
    for response in (b"", bytes(16), bytes(70), key.open(other)[1](b"answer")):
        with pytest.raises(PhoneError, match="not sealed for this request"):
            open_response(response)
    assert open_response(key.open(sealed)[1](b"answer")) == b"answer"


def test_keys_are_checked_and_not_shown() -> None:
    key = GatewayKey.generate()
    assert key.private.hex() not in repr(key)
    assert repr(key.private) not in repr(key)
    for private in (b"", bytes(31), bytes(33)):
        with pytest.raises(DataError, match="64 hexadecimal digits"):
            GatewayKey(private=private)
    for number in (-1, 256):
        with pytest.raises(InvalidInputError, match="number"):
            GatewayKey.generate(number=number)
