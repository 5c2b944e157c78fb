"""What the journals of nodes must say: what was on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from hushuffle.network.nodes.connections import Control, Kind, Message
from hushuffle.network.nodes.seals import KEY
from network.simulation.evidence import Evidence, Take
from network.simulation.hosts import Process


def counters(evidence: Evidence) -> Iterator[str]:
    """The journals of nodes that ended count what was on the wire."""
    world = evidence.world
    for process in world.lives:
        if not process.alive or process.name in world.liars or process.error is not None or process.node is None:
            continue
        count: Callable[[Evidence, Process], dict[str, Any]] | None = _COUNTS.get(world.scene.role(process.name))
        unsure = evidence.unsure(process) or (process.name == "result" and process.life > 0)
        wanted = {} if count is None or unsure else count(evidence, process)
        counters = process.node.journal.counters()
        for name, value in wanted.items():
            # Scramblers and targets know what an earlier life has kept.
            kept = counters.get("resumed", 0) if name == "accepted" and process.name != "result" else 0
            if counters[name] + kept != value:
                yield f"{process} counts {name} = {counters[name]} and {kept} kept, the wire {value}"


def _of_source(evidence: Evidence, process: Process) -> dict[str, Any]:
    sent = 0
    for talk in evidence.calls(process):
        answers = [frame for frame in talk.reached(process) if isinstance(frame, Control)]
        if any(answer.kind is Kind.ACCEPTED for answer in answers):
            sent += sum(isinstance(frame, Message) for frame in talk.sent_by(process))
    return {"sent": sent}


def _of_scrambler(evidence: Evidence, process: Process) -> dict[str, Any]:
    """Where all batches were released whole; else there is nothing that the wire can say."""
    steps = [number for number, _batch in evidence.document.batches_of(process.name)]
    if not all(evidence.all_ended(process, number) for number in steps):
        return {}
    sent = [message for number in steps for _time, _talk, message in evidence.sent(process, number)]
    own = sum((made := evidence.world.mint.of(one.sealed)) is not None and made.by is process for one in sent)
    return {"sent": len(sent), "dummies": own, "accepted": len(sent) - own}


def _of_compute(evidence: Evidence, process: Process) -> dict[str, Any]:
    accepted = 0
    for number in range(1, len(evidence.document.steps) + 1):
        if process.name not in evidence.document.step(number).computes:
            continue
        keys = set()
        for take in evidence.takes(process, number):
            keys |= {one.sealed[:KEY] for one in take.messages if _opens(evidence, process, one, number)}
        accepted += len(keys)
    return {"accepted": accepted}


def _opens(evidence: Evidence, process: Process, message: Message, number: int) -> bool:
    made = evidence.world.mint.of(message.sealed)
    if made is None or made.target != process.name or not made.step == message.step == number:
        return False
    return made.content is None or evidence.valid(made.content, process, number)


def _of_result(evidence: Evidence, process: Process) -> dict[str, Any]:
    if evidence.world.scene.clusters or evidence.world.mint.lies:
        return {}
    parts = {talk.client.name for talk in evidence.talks(process) if Take(talk).messages and talk.accepted_by(process)}
    return {"accepted": len(parts)}


_COUNTS: Final[dict[str, Callable[[Evidence, Process], dict[str, Any]]]] = {
    "source": _of_source,
    "scrambler": _of_scrambler,
    "compute": _of_compute,
    "result": _of_result,
}
