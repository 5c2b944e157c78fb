"""A certificate authority for trials, and certificates for services that end TLS themselves."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.files.private_files import write_private
from hushuffle.files.secret_keys import text_of_secret
from hushuffle_network.fields import NAME_RULE, is_name

AUTHORITY: Final = "authority"
_NAME: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hushuffle development authority")])
_UNUSED: Final = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("encipher_only", "decipher_only"),
)
"""Uses of a key that an authority's certificate excludes."""
_SKEW: Final = dt.timedelta(minutes=10)
"""Certificates become valid this long before they are issued, for hosts with slow clocks."""


def make_certificates(names: Sequence[str], *, out: Path, days: float = 30.0) -> list[Path]:
    """Write NAME.pem and NAME.key for each host name, certified by the folder's authority.

    An authority that is already in the folder is used again. The files of a name are never overwritten.
    """
    _checks.positive("days", days)
    hosts = list(dict.fromkeys(names))
    for name in hosts:
        if not is_name(name) or name == AUTHORITY:
            _checks.reject("names", f"of {NAME_RULE}, and not {AUTHORITY!r}", name)
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (out / f"{name}.{ending}" for name in hosts for ending in ("pem", "key")):
            if path.exists():
                fail(f"{path} exists, and keys are never overwritten. Choose another folder or name.")
        signer, written = _authority(out, days)
        for name in hosts:
            key = Ed25519PrivateKey.generate()
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hushuffle service")])
            builder = _builder(subject, key, signer, days)
            builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
            certificate = builder.add_extension(usage, critical=False).sign(signer, None)
            written += _write(out, name, key, certificate)
    except OSError as error:
        fail(f"{error.filename or out} cannot be used: {cause(error)}.")
    return written


def _authority(out: Path, days: float) -> tuple[Ed25519PrivateKey, list[Path]]:
    """Return the key of a folder's authority, and the files that were written if the authority is new."""
    place, path = out / f"{AUTHORITY}.pem", out / f"{AUTHORITY}.key"
    if path.exists():
        return _read(place.read_text("ascii", errors="replace"), text_of_secret(str(path))), []
    if place.exists():
        fail(f"{place} exists without {path.name}, which signs certificates. Restore the key, or choose a new folder.")
    key = Ed25519PrivateKey.generate()
    builder = _builder(_NAME, key, key, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    usage = x509.KeyUsage(key_cert_sign=True, crl_sign=True, **dict.fromkeys(_UNUSED, False))
    return key, _write(out, AUTHORITY, key, builder.add_extension(usage, critical=True).sign(key, None))


def _read(certificate: str, text: str) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(text.encode(), None)
        fits = x509.load_pem_x509_certificate(certificate.encode()).public_key() == key.public_key()
    except Exception:  # noqa: BLE001 - each fault raises another exception
        fits = False
    if not fits or not isinstance(key, Ed25519PrivateKey):
        fail("the authority's certificate and key cannot be used: they are damaged, or do not belong together.")
    return key


def _write(out: Path, name: str, key: Ed25519PrivateKey, certificate: x509.Certificate) -> list[Path]:
    pem, secret = out / f"{name}.pem", out / f"{name}.key"
    write_private(secret, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    pem.write_bytes(certificate.public_bytes(Encoding.PEM))
    return [pem, secret]


def _builder(
    subject: x509.Name, key: Ed25519PrivateKey, signer: Ed25519PrivateKey, days: float
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_NAME)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
