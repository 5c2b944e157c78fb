"""What must hold of all messages on the wire: one for a record, one release of a batch, whole enough, unreadable."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from hushuffle.network.nodes.seals import KEY
from network.simulation.evidence import Evidence
from network.simulation.hosts import Process


def one_message_for_a_record(evidence: Evidence) -> Iterator[str]:
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


def releases(evidence: Evidence) -> Iterator[str]:
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
    people = {talk.name for talk, _message, _accepted in came}
    if len(people) < step.min_batch:
        yield f"{process} released step {number} with {len(people)} of at least {step.min_batch} sources"
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
        if promised and message.sealed[:KEY] not in seals and evidence.ended(process, number, message.target):
            yield f"{process} had accepted slot {message.slot} of step {number} and did not send it"
    ends = 0
    for target, name in enumerate(step.computes):
        talks = [talk for _time, talk, message in sent if message.target == target]
        count = len(talks)
        if step.capped and count > len(batch.holders):
            yield f"{process} sent {count} messages to {name}, over the cap"
        end = next((one for one in evidence.ends(process, number) if one[0] == name), None)
        if end is not None:
            ends += 1
            if end[1].numbers[:2] != (count, len(others)) and evidence.all_ended(process, number):
                yield f"{process} told {name} {end[1].numbers[:2]}, but sent {count} behind {len(others)}"
    if ends == len(step.computes) and len(own) != step.dummies:
        yield f"{process} sent {len(own)} of {step.dummies} dummies"
