"""What must hold after every run, seen from outside: from requests on the network, phones' answers and publications."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hushuffle.plans import use_chance
from hushuffle_network import batches
from network.virtual.scene import COLLECT, ODD, PEOPLE, TARGETS, Message
from network.virtual.world import World

_SLACK: Final = 6.0
"""Seconds for requests, clocks that run apart, and a full disk after which a service tries again."""


@dataclass(frozen=True)
class Batch:
    """One batch of one sender as it left for all of its receivers; `parts`: by receiver."""

    sender: str
    step: int
    number: int
    parts: dict[str, list[bytes]]
    trail: tuple[batches.Link, ...]

    @property
    def messages(self) -> list[bytes]:
        return [message for _, part in sorted(self.parts.items()) for message in part]


class Evidence:
    def __init__(self, world: World) -> None:
        self.world, self.document = world, world.scene.document
        self.chain = [one.name for one in self.document.chain]
        self.steps = range(1, len(self.document.steps) + 1)
        # A later scrambler or a target with an older state sends again, like one that lies; the first one must not.
        self.false = {*world.lies, *world.restored} - ({"scrambler-1"} - world.lies.keys())
        self.first_false = min((self.chain.index(name) for name in self.false & {*self.chain}), default=len(self.chain))
        self.false_target = any(name.startswith("target") for name in self.false)
        self.bare = any(message.kind == "bare" for message in world.words)

    @cached_property
    def bodies(self) -> dict[tuple[str, str, int, int], set[bytes]]:
        """Bodies of batches by sender, receiver, step and place.

        A restored first scrambler cannot know of a batch that no receiver took: then only those that a receiver took.
        """
        restored = "scrambler-1" in self.world.restored
        all_of_them = defaultdict[tuple[str, str, int, int], set[bytes]](set)
        for sent in self.world.sent:
            if sent.path.endswith("/batches") and (200 in sent.statuses or not restored):
                head = head_in(sent.body)
                all_of_them[sent.sender, sent.receiver, head.step, head.place].add(sent.body)
        return all_of_them

    @cached_property
    def batches(self) -> list[Batch]:
        every = dict[tuple[str, int, int], Batch]()
        for (sender, receiver, step, place), bodies in self.bodies.items():
            if place:
                head = head_in(body := min(bodies))
                batch = every.setdefault((sender, step, place), Batch(sender, step, place, {}, head.trail))
                batch.parts[receiver] = batches.messages_of(body, head, size=None)
        return list(every.values())

    def honest(self, sender: str, *, before: bool = True) -> bool:
        """Whether a service is not false and, with `before`, no scrambler before it is."""
        return sender not in self.false and (not before or self.chain.index(sender) < self.first_false)

    def whole(self, batch: Batch) -> bool:
        """Whether the batch was sent to all of its receivers."""
        return len(batch.parts) == (TARGETS if batch.sender == self.chain[-1] else 1)

    def of(self, messages: list[bytes]) -> list[Message]:
        """Return the messages of phones among the messages of a batch."""
        return [one for one in map(self.world.scene.of_layer.get, messages) if one is not None]

    @cached_property
    def passed(self) -> dict[int, dict[int, list[Message]]]:
        """Phones' messages by step and batch, from the lists that targets publish."""
        scene = self.world.scene
        more = [scene.odd["anew", person] for person in range(ODD)]
        of_entry = {one.entry: one for phone in (*scene.phones, *more) for one in phone}
        lists = {step: defaultdict[int, list[Message]](list) for step in self.steps}
        for name, rows in self.world.passage.items():
            for number, entries in rows:
                step, place = self.document.target(name)
                for start in range(0, len(entries), 32):
                    message, part = of_entry.get(entries[start : start + 32]), lists[step][number]
                    if message is not None and (message.step, message.target) == (step, place):
                        part.append(message)
        return {step: dict(one) for step, one in lists.items()}

    @cached_property
    def counted(self) -> dict[int, list[Message]]:
        """Messages by step that must be in the result: those of batches that are not lost."""
        least = {step: self.document.step(step).min_batch for step in self.steps}
        return {
            step: [one for part in self.passed[step].values() if len(part) >= fewest for one in part]
            for step, fewest in least.items()
        }

    @property
    def well(self) -> bool:
        """Whether every service worked undisturbed since the deadline, and none lied."""
        world = self.world
        late = max(*world.disturbed.values(), world.links.quiet) > COLLECT - 2.0
        return not (late or world.lies or world.restored)


def head_in(body: bytes) -> batches.Head:
    return batches.Head.model_validate_json(batches.text_of_head(body))


def one_content(evidence: Evidence) -> Iterator[str]:
    """An honest scrambler never sends two different contents as one batch, nor an honest target two reports."""
    for (sender, receiver, step, place), bodies in evidence.bodies.items():
        if len(bodies) > 1 and evidence.honest(sender, before=False):
            yield f"{sender} sent {len(bodies)} contents of batch {place} of step {step} to {receiver}"
    reports = defaultdict[tuple[str, str], set[bytes]](set)
    for sent in evidence.world.sent:
        if sent.receiver == "result" and sent.path.endswith(("/counts", "/parts")):
            reports[sent.sender, sent.path[-6:]].add(sent.body)
    more = {key: len(one) for key, one in reports.items() if len(one) > 1 and evidence.honest(key[0], before=False)}
    yield from (f"{name} sent {number} reports {kind}" for (name, kind), number in more.items())


def batch_sizes(evidence: Evidence) -> Iterator[str]:
    """A batch of honest scramblers has messages of `min_batch` to `batch` people, each once, and all dummies."""
    for batch in evidence.batches:
        step, where = evidence.document.step(batch.step), f"batch {batch.number} of step {batch.step}, {batch.sender}"
        declared = batch.trail[-1].sources
        if evidence.honest(batch.sender, before=False) and not step.min_batch <= declared <= step.batch:
            yield f"{where} declares {declared} sources"
        if not evidence.honest(batch.sender) or not evidence.whole(batch):
            continue
        messages, hops = batch.messages, evidence.chain.index(batch.sender) + 1
        people = Counter(one.person for one in evidence.of(messages))
        if not step.min_batch <= len(people) <= step.batch or len(people) != declared:
            yield f"{where} has messages of {len(people)} people, and declares {declared}"
        if any(count > 1 for count in people.values()):
            yield f"{where} has a person's message more than once"
        dummies = len(messages) - people.total()
        if step.capped and max(map(len, batch.parts.values())) > step.batch:
            yield f"{where} has more messages for a target than the cap"
        if dummies != hops * step.dummies or len(set(messages)) < len(messages):
            yield f"{where} has {dummies} dummies after {hops} scramblers, or a message twice"


def one_batch(evidence: Evidence) -> Iterator[str]:
    """An honest scrambler sends no message twice, neither a phone's nor a dummy, whatever it received."""
    places = defaultdict[tuple[str, int, object], list[int]](list)
    for batch in evidence.batches:
        if evidence.honest(batch.sender, before=False):
            for message in batch.messages:
                source = evidence.world.scene.of_layer.get(message)
                places[batch.sender, batch.step, message if source is None else source.person].append(batch.number)
    yield from (f"{key[0]} sent one message in batches {each}" for key, each in places.items() if len(each) > 1)


def shuffled(evidence: Evidence) -> Iterator[str]:
    """An honest scrambler sends messages in another order than it received them, or so few that this is chance."""
    orders = {(one.sender, one.step, one.number): evidence.of(one.messages) for one in evidence.batches}
    surprise, mixed = defaultdict[str, float](float), set[str]()
    for (sender, step, number), order in orders.items():
        place, last = evidence.chain.index(sender), sender == evidence.chain[-1]
        if not evidence.honest(sender):
            continue
        before = evidence.world.accepted if place == 0 else orders.get((evidence.chain[place - 1], step, number), [])
        same = sorted((one for one in before if one in order), key=lambda one: one.target if last else 0)
        if same == order:
            groups = Counter(one.target if last else 0 for one in order)
            surprise[sender] += sum(math.lgamma(count + 1) for count in groups.values())
        else:
            mixed.add(sender)
    yield from (f"{name} did not shuffle" for name, one in surprise.items() if one > 16.0 and name not in mixed)


def answers(evidence: Evidence) -> Iterator[str]:
    """A published answer equals the records of the messages that passed: each person once, the share `least` of all."""
    content, document = evidence.world.content, evidence.document
    if evidence.false_target or "failed" in content or not content:
        return
    for number, answer in enumerate(content["answers"], 1):
        step, people = document.step(number), evidence.counted[number]
        if len({one.person for one in people}) < len(people) or len({one.entry for one in people}) < len(people):
            yield f"step {number} counts a person twice"
        if answer["sources"] != len(people):
            yield f"step {number} has {answer['sources']} sources, but {len(people)} passed"
        if len(people) < document.least * step.sources:
            yield f"step {number} was published for {len(people)} people of {step.sources}"
        counts, sums = [0.0] * math.prod(step.sizes), [0.0] * math.prod(step.sizes)
        for message in people:
            if message.record is not None:
                group, value = message.group
                counts[group] += 1
                sums[group] += value
        if answer["received"] != counts:
            yield f"step {number} counts {answer['received']}, but records came to {counts}"
        scale = PEOPLE / (max(len(people), 1) * use_chance(step.sampling, only_honest=step.only_on_purpose))
        for name, numbers in answer["estimates"].items():
            exact = sums if "sum" in name else counts
            if not all(
                math.isclose(one, scale * other, abs_tol=1e-9) for one, other in zip(numbers, exact, strict=True)
            ):
                yield f"step {number} estimates {name} as {numbers}, not as {scale} * {exact}"


def everybody(evidence: Evidence) -> Iterator[str]:
    """If all services worked at the deadline, all accepted messages are in the lists, and the answer is published."""
    if not evidence.well:
        return
    world, document = evidence.world, evidence.document
    for number in evidence.steps:
        step = document.step(number)
        last = (one for one in evidence.batches if one.sender == evidence.chain[-1])
        arrived = {one for batch in last for one in evidence.of(batch.messages) if one.step == number}
        taken = [one for one, word in world.words.items() if one.step == number and word == "taken"]
        missing = [one for one in taken if one not in arrived]
        if len(missing) >= step.min_batch:
            yield f"{len(missing)} accepted messages of step {number} reached no target"
        listed = {one.entry for part in evidence.passed[number].values() for one in part}
        lost = [one for one in arrived if one.kind != "bare" and one.entry not in listed]
        if lost:
            yield f"{len(lost)} messages of step {number} reached their targets, but are in no list"
    enough = all(len(evidence.counted[one]) >= document.least * document.step(one).sources for one in evidence.steps)
    if enough == ("failed" in world.content):
        yield f"enough people came through: {enough}, but the result is {str(world.content)[:300]}"


def phones(evidence: Evidence) -> Iterator[str]:
    """A person gets one token and one ticket for a step, and has one message accepted."""
    world = evidence.world
    signed = ((key, len(requests)) for key, requests in world.issued.items())
    yield from (f"the issuer signed {count} requests for {key[0][-20:]}" for key, count in signed if count > 1)
    one_step = evidence.document.per_person == "one"
    taken = Counter((one.person, one_step or one.step) for one, word in world.words.items() if word == "taken")
    # A restored first scrambler has lost the message together with the spent ticket.
    more = 0 if "scrambler-1" in world.restored else max(taken.values(), default=0)
    if more > 1:
        yield f"{more} messages of a person were accepted"
    words = {"", "taken", "ticket used", "conflict", "too late", "busy", "out of service", "code used", "over"}
    for message, word in world.words.items():
        if word not in words:
            yield f"person {message.person} was answered {word!r}"


def one_publication(evidence: Evidence) -> Iterator[str]:
    """The publication never changes, stands on the disk as it was shown, and comes by the end of the task."""
    world, contents = evidence.world, {content for _, content in evidence.world.published}
    stored = {bytes(content) for (content,) in world.stored}
    if len(contents | stored) > 1:
        yield f"{len(contents | stored)} different results were published"
    file = world.files.get(f"{evidence.document.id.hex()}.json")
    if file is not None and {file} != stored:
        yield "the file of the result differs from what is published"
    due = max(world.scene.end, world.disturbed["result"]) + _SLACK
    first = min((moment for moment, _ in world.published), default=math.inf)
    if first > due and due < world.scene.end + 40.0:
        yield f"the first publication came at {first:.1f} s, but was due at {due:.1f} s"


def lies_show(evidence: Evidence) -> Iterator[str]:
    """A lie that the counts must reveal ends without a result."""
    world = evidence.world
    if not world.lied or "failed" in world.content or not world.content:
        return
    last = evidence.chain[-1]
    if (lie := world.lies.get(last, "")) in {"drops", "repeats", "swaps"}:
        yield f"{last} {lie}, but a result was published"
    for name, words in world.lies.items():
        step = evidence.document.target(name)[0] if name.startswith("target") else 0
        if step and words in {"more messages", "fewer messages", "omits a batch", "another total"}:
            yield f"{name} told {words}, but a result was published"
        # With messages without a token in the batch, one more token is possible.
        if step and words == "more tokens" and not evidence.bare:
            yield f"{name} told {words}, but a result was published"


def forgotten(evidence: Evidence) -> Iterator[str]:
    """After the task every service has deleted its data, and has no work left."""
    yield from (f"{name} still has {rows}" for name, rows in evidence.world.left.items() if rows)
    yield from (f"left: {task}" for task in evidence.world.tasks)


RULES: Final = (
    *(one_content, batch_sizes, one_batch, shuffled, answers),
    *(everybody, phones, one_publication, lies_show, forgotten),
)


def check(world: World) -> list[str]:
    """Return every rule that does not hold, each as its name and what was seen."""
    evidence = Evidence(world)
    return [f"{rule.__name__}: {words}" for rule in RULES for words in rule(evidence)]
