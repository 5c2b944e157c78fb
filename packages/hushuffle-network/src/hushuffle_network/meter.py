"""Reports of a service on itself, without data about persons: metrics, log lines, failed links, its certificate."""

from __future__ import annotations

import datetime as dt
import json
import ssl
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from aiohttp import ClientConnectorCertificateError, ClientConnectorDNSError, ClientConnectorError, ClientSSLError
from cryptography import x509

from hushuffle._checks import fail

METRICS: Final = {
    "hushuffle_requests_total": "Requests that were answered, by outcome.",
    "hushuffle_messages_total": "Messages that arrived for the first time and were stored.",
    "hushuffle_repeated_total": "Messages and batches that arrived again and changed nothing.",
    "hushuffle_unreached_total": "Attempts to reach another service that failed, by cause.",
    "hushuffle_refused_total": "Messages, batches, tokens and requests that were refused, by reason.",
    "hushuffle_batches_total": "Batches, by outcome: released, given_up, received, sent.",
    "hushuffle_dummies_total": "Dummies that this scrambler has generated.",
    "hushuffle_tokens_total": "Tokens and tickets that this issuer has signed.",
    "hushuffle_tasks": "Tasks that this service takes part in.",
}
"""Every name in /metrics. Counts that would distinguish dummies from messages (tokens at a target) are left out."""
LABELS: Final = {
    "hushuffle_requests_total": "outcome",
    "hushuffle_refused_total": "reason",
    "hushuffle_unreached_total": "cause",
    "hushuffle_batches_total": "what",
}
"""The label of each counter that has one."""


class Meter:
    """Counters and events of one service.

    >>> meter = Meter("relay", service="relay-1")
    >>> meter.count("requests", "taken")
    >>> [line for line in meter.text().splitlines() if line.startswith("hushuffle_requests")]
    ['hushuffle_requests_total{outcome="taken"} 1']
    """

    def __init__(self, role: str, *, service: str, out: TextIO | None = None) -> None:
        self._role, self._service, self._out = role, service, out
        self._counts: Counter[tuple[str, str]] = Counter()
        self.tasks = 0

    def count(self, what: str, label: str = "", number: int = 1) -> None:
        """Increase a counter; `what` is the middle of its name in `METRICS`."""
        name = f"hushuffle_{what}_total"
        assert name in METRICS
        assert bool(label) == (name in LABELS)
        self._counts[name, label] += number

    def of(self, what: str, label: str = "") -> int:
        return self._counts[f"hushuffle_{what}_total", label]

    def event(self, what: str, **facts: Any) -> None:
        if self._out is None:
            return
        line = {"time": round(time.time(), 3), "service": self._service, "role": self._role, "event": what, **facts}
        with suppress(OSError, ValueError):  # a full disk or a closed pipe must not end a service
            self._out.write(json.dumps(line) + "\n")
            self._out.flush()

    def text(self) -> str:
        """Return all counters in the text format of Prometheus, version 0.0.4."""
        lines = []
        for name, about in METRICS.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"]
            if name == "hushuffle_tasks":
                lines.append(f"{name} {self.tasks}")
            elif name not in LABELS:
                lines.append(f"{name} {self._counts[name, '']}")
            lines += [
                f'{name}{{{LABELS[name]}="{label}"}} {count}'
                for (counter, label), count in sorted(self._counts.items())
                if counter == name and label
            ]
        return "\n".join(lines) + "\n"


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
