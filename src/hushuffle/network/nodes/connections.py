"""Connections between nodes: mutual TLS 1.3 over TCP, frames in both directions, and time limits."""

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
"""Bytes that a connection buffers before it stops reading, or before the sender must wait."""

_BLOCK: Final = 1 << 16
"""Bytes that are read at a time."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class ConnectionLostError(HushuffleError):
    """A connection could not be opened, or broke. `reason` gives the cause; `final` states that a retry is useless."""

    def __init__(self, message: str, *, reason: Reason, final: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.final = final


class Connection:
    """A connection to the node `peer`, whose certificate was checked; the peer must have the same document."""

    def __init__(
        self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, layout: Layout, patience: float
    ) -> None:
        self.peer = peer
        self._reader, self._writer = reader, writer
        self._layout, self._patience = layout, patience
        # Received bytes that were not yet returned start at `_place` of `_block`: frames are cut out of blocks.
        self._block, self._place = b"", 0
        self._greeted = False

    def greet(self) -> None:
        """Send the digest of the run's document as the first frame."""
        self._writer.write(self._layout.pack(self._layout.hello))

    async def receive(self, *, patience: float | None = None) -> Frame | None:
        """Return the next frame; None if the peer closed the connection between two frames."""
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
        """Return the next frame of the received bytes; None if the frame is incomplete."""
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
        """Send frames, each in its own TLS record; wait while the peer reads too slowly."""
        writer, transport = self._writer, self._writer.transport
        # This way of writing in asyncio creates one TLS record per frame, and needs one system call for all frames.
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
        try:
            frame = await self.receive()
        except DataError:
            raise _lost(self.peer, Reason.MALFORMED) from None
        if not isinstance(frame, Control):
            raise _lost(self.peer, Reason.TRUNCATED)
        return frame

    async def close(self) -> None:
        """Close the connection after all bytes were sent."""
        with suppress(OSError, TimeoutError):
            self._writer.close()
            async with asyncio.timeout(self._patience):
                await self._writer.wait_closed()

    def abort(self) -> None:
        self._writer.transport.abort()


class Pauses:
    """Increasing waiting times between retries, which are public and independent of all data."""

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE

    async def wait(self, most: float) -> None:
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
    """Return a connection to the node `name`; retry until the event loop's time is `until`, or until `stop` is set.

    A peer with a wrong certificate gets no data; it is retried, since an interceptor may be absent at the next try.
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
            message = f"{name} showed an untrusted certificate: {error.verify_message}."
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
    Reason.OTHER_RUN: "has another document of the run: all nodes need exactly the same file",
}


def _lost(peer: str, reason: Reason) -> ConnectionLostError:
    words = _WORDS.get(reason, "ended the connection early")
    return ConnectionLostError(f"{peer or 'a node without a name'} {words}.", reason=reason)


def _refused(peer: str, error: ssl.SSLError) -> ConnectionLostError:
    """Return the error for a TLS failure after the handshake: in TLS 1.3 the peer refuses a certificate only then."""
    why = (error.reason or "an error").replace("_", " ").lower()
    if "certificate" not in why and "unknown ca" not in why:
        return _lost(peer, Reason.TRUNCATED)
    return ConnectionLostError(f"{peer} refuses the certificate of this node ({why}).", reason=Reason.CERTIFICATE)
