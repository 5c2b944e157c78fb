"""From a plan to a run: who takes part, under which names, keys and addresses, and who holds which records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hushuffle.errors import UnsupportedProtocolError
from hushuffle.network.nodes.document import Batch, RunDocument, Server, Step
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.source import Person
from hushuffle.network.records import people
from hushuffle.plans import Cluster, Plan, Traffic
from hushuffle.queries import PlanSpecification
from hushuffle.queries.query import Integers, Records
from hushuffle.queries.specification import Network
from hushuffle.randomness import Randomness

RESULT = "result"


def draw_up(
    specification: PlanSpecification,
    plan: Plan,
    holders: Sequence[str],
    *,
    server: Callable[[str], Server],
    records: Records | None = None,
    rng: Randomness,
) -> RunDocument:
    """Return the document of a new run of a plan.

    Who shares a scrambler with whom is drawn without looking at any data.

    Args:
        specification: of the plan; `network` with its defaults if it has none.
        plan: made from it for so many people as there are holders.
        holders: the name of the node that speaks for each person; a name may stand there for several.
        server: gives address and public seal key for the name of a node that others connect to.
        records: in a rehearsal; None where every source brings its own.
        rng: of the assignment to scramblers.

    Raises:
        UnsupportedProtocolError: a plan without guarantee, hidden centroids, or records too large for one message.
    """
    if not plan.applies:
        message = f"A plan whose traffic has no guarantee is not run with people's data. {plan.refusals()[0]}"
        raise UnsupportedProtocolError(message)
    network, task = specification.network or Network(), specification.query.task(records)
    clusters = [cluster for cluster in plan.clusters if cluster.reads]
    asked = specification.query.asked(plan, len(holders), rng)
    steps = tuple(
        _step(plan, _computes(specification, number, cluster), number, cluster, rows, holders, rng)
        for number, (cluster, rows) in enumerate(zip(clusters, asked, strict=True), start=1)
    )
    document = RunDocument(
        plan=specification.effective(),
        people=len(holders),
        query=task,
        steps=steps,
        result=RESULT,
        servers={name: server(name) for name in server_names(specification, plan)},
        message=network.message,
        collect=network.collect,
        patience=network.patience,
        least=network.least,
    )
    size, room = max(task.size(number) for number in range(1, len(steps) + 1)), document.seals(1).room
    if size > room:
        message = f"A record takes {size} bytes, a message holds {room}: make network.message larger."
        raise UnsupportedProtocolError(message)
    return document


def server_names(specification: PlanSpecification, plan: Plan) -> list[str]:
    """Return the names of the nodes of a plan that others connect to: the result, compute nodes, scramblers.

    >>> from hushuffle.queries import parse_plan
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
    """Return the targets of a step: in rounds the same nodes every time."""
    start = "compute" if specification.query.task_type.rounds else f"compute-{number}"
    return tuple(f"{start}-{target}" for target in range(1, cluster.targets + 1))


def _scramblers(number: int, cluster: Cluster) -> tuple[str, ...]:
    width = len(str(cluster.scramblers))
    return tuple(f"scrambler-{number}-{place:0{width}d}" for place in range(1, cluster.scramblers + 1))


def _step(
    plan: Plan,
    computes: tuple[str, ...],
    number: int,
    cluster: Cluster,
    rows: Integers,
    holders: Sequence[str],
    rng: Randomness,
) -> Step:
    scramblers: tuple[str | None, ...] = _scramblers(number, cluster) or (None,)
    order = rows[rng.permutation(rows.size)].tolist()
    batches = tuple(
        Batch(scrambler=scrambler, holders=tuple(holders[row] for row in order[start :: len(scramblers)]))
        for start, scrambler in enumerate(scramblers)
    )
    traffic, only_on_purpose = Traffic.of(cluster).given(), plan.coins_known(cluster)
    return Step(name=cluster.name, computes=computes, batches=batches, only_on_purpose=only_on_purpose, **traffic)


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A run that can be started on one machine: the public document, everybody's secret seal keys and records."""

    document: RunDocument
    seals: Mapping[str, SealKey] = field(repr=False)
    people: Mapping[str, Sequence[Person]] = field(repr=False)


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
    document = draw_up(specification, plan, names, server=server, records=records, rng=rng)
    held = {
        name: people(document, name, [row], records.rows[row : row + 1])
        for row, name in enumerate(names)
        if name in document.places
    }
    return Deployment(document=document, seals=seals, people=held)
