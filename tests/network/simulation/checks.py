"""What must hold after every simulation, whatever went wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from hushuffle.errors import HushuffleError
from hushuffle.network.nodes.result import RunFailedError
from network.simulation.checks_of_answers import answers, lies_show
from network.simulation.checks_of_counters import counters
from network.simulation.checks_of_messages import one_message_for_a_record, releases
from network.simulation.evidence import Evidence
from network.simulation.hosts import DiedError
from network.simulation.world import World


def check(world: World) -> list[str]:
    """Return everything that is not as it should be."""
    evidence = Evidence(world)
    return [f"{rule.__name__}: {words}" for rule in RULES for words in rule(evidence)]


def nothing_foreign(evidence: Evidence) -> Iterator[str]:
    """No exception but the project's own leaves a node, and none is lost in the loop."""
    for process in evidence.world.lives:
        error = process.error
        if error is None or isinstance(error, HushuffleError):
            continue
        if process.alive or not isinstance(error, (DiedError, BaseException)):
            yield f"{process} ended with {error!r}"
    yield from (words for words in evidence.world.loop.complaints if "DiedError" not in words)


def nothing_left(evidence: Evidence) -> Iterator[str]:
    """A node that ends leaves no task behind."""
    yield from evidence.world.leaks
    yield from (f"never ended: {task!r}" for task in evidence.world.left)


def in_time(evidence: Evidence) -> Iterator[str]:
    """Every node ends by the times that the document gives."""
    world, document = evidence.world, evidence.document
    steps = len(document.steps)
    patience = document.patience
    last = document.deadline(steps)
    tries = 4 * patience + 2
    longest: dict[str, float] = {
        "result": document.result_deadline + 1,
        "compute": document.target_deadline(steps) + steps * tries,
        "scrambler": last + tries * (2 + max(len(step.computes) for step in document.steps)),
        "source": last + tries,
    }
    for process in world.lives:
        role = world.scene.role(process.name)
        if not process.alive or process.ended is None or role not in longest or process.name in world.impostors:
            continue
        took = process.ended - process.started - max(-process.skew, 0.0)  # whose clock is late ends late
        if took > longest[role]:
            yield f"{process} took {took:.1f} s of at most {longest[role]:.1f}"


def others_count(evidence: Evidence) -> Iterator[str]:
    """Faults of some cost the others nothing: who is well, behind a scrambler that is well, counts."""
    world, document = evidence.world, evidence.document
    if not _well(world, "result"):
        return
    *_, result = evidence.lives("result")
    enough = True
    for number in range(1, len(document.steps) + 1):
        step = document.step(number)
        if not all(_well(world, name) for name in step.computes):
            return
        if world.scene.clusters and number > 1 and (not enough or world.lies):
            return  # where an iteration fails, no further one begins
        certain = 0
        for position, batch in enumerate(step.batches):
            if batch.scrambler is not None and not _well(world, batch.scrambler):
                continue
            slots = [slot for slot, holder in enumerate(batch.holders) if _timely(world, holder, number)]
            if len({batch.holders[slot] for slot in slots}) < step.min_batch:
                continue
            certain += len(slots)
            yield from _counted(evidence, number, position, slots)
        enough = enough and certain >= document.least * step.sources
    if enough and result.outcome is None and not world.lies:  # where a scrambler lies, nothing is published
        yield f"no result, although enough sources are well: {result.error}"
    if not enough and result.outcome is None and not isinstance(result.error, (RunFailedError, type(None))):
        yield f"no result and no word why: {result.error!r}"


def _well(world: World, name: str) -> bool:
    """Say whether a server does not lie, and was there in time: one that was killed goes on where it was."""
    document = world.scene.document
    latest = document.deadline(1) - 2 * document.patience - 10
    return world.fine_from.get(name, 0.0) <= latest and name not in world.liars


def _timely(world: World, holder: str, number: int) -> bool:
    """Say whether a source had time enough after the last of its faults."""
    document = world.scene.document
    left = document.deadline(number) - world.fine_from.get(holder, 0.0)
    return left > 2 * document.patience + 10 and holder not in world.liars


def _counted(evidence: Evidence, number: int, position: int, slots: list[int]) -> Iterator[str]:
    """Say whose messages in a batch were not accepted by their targets."""
    step = evidence.document.step(number)
    batch = step.batches[position]
    there = {
        message.sealed
        for name in step.computes
        for life in evidence.lives(name)
        for take in evidence.takes(life, number)
        for message in take.messages
    }
    for slot in slots:
        holder = batch.holders[slot]
        sent = {
            message.sealed
            for life in evidence.lives(holder)
            for _time, talk, message in evidence.sent(life, number)
            if message.slot == slot and (batch.scrambler is None or talk.server.name == batch.scrambler)
        }
        if not sent or not sent <= there:
            yield f"{holder}, well from {evidence.world.fine_from.get(holder)}, does not count in step {number}"


RULES: Final[tuple[Callable[[Evidence], Iterator[str]], ...]] = (
    nothing_foreign,
    nothing_left,
    in_time,
    one_message_for_a_record,
    releases,
    answers,
    lies_show,
    others_count,
    counters,
)
