"""Who gets in: limits on strangers until they have shown a certificate, and on members afterwards."""

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
from hushuffle.network.nodes.connections import BUFFER, Connection, ConnectionLostError
from hushuffle.network.nodes.frames import Control, Kind, Layout, Reason
from hushuffle.network.nodes.identities import peer_name
from hushuffle.network.nodes.journal import Journal

MOST: Final = 128
"""Connections of members that a node has open at a time; others wait."""

OF_ONE: Final = 4
"""Of these, connections of one node at a time."""

STRANGERS: Final = 256
"""Connections that have shown no certificate yet; when one more comes, the one that was silent longest goes."""

OF_ADDRESS: Final = 64
"""Of these, connections from one address."""

_HANDSHAKES: Final = 64
"""Handshakes at a time."""

_HANDSHAKES_OF_ADDRESS: Final = 16

_HANDSHAKE: Final = 10.0
"""Seconds that a stranger may take to say something, and again to show a certificate."""

_HURRIED: Final = 2.0
"""The same for the certificate, while others wait for their turn."""

_PAUSE: Final = 0.05
_BREATH: Final = 0.001
"""Seconds after every fourth stranger that was sent away: who comes back at once must not keep a node busy."""

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
    """Accept connections until cancelled, and give each that has shown a good certificate to `handler`.

    Who has no certificate of the authority, or one that is expired or not valid yet, is refused and counted. What goes
    wrong within a connection ends that connection, is counted by its reason, and told to the other end.

    Nobody can take all places. A stranger who says nothing costs hardly more than an open file, and goes when others
    come, the longest silent first, those of the same address before any other. A member who has several connections
    gives one up for a member who has none.
    """
    loop = asyncio.get_running_loop()
    where.setblocking(False)  # noqa: FBT003 - the socket's own way
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
            accepted.close()  # it may never have begun
        strangers.leave(task)
        tasks.discard(task)

    try:
        while True:
            try:
                accepted, address = await _next(where)
            except OSError:
                # Too many open files, or who came is gone already: nothing that others should suffer from for long.
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
    """Connections whose certificate was not seen yet, by the tasks that wait for it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._addresses: dict[asyncio.Task[None], str] = {}
        self._silent: dict[asyncio.Task[None], str] = {}  # in the order in which they came
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
        """Make room for one more; say whether there is some."""
        while self._of[address] >= OF_ADDRESS:
            # Where nobody of this address is silent, the newcomer has to come again.
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
        """Drop the connection that has been silent longest, of one address or of all; say whether there is one."""
        task = next((task for task, own in self._silent.items() if address in {None, own}), None)
        if task is None:
            return False
        self.leave(task)
        task.cancel()
        self._journal.reject(Reason.SLOW)
        return True

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[float]:
        """Wait for a turn to shake hands; the seconds that there are for it."""
        own = self._turns_of[address]
        crowded = own.locked() or self._turns.locked()
        async with own, self._turns:
            yield _HURRIED if crowded else _HANDSHAKE


class _Members:
    """Connections whose certificate is good."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._free, self._waiting = asyncio.Semaphore(MOST), 0
        self._of = Counter[str]()
        self._open: dict[Connection, None] = {}  # in the order in which they came

    async def serve(self, handler: Handler, connection: Connection) -> None:
        """Give a connection to `handler` when it has a place."""
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
        """End a connection of the member that has most, if that is more than the newcomer then has."""
        held = Counter(one.peer for one in self._open)
        greedy, most = max(held.items(), key=lambda one: one[1], default=("", 0))
        if most > held[peer] + 1:
            oldest = next(one for one in self._open if one.peer == greedy)
            del self._open[oldest]
            oldest.abort()


def _busy(connection: Connection) -> ConnectionLostError:
    message = f"{connection.peer} has too many connections, or there is no place for it."
    return ConnectionLostError(message, reason=Reason.BUSY)


async def _roomy(strangers: _Strangers, accepted: socket.socket, address: str) -> bool:
    """Make room for a newcomer, who is sent away where there is none; say whether there is."""
    room = False
    try:
        room = await strangers.room(address)
    finally:
        if not room:
            accepted.close()
    return room


async def _next(where: socket.socket) -> tuple[socket.socket, str]:
    """Return the next connection, and the address it comes from.

    `loop.sock_accept` would lose, and complain of, one that comes as it is cancelled.
    """
    while True:
        with suppress(BlockingIOError):
            accepted, place = where.accept()
            accepted.setblocking(False)  # noqa: FBT003
            return accepted, _address(str(place[0]))
        await _readable(where)


def _address(host: str) -> str:
    """Return what counts as one address: of IPv6 the first 64 bits, for whoever has one of these has all.

    >>> _address("192.0.2.7"), _address("2001:db8::7")
    ('192.0.2.7', '2001:db8::/64')
    """
    if ":" not in host:
        return host
    return str(ipaddress.ip_network(f"{host.partition('%')[0]}/64", strict=False))


async def _readable(one: socket.socket) -> None:
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(one, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(one)


async def _spoken(accepted: socket.socket) -> None:
    """Wait for the first byte: before it comes, nothing is spent on the other end."""
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
    """Return why somebody did not get in."""
    if isinstance(error, ConnectionAbortedError | TimeoutError):  # asyncio's word for a slow handshake is the first
        return Reason.SLOW
    return Reason.TRUNCATED if isinstance(error, ConnectionResetError) else Reason.CERTIFICATE  # so are errors of TLS


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
        connection.abort()  # a node that ends does not wait for peers that are slow to say goodbye


async def _refuse(connection: Connection, reason: Reason) -> None:
    with suppress(ConnectionLostError):
        await connection.send(Control(Kind.REFUSED, reason=reason))
