"""Admission of connections: limits on peers without a checked certificate (strangers) and with one (members)."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from hushuffle.errors import HushuffleError
from hushuffle.network.nodes.connections import BUFFER, Connection, ConnectionLostError, Control, Kind, Layout, Reason
from hushuffle.network.nodes.identities import peer_name
from hushuffle.network.nodes.journal import Journal

MOST: Final = 128
"""Largest number of open connections of members; further connections wait."""

OF_ONE: Final = 4
"""Largest number of open connections of one member."""

STRANGERS: Final = 256
"""Largest number of connections without a checked certificate; for a new one, the longest silent one is closed."""

OF_ADDRESS: Final = 64
"""Largest number of connections without a checked certificate from one address."""

_HANDSHAKES: Final = 64
"""Largest number of concurrent handshakes."""

_HANDSHAKES_OF_ADDRESS: Final = 16

_HANDSHAKE: Final = 10.0
"""Seconds within which a stranger must send its first byte, and again within which it must show a certificate."""

_HURRIED: Final = 2.0
"""Seconds within which a stranger must show a certificate while other strangers wait for a handshake."""

_PAUSE: Final = 0.05
_BREATH: Final = 0.001
"""Seconds of pause after every fourth refused stranger, so that immediate retries do not keep a node busy."""

Handler = Callable[[Connection], Awaitable[None]]


async def listen(
    where: socket.socket,
    context: ssl.SSLContext,
    handler: Handler,
    *,
    layout: Layout,
    patience: float,
    journal: Journal,
) -> None:
    """Accept connections until cancelled, and pass each connection with a valid certificate to `handler`.

    A peer without a valid certificate of the authority is rejected and counted. An error ends only its own connection,
    is counted by its reason, and is reported to the peer.

    No peer can occupy all connections. A silent stranger is closed if further peers arrive: first those of the new
    peer's address, the longest silent ones first. If a member without a connection arrives, a member with several
    connections loses one of them.
    """
    loop = asyncio.get_running_loop()
    where.setblocking(False)  # noqa: FBT003 - the signature of `setblocking`
    strangers, members, tasks = _Strangers(journal), _Members(patience), set[asyncio.Task[None]]()

    async def serve(accepted: socket.socket, address: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            async with asyncio.timeout(min(patience, _HANDSHAKE)):
                await _spoken(accepted)
            strangers.speaks(task)
            async with strangers.turn(address) as seconds:
                connection = await _accepted(accepted, context, layout, patience, seconds)
        except OSError as error:
            accepted.close()
            journal.reject(_failed(error))
        else:
            strangers.leave(task)
            await _handled(connection, partial(members.serve, handler), journal)

    def done(accepted: socket.socket, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            accepted.close()  # the task may be cancelled before it starts
        strangers.leave(task)
        tasks.discard(task)

    try:
        while True:
            try:
                accepted, address = await _next(where)
            except OSError:
                # Too many files are open, or the peer has already left: pause briefly, and serve the other peers.
                strangers.send_away()
                await asyncio.sleep(_PAUSE)
                continue
            if not await _roomy(strangers, accepted, address):
                journal.reject(Reason.BUSY)
                continue
            task = loop.create_task(serve(accepted, address))
            strangers.enter(task, address)
            tasks.add(task)
            task.add_done_callback(partial(done, accepted))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Strangers:
    """Connections without a checked certificate, by the tasks that wait for the certificate."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._addresses: dict[asyncio.Task[None], str] = {}
        self._silent: dict[asyncio.Task[None], str] = {}  # in the order of arrival
        self._of, self._sent_away = Counter[str](), 0
        self._turns = asyncio.Semaphore(_HANDSHAKES)
        self._turns_of: dict[str, asyncio.Semaphore] = defaultdict(partial(asyncio.Semaphore, _HANDSHAKES_OF_ADDRESS))

    def enter(self, task: asyncio.Task[None], address: str) -> None:
        self._addresses[task] = self._silent[task] = address
        self._of[address] += 1

    def speaks(self, task: asyncio.Task[None]) -> None:
        self._silent.pop(task, None)

    def leave(self, task: asyncio.Task[None]) -> None:
        self._silent.pop(task, None)
        address = self._addresses.pop(task, None)
        if address is None:
            return
        self._of[address] -= 1
        if not self._of[address]:
            del self._of[address]
            self._turns_of.pop(address, None)

    async def room(self, address: str) -> bool:
        """Make room for one more connection; return whether there is room."""
        while self._of[address] >= OF_ADDRESS:
            # If no stranger of this address is silent, the new peer must connect again later.
            away = self.send_away(address)
            await self._breath()
            if not away:
                return False
        while len(self._addresses) >= STRANGERS:
            if self.send_away():
                await self._breath()
            else:
                await asyncio.sleep(_PAUSE)
        return True

    async def _breath(self) -> None:
        self._sent_away += 1
        await asyncio.sleep(_BREATH if self._sent_away % 4 == 0 else 0)

    def send_away(self, address: str | None = None) -> bool:
        """Close the longest silent connection, of one address or of all addresses; return whether one existed."""
        task = next((task for task, own in self._silent.items() if address in {None, own}), None)
        if task is None:
            return False
        self.leave(task)
        task.cancel()
        self._journal.reject(Reason.SLOW)
        return True

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[float]:
        """Wait until a handshake may begin, and yield the number of seconds that it may take."""
        own = self._turns_of[address]
        crowded = own.locked() or self._turns.locked()
        async with own, self._turns:
            yield _HURRIED if crowded else _HANDSHAKE


class _Members:
    """Connections of peers with a valid certificate."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._free, self._waiting = asyncio.Semaphore(MOST), 0
        self._of = Counter[str]()
        self._open: dict[Connection, None] = {}  # in the order of arrival

    async def serve(self, handler: Handler, connection: Connection) -> None:
        """Wait until another connection is allowed, and pass the connection to `handler`."""
        self._of[connection.peer] += 1
        try:
            if self._of[connection.peer] > OF_ONE or self._waiting == MOST:
                raise _busy(connection)
            if self._free.locked():
                self._make_room(connection.peer)
            await self._place(connection)
            self._open[connection] = None
            try:
                await handler(connection)
            finally:
                self._open.pop(connection, None)
                self._free.release()
        finally:
            self._of[connection.peer] -= 1

    async def _place(self, connection: Connection) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError:
            raise _busy(connection) from None
        finally:
            self._waiting -= 1

    def _make_room(self, peer: str) -> None:
        """Close a connection of the member with the most connections, unless the new peer would then have more."""
        held = Counter(one.peer for one in self._open)
        greedy, most = max(held.items(), key=lambda one: one[1], default=("", 0))
        if most > held[peer] + 1:
            oldest = next(one for one in self._open if one.peer == greedy)
            del self._open[oldest]
            oldest.abort()


def _busy(connection: Connection) -> ConnectionLostError:
    message = f"{connection.peer} has too many connections, or this node has no room for another one."
    return ConnectionLostError(Reason.BUSY, message)


async def _roomy(strangers: _Strangers, accepted: socket.socket, address: str) -> bool:
    """Make room for a new connection, or close it; return whether there is room."""
    room = False
    try:
        room = await strangers.room(address)
    finally:
        if not room:
            accepted.close()
    return room


async def _next(where: socket.socket) -> tuple[socket.socket, str]:
    """Return the next connection and its address; a cancelled `loop.sock_accept` would lose a connection."""
    while True:
        with suppress(BlockingIOError):
            accepted, place = where.accept()
            accepted.setblocking(False)  # noqa: FBT003
            return accepted, _address(str(place[0]))
        await _readable(where)


def _address(host: str) -> str:
    """Return the unit of addresses that one party controls: the address in IPv4, the first 64 bits in IPv6.

    >>> _address("192.0.2.7"), _address("2001:db8::7")
    ('192.0.2.7', '2001:db8::/64')
    """
    if ":" not in host:
        return host
    return str(ipaddress.ip_network(f"{host.partition('%')[0]}/64", strict=False))


async def _readable(listener: socket.socket) -> None:
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listener, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(listener)


async def _spoken(accepted: socket.socket) -> None:
    """Wait for the first byte of a connection: before it arrives, no work is done for the peer."""
    await _readable(accepted)
    if not accepted.recv(1, socket.MSG_PEEK):
        raise ConnectionResetError


async def _accepted(
    accepted: socket.socket, context: ssl.SSLContext, layout: Layout, patience: float, seconds: float
) -> Connection:
    loop = asyncio.get_running_loop()
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = asyncio.StreamReader(limit=BUFFER)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(
        lambda: protocol,
        accepted,
        ssl=context,
        ssl_handshake_timeout=min(patience, seconds),
        ssl_shutdown_timeout=patience,
    )
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    peer = peer_name(transport.get_extra_info("ssl_object"))
    connection = Connection(peer, reader, writer, layout=layout, patience=patience)
    connection.greet()
    return connection


def _failed(error: OSError) -> Reason:
    if isinstance(error, ConnectionAbortedError | TimeoutError):  # asyncio raises the first for a slow handshake
        return Reason.SLOW
    return Reason.TRUNCATED if isinstance(error, ConnectionResetError) else Reason.CERTIFICATE  # TLS errors, too


async def _handled(connection: Connection, handler: Handler, journal: Journal) -> None:
    try:
        try:
            await handler(connection)
        except ConnectionLostError as error:
            journal.reject(error.reason)
            await _refuse(connection, error.reason)
        except HushuffleError:
            journal.reject(Reason.MALFORMED)
            await _refuse(connection, Reason.MALFORMED)
        await connection.close()
    finally:
        connection.abort()  # a node that ends does not wait for peers that close slowly


async def _refuse(connection: Connection, reason: Reason) -> None:
    with suppress(ConnectionLostError):
        await connection.send(Control(Kind.REFUSED, reason=reason))
