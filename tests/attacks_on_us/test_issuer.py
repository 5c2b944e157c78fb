"""The issuer: what it can do with the people whom it serves or refuses, and with what it is shown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from hushuffle_network.client import Phone, PhoneError
from hushuffle_network.formats import blind
from hushuffle_network.issuer import Issuer
from hushuffle_network.scrambler import Scrambler
from hushuffle_network.service import Refused
from hushuffle_network.tokens import IssuerKey, blind_sign
from network.phone_stage import PhoneStage, shown
from network.tasks import CODE, services
from network.test_adversaries import Cheating
from network.vectors import published

KEY = IssuerKey.of(bytes.fromhex(published("tokens")["skS"]))
ANSWERS = {"age": 33, "smokes": "yes", "bmi": 21.5}


def test_an_issuer_that_serves_one_person_leaves_nobody_alone_in_a_batch(tmp_path: Path) -> None:
    """Of sixteen people it refuses fifteen: the first scrambler has one message, and releases nothing."""

    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            issuer, scrambler = stage.services["issuer"], stage.services["scrambler-1"]
            assert isinstance(issuer, Issuer)
            assert isinstance(scrambler, Scrambler)
            right, served = issuer._sign, [0]

            async def sign(key: str, body: bytes) -> bytes:
                served[0] += 1
                if served[0] > 2:  # a token and a ticket
                    raise Refused(403, "code used")
                return await right(key, body)

            issuer._sign = sign  # type: ignore[method-assign]
            sent = stage.sendings()
            assert (await stage.phones().send(sent[:1])).taken == 1
            assert (await stage.phones().send(sent[1:])).taken == 0
            await scrambler._release_full(scrambler.tasks[stage.document.id], 1, last=True)  # as at the deadline
            assert stage.meters["scrambler-1"].of("batches", "released") == 0
            assert "failed" in await stage.result()

    asyncio.run(run())


def test_an_issuer_that_signs_one_person_s_requests_with_another_key_gets_no_message_of_theirs(tmp_path: Path) -> None:
    """A key of one's own would be a mark: tokens are checked with the key of the document before anything is sent."""
    world, other = services(KEY), IssuerKey.generate().numbers
    posted = list[str]()

    def send(url: str, body: bytes | None, _: Any) -> tuple[int, bytes]:
        posted.append(url)
        assert body is not None
        return 200, blind_sign(other, int.from_bytes(body[3:]) % other.public_numbers.n).to_bytes(256)

    with pytest.raises(PhoneError):
        Phone(world.task, tmp_path, ANSWERS, send=send).send(CODE)
    assert [url.rpartition("/")[2] for url in posted] == ["token"]


@pytest.mark.parametrize("answer", [b"", b"\0" * 256, b"\xff" * 256, b"\0" * 255, b"a" * 100_000])
def test_an_issuer_that_answers_nonsense_gets_no_message(answer: bytes, tmp_path: Path) -> None:
    world = services(KEY)
    right, reached = world.send, list[str]()

    def send(url: str, body: bytes | None, headers: Any) -> tuple[int, bytes]:
        reached.append(url)
        return (200, answer) if url.startswith(world.url("issuer")) else right(url, body, headers)

    with pytest.raises(PhoneError):
        Phone(world.task, tmp_path, ANSWERS, send=send).send(CODE)
    assert all(url.startswith(world.url("issuer")) for url in reached)


def test_what_an_issuer_is_shown_is_good_for_nothing_else(tmp_path: Path) -> None:
    """An issuer, or the log of its proxy, has seen a proof: it buys no ticket, no other step and no other request."""

    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            await stage.start("issuer")
            document = stage.document
            own = blind(document.token_key(1), document.ticket_challenge(1)).request
            other = blind(document.token_key(1), document.ticket_challenge(1)).request
            seen = shown(document, stage.codes[0], own)
            async with ClientSession() as session:

                async def status_of(step: int, kind: str, body: bytes) -> int:
                    url = f"{stage.url('issuer')}/tasks/{document.id.hex()}/steps/{step}/{kind}"
                    async with session.post(url, data=body, headers=seen) as answer:
                        return answer.status

                wrong = [(1, "ticket", own), (2, "token", own), (1, "token", other), (2, "ticket", other)]
                assert [await status_of(*request) for request in wrong] == [401] * 4
                assert await status_of(1, "token", own) == 200

    asyncio.run(run())
