"""Requests that only somebody hostile sends: many at a time, compressed, malformed."""

from __future__ import annotations

import asyncio
import io
import zlib
from pathlib import Path

import pytest
from aiohttp import ClientSession

from hushuffle_network.batches import Link, Onions, head_of, pack
from hushuffle_network.parts import Counted, sealed_part
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage

PEOPLE = 16
PLAN = plan_text(sets='[["sex"]]').replace("people = 24", f"people = {PEOPLE}")


def test_a_message_in_many_batches_at_once_passes_the_next_scrambler_once(tmp_path: Path) -> None:
    batches = 8

    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("scrambler-2")
            document = stage.document
            onions, step, sign = Onions(document, 1), document.step(1), stage.keys["scrambler-1"].sign
            chosen = onions.wrap(0, onions.inner(0, None, None), after=0)

            async def post(session: ClientSession, batch: int) -> int:
                count = step.batch - 1 + step.dummies
                messages = [chosen, *(onions.wrap(1, onions.inner(1, None, None), after=0) for _ in range(count))]
                link = Link.signed(sign, document.id, 1, batch, "scrambler-1", step.batch, step.batch, len(messages))
                head = head_of(document, 1, batch, "scrambler-1", "scrambler-2", messages, trail=(link,))
                url = f"{stage.url('scrambler-2')}/tasks/{document.id.hex()}/batches"
                async with session.post(url, data=pack(head, messages, sign)) as answer:
                    return answer.status

            async with ClientSession() as session:
                assert set(await asyncio.gather(*(post(session, one) for one in range(1, batches + 1)))) == {200}
            line = f'reason="replaced"}} {batches - 1}'
            assert line in stage.meters["scrambler-2"].text()

    asyncio.run(run())


@pytest.mark.parametrize("numbers", ["A", "AAAA", "%%%%"])
def test_a_target_that_tells_nonsense_is_refused_and_the_result_starts_again(numbers: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("result")
            document = stage.document
            name = document.step(1).targets[0].name
            told = {"numbers": numbers}
            sealed = sealed_part(document, name, told)
            head = head_of(document, 1, 0, name, "result", [sealed])
            url = f"{stage.url('result')}/tasks/{document.id.hex()}/parts"
            async with (
                ClientSession() as session,
                session.post(url, data=pack(head, [sealed], stage.keys[name].sign)) as answer,
            ):
                assert answer.status == 400
            await stage.stop("result")
            await stage.start("result")

    asyncio.run(run())


def test_numbers_that_are_none_publish_nothing_and_stop_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("result")
            document = stage.document
            dummies, half = document.step(1).dummies, PEOPLE // 2
            keys = [stage.keys[f"scrambler-{number}"].sign for number in (1, 2)]

            def trail(batch: int) -> tuple[Link, Link]:
                first = (half, half, half + dummies)
                second = (half + dummies, half, half + 2 * dummies)
                return (
                    Link.signed(keys[0], document.id, 1, batch, "scrambler-1", *first),
                    Link.signed(keys[1], document.id, 1, batch, "scrambler-2", *second),
                )

            async with ClientSession() as session:
                for place, target in enumerate(document.step(1).targets):
                    counted = [
                        Counted(
                            batch=batch,
                            messages=0 if place else half + 2 * dummies,
                            valid=0 if place else half,
                            trail=trail(batch),
                        ).model_dump(mode="json")
                        for batch in (1, 2)
                    ]
                    nothing = "" if place else "AAAAAAAA+H8="  # nan
                    last = place + 1 == len(document.step(1).targets)
                    for what, content, statuses in (
                        ("counts", {"batches": counted, "closed": 2}, {200} if last else {202}),
                        ("parts", {"numbers": nothing}, {200}),
                    ):
                        sealed = sealed_part(document, target.name, content)
                        head = head_of(document, 1, 0, target.name, "result", [sealed])
                        body = pack(head, [sealed], stage.keys[target.name].sign)
                        url = f"{stage.url('result')}/tasks/{document.id.hex()}/{what}"
                        async with session.post(url, data=body) as answer:
                            assert answer.status in statuses
            await stage.stop("result")
            await stage.start("result")
            assert "failed" in await stage.result(5)

    asyncio.run(run())


def test_nothing_is_inflated(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("result")
            url = f"{stage.url('result')}/tasks/{stage.document.id.hex()}/parts"
            body = zlib.compress(bytes(1 << 20))
            async with (
                ClientSession() as session,
                session.post(url, data=body, headers={"Content-Encoding": "deflate"}) as answer,
            ):
                assert answer.status == 415

    asyncio.run(run())


async def _raw(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    answer = await reader.read(200)
    writer.close()
    return answer


def test_malformed_requests_leave_no_address_and_no_quotation(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            stage.out = io.StringIO()
            await stage.start("issuer")
            port = int(stage.url("issuer").rpartition(":")[2])
            assert b" 400 " in await _raw(port, b"GET / HTTP/1.1\r\nHost: x\r\nsecret header\r\n\r\n")
            path = f"/tasks/{stage.document.id.hex()}/steps/1/token".encode()
            head = b" HTTP/1.1\r\nHost: x\r\nContent-Length: 259\r\nAuthorization: Bearer \xff\r\n\r\n"
            assert b" 401 " in await _raw(port, b"POST " + path + head + bytes(259))
            said = stage.out.getvalue()
            assert "127.0.0.1" not in said
            assert "secret" not in said

    asyncio.run(run())
    written = "".join(capfd.readouterr()) + caplog.text
    assert "secret" not in written
    assert "127.0.0.1" not in written
