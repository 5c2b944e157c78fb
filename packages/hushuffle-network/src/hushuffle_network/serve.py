"""Run one service until it receives a signal to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle_network.issuer import Issuer
from hushuffle_network.meter import SOON, Meter, certificate_in
from hushuffle_network.relay import Relay
from hushuffle_network.result import Result
from hushuffle_network.scrambler import Scrambler
from hushuffle_network.service import Service
from hushuffle_network.settings import ServiceSettings, load_service
from hushuffle_network.target import Target

SERVICES: Final[dict[str, type[Service]]] = {one.role: one for one in (Relay, Scrambler, Target, Result, Issuer)}
_IDLE: Final = 75.0
"""Seconds that a connection may be idle."""
_SILENT: Final = logging.getLogger("hushuffle_network.silent")
_SILENT.setLevel(logging.CRITICAL + 1)
_AT_ONCE: Final = 1 << 13
"""Bytes that are read from a connection at a time."""
_HANDSHAKE: Final = 10.0
"""Seconds within which a TLS handshake must be complete."""
_GRACE: Final = 10.0
"""Seconds that open requests have to finish when the service stops."""


def run_service(configuration: Path) -> None:
    """Run the service that a TOML file describes; SIGTERM and SIGINT stop it, SIGHUP loads new tasks.

    A restarted service continues its tasks, even after it was killed.
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
    # The log names only the type of an unexpected error, whose text may quote data.
    loop.set_exception_handler(
        lambda _, context: service.meter.event("unexpected error", kind=type(context.get("exception")).__name__)
    )
    about_certificate(service)
    async with serving(service, listening(service.settings), tls(service.settings, service.folder)):
        await stop.wait()


@asynccontextmanager
async def serving(service: Service, where: socket.socket, context: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    """Serve requests on a socket; on exit, let open requests finish, and close all connections."""
    loop = asyncio.get_running_loop()
    options: dict[str, Any] = {
        "access_log": None,
        "logger": _SILENT,  # aiohttp's log would contain addresses and received bytes
        "auto_decompress": False,
        "keepalive_timeout": _IDLE,
    }
    runner = web.AppRunner(service.application(), handle_signals=False, shutdown_timeout=_GRACE, **options)
    await runner.setup()
    handlers = runner.server
    assert handlers is not None
    timeout = None if context is None else _HANDSHAKE
    doors = _Doors(service, handlers, options)
    server = await loop.create_server(
        lambda: _Door(doors), sock=where, ssl=context, backlog=4096, ssl_handshake_timeout=timeout
    )
    try:
        yield
    finally:
        server.close()
        await runner.cleanup()


class _Handler(RequestHandler):
    """Answers any input that is not HTTP with one word; aiohttp would echo the input, eight times as long."""

    __slots__ = ("_left",)

    def __init__(self, left: Callable[[_Handler], None], handlers: web.Server, **options: Any) -> None:
        super().__init__(handlers, **options)
        self._left = left

    def connection_lost(self, exc: BaseException | None) -> None:
        self._left(self)
        super().connection_lost(exc)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        return super().handle_error(request, status, exc, "malformed\n")

    @property
    def silent(self) -> bool:
        """Whether the connection has no complete request that is still unanswered."""
        return self._current_request is None and not self._messages


_Place: TypeAlias = dict[_Handler, None]
"""The connections of one address, the oldest connection first."""


class _Doors:
    """Admits a limited number of connections, in total and per address; a silent connection is closed for a new one.

    At the total limit, the address with most connections loses one: a client that opens thousands closes its own.
    """

    def __init__(self, service: Service, handlers: web.Server, options: Mapping[str, Any]) -> None:
        self.service, self.handlers, self.options = service, handlers, options
        self._open: dict[object, _Place] = {}

    def entered(self, address: object) -> _Handler | None:
        """Return the handler of a new connection; None if there is no room for it."""
        settings = self.service.settings
        most = max(1, settings.connections // 2) if settings.connections_each is None else settings.connections_each
        own = self._open.get(address, {})
        if len(own) >= most and not self._made_room((own,)):
            return None
        full = sum(map(len, self._open.values())) >= settings.connections
        if full and not self._made_room(sorted(self._open.values(), key=len, reverse=True)):
            return None
        place = self._open.setdefault(address, {})

        def left(handler: _Handler) -> None:
            place.pop(handler, None)
            if not place and self._open.get(address) is place:
                del self._open[address]  # an address is stored only as long as its connections

        handler = _Handler(left, self.handlers, loop=asyncio.get_running_loop(), **self.options)
        place[handler] = None
        return handler

    def _made_room(self, places: Iterable[_Place]) -> bool:
        """Close the oldest silent connection, in the first address that has one; return whether one was closed."""
        for place in places:
            silent = next((handler for handler in place if handler.silent), None)
            if silent is not None:
                del place[silent]
                self.service.meter.count("refused", "silent connection")
                if silent.transport is not None:
                    silent.transport.abort()
                return True
        return False


class _Door(asyncio.Protocol):
    """Closes a new connection at once if there is no room for it; otherwise gives it a handler."""

    def __init__(self, doors: _Doors) -> None:
        self._doors = doors

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        doors, peer = self._doors, transport.get_extra_info("peername")
        handler = doors.entered(peer[0] if isinstance(peer, tuple) else peer)
        if handler is None:
            doors.service.meter.count("refused", "too many connections")
            transport.abort()
            return
        if hasattr(transport, "max_size"):  # aiohttp copies invalid input several times before it refuses it
            transport.max_size = _AT_ONCE
        transport.set_protocol(handler)
        handler.connection_made(transport)


def listening(settings: ServiceSettings) -> socket.socket:
    where = settings.listen
    try:
        if where.startswith("fd:"):
            return socket.socket(fileno=int(where.removeprefix("fd:")))
        host, _, port = where.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host.strip("[]"), int(port)), backlog=4096, family=family)
    except OSError as error:
        fail(f"{settings.name} cannot listen at {where}: {cause(error)}.")


def about_certificate(service: Service) -> None:
    """Log how many days a service's certificate is still valid; raise DataError if it has expired."""
    settings = service.settings
    if settings.certificate is None:
        return
    certificate = certificate_in(service.folder / settings.certificate)
    service.meter.event(
        "certificate", days_left=certificate.days, until=f"{certificate.until:%Y-%m-%d}", names=list(certificate.names)
    )
    if certificate.days < SOON:
        service.troubles["certificate"] = f"it expires in {certificate.days} days"
    for task in service.tasks.values():
        host = next((urlsplit(url).hostname for url in task.document.urls(service.name)), None)
        if host is not None and not certificate.covers(host):
            service.troubles["certificate"] = f"it is not for {host}, the host name of this service"
            service.meter.event("certificate", wrong=service.troubles["certificate"])


def tls(settings: ServiceSettings, folder: Path) -> ssl.SSLContext | None:
    """Return the TLS context of a service that ends TLS itself; None if a proxy in front of the service ends TLS."""
    if settings.certificate is None or settings.certificate_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(folder / settings.certificate, folder / settings.certificate_key)
    except (OSError, ssl.SSLError):
        fail(f"{settings.certificate} and {settings.certificate_key} are not a certificate and its key.")
    return context
