"""Tokens that show nothing of who got them: the issuer signs blindly, whoever has its public key checks.

The private power is taken by gmpy2's `powmod_sec` where that is installed (`hushuffle[phones]`): it is made to take the
same time whatever the numbers. Else it is Python's `pow`, which is not. In both the number is multiplied by a random
one first, and random multiples of the group's order are added to the exponents, so that what takes longer is a matter
of chance, drawn anew for each signature. Signatures are checked before they leave, so that a fault in the machine does
not give the factors away (Boneh, DeMillo, Lipton 1997). Python cannot wipe numbers: a key stays in memory until it is
overwritten.

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
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from hushuffle.errors import DataError
from hushuffle.network.phones.formats import TOKEN, PhoneError, modulus, pss_verify, spki_of, token_input

try:
    from gmpy2 import powmod_sec as power
except ImportError:
    power = pow

REQUEST: Final = 259
"""Bytes of a request for a token: its kind, the last byte of the key's id, a number below the modulus."""
_EXPONENT: Final = 65_537
_MASK: Final = 64
"""Bits of the random multiples that exponents get."""


def blind_sign(key: rsa.RSAPrivateNumbers, number: int) -> int:
    """Return number**d modulo n, for a number below n (RFC 9474, section 4.3: BlindSign).

    Raises:
        DataError: the number is not below the modulus, or the signature came out wrong.
    """
    n, e = key.public_numbers.n, key.public_numbers.e
    if not 0 < number < n:
        message = "what is to be signed must be a number below the modulus."
        raise DataError(message)
    mask = secrets.randbelow(n - 2) + 2
    masked = number * pow(mask, e, n) % n
    at_p, at_q = (
        int(power(masked % prime, exponent + secrets.randbits(_MASK) * (prime - 1), prime))
        for prime, exponent in ((key.p, key.dmp1), (key.q, key.dmq1))
    )
    signature = (at_q + key.q * ((at_p - at_q) * key.iqmp % key.p)) * pow(mask, -1, n) % n
    if pow(signature, e, n) != number:
        message = "a signature came out wrong: nothing is released."
        raise DataError(message)
    return signature


def token_shown(headers: Sequence[str]) -> bytes:
    r"""Return the token in the one authorization header of a request; nothing if there is none (RFC 9577, section 2.2).

    >>> token_shown(['PrivateToken token="AAAA"']), token_shown(["Bearer AAAA"])
    (b'\x00\x00\x00', b'')
    """
    found = re.fullmatch('PrivateToken token="([A-Za-z0-9_-]+)"', headers[0]) if len(headers) == 1 else None
    return b"" if found is None or len(found[1]) % 4 else base64.urlsafe_b64decode(found[1])


@dataclass(frozen=True, kw_only=True)
class IssuerKey:
    """The key of an issuer of tokens: RSA with 2048 bits.

    >>> from hushuffle.network.phones import formats
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
        """Return a new key."""
        return cls(numbers=rsa.generate_private_key(public_exponent=_EXPONENT, key_size=2048).private_numbers())

    @classmethod
    def of(cls, pem: str | bytes) -> IssuerKey:
        """Return the key in a text as `pem` gives it.

        Raises:
            DataError: it is no such key.
        """
        try:
            key = load_pem_private_key(pem.encode() if isinstance(pem, str) else pem, None)
        except (ValueError, TypeError):
            key = None
        if not isinstance(key, rsa.RSAPrivateKey) or key.key_size != 2048:
            message = "an issuer's key must be RSA with 2048 bits, in PEM without a password."
            raise DataError(message)
        numbers = key.private_numbers()
        if numbers.public_numbers.e != _EXPONENT:
            message = "an issuer's key must have the exponent 65537."
            raise DataError(message)
        return cls(numbers=numbers)

    @property
    def pem(self) -> str:
        """The secret key, for a file that only its owner reads."""
        key = self.numbers.private_key()
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    @cached_property
    def spki(self) -> bytes:
        """The public key, 342 bytes, as RFC 9578, section 8.2.2, writes it."""
        return spki_of(self.numbers.public_numbers.n)

    def sign(self, token_request: bytes) -> bytes:
        """Return the blind signature, 256 bytes, for a request of 259 (RFC 9578, section 6.2).

        Raises:
            DataError: it is no request for a token of this key.
        """
        return blind_sign(self.numbers, self.number(token_request)).to_bytes(256)

    def number(self, token_request: bytes) -> int:
        """Return what is to be signed for a request: before anything else is done for it.

        Raises:
            DataError: it is no request for a token of this key.
        """
        last = hashlib.sha256(self.spki).digest()[-1:]
        number = int.from_bytes(token_request[3:])
        right = len(token_request) == REQUEST and token_request[:3] == b"\x00\x02" + last
        if not right or not 0 < number < self.numbers.public_numbers.n:
            message = "this is no request for a token of this issuer's key."
            raise DataError(message)
        return number


class Verifier:
    """Checks tokens of one issuer; `spki`: its public key as RFC 9578 writes it.

    Raises:
        DataError: it is no such key.
    """

    def __init__(self, spki: bytes) -> None:
        try:
            self._modulus = modulus(spki)
        except PhoneError as error:
            raise DataError(str(error)) from None
        self._spki = spki

    def nonce(self, token: bytes, challenge: bytes) -> bytes:
        """Return the nonce, 32 bytes, of a valid token for this challenge; whoever spends it must remember it.

        Raises:
            DataError: it is not valid.
        """
        nonce, signed = token[2:34], token[: TOKEN - 256]
        expected = token_input(self._spki, challenge, nonce) if len(token) == TOKEN else b""
        if not hmac.compare_digest(signed, expected) or not pss_verify(self._modulus, signed, token[TOKEN - 256 :]):
            message = "a token is not valid here."
            raise DataError(message)
        return nonce
