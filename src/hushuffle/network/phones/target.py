"""Targets: open what is sealed for them, take each token once, merge the records, tell the result."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from aiohttp import ClientSession, web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hushuffle.errors import DataError
from hushuffle.network.phones.batches import Head, check_trail, head_of, messages_of, pack, receipt
from hushuffle.network.phones.formats import PhoneError, token_challenge, token_input
from hushuffle.network.phones.meter import Meter
from hushuffle.network.phones.onions import ONCE, Onions, is_token
from hushuffle.network.phones.parts import Counted, sealed_part
from hushuffle.network.phones.service import Refused, Service, Task, until
from hushuffle.network.phones.settings import ServiceSettings
from hushuffle.network.phones.store import spend
from hushuffle.network.phones.task import TaskDocument
from hushuffle.network.phones.tokens import Verifier
from hushuffle.queries.query import Floats
from hushuffle.randomness import secure

ENTRY: Final = 32
"""Bytes of an entry in the list of what came."""
_SLACK: Final = 2
"""How many times `patience` after the deadline a target waits for batches."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What was in a message: the nonce of its token if it is valid, its record, and whether that would count."""

    nonce: bytes | None
    record: bytes
    counts: bool


class Inbox:
    """One target of one task: opens and checks messages."""

    def __init__(self, task: Task, name: str) -> None:
        document = task.document
        self.task, self.name, self.query = task, name, task.promise.task
        self.number, self.place = document.target(name)
        self.onions = Onions(document, self.number)
        self.challenge = token_challenge(document.issuer.name, document.context(self.number, name), "")
        self._verifier = Verifier(document.token_key(self.number))
        self._sample = self.query.sample(self.number, self.place)

    @cached_property
    def _spare(self) -> bytes:
        """A token that is checked, in vain, where a message has none: it takes as long."""
        spki = self.task.document.token_key(self.number)
        return token_input(spki, self.challenge, bytes(32)) + b"\0" * 255 + b"\2"

    def opened(self, messages: Sequence[bytes], service: Service) -> list[Opened]:
        """Return what is in the messages; a dummy takes as long as any other."""
        found, counted = [], dict[str, int]()
        for message in messages:
            one, reason = self._opened(message, service)
            found.append(one)
            if reason:
                counted[reason] = counted.get(reason, 0) + 1
        for reason, number in counted.items():
            service.meter.count("refused", reason, number)
        return found

    def _opened(self, message: bytes, service: Service) -> tuple[Opened, str]:
        reason = ""
        try:
            token, content = self.onions.taken(message, service.secret.seal, target=self.place)
        except DataError:
            token, content, reason = bytes(len(self._spare)), None, "unreadable"
        nonce = None
        try:
            nonce = self._verifier.nonce(token if is_token(token) else self._spare, self.challenge)
        except (DataError, PhoneError):
            if is_token(token):
                reason = "no valid token"
        record = self._sample if content is None else content
        counts = content is not None and nonce is not None
        try:
            self.query.check(self.number, self.place, record)
        except DataError:
            record, counts, reason = self._sample, False, "malformed"
        return Opened(nonce=nonce, record=record, counts=counts), reason


class Target(Service):
    """A target of one step of each task.

    Of a batch it publishes one entry of 32 bytes for each message: the digest of its token's nonce, random bytes where
    there is no valid token; sorted. Who has sent a message knows its nonce, and sees whether it came.
    """

    role: ClassVar[str] = "target"

    def __init__(self, settings: ServiceSettings, folder: Path, *, meter: Meter) -> None:
        self._inboxes: dict[bytes, Inbox] = {}
        self._all: dict[bytes, asyncio.Event] = {}
        self._session: ClientSession | None = None
        super().__init__(settings, folder, meter=meter)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/tasks/{task}/batches", self._batch),
            web.get("/tasks/{task}/passage", self._batches),
            web.get("/tasks/{task}/passage/{batch:[0-9]+}", self._passage),
        ]

    async def begin(self, task: Task) -> None:
        self._session = self._session or self.session()
        self._inboxes[task.document.id] = Inbox(task, self.name)
        self._all[task.document.id] = asyncio.Event()
        await self._look(task.document)
        self.spawn(self._tell(task))

    def drop(self, task: bytes) -> None:
        self._inboxes.pop(task, None)
        self._all.pop(task, None)

    async def _batch(self, request: web.Request) -> web.Response:
        document = self.task(request).document
        inbox, hops = self._inboxes[document.id], len(document.chain)
        most = max(step.batch + hops * step.dummies for step in document.steps) * document.inner
        head, body = await self.batch(request, document, [document.chain[-1]], most, "not a batch")
        try:
            messages = messages_of(body, head, size=document.inner)
            if head.step != inbox.number:
                raise Refused(400, "another step")
            if not head.closed:
                check_trail(document, head, hops=hops)
                _check_number(head, messages)
        except DataError as error:
            self.meter.event("refused", reason=str(error))
            raise Refused(400, "not a batch") from None
        place, digest = 0 if head.closed else head.batch, hashlib.sha256(body).digest()
        asked = "SELECT digest, answer FROM came WHERE task = ? AND step = ? AND batch = ?"
        row = (document.id, head.step, place)
        known = await self.store.do(lambda db: db.execute(asked, row).fetchone())
        if known is not None and known[0] != digest:
            raise Refused(409, "another batch")
        if known is None:
            opened = await asyncio.to_thread(inbox.opened, messages, self)
            await self.store.do(lambda db: self._keep(db, inbox, head, digest, receipt(body, self.secret.sign), opened))
            self.meter.count("batches", "received", number=not head.closed)
            self.meter.count("messages", number=len(messages))
            self.meter.event("received", step=head.step, batch=place, messages=len(messages))
            await self._look(document)
        else:
            self.meter.count("repeated")
        return web.Response(body=receipt(body, self.secret.sign), content_type="application/octet-stream")

    def _keep(
        self, db: sqlite3.Connection, inbox: Inbox, head: Head, digest: bytes, answer: bytes, opened: list[Opened]
    ) -> None:
        """Spend tokens, merge records, make the list of what came: all or nothing."""
        task, step = inbox.task.document.id, inbox.number
        place = 0 if head.closed else head.batch
        if db.execute("SELECT 1 FROM published WHERE task = ?", (task,)).fetchone():
            raise Refused(410, "over")
        row = (task, step, place, digest, answer)
        if not db.execute("INSERT OR IGNORE INTO came VALUES (?, ?, ?, ?, ?)", row).rowcount:
            raise Refused(425, "being worked on")
        numbers, counts = _merged(db, inbox)
        if head.closed:
            counts["closed"] = head.batch
        else:
            used, entries, valid = [], [], 0
            for one in opened:
                # What has no token is written down as well, under a number of its own: it takes as long.
                spent = spend(db, task, secrets.token_bytes(ENTRY) if one.nonce is None else one.nonce)
                fresh = one.nonce is not None and spent
                if one.nonce is not None and not fresh:
                    self.meter.count("refused", "token used")
                valid += fresh
                used.append(one.counts and fresh)
                entries.append(entry_of(one.nonce) if fresh and one.nonce is not None else secrets.token_bytes(ENTRY))
            numbers = inbox.query.merge(step, numbers, [one.record for one in opened], used)
            counted = Counted(batch=place, messages=len(opened), valid=valid, trail=head.trail)
            counts["batches"].append(counted.model_dump(mode="json"))
            db.execute("INSERT INTO passage VALUES (?, ?, ?, ?)", (task, step, place, b"".join(sorted(entries))))
        written = (task, step, numbers.astype("<f8").tobytes(), json.dumps(counts))
        db.execute("REPLACE INTO merged VALUES (?, ?, ?, ?)", written)

    async def _look(self, document: TaskDocument) -> None:
        """Look whether all batches of a closed step are there."""
        inbox = self._inboxes[document.id]
        _, counts = await self.store.do(lambda db: _merged(db, inbox))
        if counts["closed"] is not None and counts["closed"] == len(counts["batches"]):
            self._all[document.id].set()

    async def _tell(self, task: Task) -> None:
        """Tell the result when all has come, or time is over; once: noise is drawn once."""
        document, inbox = task.document, self._inboxes[task.document.id]
        waiting = asyncio.create_task(self._all[document.id].wait())
        timer = asyncio.create_task(until(document.deadline + _SLACK * document.patience))
        try:
            await asyncio.wait({waiting, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            timer.cancel()
        body = await self.store.do(lambda db: _part(db, inbox, self.secret.sign))
        assert self._session is not None
        path = f"/tasks/{document.id.hex()}/parts"
        delivered = await self.deliver(self._session, document.result, path, body, task)
        self.meter.event("told" if delivered else "not told")

    async def _batches(self, request: web.Request) -> web.Response:
        """Answer which batches have come."""
        document = self.task(request).document
        asked = "SELECT batch FROM passage WHERE task = ? ORDER BY batch"
        rows = await self.store.do(lambda db: db.execute(asked, (document.id,)).fetchall())
        return web.json_response({"batches": [batch for (batch,) in rows]})

    async def _passage(self, request: web.Request) -> web.Response:
        """Answer with the list of a batch."""
        row = (self.task(request).document.id, int(request.match_info["batch"][:9]))
        asked = "SELECT entries FROM passage WHERE task = ? AND batch = ?"
        found = await self.store.do(lambda db: db.execute(asked, row).fetchone())
        if found is None:
            raise Refused(404, "no such batch")
        return web.Response(body=found[0], content_type="application/octet-stream")


def entry_of(nonce: bytes) -> bytes:
    """Return the entry of the message whose token has this nonce.

    >>> len(entry_of(bytes(32)))
    32
    """
    return hashlib.sha256(b"hushuffle passage 1|" + nonce).digest()


def _check_number(head: Head, messages: Sequence[bytes]) -> None:
    """Refuse copies, and more messages than left the last scrambler."""
    if len(messages) > head.trail[-1].sent or len({message[:ONCE] for message in messages}) < len(messages):
        message = "a batch has copies of a message, or more messages than its scrambler has sent."
        raise DataError(message)


def _merged(db: sqlite3.Connection, inbox: Inbox) -> tuple[Floats, dict[str, Any]]:
    """Return what was merged so far, and what came of each batch."""
    empty = inbox.query.empty(inbox.number)
    row = (inbox.task.document.id, inbox.number)
    found = db.execute("SELECT numbers, counts FROM merged WHERE task = ? AND step = ?", row).fetchone()
    if found is None:
        return empty, {"batches": [], "closed": None}
    return np.frombuffer(found[0], dtype="<f8").reshape(empty.shape).astype(np.float64), json.loads(found[1])


def _part(db: sqlite3.Connection, inbox: Inbox, sign: Ed25519PrivateKey) -> bytes:
    """Return what is told the result, the same every time; nothing is merged any more."""
    document = inbox.task.document
    known = db.execute("SELECT content FROM published WHERE task = ?", (document.id,)).fetchone()
    if known is not None:
        return bytes(known[0])
    numbers, counts = _merged(db, inbox)
    told = inbox.query.tell(inbox.number, inbox.place, numbers, None, secure())
    text = base64.b64encode(told.astype("<f8").tobytes()).decode()
    sealed = sealed_part(document, inbox.name, {**counts, "numbers": text})
    head = head_of(document, inbox.number, 0, inbox.name, document.result.name, [sealed])
    body = pack(head, [sealed], sign)
    db.execute("INSERT INTO published VALUES (?, ?)", (document.id, body))
    return body
