"""Connections in memory, as asyncio's TLS would give them: ordered bytes that come late, in pieces, or not at all."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from hushuffle.errors import DataError
from hushuffle.runtime.frames import HEAD, Control, Frame, Kind, Layout
from hushuffle.runtime.identities import Identity
from runtime.simulation.clock import Loop, current
from runtime.simulation.hosts import Process

_KERNEL: Final = 1 << 16
"""Bytes on their way that the sender's own buffer does not hold any more."""

_POLL: Final = 0.7
"""Seconds between two tries to get through a cut."""

Place = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What stands for a context of TLS: whom the certificate names, and whether the authority's clock accepts it."""

    name: str
    good: bool = True


@dataclass(frozen=True, kw_only=True)
class Badge(Identity):
    """An identity without cryptography."""

    good: bool = True

    def server(self) -> ssl.SSLContext:
        return Context(name=self.name, good=self.good)  # type: ignore[return-value]

    def client(self) -> ssl.SSLContext:
        return Context(name=self.name, good=self.good)  # type: ignore[return-value]


def badge(name: str, *, good: bool = True) -> Badge:
    """Return the identity of a node."""
    return Badge(name=name, certificate="", authority="", key="", good=good)


class Seen:
    """What asyncio calls "ssl_object": whom the other end's certificate names."""

    def __init__(self, name: str) -> None:
        self._name = name

    def getpeercert(self) -> dict[str, Any]:
        return {"subjectAltName": (("DNS", self._name),)}


@dataclass(eq=False)
class Talk:
    """One connection as somebody sees who reads everything: frames as they left, and whether they were delivered."""

    number: int
    client: Process
    server: Process
    name: str
    """Whom the client's certificate names."""
    frames: list[tuple[float, Process, Frame]] = field(default_factory=list)
    tried: list[tuple[Process, Frame]] = field(default_factory=list)
    """Also what was sent when the connection was gone already."""
    delivered: dict[Process, int] = field(default_factory=dict)
    """How many frames have reached this end as a whole."""

    def sent_by(self, process: Process) -> list[Frame]:
        """Return the frames of one end."""
        return [frame for _time, sender, frame in self.frames if sender is process]

    def accepted_by(self, process: Process) -> bool:
        """Say whether an end answered that it accepts, heard or not."""
        return any(
            sender is process and isinstance(frame, Control) and frame.kind is Kind.ACCEPTED
            for sender, frame in self.tried
        )

    def reached(self, process: Process) -> list[Frame]:
        """Return the frames that have reached one end."""
        sender = self.client if process is self.server else self.server
        return self.sent_by(sender)[: self.delivered.get(process, 0)]


class Cutter:
    """Cuts bytes into frames; what is no frame ends it."""

    def __init__(self, layout: Layout) -> None:
        self._layout, self._left, self._broken = layout, b"", False

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are whole now."""
        if self._broken:
            return []
        self._left += data
        frames: list[Frame] = []
        try:
            while len(self._left) >= HEAD:
                end = HEAD + self._layout.left(self._left[:HEAD])
                if len(self._left) < end:
                    break
                frames.append(self._layout.unpack(self._left[:HEAD], self._left[HEAD:end]))
                self._left = self._left[end:]
        except DataError:
            self._broken = True
        return frames


class Wire(asyncio.Transport):
    """One end of a connection."""

    other: Wire

    def __init__(self, network: Network, process: Process, talk: Talk, peer: Place) -> None:
        super().__init__()
        self.network, self.process, self.talk, self._peer = network, process, talk, peer
        self.seen, self.protocol = "", None  # type: str, Any
        self._inbox: deque[tuple[float, bytes | None]] = deque()
        self._last = 0.0
        self._under_way = 0
        self._paused = self._closing = self._over = self._pressed = False
        self._out, self._in = Cutter(network.layout), Cutter(network.layout)
        process.wires.append(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        info = {"ssl_object": Seen(self.seen), "sslcontext": self, "peername": self._peer, "socket": None}
        return info.get(name, default)

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def is_closing(self) -> bool:
        return self._closing or self._over

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return max(0, self._under_way - _KERNEL)

    def is_reading(self) -> bool:
        return not self._paused

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._arrange()

    def can_write_eof(self) -> bool:
        return False

    def writelines(self, list_of_data: Any) -> None:
        lines = [bytes(line) for line in list_of_data]
        mangle = self.network.lies.get(self.process.name)
        if mangle is not None and self.protocol is not None:
            lines = [piece for line in lines for piece in mangle(self, line)]
        self._send(b"".join(lines))

    def write(self, data: Any) -> None:
        self.writelines([data])

    def _send(self, data: bytes) -> None:
        if not self.process.alive or not data:
            return
        frames = self._out.feed(data)
        self.talk.tried += [(self.process, frame) for frame in frames]
        if self.is_closing():
            return
        for frame in frames:
            self.network.saw(self, frame)
            self.process.notice("sent")
            if self._over or not self.process.alive:
                return  # cut or killed as this frame left
        self._under_way += len(data)
        cut = self.network.random.random() < 0.2 and len(data) > 1
        place = self.network.random.randrange(1, len(data)) if cut else len(data)
        for piece in (data[:place], data[place:]):
            if piece:
                self.other.comes(piece)
        if self.get_write_buffer_size() and not self._pressed:
            self._pressed = True
            self.protocol.pause_writing()

    def comes(self, piece: bytes | None) -> None:
        """Take bytes, or the end of them, on their way."""
        loop = self.network.loop
        self._last = max(self._last, loop.time() + self.network.delay(self))
        self._inbox.append((self._last, piece))
        loop.call_at(self._last, self._deliver)

    def _arrange(self) -> None:
        if self._inbox:
            self.network.loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        loop, network = self.network.loop, self.network
        while self._inbox and self._inbox[0][0] <= loop.time() + 1e-9 and not self._over:
            if self._paused or self.protocol is None:
                return
            if (wait := network.held(self)) > 0:
                loop.call_later(wait, self._deliver)
                return
            piece = self._inbox.popleft()[1]
            if piece is None:
                self._ended()
                return
            self.other.arrived(len(piece))
            whole = self._in.feed(piece)
            self.talk.delivered[self.process] = self.talk.delivered.get(self.process, 0) + len(whole)
            if self._closing:
                continue
            self.protocol.data_received(piece)
            for frame in whole:
                network.heard(self, frame)
                self.process.notice("taken")

    def arrived(self, size: int) -> None:
        """Learn that bytes have reached the other end."""
        self._under_way -= size
        if self._pressed and not self.get_write_buffer_size():
            self._pressed = False
            if not self._over:
                self.protocol.resume_writing()

    def _ended(self) -> None:
        """The other end has said goodbye: so do we, as TLS does."""
        if not self._closing:
            self.protocol.eof_received()
            self.close()
        self._lose(None)

    def close(self) -> None:
        """Say goodbye after everything was sent, and wait for the other end's."""
        if self.is_closing():
            return
        self._closing = True
        if self.process.alive:
            self.other.comes(None)
            self.network.loop.call_later(self.network.goodbye, self._lose, None)

    def abort(self) -> None:
        """End it at once; as with TCP, what is on its way still comes, unless we have not read all that came to us."""
        if self._over:
            return
        unread = bool(self._inbox)
        self._lose(None)
        if unread:
            self.other.reset_soon()
        else:
            self.other.comes(None)

    def reset_soon(self) -> None:
        """Be told, as fast as bytes come, that the connection is gone."""
        self.network.loop.call_later(self.network.delay(self), self._lose, ConnectionResetError(104, "reset"))

    def cut(self) -> None:
        """Be cut somewhere on the way: neither end gets anything more."""
        self._lose(ConnectionResetError(104, "reset"))
        self.other.reset_soon()

    def _lose(self, error: Exception | None) -> None:
        if self._over:
            return
        self._over = self._closing = True
        self._inbox.clear()
        with suppress(ValueError):
            self.process.wires.remove(self)
        if self.protocol is not None:
            self.network.loop.call_soon(self.protocol.connection_lost, error)


class Accepted:
    """The socket of a connection that has come and shaken no hands yet."""

    def __init__(self, wire: Wire, hello: asyncio.Future[Context], answer: asyncio.Future[Context]) -> None:
        self.wire, self.hello, self.answer = wire, hello, answer

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
        while self._cut(process.address, place[0]) > 0:
            await asyncio.sleep(_POLL)
        listener = self.listeners.get(place)
        if listener is None or not process.alive:
            raise ConnectionRefusedError(111, "refused")
        talk = Talk(number=len(self.talks), client=process, server=listener.process, name=context.name)
        self.talks.append(talk)
        mine, its = Wire(self, process, talk, place), Wire(self, listener.process, talk, (process.address, 40_000))
        mine.other, its.other = its, mine
        hello, answer = self.loop.create_future(), self.loop.create_future()
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may ask for it
        hello.set_result(context)
        accepted = Accepted(its, hello, answer)
        listener.comes(accepted)
        try:
            server = await answer
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
