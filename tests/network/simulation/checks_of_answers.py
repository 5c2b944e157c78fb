"""What must hold of an answer: it is what the accepted messages say, and no lie that can be noticed goes unnoticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from hushuffle.network.nodes.result import RunResult
from hushuffle.network.nodes.seals import KEY
from hushuffle.plans import use_chance
from hushuffle.queries import Aggregate, KMeans
from network.simulation.evidence import Evidence
from network.simulation.hosts import Process

UNNOTICED: Final = frozenset({"replace", "redirect"})
"""Lies of a scrambler that nobody can notice."""


def _results(evidence: Evidence) -> Iterator[Process]:
    """Yield the lives of the result that gave an answer."""
    for process in evidence.lives("result"):
        if process.outcome is not None and "result" not in evidence.world.liars:
            yield process


def answers(evidence: Evidence) -> Iterator[str]:
    """An answer is what the accepted messages say, to the last bit: each counts once, none is lost or foreign."""
    for process in _results(evidence):
        assert isinstance(process.outcome, RunResult)
        if isinstance(evidence.document.query, KMeans):
            yield from _centroids(evidence, process, process.outcome, evidence.document.query)
            continue
        for number in range(1, len(process.outcome.steps) + 1):
            yield from _answer(evidence, process, number)


def _unsure(evidence: Evidence, result: Process, number: int) -> bool:
    parts = [evidence.part_of(name, result, number) for name in evidence.document.step(number).computes]
    return any(evidence.unsure(life) for life in (result, *parts))


def _answer(evidence: Evidence, result: Process, number: int) -> Iterator[str]:
    world, step = evidence.world, evidence.document.step(number)
    answer, query = result.outcome.steps[number - 1], evidence.document.query
    assert isinstance(query, Aggregate)
    received = query.statistics(number, answer.combined)
    estimated, groups = received.scaled(answer.scale()), received.count.size
    if _unsure(evidence, result, number):
        return
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
        for what, array in (("count", received.count), ("sum", received.sum["x"])):
            if [float(array[group]) for group in mine] != [wanted[what][group] for group in mine]:
                yield f"{what} of {name}: {array[mine].tolist()} for {[wanted[what][group] for group in mine]}"
        sources.append(sum(take.end.numbers[1] for take in evidence.takes(life, number) if take.end is not None))
        if step.scrambled and sources[-1]:
            chance = use_chance(step.sampling)
            scaled = np.array(wanted["count"])[mine] * (evidence.document.people / (sources[-1] * chance))
            if not np.allclose(estimated.count[mine], scaled, rtol=1e-12):
                yield f"estimate of {name}: {estimated.count[mine].tolist()} for {scaled.tolist()}"
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
    yield from (
        f"step {number}: a record of {name} counts {count} times" for (name, _), count in rows.items() if count > 1
    )


def _centroids(evidence: Evidence, result: Process, answer: RunResult, clustering: KMeans) -> Iterator[str]:
    for number, iteration in enumerate(answer.steps, start=1):
        step = evidence.document.step(number)
        if _unsure(evidence, result, number):
            return
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
            if not np.array_equal(iteration.combined[target], wanted):
                yield f"centroid of {name}, step {number}: {iteration.combined[target].tolist()} for {wanted.tolist()}"
        lives = [evidence.part_of(name, result, number) for name in step.computes]
        yield from _once(evidence, lives, number)
        sources = [
            sum(take.end.numbers[1] for take in evidence.takes(life, number) if take.end is not None)
            for life in lives
            if life is not None
        ]
        if step.scrambled and iteration.sources != min(sources):
            yield f"step {number}: {iteration.sources} sources for {min(sources)}"


def lies_show(evidence: Evidence) -> Iterator[str]:
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
                carries = made is not None and made.content is not None and talk.name not in evidence.world.liars
                if mine and carries and message.sealed[:KEY] not in counted:
                    yield f"{name} ({evidence.world.lies[name]}) withheld the record of {talk.name}: unnoticed"
