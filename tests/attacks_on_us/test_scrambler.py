"""A scrambler: messages that it sends twice, in another batch, or leaves out; what reaches the published sums."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hushuffle_network.scrambler import Scrambler
from hushuffle_network.target import Target
from network.test_adversaries import Cheating, refused, run_all


def again(stage: Cheating, name: str) -> None:
    """Let a scrambler put the messages of the first batch in the place of those of the second."""
    service = stage.services[name]
    assert isinstance(service, Scrambler)
    right, batches = service._shuffled, dict[int, list[bytes]]()

    def shuffled(document: Any, number: int, batch: int, messages: list[bytes], *rest: Any) -> dict[str, bytes]:
        batches[batch] = messages
        return right(document, number, batch, batches.get(1, messages), *rest)

    service._shuffled = shuffled  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize(("name", "reason"), [("scrambler-1", "replaced"), ("scrambler-2", "token used")])
def test_people_who_are_sent_in_two_batches_count_once(name: str, reason: str, tmp_path: Path) -> None:
    """With other dummies each time, two batches of the same people show more of them than one."""

    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            again(stage, name)
            sent = stage.sendings()
            result = await run_all(stage, sent)
            receivers = (
                ["scrambler-2"]
                if name == "scrambler-1"
                else [service for service in stage.meters if "target" in service]
            )
            assert refused(stage, *receivers)[reason] >= 8
            (answer,) = result["answers"]
            assert (answer["sources"], answer["lost_batches"]) == (8, 1)
            assert len(stage.counted(result, sent)) <= 8

    asyncio.run(run())


@pytest.mark.parametrize("name", ["scrambler-1", "scrambler-2"])
def test_a_batch_that_is_left_out_at_the_end_is_seen_by_its_people(name: str, tmp_path: Path) -> None:
    """A scrambler may keep a whole batch back and say that there are no more: whoever is in it learns that."""

    async def run() -> None:
        async with Cheating(tmp_path, least=0.4) as stage:
            await stage.start_all()
            service = stage.services[name]
            assert isinstance(service, Scrambler)
            right, closing = service._send, service._closing

            async def send(task: Any, number: int, batch: int, receiver: str) -> Any:
                return None if batch == 2 else await right(task, number, batch, receiver)

            service._send = send  # type: ignore[method-assign]
            service._closing = lambda document, number, _: closing(document, number, 1)  # type: ignore[method-assign,assignment]
            phones, sent = stage.phones(), stage.sendings()
            await phones.send(sent)
            await asyncio.sleep(1.0)
            for target in stage.services.values():
                if isinstance(target, Target):
                    target._all[stage.document.id].set()
            result = await stage.result()
            assert result["answers"][0]["sources"] == 8
            assert len(stage.counted(result, sent)) <= 8
            looked, passed = await phones.passed()
            assert looked - passed == 8

    asyncio.run(run())
