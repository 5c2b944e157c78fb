"""Run one service until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.network.phones.issuer import Issuer
from hushuffle.network.phones.meter import Meter
from hushuffle.network.phones.relay import Relay
from hushuffle.network.phones.result import Result
from hushuffle.network.phones.scrambler import Scrambler
from hushuffle.network.phones.service import Service
from hushuffle.network.phones.settings import ServiceSettings, load_service
from hushuffle.network.phones.target import Target

SERVICES: Final[dict[str, type[Service]]] = {one.role: one for one in (Relay, Scrambler, Target, Result, Issuer)}
_IDLE: Final = 75.0
"""Seconds that a connection may be idle."""
_SILENT: Final = logging.getLogger("hushuffle.network.phones.silent")
_SILENT.setLevel(logging.CRITICAL + 1)
_AT_ONCE: Final = 1 << 13
"""Bytes that are read of a connection at a time."""
_HANDSHAKE: Final = 10.0
"""Seconds that the handshake of TLS may take."""
_GRACE: Final = 10.0
"""Seconds that requests have when the service is told to stop."""


def run_service(configuration: Path) -> None:
    """Run the service of a TOML file; SIGTERM and SIGINT end it, SIGHUP lets it look for new tasks.

    It goes on where it was if it is started again, also after it was killed.

    Raises:
        SpecificationError, DataError: it cannot start; the message says why.
    """
    settings, folder = load_service(configuration), configuration.parent
    meter = Meter(settings.role, service=settings.name, out=sys.stderr)
    asyncio.run(_run(SERVICES[settings.role](settings, folder, meter=meter)))


async def _run(service: Service) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    again = set[asyncio.Task[None]]()

    def look() -> None:
        task = asyncio.create_task(service.again())
        again.add(task)
        task.add_done_callback(again.discard)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, look)
    loop.set_exception_handler(lambda _, context: _unexpected(service, context.get("exception")))
    async with serving(service, listening(service.settings), tls(service.settings, service.folder)):
        await stop.wait()


def _unexpected(service: Service, error: object) -> None:
    service.meter.event("unexpected error", kind=type(error).__name__)  # what it says may quote data


@asynccontextmanager
async def serving(service: Service, where: socket.socket, context: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    """Serve on a socket; in the end let requests finish, and close everything."""
    loop = asyncio.get_running_loop()
    options: dict[str, Any] = {
        "access_log": None,
        "logger": _SILENT,  # it would name addresses and quote what they sent
        "auto_decompress": False,
        "keepalive_timeout": _IDLE,
    }
    runner = web.AppRunner(service.application(), handle_signals=False, shutdown_timeout=_GRACE, **options)
    await runner.setup()
    handlers = runner.server
    assert handlers is not None
    timeout = None if context is None else _HANDSHAKE
    server = await loop.create_server(
        lambda: _Door(service, handlers, options),
        sock=where,
        ssl=context,
        backlog=4096,
        ssl_handshake_timeout=timeout,
    )
    try:
        yield
    finally:
        server.close()
        await runner.cleanup()


class _Handler(RequestHandler):
    """Answers what is no HTTP in a word: aiohttp would send it back, eight times as long."""

    __slots__ = ()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        del message
        return super().handle_error(request, status, exc, "malformed\n")


class _Door(asyncio.Protocol):
    """Closes a connection at once if there are as many as there may be, in all or of its address."""

    def __init__(self, service: Service, handlers: web.Server, options: Mapping[str, Any]) -> None:
        self._service, self._handlers, self._options = service, handlers, options

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        settings, there = self._service.settings, self._handlers.connections
        full = len(there) >= settings.connections
        if not full and settings.connections_each is not None:
            address = _address(transport.get_extra_info("peername"))
            full = sum(_address(one.peername) == address for one in there) >= settings.connections_each
        if full:
            self._service.meter.count("refused", "too many connections")
            transport.abort()
            return
        if hasattr(transport, "max_size"):  # what is no HTTP is copied some times before it is refused
            transport.max_size = _AT_ONCE
        handler = _Handler(self._handlers, loop=asyncio.get_running_loop(), **self._options)
        transport.set_protocol(handler)
        handler.connection_made(transport)


def _address(peer: object) -> object:
    return peer[0] if isinstance(peer, tuple) else peer


def listening(settings: ServiceSettings) -> socket.socket:
    """Return the socket that a service listens on.

    Raises:
        DataError: it cannot be had.
    """
    where = settings.listen
    try:
        if where.startswith("fd:"):
            return socket.socket(fileno=int(where.removeprefix("fd:")))
        host, _, port = where.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host.strip("[]"), int(port)), backlog=4096, family=family)
    except OSError as error:
        fail(f"{settings.name} cannot listen at {where}: {cause(error)}.")


def tls(settings: ServiceSettings, folder: Path) -> ssl.SSLContext | None:
    """Return what ends TLS here; None where a proxy in front does it.

    Raises:
        DataError: the certificate or its key cannot be used.
    """
    if settings.certificate is None or settings.certificate_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(folder / settings.certificate, folder / settings.certificate_key)
    except (OSError, ssl.SSLError):
        fail(f"{settings.certificate} and {settings.certificate_key} are no certificate with its key.")
    return context
