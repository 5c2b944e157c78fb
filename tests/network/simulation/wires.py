"""Connections in memory, as asyncio's TLS would give them: ordered bytes that come late, in pieces, or not at all."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hushuffle.errors import DataError
from hushuffle.network.nodes.connections import HEAD, Control, Frame, Kind, Layout
from hushuffle.network.nodes.identities import Identity
from network.simulation.hosts import Process

if TYPE_CHECKING:
    from network.simulation.network import Network

_KERNEL: Final = 1 << 16
"""Bytes on their way that the sender's own buffer does not hold any more."""

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
    """Cuts bytes into frames, without the greeting; what is no frame ends it."""

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
                frame = self._layout.unpack(self._left[:HEAD], self._left[HEAD:end])
                self._left = self._left[end:]
                if frame != self._layout.hello:
                    frames.append(frame)
        except DataError:
            self._broken = True
        return frames


class Wire(asyncio.Transport):
    """One end of a connection."""

    other: Wire
    gone: Callable[[], None]
    """Called when this end is over before there is a protocol."""

    def __init__(self, network: Network, process: Process, talk: Talk, peer: Place) -> None:
        super().__init__()
        self.network, self.process, self.talk, self._peer = network, process, talk, peer
        self.seen, self.protocol = "", None  # type: str, Any
        self.gone = lambda: None
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
            if self._closing:
                continue  # nobody reads it any more
            whole = self._in.feed(piece)
            self.talk.delivered[self.process] = self.talk.delivered.get(self.process, 0) + len(whole)
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
        else:
            self.gone()
