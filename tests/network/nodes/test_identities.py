"""Certificates: what they hold, which files they come from, what is refused."""

from __future__ import annotations

import base64
import datetime as dt
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.network.nodes.identities import Authority, Identity, peer_name, read_identity
from runtime_cases import authority, identity


def certificate(one: Identity) -> x509.Certificate:
    return x509.load_pem_x509_certificate(one.certificate.encode())


def test_what_a_certificate_says() -> None:
    one = certificate(identity("compute-1-1"))
    names = one.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["compute-1-1"]
    assert not one.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    now = dt.datetime.now(dt.UTC)
    assert now - dt.timedelta(hours=1) < one.not_valid_before_utc < now - dt.timedelta(minutes=9)
    assert now + dt.timedelta(hours=20) < one.not_valid_after_utc < now + dt.timedelta(hours=25)
    one.verify_directly_issued_by(x509.load_pem_x509_certificate(authority().certificate.encode()))
    late = certificate(authority().issue("compute-1-1", shift=dt.timedelta(days=-3)))
    assert late.not_valid_after_utc < now


def test_certificates_of_names_of_one_length_say_the_same_of_who_they_are() -> None:
    subjects = {certificate(identity(name)).subject for name in ("source-1", "source-2", "result")}
    assert len(subjects) == 1


def test_keys_are_not_shown() -> None:
    one = identity("source-1")
    assert one.key not in repr(one)
    assert "PRIVATE" not in repr(one)


def test_contexts_are_tls_1_3_with_certificates_on_both_sides() -> None:
    one = identity("source-1")
    for context in (one.server(), one.client()):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3
        assert context.verify_mode == ssl.CERT_REQUIRED
    assert one.client().check_hostname
    assert one.server().num_tickets == 0


@pytest.mark.parametrize(
    "change",
    [
        {"certificate": ""},
        {"certificate": "junk"},
        {"key": ""},
        {"key": "junk"},
        {"authority": ""},
        {"authority": "junk"},
        {"authority": "no ASCII: \xe9"},
    ],
)
def test_damaged_identities_are_refused_without_showing_the_key(change: dict[str, str]) -> None:
    good = identity("source-1")
    values: dict[str, Any] = {"certificate": good.certificate, "authority": good.authority, "key": good.key}
    one = Identity(name="source-1", **(values | change))
    for make in (one.server, one.client):
        with pytest.raises(DataError, match="certificate or key of source-1 cannot be used") as caught:
            make()
        assert good.key not in str(caught.value)


def test_a_key_of_somebody_else_is_refused() -> None:
    good, other = identity("source-1"), identity("source-2")
    with pytest.raises(DataError, match="do not belong together"):
        Identity(name="source-1", certificate=good.certificate, authority=good.authority, key=other.key).server()


def test_identities_from_files_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = identity("source-1")
    files: dict[str, Any] = {"certificate": tmp_path / "a.pem", "authority": tmp_path / "b.pem"}
    files["certificate"].write_text(good.certificate)
    files["authority"].write_text(good.authority)
    key = tmp_path / "a.key"
    key.write_text(good.key)
    key.chmod(0o600)
    assert read_identity("source-1", key=str(key), **files) == good
    monkeypatch.setenv("SOURCE_KEY", good.key)
    assert read_identity("source-1", key="env:SOURCE_KEY", address="127.0.0.9", **files).address == "127.0.0.9"
    key.chmod(0o644)
    with pytest.raises(DataError, match="all users of this machine can read it"):
        read_identity("source-1", key=str(key), **files)
    files["certificate"].write_bytes(b"\xff")
    with pytest.raises(DataError, match="cannot be read: not text"):
        read_identity("source-1", key="env:SOURCE_KEY", **files)
    files["certificate"].unlink()
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_identity("source-1", key="env:SOURCE_KEY", **files)


def test_names_of_peers() -> None:
    class Peer:
        def __init__(self, found: Any) -> None:
            self.found = found

        def getpeercert(self) -> Any:
            return self.found

    assert peer_name(Peer(None)) == ""
    assert peer_name(Peer({})) == ""
    assert peer_name(Peer({"subjectAltName": (("IP Address", "::1"), ("DNS", "a"), ("DNS", "b"))})) == "a"


def test_an_authority_is_read_again() -> None:
    one = Authority(days=2)
    again = Authority.read(certificate=one.certificate, key=one.key)
    assert (again.certificate, again.key) == (one.certificate, one.key)
    made = certificate(again.issue("compute-1"))
    made.verify_directly_issued_by(x509.load_pem_x509_certificate(one.certificate.encode()))
    with pytest.raises(InvalidInputError, match="`days` must be finite and > 0"):
        Authority(days=0)


def changed(pem: str, place: int, value: int) -> str:
    """Return PEM text with another byte at one place of what it encodes."""
    first, *lines, last = pem.splitlines()
    content = bytearray(base64.b64decode("".join(lines)))
    content[place] = value
    return "\n".join([first, base64.b64encode(content).decode(), last, ""])


def test_authorities_that_cannot_be_used() -> None:
    one, other = Authority(), Authority()
    elliptic = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    locked = load_pem_private_key(one.key.encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")
    )
    for certificate_text, key in (
        (one.certificate, other.key),
        ("junk", one.key),
        (one.certificate, "junk"),
        (one.certificate, elliptic.decode()),
        (one.certificate, locked.decode()),
        (one.certificate, changed(one.key, 9, 0)),  # UnsupportedAlgorithm
        (one.certificate, changed(one.key, 11, 113)),  # InternalError
        (changed(one.certificate, 12, 1), one.key),  # InvalidVersion
    ):
        with pytest.raises(DataError, match="authority's certificate and key cannot be used"):
            Authority.read(certificate=certificate_text, key=key)


def test_certificates_have_one_length_whatever_the_name() -> None:
    made = authority()
    names = ["a", "source-0001", "compute-1-12", "x" * 63] + [f"node-{number}" for number in range(100)]
    lengths = {len(ssl.PEM_cert_to_DER_cert(made.issue(name).certificate)) for name in names}
    assert len(lengths) == 1
