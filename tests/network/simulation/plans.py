"""Random small runs: who takes part, in which batches, with what traffic; every record has a value of its own."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from hushuffle.network.nodes.document import Batch, RunDocument, Server, Step, utc_text
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.source import Entry, Person, entries_of
from hushuffle.plans import GroupingQuery, GroupingSet
from hushuffle.queries import Aggregate, KMeans
from hushuffle.queries.k_means import Noise
from network.simulation.hosts import EPOCH, secret


@cache
def seal_key(name: str) -> SealKey:
    """Return the secret seal key of a node, the same in every simulation."""
    return SealKey.of(secret(name).hex())


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A run that nobody has started; `people` and `rows` of each source."""

    document: RunDocument
    people: dict[str, tuple[Person, ...]] = field(default_factory=dict)
    rows: dict[str, tuple[int, ...]] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)

    @property
    def clusters(self) -> bool:
        """Whether the run is one of k-means."""
        return isinstance(self.document.query, KMeans)

    def entries(self, name: str) -> tuple[Entry, ...]:
        """Return what a source has to say, where that is known beforehand."""
        if self.clusters:
            return ()
        steps = range(1, len(self.document.steps) + 1)
        return tuple(entries_of(self.document, self.people.get(name, ()), steps, None))

    def role(self, name: str) -> str:
        """Return source, scrambler, compute or result."""
        return name.split("-", maxsplit=1)[0]


def scene(rng: random.Random) -> Scene:
    """Return a random run."""
    clusters = rng.random() < 0.2
    people = rng.randint(3, 6 if clusters else 12)
    targets = rng.randint(2, 3 if clusters else 4)
    holders = _holders(rng, people)
    if clusters:
        steps = _steps(rng, [list(range(people))] * rng.randint(1, 3), targets, holders, clusters=True)
    else:
        every = list(range(people))
        sets = rng.choice((1, 1, 2))
        if sets == 2 and rng.random() < 0.5:
            rng.shuffle(every)
            cut = rng.randint(1, people - 1)
            parts = [sorted(every[:cut]), sorted(every[cut:])]
        else:
            parts = [every] * sets
        steps = _steps(rng, parts, targets, holders, clusters=False)
    query = _clusters(rng, targets, steps) if clusters else Aggregate.of(_query(rng, len(steps), targets))
    servers = dict.fromkeys(name for step in steps for name in step.computes)
    servers |= dict.fromkeys(b.scrambler for step in steps for b in step.batches if b.scrambler is not None)
    names = ["result", *servers]
    addresses = {name: f"10.0.0.{number}" for number, name in enumerate(names, start=1)}
    patience = 5.0 if clusters else rng.choice((5.0, 10.0, 20.0))
    document = RunDocument(
        run=rng.randbytes(16).hex(),
        plan="none",
        people=people,
        query=query,
        steps=steps,
        result="result",
        servers={
            name: Server(
                address=f"{addresses[name]}:7000",
                seal=None if name.startswith("scrambler") else seal_key(name).public.text,
            )
            for name in names
        },
        message=256,
        start=utc_text(dt.datetime.fromtimestamp(EPOCH, dt.UTC)),
        collect=30.0 if clusters else rng.choice((30.0, 60.0)),
        patience=patience,
        least=rng.choice((0.2, 0.5, 0.9)),
    )
    for number, name in enumerate(sorted(set(holders)), start=1):
        addresses[name] = f"10.0.1.{number}"
    return _filled(document, holders, addresses, rng)


def _holders(rng: random.Random, people: int) -> list[str]:
    """Return the node that speaks for each row; few speak for more than one."""
    names = [f"source-{row}" for row in range(people)]
    while rng.random() < 0.2:
        names[rng.randrange(people)] = rng.choice(names)
    return names


def _steps(
    rng: random.Random, parts: list[list[int]], targets: int, holders: list[str], *, clusters: bool
) -> tuple[Step, ...]:
    scrambled = rng.random() < 0.8
    steps = []
    traffic: dict[str, Any] = {
        "sigma": rng.choice((0.0, 0.3, 0.5, 1.0)),
        "convention": rng.choice(("uniform", "uniform", "exclusive")),
        "flood": 0 if scrambled else rng.randrange(targets),
        "dummies": rng.randint(0, 6) if scrambled else 0,
        "only_on_purpose": rng.random() < 0.3,
    }
    if traffic["convention"] == "exclusive":
        traffic["sigma"] = min(traffic["sigma"], 0.5)
    capped = scrambled and rng.random() < 0.2
    count = rng.randint(1, 3) if clusters else 0  # as many batches in every iteration
    for number, rows in enumerate(parts, start=1):
        batches = _cut(rng, rows, count or rng.randint(1, 3), capped=capped) if scrambled else [rows]
        least = min(map(len, batches))
        own = {"capped": capped, "min_batch": least if capped else rng.randint(1, least)}
        if capped:
            own["dummies"] = min(traffic["dummies"], (targets - 1) * least)
        if not scrambled:
            own["min_batch"] = 1
        computes = tuple(f"compute-{1 if clusters else number}-{target}" for target in range(1, targets + 1))
        made = tuple(
            Batch(
                scrambler=f"scrambler-{1 if clusters else number}-{place}" if scrambled else None,
                holders=tuple(holders[row] for row in batch),
            )
            for place, batch in enumerate(batches, start=1)
        )
        steps.append(Step(name=f"step {number}", computes=computes, batches=made, **(traffic | own)))
    return tuple(steps)


def _cut(rng: random.Random, rows: list[int], most: int, *, capped: bool) -> list[list[int]]:
    """Return rows in batches, under a cap all of one size."""
    count = min(most, len(rows))
    if capped and len(rows) % count:
        count = 1
    if capped:
        size = len(rows) // count
        return [rows[start : start + size] for start in range(0, len(rows), size)]
    cuts = [0, *sorted(rng.sample(range(1, len(rows)), count - 1)), len(rows)]
    return [rows[start:stop] for start, stop in pairwise(cuts)]


def _query(rng: random.Random, sets: int, targets: int) -> GroupingQuery:
    names = ("age", "size")[:sets]
    return GroupingQuery(
        grouping_sets=tuple(GroupingSet(columns=(name,), sizes=(rng.randint(targets, 6),)) for name in names),
        values=("x",),
        functions=("count", "sum", "avg", "min", "max"),
        partitions=targets,
    )


def _clusters(rng: random.Random, targets: int, steps: tuple[Step, ...]) -> KMeans:
    noise = None
    if all(step.only_on_purpose for step in steps) and rng.random() < 0.5:
        noise = Noise(kind="gaussian", radius=100.0, scale=0.01)
    return KMeans(initial=tuple((16.0 * place, 0.0) for place in range(targets)), noise=noise)


def _filled(document: RunDocument, holders: list[str], addresses: dict[str, str], rng: random.Random) -> Scene:
    """Give every row a value that is its own: sums of powers of two say who was counted, and how often."""
    places: dict[int, dict[int, tuple[int, int]]] = {row: {} for row in range(len(holders))}
    rows = {name: tuple(row for row, holder in enumerate(holders) if holder == name) for name in holders}
    for number, step in enumerate(document.steps, start=1):
        left = {name: list(own) for name, own in rows.items()}
        for position, batch in enumerate(step.batches):
            for slot, holder in enumerate(batch.holders):
                places[left[holder].pop(0)][number] = position, slot
    values = [_values(document, row, rng) for row in range(len(holders))]
    people = {
        name: tuple(Person(record=row, places=places[row], row=np.array(values[row])) for row in own)
        for name, own in rows.items()
    }
    return Scene(document=document, people=people, rows=rows, addresses=addresses)


def _values(document: RunDocument, row: int, rng: random.Random) -> list[float]:
    if isinstance(document.query, Aggregate):
        groups = [float(rng.randrange(sizes[0])) for _, sizes in document.query.grouping_sets]
        return [*groups, 2.0**row]
    return [float(rng.randrange(40)), 2.0**-row]
