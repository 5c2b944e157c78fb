"""From a plan to a run: who takes part, under which names, keys and addresses, and who holds which records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hushuffle.engines.aggregate import asked_rows
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.plans import Cluster, Plan
from hushuffle.randomness import Randomness
from hushuffle.runtime.document import Aggregate, Batch, RunDocument, Server, Step
from hushuffle.runtime.records import RecordCodec
from hushuffle.runtime.seals import SealKey
from hushuffle.runtime.source import Entry
from hushuffle.specification import AggregateQuery, PlanSpecification
from hushuffle.specification.network import Network
from hushuffle.workflows.plan_data import Records

RESULT = "result"


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A run that can be started: the public document, everybody's secret seal keys and records."""

    document: RunDocument
    seals: Mapping[str, SealKey] = field(repr=False)
    entries: Mapping[str, tuple[Entry, ...]] = field(repr=False)


def deploy(
    specification: PlanSpecification,
    plan: Plan,
    records: Records,
    *,
    address: Callable[[str], str],
    rng: Randomness,
) -> Deployment:
    """Return a run of a plan in which every record has a node of its own.

    Who shares a scrambler with whom is drawn without looking at any data.

    Args:
        specification: of the plan; `network` with its defaults if it has none.
        plan: made from it for these records.
        records: one for each person.
        address: gives host and port for the name of a node that others connect to.
        rng: of the assignment to scramblers.

    Raises:
        UnsupportedProtocolError: not an "aggregate" plan, or records too large for one message.
    """
    if not isinstance(specification.query, AggregateQuery):
        message = 'Only plans of kind "aggregate" run on a network yet; `hushuffle plan simulate` runs k-means.'
        raise UnsupportedProtocolError(message)
    network, query = specification.network or Network(), specification.query.query()
    seals, steps, parts = {RESULT: SealKey.generate()}, [], []
    for position, rows in enumerate(asked_rows(plan, records.n, rng)):
        cluster = plan.cluster(f"send by {query.grouping_sets[position].name}")
        step, slots = _step(position + 1, cluster, rows, records.n, rng)
        seals |= {name: SealKey.generate() for name in step.computes}
        steps.append(step)
        parts.append(slots)
    names = [RESULT, *(name for step in steps for name in _servers(step))]
    servers = {
        name: Server(address=address(name), seal=seals[name].public.text if name in seals else None) for name in names
    }
    document = RunDocument(
        plan=specification.effective(),
        people=records.n,
        query=Aggregate.of(query),
        steps=tuple(steps),
        result=RESULT,
        servers=servers,
        message=network.message,
        collect=network.collect,
        patience=network.patience,
        least=network.least,
    )
    return Deployment(document=document, seals=seals, entries=_entries(document, records, parts))


def holder(row: int, people: int) -> str:
    """Return the name of the node of one record."""
    return f"source-{row + 1:0{len(str(people))}d}"


def _servers(step: Step) -> list[str]:
    return [*step.computes, *(batch.scrambler for batch in step.batches if batch.scrambler is not None)]


def _step(
    number: int, cluster: Cluster, rows: npt.NDArray[np.int64], people: int, rng: Randomness
) -> tuple[Step, list[npt.NDArray[np.int64]]]:
    """Return a step of the run, and the row in each slot of each of its batches."""
    assert cluster.sampling is not None
    count = max(cluster.scramblers, 1)
    order = rows[rng.permutation(rows.size)]
    slots = [order[start::count] for start in range(count)]
    width = len(str(count))
    batches = tuple(
        Batch(
            scrambler=f"scrambler-{number}-{place:0{width}d}" if cluster.scrambler is not None else None,
            holders=tuple(holder(row, people) for row in own.tolist()),
        )
        for place, own in enumerate(slots, start=1)
    )
    step = Step(
        name=cluster.name,
        computes=tuple(f"compute-{number}-{target}" for target in range(1, cluster.targets + 1)),
        sigma=cluster.sampling.sigma,
        convention=cluster.sampling.convention,
        flood=cluster.sampling.flood,
        dummies=0 if cluster.scrambler is None else cluster.scrambler.dummies,
        capped=cluster.scrambler is not None and cluster.scrambler.cap is not None,
        min_batch=cluster.min_batch or 1,
        batches=batches,
    )
    return step, slots


def _entries(
    document: RunDocument, records: Records, parts: list[list[npt.NDArray[np.int64]]]
) -> dict[str, tuple[Entry, ...]]:
    found: dict[str, list[Entry]] = {}
    room = document.seals(1).room
    for number, slots in enumerate(parts, start=1):
        codec = RecordCodec(query=document.grouping, position=number - 1)
        if codec.size > room:
            message = f"A record takes {codec.size} bytes, a message holds {room}: make network.message larger."
            raise UnsupportedProtocolError(message)
        own, contents = codec.own(records.table), codec.pack(records.table)
        for batch, rows in enumerate(slots):
            for slot, row in enumerate(rows.tolist()):
                entry = Entry(step=number, batch=batch, slot=slot, record=row, own=int(own[row]), content=contents[row])
                found.setdefault(holder(row, records.n), []).append(entry)
    return {name: tuple(entries) for name, entries in found.items()}
