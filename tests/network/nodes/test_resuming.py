"""Nodes that are killed and started again with the same folder: nothing is lost, nothing is released twice."""

from __future__ import annotations

import asyncio
import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hushuffle.network.nodes.journal import Room
from hushuffle.network.nodes.result import RunFailedError
from network.network_tools import Stage, arrived, counts, deployed, plan_text, stage
from network.nodes.test_spool import full_disk
from runtime_cases import bounded, later, until


def left(folder: Path) -> list[str]:
    """Return the endings of the files in a folder."""
    return sorted({path.name.rpartition(".")[2] for path in folder.iterdir()})


def forget(scene: Stage) -> None:
    """Do what a process does when its nodes have ended well."""
    for node in scene.nodes.values():
        node.forget()


def test_a_scrambler_killed_while_gathering_goes_on_with_what_had_come(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path, recorded=True) as scene:
            scene.kept = tmp_path / "kept"
            scene.start_servers()
            killed = scene.scramblers[0]
            *early, late = scene.sources_of(killed)
            scene.start(*early, *scene.sources_of(scene.scramblers[1]))
            await scene.wait(*early)  # they are told that all is well, and will not come again
            await scene.kill(killed)
            assert {path.stat().st_mode & 0o777 for path in scene.kept.iterdir()} == {0o600}
            scene.start(killed, late)
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert (scene.journals[killed].accepted, scene.journals[killed].facts["resumed"]) == (6, 5)
            forget(scene)
            assert left(scene.kept) == ["released", "told"]  # no message
            # Once more, with all its sources: what is released stays released.
            cells = scene.trace.cells
            scene.start(killed, *early, late)
            await until(lambda: scene.rejected(killed))
            await scene.wait(*early, late)
            later(30.0)  # it has tried to tell the targets, who are gone
            await scene.wait(killed)
            assert scene.rejected(killed) == {"duplicate": 1}
            assert scene.trace.cells == cells + 6  # what the sources sent it, and nothing else

    bounded(scenes())


def test_a_scrambler_that_cannot_keep_a_message_does_not_say_that_it_has_it(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.kept = tmp_path / "kept"
            scene.start_servers()
            name = scene.scramblers[0]
            node, tries = scene.nodes[name], list[int]()
            spool = node._spools[1]  # type: ignore[attr-defined]
            append = spool.append

            async def full(records: list[bytes]) -> None:
                tries.append(len(records))
                if len(tries) <= 3:
                    raise OSError(28, "No space left on device")
                await append(records)

            spool.append = full
            source = scene.sources_of(name)[0]
            scene.start(source)
            await scene.wait(source)
            assert tries == [1, 1, 1, 1]  # the same message, until it is safe
            assert len(spool.read()) == 1
            scene.start(*(one for one in scene.sources if one != source))
            assert counts(await scene.result()) == arrived(scene.deployment)

    bounded(scenes())


def test_a_target_killed_with_a_batch_in_hand_has_it_still(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.kept = tmp_path / "kept"
            scene.start_servers()
            first, second = scene.scramblers
            scene.start(*scene.sources_of(first))
            await scene.wait(first)
            await scene.kill(*scene.computes)
            scene.start(*scene.computes)
            scene.start(*scene.sources_of(second))
            result = await scene.result()
            assert counts(result) == arrived(scene.deployment)
            assert (result.steps[0].sources, result.steps[0].lost_batches) == (12, 0)
            forget(scene)
            assert left(scene.kept) == ["released", "told"]
            scene.start(scene.computes[0])  # it has told, and knows
            await scene.wait(scene.computes[0])
            assert scene.tasks[scene.computes[0]].exception() is None

    bounded(scenes())


def test_a_result_killed_with_parts_in_hand_has_them_still(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.kept = tmp_path / "kept"
            *computes, last = scene.computes
            scene.start(scene.document.result, *computes, *scene.scramblers)
            scene.start(last)
            node = scene.nodes[last]
            told = asyncio.Event()
            report = node._report

            async def later(contents: list[bytes], *, number: int = 0) -> None:
                await told.wait()
                await report(contents, number=number)

            node._report = later  # type: ignore[method-assign]
            scene.start(*scene.sources)
            await scene.wait(*computes)  # two of three have told, and are gone
            await scene.kill(scene.document.result)
            told.set()
            scene.start(scene.document.result)
            assert counts(await scene.result()) == arrived(scene.deployment)
            # And once more, after everybody has gone, as when the result could not be written.
            scene.start(scene.document.result)
            assert counts(await scene.result()) == arrived(scene.deployment)
            forget(scene)
            assert left(scene.kept) == ["released", "told"]

    bounded(scenes())


def test_a_result_on_a_full_disk_takes_what_it_has_room_for(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.kept = tmp_path / "kept"
            with full_disk(600), pytest.raises(Exception, match=r"no room for the .* bytes that will be written"):
                scene.node(scene.document.result)
            scene.start_servers()
            scene.start(*scene.sources)
            node: Any = scene.nodes[scene.document.result]
            assert isinstance(node._room, Room)
            keep, tries = node._spool.append, list[int]()

            async def full(records: list[bytes]) -> None:
                tries.append(len(records))
                if node._room._path.exists():
                    raise OSError(28, "No space left on device")
                await keep(records)

            node._spool.append = full
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert len(tries) == 4  # the first gives the room free

    bounded(scenes())


def started(text: str, tmp_path: Path, ago: float) -> Stage:
    """Return the nodes of a plan whose run has begun some seconds ago."""
    made, loopback = deployed(text)
    document = made.document.starting(dt.datetime.now(dt.UTC) - dt.timedelta(seconds=ago))
    return Stage(replace(made, document=document), loopback, tmp_path)


def test_nodes_started_at_different_times_keep_the_same_times(tmp_path: Path) -> None:
    async def scenes() -> None:
        # Collected until 1000 s after the start, which is 900 s ago; targets would wait for longer.
        async with started(plan_text(collect=1000.0, patience=200.0), tmp_path, 900.0) as scene:
            scene.start_servers()
            nodes = [scene.nodes[name] for name in (*scene.computes, *scene.scramblers, scene.document.result)]
            *early, _late = scene.sources
            scene.start(*early)
            assert all(40 < node._left(1000.0) <= 100 for node in nodes)  # some seconds may have passed since
            await scene.wait(*early)
            later(100.0)
            result = await scene.result()
            assert result.steps[0].sources == 11

    bounded(scenes())


def test_a_scrambler_that_comes_when_the_time_is_over_sends_nothing(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with started(plan_text(collect=2.0, patience=1.0), tmp_path, 60.0) as scene:
            scene.start(scene.document.result, *scene.computes, *scene.scramblers, *scene.sources)
            with pytest.raises(RunFailedError):
                await scene.result()
            assert all(scene.journals[name].sent == 0 for name in scene.scramblers)
            assert scene.rejected(*scene.scramblers)["below minimum"] == 2

    bounded(scenes())
