"""What somebody can make a service keep or do: sizes, connections, redirections, signatures for a used code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from hushuffle.randomness import secure
from hushuffle_network import serve
from hushuffle_network.batches import Link, Onions, head_of, pack
from hushuffle_network.formats import blind, token_challenge
from hushuffle_network.issuer import Issuer
from hushuffle_network.parts import Counted, largest_part
from hushuffle_network.relay import REQUEST
from hushuffle_network.task import canonical
from hushuffle_network.tokens import IssuerKey
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage

PEOPLE = 16
PLAN = plan_text(sets='[["sex"]]').replace("people = 24", f"people = {PEOPLE}")


@asynccontextmanager
async def elsewhere(status: int) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve at an address that sends everybody on to another; yield it, and what came to the other."""
    came: list[bytes] = []

    async def first(_: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": "/second"})

    async def second(request: web.Request) -> web.Response:
        came.append(await request.read())
        return web.Response(body=b"yes")

    app = web.Application()
    app.add_routes([web.post("/second", second), web.post("/{rest:.*}", first)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", came
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_is_sent_on_to_another_address(status: int, tmp_path: Path) -> None:
    """A gateway, or the receiver of a batch, cannot have a body sent to somebody else."""

    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage, elsewhere(status) as (url, came):
            stage.settings["relay"] = {"gateway": url}
            await stage.start("relay", "target-1-1")
            body = bytes(stage.document.sealed_request)
            async with (
                ClientSession() as session,
                session.post(stage.url("relay") + "/", data=body, headers={"Content-Type": REQUEST}) as answer,
            ):
                assert answer.status == 502
            service = stage.services["target-1-1"]
            task = service.tasks[stage.document.id]
            receiver = stage.document.result.model_copy(update={"url": url})
            sending = service.deliver(service.session(), receiver, "/parts", b"a part", task)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(sending, 0.3)
            assert came == []

    asyncio.run(run())


def post(stage: PhoneStage, name: str, path: str, length: int, first: bytes) -> tuple[int, bytes]:
    port = stage.sockets[name].getsockname()[1]
    head = f"POST /tasks/{stage.document.id.hex()}/{path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
    return port, head.encode() + first


async def status_of(port: int, data: bytes, seconds: float = 2.0) -> int:
    """Return what is answered while the rest of the content has not come; 0: nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        line = await asyncio.wait_for(reader.readline(), seconds)
        return int(line.split()[1])
    except TimeoutError:
        return 0
    finally:
        writer.close()


def test_nothing_is_read_of_a_batch_whose_head_is_not_signed(tmp_path: Path) -> None:
    """The answer is there before the content: it is not waited for, and not kept."""

    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("scrambler-2", "target-1-1", "result")
            document, step = stage.document, stage.document.step(1)
            messages = Onions(document, 1).dummies(step.batch + step.dummies, hop=0, rng=secure())
            for sender, receiver, path in (
                ("scrambler-1", "scrambler-2", "batches"),
                ("scrambler-2", "target-1-1", "batches"),
                ("target-1-1", "result", "parts"),
            ):
                key = stage.keys[sender].sign
                link = Link.signed(key, document.id, 1, 1, sender, 8, 8, len(messages))
                few = messages[:1] if path == "parts" else messages
                head = head_of(document, 1, 1, sender, receiver, few, trail=(link,))
                signed, forged = (pack(head, few, one) for one in (key, stage.keys["relay"].sign))
                start = len(forged) - sum(map(len, few))
                for data, status in ((forged, 400), (b"\0\0\xff\xff", 400), (signed, 0)):
                    sent = post(stage, receiver, path, len(signed), data[:start])
                    assert await status_of(*sent, seconds=2.0 if status else 0.3) == status
                most = 1 << 20
                assert await status_of(*post(stage, receiver, path, most, b"")) == 413

    asyncio.run(run())


def test_what_is_no_http_is_neither_kept_nor_sent_back(tmp_path: Path) -> None:
    """Of a connection little is read at a time; aiohttp's own answer would quote it, eight times as long."""

    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("relay")
            reader, writer = await asyncio.open_connection("127.0.0.1", stage.sockets["relay"].getsockname()[1])
            writer.write(b"GET / HTTP/1.1\r\n" + bytes(5000))
            said = await asyncio.wait_for(reader.read(), 5)
            assert b" 400 " in said[:20]
            assert said.endswith(b"\r\n\r\nmalformed\n")
            assert len(said) < 300
            writer.close()

    asyncio.run(run())


def test_a_part_with_many_batches_and_large_numbers_fits(tmp_path: Path) -> None:
    stage = PhoneStage(tmp_path, PLAN, people=PEOPLE)
    for one in stage.sockets.values():
        one.close()
    document, most = stage.document, 10**9
    links = tuple(
        Link.signed(stage.keys[place.name].sign, document.id, 1, most, place.name, most, most, most)
        for place in document.chain
    )
    batches = [
        Counted(batch=most, messages=most, valid=most, trail=links).model_dump(mode="json")
        for _ in range(document.step(1).batches + 1)
    ]
    width = stage.promise.task.width(1)
    part = canonical({"batches": batches, "closed": most, "numbers": "A" * (-(-8 * width // 3) * 4)})
    assert len(part) + 48 < largest_part(stage.promise, document) < 1 << 16


def test_a_connection_on_which_nothing_is_asked_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "_IDLE", 0.2)

    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("relay")
            for begun in (b"", b"POST / HTTP/1.1\r\nHost: a\r\nX: "):
                reader, writer = await asyncio.open_connection("127.0.0.1", stage.sockets["relay"].getsockname()[1])
                writer.write(begun)
                assert await asyncio.wait_for(reader.read(), 5) == b""
                writer.close()

    asyncio.run(run())


async def _answered(port: int, address: str = "127.0.0.1") -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        writer.write(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        found = b"200" in await reader.read(20)
        writer.close()
    except ConnectionError:
        return False
    return found


@pytest.mark.parametrize("settings", [{"connections": 8}, {"connections": 64, "connections_each": 8}])
def test_silent_connections_of_one_address_keep_nobody_out(settings: dict[str, int], tmp_path: Path) -> None:
    """Not even who has the same address, as phones behind one router have."""

    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            stage.settings["relay"] = settings
            await stage.start("relay", "scrambler-1", "issuer")
            port = stage.sockets["relay"].getsockname()[1]
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(12)]
            await asyncio.sleep(0.05)
            assert [await _answered(port), await _answered(port, "127.0.0.2")] == [True, True]
            crowd = await stage.phones().send(stage.sendings())  # eight at a time
            assert (crowd.taken, dict(crowd.refused)) == (PEOPLE, {})
            assert stage.meters["relay"].of("refused", "silent connection") > 0
            for _, one in held:
                one.close()

    asyncio.run(run())


def test_one_address_has_no_more_connections_than_it_may(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            stage.settings["relay"] = {"connections_each": 2}
            await stage.start("relay")
            port = stage.sockets["relay"].getsockname()[1]
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            size = stage.document.sealed_request
            for _, one in held:  # requests that are being read, not silent
                one.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: message/ohttp-req\r\n")
                one.write(b"Content-Length: %d\r\n\r\n" % size)
            await asyncio.sleep(0.1)
            assert [await _answered(port), await _answered(port, "127.0.0.2")] == [False, True]
            for _, one in held:
                one.close()

    asyncio.run(run())


# Codes


class Counting:
    """Counts what a key signs."""

    def __init__(self, stage: PhoneStage, *, fails: int = 0) -> None:
        self.signed, self.fails = 0, fails
        service = stage.services["issuer"]
        assert isinstance(service, Issuer)
        right = service._sign

        async def sign(key: str, body: bytes) -> bytes:
            self.signed += 1
            await asyncio.sleep(0.01)
            if self.signed <= self.fails:
                message = "the process is gone"
                raise RuntimeError(message)
            return await right(key, body)

        service._sign = sign  # type: ignore[method-assign]


def requests_of(stage: PhoneStage, count: int, step: int = 1) -> list[bytes]:
    spki = stage.document.token_key(step)
    return [blind(spki, token_challenge("issuer.example", bytes([one]) * 32, "")).request for one in range(count)]


async def ask(session: ClientSession, stage: PhoneStage, body: bytes, *, step: int = 1, person: int = 0) -> Any:
    url = f"{stage.url('issuer')}/tasks/{stage.document.id.hex()}/steps/{step}/token"
    headers = stage.proof(body, person=person, step=step)
    async with session.post(url, data=body, headers=headers) as answer:
        return answer.status, await answer.read()


def test_an_issuer_signs_nothing_for_a_code_that_is_used(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("issuer")
            counting, (first, second) = Counting(stage), requests_of(stage, 2)
            async with ClientSession() as session:
                status, token = await ask(session, stage, first)
                assert (status, counting.signed) == (200, 1)
                assert await ask(session, stage, second) == (403, b"code used\n")
                assert counting.signed == 1
                assert await ask(session, stage, first) == (200, token)
                broken = first[:3] + b"\xff" * 256
                assert (await ask(session, stage, broken, person=1))[0] == 400
                assert (await ask(session, stage, first, person=1))[0] == 200  # the broken one has cost nothing

    asyncio.run(run())


def test_of_different_requests_at_once_one_is_signed(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("issuer")
            counting = Counting(stage)
            async with ClientSession() as session:
                answers = await asyncio.gather(*(ask(session, stage, one) for one in requests_of(stage, 8)))
            assert sorted(status for status, _ in answers) == [200, *[403] * 7]
            assert counting.signed == 1

    asyncio.run(run())


def test_an_issuer_that_fails_while_it_signs_gives_the_same_request_its_token_later(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("issuer")
            _, (first, second) = Counting(stage, fails=1), requests_of(stage, 2)
            async with ClientSession() as session:
                assert (await ask(session, stage, first))[0] == 500
                assert (await ask(session, stage, second))[0] == 403
                key = stage.keys["issuer"].tokens[0]
                assert isinstance(key, IssuerKey)
                assert await ask(session, stage, first) == (200, key.sign(first))

    asyncio.run(run())


def test_where_a_person_answers_one_step_a_code_is_for_one(tmp_path: Path) -> None:
    async def run() -> None:
        text = plan_text(more='per_person = "one"')
        async with PhoneStage(tmp_path, text) as stage:
            await stage.start("issuer")
            async with ClientSession() as session:
                found = [await ask(session, stage, requests_of(stage, 1, step)[0], step=step) for step in (2, 1)]
                assert [status for status, _ in found] == [200, 403]

    asyncio.run(run())


def test_tokens_of_a_task_that_is_over_are_not_signed(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("issuer")
            task = stage.services["issuer"].tasks[stage.document.id]
            earlier = stage.document.model_copy(update={"start": "2026-01-01T10:00:00.000Z"})
            stage.services["issuer"].tasks[stage.document.id] = type(task)(earlier, task.promise)
            async with ClientSession() as session:
                assert await ask(session, stage, requests_of(stage, 1)[0]) == (410, b"too late\n")

    asyncio.run(run())
