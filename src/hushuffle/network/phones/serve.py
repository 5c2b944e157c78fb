"""Run one service until it is told to stop."""

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
from hushuffle.network.phones.issuer import Issuer
from hushuffle.network.phones.links import SOON, certificate_in
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
    about_certificate(service)
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
    doors = _Doors(service, handlers, options)
    server = await loop.create_server(
        lambda: _Door(doors),
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
        del message
        return super().handle_error(request, status, exc, "malformed\n")

    @property
    def silent(self) -> bool:
        """Whether no whole request is here that has not been answered."""
        return self._current_request is None and not self._messages


_Place: TypeAlias = dict[_Handler, None]
"""The connections of one address, the oldest first."""


class _Doors:
    """Lets connections in, in all and of one address only so many; a silent one makes room for a new one.

    Of too many at all the one that goes is of the address that has most: who opens thousands closes its own, and who
    sends its request at once is heard, also where many share an address.
    """

    def __init__(self, service: Service, handlers: web.Server, options: Mapping[str, Any]) -> None:
        self.service, self.handlers, self.options = service, handlers, options
        self._open: dict[object, _Place] = {}

    def entered(self, address: object) -> _Handler | None:
        """Return what answers a new connection; None if there is no room for it."""
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
                del self._open[address]  # no address is kept longer than its connections

        handler = _Handler(left, self.handlers, loop=asyncio.get_running_loop(), **self.options)
        place[handler] = None
        return handler

    def _made_room(self, places: Iterable[_Place]) -> bool:
        """Close the oldest silent connection of the first place that has one; return whether there is one."""
        for place in places:
            one = next((handler for handler in place if handler.silent), None)
            if one is not None:
                del place[one]
                self.service.meter.count("refused", "silent connection")
                if one.transport is not None:
                    one.transport.abort()
                return True
        return False


class _Door(asyncio.Protocol):
    """Closes a connection at once if there is no room for it."""

    def __init__(self, doors: _Doors) -> None:
        self._doors = doors

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        doors = self._doors
        handler = doors.entered(_address(transport.get_extra_info("peername")))
        if handler is None:
            doors.service.meter.count("refused", "too many connections")
            transport.abort()
            return
        if hasattr(transport, "max_size"):  # what is no HTTP is copied some times before it is refused
            transport.max_size = _AT_ONCE
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


def about_certificate(service: Service) -> None:
    """Log how many days the certificate of a service has left, and what is wrong with it.

    Raises:
        DataError: there is none in its file, or it has expired.
    """
    settings = service.settings
    if settings.certificate is None:
        return
    found = certificate_in(service.folder / settings.certificate)
    service.meter.event("certificate", days_left=found.days, until=f"{found.until:%Y-%m-%d}", names=list(found.names))
    if found.days < SOON:
        service.troubles["certificate"] = f"it expires in {found.days} days"
    for task in service.tasks.values():
        host = next((urlsplit(url).hostname for url in task.document.urls(service.name)), None)
        if host is not None and not found.covers(host):
            service.troubles["certificate"] = f"it is not for {host}, the name that others reach this service by"
            service.meter.event("certificate", wrong=service.troubles["certificate"])


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
