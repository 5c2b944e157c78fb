"""Nodes that lie, each among honest ones: what they learn, what they prevent, and who counts it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hushuffle.network.nodes.connections import Control, Kind, Message, Reason
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.result import RunFailedError, RunResult
from hushuffle.network.nodes.scrambler import Gathering, ScramblerNode
from network.network_tools import Stage, arrived, deployed, plan_text, say, stage
from runtime_cases import bounded, later, until


def put(stage: Stage, name: str, kind: Callable[..., ScramblerNode], *, document: RunDocument | None = None) -> Journal:
    """Start a scrambler of another kind, or with another document, than the run's."""
    journal = stage.journals[name] = Journal(node=name)
    node = kind(document or stage.document, stage.identity(name), stage.loopback.private[name], journal=journal)
    stage.nodes[name], stage.tasks[name] = node, asyncio.create_task(node.run())
    return journal


class Chooser(ScramblerNode):
    """A scrambler that lets the message of one source through, and covers up for the others in one of several ways."""

    victim, way = "", ""

    async def _release(self, gathering: Gathering) -> None:
        step, number = self.document.step(gathering.number), gathering.number
        n, total = len(gathering.messages), len(gathering.messages) + step.dummies
        (chosen,) = (one for slot, one in gathering.messages.items() if gathering.batch.holders[slot] == self.victim)
        sent: dict[int, list[Message]] = {target: [] for target in range(len(step.computes))}
        sent[chosen.target].append(Message(number, 0, chosen.target, chosen.sealed))
        copies = [Message(number, 0, chosen.target, chosen.sealed)] * (total - 1)
        if self.way == "copies":
            sent[chosen.target] += copies
        if self.way == "forged":
            for place in range(total - 1):
                target = place % len(step.computes)
                sent[target].append(Message(number, 0, target, self._dummy(number, target)))
        claimed = dict.fromkeys(sent, n)
        if self.way == "fewer":
            claimed = dict.fromkeys(sent, step.min_batch)
        if self.way == "one target only":
            claimed = {target: n if target == chosen.target else 0 for target in sent}
        if self.way == "different":
            claimed |= {chosen.target: n - 1}
        for target, messages in sent.items():
            channel = await self._connect(step.computes[target])
            end = Control(Kind.END, number, numbers=(len(messages), claimed[target]))
            await channel.send(*messages, end)
            await channel.answer()
            await channel.close()


def chosen(tmp_path: Path, way: str, *, dummies: int = 4) -> tuple[RunResult, dict[str, int]]:
    """Run a batch of twelve through a scrambler that lets one message through; return the result, and refusals."""
    text = plan_text(people=12, traffic=f"dummies = {dummies}\nbatch = 12\nmin_batch = 10", collect=20.0, least=0.5)

    async def work() -> tuple[RunResult, dict[str, int]]:
        async with stage(text, tmp_path) as scene:
            scene.start(scene.document.result, *scene.computes)
            (name,), (victim, *_) = scene.scramblers, scene.sources
            put(scene, name, type("Chosen", (Chooser,), {"victim": victim, "way": way}))
            scene.start(*scene.sources)
            try:
                return await scene.result(), scene.rejected(*scene.journals)
            except RunFailedError as error:
                error.add_note(str(scene.rejected(*scene.journals)))
                raise

    return bounded(work())


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("nothing", "has 1 messages for 12 sources and 4 dummies"),
        ("fewer", "has 1 messages for 10 sources and 4 dummies"),
        ("one target only", "is complete at 1 of 3 compute nodes"),
        ("different", "has 11 sources at one compute node, 12 at another"),
    ],
)
def test_a_scrambler_that_keeps_messages_back_is_refused(way: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match=words) as caught:
        chosen(tmp_path, way)
    assert "'miscounted': " in caught.value.__notes__[0]


def test_copies_do_not_make_up_for_what_is_kept_back(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="has 1 messages for 12 sources and 4 dummies"):
        chosen(tmp_path, "copies")


def test_what_a_scrambler_that_forges_its_batch_can_still_show(tmp_path: Path) -> None:
    """The page on security and `cautions` in the result say so: when this fails, they say too much."""
    result, refusals = chosen(tmp_path, "forged")
    assert (result.steps[0].sources, refusals) == (12, {})
    assert result.steps[0].combined[0].sum() <= 1


def test_a_target_that_asks_scramblers_and_members_learns_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.start_servers()
            target, other = scene.computes[:2]
            scrambler = scene.scramblers[0]
            questions = [Control(kind, 1) for kind in (Kind.HEALTH, Kind.WANT, Kind.END, Kind.ABORT, Kind.HELLO)]
            for asker, asked in ((target, scrambler), (target, other), (scrambler, scene.document.result)):
                for question in questions:
                    answer = await say(await scene.client(asker, asked), [question])
                    assert (answer.kind, answer.reason, set(answer.numbers)) == (
                        Kind.REFUSED,
                        Reason.IDENTITY,
                        {0},
                    )
            scene.start(*scene.sources)
            assert (await scene.result()).steps[0].sources == 12  # and it has broken nothing

    bounded(work())


@pytest.mark.parametrize(("ranges", "decides"), [("", True), ("ranges = { x = [0, 200] }", False)])
def test_a_source_that_lies_decides_a_sum_only_where_nothing_bounds_it(
    ranges: str, decides: bool, tmp_path: Path
) -> None:
    more = f'values = ["x"]\nfunctions = ["count", "sum"]\n{ranges}'
    made, loopback = deployed(plan_text(people=12, traffic="dummies = 3\nbatch = 12\nmin_batch = 9", more=more))
    whole = arrived(made)
    name = next(name for name in made.people if arrived(made, lost=[name]) != whole)  # its message is no dummy
    (person,) = made.people[name]
    lie = replace(person, row=np.append(person.row[:-1], 1e308))
    false = replace(made, people={**made.people, name: (lie,)})

    async def work() -> None:
        async with Stage(false, loopback, tmp_path) as scene:
            scene.start_servers()
            scene.start(*scene.sources)
            (step,) = (await scene.result()).steps
            assert (step.combined[1].max() > 1e300) == decides
            assert scene.rejected(*scene.computes) == ({} if decides else {"malformed": 1})

    bounded(work())


def alike(document: RunDocument, **changes: object) -> RunDocument:
    """Return a weaker document whose digest agrees in all bytes but the last, as a drawer might look for."""
    values = json.loads(document.text)
    values["steps"][0] |= changes
    weak = RunDocument.model_validate(values)
    vars(weak)["digest"] = document.digest[:-1] + bytes([document.digest[-1] ^ 1])
    return weak


def test_a_drawer_with_two_documents_that_are_nearly_alike_gets_nothing_released(tmp_path: Path) -> None:
    text = plan_text(people=6, traffic="dummies = 8\nbatch = 6\nmin_batch = 5", patience=100.0)
    made, loopback = deployed(text)
    weak = alike(made.document, min_batch=1, dummies=0)

    async def work() -> None:
        async with Stage(made, loopback, tmp_path) as scene:
            scene.start(made.document.result, *scene.computes)
            (name,), (victim, *_) = scene.scramblers, scene.sources
            journal = put(scene, name, ScramblerNode, document=weak)
            scene.start(victim)
            await until(lambda: journal.rejected[Reason.OTHER_RUN])
            later(60.0)
            await scene.wait(victim, name)
            assert (journal.accepted, journal.sent) == (0, 0)
            assert scene.journals[victim].sent == 0

    bounded(work())


def test_the_places_of_one_node_count_once(tmp_path: Path) -> None:
    made, loopback = deployed(plan_text(people=6, traffic="dummies = 8\nbatch = 6\nmin_batch = 4"))
    values = json.loads(made.document.text)
    (batch,) = values["steps"][0]["batches"]
    victim, *others = batch["holders"]
    batch["holders"] = [victim, *["mallory"] * 5]
    document = RunDocument.model_validate(values)
    people = {"mallory": [person for name in others for person in made.people[name]]}
    people[victim] = list(made.people[victim])
    sybils = replace(made, document=document, people=people)

    async def work() -> None:
        async with Stage(sybils, loopback, tmp_path) as scene:
            (name,) = scene.scramblers
            scene.start(*scene.computes, name, victim, "mallory")
            await scene.wait(name)
            assert scene.journals[name].accepted == 6
            assert scene.journals[name].sent == 0
            assert scene.rejected(name) == {"below minimum": 1}

    bounded(work())
