"""Audit a randomizer at an HTTP address of this machine: values are posted, and the response lists the reports."""

from __future__ import annotations

from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_address
from time import monotonic
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from hushuffle._checks import fail
from hushuffle.cli.console import misused

_SECONDS: Final = 600
_BYTES: Final = 1 << 28
_CHUNK: Final = 1 << 20


def posted(url: str, pair: tuple[str, str]) -> Callable[[Any], list[str]]:
    """A sampler that posts values to an address of this machine, one per line, and reads one report per line.

    Only loopback addresses are allowed, since an audit would flood another operator's server. Redirects are not
    followed, and no proxy is used.
    """
    parts = _checked(url)
    host = "127.0.0.1" if parts.hostname == "localhost" else str(parts.hostname)

    def sample(codes: Any) -> list[str]:
        body = "".join(f"{pair[code]}\n" for code in codes.tolist()).encode()
        deadline = monotonic() + _SECONDS
        connection = HTTPConnection(host, parts.port or 80, timeout=_SECONDS)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request("POST", target, body, {"Content-Type": "text/plain; charset=utf-8"})
            answer = connection.getresponse()
            if answer.status != 200:
                fail(f"--url: {host} answered {answer.status}, but 200 is needed. Redirects are not followed.")
            text = _read(answer.read1, deadline)
        except (OSError, HTTPException) as error:
            fail(f"--url: {host} did not answer ({type(error).__name__}). Is the service running there?")
        finally:
            connection.close()
        lines = text.splitlines()
        if len(lines) != len(codes):
            fail(f"--url: got {len(lines):,} lines for {len(codes):,} values; each value needs one line.")
        return lines

    return sample


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        here = parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback
        fine = here and parts.scheme == "http" and parts.username is None and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        misused(
            "--url must be an http address of this machine, for example http://127.0.0.1:8000/report: an audit sends "
            "thousands of requests."
        )
    return parts


def _read(read: Callable[[int], bytes], deadline: float) -> str:
    """Raises an error if the response is too long or takes too long."""
    parts, size = [], 0
    while part := read(_CHUNK):
        size += len(part)
        if size > _BYTES or monotonic() > deadline:
            limit = f"{_BYTES >> 20} MB" if size > _BYTES else f"{_SECONDS} seconds"
            fail(f"--url: the answer is longer than {limit}. Use fewer --trials.")
        parts.append(part)
    try:
        return b"".join(parts).decode()
    except UnicodeDecodeError:
        fail("--url: the answer must be text in UTF-8, one report on each line.")
