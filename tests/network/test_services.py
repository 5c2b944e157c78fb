"""A whole task over HTTP: every message counts once, services go on where they were, limits hold."""

from __future__ import annotations

import asyncio
import io
import json
import re
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from aiohttp import ClientSession

from hushuffle.errors import DataError
from hushuffle_network.batches import Onions
from hushuffle_network.formats import blind, encapsulate, token_challenge
from hushuffle_network.meter import METRICS
from hushuffle_network.relay import REQUEST
from hushuffle_network.scrambler import Scrambler
from hushuffle_network.task import SEAL
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage, shown


def test_a_whole_task_through_relay_two_scramblers_and_targets(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            await stage.start_all()
            sent, phones = stage.sendings(), stage.phones()
            crowd = await phones.send(sent)
            assert (crowd.taken, dict(crowd.refused)) == (48, {})
            result = await stage.result()
            wanted = stage.used(sent)
            for number, answer in enumerate(result["answers"], 1):
                counts = [answer[name] for name in ("sources", "planned", "lost_batches", "without_token")]
                assert counts == [24, 24, 0, 0]
                assert np.array_equal(answer["received"], wanted[number][0])
            assert await phones.passed() == (48, 48)
            assert stage.meters["scrambler-1"].of("dummies") == 2 * 3 * 3  # steps, batches, dummies of each
            written = tmp_path / "results" / f"{stage.document.id.hex()}.json"
            assert json.loads(written.read_bytes()) == result

    asyncio.run(run())


@pytest.mark.parametrize(("traffic", "dummies"), [("dummies = 3\nbatch = 8\ncapped = true", 9), ("flood = 0", 0)])
def test_a_task_with_a_cap_or_without_dummies_counts_every_record_once(
    traffic: str, dummies: int, tmp_path: Path
) -> None:
    async def run() -> None:
        text = plan_text(sets='[["age"]]', traffic=traffic)
        async with PhoneStage(tmp_path, text, chain=1) as stage:
            await stage.start_all()
            sent, phones = stage.sendings(), stage.phones()
            await phones.send(sent)
            result = await stage.result()
            (answer,) = result["answers"]
            counts = [answer[name] for name in ("sources", "planned", "lost_batches", "without_token")]
            assert counts == [24, 24, 0, 0]
            assert np.array_equal(answer["received"], stage.used(sent)[1][0])
            assert stage.meters["scrambler-1"].of("dummies") == dummies
            (caution,) = result["cautions"]
            assert "passed only one scrambler, which knows the target of each message" in caution

    asyncio.run(run())


def test_services_that_are_started_again_go_on_and_every_message_counts_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            names = [name for name in stage.roles if name not in ("relay", "issuer")]
            await stage.start_all("scrambler-2", "target-1-1", "target-2-2", "result")
            sent, phones = stage.sendings(), stage.phones()
            await phones.send(sent[:20])
            await stage.stop("scrambler-1")
            await stage.start("scrambler-1")
            crowd = await phones.send(sent[20:])
            assert crowd.taken == 48
            await stage.stop("scrambler-1")  # batches were released, and nobody was there to take them
            await stage.start("scrambler-1", "scrambler-2")
            await asyncio.sleep(0.3)
            for name in names:
                if name in stage.running:
                    await stage.stop(name)
                await stage.start(name)
            result = await stage.result()
            wanted = stage.used(sent)
            for number, answer in enumerate(result["answers"], 1):
                assert answer["sources"] == 24
                assert np.array_equal(answer["received"], wanted[number][0])
            assert await phones.passed() == (48, 48)
            await stage.stop("result")
            await stage.start("result")
            assert await stage.result() == result

    asyncio.run(run())


def test_a_step_with_too_few_people_gives_its_messages_up(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, plan_text(sets='[["age"]]')) as stage:
            await stage.start_all()
            sent, phones, scrambler = stage.sendings(), stage.phones(), stage.services["scrambler-1"]
            assert isinstance(scrambler, Scrambler)
            await phones.send(sent[:9])  # a batch of 8, and 1 where 5 are asked for
            await scrambler._release_full(scrambler.tasks[stage.document.id], 1, last=True)  # as at the deadline
            result = await stage.result()
            assert "only 8 of 24 sources came through" in result["failed"]
            assert stage.meters["scrambler-1"].of("batches", "given_up") == 1
            assert await scrambler.store.do(lambda db: db.execute("SELECT count(*) FROM message").fetchone()) == (0,)
            late = await stage.phones().send(sent[9:10])
            assert dict(late.refused) == {"too late": 1}

    asyncio.run(run())


def test_whoever_was_told_that_a_message_is_taken_is_in_a_batch_when_time_is_over(tmp_path: Path) -> None:
    """Messages that are on their way to the disk at the deadline are not forgotten."""

    async def run() -> None:
        async with PhoneStage(tmp_path, plan_text(sets='[["age"]]')) as stage:
            await stage.start_all()
            scrambler = stage.services["scrambler-1"]
            assert isinstance(scrambler, Scrambler)
            onions, document, said = Onions(stage.document, 1), stage.document, list[str]()
            path = f"/tasks/{document.id.hex()}/steps/0001"
            messages = [onions.message(0, None, None) for _ in range(15)]
            asked = [blind(document.ticket_key(1), document.ticket_challenge(1)) for _ in messages]
            tickets = [one.finalize(stage.keys["issuer"].tokens[1].sign(one.request)) for one in asked]

            async def take(message: bytes, ticket: bytes) -> None:
                said.append(await scrambler._take("POST", path, message, ticket))

            waiting = [asyncio.create_task(take(*one)) for one in zip(messages, tickets, strict=True)]
            await asyncio.sleep(0)  # all are asked, none is on the disk
            await scrambler._release_full(scrambler.tasks[document.id], 1, last=True)
            await asyncio.gather(*waiting)
            rows = await scrambler.store.do(lambda db: db.execute("SELECT sources FROM released").fetchall())
            assert said == ["taken"] * 15
            assert sorted(sources for (sources,) in rows) == [0, 7, 8]

    asyncio.run(run())


def test_what_is_not_of_the_form_is_refused_with_a_reason(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            await stage.start("relay", "scrambler-1", "issuer", "target-1-1")
            document, sending = stage.document, stage.sendings()[0]
            task = document.id.hex()
            size, token = document.sealed_request, f"{stage.url('issuer')}/tasks/{task}/steps/1/token"
            typed = {"Content-Type": REQUEST}
            spki = document.token_key(1)
            asked = [blind(spki, token_challenge("issuer.example", bytes([one]) * 32, "")).request for one in (1, 2)]
            other = encapsulate(stage.keys["scrambler-2"].gateway.config, bytes(size - 7 - SEAL))[0]
            right, wrong = ([shown(document, code, one) for one in asked] for code in (sending.code, "0f" * 16))
            cases = [
                (stage.url("relay") + "/", bytes(size), {}, 415, "wrong type"),
                (stage.url("relay") + "/", bytes(size - 1), typed, 413, "wrong size"),
                (stage.url("relay") + "/", other, typed, 400, ""),
                (stage.url("scrambler-1") + "/gateway", other, typed, 400, "not for this gateway"),
                (token, asked[0], wrong[0], 401, "no such code"),
                (token, asked[0], {"Authorization": f"Bearer {sending.code}"}, 401, "no such code"),
                (token, asked[0], {}, 401, "no such code"),
                (token, bytes(259), shown(document, sending.code, bytes(259)), 400, "no request for a token"),
                (token, bytes(10), right[0], 413, "wrong size"),
                (token, asked[0], right[0], 200, None),
                (token, asked[0], right[0], 200, None),
                (token, asked[1], right[0], 401, "no such code"),
                (token, asked[1], right[1], 403, "code used"),
                (token.replace("steps/1", "steps/9"), asked[0], right[0], 404, "no such step"),
                (token.replace(task, "0" * 64), asked[0], right[0], 404, "no such task"),
                (stage.url("scrambler-1") + f"/tasks/{task}/batches", b"", {}, 403, "not from here"),
                (stage.url("target-1-1") + f"/tasks/{task}/batches", b"", {}, 400, "not a batch"),
                (stage.url("target-1-1") + "/nothing", b"", {}, 404, "no such place"),
            ]
            async with ClientSession() as session:
                for url, body, headers, status, reason in cases:
                    async with session.post(url, data=body, headers=headers) as answer:
                        said = await answer.read()
                        assert answer.status == status, (url, said)
                        assert reason is None or said.decode().strip() == reason
                async with session.get(stage.url("target-1-1") + f"/tasks/{task}/passage/7") as answer:
                    assert (answer.status, await answer.text()) == (404, "no such batch\n")

    asyncio.run(run())


def test_health_counters_and_the_document_are_there_without_keys(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            await stage.start("relay", "scrambler-1")
            async with ClientSession() as session:
                async with session.get(stage.url("relay") + "/health") as answer:
                    about = {"service": "relay", "role": "relay", "state": "ready", "tasks": 1}
                    assert await answer.json() == about
                async with session.get(stage.url("relay") + f"/tasks/{stage.document.id.hex()}") as answer:
                    assert await answer.read() == stage.document.content
                async with session.get(stage.url("scrambler-1") + "/ohttp-keys") as answer:
                    keys = await answer.read()
                    assert keys[2:] == stage.document.gateway
                    assert int.from_bytes(keys[:2]) == len(keys) - 2
                await stage.phones().send([])
                async with session.get(stage.url("scrambler-1") + "/metrics") as answer:
                    text = await answer.text()
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            assert all(re.fullmatch(r'[a-z_]+(\{[a-z]+="[a-z_ ]+"\})? [0-9]+', line) for line in lines)
            assert {re.split(r"[{ ]", line)[0] for line in lines} <= set(METRICS)
            assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} == set(METRICS)

    asyncio.run(run())


def test_logs_and_counters_name_nobody(tmp_path: Path) -> None:
    out = io.StringIO()

    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            stage.out = out
            await stage.start_all()
            sent, phones = stage.sendings(), stage.phones()
            await phones.send(sent)
            await stage.result()
            text = out.getvalue() + "".join(meter.text() for meter in stage.meters.values())
            nonces = [one.hex() for many in phones.crowd.nonces.values() for one in many]
            assert not any(secret in text for secret in [*stage.codes, *nonces, "127.0.0.1", "pay"])
            for line in out.getvalue().splitlines():
                assert {"time", "service", "role", "event"} <= json.loads(line).keys()

    asyncio.run(run())


def test_more_connections_than_allowed_are_closed(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            stage.connections, stage.settings["relay"] = 3, {"connections_each": 3}
            await stage.start("relay")
            port = stage.sockets["relay"].getsockname()[1]
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            size = stage.document.sealed_request
            for _, one in held:  # requests that are being read: silent ones would make room
                one.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: message/ohttp-req\r\n")
                one.write(b"Content-Length: %d\r\n\r\n" % size)
            await asyncio.sleep(0.1)
            assert not await _answers(port)
            for _, one in held:
                one.close()
                await one.wait_closed()
            await asyncio.sleep(0.05)
            assert await _answers(port)
            assert stage.meters["relay"].of("refused", "too many connections") == 1

    asyncio.run(run())


async def _answers(port: int) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        return b"200" in await reader.read(20)
    except ConnectionError:
        return False
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def test_content_that_does_not_come_ends_with_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle_network.service._SLOW", 0.1)

    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            await stage.start("relay")
            reader, writer = await asyncio.open_connection("127.0.0.1", stage.sockets["relay"].getsockname()[1])
            size, start = stage.document.sealed_request, time.monotonic()
            writer.write(
                f"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {REQUEST}\r\nContent-Length: {size}\r\n\r\n".encode()
            )
            head = await reader.read(100)
            assert b"408" in head
            assert time.monotonic() - start < 5
            writer.close()
            await writer.wait_closed()

    asyncio.run(run())


def test_a_service_refuses_tasks_in_which_it_has_no_part(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            out = stage.out = io.StringIO()
            stage.keys["scrambler-2"] = stage.keys["target-1-1"]
            await stage.start("scrambler-2")
            assert stage.services["scrambler-2"].tasks == {}
            assert "or lists keys that" in out.getvalue()
            (tmp_path / "tasks" / "broken.json").write_text("{}")
            await stage.services["scrambler-2"].again()
            assert "broken.json" in out.getvalue()

    asyncio.run(run())
    with pytest.raises(DataError, match="another version, or for another service"):
        asyncio.run(_other_state(tmp_path))


async def _other_state(folder: Path) -> None:
    (folder / "second").mkdir()
    async with PhoneStage(folder / "second") as stage:
        (folder / "second" / "state").mkdir()
        (folder / "state" / "scrambler-2.sqlite").rename(folder / "second" / "state" / "relay.sqlite")
        await stage.start("relay")
