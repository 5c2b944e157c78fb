"""Run a whole plan on this machine: nodes in separate processes, over loopback, with the traffic recorded."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import tomli_w

from hushuffle._checks import fail
from hushuffle.files.causes import cause, failing
from hushuffle.files.private_files import write_private, write_whole
from hushuffle.model import Progress
from hushuffle.network.check import check_promise
from hushuffle.network.node import result_room, room_file
from hushuffle.network.nodes.identities import Authority, Identity
from hushuffle.network.nodes.recorder import Recorder, Trace, record_size
from hushuffle.network.nodes.result import RunFailedError
from hushuffle.network.setup import DOCUMENT, RESULT, RESULT_FILE, Deployment, deploy, write_prepared
from hushuffle.network.watcher import watched
from hushuffle.plans import Plan
from hushuffle.queries import PlanSpecification
from hushuffle.queries.query import Records
from hushuffle.queries.specification import Network
from hushuffle.randomness import Randomness, reproducible, secure


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

    def servers(name: str, own: list[str], **more: str) -> Process:
        """Write the files of listening nodes that share a process."""
        sockets = tuple(loopback.private[one] for one in own)
        for member in own:
            _identify(place, authority.issue(member))
            if (seal := deployment.seals.get(member)) is not None:
                write_private(place / "identities" / f"{member}.seal", seal.text.encode(), durable=False)
        listen = {one: f"fd:{where.fileno()}" for one, where in zip(own, sockets, strict=True)}
        addresses = {one: loopback.host(one) for one in own}
        return _process(name, own, place, {"listen": listen, "addresses": addresses, **more}, sockets)

    processes = [servers("result", [RESULT], result=RESULT_FILE)]
    for kind, names in (("compute", computes), ("scrambler", scramblers)):
        for number, own in enumerate(_shared(names, count), start=1):
            processes.append(servers(f"{kind}-nodes-{number}", own))
    for number, own in enumerate(_shared(list(deployment.people), count), start=1):
        name = f"source-nodes-{number}"
        for member in own:
            _identify(place, authority.issue(member, address=loopback.host(member)))
        write_prepared(place / f"{name}.npz", {one: deployment.people[one] for one in own})
        records = {"prepared": f"{name}.npz", "coins": "coins.key", "state": f"{name}.state"}
        more = {"records": records, "addresses": {one: loopback.host(one) for one in own}}
        processes.append(_process(name, own, place, more))
    return processes


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


async def start_process(
    configuration: Path, sockets: Sequence[socket.socket], log: Path, group: int
) -> asyncio.subprocess.Process:
    """Start a process in a process group; it inherits the sockets, and its output is appended to the file `log`."""
    command = (sys.executable, "-m", "hushuffle", "node", "start", str(configuration))
    inherited, nothing = [one.fileno() for one in sockets], asyncio.subprocess.DEVNULL
    with log.open("ab") as out:
        return await asyncio.create_subprocess_exec(
            *command, pass_fds=inherited, stdin=nothing, stdout=out, stderr=out, process_group=group
        )


async def ended_within(running: Mapping[str, asyncio.subprocess.Process], seconds: float) -> None:
    """Wait until all processes have ended, for at most this number of seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(process.wait() for process in running.values()))


async def end(running: Mapping[str, asyncio.subprocess.Process], *, grace: float) -> None:
    """Stop all processes with SIGTERM, and kill those that have not ended after `grace` seconds."""
    for process in running.values():
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
    await ended_within(running, grace)
    for process in running.values():
        if process.returncode is None:
            process.kill()
            await process.wait()


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


TRACE: Final = "trace.parquet"

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a private folder in it
_EACH: Final = 1 << 16
"""Largest number of bytes of files for each source."""

_START, _START_EACH = 3.0, 0.002
"""Seconds that processes take to start on an idle machine, and additional seconds for each source."""

_GRACE: Final = 15.0
"""Seconds that other nodes have to end after the result is available."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkRun:
    """The outcome of a run over the network, with the counters and failures of processes and nodes by name.

    `result`: the content of the result node's file. `trace`: the traffic that an observer saw.
    """

    deployment: Deployment
    plan: Plan
    records: Records
    result: Mapping[str, Any]
    counters: Mapping[str, Mapping[str, Any]]
    failures: Mapping[str, str]
    trace: Trace = field(repr=False)
    files: tuple[Path, ...] = ()
    coins: bytes = field(repr=False)


Interference = Callable[[Mapping[str, asyncio.subprocess.Process], Path], Coroutine[Any, Any, None]]
"""A test hook that runs during the run: it receives the processes by name and the folder of their files."""


def run_on_network(
    specification: PlanSpecification,
    *,
    out: Path,
    base_folder: Path = Path(),
    trace: Path | None = None,
    coins: bytes | None = None,
    interfere: Interference | None = None,
    progress: Progress | None = None,
) -> NetworkRun:
    """Run a plan with real nodes on this machine, and write `run.json`, `result.json` and `trace.parquet` into `out`.

    `coins`: the secret key of the sources' randomness, for tests; by default from `specification.run.seed`.
    """
    tell = progress or (lambda _what, _share: None)
    tell("reading the records", 0.0)
    records = specification.query.records(base_folder)
    plan = specification.plan(records.n)
    seed = specification.run.seed
    rng: Randomness = reproducible(seed) if isinstance(seed, int) else secure()
    key = coins or (rng.words(4).tobytes() if isinstance(seed, int) else secrets.token_bytes(32))
    loopback = Loopback()
    with contextlib.ExitStack() as clean:
        clean.callback(loopback.close)
        tell("making certificates", 0.05)
        deployment = deploy(specification, plan, records, address=loopback.listening, rng=rng)
        check_promise(deployment.document)  # every node would refuse an invalid document
        memory = _in_memory(len(deployment.people))
        place = Path(clean.enter_context(tempfile.TemporaryDirectory(prefix="hushuffle-run-", dir=memory)))
        group = clean.enter_context(watched(place, room_file(out / RESULT_FILE)))
        with failing(f"{out} cannot be written"):
            out.mkdir(parents=True, exist_ok=True)
        room = result_room(out / RESULT_FILE, deployment.document)
        clean.callback(room.give)
        processes = configure(deployment, loopback, place, key, (specification.network or Network()).processes)
        # Processes that start now are ready then: each first reads the certificates of its nodes.
        busy = max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0)
        ready = dt.timedelta(seconds=busy * (_START + len(deployment.people) * _START_EACH))
        deployment = replace(deployment, document=deployment.document.starting(dt.datetime.now(dt.UTC) + ready))
        (place / DOCUMENT).write_text(deployment.document.text, encoding="utf-8")
        seen = Trace(hosts=loopback.names, cell=record_size(deployment.document.message))
        failures = asyncio.run(_watch(processes, group, loopback, seen, deployment, interfere, tell))
        counters, errors = statuses(processes)
        failures |= errors
        result_file = place / RESULT_FILE
        if not result_file.exists():
            raise RunFailedError(_why(failures, counters))
        room.give()
        try:
            for name in (RESULT_FILE, DOCUMENT):
                write_whole(out / name, (place / name).read_bytes())
        except OSError as error:
            second = Path(tempfile.mkdtemp(prefix="hushuffle-result-")) / RESULT_FILE
            shutil.copyfile(result_file, second)
            fail(f"{out} cannot be written: {cause(error)}. The result is in {second}.")
        result = json.loads(result_file.read_bytes())
    trace_file = trace or out / TRACE
    seen.write(trace_file)
    tell("done", 1.0)
    return NetworkRun(
        deployment=deployment,
        plan=plan,
        records=records,
        result=result,
        counters=counters,
        failures=failures,
        trace=seen,
        coins=key,
        files=(out / RESULT_FILE, out / DOCUMENT, trace_file),
    )


def _in_memory(sources: int) -> Path | None:
    """Return a folder in memory with space for a run; None if there is none. Some disks delete many files slowly."""
    try:
        roomy = shutil.disk_usage(_MEMORY).free > sources * _EACH
    except OSError:
        return None
    return _MEMORY if roomy and os.access(_MEMORY, os.W_OK | os.X_OK) else None


async def _watch(
    processes: list[Process],
    group: int,
    loopback: Loopback,
    seen: Trace,
    deployment: Deployment,
    interfere: Interference | None,
    tell: Progress,
) -> dict[str, str]:
    """Start all processes, wait until the result's process ends, stop the other processes, and return failures."""
    running: dict[str, asyncio.subprocess.Process] = {}
    try:
        async with Recorder(seen, loopback.routes()):
            tell("starting nodes", 0.1)
            for started in processes:
                running[started.name] = await start_process(started.configuration, started.sockets, started.log, group)
            loopback.close_private()  # so a port closes when its node's process ends
            folder = processes[0].configuration.parent
            beside = None if interfere is None else asyncio.create_task(interfere(running, folder))
            await _progress(running, seen, deployment, tell)
            if beside is not None:
                await beside
            await ended_within(running, _GRACE)
            await end(running, grace=_GRACE)
    finally:
        await end(running, grace=0.0)
    return {name: ended(process) for name, process in running.items() if process.returncode not in (0, 1)}


async def _progress(
    running: Mapping[str, asyncio.subprocess.Process], seen: Trace, deployment: Deployment, tell: Progress
) -> None:
    """Report the progress, in recorded messages, until the result's process ends, or a compute node fails."""
    document = deployment.document
    expected = sum(
        step.sources * (2 if step.scrambled else step.flood + 1) + len(step.batches) * step.dummies
        for step in document.steps
    )
    computes = [process for name, process in running.items() if name.startswith("compute")]
    waiting, stopping = asyncio.create_task(running[RESULT].wait()), False
    while not waiting.done():
        await asyncio.wait([waiting], timeout=0.5)
        if not stopping and any(process.returncode not in (None, 0) for process in computes):
            running[RESULT].send_signal(signal.SIGTERM)
            stopping = True
        tell("running", 0.15 + 0.8 * min(seen.cells / expected, 1.0))


_LINES: Final = 10


def _why(failures: Mapping[str, str], counters: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the failures, the result's failure first, and the counts of lost or refused messages for each role."""
    lines = [f"  {name}: {why}" for name, why in sorted(failures.items(), key=lambda one: one[0] != RESULT)]
    if len(lines) > _LINES:
        lines[_LINES:] = [f"  and {len(lines) - _LINES:,} others failed"]
    counted: dict[str, Counter[str]] = {}
    for name, node in counters.items():
        counted.setdefault(name.split("-")[0], Counter()).update(node["rejected"])
    for kind, reasons in sorted(counted.items()):
        if reasons:
            numbers = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
            lines.append(f"  counted by {kind} nodes: {numbers}")
    return "\n".join(["the run ended without a result, and no file was written.", *lines])
