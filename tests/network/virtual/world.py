"""All services of a task and its phones in one process and in virtual time, with a network and disks that can fail."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final, Self

import pytest
from aiohttp import ClientConnectionError, web
from aiohttp.http import HttpVersion11
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from hushuffle.errors import DataError
from hushuffle.randomness import reproducible
from hushuffle_network import client, formats, service
from hushuffle_network.meter import Meter
from hushuffle_network.relay import REQUEST
from hushuffle_network.serve import SERVICES
from hushuffle_network.settings import ServiceKeys, ServiceSettings
from hushuffle_network.store import TABLES, Store
from hushuffle_network.task import read_task
from hushuffle_network.tokens import IssuerKey
from network.virtual.clock import HERE, Inline, Loop, Process, end
from network.virtual.scene import START, Message, Scene, signed

KEEP: Final = 60.0
"""Seconds from the end of the task to the deletion of its data."""
_AGAIN: Final = 2.0
"""Seconds until a service that could not start is started again, as in deploy/hushuffle@.service."""
_PHONES: Final = "phones"
_read_task, _read_keys = cache(read_task), cache(ServiceKeys.read)


class Disk(sqlite3.Connection):
    """A database in memory that outlives the service's processes; writes fail while it is `full`."""

    rewrites: ClassVar[dict[str, str]] = {}
    """Start of statements, and what stands there instead: for wrong versions of the services."""
    full = False
    wrote = False
    world: World

    @classmethod
    def new(cls, world: World) -> Disk:
        disk = sqlite3.connect(":memory:", factory=cls, isolation_level=None, check_same_thread=False)
        disk.world = world
        return disk

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        statement = self._checked(statement)
        cursor = super().execute(statement, values)
        if statement == "COMMIT" and self.wrote:
            self.wrote = False
            if (process := HERE.get()) is not None:
                process.notice("commits", self.world.loop)
        return cursor

    def executemany(self, statement: str, rows: Any) -> sqlite3.Cursor:
        return super().executemany(self._checked(statement), rows)

    def _checked(self, statement: str) -> str:
        """Return the statement that stands instead; raise an error if it writes to a full disk."""
        start = next((one for one in self.rewrites if statement.startswith(one)), "")
        statement = self.rewrites.get(start, "") + statement[len(start) :]
        writes = statement.startswith(("INSERT", "REPLACE", "DELETE"))
        if self.full and (writes or (statement == "COMMIT" and self.wrote)):
            error = sqlite3.OperationalError("full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        self.wrote |= writes
        return statement

    def close(self) -> None:
        """Do nothing: the data stay on the disk."""


@dataclass(eq=False)
class Sent:
    """One request between two services, and how its receiver answered each time it arrived."""

    time: float
    sender: str
    receiver: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)

    @property
    def method(self) -> str:
        """Every POST has a body."""
        return "POST" if self.body else "GET"


@dataclass(kw_only=True)
class Links:
    """How the network treats requests before `quiet`; afterwards it delays them by milliseconds only."""

    quiet: float
    loss: float = 0.0
    repeat: float = 0.0
    slow: float = 0.02
    cuts: list[tuple[str, str, float, float]] = field(default_factory=list)
    """Two services ("" for all), and from when to when they cannot reach each other."""

    def cut(self, one: str, other: str, now: float) -> bool:
        return any(
            start <= now < end and {first, second} in ({one, other}, {"", one}, {"", other})
            for first, second, start, end in self.cuts
        )


class World:
    """One run: its processes, disks and requests, and everything that the checks need to know of it."""

    def __init__(self, scene: Scene, seed: int, links: Links) -> None:
        self.scene, self.links = scene, links
        self.rng = random.Random(f"world {seed}")  # noqa: S311 - repeatable faults
        self.loop = Loop(random.Random(f"threads {seed}"))  # noqa: S311 - repeatable faults
        self.skews: dict[str, float] = {}
        self.lies: dict[str, str] = {}
        self.due: dict[str, set[tuple[str, int]]] = {}
        self.again: dict[str, list[float | None]] = {}
        """Seconds after each kill by a count until the service starts again; None: never."""
        self.disks: dict[str, Disk] = {}
        self.files: dict[str, bytes] = {}
        self.up: dict[str, Process] = {}
        self.disturbed = dict.fromkeys(scene.roles, 0.0)
        """For each service, the moment since which it works undisturbed (infinite: never again)."""
        self.restored: set[str] = set()
        """Services that were restored to an older state."""
        self.sent: list[Sent] = []
        self.issued: dict[tuple[str, str], set[bytes]] = {}
        """For each address of the issuer and name of an invitation, the requests that the issuer signed."""
        self.words: dict[Message, str] = {}
        """The last word that the phone of each message got; "" if none."""
        self.accepted: list[Message] = []
        """Messages in the order in which the first scrambler answered them first."""
        self._of_request = {message.sealed: message for message in scene.of_layer.values()}
        self.published: list[tuple[float, bytes]] = []
        self.lied: set[int] = set()
        """Steps in which a scrambler or target has lied."""
        self.left: dict[str, dict[str, int]] = {}
        self.tasks: list[str] = []
        self.trace: list[str] = []
        self.problems: list[str] = []

    def note(self, line: str) -> None:
        self.trace.append(f"{self.loop.time():.6f} {line}")

    # Processes

    def start(self, name: str) -> None:
        """Start a service from its disk, unless it runs."""
        if name in self.up:
            return
        self.note(f"{name} starts")
        about = (self.skews.get(name, 0.0), self.lies.get(name, ""), self.killed, self.due.setdefault(name, set()))
        self.up[name] = process = Process(name, *about)
        context = Context()
        context.run(HERE.set, process)
        self.loop.create_task(self._live(process), context=context)

    async def _live(self, process: Process) -> None:
        name, scene = process.name, self.scene
        role, more = scene.roles[name], {"keys": f"{name}.keys"}
        if role == "relay":
            more = {"gateway": "http://scrambler-1"}
        if role == "issuer":
            more["codes"] = "codes.public"
        settings = ServiceSettings(role=role, name=name, listen="fd:0", keep=KEEP, **more)  # type: ignore[arg-type]
        meter = Meter(role, service=name)
        meter.event = lambda what, **facts: self._event(name, what, facts)  # type: ignore[method-assign]
        try:
            app = SERVICES[role](settings, scene.folder, meter=meter).application()
        except DataError:  # its disk is full: the operating system starts it again
            self.kill(name)
            self.disturb(name, _AGAIN)
            self.loop.call_later(_AGAIN, self.start, name, context=Context())
            return
        app.freeze()
        await app.startup()
        process.app = app

    def _event(self, name: str, what: str, facts: dict[str, Any]) -> None:
        self.note(f"{name}: {what} {facts.get('reason', facts.get('cause', ''))}"[:200])
        if what == "unexpected error":
            self.problems.append(f"errors: {name} had an unexpected error: {facts}")

    def kill(self, name: str) -> None:
        """End a service at once: only its disk remains."""
        process = self.up.pop(name, None)
        if process is None:
            return
        self.note(f"{name} is killed")
        process.alive = False
        for task in process.tasks:
            end(task)
        if name in self.disks and self.disks[name].in_transaction:
            self.disks[name].execute("ROLLBACK")

    def killed(self, process: Process) -> None:
        """End a service whose count of callbacks or transactions says so, and start it again later."""
        again = self.again[process.name].pop(0)
        self.kill(process.name)
        self.disturb(process.name, again)
        if again is not None:
            self.loop.call_later(again, self.start, process.name, context=Context())

    def disturb(self, name: str, seconds: float | None) -> None:
        until = float("inf") if seconds is None else self.loop.time() + seconds
        self.disturbed[name] = max(self.disturbed[name], until)

    async def stop(self, name: str) -> None:
        """Stop a service as SIGTERM does."""
        process = self.up.get(name)
        if process is not None and process.app is not None:
            self.note(f"{name} stops")
            await process.app.cleanup()
            self.kill(name)

    # Requests

    async def carry(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Take a request from the running process to the service in its address, and the answer back."""
        process, rng, links = HERE.get(), self.rng, self.links
        sender = _PHONES if process is None else process.name
        receiver, _, path = url.removeprefix("http://").partition("/")
        quiet, health = self.loop.time() >= links.quiet, path == "health"
        sent = Sent(self.loop.time(), sender, receiver, f"/{path}", body, headers)
        if not health:
            self.sent.append(sent)
        loss, slow = (0.0, 0.005) if quiet else (links.loss, links.slow)
        lost, lost_answer, repeated = rng.random() < loss, rng.random() < loss, rng.random() < links.repeat
        if repeated and not quiet and not health:
            for _ in range(rng.choice((1, 1, 3))):
                self.loop.call_later(rng.choice((0.001, 1.0, 40.0)) * rng.random(), self._repeat, sent)
        await asyncio.sleep(rng.expovariate(1 / slow) * (40.0 if not quiet and rng.random() < 0.02 else 1.0))
        if lost or links.cut(sender, receiver, self.loop.time()):
            raise ClientConnectionError
        task = self.handle(sent)
        await asyncio.wait([task])
        if task.cancelled() or lost_answer or links.cut(sender, receiver, self.loop.time()):
            raise ClientConnectionError
        status, content = task.result()
        await asyncio.sleep(rng.expovariate(1 / slow))
        if not health:
            self.note(f"{sender} -> {receiver} {sent.method} {len(body)} {status}")
        return status, content

    def _repeat(self, sent: Sent) -> None:
        with suppress(ClientConnectionError):
            self.handle(sent)

    def handle(self, sent: Sent) -> asyncio.Task[tuple[int, bytes]]:
        """Let a service handle a request in a task of its own, which goes on if the sender ends."""
        process = self.up.get(sent.receiver)
        if process is None or process.app is None:
            raise ClientConnectionError
        context = copy_context()
        context.run(HERE.set, process)
        return self.loop.create_task(self._handled(process, sent), context=context)

    async def _handled(self, process: Process, sent: Sent) -> tuple[int, bytes]:
        every = CIMultiDict(sent.headers)
        if sent.body:
            every["Content-Length"] = str(len(sent.body))
        raw = tuple((name.encode(), value.encode()) for name, value in every.items())
        facts: dict[str, Any] = {"should_close": False, "compression": None, "upgrade": False, "chunked": False}
        about = (sent.method, sent.path, HttpVersion11, CIMultiDictProxy(every), raw)
        message = RawRequestMessage(*about, url=URL(sent.path), **facts)
        payload = StreamReader(_LINK, 1 << 24, loop=self.loop)
        payload.feed_data(sent.body)
        payload.feed_eof()
        request = web.Request(message, payload, _LINK, _NONE, _NONE, self.loop, client_max_size=1 << 30)
        response = await process.app._handle(request)
        assert isinstance(response, web.Response)
        content = bytes(response.body or b"")  # type: ignore[arg-type]
        sent.statuses.append(response.status)
        message_in = self._of_request.get(sent.body)
        if sent.path == "/gateway" and message_in is not None and message_in not in self.accepted:
            self.accepted.append(message_in)
        if process.name == "issuer" and response.status == 200:
            name = sent.headers["authorization"].split('"')[1]
            self.issued.setdefault((sent.path, name), set()).add(sent.body)
        return response.status, content

    # Phones

    async def phone(self, messages: list[Message], start: float) -> None:
        """Send messages one after the other, each with the same bytes until it is accepted or refused."""
        await asyncio.sleep(start)
        for message in messages:
            self.words.setdefault(message, "")
            for url, body, headers in message.requests:
                status, content = await self._insist(url, body, headers)
                if status != 200:
                    self.words[message] = content.decode().strip() if status else ""
                    break
            else:
                status, content = await self._insist("http://relay/", message.sealed, {"Content-Type": REQUEST})
                if status == 200:
                    word = formats.decode_response(message.open(content))[2].decode().strip()
                    self.words[message] = "taken" if self.words[message] == "taken" else word

    async def _insist(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        for _ in range(12):
            try:
                status, content = await self.carry(url, body, headers)
            except (ClientConnectionError, OSError):
                status, content = 0, b""
            if status not in {0, 408, 425, 429} and status < 500:
                return status, content
            await asyncio.sleep(self.rng.uniform(0.2, 4.0))
        return 0, b""

    # The whole run

    def run(self, plan: Callable[[World], None], lies: AbstractContextManager[None]) -> None:
        """Run the task to its end, until all data are deleted; `lies`: entered while it runs."""
        try:
            with _machine(self), lies:
                self.loop.run_until_complete(self._whole(plan))
                for process in list(self.up.values()):
                    self.kill(process.name)
                self.loop.run_until_complete(asyncio.sleep(1.0))
        finally:
            self.loop.close()
        self.problems += [f"errors: {error}" for error in self.loop.errors]

    async def _whole(self, plan: Callable[[World], None]) -> None:
        for name in self.scene.roles:
            self.disks[name] = Disk.new(self)
        plan(self)
        watcher = asyncio.create_task(self._watch())
        await asyncio.sleep(self.scene.end + KEEP / 2)
        self.passage = {name: self._rows(name, "passage", "batch, entries") for name in self.scene.roles}
        self.stored = self._rows("result", "published", "content")
        await asyncio.sleep(KEEP / 2 + 5.0)
        watcher.cancel()
        await asyncio.sleep(5.0)
        for name in self.up:
            rows = {table: len(self._rows(name, table, "task")) for table in TABLES if table != "published"}
            self.left[name] = {table: count for table, count in rows.items() if count}
        self.tasks = [
            f"{process.name}: {task.get_coro()!r}"[:120]
            for process in self.up.values()
            for task in process.tasks
            if not task.done()
        ]

    def _rows(self, name: str, table: str, columns: str) -> list[tuple[Any, ...]]:
        try:
            return sqlite3.Connection.execute(self.disks[name], f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608
        except sqlite3.OperationalError:
            return []  # the service never ran

    async def _watch(self) -> None:
        """Look at the published result, as an analyst does."""
        path = f"/tasks/{self.scene.document.id.hex()}/result"
        while True:
            process = self.up.get("result")
            if process is not None and process.app is not None:
                task = self.handle(Sent(self.loop.time(), "", "result", path))
                await asyncio.wait([task])
                if not task.cancelled() and task.result()[0] == 200:
                    self.published.append((self.loop.time(), task.result()[1]))
            await asyncio.sleep(0.9)

    @property
    def content(self) -> dict[str, Any]:
        """The publication; {} if there is none."""
        return dict(json.loads(self.stored[0][0])) if self.stored else {}


_LINK: Any = SimpleNamespace(**dict.fromkeys(("transport", "peername", "sockname", "ssl_context", "_reading_paused")))
_LINK.resume_reading = lambda *_, **__: None
"""Stands in for the connection of a request."""
_NONE: Any = None


@dataclass(frozen=True)
class _Session:
    """Has the part of ClientSession's interface that services use."""

    world: World

    def post(self, url: str, *, data: bytes = b"", headers: Any = (), timeout: Any = None, **_: Any) -> _Exchange:
        return _Exchange(self.world, url, data, dict(headers or ()), timeout)

    get = post

    async def close(self) -> None:
        pass


@dataclass
class _Exchange:
    """A request and its answer; is itself the answer, and the answer's content."""

    world: World
    url: str
    body: bytes
    headers: dict[str, str]
    timeout: Any
    status: int = 0
    data: bytes = b""

    async def __aenter__(self) -> Self:
        async with asyncio.timeout(60.0 if self.timeout is None else self.timeout.total):
            self.status, self.data = await self.world.carry(self.url, self.body, self.headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    @property
    def content(self) -> Self:
        return self

    async def read(self, most: int) -> bytes:
        return self.data[:most]

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        yield self.data


@contextmanager
def _machine(world: World) -> Iterator[None]:
    """Give the services the clock, network, disks and randomness of a world; work that takes long is done once."""

    def wall() -> float:
        return START.timestamp() + world.loop.time() + (0.0 if (process := HERE.get()) is None else process.skew)

    def written(path: Path, text: bytes) -> None:
        if world.disks["result"].full:
            raise OSError
        world.files[path.name] = text

    modules = "hushuffle_network."
    numbers = count(world.rng.getrandbits(40))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", wall)
        patch.setattr(client, "monotonic", world.loop.time)
        patch.setattr(service.Service, "session", lambda _self, *, most=100: _Session(world))  # noqa: ARG005
        patch.setattr(modules + "store.ThreadPoolExecutor", Inline)
        patch.setattr(Store, "_connected", lambda self: world.disks[self._service])
        patch.setattr(modules + "result.write_whole", written)
        patch.setattr(modules + "service.read_task", _read_task)
        patch.setattr(modules + "service.check_task", lambda _: world.scene.promise)
        patch.setattr(ServiceKeys, "read", _read_keys)
        patch.setattr(IssuerKey, "sign", signed)
        for module in ("scrambler", "target"):
            patch.setattr(f"{modules}{module}.secure", lambda: reproducible(next(numbers)))
        yield
