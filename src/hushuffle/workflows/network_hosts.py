"""Prepare a run on hosts of their own: the document, and a configuration for each node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import tomli_w

from hushuffle.errors import DataError, Problem, SpecificationError
from hushuffle.randomness import secure
from hushuffle.runtime.document import RunDocument, Server
from hushuffle.runtime.seals import PublicSealKey
from hushuffle.specification import PlanSpecification
from hushuffle.specification.hosts import Hosts, load_hosts
from hushuffle.workflows.network_run import DOCUMENT, RESULT_FILE
from hushuffle.workflows.network_setup import RESULT, draw_up, server_names


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The run's document, and the command for each node, servers first."""

    document: Path
    commands: tuple[str, ...]


def prepare(specification: PlanSpecification, hosts: Path, *, out: Path) -> Prepared:
    """Write `run.json` and a configuration for each node into a new folder.

    The plan's own data are not read: every source brings its own. How many people there are is how many sources the
    hosts' file lists.

    Args:
        specification: of the plan.
        hosts: a TOML file, see `hushuffle.specification.hosts`.
        out: a folder that is not there yet, or empty.

    Raises:
        SpecificationError: the file of hosts is wrong, or names not all nodes.
        DataError: a file cannot be read or written.
        UnsupportedProtocolError: this plan cannot run on a network.
    """
    wanted = load_hosts(hosts)
    names = _sources(wanted, hosts.parent)
    plan = specification.plan(len(names))
    servers = server_names(specification, plan)
    missing = [name for name in servers if name not in wanted.servers]
    if missing:
        hint = "Host and port of each: " + ", ".join(missing)
        problem = Problem(key="servers", rule="must name all nodes", value=f"{len(missing)} missing", hint=hint)
        raise SpecificationError(str(hosts), (problem,))

    def server(name: str) -> Server:
        seal = None if name.startswith("scrambler") else _seal(hosts.parent / wanted.seals / f"{name}.seal.pub")
        return Server(address=wanted.servers[name], seal=seal)

    document = draw_up(specification, plan, names, server=server, rng=secure())
    if out.exists() and any(out.iterdir()):
        _fail(f"{out} is there already, and not empty: give a new folder.")
    try:
        return _written(document, servers, out)
    except OSError as error:
        _fail(f"{out} cannot be written: {error.strerror or 'an error'}.")


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
    return Prepared(document=out / DOCUMENT, commands=tuple(commands))


def _sources(wanted: Hosts, folder: Path) -> list[str]:
    if wanted.sources_file is None:
        return list(wanted.sources)
    path = folder / wanted.sources_file
    try:
        return path.read_text("utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        _fail(f"{path} cannot be read: {reason or 'an error'}.")


def _seal(path: Path) -> str:
    try:
        return PublicSealKey.of(path.read_text("ascii").strip()).text
    except (OSError, UnicodeDecodeError):
        _fail(f"{path} cannot be read: `hushuffle node certs` makes seal keys, the public half is enough here.")


def _fail(message: str) -> NoReturn:
    raise DataError(message) from None
