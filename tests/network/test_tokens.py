"""Blind RSA and tokens against RFC 9474 and RFC 9578, and attempts to forge or to misuse them."""

from __future__ import annotations

import hashlib
import os

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hushuffle.errors import DataError
from hushuffle_network import tokens
from hushuffle_network.formats import (
    PhoneError,
    blind,
    modulus,
    pss_encode,
    pss_verify,
    spki_of,
    token_challenge,
)
from hushuffle_network.tokens import IssuerKey, Verifier, blind_sign
from network.vectors import drawing, published

RSA = published("blind-rsa")
TOKENS = published("tokens")
KEY = IssuerKey.of(bytes.fromhex(TOKENS["skS"]))
CHALLENGE = token_challenge("issuer.example", bytes(32), "target-1")


def _key() -> rsa.RSAPrivateNumbers:
    p, q, n, e, d = (int(RSA["key"][name], 16) for name in "pqned")
    public = rsa.RSAPublicNumbers(e, n)
    return rsa.RSAPrivateNumbers(
        p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q), public
    )


@pytest.mark.parametrize("variant", list(RSA["variants"]))
def test_the_variants_of_blind_rsa(variant: str) -> None:
    """RFC 9474, appendix A: encoding, blinding, signing, finalizing, with a key of 4,096 bits."""
    vector, key = RSA["variants"][variant], _key()
    message, salt, signature = (bytes.fromhex(vector[name]) for name in ("input_msg", "salt", "sig"))
    n, e = key.public_numbers.n, key.public_numbers.e
    encoded = pss_encode(message, n.bit_length() - 1, salt)
    if "encoded_msg" in vector:
        assert encoded == int(vector["encoded_msg"], 16)
    inverse = int(vector["inv"], 16)
    blinded = encoded * pow(pow(inverse, -1, n), e, n) % n
    assert blinded == int(vector["blinded_msg"], 16)
    signed = blind_sign(key, blinded)
    assert signed == int(vector["blind_sig"], 16)
    assert (signed * inverse % n).to_bytes(512) == signature
    assert pss_verify(n, message, signature) == (len(salt) == 48)
    key.public_numbers.public_key().verify(
        signature, message, padding.PSS(padding.MGF1(hashes.SHA384()), len(salt)), hashes.SHA384()
    )


@pytest.mark.parametrize("vector", TOKENS["exchanges"])
def test_the_tokens_of_the_standard(vector: dict[str, str]) -> None:
    """RFC 9578, appendix A.2."""
    given = {name: bytes.fromhex(text) for name, text in vector.items()}
    assert KEY.spki.hex() == TOKENS["pkS"]
    draw = drawing(given["nonce"], given["salt"], given["blind"])
    blinded = blind(KEY.spki, given["token_challenge"], draw)
    assert blinded.request == given["token_request"]
    assert KEY.sign(blinded.request) == given["token_response"]
    assert blinded.finalize(given["token_response"]) == given["token"]
    assert Verifier(KEY.spki).nonce(given["token"], given["token_challenge"]) == given["nonce"]


def test_a_challenge_as_the_standard_writes_it() -> None:
    full, without_context = (bytes.fromhex(TOKENS["exchanges"][number]["token_challenge"]) for number in (0, 1))
    assert full == token_challenge("issuer.example", full[19:51], "origin.example")
    assert without_context == token_challenge("issuer.example", b"", "origin.example")
    bare = bytes.fromhex(TOKENS["exchanges"][3]["token_challenge"])
    assert bare == token_challenge("issuer.example", b"", "")


@pytest.mark.parametrize("bits", [2041, 2047, 2048, 4095])
def test_the_encoding_against_another_implementation(bits: int) -> None:
    """A signature is made of our encoding by the bare power; the library's verifier takes it."""
    key = (
        rsa.generate_private_key(public_exponent=65_537, key_size=bits + 1)
        if bits != 2048
        else KEY.numbers.private_key()
    )
    numbers = key.private_numbers()
    n = numbers.public_numbers.n
    message = os.urandom(50)
    signature = blind_sign(numbers, pss_encode(message, n.bit_length() - 1, os.urandom(48)))
    assert pss_verify(n, message, signature.to_bytes(-(-n.bit_length() // 8)))


def test_what_an_issuer_sees_does_not_depend_on_what_the_token_is_for() -> None:
    """Any request fits any token: for each pair there is exactly one blinding factor."""
    n, e, d = KEY.numbers.public_numbers.n, 65_537, KEY.numbers.d
    token = blind(KEY.spki, CHALLENGE)
    encoded = pss_encode(token.message, 2047, os.urandom(48))
    other = int.from_bytes(blind(KEY.spki, token_challenge("issuer.example", bytes(32), "target-2")).request[3:])
    factor = pow(other * pow(encoded, -1, n) % n, d, n)
    assert encoded * pow(factor, e, n) % n == other


def test_tokens_that_are_not_valid() -> None:
    verifier = Verifier(KEY.spki)
    blinded = blind(KEY.spki, CHALLENGE)
    token = blinded.finalize(KEY.sign(blinded.request))
    assert verifier.nonce(token, CHALLENGE) == token[2:34]
    other = token_challenge("issuer.example", bytes(32), "target-2")
    stranger = IssuerKey.generate()
    for wrong, challenge in (
        (b"", CHALLENGE),
        (token[:-1], CHALLENGE),
        (token + b"\0", CHALLENGE),
        (token, other),
        (bytes(354), CHALLENGE),
    ):
        with pytest.raises(DataError, match="not valid for this task"):
            verifier.nonce(wrong, challenge)
    with pytest.raises(DataError, match="not valid for this task"):
        Verifier(stranger.spki).nonce(token, CHALLENGE)
    for position in range(0, 354, 7):
        damaged = bytearray(token)
        damaged[position] ^= 1
        with pytest.raises(DataError, match="not valid for this task"):
            verifier.nonce(bytes(damaged), CHALLENGE)


def test_a_signature_is_one_number_written_one_way() -> None:
    """The signature plus the modulus is the same residue: it must not pass as a second token."""
    blinded = blind(KEY.spki, CHALLENGE)
    token = blinded.finalize(KEY.sign(blinded.request))
    larger = int.from_bytes(token[98:]) + KEY.numbers.public_numbers.n
    if larger < 1 << 2048:
        with pytest.raises(DataError):
            Verifier(KEY.spki).nonce(token[:98] + larger.to_bytes(256), CHALLENGE)


def test_requests_that_an_issuer_refuses() -> None:
    request = blind(KEY.spki, CHALLENGE).request
    n = KEY.numbers.public_numbers.n
    for wrong in (
        b"",
        request[:-1],
        request + b"\0",
        b"\0\1" + request[2:],
        request[:2] + bytes([request[2] ^ 1]) + request[3:],
    ):
        with pytest.raises(DataError, match="not a request for a token"):
            KEY.sign(wrong)
    for number in (0, n, (1 << 2048) - 1):
        with pytest.raises(DataError, match="below the modulus"):
            blind_sign(KEY.numbers, number)
        with pytest.raises(DataError, match="not a request for a token"):
            KEY.sign(request[:3] + number.to_bytes(256))


def test_answers_that_a_client_refuses() -> None:
    first, second = blind(KEY.spki, CHALLENGE), blind(KEY.spki, CHALLENGE)
    response = KEY.sign(first.request)
    for wrong in (b"", response[:-1], response + b"\0", bytes(256), KEY.sign(second.request)):
        with pytest.raises(PhoneError, match="no signature of its key"):
            first.finalize(wrong)


def test_a_fault_while_signing_releases_nothing() -> None:
    key = KEY.numbers
    broken = rsa.RSAPrivateNumbers(key.p, key.q, key.d, key.dmp1 ^ 2, key.dmq1, key.iqmp, key.public_numbers)
    with pytest.raises(DataError, match="was computed wrongly"):
        blind_sign(broken, 12_345)


def test_a_signature_is_the_private_power() -> None:
    number, n = int.from_bytes(os.urandom(255)), KEY.numbers.public_numbers.n
    assert blind_sign(KEY.numbers, number) == pow(number, KEY.numbers.d, n)


def test_no_number_is_raised_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bases and exponents of the private powers are others each time, for the same number to be signed."""
    seen: list[tuple[int, int]] = []

    def spy(base: int, exponent: int, modulus: int) -> int:
        seen.append((base, exponent))
        return pow(base, exponent, modulus)

    monkeypatch.setattr(tokens, "powmod_sec", spy)
    assert (
        blind_sign(KEY.numbers, 12_345)
        == blind_sign(KEY.numbers, 12_345)
        == pow(12_345, KEY.numbers.d, KEY.numbers.public_numbers.n)
    )
    assert len(seen) == 4
    assert len({base for base, _ in seen}) == len({exponent for _, exponent in seen}) == 4
    assert 12_345 not in {base for base, _ in seen}
    assert not {KEY.numbers.dmp1, KEY.numbers.dmq1, KEY.numbers.d} & {exponent for _, exponent in seen}


def test_public_keys_that_are_refused() -> None:
    good = KEY.spki
    n = modulus(good)
    small = rsa.generate_private_key(public_exponent=65_537, key_size=1024).public_key().public_numbers().n  # noqa: S505
    exponent = good[:-5] + bytes.fromhex("0203010003")
    for wrong in (
        b"",
        good[:-1],
        good + b"\0",
        bytes(342),
        spki_of(small),
        spki_of(n + 1),
        exponent,
        hashlib.sha256(good).digest(),
    ):
        with pytest.raises(DataError, match="issuer's public key"):
            Verifier(wrong)
        with pytest.raises(PhoneError, match="issuer's public key"):
            blind(wrong, CHALLENGE)


def test_secret_keys_that_are_refused() -> None:
    assert IssuerKey.of(KEY.pem).spki == KEY.spki
    assert str(KEY.numbers.d) not in repr(KEY)
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    small = rsa.generate_private_key(public_exponent=65_537, key_size=1024).private_bytes(*form)  # noqa: S505
    for wrong in (b"", b"nonsense", small, Ed25519PrivateKey.generate().private_bytes(*form)):
        with pytest.raises(DataError, match="2048 bits"):
            IssuerKey.of(wrong)
    three = rsa.generate_private_key(public_exponent=3, key_size=2048).private_bytes(*form)
    with pytest.raises(DataError, match="65537"):
        IssuerKey.of(three)
