"""Tickets: the first scrambler's batches are of people, whoever brings it messages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import ClientSession

from hushuffle.errors import DataError
from hushuffle_network.batches import Onions
from hushuffle_network.crowd import Phones
from hushuffle_network.scrambler import Scrambler
from hushuffle_network.service import Task
from network.phone_stage import PhoneStage
from network.test_adversaries import Cheating, everybody, refused, token_for


async def tickets_of(stage: PhoneStage, phones: Phones, count: int) -> list[bytes]:
    async with ClientSession() as session:
        return [await phones.ticket(session, sending) for sending in stage.sendings()[:count]]


def waiting(stage: PhoneStage) -> int:
    scrambler = stage.services["scrambler-1"]
    assert isinstance(scrambler, Scrambler)
    return scrambler._gatherings[stage.document.id, 1].waiting


@pytest.mark.slow  # it waits for who does not come
def test_a_message_without_a_ticket_does_not_count(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            sent, phones, onions = stage.sendings(), stage.phones(), Onions(stage.document, 1)
            async with ClientSession() as session:
                token = await token_for(session, stage, sent[0], 0)
                for shown in (bytes(354), token, token[:353] + b"\xff"):
                    assert await phones.post(session, 1, onions.message(0, token, None), shown) == "no valid ticket"
                assert (waiting(stage), refused(stage, "scrambler-1")["no valid ticket"]) == (0, 3)
            await phones.send(sent[1:])
            assert stage.counted(await stage.result(), sent) == everybody(sent[1:])

    asyncio.run(run())


def test_a_ticket_is_for_one_message_of_one_step(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            await stage.start("relay", "scrambler-1", "issuer")
            phones, (first, second) = stage.phones(), (Onions(stage.document, number) for number in (1, 2))
            sending = next(one for one in stage.sendings() if one.step == 1)
            async with ClientSession() as session:
                ticket, message = await phones.ticket(session, sending), first.message(0, None, None)
                assert await phones.post(session, 2, second.message(0, None, None), ticket) == "no valid ticket"
                assert await phones.post(session, 1, message, ticket) == "taken"
                assert await phones.post(session, 1, first.message(0, None, None), ticket) == "ticket used"
                assert await phones.post(session, 1, message, ticket) == "taken"  # once more: nothing changes
                assert waiting(stage) == 1
                await stage.stop("scrambler-1")
                await stage.start("scrambler-1")
                assert await phones.post(session, 1, first.message(0, None, None), ticket) == "ticket used"
                assert waiting(stage) == 1

    asyncio.run(run())


def test_a_relay_cannot_fill_a_batch_around_one_person(tmp_path: Path) -> None:
    """It keeps all others back and makes messages of its own: nothing leaves the first scrambler."""

    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            phones, onions = stage.phones(), Onions(stage.document, 1)
            least = stage.document.step(1).min_batch
            people = await tickets_of(stage, phones, least - 1)
            async with ClientSession() as session:
                for ticket in people:
                    assert await phones.post(session, 1, onions.message(0, None, None), ticket) == "taken"
                for _ in range(3 * least):
                    forged = await phones.post(session, 1, onions.message(2, None, None), people[0])
                    assert forged == "ticket used"
            scrambler = stage.services["scrambler-1"]
            assert isinstance(scrambler, Scrambler)
            await scrambler._release_full(scrambler.tasks[stage.document.id], 1, last=True)
            meter = stage.meters["scrambler-1"]
            assert (meter.of("batches", "released"), meter.of("batches", "given_up")) == (0, 1)
            assert "failed" in await stage.result()

    asyncio.run(run())


def test_an_issuer_refuses_a_step_with_one_key_for_both(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            await stage.start("issuer")
            (first, second), issuer = stage.document.steps, stage.services["issuer"]
            issuer.tasks.clear()
            for changed in ({"ticket_key": first.token_key}, {"ticket_key": second.ticket_key}):
                steps = (first.model_copy(update=changed), second)
                document = stage.document.model_copy(update={"steps": steps})
                with pytest.raises(DataError, match="needs two keys of its own"):
                    issuer.check(Task(document, stage.promise))
            issuer.check(Task(stage.document, stage.promise))

    asyncio.run(run())
