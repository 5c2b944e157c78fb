"""Anonymous tokens: the issuer signs blindly, and any party with the issuer's public key can check them.

`powmod_sec` of gmpy2 computes the private power in a time that is independent of the numbers. In addition, the number
is first multiplied by a random number, and random multiples of the group's order are added to the exponents. Signatures
are checked before they are sent, so that a fault in the machine does not reveal the factors (Boneh, DeMillo, Lipton
1997). Python cannot wipe numbers: a key stays in memory until it is overwritten.

Source: Celi, Davidson, Valdez, Wood 2024, RFC 9578, sections 5 and 6; Denis, Jacobs, Wood 2023, RFC 9474, section 4.3.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from gmpy2 import powmod, powmod_sec

from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle_network.formats import TOKEN, PhoneError, modulus, pss_verify, spki_of, token_input

REQUEST: Final = 259
"""Number of bytes of a token request: its type, the last byte of the key's id, and a number below the modulus."""
_EXPONENT: Final = 65_537
_MASK: Final = 64
"""Bits of the random multiples that are added to exponents."""


def blind_sign(key: rsa.RSAPrivateNumbers, number: int) -> int:
    """Return number**d modulo n for a number below n (RFC 9474, section 4.3: BlindSign); refuse a wrong signature."""
    n, e = key.public_numbers.n, key.public_numbers.e
    if not 0 < number < n:
        fail("the number to sign must be below the modulus.")
    mask = secrets.randbelow(n - 2) + 2
    masked = number * powmod(mask, e, n) % n
    at_p, at_q = (
        powmod_sec(masked % prime, exponent + secrets.randbits(_MASK) * (prime - 1), prime)
        for prime, exponent in ((key.p, key.dmp1), (key.q, key.dmq1))
    )
    signature = (at_q + key.q * ((at_p - at_q) * key.iqmp % key.p)) * powmod(mask, -1, n) % n
    if powmod(signature, e, n) != number:
        fail("a signature was computed wrongly: nothing was released. Check the machine for faults.")
    return int(signature)


def token_shown(headers: Sequence[str]) -> bytes:
    r"""Return the token in a request's single authorization header; empty without such a token (RFC 9577, section 2.2).

    >>> token_shown(['PrivateToken token="AAAA"']), token_shown(["Bearer AAAA"])
    (b'\x00\x00\x00', b'')
    """
    match = re.fullmatch('PrivateToken token="([A-Za-z0-9_-]+)"', headers[0]) if len(headers) == 1 else None
    return b"" if match is None or len(match[1]) % 4 else base64.urlsafe_b64decode(match[1])


@dataclass(frozen=True, kw_only=True)
class IssuerKey:
    """The key of an issuer of tokens: RSA with 2048 bits.

    >>> from hushuffle_network import formats
    >>> key = IssuerKey.generate()
    >>> challenge = formats.token_challenge("issuer.example", bytes(32), "target-1")
    >>> blinded = formats.blind(key.spki, challenge)
    >>> token = blinded.finalize(key.sign(blinded.request))
    >>> len(blinded.request), len(token), len(Verifier(key.spki).nonce(token, challenge))
    (259, 354, 32)
    """

    numbers: rsa.RSAPrivateNumbers = field(repr=False)

    @classmethod
    def generate(cls) -> IssuerKey:
        return cls(numbers=rsa.generate_private_key(public_exponent=_EXPONENT, key_size=2048).private_numbers())

    @classmethod
    def of(cls, pem: str | bytes) -> IssuerKey:
        """Return the key in PEM, as the property `pem` gives it: RSA with 2048 bits and exponent 65537."""
        try:
            key = load_pem_private_key(pem.encode() if isinstance(pem, str) else pem, None)
        except (ValueError, TypeError):
            key = None
        if not isinstance(key, rsa.RSAPrivateKey) or key.key_size != 2048:
            fail("an issuer's key must be RSA with 2048 bits, in PEM without a password.")
        numbers = key.private_numbers()
        if numbers.public_numbers.e != _EXPONENT:
            fail("an issuer's key must have the exponent 65537.")
        return cls(numbers=numbers)

    @property
    def pem(self) -> str:
        """The secret key in PEM, for a file that only its owner can read."""
        key = self.numbers.private_key()
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    @cached_property
    def spki(self) -> bytes:
        """The public key, 342 bytes, in the encoding of RFC 9578, section 8.2.2."""
        return spki_of(self.numbers.public_numbers.n)

    def sign(self, token_request: bytes) -> bytes:
        """Return the blind signature, 256 bytes, for a request of 259 bytes (RFC 9578, section 6.2)."""
        return blind_sign(self.numbers, self.number(token_request)).to_bytes(256)

    def number(self, token_request: bytes) -> int:
        """Return the number to sign from a request; this check comes before any other work on the request."""
        last = hashlib.sha256(self.spki).digest()[-1:]
        number = int.from_bytes(token_request[3:])
        right = len(token_request) == REQUEST and token_request[:3] == b"\x00\x02" + last
        if not right or not 0 < number < self.numbers.public_numbers.n:
            fail("this is not a request for a token of this issuer's key.")
        return number


class Verifier:
    """Checks tokens of one issuer; `spki`: the issuer's public key in the encoding of RFC 9578."""

    def __init__(self, spki: bytes) -> None:
        try:
            self._modulus = modulus(spki)
        except PhoneError as error:
            raise DataError(str(error)) from None
        self._spki = spki

    def nonce(self, token: bytes, challenge: bytes) -> bytes:
        """Return the 32-byte nonce of a valid token for this challenge; the service must record the nonce as used."""
        nonce, signed = token[2:34], token[: TOKEN - 256]
        expected = token_input(self._spki, challenge, nonce) if len(token) == TOKEN else b""
        if not hmac.compare_digest(signed, expected) or not pss_verify(self._modulus, signed, token[TOKEN - 256 :]):
            fail("a token is not valid for this task, step and service.")
        return nonce
