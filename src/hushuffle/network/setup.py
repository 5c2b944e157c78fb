"""From a plan to a run: who takes part, under which names, keys and addresses, and who holds which records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hushuffle.errors import UnsupportedProtocolError
from hushuffle.network.check import largest_of, noise_of, traffic_of
from hushuffle.network.nodes.document import Aggregate, Batch, KMeans, RunDocument, Server, Step
from hushuffle.network.nodes.points import PointCodec
from hushuffle.network.nodes.records import RecordCodec
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.source import Entry
from hushuffle.network.records import Held, people
from hushuffle.plans import Cluster, Plan
from hushuffle.plans.centroids import Floats
from hushuffle.queries.aggregate import asked_rows
from hushuffle.queries.data import Records
from hushuffle.randomness import Randomness
from hushuffle.specification import AggregateQuery, KMeansQuery, PlanSpecification
from hushuffle.specification.network import Network

RESULT = "result"


def draw_up(
    specification: PlanSpecification,
    plan: Plan,
    holders: Sequence[str],
    *,
    server: Callable[[str], Server],
    initial: Floats | None = None,
    rng: Randomness,
) -> RunDocument:
    """Return the document of a new run of a plan.

    Who shares a scrambler with whom is drawn without looking at any data.

    Args:
        specification: of the plan; `network` with its defaults if it has none.
        plan: made from it for so many people as there are holders.
        holders: the name of the node that speaks for each person; a name may stand there for several.
        server: gives address and public seal key for the name of a node that others connect to.
        initial: for k-means, the public first centroids, shape (K, dimensions).
        rng: of the assignment to scramblers.

    Raises:
        UnsupportedProtocolError: a plan without guarantee, hidden centroids, or records too large for one message.
    """
    if not plan.applies:
        message = f"A plan whose traffic has no guarantee is not run with people's data. {plan.refusals()[0]}"
        raise UnsupportedProtocolError(message)
    if isinstance(specification.query, KMeansQuery) and specification.query.variant == "hidden":
        message = (
            "Over a network everybody who takes part reads the centroids of every iteration: "
            "choose the variant private-centroids, or public-centroids."
        )
        raise UnsupportedProtocolError(message)
    network = specification.network or Network()
    clusters = [cluster for cluster in plan.clusters if cluster.reads]
    asked = _asked(specification, plan, len(holders), rng)
    steps = tuple(
        _step(plan, _computes(specification, number, cluster), number, cluster, rows, holders, rng)
        for number, (cluster, rows) in enumerate(zip(clusters, asked, strict=True), start=1)
    )
    document = RunDocument(
        plan=specification.effective(),
        people=len(holders),
        query=_query(specification, initial),
        steps=steps,
        result=RESULT,
        servers={name: server(name) for name in server_names(specification, plan)},
        message=network.message,
        collect=network.collect,
        patience=network.patience,
        least=network.least,
    )
    size, room = _largest(document), document.seals(1).room
    if size > room:
        message = f"A record takes {size} bytes, a message holds {room}: make network.message larger."
        raise UnsupportedProtocolError(message)
    return document


def _asked(specification: PlanSpecification, plan: Plan, people: int, rng: Randomness) -> list[npt.NDArray[np.int64]]:
    """Return who is asked in each step."""
    if isinstance(specification.query, AggregateQuery):
        return asked_rows(plan, people, rng)
    return [np.arange(people)] * specification.query.iterations


def _query(specification: PlanSpecification, initial: Floats | None) -> Aggregate | KMeans:
    query = specification.query
    if isinstance(query, AggregateQuery):
        return Aggregate.of(query.query())
    assert initial is not None
    first = tuple(map(tuple, initial.tolist()))
    return KMeans(initial=first, largest=largest_of(query), noise=noise_of(query))


def _largest(document: RunDocument) -> int:
    """Return the bytes of the largest record."""
    if isinstance(document.query, KMeans):
        return PointCodec(query=document.query).size
    return max(RecordCodec(query=document.grouping, position=place).size for place in range(len(document.steps)))


def server_names(specification: PlanSpecification, plan: Plan) -> list[str]:
    """Return the names of the nodes of a plan that others connect to: the result, compute nodes, scramblers.

    >>> from hushuffle.specification import parse_plan
    >>> spec = parse_plan('''
    ...     traffic = { sigma = 0.2, batch = 50 }
    ...     targets = { delta = 0.0 }
    ...     [query]
    ...     kind = "aggregate"
    ...     generated = { people = 100 }
    ...     columns = { age = 4 }
    ...     grouping_sets = [["age"]]
    ...     partitions = 2
    ... ''')
    >>> server_names(spec, spec.plan(100))
    ['result', 'compute-1-1', 'compute-1-2', 'scrambler-1-1', 'scrambler-1-2']
    """
    names = [RESULT]
    for number, cluster in enumerate((one for one in plan.clusters if one.reads), start=1):
        names += _computes(specification, number, cluster)
        names += _scramblers(number, cluster)
    return list(dict.fromkeys(names))


def _computes(specification: PlanSpecification, number: int, cluster: Cluster) -> tuple[str, ...]:
    """Return the targets of a step: in k-means the same nodes in every iteration."""
    start = f"compute-{number}" if isinstance(specification.query, AggregateQuery) else "compute"
    return tuple(f"{start}-{target}" for target in range(1, cluster.targets + 1))


def _scramblers(number: int, cluster: Cluster) -> tuple[str, ...]:
    width = len(str(cluster.scramblers))
    return tuple(f"scrambler-{number}-{place:0{width}d}" for place in range(1, cluster.scramblers + 1))


def _step(
    plan: Plan,
    computes: tuple[str, ...],
    number: int,
    cluster: Cluster,
    rows: npt.NDArray[np.int64],
    holders: Sequence[str],
    rng: Randomness,
) -> Step:
    scramblers: tuple[str | None, ...] = _scramblers(number, cluster) or (None,)
    order = rows[rng.permutation(rows.size)].tolist()
    batches = tuple(
        Batch(scrambler=scrambler, holders=tuple(holders[row] for row in order[start :: len(scramblers)]))
        for start, scrambler in enumerate(scramblers)
    )
    return Step(
        name=cluster.name,
        computes=computes,
        batches=batches,
        **traffic_of(plan, cluster),
    )


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A run that can be started on one machine: the public document, everybody's secret seal keys and records."""

    document: RunDocument
    seals: Mapping[str, SealKey] = field(repr=False)
    entries: Mapping[str, Sequence[Held]] = field(repr=False)


def deploy(
    specification: PlanSpecification,
    plan: Plan,
    records: Records,
    *,
    address: Callable[[str], str],
    rng: Randomness,
) -> Deployment:
    """Return a run of a plan in which every record has a node of its own.

    Args:
        specification: of the plan.
        plan: made from it for these records.
        records: one for each person.
        address: gives host and port for the name of a node that others connect to.
        rng: of the assignment to scramblers.

    Raises:
        UnsupportedProtocolError: as `draw_up`.
    """
    seals: dict[str, SealKey] = {}

    def server(name: str) -> Server:
        if name.startswith("scrambler"):
            return Server(address=address(name))
        seals[name] = SealKey.generate()
        return Server(address=address(name), seal=seals[name].public.text)

    width = len(str(records.n))
    names = [f"source-{row + 1:0{width}d}" for row in range(records.n)]
    document = draw_up(specification, plan, names, server=server, initial=records.initial, rng=rng)
    if records.points is None:
        held: Mapping[str, Sequence[Held]] = _entries(document, names, records)
    else:
        points = records.points
        held = {name: people(document, name, [row], points[row : row + 1]) for row, name in enumerate(names)}
    return Deployment(document=document, seals=seals, entries=held)


def _entries(document: RunDocument, names: Sequence[str], records: Records) -> dict[str, tuple[Entry, ...]]:
    codecs = [RecordCodec(query=document.grouping, position=place) for place in range(len(document.steps))]
    owns, contents = [one.own(records.table) for one in codecs], [one.pack(records.table) for one in codecs]
    return {
        name: tuple(
            Entry(
                step=step,
                batch=batch,
                slot=slot,
                record=row,
                own=int(owns[step - 1][row]),
                content=contents[step - 1][row],
            )
            for step, batch, slot in document.places.get(name, ())
        )
        for row, name in enumerate(names)
    }
