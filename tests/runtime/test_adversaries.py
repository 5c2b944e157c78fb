"""Nodes that lie, each among honest ones: what they learn, what they prevent, and who counts it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from hushuffle.runtime.document import RunDocument
from hushuffle.runtime.frames import Reason
from hushuffle.runtime.journal import Journal
from hushuffle.runtime.scrambler import ScramblerNode
from workflows.network_tools import Stage, bounded, deployed, plan_text


def alike(document: RunDocument, **changes: object) -> RunDocument:
    """Return a weaker document whose digest agrees in all bytes but the last, as a drawer might look for."""
    values = json.loads(document.text)
    values["steps"][0] |= changes
    weak = RunDocument.model_validate(values)
    vars(weak)["digest"] = document.digest[:-1] + bytes([document.digest[-1] ^ 1])
    return weak


def test_a_drawer_with_two_documents_that_are_nearly_alike_gets_nothing_released(tmp_path: Path) -> None:
    made, loopback = deployed(
        plan_text(people=6, traffic="dummies = 8\nbatch = 6\nmin_batch = 5", collect=1.0, patience=1.0)
    )
    weak = alike(made.document, min_batch=1, dummies=0)

    async def work() -> None:
        async with Stage(made, loopback, tmp_path) as stage:
            stage.start(made.document.result, *stage.computes)
            (name,), (victim, *_) = stage.scramblers, stage.sources
            journal = stage.journals[name] = Journal(node=name)
            scrambler = ScramblerNode(weak, stage.identity(name), loopback.private[name], journal=journal)
            stage.nodes[name], stage.tasks[name] = scrambler, asyncio.create_task(scrambler.run())
            stage.start(victim)
            await stage.wait(victim, name)
            assert journal.rejected[Reason.OTHER_RUN] > 0
            assert (journal.accepted, journal.sent) == (0, 0)
            assert stage.journals[victim].sent == 0

    bounded(work())


def test_the_places_of_one_node_count_once(tmp_path: Path) -> None:
    made, loopback = deployed(
        plan_text(people=6, traffic="dummies = 8\nbatch = 6\nmin_batch = 4", collect=1.0, patience=1.0)
    )
    values = json.loads(made.document.text)
    (batch,) = values["steps"][0]["batches"]
    victim, *others = batch["holders"]
    batch["holders"] = [victim, *["mallory"] * 5]
    document = RunDocument.model_validate(values)
    entries = {"mallory": [entry for name in others for entry in made.entries[name]]}
    entries[victim] = list(made.entries[victim])
    sybils = replace(made, document=document, entries=entries)

    async def work() -> None:
        async with Stage(sybils, loopback, tmp_path) as stage:
            (name,) = stage.scramblers
            stage.start(name, victim, "mallory")
            await stage.wait(name)
            assert stage.journals[name].accepted == 6
            assert stage.journals[name].sent == 0
            assert stage.rejected(name) == {"below minimum": 1}

    bounded(work())
