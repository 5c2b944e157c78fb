"""Connections: mutual TLS 1.3 over TCP, frames in and out, limits on number and time."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

from hushuffle.errors import DataError, HushuffleError
from hushuffle.runtime.frames import HEAD, Control, Frame, Kind, Layout, Reason
from hushuffle.runtime.identities import Identity, peer_name
from hushuffle.runtime.journal import Journal

_BUFFER: Final = 1 << 18
"""Bytes that a connection holds before it stops to read, or before who sends has to wait."""

MOST: Final = 128
"""Connections that a node has open at a time; others wait until they are accepted."""

OF_ONE: Final = 4
"""Of these, connections of one node at a time."""

_HANDSHAKE: Final = 10.0
"""Seconds that a stranger may take to show a certificate."""

_BLOCK: Final = 1 << 16
"""Bytes that are read at a time."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class ConnectionLostError(HushuffleError):
    """A connection could not be made or kept; `reason` says why, `final` that trying again is of no use."""

    def __init__(self, message: str, *, reason: Reason, final: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.final = final


class Connection:
    """One connection to the node `peer`, whose certificate was checked; it is heard if it holds the same document."""

    def __init__(
        self,
        peer: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        layout: Layout,
        patience: float,
    ) -> None:
        self.peer = peer
        self._reader, self._writer = reader, writer
        self._layout, self._patience = layout, patience
        # What was read and not yet taken, from `_place` on: frames come in blocks, and are cut out of them.
        self._block, self._place = b"", 0
        self._greeted = False

    def greet(self) -> None:
        """Say first which run this is: the whole digest of its document."""
        self._writer.write(self._layout.pack(self._layout.hello))

    async def receive(self, *, patience: float | None = None) -> Frame | None:
        """Return the next frame; None where the other end has closed between two frames.

        Raises:
            ConnectionLostError: the connection broke within a frame, nothing came in time, or the other end did not
                say first that it holds the same document.
            DataError: this is no frame.
        """
        frame = self._next()
        if frame is not None:
            return frame
        try:
            async with asyncio.timeout(patience or self._patience):
                while frame is None:
                    if not (more := await self._reader.read(_BLOCK)):
                        if self._place == len(self._block):
                            return None
                        raise _lost(self.peer, Reason.TRUNCATED)
                    self._block, self._place = self._block[self._place :] + more, 0
                    frame = self._next()
        except TimeoutError:
            raise _lost(self.peer, Reason.SLOW) from None
        except ssl.SSLError as error:
            raise _refused(self.peer, error) from None
        except OSError:
            raise _lost(self.peer, Reason.TRUNCATED) from None
        return frame

    def _next(self) -> Frame | None:
        """Return the next frame of what was read, None where it is not there as a whole.

        Raises:
            ConnectionLostError: the first one is not the greeting of this run.
            DataError: this is no frame.
        """
        first = self._place + HEAD
        head = self._block[self._place : first]
        if len(head) < HEAD:
            return None
        end = first + self._layout.left(head)
        if end > len(self._block):
            return None
        self._place = end
        frame = self._layout.unpack(head, self._block[first:end])
        if self._greeted:
            return frame
        if frame != self._layout.hello:
            raise _lost(self.peer, Reason.OTHER_RUN)
        self._greeted = True
        return self._next()

    async def send(self, *frames: Frame) -> None:
        """Send frames, each a record of TLS of its own; wait while the other end is behind.

        Raises:
            ConnectionLostError: the connection broke, or the other end took nothing in time.
        """
        writer, transport = self._writer, self._writer.transport
        # Of asyncio's ways to write, this one makes a record of every line, and one call of the system of them all.
        writer.writelines([self._layout.pack(frame) for frame in frames])
        if transport.get_write_buffer_size() <= _BUFFER and not transport.is_closing():
            return
        try:
            async with asyncio.timeout(self._patience):
                await writer.drain()
        except TimeoutError:
            raise _lost(self.peer, Reason.SLOW) from None
        except ssl.SSLError as error:
            raise _refused(self.peer, error) from None
        except OSError:
            raise _lost(self.peer, Reason.TRUNCATED) from None

    async def answer(self) -> Control:
        """Return the control frame that the other end answers with.

        Raises:
            ConnectionLostError: it closed, or sent something else.
        """
        try:
            frame = await self.receive()
        except DataError:
            raise _lost(self.peer, Reason.MALFORMED) from None
        if not isinstance(frame, Control):
            raise _lost(self.peer, Reason.TRUNCATED)
        return frame

    async def close(self) -> None:
        """Close it, after everything was sent."""
        with suppress(OSError, TimeoutError):
            self._writer.close()
            async with asyncio.timeout(self._patience):
                await self._writer.wait_closed()

    def abort(self) -> None:
        """Close it at once."""
        self._writer.transport.abort()


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
    """Accept connections until cancelled, at most `MOST` at a time, `OF_ONE` of one node, and give each to `handler`.

    Who has no certificate of the authority, or one that is expired or not valid yet, is refused and counted. What goes
    wrong within a connection ends that connection, is counted by its reason, and told to the other end.
    """
    loop = asyncio.get_running_loop()
    where.setblocking(False)  # noqa: FBT003 - the socket's own way
    free, tasks, peers = asyncio.Semaphore(MOST), set[asyncio.Task[None]](), Counter[str]()

    async def serve(accepted: socket.socket) -> None:
        try:
            connection = await _accepted(accepted, context, layout, patience)
        except ConnectionAbortedError:  # what asyncio says where the handshake takes too long
            journal.reject(Reason.SLOW)
            return
        except ConnectionResetError:
            journal.reject(Reason.TRUNCATED)
            return
        except OSError:  # so are all errors of TLS
            journal.reject(Reason.CERTIFICATE)
            return
        peers[connection.peer] += 1
        try:
            await _handled(connection, handler if peers[connection.peer] <= OF_ONE else _busy, journal)
        finally:
            peers[connection.peer] -= 1

    def done(accepted: socket.socket, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            accepted.close()  # it may never have begun
        tasks.discard(task)
        free.release()

    try:
        while True:
            await free.acquire()
            try:
                accepted = await _next(where)
            except OSError:
                # Too many open files, or who came is gone already: nothing that others should suffer from for long.
                free.release()
                await asyncio.sleep(_FIRST_PAUSE)
                continue
            task = loop.create_task(serve(accepted))
            tasks.add(task)
            task.add_done_callback(partial(done, accepted))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _next(where: socket.socket) -> socket.socket:
    """Return the next connection. `loop.sock_accept` would lose, and complain of, one that comes as it is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        with suppress(BlockingIOError):
            return where.accept()[0]
        readable = asyncio.Event()
        loop.add_reader(where, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(where)


async def _accepted(accepted: socket.socket, context: ssl.SSLContext, layout: Layout, patience: float) -> Connection:
    loop = asyncio.get_running_loop()
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = asyncio.StreamReader(limit=_BUFFER)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(
        lambda: protocol,
        accepted,
        ssl=context,
        ssl_handshake_timeout=min(patience, _HANDSHAKE),
        ssl_shutdown_timeout=patience,
    )
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    peer = peer_name(transport.get_extra_info("ssl_object"))
    connection = Connection(peer, reader, writer, layout=layout, patience=patience)
    connection.greet()
    return connection


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


async def _busy(connection: Connection) -> None:
    message = f"{connection.peer} has {OF_ONE} connections already."
    raise ConnectionLostError(message, reason=Reason.BUSY)


async def _refuse(connection: Connection, reason: Reason) -> None:
    with suppress(ConnectionLostError):
        await connection.send(Control(Kind.REFUSED, reason=reason))


async def connect(
    name: str,
    place: tuple[str, int],
    identity: Identity,
    *,
    layout: Layout,
    patience: float,
    until: float,
    stop: asyncio.Event | None = None,
) -> Connection:
    """Return a connection to the node `name`, tried again until the loop's time is `until`, or until `stop`.

    Raises:
        ConnectionLostError: nobody there in time; or (`final`) not the node that was wanted, or it refuses us.
    """
    loop, context, pause = asyncio.get_running_loop(), identity.client(), _FIRST_PAUSE
    local = None if identity.address is None else (identity.address, 0)
    while True:
        try:
            async with asyncio.timeout(patience):
                reader, writer = await asyncio.open_connection(
                    *place, ssl=context, server_hostname=name, local_addr=local, limit=_BUFFER
                )
        except ssl.SSLCertVerificationError as error:
            message = f"{name} showed a certificate that cannot be trusted: {error.verify_message}."
            raise ConnectionLostError(message, reason=Reason.CERTIFICATE, final=True) from None
        except (OSError, TimeoutError):
            left = until - loop.time()
            if left <= 0 or (stop is not None and stop.is_set()):
                message = f"{name} could not be reached in time."
                raise ConnectionLostError(message, reason=Reason.SLOW) from None
            # How long is no secret, and depends on nobody's data: it only keeps thousands from coming back at once.
            await asyncio.sleep(min(pause * random.uniform(0.5, 1.5), left))  # noqa: S311
            pause = min(2 * pause, _LONGEST_PAUSE)
        else:
            connection = Connection(name, reader, writer, layout=layout, patience=patience)
            connection.greet()
            return connection


_WORDS: Final = {
    Reason.SLOW: "was too slow",
    Reason.MALFORMED: "does not speak this protocol",
    Reason.OTHER_RUN: "holds another document than this run's",
}


def _lost(peer: str, reason: Reason) -> ConnectionLostError:
    words = _WORDS.get(reason, "ended the connection early")
    return ConnectionLostError(f"{peer or 'a node without a name'} {words}.", reason=reason)


def _refused(peer: str, error: ssl.SSLError) -> ConnectionLostError:
    """Return what a failure of TLS after the handshake means: with TLS 1.3 the other end refuses us then.

    Anything else, a damaged record for example, is worth another try.
    """
    why = (error.reason or "an error").replace("_", " ").lower()
    if "certificate" not in why and "unknown ca" not in why:
        return _lost(peer, Reason.TRUNCATED)
    return ConnectionLostError(f"{peer} refuses our certificate ({why}).", reason=Reason.CERTIFICATE, final=True)
