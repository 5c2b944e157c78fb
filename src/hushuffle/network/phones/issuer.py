"""Issuers: who proves to have the code of an invitation gets one token for each step of a task, signed blindly."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import multiprocessing
import re
import secrets
import signal
import sqlite3
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

from aiohttp import web

from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle.files.causes import cause
from hushuffle.files.private_files import write_private
from hushuffle.network.phones.formats import Invitation, is_proof, name_in
from hushuffle.network.phones.keys import CODES
from hushuffle.network.phones.meter import Meter
from hushuffle.network.phones.service import Refused, Service, Task
from hushuffle.network.phones.settings import ServiceSettings
from hushuffle.network.phones.tokens import REQUEST, IssuerKey

_CODE: Final = 16
"""Bytes of a code."""

_KEY: Final = "ed25519:"


def make_codes(count: int) -> tuple[list[str], list[str]]:
    """Return new codes to hand out, and a line of text with the public half of each for the issuer.

    >>> codes, public = make_codes(2)
    >>> len(codes), len(codes[0]), public[0][:8], len(public[0])
    (2, 32, 'ed25519:', 72)
    """
    codes = [secrets.token_hex(_CODE) for _ in range(count)]
    return codes, [_KEY + Invitation(code).public.hex() for code in codes]


def write_codes(count: int, folder: Path) -> tuple[Path, Path]:
    """Write codes.txt, secret, to be handed out, and codes.public for the issuer: it can check codes, and use none.

    Raises:
        DataError: they are there already, or cannot be written.
    """
    secret, public = folder / "codes.txt", folder / CODES
    if secret.exists() or public.exists():
        fail(f"{folder} has codes already: they are never overwritten.")
    codes, halves = make_codes(count)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(secret, "".join(f"{code}\n" for code in codes).encode())
        public.write_text("".join(f"{half}\n" for half in sorted(halves)), encoding="ascii")
    except OSError as error:
        fail(f"{folder} cannot be written: {cause(error)}.")
    return secret, public


def listed(path: Path) -> frozenset[bytes]:
    """Return the public halves of the codes in a file.

    Raises:
        DataError: it cannot be read, or holds something else.
    """
    try:
        lines = path.read_text("ascii").split()
    except OSError as error:
        fail(f"{path} cannot be read: {cause(error)}. `hushuffle node codes` makes it.")
    except UnicodeDecodeError:
        lines = [""]
    if not all(re.fullmatch(f"{_KEY}[0-9a-f]{{64}}", line) for line in lines):
        fail(f"{path} does not hold the public halves of codes: `hushuffle node codes` makes it.")
    return frozenset(bytes.fromhex(line.removeprefix(_KEY)) for line in lines)


_SHOWN: Final = re.compile('Invitation name="([0-9a-f]{64})", proof="([0-9a-f]{128})"')
_HELD: Final[dict[str, IssuerKey]] = {}


def _hold(pems: dict[str, str]) -> None:
    """Keep the keys in a process that signs; signals are for the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _HELD.update({name: IssuerKey.of(pem) for name, pem in pems.items()})


def _signed(key: str, body: bytes) -> bytes:
    return _HELD[key].sign(body)


class Issuer(Service):
    """Signs one request for a token and one for a ticket for each code, step and task.

    The same request again gets the same answer. Where a person answers one step of a task, a code is for one. Who is
    invited says the file `codes` of the settings; no code is ever seen.

    Source: RFC 9578 (Celi, Davidson, Valdez, Wood 2024), section 6.
    """

    role: ClassVar[str] = "issuer"

    def __init__(self, settings: ServiceSettings, folder: Path, *, meter: Meter) -> None:
        super().__init__(settings, folder, meter=meter)
        self._pool: ProcessPoolExecutor | None = None
        self._invited, self._names = listed(folder / (settings.codes or "")), dict[bytes, dict[bytes, bytes]]()

    async def begin(self, task: Task) -> None:
        number = task.document.id
        self._names[number] = await asyncio.to_thread(lambda: {name_in(number, one): one for one in self._invited})

    def drop(self, task: bytes) -> None:
        self._names.pop(task, None)

    def check(self, task: Task) -> None:
        asked = _keys(task)
        if not set(asked) <= self._own.keys():
            message = "the document has other keys for tokens than this issuer."
            raise DataError(message)
        used = {key for other in self.tasks.values() for key in _keys(other)}
        if len(set(asked)) < len(asked) or used & set(asked):
            message = "every step of every task must have two keys of its own: tokens of one open the other."
            raise DataError(message)

    @cached_property
    def _own(self) -> dict[str, IssuerKey]:
        return {base64.b64encode(key.spki).decode(): key for key in self.secret.tokens}

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/tasks/{task}/steps/{step}/token", self._issue),
            web.post("/tasks/{task}/steps/{step}/ticket", self._issue),
        ]

    async def _sign(self, key: str, body: bytes) -> bytes:
        if self.settings.signers == 1:
            return self._own[key].sign(body)
        if self._pool is None:
            pems = {name: one.pem for name, one in self._own.items()}
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.settings.signers, context, initializer=_hold, initargs=(pems,))
        return await asyncio.get_running_loop().run_in_executor(self._pool, _signed, key, body)

    async def end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    async def _issue(self, request: web.Request) -> web.Response:
        document = self.task(request).document
        number = request.match_info["step"]
        if not re.fullmatch("[0-9]{1,4}", number) or not 1 <= int(number) <= len(document.steps):
            raise Refused(404, "no such step")
        if time.time() > document.deadline:
            raise Refused(410, "too late")
        body = await self.content(request, {REQUEST})
        asked, step, wanted = hashlib.sha256(body).digest(), int(number), request.path.rpartition("/")[2]
        key = document.step(step).ticket_key if wanted == "ticket" else document.step(step).token_key
        shown = _SHOWN.fullmatch(request.headers.get("Authorization", ""))
        who, proof = (bytes.fromhex(one) for one in shown.groups()) if shown else (b"", b"")
        public = self._names.get(document.id, {}).get(who)
        spki = base64.b64decode(key)
        if public is None or not is_proof(public, proof, document.id, step, wanted, spki, body):
            raise Refused(401, "no such code")

        def remember(db: sqlite3.Connection) -> bool:
            other = "SELECT 1 FROM issued WHERE task = ? AND step != ? AND code = ?"
            if document.per_person == "one" and db.execute(other, (document.id, step, who)).fetchone():
                return False
            row = (document.id, step, wanted, who)
            new = db.execute("INSERT OR IGNORE INTO issued VALUES (?, ?, ?, ?, ?)", (*row, asked)).rowcount
            if new:
                return True
            before = "SELECT request FROM issued WHERE task = ? AND step = ? AND kind = ? AND code = ?"
            return bool(db.execute(before, row).fetchone() == (asked,))

        try:
            self._own[key].number(body)  # what cannot be signed costs nobody a code
        except DataError:
            raise Refused(400, "no request for a token") from None
        # The code is used when the disk has it, before there is a signature; the same request gets the same one again.
        if not await self.store.do(remember):
            raise Refused(403, "code used")
        signed = await self._sign(key, body)
        self.meter.count("tokens")
        return web.Response(body=signed, content_type="application/private-token-response")


def _keys(task: Task) -> list[str]:
    return [key for step in task.document.steps for key in (step.token_key, step.ticket_key)]
