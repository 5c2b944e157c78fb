"""Draw up a run from a plan: participants with keys and addresses, and each record's node, here or on other hosts."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np
import tomli_w

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.errors import Problem, SpecificationError
from hushuffle.files.causes import cause, refused, text_in
from hushuffle.files.private_files import write_private
from hushuffle.files.secret_keys import text_of_secret
from hushuffle.network.check import check_promise
from hushuffle.network.nodes.document import Batch, RunDocument, Server, Step
from hushuffle.network.nodes.identities import Authority
from hushuffle.network.nodes.seals import PublicSealKey, SealKey
from hushuffle.network.nodes.source import Person
from hushuffle.network.specification import NAME_RULE, Hosts, NodeConfiguration, is_name, load_hosts
from hushuffle.plans import Cluster, Plan, Traffic
from hushuffle.queries import PlanSpecification
from hushuffle.queries.query import Query, Records, Rows
from hushuffle.queries.specification import Network
from hushuffle.randomness import Randomness, secure

RESULT: Final = "result"
RESULT_FILE: Final = "result.json"
DOCUMENT: Final = "run.json"


def draw_up(
    specification: PlanSpecification,
    plan: Plan,
    holders: Sequence[str],
    *,
    server: Callable[[str], Server],
    records: Records | None = None,
    rng: Randomness,
) -> RunDocument:
    """Return the document of a new run; people are assigned to scramblers at random, independent of all data.

    `holders`: for each person, the name of the node that sends the person's record; a name may occur several times.
    `server`: a function from the name of a listening node to its address and public seal key.
    `records`: the records, in a rehearsal; None if every source has its own record.
    """
    if not plan.applies:
        _checks.unsupported(
            f"The traffic of this plan has no guarantee: it must not use people's data. {plan.refusals()[0]}"
        )
    names = server_names(specification, plan)
    network, task = specification.network or Network(), specification.query.task(records)
    clusters = [cluster for cluster in plan.clusters if cluster.reads]
    rows_of = specification.query.asked(plan, len(holders), rng)
    steps: list[Step] = []
    for number, (cluster, rows) in enumerate(zip(clusters, rows_of, strict=True), start=1):
        scramblers: tuple[str | None, ...] = _scramblers(number, cluster) or (None,)
        order = rows[rng.permutation(rows.size)].tolist()
        batches = tuple(
            Batch(scrambler=scrambler, holders=tuple(holders[row] for row in order[start :: len(scramblers)]))
            for start, scrambler in enumerate(scramblers)
        )
        computes, only = _computes(specification, number, cluster), plan.coins_known(cluster)
        traffic = Traffic.of(cluster).given()
        steps.append(Step(name=cluster.name, computes=computes, batches=batches, only_on_purpose=only, **traffic))
    document = RunDocument(
        plan=specification.effective(),
        people=len(holders),
        query=task,
        steps=tuple(steps),
        result=RESULT,
        servers={name: server(name) for name in names},
        **network.shared(),
    )
    size, room = max(task.size(number) for number in range(1, len(steps) + 1)), document.seals(1).room
    if size > room:
        _checks.unsupported(
            f"A record needs {size} bytes, but a message has space for {room}. Increase network.message."
        )
    return document


def server_names(specification: PlanSpecification, plan: Plan) -> list[str]:
    """Return the names of the listening nodes of a plan: the result, compute nodes and scramblers.

    Refuses a plan with a chain of scramblers: in a run with a roster, each batch has one scrambler.

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
    chained = specification.traffic.scramblers or 1
    if chained > 1:
        _checks.unsupported(
            f"A run with a roster has one scrambler per batch, but the plan has traffic.scramblers = {chained}. "
            "Chains of scramblers run on the network of phones."
        )
    names = [RESULT]
    for number, cluster in enumerate((one for one in plan.clusters if one.reads), start=1):
        names += _computes(specification, number, cluster)
        names += _scramblers(number, cluster)
    return list(dict.fromkeys(names))


def _computes(specification: PlanSpecification, number: int, cluster: Cluster) -> tuple[str, ...]:
    """Return the names of a step's targets; a query with iterations has the same targets in every iteration."""
    start = "compute" if specification.query.task_type.rounds else f"compute-{number}"
    return tuple(f"{start}-{target}" for target in range(1, cluster.targets + 1))


def _scramblers(number: int, cluster: Cluster) -> tuple[str, ...]:
    width = len(str(cluster.scramblers))
    return tuple(f"scrambler-{number}-{place:0{width}d}" for place in range(1, cluster.scramblers + 1))


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A run on one machine: the public document, and the secret seal keys and records of all nodes."""

    document: RunDocument
    seals: Mapping[str, SealKey] = field(repr=False)
    people: Mapping[str, Sequence[Person]] = field(repr=False)


def deploy(
    specification: PlanSpecification, plan: Plan, records: Records, *, address: Callable[[str], str], rng: Randomness
) -> Deployment:
    """Return a run of a plan in which each record has its own node; `address`: a listening node's host and port."""
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


def held_records(
    config: NodeConfiguration, document: RunDocument, query: Query, folder: Path
) -> Mapping[str, Sequence[Person]]:
    if config.records is None:
        fail("the configuration of source nodes needs [records] with data, key and state.")
    if config.records.prepared is not None:
        return read_prepared(folder / config.records.prepared, document)
    if len(config.nodes) != 1:
        fail("a table of records belongs to one source node: write one configuration per source node.")
    assert config.records.data is not None
    (name,), data = config.nodes, config.records.data
    places = document.places.get(name, ())
    wanted = len(places) // len(document.steps) if query.everybody else len(places)
    by_step = Counter(step for step, _, _ in places)
    if query.everybody and any(by_step[step] != wanted for step in range(1, len(document.steps) + 1)):
        fail(f"the run's document must list {name} equally often in every step, as its plan does.")
    rows = query.brought(data, folder).rows
    if len(rows) != wanted:
        fail(f"{data} has {len(rows):,} records, but the run's document lists {wanted:,} of {name}.")
    return {name: people(document, name, range(wanted), rows)}


def people(document: RunDocument, name: str, records: Sequence[int], rows: Rows) -> tuple[Person, ...]:
    """Return the people of one source node; `records`: their numbers, from which their randomness is derived.

    Each person has one place in every step, or in one step if the node has as many places as people.
    """
    by_step: dict[int, list[tuple[int, int]]] = {}
    for step, batch, slot in document.places[name]:
        by_step.setdefault(step, []).append((batch, slot))
    if sum(map(len, by_step.values())) == len(records):
        own = [{step: place} for step, places in by_step.items() for place in places]
    else:
        own = [{step: places[number] for step, places in by_step.items()} for number in range(len(records))]
    return tuple(
        Person(record=record, places=places, row=np.asarray(row, dtype=np.float64))
        for record, places, row in zip(records, own, rows, strict=True)
    )


def write_prepared(path: Path, held: Mapping[str, Sequence[Person]]) -> None:
    """Write records for `read_prepared` into a file that only its owner can read."""
    every = [(name, one) for name, own in held.items() for one in own]
    file = BytesIO()
    np.savez(
        file,
        names=np.array([name for name, _ in every]),
        records=np.array([one.record for _, one in every], dtype=np.int64),
        rows=np.stack([one.row for _, one in every]),
    )
    write_private(path, file.getvalue(), durable=False)


def read_prepared(path: Path, document: RunDocument) -> dict[str, Sequence[Person]]:
    with (
        refused(path, f"{path} cannot be read: `hushuffle plan run` did not write it, or it is damaged."),
        np.load(BytesIO(path.read_bytes()), allow_pickle=False) as file,
    ):
        names, records, rows = file["names"].tolist(), file["records"].tolist(), file["rows"]
        places: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            places.setdefault(name, []).append(place)
        return {name: people(document, name, [records[one] for one in own], rows[own]) for name, own in places.items()}


AUTHORITY: Final = "authority"
_ENDINGS: Final = (".pem", ".key", ".seal", ".seal.pub")


def make_certificates(names: Sequence[str], *, out: Path, days: float = 30.0) -> list[Path]:
    """Write NAME.pem, NAME.key, NAME.seal and NAME.seal.pub for each node, certified by the folder's authority.

    An authority that is already in the folder is used again. The files of a node are never overwritten.
    """
    _checks.positive("days", days)
    nodes = list(dict.fromkeys(names))
    for name in nodes:
        if not is_name(name) or name == AUTHORITY:
            _checks.reject("names", f"of {NAME_RULE}, and not {AUTHORITY!r}", name)
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (out / f"{name}{ending}" for name in nodes for ending in _ENDINGS):
            if path.exists():
                fail(f"{path} exists, and a node's files are never overwritten. Choose another folder or name.")
        authority, written = _authority(out, days)
        for name in nodes:
            identity, seal = authority.issue(name), SealKey.generate()
            (out / f"{name}.pem").write_text(identity.certificate, encoding="ascii")
            (out / f"{name}.seal.pub").write_text(seal.public.text + "\n", encoding="ascii")
            write_private(out / f"{name}.key", identity.key.encode())
            write_private(out / f"{name}.seal", seal.text.encode())
            written += [out / f"{name}{ending}" for ending in _ENDINGS]
    except OSError as error:
        fail(f"{error.filename or out} cannot be used: {cause(error)}.")
    return written


def _authority(out: Path, days: float) -> tuple[Authority, list[Path]]:
    """Return the authority of a folder, and the files that were written if the authority is new."""
    place, key = out / f"{AUTHORITY}.pem", out / f"{AUTHORITY}.key"
    if key.exists():
        certificate = place.read_text("ascii", errors="replace")
        return Authority.read(certificate=certificate, key=text_of_secret(str(key)), days=days), []
    if place.exists():
        fail(f"{place} exists without {key.name}, which signs certificates. Restore the key, or choose a new folder.")
    authority = Authority(days=days)
    write_private(key, authority.key.encode())
    place.write_text(authority.certificate, encoding="ascii")
    return authority, [place, key]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The result of `prepare`: the run's document, its start time, and each node's start command, servers first."""

    document: Path
    start: str
    commands: tuple[str, ...]


AHEAD: Final = dt.timedelta(minutes=15)
"""Time from the preparation of a run to its start, unless the start is given."""


def prepare(specification: PlanSpecification, hosts: Path, *, out: Path, start: dt.datetime | None = None) -> Prepared:
    """Write `run.json` and a configuration for each node into a new or empty folder.

    The plan's own data are not read: every source in the file `hosts` is one person. All times of the run are counted
    from `start`, by default `AHEAD` from now.
    """
    wanted = load_hosts(hosts)
    names = _sources(wanted, hosts.parent)
    plan = specification.plan(len(names))
    servers = server_names(specification, plan)
    missing = [name for name in servers if name not in wanted.servers]
    both = sorted({*servers} & {*names})
    if both:
        problem = Problem(key="sources", rule="must be nodes that are not servers", value=", ".join(both))
        raise SpecificationError(str(hosts), (problem,))
    if missing:
        hint = "Host and port of each: " + ", ".join(missing)
        problem = Problem(key="servers", rule="must name all nodes", value=f"{len(missing)} missing", hint=hint)
        raise SpecificationError(str(hosts), (problem,))

    def server(name: str) -> Server:
        if name.startswith("scrambler"):
            return Server(address=wanted.servers[name])
        path = hosts.parent / wanted.seals / f"{name}.seal.pub"
        try:
            seal = PublicSealKey.of(path.read_text("ascii").strip())
        except (OSError, UnicodeDecodeError):
            fail(
                f"{path} cannot be read. `hushuffle node certs` creates seal keys; only the public half is needed here."
            )
        return Server(address=wanted.servers[name], seal=seal.text)

    document = draw_up(specification, plan, names, server=server, rng=secure())
    document = document.starting(start or dt.datetime.now(dt.UTC) + AHEAD)
    check_promise(document)  # every node would refuse an invalid document
    try:
        if out.exists() and any(out.iterdir()):
            fail(f"{out} exists and is not empty. Choose a new folder.")
        return _written(document, servers, out)
    except OSError as error:
        fail(f"{out} cannot be written: {cause(error)}.")


def _written(document: RunDocument, servers: list[str], out: Path) -> Prepared:
    out.mkdir(parents=True, exist_ok=True)
    (out / DOCUMENT).write_text(document.text, encoding="utf-8")
    commands = []
    for name in (*servers, *document.places):
        table: dict[str, object] = {"document": DOCUMENT, "nodes": [name], "identities": "identities"}
        table["status"] = f"{name}.status.json"
        if name == RESULT:
            table["result"] = RESULT_FILE
        if name in document.places:
            table["records"] = {"data": f"{name}.csv", "coins": f"{name}.coins", "state": f"{name}.state"}
        (out / f"{name}.toml").write_text(tomli_w.dumps(table), encoding="utf-8")
        commands.append(f"hushuffle node start {name}.toml")
    return Prepared(document=out / DOCUMENT, start=document.start, commands=tuple(commands))


def _sources(wanted: Hosts, folder: Path) -> list[str]:
    if wanted.sources_file is None:
        return list(wanted.sources)
    path = folder / wanted.sources_file
    names = text_in(path).split()
    wrong = [name for name in dict.fromkeys(names) if not is_name(name)]
    if wrong or not names:
        got = ", ".join(map(repr, wrong[:3])) or "none"
        fail(f"{path} must hold one name on each line, of {NAME_RULE}; got {got}.")
    return names
