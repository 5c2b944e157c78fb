"""Connections: mutual TLS 1.3 over TCP, frames in and out, limits on time."""

from __future__ import annotations

import asyncio
import random
import ssl
from contextlib import suppress
from typing import Final

from hushuffle.errors import DataError, HushuffleError
from hushuffle.network.nodes.frames import HEAD, Control, Frame, Layout, Reason
from hushuffle.network.nodes.identities import Identity

BUFFER: Final = 1 << 18
"""Bytes that a connection holds before it stops to read, or before who sends has to wait."""

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
        """Return the next frame; None where the other end has closed between two frames."""
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
        """Return the next frame of what was read, None where it is not there as a whole."""
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
        """Send frames, each a record of TLS of its own; wait while the other end is behind."""
        writer, transport = self._writer, self._writer.transport
        # Of asyncio's ways to write, this one makes a record of every line, and one call of the system of them all.
        writer.writelines([self._layout.pack(frame) for frame in frames])
        if transport.get_write_buffer_size() <= BUFFER and not transport.is_closing():
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
        """Return the control frame that the other end answers with."""
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


class Pauses:
    """The waits between tries, longer and longer.

    How long is no secret, and depends on nobody's data: it only keeps thousands from coming back at once.
    """

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE

    async def wait(self, most: float) -> None:
        """Wait for the next time, but no longer than `most` seconds."""
        await asyncio.sleep(min(self._next * random.uniform(0.5, 1.5), most))  # noqa: S311
        self._next = min(2 * self._next, _LONGEST_PAUSE)


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

    Who answers with a wrong certificate is told nothing; it may be somebody on the way, who is not there the next time.
    """
    loop, context, pauses = asyncio.get_running_loop(), identity.client(), Pauses()
    local = None if identity.address is None else (identity.address, 0)
    while True:
        try:
            async with asyncio.timeout(patience):
                reader, writer = await asyncio.open_connection(
                    *place, ssl=context, server_hostname=name, local_addr=local, limit=BUFFER
                )
        except ssl.SSLCertVerificationError as error:
            message = f"{name} showed a certificate that cannot be trusted: {error.verify_message}."
            problem = ConnectionLostError(message, reason=Reason.CERTIFICATE)
        except (OSError, TimeoutError):
            problem = ConnectionLostError(f"{name} could not be reached in time.", reason=Reason.SLOW)
        else:
            connection = Connection(name, reader, writer, layout=layout, patience=patience)
            connection.greet()
            return connection
        left = until - loop.time()
        if left <= 0 or (stop is not None and stop.is_set()):
            raise problem
        await pauses.wait(left)


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
    return ConnectionLostError(f"{peer} refuses our certificate ({why}).", reason=Reason.CERTIFICATE)
