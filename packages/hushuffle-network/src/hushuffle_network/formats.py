"""Binary HTTP, HPKE, Oblivious HTTP, invitations and blind tokens; this module needs only `cryptography`.

It can be copied with the phone's program, `client.py`.

Source: RFC 9292 and 9458 (Thomson, Wood 2022, 2024), RFC 9180
(Barnes, Bhargavan, Lipp, Wood 2022), RFC 9474 (Denis, Jacobs, Wood 2023), RFC 9578 (Celi, Davidson, Valdez, Wood 2024).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import os
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEM: Final = 0x0020
"""Number of DHKEM(X25519, HKDF-SHA256) in RFC 9180; `KDF` is the number of HKDF-SHA256."""
KDF: Final = 0x0001
AES_KEYS: Final = {1: 16, 2: 32}
"""Key length in bytes of AES-128-GCM and AES-256-GCM, by their numbers in RFC 9180."""
ENC: Final = 32
"""Length in bytes of the one-time public key in front of a sealed text."""
TOKEN: Final = 354
"""Length in bytes of a token: type, nonce, digest of the challenge, key id, signature."""

_SPKI: Final = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b06096086480165"
    "03040202a2030201300382010f003082010a0282010100"
)  # RSASSA-PSS with SHA-384, MGF1 with SHA-384 and 48 bytes of salt; a modulus of 2048 bits follows
_EXPONENT: Final = 65_537
_DER_EXPONENT: Final = bytes.fromhex("0203010001")
_TOKEN_TYPE: Final = bytes.fromhex("0002")
_SALT: Final = 48

Draw = Callable[[int], bytes]
"""Function that returns a given number of random bytes."""


class PhoneError(ValueError):
    """A phone refuses to continue; the message of the error never shows the content of invalid bytes."""


def refuse(message: str) -> NoReturn:
    """Raise `PhoneError(message)` without the original exception, whose text may quote invalid bytes."""
    raise PhoneError(message) from None


# Binary HTTP (RFC 9292)


def varint(value: int) -> bytes:
    """Return an integer below 2**62 in QUIC's variable-length encoding (RFC 9000, section 16).

    >>> varint(37).hex(), varint(15_293).hex()
    ('25', '7bbd')
    """
    for power in range(4):
        size = 1 << power
        if value < 1 << 8 * size - 2:
            return (value | power << 8 * size - 2).to_bytes(size)
    refuse("a length must be below 2**62.")


def with_length(content: bytes) -> bytes:
    return varint(len(content)) + content


class Reader:
    """Reads a binary HTTP message from its start; a message that ends too early is refused."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def ended(self) -> bool:
        """Whether the whole message was read. A message may end here; its missing parts are then empty."""
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            refuse("a binary HTTP message ends too early.")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        first = self.take(1)[0]
        more = self.take((1 << (first >> 6)) - 1)
        return int.from_bytes(bytes([first & 63]) + more)

    def text(self) -> str:
        return self.take(self.number()).decode("latin-1")

    def fields(self, *, known_length: bool) -> list[tuple[str, str]]:
        """Return the next section of header or trailer fields; an empty list if the message has ended."""
        fields: list[tuple[str, str]] = []
        if self.ended:
            return fields
        if known_length:
            inner = Reader(self.take(self.number()))
            while not inner.ended:
                fields.append(_checked(inner.text(), inner.text()))
            return fields
        while size := self.number():
            fields.append(_checked(self.take(size).decode("latin-1"), self.text()))
        return fields

    def content(self, *, known_length: bool) -> bytes:
        """Return the content of the message; empty if the message has ended."""
        if self.ended:
            return b""
        size = self.number()
        content = self.take(size)
        while not known_length and size:
            size = self.number()
            content += self.take(size)
        return content

    def end(self, *, known_length: bool) -> None:
        """Read the trailers; refuse padding other than zeros."""
        self.fields(known_length=known_length)
        if any(self._data[self._at :]):
            refuse("a binary HTTP message goes on after its end.")


def _checked(name: str, value: str) -> tuple[str, str]:
    allowed = name.isascii() and name == name.lower() and name.replace("-", "").replace("_", "").isalnum()
    if not allowed or value != value.strip(" \t") or any(sign in value for sign in "\0\r\n"):
        refuse("a binary HTTP message has a field that HTTP does not allow.")
    return name, value


def encode_fields(fields: list[tuple[str, str]]) -> bytes:
    """Return an encoded section of fields, with its length in front."""
    checked = [_checked(name, value) for name, value in fields]
    return with_length(b"".join(with_length(part.encode("latin-1")) for pair in checked for part in pair))


def encode_request(
    method: str, scheme: str, authority: str, path: str, headers: list[tuple[str, str]], content: bytes
) -> bytes:
    """Return an encoded request of known length (RFC 9292, section 3.1).

    >>> encode_request("GET", "https", "example.com", "/", [], b"").hex()
    '00034745540568747470730b6578616d706c652e636f6d012f000000'
    """
    control = b"".join(with_length(part.encode("latin-1")) for part in (method, scheme, authority, path))
    return b"\0" + control + encode_fields(headers) + with_length(content) + b"\0"


def decode_response(data: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return status, headers and content of an encoded response, of known or indeterminate length.

    >>> decode_response(bytes.fromhex("0140c8"))
    (200, [], b'')
    """
    reader = Reader(data)
    framing = reader.number()
    if framing not in (1, 3):
        refuse("a binary HTTP message is no response.")
    known_length = framing == 1
    while 100 <= (status := reader.number()) < 200:
        reader.fields(known_length=known_length)
    if not 200 <= status < 600:
        refuse("a binary HTTP response has a status that HTTP does not know.")
    headers, content = reader.fields(known_length=known_length), reader.content(known_length=known_length)
    reader.end(known_length=known_length)
    return status, headers, content


# HPKE in base mode, one message per key (RFC 9180, sections 4.1, 5.1 and 5.3)


def extract(salt: bytes, secret: bytes) -> bytes:
    """Return the pseudorandom key that HKDF-SHA256 extracts from a secret (RFC 5869)."""
    return hmac.digest(salt, secret, "sha256")


def expand(key: bytes, info: bytes, size: int) -> bytes:
    """Return `size` bytes that HKDF-SHA256 expands from a key (RFC 5869)."""
    blocks = [b""]
    for number in range(1, -(-size // 32) + 1):
        blocks.append(hmac.digest(key, blocks[-1] + info + bytes([number]), "sha256"))
    return b"".join(blocks)[:size]


class Keys:
    """The keys of one HPKE message: call `seal` or `open` once; `export` derives further secrets."""

    __slots__ = ("_aead", "_exporter", "_nonce", "_suite", "enc")

    def __init__(self, *, enc: bytes, shared: bytes, info: bytes, aead: int) -> None:
        self.enc = enc
        self._suite = b"HPKE" + KEM.to_bytes(2) + KDF.to_bytes(2) + aead.to_bytes(2)
        context = b"\0" + self._extract(b"", b"psk_id_hash", b"") + self._extract(b"", b"info_hash", info)
        secret = self._extract(shared, b"secret", b"")
        self._aead = AESGCM(self._expand(secret, b"key", context, AES_KEYS[aead]))
        self._nonce = self._expand(secret, b"base_nonce", context, 12)
        self._exporter = self._expand(secret, b"exp", context, 32)

    def _extract(self, salt: bytes, label: bytes, secret: bytes) -> bytes:
        return extract(salt, b"HPKE-v1" + self._suite + label + secret)

    def _expand(self, key: bytes, label: bytes, info: bytes, size: int) -> bytes:
        return expand(key, size.to_bytes(2) + b"HPKE-v1" + self._suite + label + info, size)

    def export(self, context: bytes, size: int) -> bytes:
        """Return a secret that sender and receiver can both derive."""
        return self._expand(self._exporter, b"sec", context, size)

    def seal(self, aad: bytes, plain: bytes) -> bytes:
        """Return the sealed text, without the one-time public key."""
        return self._aead.encrypt(self._nonce, plain, aad)

    def open(self, aad: bytes, sealed: bytes) -> bytes:
        try:
            return self._aead.decrypt(self._nonce, sealed, aad)
        except InvalidTag:
            refuse("a message was not sealed for this key and purpose, or is damaged.")


def _shared(private: X25519PrivateKey, public: bytes, enc: bytes, receiver: bytes) -> bytes:
    try:
        secret = private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        refuse("a public key is not a valid X25519 key.")
    suite = b"KEM" + KEM.to_bytes(2)
    key = extract(b"", b"HPKE-v1" + suite + b"eae_prk" + secret)
    return expand(key, (32).to_bytes(2) + b"HPKE-v1" + suite + b"shared_secret" + enc + receiver, 32)


def sender_keys(public: bytes, info: bytes, aead: int = 2, draw: Draw = os.urandom) -> Keys:
    """Return the keys of a new message to the holder of the private key that belongs to `public`."""
    once = X25519PrivateKey.from_private_bytes(draw(32))
    enc = once.public_key().public_bytes_raw()
    return Keys(enc=enc, shared=_shared(once, public, enc, public), info=info, aead=aead)


def receiver_keys(private: bytes, enc: bytes, info: bytes, aead: int = 2) -> Keys:
    """Return the keys of a received message with the one-time public key `enc`."""
    own = X25519PrivateKey.from_private_bytes(private)
    return Keys(enc=enc, shared=_shared(own, enc, enc, own.public_key().public_bytes_raw()), info=info, aead=aead)


def hpke_seal(public: bytes, info: bytes, aad: bytes, plain: bytes, draw: Draw = os.urandom) -> bytes:
    """Return one message sealed with AES-256-GCM, `ENC` + 16 bytes longer than `plain`."""
    keys = sender_keys(public, info, draw=draw)
    return keys.enc + keys.seal(aad, plain)


def hpke_open(private: bytes, info: bytes, aad: bytes, sealed: bytes) -> bytes:
    return receiver_keys(private, sealed[:ENC], info).open(aad, sealed[ENC:])


# Oblivious HTTP (RFC 9458)

_RESPONSE: Final = b"message/bhttp response"


def request_info(header: bytes) -> bytes:
    """Return HPKE's `info` for a request with this header: key id, KEM, KDF and AEAD (section 4.3)."""
    return b"message/bhttp request\0" + header


def response_keys(keys: Keys, aead: int, nonce: bytes) -> tuple[AESGCM, bytes]:
    """Return the cipher and nonce of a response (section 4.4)."""
    key = extract(keys.enc + nonce, keys.export(_RESPONSE, AES_KEYS[aead]))
    return AESGCM(expand(key, b"key", AES_KEYS[aead])), expand(key, b"nonce", 12)


def key_config(public: bytes, number: int = 1) -> bytes:
    """Return the 45-byte key configuration of a gateway with this public key (section 3.1).

    The gateway of a task is its first scrambler, and has the key for which messages are sealed. So no document can name
    another gateway key.
    """
    suites = b"".join(KDF.to_bytes(2) + aead.to_bytes(2) for aead in sorted(AES_KEYS, reverse=True))
    return number.to_bytes(1) + KEM.to_bytes(2) + public + len(suites).to_bytes(2) + suites


def encapsulate(key_config: bytes, request: bytes, draw: Draw = os.urandom) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Return an encapsulated request, and a function that opens its response (sections 4.3 and 4.4).

    `key_config`: one key configuration of the gateway, without a length in front (section 3.1).
    """
    valid = len(key_config) >= 41 and key_config[1:3] == KEM.to_bytes(2)
    suites = [key_config[at : at + 4] for at in range(37, len(key_config), 4)] if valid else []
    usable = [one for one in suites if one[:2] == KDF.to_bytes(2) and int.from_bytes(one[2:]) in AES_KEYS]
    if not usable or int.from_bytes(key_config[35:37]) != len(key_config) - 37 or len(key_config) % 4 != 1:
        refuse("a key configuration of the gateway is not X25519, HKDF-SHA256 and AES-GCM.")
    header, aead = key_config[:3] + usable[0], int.from_bytes(usable[0][2:])
    keys = sender_keys(key_config[3:35], request_info(header), aead, draw)

    def open_response(response: bytes) -> bytes:
        size = AES_KEYS[aead]
        cipher, nonce = response_keys(keys, aead, response[:size])
        try:
            return cipher.decrypt(nonce, response[size:], b"")
        except InvalidTag:
            refuse("a response was not sealed for this request, or is damaged.")

    return header + keys.enc + keys.seal(b"", request), open_response


# Invitations


class Invitation:
    """The code of a phone's invitation, and its proofs. A proof is for one request; the code itself is never sent.

    The code is the secret of an Ed25519 key; the issuer has the public key. A proof shows a name that differs between
    tasks, and is valid for one request in one step of one task, to one of the issuer's keys. To all other parties the
    name is pseudorandom.

    Raises:
        PhoneError: the code is not at least 32 hexadecimal digits; a shorter code could be guessed.

    >>> first, second = (Invitation("2f" * 16).shown(bytes([task]) * 32, 1, "token", b"key", b"") for task in (1, 2))
    >>> first[0], len(first[1]), first[1][:40] == second[1][:40]
    ('authorization', 220, False)
    """

    def __init__(self, code: str) -> None:
        if len(code) < 32 or set(code) - set("0123456789abcdef"):
            refuse("the code must have 32 hexadecimal digits or more, as the issuer gave it: nothing was sent.")
        secret = hashlib.sha256(b"hushuffle code 2|" + code.encode()).digest()
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self.public = self._key.public_key().public_bytes_raw()

    def shown(self, task: bytes, step: int, kind: str, spki: bytes, request: bytes) -> tuple[str, str]:
        """Return the header with the proof for a request; `kind`: "token" or "ticket"; `spki`: the issuer's key."""
        proof = self._key.sign(_proved(task, step, kind, spki, request))
        return "authorization", f'Invitation name="{name_in(task, self.public).hex()}", proof="{proof.hex()}"'


def name_in(task: bytes, public: bytes) -> bytes:
    return hmac.digest(public, b"hushuffle name 2|" + task, "sha256")


def is_proof(public: bytes, proof: bytes, task: bytes, step: int, kind: str, spki: bytes, request: bytes) -> bool:
    """Return whether a proof for this request was created with the code that belongs to this public key."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(proof, _proved(task, step, kind, spki, request))
    except (InvalidSignature, ValueError):
        return False
    return True


def _proved(task: bytes, step: int, kind: str, spki: bytes, request: bytes) -> bytes:
    digests = hashlib.sha256(spki).digest() + hashlib.sha256(request).digest()
    return b"hushuffle proof 2|" + task + step.to_bytes(2) + digests + kind.encode()


# Publicly verifiable tokens (RFC 9578, type 2) by blind RSA signatures (RFC 9474)


def token_challenge(issuer: str, context: bytes, origin: str) -> bytes:
    """Return the challenge of a token: the issuer's name, 32 or 0 bytes of context, the origin (RFC 9577, 2.1)."""
    names = [len(name.encode()).to_bytes(2) + name.encode() for name in (issuer, origin)]
    return _TOKEN_TYPE + names[0] + len(context).to_bytes(1) + context + names[1]


def modulus(spki: bytes) -> int:
    """Return the modulus of an issuer's public key, which must have the form of RFC 9578, section 8.2.2."""
    middle = spki[len(_SPKI) : -len(_DER_EXPONENT)]
    number = int.from_bytes(middle)
    if spki != _SPKI + middle + _DER_EXPONENT or number.bit_length() != 2048 or number % 2 == 0:
        refuse("an issuer's public key must be RSASSA-PSS with SHA-384, 2048 bits and exponent 65537.")
    return number


def spki_of(number: int) -> bytes:
    return _SPKI + number.to_bytes(256) + _DER_EXPONENT


def token_input(spki: bytes, challenge: bytes, nonce: bytes) -> bytes:
    """Return the signed part of a token: type, nonce, digest of the challenge, key id."""
    return _TOKEN_TYPE + nonce + hashlib.sha256(challenge).digest() + hashlib.sha256(spki).digest()


def pss_encode(message: bytes, bits: int, salt: bytes) -> int:
    """Return the EMSA-PSS encoding of a message with SHA-384 (RFC 8017, 9.1.1), for a modulus of bits + 1 bits."""
    size = -(-bits // 8)
    digest = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    block = (b"\x01" + salt).rjust(size - len(digest) - 1, b"\0")
    blocks = range(-(-len(block) // 48))
    mask = b"".join(hashlib.sha384(digest + number.to_bytes(4)).digest() for number in blocks)
    masked = int.from_bytes(block) ^ int.from_bytes(mask[: len(block)])
    masked &= (1 << 8 * len(block) - (8 * size - bits)) - 1
    return int.from_bytes(masked.to_bytes(len(block)) + digest + b"\xbc")


def pss_verify(number: int, message: bytes, signature: bytes) -> bool:
    """Return whether a signature of a message is valid under the issuer's modulus."""
    pss = padding.PSS(padding.MGF1(hashes.SHA384()), _SALT)
    try:
        rsa.RSAPublicNumbers(_EXPONENT, number).public_key().verify(signature, message, pss, hashes.SHA384())
    except InvalidSignature:
        return False
    return True


class Blinded(NamedTuple):
    """A blinded request for a token; its bytes are uniform for the issuer, independent of the token's purpose."""

    spki: bytes
    message: bytes
    inverse: int
    request: bytes

    def __repr__(self) -> str:
        return "Blinded()"  # never what links request and token

    def finalize(self, response: bytes) -> bytes:
        """Return the token from the issuer's response, after checking its signature (RFC 9474, section 4.4)."""
        number = modulus(self.spki)
        signature = (int.from_bytes(response) * self.inverse % number).to_bytes(256)
        if len(response) != 256 or not pss_verify(number, self.message, signature):
            refuse("the answer of the issuer is no signature of its key.")
        return self.message + signature


def blind(issuer_spki: bytes, challenge: bytes, draw: Draw = os.urandom) -> Blinded:
    """Return a blinded request for a token (RFC 9578, section 6.1; RFC 9474, section 4.2)."""
    number = modulus(issuer_spki)
    message = token_input(issuer_spki, challenge, draw(32))
    encoded = pss_encode(message, 2047, draw(_SALT))
    factor = 0
    while not 0 < factor < number or math.gcd(factor, number) != 1:
        factor = int.from_bytes(draw(256))
    blinded = encoded * pow(factor, _EXPONENT, number) % number
    key_id = hashlib.sha256(issuer_spki).digest()
    request = _TOKEN_TYPE + key_id[-1:] + blinded.to_bytes(256)
    return Blinded(issuer_spki, message, pow(factor, -1, number), request)


def authorization(token: bytes) -> tuple[str, str]:
    """Return the HTTP header that presents a token (RFC 9577, section 2.2)."""
    return "authorization", f'PrivateToken token="{base64.urlsafe_b64encode(token).decode()}"'
