"""Short reasons why another service was not reached, and the validity and names of a certificate."""

from __future__ import annotations

import datetime as dt
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import ClientConnectorCertificateError, ClientConnectorDNSError, ClientConnectorError, ClientSSLError
from cryptography import x509

from hushuffle._checks import fail

_EXPIRED, _NOT_YET, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64
"""OpenSSL's codes of these certificate errors."""
_FAULTS: Final = {
    _EXPIRED: "its certificate has expired",
    _NOT_YET: "its certificate is not valid yet",
    _OTHER_NAME: "its certificate is for another name",
    _OTHER_ADDRESS: "its certificate is for another address",
}
SOON: Final = 14
"""A certificate is reported as a fault if it is valid for fewer days than this."""


def why_not(error: BaseException) -> str:
    """Return a short reason why a service was not reached, for logs and counters.

    >>> why_not(TimeoutError())
    'no answer in time'
    """
    if isinstance(error, ClientConnectorCertificateError):
        number = getattr(error.certificate_error, "verify_code", None)
        return _FAULTS.get(number or 0, "its certificate is not trusted")
    if isinstance(error, ClientSSLError | ssl.SSLError):
        return "no TLS there"
    if isinstance(error, ClientConnectorDNSError):
        return "its name is not known"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    refused = isinstance(error, ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError)
    return "nothing listens there" if refused else "no connection"


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The end of a certificate's validity, and the names and addresses that the certificate covers."""

    until: dt.datetime
    names: tuple[str, ...]

    @property
    def days(self) -> int:
        return (self.until - dt.datetime.now(dt.UTC)).days

    def covers(self, host: str) -> bool:
        return host in self.names or f"*.{host.partition('.')[2]}" in self.names


def certificate_in(path: Path) -> Certificate:
    """Return validity and names of the first certificate in a file; raise DataError if it has expired."""
    try:
        certificate = x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError, IndexError):
        fail(f"{path} holds no certificate.")
    until = certificate.not_valid_after_utc
    if until < dt.datetime.now(dt.UTC):
        fail(f"the certificate in {path} has expired on {until:%Y-%m-%d}. Replace it and start the service again.")
    names = tuple[str, ...]()
    try:
        others = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        addresses = others.get_values_for_type(x509.IPAddress)
        names = (*others.get_values_for_type(x509.DNSName), *map(str, addresses))
    except (x509.ExtensionNotFound, ValueError):
        pass
    return Certificate(until=until, names=names)
