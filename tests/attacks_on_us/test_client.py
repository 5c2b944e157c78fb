"""Clients: phones with an invitation that cheat, and strangers without one who reach the services."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from aiohttp import ClientSession

from hushuffle_network.batches import Onions
from hushuffle_network.formats import decode_response, encapsulate
from hushuffle_network.relay import REQUEST
from network.test_adversaries import Cheating, everybody

HEAD: Final = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: message/ohttp-req\r\n"
HIDDEN: Final = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
BROKEN: Final = {
    "two framings": HEAD + b"Content-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "two lengths": HEAD + b"Content-Length: 3\r\nContent-Length: 99\r\n\r\nabc" + HIDDEN,
    "an unknown coding": HEAD + b"Transfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\nabcd",
    "a length with a sign": HEAD + b"Content-Length: +5\r\n\r\nabcde",
    "a length in sixteens": HEAD + b"Content-Length: 0x10\r\n\r\nabcde",
    "an immense length": HEAD + b"Content-Length: 1000000000000000000\r\n\r\nabcde",
    "bare line feeds": b"POST / HTTP/1.1\nHost: a\nContent-Length: 0\n\n",
    "a folded header": b"GET /health HTTP/1.1\r\nHost: a\r\nX: b\r\n Transfer-Encoding: chunked\r\n\r\n",
    "an immense header": b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    "another folder": b"GET /tasks/../../../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
    "another folder in numbers": b"GET /tasks/%2e%2e%2f%2e%2e%2fetc%2fpasswd/result HTTP/1.1\r\nHost: a\r\n\r\n",
    "an immense batch": b"GET /tasks/" + b"0" * 64 + b"/passage/" + b"9" * 400 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "another host": b"GET http://evil.example/health HTTP/1.1\r\nHost: a\r\n\r\n",
    "a tunnel": b"CONNECT evil.example:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "another protocol": b"GET /health HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    "packed": HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
}


async def raw(port: int, data: bytes) -> bytes:
    """Return what a service answers to bytes, until it closes or is silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        writer.write(data)
        async with asyncio.timeout(0.3):
            while part := await reader.read(1 << 16):
                answer += part
    except (TimeoutError, OSError):
        pass
    finally:
        writer.close()
    return answer


def test_strangers_who_speak_broken_http_get_nothing_and_stop_no_service(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            ports = [place.getsockname()[1] for place in stage.sockets.values()]
            for name, data in BROKEN.items():
                for answer in await asyncio.gather(*(raw(port, data) for port in ports)):
                    status = answer[9:12]
                    assert status in (b"", b"200", b"400", b"404", b"405", b"413", b"415", b"431"), (name, answer[:99])
                    assert b"hushuffle_" not in answer, name  # the request inside of another one is not heard
                    assert b"root:" not in answer, name
                    assert not answer.startswith(b"HTTP/1.1 101"), name
            sent = stage.sendings()
            await stage.phones().send(sent)
            assert stage.counted(await stage.result(), sent) == everybody(sent)

    asyncio.run(run())


def test_whatever_is_sealed_for_the_gateway_is_refused_in_words(tmp_path: Path) -> None:
    """Random bytes, and requests with a few bytes changed, in a valid Oblivious HTTP request of the right size."""
    rng = random.Random(7)  # noqa: S311

    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            document = stage.document
            right, words = document.request(1, bytes(document.message), bytes(354)), Counter[str]()
            async with ClientSession() as session:
                for number in range(150):
                    inside = bytearray(rng.randbytes(len(right)) if number % 5 == 0 else right)
                    for _ in range(rng.randint(1, 4)):
                        inside[rng.randrange(min(len(inside), 400))] = rng.randrange(256)
                    sealed, opened = encapsulate(document.gateway, bytes(inside))
                    url = stage.url("scrambler-1") + "/gateway"
                    async with session.post(url, data=sealed, headers={"Content-Type": REQUEST}) as answer:
                        content = await answer.read()
                        if answer.status == 200:
                            words[decode_response(opened(content))[2].strip().decode()] += 1
                        else:
                            words[f"{answer.status} {content.decode().strip()}"] += 1
            assert words["no valid ticket"] > 20
            refusals = {"no valid ticket", "no such place", "no such step", "no such task", "400 not for this gateway"}
            assert words.keys() <= refusals, words
            sent = stage.sendings()
            await stage.phones().send(sent)
            assert stage.counted(await stage.result(), sent) == everybody(sent)

    asyncio.run(run())


@pytest.mark.parametrize("shown", [0, 1])
def test_one_invitation_is_one_message_of_a_step(shown: int, tmp_path: Path) -> None:
    """A phone that asks again and again, all at once, has one ticket, and with it one message in a batch."""

    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start("relay", "scrambler-1", "issuer")
            phones, onions, sending = stage.phones(), Onions(stage.document, 1), stage.sendings()[shown]
            async with ClientSession() as session:
                requests = [phones.ticket(session, sending) for _ in range(8)]
                answers = await asyncio.gather(*requests, return_exceptions=True)
                tickets = [answer for answer in answers if isinstance(answer, bytes)]
                assert len(tickets) == 1
                messages = [onions.message(place % 3, None, None) for place in range(6)]
                posted = (phones.post(session, 1, message, tickets[0]) for message in messages)
                assert Counter(await asyncio.gather(*posted)) == {"taken": 1, "ticket used": 5}

    asyncio.run(run())


def test_a_ticket_of_one_task_is_none_of_another(tmp_path: Path) -> None:
    async def run() -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        async with Cheating(tmp_path / "a") as first, Cheating(tmp_path / "b") as second:
            await first.start("issuer")
            await second.start("relay", "scrambler-1", "issuer")
            async with ClientSession() as session:
                ticket = await first.phones().ticket(session, first.sendings()[0])
                message = Onions(second.document, 1).message(0, None, None)
                assert await second.phones().post(session, 1, message, ticket) == "no valid ticket"

    asyncio.run(run())


def test_a_message_of_another_size_is_no_message(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start("relay", "scrambler-1", "issuer")
            phones, message = stage.phones(), Onions(stage.document, 1).message(0, None, None)
            async with ClientSession() as session:
                ticket = await phones.ticket(session, stage.sendings()[0])
                for other in (message[:-1], message + b"\0"):
                    assert await phones.post(session, 1, other, ticket) != "taken"
                assert await phones.post(session, 1, bytes(len(message)), ticket) == "unreadable"

    asyncio.run(run())
