"""The processes of a run on this machine: their addresses, their files, how they start and what they leave."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tomli_w

from hushuffle.files.private_files import write_private
from hushuffle.network.nodes.identities import Authority, Identity
from hushuffle.network.setup import RESULT, Deployment, write_prepared

RESULT_FILE: Final = "result.json"
DOCUMENT: Final = "run.json"


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process of a run: its name, the nodes in it, and its configuration file."""

    name: str
    nodes: tuple[str, ...]
    configuration: Path
    sockets: tuple[socket.socket, ...] = ()


class Loopback:
    """Addresses of this machine alone: every node has one of its own in 127.0.0.0/8, as hosts on a network have.

    `recorded`: whether others reach a node through the recorder, at its own address, or directly.
    """

    def __init__(self, *, recorded: bool = True) -> None:
        self._recorded = recorded
        self._hosts: dict[str, str] = {}
        self.public: dict[str, socket.socket] = {}
        self.private: dict[str, socket.socket] = {}

    def host(self, name: str) -> str:
        """Return the address of a node, the same one every time."""
        number = len(self._hosts)
        return self._hosts.setdefault(name, f"127.{1 + number // 62_500}.{1 + number // 250 % 250}.{1 + number % 250}")

    def listening(self, name: str) -> str:
        """Return host and port at which others reach a node; the port is bound at once, so that nobody can take it."""
        own = socket.create_server((self.host(name), 0), backlog=4096)
        self.private[name] = own
        if self._recorded:
            own = socket.create_server((self.host(name), 0), backlog=4096)
            self.public[name] = own
        host, port = own.getsockname()[:2]
        return f"{host}:{port}"

    @property
    def names(self) -> dict[str, str]:
        """The names of all addresses."""
        return {host: name for name, host in self._hosts.items()}

    def routes(self) -> list[tuple[socket.socket, tuple[str, int]]]:
        """Return the sockets of the recorder, each with the place of the node behind it."""
        return [(one, self.private[name].getsockname()[:2]) for name, one in self.public.items()]

    def close_private(self) -> None:
        """Close the sockets of the nodes: those who run them have their own."""
        for one in self.private.values():
            one.close()

    def close(self) -> None:
        """Close all sockets."""
        self.close_private()
        for one in self.public.values():
            one.close()


def configure(deployment: Deployment, loopback: Loopback, place: Path, key: bytes, count: int) -> list[Process]:
    """Write keys, certificates and one configuration for each process; return the processes, sources last."""
    document, authority = deployment.document, Authority(days=1)
    computes = list(dict.fromkeys(name for step in document.steps for name in step.computes))
    scramblers = [batch.scrambler for step in document.steps for batch in step.batches if batch.scrambler is not None]
    (place / "identities").mkdir(mode=0o700)
    write_private(place / "identities" / "authority.pem", authority.certificate.encode(), durable=False)
    write_private(place / "coins.key", key.hex().encode(), durable=False)
    processes = [_servers("result", [RESULT], deployment, loopback, place, authority, result=RESULT_FILE)]
    for kind, names in (("compute", computes), ("scrambler", scramblers)):
        for number, own in enumerate(_shared(names, count), start=1):
            processes.append(_servers(f"{kind}-nodes-{number}", own, deployment, loopback, place, authority))
    for number, own in enumerate(_shared(list(deployment.people), count), start=1):
        name = f"source-nodes-{number}"
        for one in own:
            _identify(place, authority.issue(one, address=loopback.host(one)))
        write_prepared(place / f"{name}.npz", {one: deployment.people[one] for one in own})
        records = {"prepared": f"{name}.npz", "coins": "coins.key", "state": f"{name}.state"}
        more = {"records": records, "addresses": {one: loopback.host(one) for one in own}}
        processes.append(_process(name, own, place, more))
    return processes


def _servers(
    name: str,
    own: list[str],
    deployment: Deployment,
    loopback: Loopback,
    place: Path,
    authority: Authority,
    **more: str,
) -> Process:
    sockets = tuple(loopback.private[one] for one in own)
    for one in own:
        _identify(place, authority.issue(one))
        if one in deployment.seals:
            write_private(place / "identities" / f"{one}.seal", deployment.seals[one].text.encode(), durable=False)
    listen = {one: f"fd:{where.fileno()}" for one, where in zip(own, sockets, strict=True)}
    addresses = {one: loopback.host(one) for one in own}
    return _process(name, own, place, {"listen": listen, "addresses": addresses, **more}, sockets)


def _process(
    name: str, own: list[str], place: Path, more: Mapping[str, Any], sockets: tuple[socket.socket, ...] = ()
) -> Process:
    configuration = place / f"{name}.toml"
    table = {"document": DOCUMENT, "nodes": own, "identities": "identities", "status": f"{name}.status.json", **more}
    configuration.write_text(tomli_w.dumps(table), encoding="utf-8")
    return Process(name=name, nodes=tuple(own), configuration=configuration, sockets=sockets)


def _identify(place: Path, identity: Identity) -> None:
    write_private(place / "identities" / f"{identity.name}.pem", identity.certificate.encode(), durable=False)
    write_private(place / "identities" / f"{identity.name}.key", identity.key.encode(), durable=False)


def _shared(names: Sequence[str], count: int) -> Iterator[list[str]]:
    """Yield the names in at most `count` parts, none empty."""
    parts = min(count, len(names))
    for start in range(parts):
        yield list(names[start::parts])


async def start(process: Process, group: int) -> asyncio.subprocess.Process:
    """Start a process in a process group; what it says goes to a file beside its configuration."""
    log = process.configuration.with_suffix(".log")
    with log.open("wb") as file:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "hushuffle",
            "node",
            "start",
            str(process.configuration),
            pass_fds=[one.fileno() for one in process.sockets],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            process_group=group,
        )


def ended(process: asyncio.subprocess.Process) -> str:
    """Return how a process ended that did not end well."""
    code = process.returncode or 0
    return f"killed by signal {-code}" if code < 0 else f"ended with code {code}"


def statuses(processes: list[Process]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the counters and failures that the processes wrote; the last words of one that wrote none."""
    counters, failures = dict[str, dict[str, Any]](), dict[str, str]()
    for process in processes:
        try:
            status = json.loads(process.configuration.with_name(f"{process.name}.status.json").read_bytes())
        except FileNotFoundError:
            lines = process.configuration.with_suffix(".log").read_text("utf-8", errors="replace").splitlines()
            said = [line for line in lines if not line.startswith("{")]
            if said:
                failures[process.name] = said[-1]
            continue
        counters |= status["nodes"]
        failures |= status["failures"]
    return counters, failures
