"""Scramblers of a chain: the first accepts phones' messages; each scrambler opens a seal, adds dummies and shuffles."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from aiohttp import ClientSession, web

from hushuffle.errors import DataError
from hushuffle.randomness import secure
from hushuffle_network import batches
from hushuffle_network.meter import Meter
from hushuffle_network.oblivious_http import decode_request, encode_response
from hushuffle_network.relay import REQUEST, RESPONSE
from hushuffle_network.service import CAME, FORGET, Refused, Service, Task, until
from hushuffle_network.settings import ServiceSettings
from hushuffle_network.store import spend
from hushuffle_network.task import Place, TaskDocument
from hushuffle_network.tokens import Verifier, token_shown

_WORD: Final = 16
"""Length in bytes of every answer to a phone."""
_SAID, _PAUSE = 1024, 0.25
"""Largest number of bytes of a receiver's statement; seconds until the receiver is asked again."""
_LEAVES: Final = "SELECT body FROM outgoing WHERE task = ? AND step = ? AND batch = ? AND receiver = ?"
_LEFT: Final = "DELETE FROM outgoing WHERE task = ? AND step = ? AND batch = ? AND receiver = ?"
_TAKEN, _AGAIN, _CONFLICT, _USED = "taken", "again", "conflict", "ticket used"


@dataclass(kw_only=True)
class Gathering:
    """One step of a task at the gateway: waiting messages, and the batches and sources released so far."""

    waiting: int = 0
    batches: int = 0
    sources: int = 0
    ending: bool = False
    """Whether further messages of phones are refused."""
    closed: bool = False
    """Whether the step has no more batches: the disk has recorded this, or the task's time is over."""
    older: bool = False
    """Whether receivers have more batches than this scrambler has recorded: its state is older, so nothing is sent."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all receivers have reported their batches; nothing is sent before."""
    releasing: asyncio.Lock = field(default_factory=asyncio.Lock)


class Scrambler(Service):
    """A scrambler; its place in the chain may differ between tasks.

    The first scrambler accepts one message for each ticket. It releases a batch when `batch` messages have arrived, and
    enough further messages that any remainder can be divided. When all expected messages have arrived, or at the
    deadline, it divides the waiting messages into batches of `min_batch` to `batch`, and deletes a remainder that is
    too small. A batch is released once: it is written to the disk before it is sent, and a restarted scrambler sends
    the same bytes. A later scrambler receives whole batches, only from the scrambler before it.

    A message that does not open, or that arrived before, is replaced by a dummy, so its sender cannot stop a batch.
    """

    role: ClassVar[str] = "scrambler"

    def __init__(self, settings: ServiceSettings, folder: Path, *, meter: Meter) -> None:
        self._onions: dict[tuple[bytes, int], batches.Onions] = {}
        self._gatherings: dict[tuple[bytes, int], Gathering] = {}
        self._passing: dict[tuple[bytes, int], asyncio.Lock] = {}
        self._tickets: dict[tuple[bytes, int], Verifier] = {}
        super().__init__(settings, folder, meter=meter)
        self._next: ClientSession | None = None

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/ohttp-keys", self._gateway_keys),
            web.post("/gateway", self._gateway),
            web.post("/tasks/{task}/batches", self._batch),
            web.get(CAME, self.came),
        ]

    def _hop(self, document: TaskDocument) -> int:
        return [one.name for one in document.chain].index(self.name)

    def onwards(self, document: TaskDocument) -> Sequence[str]:
        if self._hop(document) + 1 < len(document.chain):
            return (document.chain[self._hop(document) + 1].url,)
        return [one.url for step in document.steps for one in step.targets]

    async def begin(self, task: Task) -> None:
        document = task.document
        self._next = self._next or self.session()
        for number in range(1, len(document.steps) + 1):
            self._onions[document.id, number] = batches.Onions(document, number)
            if self._hop(document) == 0:
                key = (document.id, number)
                self._tickets[key] = Verifier(document.ticket_key(number))
                self._gatherings[key] = await self.store.do(lambda db, key=key: _restored(db, key))  # type: ignore[misc]
                self.spawn(self._compare(task, number))
                self.spawn(self._gather(task, number))
        outgoing = "SELECT step, batch, receiver FROM outgoing WHERE task = ?"
        for step, batch, receiver in await self.store.do(lambda db: db.execute(outgoing, (document.id,)).fetchall()):
            self.spawn(self._send(task, step, batch, receiver))

    def drop(self, task: bytes) -> None:
        held: tuple[dict[tuple[bytes, int], Any], ...]
        held = (self._onions, self._gatherings, self._passing, self._tickets)
        for table in held:
            for key in [key for key in table if key[0] == task]:
                del table[key]

    # Messages from phones.

    async def _gateway_keys(self, _: web.Request) -> web.Response:
        config = self.secret.gateway.config
        return web.Response(body=len(config).to_bytes(2) + config, content_type="application/ohttp-keys")

    async def _gateway(self, request: web.Request) -> web.Response:
        if request.content_type != REQUEST:
            raise Refused(415, "wrong type")
        body = await self.content(request, {one.document.sealed_request for one in self.tasks.values()})
        try:
            inside, seal_response = self.secret.gateway.open(body)
            inner = decode_request(inside)
        except DataError:
            raise Refused(400, "not for this gateway") from None
        try:
            shown = [value for name, value in inner.headers if name == "authorization"]
            status, word = 200, await self._take(inner.method, inner.path, inner.content, token_shown(shown))
        except Refused as refused:
            status, word = refused.status, refused.reason
            self.meter.count("refused", word)
        response = encode_response(status, [], word.encode().ljust(_WORD)[:_WORD])
        return web.Response(body=seal_response(response), content_type=RESPONSE)

    def _step_of(self, method: str, path: str) -> tuple[TaskDocument, int]:
        """Return the task and step of a message; refuse a message before the task's start or after its deadline."""
        parts = path.rsplit("/tasks/", 1)[-1].split("/")
        if method != "POST" or len(parts) != 3 or parts[1] != "steps" or not parts[2].isdecimal():
            raise Refused(404, "no such place")
        document = self.known(parts[0]).document
        number = int(parts[2])
        gathering = self._gatherings.get((document.id, number))
        if gathering is None:
            raise Refused(404, "no such step")
        if gathering.older:
            raise Refused(503, "out of service")
        if not document.starts <= time.time() <= document.deadline or gathering.ending:
            raise Refused(410, "too late")
        return document, number

    async def _take(self, method: str, path: str, message: bytes, ticket: bytes) -> str:
        """Accept a message of a phone, and return the outcome as one word; a repeated message changes nothing."""
        document, number = self._step_of(method, path)
        try:
            nonce = self._tickets[document.id, number].nonce(ticket, document.ticket_challenge(number))
        except DataError:
            raise Refused(401, "no valid ticket") from None
        onions = self._onions[document.id, number]
        opened = onions.opened(message, self.secret.seal, hop=0) if len(message) == document.message else None
        if opened is None:
            raise Refused(400, "unreadable")
        once, digest = message[: batches.ONCE], hashlib.sha256(message).digest()

        def keep(db: sqlite3.Connection) -> str:
            row = (document.id, number, once)
            query = "SELECT digest FROM taken WHERE task = ? AND step = ? AND once = ?"
            if (stored := db.execute(query, row).fetchone()) is not None:
                return _AGAIN if stored == (digest,) else _CONFLICT
            if not spend(db, document.id, nonce):
                return _USED
            db.execute("INSERT INTO taken VALUES (?, ?, ?, ?, 0)", (*row, digest))
            db.execute("INSERT INTO message VALUES (NULL, ?, ?, ?)", (document.id, number, opened))
            return _TAKEN

        outcome = await self.store.do(keep)
        if outcome in {_CONFLICT, _USED}:
            raise Refused(409, outcome)
        if outcome == _AGAIN:
            self.meter.count("repeated")
            return _TAKEN
        self.meter.count("messages")
        gathering = self._gatherings[document.id, number]
        gathering.waiting += 1
        step = onions.step
        full = gathering.waiting >= step.batch + batches.held_back(step.batch, step.min_batch)
        planned = gathering.sources + gathering.waiting >= step.sources
        if (full or planned) and not gathering.releasing.locked():
            task = self.tasks[document.id]
            self.spawn(self.insist(task, lambda: self._release_full(task, number)))
        return _TAKEN

    async def _compare(self, task: Task, number: int) -> None:
        """Ask all receivers which batches of a step they have, before any batch is sent.

        With an older state, another batch with the same number, some of the same people and other dummies would leave.
        """
        document, gathering = task.document, self._gatherings[task.document.id, number]
        for receiver in self._receivers(document, number):
            came = await self._came_to(task, number, receiver)
            if came is None:
                gathering.closed = True
                break
            if came.highest > gathering.batches or (came.closed and not gathering.closed):
                gathering.older = True
                has = f"{receiver.name} has batch {came.highest:,} of step {number:,}" + ", the last" * came.closed
                why = (
                    f"{has}, but this scrambler has recorded {gathering.batches:,} batches: its state is too old. "
                    "Nothing is sent for this step. Restore its newest state, never an older state, and start it again."
                )
                self.troubles[f"state of task {document.id.hex()}, step {number}"] = why
                self.meter.count("refused", "older state")
                self.meter.event("older state", step=number, to=receiver.name, reason=why)
                break
        gathering.asked.set()

    async def _came_to(self, task: Task, number: int, receiver: Place) -> batches.Came | None:
        """Return a receiver's signed state of a step; None if the receiver does not answer before the task ends."""
        document, nonce = task.document, secrets.token_hex(16)
        path = CAME.partition("{")[0] + f"{document.id.hex()}/steps/{number}/came/{nonce}"
        assert self._next is not None
        while time.time() <= document.deadline + FORGET * document.patience:
            answer = await self.get(self._next, receiver.url.rstrip("/") + path, most=_SAID)
            with suppress(ValueError):
                if answer is not None and (came := batches.Came.model_validate_json(answer)).by(
                    receiver, document.id, number, nonce
                ):
                    return came
            await asyncio.sleep(_PAUSE)
        return None

    async def _gather(self, task: Task, number: int) -> None:
        """Release the remaining messages at the deadline; if the disk is full, retry until the task ends."""
        if self._gatherings[task.document.id, number].closed:
            return
        self.spawn(self.insist(task, lambda: self._release_full(task, number)))
        await until(task.document.deadline)
        await self.insist(task, lambda: self._release_full(task, number, last=True))

    async def _release_full(self, task: Task, number: int, *, last: bool = False) -> None:
        """Release all full batches; at the deadline, or when all messages have arrived, also release the remainder."""
        document, step = task.document, task.document.step(number)
        gathering = self._gatherings[document.id, number]
        async with gathering.releasing:
            await gathering.asked.wait()
            if gathering.closed or gathering.older:
                return
            most = step.batch + batches.held_back(step.batch, step.min_batch)
            while gathering.waiting >= most and gathering.sources + gathering.waiting < step.sources:
                await self._release(task, number, step.batch)
            if last or gathering.ending or gathering.sources + gathering.waiting >= step.sources:
                gathering.ending = True
                await self.store.do(lambda _: None)  # all messages accepted before are counted now
                for size in batches.last_sizes(gathering.waiting, step.batch, step.min_batch):
                    await self._release(task, number, size)
                await self._close(task, number, gathering)
                gathering.closed = True

    async def _release(self, task: Task, number: int, count: int) -> None:
        """Release the `count` messages that have waited longest."""
        document, gathering = task.document, self._gatherings[task.document.id, number]
        query = "SELECT number, body FROM message WHERE task = ? AND step = ? ORDER BY number LIMIT ?"
        rows = await self.store.do(lambda db: db.execute(query, (document.id, number, count)).fetchall())
        batch, messages = gathering.batches + 1, [body for _, body in rows]
        bodies = await asyncio.to_thread(self._shuffled, document, number, batch, messages, (), len(rows))

        def keep(db: sqlite3.Connection) -> None:
            db.execute("INSERT INTO released VALUES (?, ?, ?, ?)", (document.id, number, batch, len(rows)))
            db.executemany("DELETE FROM message WHERE number = ?", [(one,) for one, _ in rows])
            _put(db, document.id, number, batch, bodies)

        await self.store.do(keep)
        gathering.waiting -= len(rows)
        gathering.sources += len(rows)
        gathering.batches = batch
        self._released(task, number, batch, list(bodies))

    async def _close(self, task: Task, number: int, gathering: Gathering) -> None:
        """Record that the step has no more batches, and delete a remainder that is too small for a batch."""
        document = task.document
        bodies = self._closing(document, number, gathering.batches)

        def keep(db: sqlite3.Connection) -> int:
            db.execute("INSERT INTO released VALUES (?, ?, 0, 0)", (document.id, number))
            _put(db, document.id, number, 0, bodies)
            return db.execute("DELETE FROM message WHERE task = ? AND step = ?", (document.id, number)).rowcount

        left = await self.store.do(keep)
        if left:
            self.meter.count("batches", "given_up")
            least = document.step(number).min_batch
            self.meter.event("gave up", step=number, sources=left, least=least)
        gathering.waiting = 0
        for receiver in bodies:
            self.spawn(self._send(task, number, 0, receiver))

    # Batches from the scrambler before this one.

    async def _batch(self, request: web.Request) -> web.Response:
        task = self.task(request)
        document = task.document
        hop = self._hop(document)
        if hop == 0:
            raise Refused(403, "not from here")
        head, body, messages = await self.messages(request, document, hops=hop, size=document.at(hop))
        # Batches of a step are opened one after the other: each is recorded before the next one is opened.
        async with self._passing.setdefault((document.id, head.step), asyncio.Lock()):
            answer = await self.answer_before(document, head, body)
            if answer is None:
                answer = await self._pass_on(task, hop, head, messages, body)
        return web.Response(body=answer, content_type="application/octet-stream")

    async def _pass_on(self, task: Task, hop: int, head: batches.Head, messages: list[bytes], body: bytes) -> bytes:
        document, place, last = task.document, head.place, head.trail[-1] if head.trail else None
        if not head.closed and (last is None or last.sent != len(messages)):
            self.meter.event("refused", reason="a batch has other messages than its sender declares")
            raise Refused(400, "not a batch")
        answer, digest = batches.receipt(body, self.secret.sign), hashlib.sha256(body).digest()
        onces = [message[: batches.ONCE] for message in messages]
        query, row = "SELECT 1 FROM taken WHERE task = ? AND step = ? AND once = ?", (document.id, head.step)
        seen = await self.store.do(lambda db: {once for once in onces if db.execute(query, (*row, once)).fetchone()})
        if head.closed:
            bodies = self._closing(document, head.step, head.batch)
        else:
            bodies = await asyncio.to_thread(self._reshuffled, document, hop, head, messages, seen)

        def keep(db: sqlite3.Connection) -> bool:
            row = (document.id, head.step, place, digest, answer)
            if not db.execute("INSERT OR IGNORE INTO came VALUES (?, ?, ?, ?, ?)", row).rowcount:
                return False  # two requests with the same batch ran at the same time
            rows = [(document.id, head.step, once, digest, place) for once in onces]
            db.executemany("INSERT OR IGNORE INTO taken VALUES (?, ?, ?, ?, ?)", rows)
            _put(db, document.id, head.step, place, bodies)
            return True

        if not await self.store.do(keep):
            raise Refused(425, "being worked on")
        self.meter.count("batches", "received", number=not head.closed)
        self.meter.count("messages", number=len(messages))
        self._released(task, head.step, place, list(bodies))
        return answer

    def _reshuffled(
        self, document: TaskDocument, hop: int, head: batches.Head, messages: Sequence[bytes], seen: set[bytes]
    ) -> dict[str, bytes]:
        """Open the messages of a batch, replace invalid or repeated messages by dummies, add dummies, and shuffle."""
        onions, unwrapped, wrong = self._onions[document.id, head.step], list[bytes](), 0
        for message in messages:
            opened = None
            if message[: batches.ONCE] not in seen:
                opened = onions.opened(message, self.secret.seal, hop=hop)
            seen.add(message[: batches.ONCE])
            wrong += opened is None
            if opened is not None:
                unwrapped.append(opened)
        unwrapped += onions.dummies(wrong, hop=hop, rng=secure())
        if wrong:
            self.meter.count("refused", "replaced", wrong)
            self.meter.event("replaced", step=head.step, batch=head.batch, messages=wrong)
        return self._shuffled(document, head.step, head.batch, unwrapped, head.trail, head.sources)

    # Outgoing batches.

    def _shuffled(
        self,
        document: TaskDocument,
        number: int,
        batch: int,
        messages: list[bytes],
        trail: tuple[batches.Link, ...],
        sources: int,
    ) -> dict[str, bytes]:
        """Add dummies to the messages, shuffle, and return the request body for each receiver."""
        onions, hop, rng, sign = self._onions[document.id, number], self._hop(document), secure(), self.secret.sign
        all_of_them = onions.completed(messages, hop=hop, rng=rng)
        mixed = [all_of_them[place] for place in rng.permutation(len(all_of_them)).tolist()]
        link = batches.Link.signed(sign, document.id, number, batch, self.name, len(messages), sources, len(mixed))
        self.meter.count("dummies", number=onions.step.dummies)
        parts = [mixed] if hop + 1 < len(document.chain) else batches.by_target(mixed, len(onions.step.targets))
        bodies, trail = dict[str, bytes](), (*trail, link)
        for receiver, part in zip(self._receivers(document, number), parts, strict=True):
            head = batches.head_of(document, number, batch, self.name, receiver.name, part, trail=trail)
            bodies[receiver.name] = batches.pack(head, part, sign)
        return bodies

    def _closing(self, document: TaskDocument, number: int, last: int) -> dict[str, bytes]:
        return {
            receiver.name: batches.pack(
                batches.head_of(document, number, last, self.name, receiver.name, closed=True), [], self.secret.sign
            )
            for receiver in self._receivers(document, number)
        }

    def _receivers(self, document: TaskDocument, number: int) -> Sequence[Place]:
        hop = self._hop(document)
        return (document.chain[hop + 1],) if hop + 1 < len(document.chain) else document.step(number).targets

    def _released(self, task: Task, number: int, batch: int, receivers: list[str]) -> None:
        if batch:
            self.meter.count("batches", "released")
            self.meter.event("released", step=number, batch=batch)
        for receiver in receivers:
            self.spawn(self._send(task, number, batch, receiver))

    async def _send(self, task: Task, number: int, batch: int, receiver: str) -> None:
        """Send a batch until its receiver confirms that it has stored it, and delete the batch here."""
        document, row = task.document, (task.document.id, number, batch, receiver)
        stored = await self.store.do(lambda db: db.execute(_LEAVES, row).fetchone())
        place = next(one for one in self._receivers(document, number) if one.name == receiver)
        assert self._next is not None
        path = f"/tasks/{document.id.hex()}/batches"
        if stored is not None:
            await self.deliver(self._next, place, path, stored[0], task)
            await self.store.do(lambda db: db.execute(_LEFT, row))


def _restored(db: sqlite3.Connection, key: tuple[bytes, int]) -> Gathering:
    """Return the state of a step from the disk, as it was before the service stopped."""
    (waiting,) = db.execute("SELECT count(*) FROM message WHERE task = ? AND step = ?", key).fetchone()
    rows = db.execute("SELECT batch, sources FROM released WHERE task = ? AND step = ?", key).fetchall()
    sources, newest = sum(one for _, one in rows), max((batch for batch, _ in rows), default=0)
    closed = any(batch == 0 for batch, _ in rows)
    return Gathering(waiting=waiting, batches=newest, sources=sources, ending=closed, closed=closed)


def _put(db: sqlite3.Connection, task: bytes, step: int, batch: int, bodies: dict[str, bytes]) -> None:
    rows = [(task, step, batch, receiver, body) for receiver, body in bodies.items()]
    db.executemany("INSERT INTO outgoing VALUES (?, ?, ?, ?, ?)", rows)
