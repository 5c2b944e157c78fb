"""The result service: combines the targets' reports, and publishes the answers or the reason why there are none."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from aiohttp import ClientSession, web

from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle.files.causes import cause
from hushuffle.files.private_files import write_whole
from hushuffle_network.batches import Head, lost_answer, messages_of, receipt
from hushuffle_network.meter import Meter
from hushuffle_network.parts import Counts, Part, largest_part, opened_part, published, reckoned
from hushuffle_network.service import FORGET, Refused, Service, Task, until
from hushuffle_network.settings import ServiceSettings
from hushuffle_network.task import TaskDocument

COUNTS, PARTS = "counts", "numbers"
_KINDS: Final[dict[str, Any]] = {COUNTS: Counts, PARTS: Part}
_WAIT: Final = 20.0
"""Seconds for which a target's request waits for the reports of all other targets; then the target asks again."""


class Result(Service):
    """Publishes the result of a task if all targets have reported and all counts add up; otherwise only the reason."""

    role: ClassVar[str] = "result"
    stays: ClassVar[tuple[str, ...]] = ("published",)

    def __init__(self, settings: ServiceSettings, folder: Path, *, meter: Meter) -> None:
        super().__init__(settings, folder, meter=meter)
        self._out = folder / settings.results
        self._all: dict[bytes, asyncio.Event] = {}
        try:
            self._out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.store.close()
            fail(f"{self._out} cannot be written: {cause(error)}.")

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/tasks/{task}/counts", self._take_counts),
            web.post("/tasks/{task}/parts", self._take_part_of),
            web.get("/tasks/{task}/result", self._show),
            web.get("/tasks/{task}/next", self._next),
        ]

    def drop(self, task: bytes) -> None:
        self._all.pop(task, None)

    async def begin(self, task: Task) -> None:
        content = await self._content(task.document.id)
        if content is not None:
            self._write(task, content)
            return
        self.spawn(self._end_of(task))
        await self._settle(task)

    async def _take_counts(self, request: web.Request) -> web.Response:
        """Accept the counts of a target; when all targets have reported, answer with the lost batches."""
        task, head, body = await self._taken(request, COUNTS)
        document = task.document
        all_there = self._all.setdefault(document.id, asyncio.Event())
        targets = sum(len(step.targets) for step in document.steps)
        counts = await self._told(task, COUNTS)
        if len(counts) < targets:
            with suppress(TimeoutError):
                await asyncio.wait_for(all_there.wait(), min(document.patience / 2, _WAIT))
            counts = await self._told(task, COUNTS)
        if len(counts) < targets:
            return web.Response(status=202, text="not all yet\n")  # the target asks again
        all_there.set()
        try:
            came = reckoned(document, counts)[head.step - 1]
        except DataError as error:
            await self._nothing(task, str(error))
            raise Refused(410, "over") from None
        answer = lost_answer(body, came.short, self.secret.sign)
        return web.Response(body=answer, content_type="application/octet-stream")

    async def _take_part_of(self, request: web.Request) -> web.Response:
        task, _, body = await self._taken(request, PARTS)
        await self._settle(task)
        return web.Response(body=receipt(body, self.secret.sign), content_type="application/octet-stream")

    async def _taken(self, request: web.Request, kind: str) -> tuple[Task, Head, bytes]:
        """Store the report of a target on the disk; return the task, the head, and the body of the request."""
        task = self.task(request)
        document = task.document
        places = [one for step in document.steps for one in step.targets]
        head, body = await self.batch(request, document, places, largest_part(task.promise, document), "not a part")
        try:
            messages = messages_of(body, head, size=None)
        except DataError:
            messages = []
        if len(messages) != 1:
            raise Refused(400, "not a part")
        (sealed,) = messages
        try:
            opened_part(_KINDS[kind], document, head.sender, sealed, self.secret.seal)
        except DataError:
            raise Refused(400, "unreadable") from None

        def keep(db: sqlite3.Connection) -> bool:
            row = (document.id, kind, head.sender, sealed)
            if db.execute("INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?)", row).rowcount:
                return True
            query = "SELECT body FROM part WHERE task = ? AND kind = ? AND sender = ?"
            stored = db.execute(query, (document.id, kind, head.sender)).fetchone()
            return bool(stored == (sealed,))

        if not await self.store.do(keep):
            raise Refused(409, "told before")
        self.meter.count("messages")
        return task, head, body

    async def _told(self, task: Task, kind: str) -> dict[str, Any]:
        document, query = task.document, "SELECT sender, body FROM part WHERE task = ? AND kind = ?"
        rows = await self.store.do(lambda db: db.execute(query, (document.id, kind)).fetchall())
        return {
            sender: opened_part(_KINDS[kind], document, sender, sealed, self.secret.seal) for sender, sealed in rows
        }

    async def _settle(self, task: Task, *, over: bool = False) -> None:
        """Publish a task's result when all targets have reported; when time is `over`, publish why there is none."""
        document = task.document
        parts = await self._told(task, PARTS)
        if not over and len(parts) < sum(len(step.targets) for step in document.steps):
            return
        try:
            content = published(document, task.promise, await self._told(task, COUNTS), parts)
            text = _json(content)
        except DataError as error:
            await self._nothing(task, str(error))
        except (ValueError, ArithmeticError):
            await self._nothing(task, "the numbers in a target's report are impossible. Nothing was published.")
        else:
            await self._publish(task, text, failed=False)

    async def _nothing(self, task: Task, why: str) -> None:
        content = {"schema_version": 1, "run": task.document.id.hex(), "failed": why}
        if await self._publish(task, _json(content), failed=True):
            self.meter.event("nothing published", reason=why)

    async def _publish(self, task: Task, text: bytes, *, failed: bool) -> bool:
        row = (task.document.id, text)
        new = await self.store.do(lambda db: db.execute("INSERT OR IGNORE INTO published VALUES (?, ?)", row).rowcount)
        if new:
            self._write(task, text)
            self.meter.event("published", id=task.document.id.hex(), failed=failed)
        return bool(new)

    def _write(self, task: Task, text: bytes) -> None:
        path = self._out / f"{task.document.id.hex()}.json"
        try:
            write_whole(path, text)
        except OSError as error:
            self.meter.event("not written", file=path.name, reason=cause(error))

    async def _end_of(self, task: Task) -> None:
        await until(task.document.deadline + FORGET * task.document.patience)
        await self.insist(task, lambda: self._settle(task, over=True), longer=self.settings.keep)

    async def _content(self, task: bytes) -> bytes | None:
        query, row = "SELECT content FROM published WHERE task = ?", (task,)
        published = await self.store.do(lambda db: db.execute(query, row).fetchone())
        return None if published is None else bytes(published[0])

    async def published(self, session: ClientSession, document: TaskDocument) -> dict[str, Any] | None:
        content = await self._content(document.id)
        return None if content is None else dict(json.loads(content))

    async def _next(self, request: web.Request) -> web.Response:
        """Answer with the document of the next iteration, when this service has it."""
        former = request.match_info["task"]
        rounds = ((one.document.round, one.document) for one in self.tasks.values())
        following = next((document for one, document in rounds if one is not None and one.former == former), None)
        if following is None:
            self.task(request)
            raise Refused(404, "not yet")
        return web.Response(body=following.content, content_type="application/json")

    async def _show(self, request: web.Request) -> web.Response:
        number = request.match_info["task"]
        content = await self._content(bytes.fromhex(number)) if re.fullmatch("[0-9a-f]{64}", number) else None
        if content is None:
            self.task(request)
            raise Refused(404, "not yet")
        return web.Response(body=content, content_type="application/json")


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()
