"""Many phones in one process, for rehearsals and measurements: each message is that of one phone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from hushuffle._checks import Integers
from hushuffle.randomness import Randomness
from hushuffle_network import formats
from hushuffle_network.batches import Onions
from hushuffle_network.promise import TaskPromise
from hushuffle_network.queries.query import Rows
from hushuffle_network.relay import REQUEST
from hushuffle_network.target import ENTRY, entry_of
from hushuffle_network.task import TaskDocument

_TRIES: Final = 5
_SECONDS: Final = 120.0


@dataclass(frozen=True, kw_only=True)
class Sending:
    """One phone's message in one step: its target, and its record, if any."""

    step: int
    code: str = field(repr=False)
    target: int = field(repr=False)
    record: bytes | None = field(repr=False)


@dataclass(kw_only=True)
class Crowd:
    """The results of many phones' messages: accepted messages, refusals, and the nonces of accepted messages."""

    taken: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    nonces: dict[tuple[int, int], list[bytes]] = field(default_factory=dict, repr=False)
    """Nonces of accepted messages, by step and target."""


def sendings(
    document: TaskDocument,
    promise: TaskPromise,
    rows: Rows,
    asked: Mapping[int, Integers],
    codes: Sequence[str],
    rng: Randomness,
) -> list[Sending]:
    """Return the messages of phones with randomized targets; `asked`: for each step, the phones that answer it."""
    sendings = []
    for number, who in asked.items():
        step, own = document.step(number), promise.task.own(number, rows[who], promise.task.start)
        contents = promise.task.pack(number, rows[who])
        sent, on_purpose = step.sampling.sample(own, rng=rng)
        for place, target in enumerate(sent.reshape(-1).tolist()):
            carries = target == own[place] and (bool(on_purpose[place]) or not step.only_on_purpose)
            record = contents[place] if carries else None
            sendings.append(Sending(step=number, code=codes[int(who[place])], target=target, record=record))
    order = rng.permutation(len(sendings)).tolist()
    return [sendings[place] for place in order]


class Phones:
    """Sends the messages of many phones, `together` at a time; `reuse`: whether messages share connections."""

    def __init__(self, document: TaskDocument, *, together: int = 64, reuse: bool = True) -> None:
        self._document, self._together, self._kept = document, together, reuse
        self._onions = {number: Onions(document, number) for number in range(1, len(document.steps) + 1)}
        self._gateway = document.gateway
        self.crowd = Crowd()

    async def send(self, all_of_them: Sequence[Sending]) -> Crowd:
        waiting = iter(all_of_them)
        async with self._session() as session:

            async def one_after_the_other() -> None:
                for sending in waiting:
                    await self._one(session, sending)

            await asyncio.gather(*(one_after_the_other() for _ in range(self._together)))
        return self.crowd

    def _session(self) -> ClientSession:
        connector = TCPConnector(limit=0, force_close=not self._kept)
        return ClientSession(
            connector=connector, timeout=ClientTimeout(total=_SECONDS), headers={"User-Agent": "phone"}
        )

    async def _one(self, session: ClientSession, sending: Sending) -> None:
        document, number = self._document, sending.step
        name = document.step(number).targets[sending.target].name
        try:
            challenge = formats.token_challenge(document.issuer.name, document.context(number, name), "")
            token = await self._token(session, sending, "token", document.token_key(number), challenge)
            ticket = await self.ticket(session, sending)
        except formats.PhoneError as error:
            self.crowd.refused[str(error)] += 1
            return
        message = self._onions[number].message(sending.target, token, sending.record)
        word = await self.post(session, number, message, ticket)
        if word != "taken":
            self.crowd.refused[word] += 1
            return
        self.crowd.taken += 1
        self.crowd.nonces.setdefault((number, sending.target), []).append(token[2:34])

    async def _token(self, session: ClientSession, sending: Sending, kind: str, spki: bytes, challenge: bytes) -> bytes:
        document, blinded = self._document, formats.blind(spki, challenge)
        url = f"{document.issuer.url.rstrip('/')}/tasks/{document.id.hex()}/steps/{sending.step}/{kind}"
        shown = formats.Invitation(sending.code).shown(document.id, sending.step, kind, spki, blinded.request)
        status, signed = await _post(session, url, blinded.request, dict([shown]))
        if status != 200:
            message = f"{kind} {status}"
            raise formats.PhoneError(message)
        return blinded.finalize(signed)

    async def ticket(self, session: ClientSession, sending: Sending) -> bytes:
        document, number = self._document, sending.step
        return await self._token(
            session, sending, "ticket", document.ticket_key(number), document.ticket_challenge(number)
        )

    async def post(self, session: ClientSession, number: int, message: bytes, ticket: bytes) -> str:
        """Post a message through the relay, and return the gateway's one-word answer."""
        sealed, open_response = formats.encapsulate(self._gateway, self._document.request(number, message, ticket))
        status, answer = await _post(session, self._document.relay, sealed, {"Content-Type": REQUEST})
        if status != 200:
            return f"relay {status}"
        try:
            _, _, content = formats.decode_response(open_response(answer))
        except formats.PhoneError:
            return "no answer"
        return content.decode("ascii", "replace").strip()

    async def passed(self) -> tuple[int, int]:
        """Look up all messages in the targets' lists; return how many were looked up and are listed."""
        looked = present = 0
        async with self._session() as session:
            for (number, place), nonces in self.crowd.nonces.items():
                entries = await self._entries(session, number, place)
                looked += len(nonces)
                present += sum(entry_of(nonce) in entries for nonce in nonces)
        return looked, present

    async def _entries(self, session: ClientSession, number: int, place: int) -> set[bytes]:
        base = self._document.step(number).targets[place].url.rstrip("/") + f"/tasks/{self._document.id.hex()}/passage"
        async with session.get(base) as answer:
            batches = (await answer.json())["batches"]
        passed = set[bytes]()
        for batch in batches:
            async with session.get(f"{base}/{batch}") as answer:
                entries = np.frombuffer(await answer.read(), dtype=f"S{ENTRY}", count=-1)
            passed |= {bytes(one).ljust(ENTRY, b"\0") for one in entries.tolist()}
        return passed


async def _post(session: ClientSession, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Post the same bytes until the service answers, at most five times; return status 0 if it never answers."""
    for number in range(_TRIES):
        try:
            async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
                content = await answer.read()
                if answer.status not in {502, 503}:
                    return answer.status, content
        except (ClientError, TimeoutError, OSError):
            pass
        await asyncio.sleep(0.1 * 2**number)
    return 0, b""
