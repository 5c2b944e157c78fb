"""Who can be reached: sockets that listen in memory, handshakes without cryptography, cuts and false portals."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from hushuffle.network.nodes.connections import Frame, Layout
from network.simulation.clock import Loop, current
from network.simulation.hosts import Process
from network.simulation.wires import Context, Place, Talk, Wire

_POLL: Final = 0.7
"""Seconds between two tries to get through a cut."""


class Accepted:
    """The socket of a connection that has come and shaken no hands yet."""

    def __init__(self, wire: Wire, hello: asyncio.Future[Context], answer: asyncio.Future[Context]) -> None:
        self.wire, self.hello, self.answer = wire, hello, answer
        self._callback: Callable[[], None] | None = None
        hello.add_done_callback(lambda _done: self._ready())
        wire.gone = self._ready

    def _ready(self) -> None:
        if self._callback is not None and (self.hello.done() or self.wire.is_closing()):
            self.wire.network.loop.call_soon(self._callback)

    def readable(self, callback: Callable[..., Any] | None, *args: Any) -> None:
        """Say whom to call when the first byte is there, or the end."""
        self._callback = None if callback is None else lambda: callback(*args)
        self._ready()

    def recv(self, _size: int, _flags: int) -> bytes:
        """Peek at the first byte."""
        return b"" if self.wire.is_closing() else b"\x16"

    def setsockopt(self, *_: Any) -> None:
        pass

    def setblocking(self, _flag: bool) -> None:
        pass

    def getpeername(self) -> Place:
        return self.wire._peer

    def close(self) -> None:
        if self.wire.protocol is None:
            self.wire.abort()
            if not self.answer.done():
                self.answer.set_exception(ConnectionResetError(104, "reset"))


class Listener:
    """A listening socket in memory."""

    def __init__(self, network: Network, process: Process, place: Place) -> None:
        self._network, self.process, self._place = network, process, place
        self._waiting: deque[Accepted] = deque()
        self._callback: Callable[[], None] | None = None
        self.closed = False
        network.listeners[place] = self
        process.listeners.append(self)

    def setblocking(self, _flag: bool) -> None:
        pass

    def getsockname(self) -> Place:
        return self._place

    def readable(self, callback: Callable[..., Any] | None, *args: Any) -> None:
        """Say whom to call when somebody comes."""
        self._callback = None if callback is None else lambda: callback(*args)
        if self._waiting and self._callback is not None:
            self._network.loop.call_soon(self._callback)

    def accept(self) -> tuple[Accepted, Place]:
        """Return who has come, as a socket does."""
        if not self._waiting:
            raise BlockingIOError
        accepted = self._waiting.popleft()
        return accepted, accepted.getpeername()

    def comes(self, accepted: Accepted) -> None:
        """Let somebody wait to be accepted."""
        self._waiting.append(accepted)
        if self._callback is not None:
            self._network.loop.call_soon(self._callback)

    def close(self) -> None:
        """Close it, and turn away who waits."""
        self.closed = True
        if self._network.listeners.get(self._place) is self:
            del self._network.listeners[self._place]
        while self._waiting:
            self._waiting.popleft().close()


class Network:
    """All connections of a simulation; `lies` changes what a process sends, frame by frame."""

    def __init__(self, loop: Loop, layout: Layout, rng: random.Random, *, slow: float) -> None:
        self.loop, self.layout, self.random, self._slow = loop, layout, rng, slow
        loop.network = self
        self.listeners: dict[Place, Listener] = {}
        self.talks: list[Talk] = []
        self.lies: dict[str, Callable[[Wire, bytes], list[bytes]]] = {}
        self.goodbye = 30.0
        self.cuts: dict[frozenset[str], float] = {}
        """Pairs of addresses, and until when nothing goes between them."""
        self.portals: dict[tuple[str, str], int] = {}
        """How many times somebody else answers, by the names of who calls and who is called."""
        self.seen: Callable[[str, Wire, Frame], None] = lambda _what, _wire, _frame: None

    def delay(self, wire: Wire) -> float:
        """Return how long bytes take to this end."""
        del wire
        return min(self.random.expovariate(1.0 / self._slow), 20 * self._slow) + 1e-4

    def held(self, wire: Wire) -> float:
        """Return for how long nothing gets to this end."""
        return self._cut(wire.process.address, wire.other.process.address)

    def _cut(self, first: str, second: str) -> float:
        now = self.loop.time()
        places = (frozenset((first, second)), frozenset((first,)), frozenset((second,)))
        return max(self.cuts.get(place, 0.0) - now for place in places)

    def saw(self, wire: Wire, frame: Frame) -> None:
        """Write down a frame that leaves."""
        wire.talk.frames.append((self.loop.time(), wire.process, frame))
        self.seen("sent", wire, frame)

    def heard(self, wire: Wire, frame: Frame) -> None:
        """Write down a frame that has come."""
        self.seen("came", wire, frame)

    async def connect(self, factory: Any, place: Place, context: Context, wanted: str) -> tuple[Wire, Any]:
        """Connect to a place, shake hands, and return the transport and its protocol.

        Raises:
            OSError: nobody there, or somebody else.
        """
        process = current()
        await asyncio.sleep(self.delay_of_handshake())
        while self._cut(process.address, place[0]) > 0:  # noqa: ASYNC110 - as TCP tries again
            await asyncio.sleep(_POLL)
        listener = self.listeners.get(place)
        if listener is None or not process.alive:
            raise ConnectionRefusedError(111, "refused")
        mine, accepted = self._joined(process, listener, context.name, place)
        accepted.hello.set_result(context)
        try:
            server = await accepted.answer
            if not self.portals.get((process.name, wanted), 0) and server.name == wanted and server.good:
                mine.seen, mine.protocol = server.name, factory()
                mine.protocol.connection_made(mine)
                mine._arrange()
                return mine, mine.protocol
        finally:
            if mine.protocol is None:
                mine.abort()
        if self.portals.get((process.name, wanted), 0):
            self.portals[process.name, wanted] -= 1
        error = ssl.SSLCertVerificationError(1, "certificate verify failed")
        error.verify_message = "certificate is not the one of the node"
        raise error

    def knock(self, process: Process, place: Place) -> None:
        """Open a connection, and say nothing on it."""
        listener = self.listeners.get(place)
        if listener is not None:
            self._joined(process, listener, "", place)

    def _joined(self, process: Process, listener: Listener, name: str, place: Place) -> tuple[Wire, Accepted]:
        talk = Talk(number=len(self.talks), client=process, server=listener.process, name=name)
        self.talks.append(talk)
        mine, its = Wire(self, process, talk, place), Wire(self, listener.process, talk, (process.address, 40_000))
        mine.other, its.other = its, mine
        accepted = Accepted(its, self.loop.create_future(), self.loop.create_future())
        accepted.answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may ask for it
        listener.comes(accepted)
        return mine, accepted

    def delay_of_handshake(self) -> float:
        """Return how long it takes until the other end hears of a connection."""
        return self.random.expovariate(1.0 / self._slow) + 1e-4

    async def accept(self, factory: Any, accepted: Accepted, context: Context, patience: float) -> tuple[Wire, Any]:
        """Shake hands with who has come, and return the transport and its protocol.

        Raises:
            OSError: it is nobody of the authority, says nothing, or is gone.
        """
        wire = accepted.wire
        try:
            async with asyncio.timeout(patience):
                client = await accepted.hello
                await asyncio.sleep(self.delay_of_handshake())
        except TimeoutError:
            wire.abort()
            raise ConnectionAbortedError(103, "handshake took too long") from None
        if wire._over:
            raise ConnectionResetError(104, "reset")
        if not accepted.answer.done():
            accepted.answer.set_result(context)
        if not client.good:
            wire.abort()
            raise ssl.SSLError(1, "certificate verify failed")
        wire.seen, wire.protocol = client.name, factory()
        wire.protocol.connection_made(wire)
        wire._arrange()
        return wire, wire.protocol
