"""What must hold after every simulation, whatever went wrong in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from hushuffle.errors import HushuffleError
from hushuffle.plans import use_chance
from hushuffle.runtime.board import KMeansResult
from hushuffle.runtime.frames import Control, Kind, Message
from hushuffle.runtime.result import AggregateResult, RunFailedError
from hushuffle.runtime.seals import KEY
from runtime.simulation.evidence import Evidence, Take
from runtime.simulation.hosts import DiedError, Process
from runtime.simulation.world import World

UNNOTICED: Final = frozenset({"replace"})
"""Lies of a scrambler that nobody can notice."""


def check(world: World) -> list[str]:
    """Return everything that is not as it should be."""
    evidence = Evidence(world)
    return [f"{rule.__name__.strip('_')}: {words}" for rule in RULES for words in rule(evidence)]


def _nothing_foreign(evidence: Evidence) -> Iterator[str]:
    """No exception but the project's own leaves a node, and none is lost in the loop."""
    for process in evidence.world.lives:
        error = process.error
        if error is None or isinstance(error, HushuffleError):
            continue
        if process.alive or not isinstance(error, (DiedError, BaseException)):
            yield f"{process} ended with {error!r}"
    yield from (words for words in evidence.world.loop.complaints if "DiedError" not in words)


def _nothing_left(evidence: Evidence) -> Iterator[str]:
    """A node that ends leaves no task behind."""
    yield from evidence.world.leaks
    yield from (f"never ended: {task!r}" for task in evidence.world.left)


def _in_time(evidence: Evidence) -> Iterator[str]:
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
        if role == "source" and world.limits:
            continue
        took = process.ended - process.started
        if took > longest[role]:
            yield f"{process} took {took:.1f} s of at most {longest[role]:.1f}"


def _one_message_for_a_record(evidence: Evidence) -> Iterator[str]:
    """Whoever reads everything sees one message for each place, the same bytes at every try, where the coins fell."""
    world = evidence.world
    for name, places in evidence.document.places.items():
        if name in world.liars:
            continue
        choices = evidence.choices(name)
        seen: dict[tuple[int, int], set[tuple[int, bytes]]] = defaultdict(set)
        for process in evidence.lives(name):
            for number, _batch, slot in places:
                for _time, _talk, message in evidence.sent(process, number):
                    if message.slot == slot:
                        seen[number, slot].add((message.target, message.sealed))
        for number, batch, slot in places:
            found = seen[number, slot]
            wanted = choices.get((number, batch, slot))
            if sum(place[0] == number and place[2] == slot for place in places) > 1:
                continue  # two places of one name with one number, behind two scramblers
            if name not in world.wiped and len(found) > evidence.document.step(number).flood + 1:
                yield f"{name} sent {len(found)} different messages for step {number}, slot {slot}"
            if wanted is not None and not {target for target, _sealed in found} <= set(wanted[0]):
                yield f"{name} sent to {found} but its coins say {wanted[0]}"
            for target, sealed in found:
                made = world.mint.of(sealed)
                assert made is not None
                if wanted is None or made.content is None:
                    continue
                if (target, True) not in zip(*wanted, strict=True):
                    yield f"{name} sent its record to a target that is not its own, or not on purpose"


def _releases(evidence: Evidence) -> Iterator[str]:
    """A batch leaves once, whole enough, with all that was accepted and all its dummies, in no readable order."""
    world = evidence.world
    for step in range(1, len(evidence.document.steps) + 1):
        for batch in evidence.document.step(step).batches:
            if batch.scrambler is None:
                continue
            lives = [process for process in evidence.lives(batch.scrambler) if evidence.sent(process, step)]
            if len(lives) > 1 and batch.scrambler not in world.wiped:
                yield f"{batch.scrambler} released step {step} {len(lives)} times"
            if batch.scrambler in world.liars:
                continue
            for process in lives:
                yield from _release(evidence, process, step)


def _release(evidence: Evidence, process: Process, number: int) -> Iterator[str]:
    world, step = evidence.world, evidence.document.step(number)
    batch = dict(evidence.document.batches_of(process.name))[number]
    sent = evidence.sent(process, number)
    begin = sent[0][0]
    came = list(evidence.came(process, number))
    slots: dict[bytes, int] = {message.sealed[:KEY]: message.slot for _talk, message, _accepted in came}
    if len(set(slots.values())) < step.min_batch:
        yield f"{process} released step {number} with {len(set(slots.values()))} of at least {step.min_batch} sources"
    seals = Counter(message.sealed[:KEY] for _time, _talk, message in sent)
    if seals and max(seals.values()) > 1:
        yield f"{process} sent a seal {max(seals.values())} times"
    own = [key for key in seals if (made := world.mint.of(key)) is not None and made.by is process]
    others = [key for key in seals if key not in set(own)]
    if any(key not in slots for key in others):
        yield f"{process} sent what nobody had given it"
    taken = Counter(slots[key] for key in others if key in slots)
    if taken and max(taken.values()) > 1:
        yield f"{process} sent {max(taken.values())} messages for one place"
    if any(message.slot for _time, _talk, message in sent):
        yield f"{process} says which place a message is from"
    for talk, message, accepted in came:
        promised = accepted and evidence.said(talk, process) < begin
        if promised and message.sealed[:KEY] not in seals and _whole(evidence, process, number, message.target):
            yield f"{process} had accepted slot {message.slot} of step {number} and did not send it"
    ends = 0
    for target, name in enumerate(step.computes):
        talks = [talk for _time, talk, message in sent if message.target == target]
        count = len(talks)
        if step.capped and count > len(batch.holders):
            yield f"{process} sent {count} messages to {name}, over the cap"
        end = next((one for one in _ends(evidence, process, number) if one[0] == name), None)
        if end is not None:
            ends += 1
            if end[1].numbers[:2] != (count, len(others)) and _all_ended(evidence, process, number):
                yield f"{process} told {name} {end[1].numbers[:2]}, but sent {count} behind {len(others)}"
    if ends == len(step.computes) and len(own) != step.dummies:
        yield f"{process} sent {len(own)} of {step.dummies} dummies"


def _ends(evidence: Evidence, process: Process, number: int) -> list[tuple[str, Control]]:
    """Return the ends that a scrambler sent, with their targets."""
    return [
        (talk.server.name, frame)
        for talk in evidence.world.network.talks
        if talk.client is process
        for frame in talk.sent_by(process)
        if isinstance(frame, Control) and frame.kind is Kind.END and frame.step == number
    ]


def _whole(evidence: Evidence, process: Process, number: int, target: int) -> bool:
    name = evidence.document.step(number).computes[target]
    return any(other == name for other, _end in _ends(evidence, process, number))


def _all_ended(evidence: Evidence, process: Process, number: int) -> bool:
    names = {name for name, _end in _ends(evidence, process, number)}
    return names == set(evidence.document.step(number).computes)


def _results(evidence: Evidence) -> Iterator[Process]:
    """Yield the lives of the result that gave an answer."""
    for process in evidence.lives("result"):
        if process.outcome is not None and "result" not in evidence.world.liars:
            yield process


def _answers(evidence: Evidence) -> Iterator[str]:
    """An answer is what the accepted messages say, to the last bit: each counted once, none lost, none from elsewhere."""
    for process in _results(evidence):
        if isinstance(process.outcome, AggregateResult):
            for number in range(1, len(process.outcome.steps) + 1):
                yield from _answer(evidence, process, number)
        else:
            assert isinstance(process.outcome, KMeansResult)
            yield from _centroids(evidence, process, process.outcome)


def _answer(evidence: Evidence, result: Process, number: int) -> Iterator[str]:
    world, step = evidence.world, evidence.document.step(number)
    answer = result.outcome.steps[number - 1]
    groups = answer.received.count.size
    sources = []
    for target, name in enumerate(step.computes):
        if name in world.liars:
            return
        life = evidence.part_of(name, result, number)
        if life is None:
            yield f"there is an answer without a word of {name}"
            return
        mine = [group for group in range(groups) if group * len(step.computes) // groups == target]
        wanted = evidence.statistics(life, number)
        for what, array in (("count", answer.received.count), ("sum", answer.received.sum["x"])):
            if [float(array[group]) for group in mine] != [wanted[what][group] for group in mine]:
                yield f"{what} of {name}: {array[mine].tolist()} for {[wanted[what][group] for group in mine]}"
        sources.append(sum(take.end.numbers[1] for take in evidence.takes(life, number) if take.end is not None))
        if step.scrambled and sources[-1]:
            chance = use_chance(step.sampling)
            scaled = np.array(wanted["count"])[mine] * (evidence.document.people / (sources[-1] * chance))
            if not np.allclose(answer.estimated.count[mine], scaled, rtol=1e-12):
                yield f"estimate of {name}: {answer.estimated.count[mine].tolist()} for {scaled.tolist()}"
    if step.scrambled and answer.sources != min(sources):
        yield f"step {number}: {answer.sources} sources for {min(sources)}"
    yield from _once(evidence, [evidence.part_of(name, result, number) for name in step.computes], number)


def _once(evidence: Evidence, lives: list[Process | None], number: int) -> Iterator[str]:
    """No record of an honest source is counted twice, at one target or at several."""
    rows = Counter[tuple[str, bytes]]()
    for life in lives:
        if life is None:
            continue
        for key in evidence.contents(life, number):
            made = evidence.world.mint.of(key)
            assert made is not None
            if made.by is not None and made.by.name not in evidence.world.liars and made.content is not None:
                rows[made.by.name, made.content] += 1
    yield from (f"step {number}: a record of {name} counts {count} times" for (name, _), count in rows.items() if count > 1)


def _centroids(evidence: Evidence, result: Process, answer: KMeansResult) -> Iterator[str]:
    clustering = evidence.document.clustering
    for number, iteration in enumerate(answer.iterations, start=1):
        step = evidence.document.step(number)
        for target, name in enumerate(step.computes):
            if name in evidence.world.liars:
                return
            life = evidence.part_of(name, result, number)
            if life is None:
                yield f"there is an answer without a word of {name}"
                return
            if clustering.noise is not None:
                continue
            wanted = np.array(clustering.initial[target])
            for before in range(1, number + 1):
                points = evidence.points(life, before)
                wanted = np.sum(points, axis=0) / len(points) if points else wanted
            if not np.array_equal(iteration.centroids[target], wanted):
                yield f"centroid of {name}, step {number}: {iteration.centroids[target].tolist()} for {wanted.tolist()}"
        lives = [evidence.part_of(name, result, number) for name in step.computes]
        yield from _once(evidence, lives, number)
        sources = [
            sum(take.end.numbers[1] for take in evidence.takes(life, number) if take.end is not None)
            for life in lives
            if life is not None
        ]
        if step.scrambled and iteration.sources != min(sources):
            yield f"step {number}: {iteration.sources} sources for {min(sources)}"


def _lies_show(evidence: Evidence) -> Iterator[str]:
    """A scrambler that withholds or spoils a message that it had accepted is not believed: its batch does not count."""
    world = evidence.world
    for result in _results(evidence):
        for name, lie in world.lies.items():
            if lie in UNNOTICED:
                continue
            for number, _batch in evidence.document.batches_of(name):
                yield from _lie(evidence, result, name, number)


def _lie(evidence: Evidence, result: Process, name: str, number: int) -> Iterator[str]:
    for target, compute in enumerate(evidence.document.step(number).computes):
        life = evidence.part_of(compute, result, number)
        if life is None or compute in evidence.world.liars:
            continue
        counted = evidence.contents(life, number)
        for take in evidence.takes(life, number):
            if take.talk.client.name != name:
                continue
            scrambler = take.talk.client
            begin = min((time for time, _talk, _message in evidence.sent(scrambler, number)), default=0.0)
            for talk, message, accepted in evidence.came(scrambler, number):
                made = evidence.world.mint.of(message.sealed)
                mine = accepted and message.target == target and evidence.said(talk, scrambler) < begin
                if mine and made is not None and made.content is not None and talk.name not in evidence.world.liars:
                    if message.sealed[:KEY] not in counted:
                        yield f"{name} ({evidence.world.lies[name]}) withheld the record of {talk.name}: unnoticed"


def _others_count(evidence: Evidence) -> Iterator[str]:
    """Faults of some cost the others nothing: who is well, behind a scrambler that is well, counts."""
    world, document = evidence.world, evidence.document
    if world.limits or not _well(world, "result"):
        return
    (result,) = evidence.lives("result")
    enough = True
    for number in range(1, len(document.steps) + 1):
        step = document.step(number)
        if not all(_well(world, name) for name in step.computes):
            return
        certain = 0
        for position, batch in enumerate(step.batches):
            if batch.scrambler is not None and not _well(world, batch.scrambler):
                continue
            slots = [slot for slot, holder in enumerate(batch.holders) if _timely(world, holder, number)]
            if len(slots) < step.min_batch:
                continue
            certain += len(slots)
            if not step.scrambled and len(slots) < len(batch.holders):
                pass
            yield from _counted(evidence, number, position, slots)
        enough = enough and certain >= document.least * step.sources
    if enough and result.outcome is None:
        yield f"no result, although enough sources are well: {result.error}"
    if not enough and result.outcome is None and not isinstance(result.error, (RunFailedError, type(None))):
        yield f"no result and no word why: {result.error!r}"


def _well(world: World, name: str) -> bool:
    """Say whether a server was never hurt, does not lie, and was there in time."""
    late = world.fine_from.get(name, 0.0) > min(2.0, world.scene.document.patience / 4)
    return not late and name not in world.liars and name not in world.late


def _timely(world: World, holder: str, number: int) -> bool:
    """Say whether a source had time enough after the last of its faults."""
    document = world.scene.document
    left = document.deadline(number) - world.fine_from.get(holder, 0.0)
    return left > 2 * document.patience + 10 and holder not in world.liars and holder not in world.portals


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


def _counters(evidence: Evidence) -> Iterator[str]:
    """The journals of nodes that ended count what was on the wire."""
    world = evidence.world
    for process in world.lives:
        if not process.alive or process.name in world.liars or process.error is not None or process.node is None:
            continue
        count: Callable[[Evidence, Process], dict[str, Any]] | None = _COUNTS.get(world.scene.role(process.name))
        wanted = {} if count is None else count(evidence, process)
        counters = process.node.journal.counters()
        for name, value in wanted.items():
            if counters[name] != value:
                yield f"{process} counts {name} = {counters[name]}, the wire {value}"


def _of_source(evidence: Evidence, process: Process) -> dict[str, Any]:
    sent = 0
    for talk in evidence.world.network.talks:
        answers = [frame for frame in talk.reached(process) if isinstance(frame, Control)]
        if talk.client is process and any(answer.kind is Kind.ACCEPTED for answer in answers):
            sent += sum(isinstance(frame, Message) for frame in talk.sent_by(process))
    return {"sent": sent}


def _of_scrambler(evidence: Evidence, process: Process) -> dict[str, Any]:
    """Where all batches were released whole; else there is nothing that the wire can say."""
    steps = [number for number, _batch in evidence.document.batches_of(process.name)]
    if not all(_all_ended(evidence, process, number) for number in steps):
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
    parts = {
        talk.client.name
        for talk in evidence.talks(process)
        if Take(talk).messages and talk.accepted_by(process)
    }
    return {"accepted": len(parts)}


_COUNTS: Final[dict[str, Callable[[Evidence, Process], dict[str, Any]]]] = {
    "source": _of_source,
    "scrambler": _of_scrambler,
    "compute": _of_compute,
    "result": _of_result,
}

RULES: Final[tuple[Callable[[Evidence], Iterator[str]], ...]] = (
    _nothing_foreign,
    _nothing_left,
    _in_time,
    _one_message_for_a_record,
    _releases,
    _answers,
    _lies_show,
    _others_count,
    _counters,
)
