"""Prepare a run on hosts of their own: the document, and a configuration for each node."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import tomli_w

from hushuffle.errors import DataError, Problem, SpecificationError
from hushuffle.files.causes import cause
from hushuffle.network.check import check_promise
from hushuffle.network.nodes.document import RunDocument, Server
from hushuffle.network.nodes.seals import PublicSealKey
from hushuffle.network.run import DOCUMENT, RESULT_FILE
from hushuffle.network.setup import RESULT, draw_up, server_names
from hushuffle.queries import PlanSpecification
from hushuffle.randomness import secure
from hushuffle.specification.hosts import NAME_RULE, Hosts, is_name, load_hosts


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The run's document, the moment from which its times are counted, and the command for each node, servers first."""

    document: Path
    start: str
    commands: tuple[str, ...]


AHEAD: Final = dt.timedelta(minutes=15)
"""How long after it is drawn up a run starts, unless its start is given."""


def prepare(specification: PlanSpecification, hosts: Path, *, out: Path, start: dt.datetime | None = None) -> Prepared:
    """Write `run.json` and a configuration for each node into a new folder.

    The plan's own data are not read: every source brings its own. How many people there are is how many sources the
    hosts' file lists.

    Args:
        specification: of the plan.
        hosts: a TOML file, see `hushuffle.specification.hosts`.
        out: a folder that is not there yet, or empty.
        start: the moment from which all times of the run are counted; `AHEAD` from now by default.

    Raises:
        SpecificationError: the file of hosts is wrong, or names not all nodes.
        DataError: a file cannot be read or written, holds names that cannot be nodes', or the plan misses its own
            `targets.epsilon` with so many people.
        UnsupportedProtocolError: this plan cannot run on a network.
    """
    wanted = load_hosts(hosts)
    names = _sources(wanted, hosts.parent)
    plan = specification.plan(len(names))
    servers = server_names(specification, plan)
    missing = [name for name in servers if name not in wanted.servers]
    both = sorted({*servers} & {*names})
    if both:
        problem = Problem(key="sources", rule="must be other nodes than the servers", value=", ".join(both))
        raise SpecificationError(str(hosts), (problem,))
    if missing:
        hint = "Host and port of each: " + ", ".join(missing)
        problem = Problem(key="servers", rule="must name all nodes", value=f"{len(missing)} missing", hint=hint)
        raise SpecificationError(str(hosts), (problem,))

    def server(name: str) -> Server:
        seal = None if name.startswith("scrambler") else _seal(hosts.parent / wanted.seals / f"{name}.seal.pub")
        return Server(address=wanted.servers[name], seal=seal)

    document = draw_up(specification, plan, names, server=server, rng=secure())
    document = document.starting(start or dt.datetime.now(dt.UTC) + AHEAD)
    check_promise(document)  # what every node would refuse is not handed out
    try:
        if out.exists() and any(out.iterdir()):
            _fail(f"{out} is there already, and not empty: give a new folder.")
        return _written(document, servers, out)
    except OSError as error:
        _fail(f"{out} cannot be written: {cause(error)}.")


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
    try:
        names = path.read_text("utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        _fail(f"{path} cannot be read: {reason or 'an error'}.")
    wrong = [name for name in dict.fromkeys(names) if not is_name(name)]
    if wrong or not names:
        got = ", ".join(map(repr, wrong[:3])) or "none"
        _fail(f"{path} must hold names of {NAME_RULE}, one on a line; got {got}.")
    return names


def _seal(path: Path) -> str:
    try:
        return PublicSealKey.of(path.read_text("ascii").strip()).text
    except (OSError, UnicodeDecodeError):
        _fail(f"{path} cannot be read: `hushuffle node certs` makes seal keys, the public half is enough here.")


def _fail(message: str) -> NoReturn:
    raise DataError(message) from None
