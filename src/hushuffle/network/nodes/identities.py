"""Identities of nodes: certificates, TLS 1.3 contexts that require them, and a certificate authority for trials."""

from __future__ import annotations

import datetime as dt
import os
import secrets
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.files.causes import text_in
from hushuffle.files.secret_keys import text_of_secret

_FILLING: Final = x509.ObjectIdentifier("2.25.271828182845904523536028747135266249775")
"""A certificate extension without meaning, which pads short names."""

_UNUSED: Final = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("encipher_only", "decipher_only"),
)
"""Uses of a key that an authority's certificate excludes."""

_LONGEST_NAME: Final = 63

_SKEW: Final = dt.timedelta(minutes=10)
"""Certificates become valid this long before they are issued, for nodes with slow clocks."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """One node's identity, as PEM texts; `address`: the local address from which the node sends, None for any."""

    name: str
    certificate: str
    authority: str
    key: str = field(repr=False)
    address: str | None = None

    def server(self) -> ssl.SSLContext:
        """Return a server context that requires TLS 1.3 and a client certificate of the same authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0  # no resumption: every connection shows its certificate
        return self._loaded(context)

    def client(self) -> ssl.SSLContext:
        """Return a client context that shows this certificate, and checks that the server is the intended node."""
        return self._loaded(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def _loaded(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(cadata=self.authority)
            with _as_file(self.certificate + self.key) as path:
                context.load_cert_chain(path)
        except (ssl.SSLError, OSError, ValueError, TypeError):  # the last: text that is not ASCII
            fail(
                f"the certificate or key of {self.name} cannot be used: a file is damaged, or the two do not belong "
                "together."
            )
        return context


def read_identity(name: str, *, certificate: Path, authority: Path, key: str, address: str | None = None) -> Identity:
    """Read an identity from files; `key` is a path, or "env:NAME" for an environment variable with the PEM text."""
    own, signer = text_in(certificate, "ascii"), text_in(authority, "ascii")
    return Identity(name=name, certificate=own, authority=signer, key=text_of_secret(key), address=address)


def peer_name(connection: Any) -> str:
    """Return the name in the certificate of a TLS peer, which the handshake has checked; "" if it has no name."""
    names: tuple[tuple[str, str], ...] = (connection.getpeercert() or {}).get("subjectAltName", ())
    return next((value for kind, value in names if kind == "DNS"), "")


class Authority:
    """A certificate authority for trials and tests: any party with its key can issue a certificate for any node.

    >>> authority = Authority()
    >>> authority.issue("compute-1").name
    'compute-1'
    """

    def __init__(self, *, days: float = 30.0) -> None:
        self._key = Ed25519PrivateKey.generate()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hushuffle development authority")])
        self._days = _checks.positive("days", days)
        usage = x509.KeyUsage(key_cert_sign=True, crl_sign=True, **dict.fromkeys(_UNUSED, False))
        builder = self._builder(self._name, self._key, dt.timedelta())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._certificate = builder.add_extension(usage, critical=True).sign(self._key, None)

    @classmethod
    def read(cls, *, certificate: str, key: str, days: float = 30.0) -> Authority:
        authority = cls(days=days)
        try:
            loaded, own = load_pem_private_key(key.encode(), None), x509.load_pem_x509_certificate(certificate.encode())
            fits = isinstance(loaded, Ed25519PrivateKey) and own.public_key() == loaded.public_key()
        except Exception:  # noqa: BLE001 - each fault raises another exception
            fits = False
        if not fits or not isinstance(loaded, Ed25519PrivateKey):
            fail("the authority's certificate and key cannot be used: they are damaged, or do not belong together.")
        authority._key, authority._certificate = loaded, own
        return authority

    @property
    def certificate(self) -> str:
        return self._certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key(self) -> str:
        return _pem(self._key)

    def issue(self, name: str, *, address: str | None = None, shift: dt.timedelta | None = None) -> Identity:
        """Return a new identity; `shift` moves the period of validity, for tests of wrong clocks."""
        key = Ed25519PrivateKey.generate()
        # All certificates have the same length: a longer certificate would reveal which node connects.
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hushuffle node")])
        builder = self._builder(subject, key, shift or dt.timedelta())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        filling = x509.UnrecognizedExtension(_FILLING, bytes(max(_LONGEST_NAME - len(name), 0)))
        builder = builder.add_extension(filling, critical=False)
        both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = builder.add_extension(both, critical=False).sign(self._key, None)
        own = certificate.public_bytes(Encoding.PEM).decode()
        return Identity(name=name, certificate=own, authority=self.certificate, key=_pem(key), address=address)

    def _builder(self, subject: x509.Name, key: Ed25519PrivateKey, shift: dt.timedelta) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC) + shift
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(1 << 158 | secrets.randbits(158))  # 20 bytes for every random value
            .not_valid_before(now - _SKEW)
            .not_valid_after(now + dt.timedelta(days=self._days))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def _pem(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Yield the path of a file that only this process can open: OpenSSL reads keys from files only."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("identity", os.MFD_CLOEXEC)
        try:
            os.write(number, text.encode())
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
    else:  # pragma: no cover - memory files exist only on Linux
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            yield file.name
