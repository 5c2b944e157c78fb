"""Prepare a run on several hosts: certificates, the run's document, and a configuration for each node."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tomli_w

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.errors import Problem, SpecificationError
from hushuffle.files.causes import cause, text_in
from hushuffle.files.private_files import write_private
from hushuffle.files.secret_keys import text_of_secret
from hushuffle.network.check import check_promise
from hushuffle.network.nodes.document import RunDocument, Server
from hushuffle.network.nodes.identities import Authority
from hushuffle.network.nodes.seals import PublicSealKey, SealKey
from hushuffle.network.processes import DOCUMENT, RESULT_FILE
from hushuffle.network.setup import RESULT, draw_up, server_names
from hushuffle.network.specification import NAME_RULE, Hosts, is_name, load_hosts
from hushuffle.queries import PlanSpecification
from hushuffle.randomness import secure

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
