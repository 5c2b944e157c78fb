"""Who owns the disk: it is full when batches are to leave; nothing is lost if there is room again in time."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

from hushuffle.errors import DataError
from hushuffle_network.scrambler import Scrambler
from hushuffle_network.service import Service
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage

PLAN = plan_text(sets='[["age"]]').replace("collect = 60.0", "collect = 10.0").replace("least = 0.5", "least = 0.2")


def fill(service: Service) -> asyncio.Event:
    """Let every write of a service fail as on a full disk, until the event is set; reading goes on."""
    room, right = asyncio.Event(), service.store.do

    async def do(work: Any) -> Any:
        def tried(db: Any) -> Any:
            changes, found = db.total_changes, work(db)
            if db.total_changes != changes and not room.is_set():
                message = "the database cannot be used: No space left on device."
                raise DataError(message)
            return found

        return await right(tried)

    service.store.do = do  # type: ignore[method-assign]
    return room


def test_a_disk_that_is_full_at_the_deadline_loses_nothing_if_there_is_room_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN) as stage:
            stage.out = io.StringIO()
            await stage.start_all()
            scrambler = stage.services["scrambler-1"]
            assert isinstance(scrambler, Scrambler)
            sent = stage.sendings()
            assert (await stage.phones().send(sent[:7])).taken == 7
            room = fill(scrambler)
            late = await stage.phones().send(sent[7:8])
            assert late.taken == 0  # no phone is told "taken" for what the disk does not have
            while "again_until" not in stage.out.getvalue():  # noqa: ASYNC110 - the deadline has passed
                await asyncio.sleep(0.05)
            room.set()
            (answer,) = (await stage.result())["answers"]
            assert (answer["sources"], answer["lost_batches"]) == (7, 0)
            assert stage.meters["scrambler-1"].of("batches", "given_up") == 0

    asyncio.run(run())


def test_a_target_and_the_result_with_a_full_disk_tell_when_there_is_room(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN) as stage:
            stage.out = io.StringIO()
            await stage.start_all()
            room = fill(stage.services["result"])
            await stage.phones().send(stage.sendings())
            while not stage.meters["result"].of("refused", "busy"):  # noqa: ASYNC110 - a counter has no event
                await asyncio.sleep(0.05)
            target = fill(stage.services["target-1-1"])
            room.set()
            while "again_until" not in stage.out.getvalue():  # noqa: ASYNC110 - it has tried to tell its numbers
                await asyncio.sleep(0.05)
            target.set()
            (answer,) = (await stage.result())["answers"]
            assert answer["sources"] == 24

    asyncio.run(run())


def test_a_result_with_a_full_disk_at_the_end_says_later_that_there_is_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        plan = PLAN.replace("collect = 10.0", "collect = 1.0").replace("patience = 5.0", "patience = 1.0")
        async with PhoneStage(tmp_path, plan) as stage:
            stage.out = io.StringIO()
            await stage.start("result")
            room = fill(stage.services["result"])
            while "again_until" not in stage.out.getvalue():  # noqa: ASYNC110 - the task is over
                await asyncio.sleep(0.05)
            room.set()
            assert "no report arrived from target-1-1" in (await stage.result())["failed"]

    asyncio.run(run())
