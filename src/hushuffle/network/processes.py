"""The processes of a run on this machine: addresses, files, start and outcome."""

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
    name: str
    nodes: tuple[str, ...]
    configuration: Path
    sockets: tuple[socket.socket, ...] = ()

    @property
    def log(self) -> Path:
        """The file for the output of the process, beside its configuration."""
        return self.configuration.with_suffix(".log")


class Loopback:
    """Addresses on the loopback device: each node has its own address in 127.0.0.0/8, as hosts in a network have.

    `recorded`: whether other nodes reach a node through the recorder, which listens at the node's address, or directly.
    """

    def __init__(self, *, recorded: bool = True) -> None:
        self._recorded = recorded
        self._hosts: dict[str, str] = {}
        self.public: dict[str, socket.socket] = {}
        self.private: dict[str, socket.socket] = {}

    def host(self, name: str) -> str:
        """Return the address of a node; repeated calls return the same address."""
        number = len(self._hosts)
        return self._hosts.setdefault(name, f"127.{1 + number // 62_500}.{1 + number // 250 % 250}.{1 + number % 250}")

    def listening(self, name: str) -> str:
        """Bind a port for a node at once, and return host and port at which other nodes reach it."""
        own = socket.create_server((self.host(name), 0), backlog=4096)
        self.private[name] = own
        if self._recorded:
            own = socket.create_server((self.host(name), 0), backlog=4096)
            self.public[name] = own
        host, port = own.getsockname()[:2]
        return f"{host}:{port}"

    @property
    def names(self) -> dict[str, str]:
        return {host: name for name, host in self._hosts.items()}

    def routes(self) -> list[tuple[socket.socket, tuple[str, int]]]:
        """Return the sockets of the recorder, each with the address of the node behind it."""
        return [(one, self.private[name].getsockname()[:2]) for name, one in self.public.items()]

    def close_private(self) -> None:
        """Close the nodes' sockets here: the nodes' processes have inherited them."""
        for listener in self.private.values():
            listener.close()

    def close(self) -> None:
        self.close_private()
        for listener in self.public.values():
            listener.close()


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
        for member in own:
            _identify(place, authority.issue(member, address=loopback.host(member)))
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
    for member in own:
        _identify(place, authority.issue(member))
        if member in deployment.seals:
            write_private(
                place / "identities" / f"{member}.seal", deployment.seals[member].text.encode(), durable=False
            )
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
    """Yield at most `count` parts of the names; no part is empty."""
    parts = min(count, len(names))
    for start in range(parts):
        yield list(names[start::parts])


async def start(
    configuration: Path, sockets: Sequence[socket.socket], log: Path, group: int
) -> asyncio.subprocess.Process:
    """Start a process in a process group; it inherits the sockets, and its output is appended to the file `log`."""
    command = (sys.executable, "-m", "hushuffle", "node", "start", str(configuration))
    inherited, nothing = [one.fileno() for one in sockets], asyncio.subprocess.DEVNULL
    with log.open("ab") as out:
        return await asyncio.create_subprocess_exec(
            *command, pass_fds=inherited, stdin=nothing, stdout=out, stderr=out, process_group=group
        )


def ended(process: asyncio.subprocess.Process) -> str:
    code = process.returncode or 0
    return f"killed by signal {-code}" if code < 0 else f"ended with code {code}"


def statuses(processes: list[Process]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return counters and failures from the processes' status files; without a file, the last line of the output."""
    counters, failures = dict[str, dict[str, Any]](), dict[str, str]()
    for process in processes:
        try:
            status = json.loads(process.configuration.with_name(f"{process.name}.status.json").read_bytes())
        except FileNotFoundError:
            lines = process.log.read_text("utf-8", errors="replace").splitlines()
            messages = [line for line in lines if not line.startswith("{")]
            if messages:
                failures[process.name] = messages[-1]
            continue
        counters |= status["nodes"]
        failures |= status["failures"]
    return counters, failures
