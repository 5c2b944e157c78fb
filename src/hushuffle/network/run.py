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
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from hushuffle._checks import fail
from hushuffle.files.causes import cause, failing
from hushuffle.files.private_files import write_whole
from hushuffle.model import Progress
from hushuffle.network.check import check_promise
from hushuffle.network.node import result_room, room_file
from hushuffle.network.nodes.recorder import Recorder, Trace, record_size
from hushuffle.network.nodes.result import RunFailedError
from hushuffle.network.processes import DOCUMENT, RESULT_FILE, Loopback, Process, configure, ended, start, statuses
from hushuffle.network.setup import RESULT, Deployment, deploy
from hushuffle.network.watcher import watched
from hushuffle.plans import Plan
from hushuffle.queries import PlanSpecification
from hushuffle.queries.query import Records
from hushuffle.queries.specification import Network
from hushuffle.randomness import Randomness, reproducible, secure

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
        place = Path(
            clean.enter_context(
                tempfile.TemporaryDirectory(prefix="hushuffle-run-", dir=_in_memory(len(deployment.people)))
            )
        )
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
                running[started.name] = await start(started.configuration, started.sockets, started.log, group)
            loopback.close_private()  # so a port closes when its node's process ends
            folder = processes[0].configuration.parent
            beside = None if interfere is None else asyncio.create_task(interfere(running, folder))
            await _progress(running, seen, deployment, tell)
            if beside is not None:
                await beside
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await asyncio.gather(*(process.wait() for process in running.values()))
            for process in running.values():
                if process.returncode is None:
                    process.send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await asyncio.gather(*(process.wait() for process in running.values()))
    finally:
        for process in running.values():
            if process.returncode is None:
                process.kill()
                await process.wait()
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
