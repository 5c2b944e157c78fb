"""The result: gathers what the targets found, publishes it, or why there is nothing."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any, ClassVar

from aiohttp import ClientSession, web

from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle.files.causes import cause
from hushuffle.network.phones.batches import messages_of, receipt
from hushuffle.network.phones.meter import Meter
from hushuffle.network.phones.parts import Part, largest_part, opened_part, published
from hushuffle.network.phones.service import FORGET, Refused, Service, Task, until
from hushuffle.network.phones.settings import ServiceSettings
from hushuffle.network.phones.task import TaskDocument


class Result(Service):
    """Publishes a task when all of its targets have told what they found and all adds up: all of it or nothing."""

    role: ClassVar[str] = "result"
    stays: ClassVar[tuple[str, ...]] = ("published",)

    def __init__(self, settings: ServiceSettings, folder: Path, *, meter: Meter) -> None:
        super().__init__(settings, folder, meter=meter)
        self._out = folder / settings.results
        try:
            self._out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.store.close()
            fail(f"{self._out} cannot be written: {cause(error)}.")

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/tasks/{task}/parts", self._take),
            web.get("/tasks/{task}/result", self._show),
            web.get("/tasks/{task}/next", self._next),
        ]

    async def begin(self, task: Task) -> None:
        content = await self._content(task.document.id)
        if content is not None:
            self._write(task, content)
            return
        self.spawn(self._end_of(task))
        await self._settle(task)

    async def _take(self, request: web.Request) -> web.Response:
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
            opened_part(document, head.sender, sealed, self.secret.seal)
        except DataError:
            raise Refused(400, "unreadable") from None

        def keep(db: sqlite3.Connection) -> bool:
            row = (document.id, head.sender, sealed)
            if db.execute("INSERT OR IGNORE INTO part VALUES (?, ?, ?)", row).rowcount:
                return True
            asked = "SELECT body FROM part WHERE task = ? AND sender = ?"
            known = db.execute(asked, (document.id, head.sender)).fetchone()
            return bool(known == (sealed,))

        if not await self.store.do(keep):
            raise Refused(409, "told before")
        self.meter.count("messages")
        await self._settle(task)
        return web.Response(body=receipt(body, self.secret.sign), content_type="application/octet-stream")

    async def _settle(self, task: Task, *, over: bool = False) -> None:
        """Publish a task of which all targets have told; or say, when time is over, that there is nothing."""
        document = task.document
        asked = "SELECT sender, body FROM part WHERE task = ?"
        rows = await self.store.do(lambda db: db.execute(asked, (document.id,)).fetchall())
        if not over and len(rows) < sum(len(step.targets) for step in document.steps):
            return
        parts: dict[str, Part] = {
            sender: opened_part(document, sender, sealed, self.secret.seal) for sender, sealed in rows
        }
        content: dict[str, Any]
        try:
            content = published(document, task.promise, parts)
            text = _json(content)
        except (DataError, ValueError, ArithmeticError) as error:
            why = (
                str(error) if isinstance(error, DataError) else "what a target told is no result. Nothing is published."
            )
            self.meter.event("nothing published", reason=why)
            content = {"schema_version": 1, "run": document.id.hex(), "failed": why}
            text = _json(content)
        row = (document.id, text)
        if await self.store.do(lambda db: db.execute("INSERT OR IGNORE INTO published VALUES (?, ?)", row).rowcount):
            self._write(task, text)
            self.meter.event("published", id=document.id.hex(), failed="failed" in content)

    def _write(self, task: Task, text: bytes) -> None:
        """Write the result into its file, whole or not at all."""
        path = self._out / f"{task.document.id.hex()}.json"
        partial = path.with_name(f".{path.name}.partial")
        try:
            partial.write_bytes(text)
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            self.meter.event("not written", file=path.name, reason=cause(error))

    async def _end_of(self, task: Task) -> None:
        await until(task.document.deadline + FORGET * task.document.patience)
        await self._settle(task, over=True)

    async def _content(self, task: bytes) -> bytes | None:
        asked, row = "SELECT content FROM published WHERE task = ?", (task,)
        found = await self.store.do(lambda db: db.execute(asked, row).fetchone())
        return None if found is None else bytes(found[0])

    async def published(self, session: ClientSession, document: TaskDocument) -> dict[str, Any] | None:
        del session
        content = await self._content(document.id)
        return None if content is None else dict(json.loads(content))

    async def _next(self, request: web.Request) -> web.Response:
        """Answer with the document of the next iteration, when it is there."""
        former = request.match_info["task"]
        rounds = ((one.document.round, one.document) for one in self.tasks.values())
        found = next((document for one, document in rounds if one is not None and one.former == former), None)
        if found is None:
            self.task(request)
            raise Refused(404, "not yet")
        return web.Response(body=found.content, content_type="application/json")

    async def _show(self, request: web.Request) -> web.Response:
        number = request.match_info["task"]
        content = await self._content(bytes.fromhex(number)) if re.fullmatch("[0-9a-f]{64}", number) else None
        if content is None:
            self.task(request)
            raise Refused(404, "not yet")
        return web.Response(body=content, content_type="application/json")


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()
