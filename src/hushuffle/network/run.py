"""A whole plan on this machine: real nodes in processes of their own, over loopback, watched as an adversary would."""

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

from hushuffle.errors import DataError
from hushuffle.files.causes import cause
from hushuffle.model import Progress
from hushuffle.network.check import check_promise
from hushuffle.network.node import result_room, room_file
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.recorder import Recorder, Trace, record_size
from hushuffle.network.nodes.result import RunFailedError
from hushuffle.network.nodes.spool import Room
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
"""Bytes of files for each source, generously."""

_START, _START_EACH = 3.0, 0.002
"""Seconds that processes take to start on an idle machine, and for each source."""

_GRACE: Final = 15.0
"""Seconds that other nodes have to end by themselves when the result is there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkRun:
    """What a run over the network came to.

    `result` is what the result node wrote; `counters` of every node by name; `failures` of processes and nodes;
    `trace` is what was seen on the wire; `files` are what was written.
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
"""Runs beside the run, told the processes by name and the folder of their files, for tests that kill some."""


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

    `out`: a folder; made if it is not there.
    `base_folder`: the folder that relative paths of data are relative to.
    `trace`: the file for what was seen on the wire; `trace.parquet` in `out` by default.
    `coins`: the secret key of the sources' coins, for tests; else from `specification.run.seed`.
    `interfere`: run beside the processes when all have been started, for tests.
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
        check_promise(deployment.document)  # what every node would refuse is not started
        place = Path(
            clean.enter_context(
                tempfile.TemporaryDirectory(prefix="hushuffle-run-", dir=_in_memory(len(deployment.people)))
            )
        )
        group = clean.enter_context(watched(place, room_file(out / RESULT_FILE)))
        room = _room(out, deployment.document)
        clean.callback(room.give)
        processes = configure(deployment, loopback, place, key, (specification.network or Network()).processes)
        deployment = replace(deployment, document=deployment.document.starting(_soon(len(deployment.people))))
        (place / DOCUMENT).write_text(deployment.document.text, encoding="utf-8")
        seen = Trace(hosts=loopback.names, cell=record_size(deployment.document.message))
        failures = asyncio.run(_watch(processes, group, loopback, seen, deployment, interfere, tell))
        counters, said = statuses(processes)
        failures |= said
        result_file = place / RESULT_FILE
        if not result_file.exists():
            raise RunFailedError(_why(failures, counters))
        room.give()
        try:
            for name in (RESULT_FILE, DOCUMENT):
                _copy(place / name, out / name)
        except OSError as error:
            second = Path(tempfile.mkdtemp(prefix="hushuffle-result-")) / RESULT_FILE
            shutil.copyfile(result_file, second)
            message = f"{out} cannot be written: {cause(error)}. The result is in {second}."
            raise DataError(message) from None
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


def _room(out: Path, document: RunDocument) -> Room:
    """Make the folder of results, and keep room in it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{out} cannot be written: {cause(error)}."
        raise DataError(message) from None
    return result_room(out / RESULT_FILE, document)


def _soon(sources: int) -> dt.datetime:
    """Return when processes that are started now will be there: each reads the certificates of its nodes first."""
    busy = max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0)
    return dt.datetime.now(dt.UTC) + dt.timedelta(seconds=busy * (_START + sources * _START_EACH))


def _copy(path: Path, to: Path) -> None:
    """Copy a file, whole or not at all."""
    partial = to.with_name(f".{to.name}.partial")
    try:
        shutil.copyfile(path, partial)
        partial.replace(to)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def _in_memory(sources: int) -> Path | None:
    """Return a folder in memory with room for a run: some disks take long to delete thousands of small files."""
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
    """Start everything, wait until the result's process has ended, end the others; return what failed."""
    running: dict[str, asyncio.subprocess.Process] = {}
    try:
        async with Recorder(seen, loopback.routes()):
            tell("starting nodes", 0.1)
            for one in processes:
                running[one.name] = await start(one, group)
            loopback.close_private()  # where a node's process has ended, nobody listens any more
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
    """Wait for the end of the result's process, and say how many messages were seen meanwhile.

    Without one of its compute nodes there is no result: then it need not wait until time is over.
    """
    document = deployment.document
    expected = sum(
        step.sources * (2 if step.scrambled else step.flood + 1) + len(step.batches) * step.dummies
        for step in document.steps
    )
    computes = [process for name, process in running.items() if name.startswith("compute")]
    waiting, told = asyncio.create_task(running[RESULT].wait()), False
    while not waiting.done():
        await asyncio.wait([waiting], timeout=0.5)
        if not told and any(process.returncode not in (None, 0) for process in computes):
            running[RESULT].send_signal(signal.SIGTERM)
            told = True
        tell("running", 0.15 + 0.8 * min(seen.cells / expected, 1.0))


_LINES: Final = 10


def _why(failures: Mapping[str, str], counters: Mapping[str, Mapping[str, Any]]) -> str:
    """Return who said what, the result first, and what nodes of each kind have counted as lost or refused."""
    said = [f"  {name}: {why}" for name, why in sorted(failures.items(), key=lambda one: one[0] != RESULT)]
    if len(said) > _LINES:
        said[_LINES:] = [f"  and {len(said) - _LINES:,} others failed"]
    counted: dict[str, Counter[str]] = {}
    for name, node in counters.items():
        counted.setdefault(name.split("-")[0], Counter()).update(node["rejected"])
    for kind, reasons in sorted(counted.items()):
        if reasons:
            numbers = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
            said.append(f"  counted by {kind} nodes: {numbers}")
    return "\n".join(["the run ended without a result; nothing was written.", *said])
