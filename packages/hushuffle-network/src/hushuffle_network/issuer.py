"""Issuers: a phone that proves that it has an invitation's code gets one blindly signed token per step of a task."""

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
from hushuffle.files.causes import cause, failing
from hushuffle.files.private_files import write_private
from hushuffle_network.formats import Invitation, is_proof, name_in
from hushuffle_network.meter import Meter
from hushuffle_network.service import Refused, Service, Task
from hushuffle_network.settings import CODES, ServiceSettings
from hushuffle_network.tokens import REQUEST, IssuerKey

_CODE: Final = 16
"""Length of a code in bytes."""

_KEY: Final = "ed25519:"


def make_codes(count: int) -> tuple[list[str], list[str]]:
    """Return new codes to hand out, and for each code a line of text with its public key, for the issuer.

    >>> codes, public = make_codes(2)
    >>> len(codes), len(codes[0]), public[0][:8], len(public[0])
    (2, 32, 'ed25519:', 72)
    """
    codes = [secrets.token_hex(_CODE) for _ in range(count)]
    return codes, [_KEY + Invitation(code).public.hex() for code in codes]


def write_codes(count: int, folder: Path) -> tuple[Path, Path]:
    """Write codes.txt (secret, to be handed out) and codes.public (with which the issuer can only check codes)."""
    secret, public = folder / "codes.txt", folder / CODES
    if secret.exists() or public.exists():
        fail(f"{folder} has codes already, which are never overwritten. Give another folder.")
    codes, halves = make_codes(count)
    with failing(f"{folder} cannot be written"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(secret, "".join(f"{code}\n" for code in codes).encode())
        public.write_text("".join(f"{half}\n" for half in sorted(halves)), encoding="ascii")
    return secret, public


def listed(path: Path) -> frozenset[bytes]:
    try:
        lines = path.read_text("ascii").split()
    except OSError as error:
        fail(f"{path} cannot be read: {cause(error)}. Create it with `hushuffle node codes`.")
    except UnicodeDecodeError:
        lines = [""]
    if not all(re.fullmatch(f"{_KEY}[0-9a-f]{{64}}", line) for line in lines):
        fail(f"{path} does not hold the public halves of codes. Create it with `hushuffle node codes`.")
    return frozenset(bytes.fromhex(line.removeprefix(_KEY)) for line in lines)


_SHOWN: Final = re.compile('Invitation name="([0-9a-f]{64})", proof="([0-9a-f]{128})"')
_HELD: Final[dict[str, IssuerKey]] = {}


def _hold(pems: dict[str, str]) -> None:
    """Store the issuer's keys in a signing process; only the parent process handles interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _HELD.update({name: IssuerKey.of(pem) for name, pem in pems.items()})


def _signed(key: str, body: bytes) -> bytes:
    return _HELD[key].sign(body)


class Issuer(Service):
    """Signs one request for a token and one for a ticket for each code, step and task.

    A repeated request gets the same answer. If a person answers only one step of a task, a code is valid for one step.
    The issuer never sees a code, only the public keys of the invitations.

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
        keys = _keys(task)
        if not set(keys) <= self._own.keys():
            fail("the document has other token keys than this issuer.")
        used = {key for other in self.tasks.values() for key in _keys(other)}
        if len(set(keys)) < len(keys) or used & set(keys):
            fail("every step of every task needs two keys of its own: else tokens are valid in other steps.")

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
        digest, step, wanted = hashlib.sha256(body).digest(), int(number), request.path.rpartition("/")[2]
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
            new = db.execute("INSERT OR IGNORE INTO issued VALUES (?, ?, ?, ?, ?)", (*row, digest)).rowcount
            if new:
                return True
            before = "SELECT request FROM issued WHERE task = ? AND step = ? AND kind = ? AND code = ?"
            return bool(db.execute(before, row).fetchone() == (digest,))

        try:
            self._own[key].number(body)  # an invalid request does not use up a code
        except DataError:
            raise Refused(400, "no request for a token") from None
        # The code is recorded as used before there is a signature; a repeated request gets the same signature again.
        if not await self.store.do(remember):
            raise Refused(403, "code used")
        signed = await self._sign(key, body)
        self.meter.count("tokens")
        return web.Response(body=signed, content_type="application/private-token-response")


def _keys(task: Task) -> list[str]:
    return [key for step in task.document.steps for key in (step.token_key, step.ticket_key)]
