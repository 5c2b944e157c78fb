"""The common part of all services: tasks, memory, limits, health, counters, and requests to other services."""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Container, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

from hushuffle._checks import fail
from hushuffle.errors import DataError, HushuffleError
from hushuffle_network import batches
from hushuffle_network.fields import utc_text
from hushuffle_network.meter import Meter, why_not
from hushuffle_network.promise import TaskPromise, after, check_task
from hushuffle_network.settings import ServiceKeys, ServiceSettings
from hushuffle_network.store import Store
from hushuffle_network.task import Place, TaskDocument, read_task

_SLOW: Final = 10.0
"""Seconds within which the content of a short request must arrive."""
_SLOWEST: Final = 100_000
"""Lowest accepted rate at which a batch arrives, in bytes per second."""
_EACH: Final = 0.002
"""Additional seconds for each message of a batch: the receiver opens all messages before it answers."""
_PAUSE: Final = (0.05, 2.0)
_AGAIN: Final = (60.0, 2.0)
"""Seconds between two checks of the links: if all links work, and if a link fails."""
_ANSWER: Final = 1 << 16
"""Largest number of bytes of another service's answer."""
_LOOK: Final = 1.0
"""Seconds between two queries for the result from which the next iteration starts."""
_RESULT: Final = 1 << 20
"""Largest number of bytes of such a result, which holds the numbers of one iteration."""
CAME: Final = "/tasks/{task}/steps/{step:[0-9]+}/came/{nonce:[0-9a-f]+}"
"""Path at which a receiver answers with its signed state of batches."""
_NONCE: Final = 32
"""Number of hexadecimal digits of the nonce that the querying scrambler draws."""
FORGET: Final = 3
"""A task ends this many times `patience` after its deadline; until then services send and receive for it."""


class Refused(Exception):  # noqa: N818 - an answer to a request, not a fault
    """A refused request, with a status and a reason of one or two words."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Task:
    def __init__(self, document: TaskDocument, promise: TaskPromise) -> None:
        self.document, self.promise = document, promise


class Service:
    """One role: an HTTP application with persistent state; paths in its settings are relative to `folder`."""

    role: ClassVar[str]
    stays: ClassVar[tuple[str, ...]] = ()
    """Database tables from which nothing is deleted when a task is over."""

    def __init__(self, settings: ServiceSettings, folder: Path, *, meter: Meter) -> None:
        self.settings, self.folder, self.meter, self.name = settings, folder, meter, settings.name
        self.keys: ServiceKeys | None = None
        if settings.keys is not None:
            where = settings.keys if settings.keys.startswith("env:") else str(folder / settings.keys)
            self.keys = ServiceKeys.read(where)
        self.tasks: dict[bytes, Task] = {}
        self._over: set[bytes] = set()
        self._sessions: list[ClientSession] = []
        self._looking: ClientSession | None = None
        self._trying: ClientSession | None = None
        self._running: set[asyncio.Task[None]] = set()
        self.troubles: dict[str, str] = {}
        """The current faults, for /health: from subject to reason."""
        self.load()
        self.store = Store(folder / settings.state / f"{self.name}.sqlite", service=self.name)

    @property
    def secret(self) -> ServiceKeys:
        assert self.keys is not None
        return self.keys

    def load(self) -> list[Task]:
        """Read the folder of tasks, and return the new tasks; the log names each refused document."""
        new, place = list[Task](), self.folder / self.settings.tasks
        for path in sorted(place.glob("*.json")) if place.is_dir() else ():
            try:
                document = read_task(path)
                if document.id in self.tasks or document.id in self._over:
                    continue
                if document.round is not None and document.round.later:
                    fail(
                        "the document is a later iteration, which services derive from the previous result. "
                        "Remove this file."
                    )
                new.append(self._take_part(document))
            except HushuffleError as error:
                self.meter.event("task refused", file=path.name, reason=str(error))
                continue
            self.meter.event("task", id=document.id.hex(), file=path.name)
        return new

    def _take_part(self, document: TaskDocument) -> Task:
        task = Task(document, check_task(document))
        self.check(task)
        self.tasks[document.id] = task
        self.meter.tasks = len(self.tasks)
        return task

    def check(self, task: Task) -> None:
        """Raise DataError if the task does not list this service, or lists other keys for it."""
        document = task.document
        places = [*document.chain, document.result, *(one for step in document.steps for one in step.targets)]
        own = next((one for one in places if one.name == self.name), None)
        public = self.secret.public
        if (
            own is None
            or document.role(self.name) != self.role
            or (own.key, own.sign) != (public["seal"], public["sign"])
        ):
            fail(f"the document does not list {self.name} in this role, or lists keys that {self.name} does not have.")

    def routes(self) -> list[web.RouteDef]:
        raise NotImplementedError

    async def begin(self, task: Task) -> None:
        """Start or continue a task, when the service starts or the document arrives."""

    def drop(self, task: bytes) -> None:
        """Remove this role's data in memory for a task that is over."""

    async def end(self) -> None:
        """Release this role's resources in addition to its database and connections."""

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._answered], client_max_size=1 << 40)  # `content` checks the size first
        common = {"/health": self._health, "/metrics": self._metrics, "/tasks/{task}": self._document}
        app.add_routes([*(web.get(path, answer) for path, answer in common.items()), *self.routes()])
        app.on_startup.append(self._start)
        app.on_cleanup.append(self._end)
        return app

    async def _start(self, _: web.Application) -> None:
        self._over = await self.store.over()
        for task in self.tasks.values():
            if task.document.id in self._over:
                self.spawn(self._follow(task))
        self.tasks = {number: task for number, task in self.tasks.items() if number not in self._over}
        self.meter.tasks = len(self.tasks)
        for task in list(self.tasks.values()):
            await self._begun(task)
        self.meter.event("ready", tasks=len(self.tasks))

    async def again(self) -> None:
        for task in self.load():
            await self._begun(task)

    async def _begun(self, task: Task) -> None:
        """Start or continue a task; a fault in one task does not affect other tasks."""
        await self._named(self.begin(task))
        self.spawn(self._try_links(task))
        self.spawn(self._forget(task))
        self.spawn(self._follow(task))

    async def _follow(self, task: Task) -> None:
        """Take part in the only next iteration, if any: its document is derived from this one and its publication."""
        document = task.document
        if document.round is None or document.round.number == document.round.rounds:
            return
        self._looking = self._looking or self.session()
        last = document.deadline + FORGET * document.patience + self.settings.keep
        while (result := await self.published(self._looking, document)) is None:
            if time.time() > last:
                return
            await asyncio.sleep(_LOOK)
        following = after(document, result)
        if following is not None and following.id in self._over:
            await self._follow(Task(following, check_task(following)))
        elif following is not None:
            await self._begun(self._take_part(following))

    async def published(self, session: ClientSession, document: TaskDocument) -> dict[str, Any] | None:
        """Return the publication of a task; None if it does not exist yet, or cannot be fetched."""
        url = f"{document.result.url.rstrip('/')}/tasks/{document.id.hex()}/result"
        content = await self.get(session, url, most=_RESULT)
        try:
            result = None if content is None else json.loads(content)
        except ValueError:
            return None
        return result if isinstance(result, dict) else None

    async def get(self, session: ClientSession, url: str, *, most: int) -> bytes | None:
        """Return another service's answer with status 200 and at most `most` bytes; None for any other answer."""
        try:
            async with session.get(url, timeout=ClientTimeout(total=_SLOW), allow_redirects=False) as answer:
                self.reached(url)
                content = b""
                async for chunk in answer.content.iter_chunked(1 << 16):
                    content += chunk
                    if len(content) > most:
                        return None
                return content if answer.status == 200 else None
        except (ClientError, TimeoutError, OSError) as error:
            self.unreached(url, error)
            return None

    async def _forget(self, task: Task) -> None:
        """Delete the data of a task some time after its end, and refuse requests for it from then on."""
        document = task.document
        await until(document.deadline + FORGET * document.patience + self.settings.keep)
        self._over.add(document.id)
        self.tasks.pop(document.id, None)
        self.meter.tasks = len(self.tasks)
        self.drop(document.id)
        await self.store.forget(document.id, but=self.stays)
        self.meter.event("forgotten", id=document.id.hex())

    async def _end(self, _: web.Application) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for session in self._sessions:
            await session.close()
        await self.end()
        self.store.close()
        self.meter.event("stopped")

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background; the log names only the type of an unexpected error."""
        task = asyncio.create_task(self._named(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _named(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except HushuffleError as error:
            self.meter.event("failed", reason=str(error))
        except Exception as error:  # noqa: BLE001 - what it says may quote data
            self.meter.event("unexpected error", kind=type(error).__name__)

    def unreached(self, url: str, error: BaseException) -> None:
        """Record that a connection to another service fails, and why; log each cause once."""
        where, why = _origin(url), why_not(error)
        self.meter.count("unreached", why)
        if self.troubles.get(where) != why:
            self.troubles[where] = why
            self.meter.event("link fails", to=where, cause=why)

    def reached(self, url: str) -> None:
        if self.troubles.pop(_origin(url), None) is not None:
            self.meter.event("link works", to=_origin(url))

    def onwards(self, document: TaskDocument) -> Sequence[str]:
        """Return the URLs of the services to which this service sends messages in a task."""
        return ()

    async def _try_links(self, task: Task) -> None:
        """Check the links to the services to which this service sends, until the task ends."""
        document = task.document
        last, urls = document.deadline + FORGET * document.patience, self.onwards(document)
        while urls and time.time() < last:
            self._trying = self._trying or self.session()
            for url in urls:
                await self.get(self._trying, url.rstrip("/") + "/health", most=_RESULT)
            await asyncio.sleep(_AGAIN[any(_origin(url) in self.troubles for url in urls)])

    async def insist(self, task: Task, work: Callable[[], Awaitable[None]], *, longer: float = 0.0) -> None:
        """Repeat a write until the disk accepts it, or until `longer` seconds after the task; log each cause once."""
        last, reason = task.document.deadline + FORGET * task.document.patience + longer, ""
        while True:
            try:
                return await work()
            except DataError as error:
                if time.time() > last:
                    raise
                if reason != (reason := str(error)):
                    until_then = utc_text(dt.datetime.fromtimestamp(last, dt.UTC))
                    self.meter.event("failed", reason=reason, again_until=until_then)
                await asyncio.sleep(_PAUSE[1] / 4)

    @web.middleware
    async def _answered(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer a refused or failed request with one word, and count it."""
        try:
            response = await handler(request)
        except Refused as refused:
            status, reason = refused.status, refused.reason
        except web.HTTPException as error:
            status, reason = error.status, "no such place" if error.status == 404 else "malformed"
        except TimeoutError:
            status, reason = 408, "slow"
        except HushuffleError as error:
            self.meter.event("failed", reason=str(error))
            status, reason = 503, "busy"
        except Exception as error:  # noqa: BLE001 - what it says may quote data
            self.meter.event("unexpected error", kind=type(error).__name__)
            status, reason = 500, "failed"
        else:
            self.meter.count("requests", "answered")
            return response
        self.meter.count("requests", "refused")
        self.meter.count("refused", reason)
        headers = {"Connection": "close"} if status == 408 else None
        return web.Response(status=status, text=reason + "\n", headers=headers)

    async def _health(self, _: web.Request) -> web.Response:
        about: dict[str, Any] = {"service": self.name, "role": self.role, "state": "ready", "tasks": len(self.tasks)}
        if self.troubles:
            about |= {"state": "trouble", "troubles": dict(sorted(self.troubles.items()))}
        return web.json_response(about)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(text=self.meter.text(), content_type="text/plain", charset="utf-8")

    async def _document(self, request: web.Request) -> web.Response:
        return web.Response(body=self.task(request).document.content, content_type="application/json")

    def task(self, request: web.Request) -> Task:
        return self.known(request.match_info["task"])

    def known(self, number: str) -> Task:
        """Return the task with this id, in hexadecimal digits; refuse an unknown id."""
        with suppress(ValueError):
            if (task := self.tasks.get(bytes.fromhex(number))) is not None:
                return task
            if bytes.fromhex(number) in self._over:
                raise Refused(410, "over")
        raise Refused(404, "no such task")

    async def came(self, request: web.Request) -> web.Response:
        """Report to the first scrambler which batches of a step have arrived, so that no batch is sent twice."""
        task, step, nonce = self.task(request), int(request.match_info["step"][:9]), request.match_info["nonce"]
        if not 1 <= step <= len(task.document.steps) or len(nonce) != _NONCE:
            raise Refused(404, "no such step")
        row = (task.document.id, step)
        query = "SELECT coalesce(max(batch), 0), coalesce(min(batch), 1) = 0 FROM came WHERE task = ? AND step = ?"
        highest, closed = await self.store.do(lambda db: db.execute(query, row).fetchone())
        statement = batches.Came(
            task=task.document.id.hex(), step=step, nonce=nonce, highest=highest, closed=bool(closed)
        )
        return web.json_response(statement.signed(self.secret.sign).model_dump())

    async def content(self, request: web.Request, sizes: Container[int]) -> bytes:
        """Return the content of a request; refuse a size that is not in `sizes`, and content that is too slow."""
        async with asyncio.timeout(_SLOW + self._length(request, sizes) / _SLOWEST):
            return await request.read()

    def _length(self, request: web.Request, sizes: Container[int]) -> int:
        length = request.content_length
        if "Content-Encoding" in request.headers:
            raise Refused(415, "encoded")
        if length is None or length not in sizes:
            raise Refused(413, "wrong size")
        return length

    async def batch(
        self, request: web.Request, document: TaskDocument, senders: Sequence[Place], most: int, word: str
    ) -> tuple[batches.Head, bytes]:
        """Return head and content of a request whose head one of the senders has signed; `most` bytes may follow it.

        The signature of the head is checked before the rest is read, so no other party can make this service store more
        than a head. `word`: the reason that a refusal states.
        """
        if time.time() > document.deadline + FORGET * document.patience:
            raise Refused(410, "over")
        length = self._length(request, range(batches.AROUND + most + 1))
        try:
            async with asyncio.timeout(_SLOW + length / _SLOWEST):
                start = await request.content.readexactly(batches.FIRST)
                start += await request.content.readexactly(batches.rest_of_head(start))
                head = batches.signed_head(start, document, senders=senders, receiver=self.name)
                return head, start + await request.content.read()
        except DataError as error:
            self.meter.event("refused", reason=str(error))
        except asyncio.IncompleteReadError:
            pass
        raise Refused(400, word)

    async def messages(
        self, request: web.Request, document: TaskDocument, *, hops: int, size: int, step: int | None = None
    ) -> tuple[batches.Head, bytes, list[bytes]]:
        """Return head, content and messages of a batch that has passed `hops` scramblers, for `step` or for any step.

        `size`: bytes of each message.
        """
        most = max(step.batch + hops * step.dummies for step in document.steps) * size
        head, body = await self.batch(request, document, [document.chain[hops - 1]], most, "not a batch")
        try:
            messages = batches.messages_of(body, head, size=size)
            if step not in (None, head.step):
                raise Refused(400, "another step")
            if not head.closed:
                batches.check_trail(document, head, hops=hops)
        except DataError as error:
            self.meter.event("refused", reason=str(error))
            raise Refused(400, "not a batch") from None
        return head, body, messages

    async def answer_before(self, document: TaskDocument, head: batches.Head, body: bytes) -> bytes | None:
        """Return the stored answer to a batch that arrived before; refuse another batch with the same number."""
        query = "SELECT digest, answer FROM came WHERE task = ? AND step = ? AND batch = ?"
        row = (document.id, head.step, head.place)
        stored = await self.store.do(lambda db: db.execute(query, row).fetchone())
        if stored is None:
            return None
        if stored[0] != hashlib.sha256(body).digest():
            raise Refused(409, "another batch")
        self.meter.count("repeated")
        return bytes(stored[1])

    def session(self, *, most: int = 100) -> ClientSession:
        """Return a session for connections to other services; its connections stay open."""
        session = ClientSession(
            connector=TCPConnector(limit=most, keepalive_timeout=30.0),
            timeout=ClientTimeout(total=None, sock_connect=10.0, sock_read=60.0),
            headers={"User-Agent": "hushuffle"},
            auto_decompress=False,
            raise_for_status=False,
        )
        self._sessions.append(session)
        return session

    async def deliver(
        self, session: ClientSession, receiver: Place, path: str, body: bytes, task: Task
    ) -> bytes | None:
        """Send a body until its receiver has signed that it has stored the body; every try sends the same bytes.

        Return the receiver's answer, which starts with its signature; None if the receiver refuses, or if time is over.
        """
        document, pause = task.document, _PAUSE[0]
        last = document.deadline + FORGET * document.patience
        seconds = document.patience + _EACH * len(body) / document.at(len(document.chain))
        while True:
            try:
                async with session.post(
                    receiver.url.rstrip("/") + path,
                    data=body,
                    timeout=ClientTimeout(total=seconds),
                    allow_redirects=False,
                ) as answer:
                    self.reached(receiver.url)
                    content = b""
                    async for chunk in answer.content.iter_chunked(_ANSWER):
                        content = (content + chunk)[:_ANSWER]
                    if answer.status == 200 and batches.receipted(body, content, receiver):
                        self.meter.count("batches", "sent")
                        return content
                    if 400 <= answer.status < 500 and answer.status not in {404, 408, 425, 429}:
                        reason = content[:1024].decode("ascii", "replace").strip()
                        self.meter.event("batch refused", by=receiver.name, reason=reason)
                        return None
            except (ClientError, TimeoutError, OSError) as error:
                self.unreached(receiver.url, error)
            if time.time() > last:
                self.meter.event("not delivered", to=receiver.name)
                return None
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSE[1])


def _origin(url: str) -> str:
    """Return scheme, host and port of a URL."""
    return "/".join(url.split("/")[:3])


async def until(moment: float) -> None:
    """Wait until a moment, in seconds since 1970."""
    await asyncio.sleep(max(moment - time.time(), 0.0))
