"""Targets: open sealed messages, accept each token once, merge the records, and report to the result."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from aiohttp import ClientSession, web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle.randomness import secure
from hushuffle_network.batches import ONCE, Head, Onions, head_of, is_token, lost_in, pack, receipt
from hushuffle_network.formats import PhoneError, token_challenge, token_input
from hushuffle_network.meter import Meter
from hushuffle_network.parts import Counted, sealed_part
from hushuffle_network.service import CAME, Refused, Service, Task
from hushuffle_network.settings import ServiceSettings
from hushuffle_network.store import spend
from hushuffle_network.task import TaskDocument
from hushuffle_network.tokens import Verifier

ENTRY: Final = 32
"""Bytes of one entry in the published list of arrived messages."""
_SLACK: Final = 2
"""A target waits for batches until this many times `patience` after the deadline."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The content of a message: nonce of its token (None: no valid token), record, and whether the record may count."""

    nonce: bytes | None
    record: bytes
    counts: bool


class Inbox:
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
        """An invalid token that is checked in place of a missing token, so that both checks take equally long."""
        spki = self.task.document.token_key(self.number)
        return token_input(spki, self.challenge, bytes(32)) + b"\0" * 255 + b"\2"

    def opened(self, messages: Sequence[bytes], service: Service) -> list[Opened]:
        """Return the contents of messages; a dummy takes as long as any other message."""
        results, counted = [], dict[str, int]()
        for message in messages:
            result, reason = self._opened(message, service)
            results.append(result)
            if reason:
                counted[reason] = counted.get(reason, 0) + 1
        for reason, number in counted.items():
            service.meter.count("refused", reason, number)
        return results

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

    For each batch, the target publishes one entry of 32 bytes per message, sorted: the digest of the nonce of the
    message's token, or random bytes without a valid token. The phone that sent a message knows the nonce, and can check
    that its message arrived.
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
            web.get(CAME, self.came),
            web.get("/tasks/{task}/passage", self._batches),
            web.get("/tasks/{task}/passage/{batch:[0-9]+}", self._passage),
        ]

    def onwards(self, document: TaskDocument) -> Sequence[str]:
        return (document.result.url,)

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
        head, body, messages = await self.messages(request, document, hops=hops, size=document.inner, step=inbox.number)
        copies = len({message[:ONCE] for message in messages}) < len(messages)
        if not head.closed and (len(messages) > head.trail[-1].sent or copies):
            reason = "a batch has copies of a message, or more messages than its scrambler has sent."
            self.meter.event("refused", reason=reason)
            raise Refused(400, "not a batch")
        answer = await self.answer_before(document, head, body)
        if answer is None:
            answer = receipt(body, self.secret.sign)
            row = (document.id, inbox.number, head.place, hashlib.sha256(body).digest(), answer)
            opened = await asyncio.to_thread(inbox.opened, messages, self)
            await self.store.do(lambda db: self._keep(db, inbox, head, row, opened))
            self.meter.count("batches", "received", number=not head.closed)
            self.meter.count("messages", number=len(messages))
            self.meter.event("received", step=head.step, batch=head.place, messages=len(messages))
            await self._look(document)
        return web.Response(body=answer, content_type="application/octet-stream")

    def _keep(
        self, db: sqlite3.Connection, inbox: Inbox, head: Head, row: tuple[object, ...], opened: list[Opened]
    ) -> None:
        """Record tokens, numbers and the list of arrived messages; `row`: the batch in the table of arrived batches."""
        task, step, place = inbox.task.document.id, inbox.number, head.place
        if db.execute("SELECT 1 FROM told WHERE task = ?", (task,)).fetchone():
            raise Refused(410, "over")
        if not db.execute("INSERT OR IGNORE INTO came VALUES (?, ?, ?, ?, ?)", row).rowcount:
            raise Refused(425, "being worked on")
        counts = _counts(db, inbox)
        if head.closed:
            counts["closed"] = head.batch
        else:
            used, entries, valid = [], [], 0
            for message in opened:
                # A message without a token is recorded too, under a random number, so that it takes as long.
                spent = spend(db, task, secrets.token_bytes(ENTRY) if message.nonce is None else message.nonce)
                fresh = message.nonce is not None and spent
                if message.nonce is not None and not fresh:
                    self.meter.count("refused", "token used")
                valid += fresh
                used.append(message.counts and fresh)
                nonce = message.nonce if fresh else None
                entries.append(secrets.token_bytes(ENTRY) if nonce is None else entry_of(nonce))
            numbers = inbox.query.merge(step, inbox.query.empty(step), [one.record for one in opened], used)
            db.execute("INSERT INTO merged VALUES (?, ?, ?, ?)", (task, step, place, numbers.astype("<f8").tobytes()))
            counted = Counted(batch=place, messages=len(opened), valid=valid, trail=head.trail)
            counts["batches"].append(counted.model_dump(mode="json"))
            db.execute("INSERT INTO passage VALUES (?, ?, ?, ?)", (task, step, place, b"".join(sorted(entries))))
        db.execute("REPLACE INTO counted VALUES (?, ?, ?)", (task, step, json.dumps(counts)))

    async def _look(self, document: TaskDocument) -> None:
        """Signal if all batches of a closed step have arrived."""
        inbox = self._inboxes[document.id]
        counts = await self.store.do(lambda db: _counts(db, inbox))
        if counts["closed"] is not None and counts["closed"] == len(counts["batches"]):
            self._all[document.id].set()

    async def _tell(self, task: Task) -> None:
        """Report to the result when all batches have arrived, or when time is over; noise is drawn only once."""
        document, inbox = task.document, self._inboxes[task.document.id]
        left = document.deadline + _SLACK * document.patience - time.time()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all[document.id].wait(), max(left, 0.0))
        await self.insist(task, lambda: self._told(task, inbox))

    async def _told(self, task: Task, inbox: Inbox) -> None:
        """Report the counts of each batch, then the numbers over all batches that the result does not declare lost."""
        document = task.document
        assert self._session is not None
        path = f"/tasks/{document.id.hex()}/"
        # After the report of the counts of each batch, the target accepts no further batch.
        counts = await self.store.do(
            lambda db: _once(db, document.id, "counts", lambda: _sealed(inbox, _counts(db, inbox), self.secret.sign))
        )
        answer = await self.deliver(self._session, document.result, path + "counts", counts, task)
        delivered = answer is not None
        if answer is not None:
            lost = lost_in(answer, counts, document.result)
            body = await self.store.do(lambda db: _told_numbers(db, inbox, self.secret.sign, lost))
            delivered = await self.deliver(self._session, document.result, path + "parts", body, task) is not None
        self.meter.event("told" if delivered else "not told")

    async def _batches(self, request: web.Request) -> web.Response:
        document = self.task(request).document
        query = "SELECT batch FROM passage WHERE task = ? ORDER BY batch"
        rows = await self.store.do(lambda db: db.execute(query, (document.id,)).fetchall())
        return web.json_response({"batches": [batch for (batch,) in rows]})

    async def _passage(self, request: web.Request) -> web.Response:
        row = (self.task(request).document.id, int(request.match_info["batch"][:9]))
        query = "SELECT entries FROM passage WHERE task = ? AND batch = ?"
        stored = await self.store.do(lambda db: db.execute(query, row).fetchone())
        if stored is None:
            raise Refused(404, "no such batch")
        return web.Response(body=stored[0], content_type="application/octet-stream")


def entry_of(nonce: bytes) -> bytes:
    """Return the published entry of the message whose token has this nonce.

    >>> len(entry_of(bytes(32)))
    32
    """
    return hashlib.sha256(b"hushuffle passage 1|" + nonce).digest()


def _counts(db: sqlite3.Connection, inbox: Inbox) -> dict[str, Any]:
    row = (inbox.task.document.id, inbox.number)
    stored = db.execute("SELECT counts FROM counted WHERE task = ? AND step = ?", row).fetchone()
    return {"batches": [], "closed": None} if stored is None else dict(json.loads(stored[0]))


def _once(db: sqlite3.Connection, task: bytes, kind: str, draw: Callable[[], bytes]) -> bytes:
    """Return the stored report to the result; draw and store it at the first call."""
    stored = db.execute("SELECT body FROM told WHERE task = ? AND kind = ?", (task, kind)).fetchone()
    if stored is not None:
        return bytes(stored[0])
    body = draw()
    db.execute("INSERT INTO told VALUES (?, ?, ?)", (task, kind, body))
    return body


def _sealed(inbox: Inbox, content: dict[str, Any], sign: Ed25519PrivateKey) -> bytes:
    document = inbox.task.document
    sealed = sealed_part(document, inbox.name, content)
    head = head_of(document, inbox.number, 0, inbox.name, document.result.name, [sealed])
    return pack(head, [sealed], sign)


def _told_numbers(db: sqlite3.Connection, inbox: Inbox, sign: Ed25519PrivateKey, lost: Collection[int]) -> bytes:
    """Return the report over all batches that are not lost, drawn once; refuse it below the share `least` of people."""
    document, query, number = inbox.task.document, inbox.query, inbox.number

    def made() -> bytes:
        batches = [one for one in _counts(db, inbox)["batches"] if one["batch"] not in lost]
        if sum(one["trail"][-1]["sources"] for one in batches) < document.least * document.step(number).sources:
            fail("the result declares so many batches lost that too few people remain: no numbers were reported.")
        rows, whole = "SELECT batch, numbers FROM merged WHERE task = ? AND step = ?", query.empty(number)
        for batch, numbers in db.execute(rows, (document.id, number)).fetchall():
            if batch not in lost:
                whole = query.joined(number, whole, np.frombuffer(numbers, dtype="<f8").reshape(whole.shape))
        noisy = query.tell(number, inbox.place, whole, secure())
        return _sealed(inbox, {"numbers": base64.b64encode(noisy.astype("<f8").tobytes()).decode()}, sign)

    return _once(db, document.id, "numbers", made)
