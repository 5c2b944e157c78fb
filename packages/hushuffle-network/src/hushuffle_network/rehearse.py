"""Rehearse a task on this machine: one process for each service, many phones, HTTP over loopback, and its trace."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

from aiohttp import ClientError, ClientSession, ClientTimeout

from hushuffle.errors import HushuffleError
from hushuffle.files.causes import failing
from hushuffle.files.private_files import write_private, write_whole
from hushuffle.model import Progress
from hushuffle.plans import Plan
from hushuffle.randomness import Randomness, reproducible, secure
from hushuffle_network import promise
from hushuffle_network.bundle import ISSUER, RELAY, TASK, write_service
from hushuffle_network.crowd import Crowd, Phones, Sending, sendings
from hushuffle_network.issuer import make_codes
from hushuffle_network.queries import PlanSpecification
from hushuffle_network.queries.query import Records
from hushuffle_network.recorder import Recorder, Trace
from hushuffle_network.service import FORGET
from hushuffle_network.settings import CODES, ServiceKeys, keys_of_steps, place_of, role_named
from hushuffle_network.task import Issuer, TaskDocument, names_of
from hushuffle_network.watcher import watched

RESULT_FILE: Final = "result.json"
TRACE: Final = "trace.parquet"
_READY: Final = 60.0
"""Seconds that services have to start."""
_GRACE: Final = 15.0
"""Seconds that services have to end."""
_EACH: Final = 1.0
"""Largest number of seconds that one message takes on this machine."""

Interference = Callable[[Mapping[str, asyncio.subprocess.Process], Callable[[str], Coroutine[Any, Any, None]]], Any]
"""A test hook that runs beside the phones: it receives the processes by name and a function that restarts one."""


class RunFailedError(HushuffleError):
    """A run ended without a result; the message states what was missing."""


def run_failed(message: str) -> NoReturn:
    raise RunFailedError(message)


@dataclass(frozen=True, kw_only=True, eq=False)
class PhoneRun:
    """The outcome of a rehearsal; in k-means, `document` is the first iteration's, and `result` has all iterations.

    `passed`: how many messages were looked up in the targets' lists, and how many of these are listed. `seconds`: time
    from the first message to the result. `trace`: what an observer of the connections saw.
    """

    document: TaskDocument
    plan: Plan
    records: Records
    result: Mapping[str, Any]
    counters: Mapping[str, Mapping[str, int]]
    crowd: Crowd = field(repr=False)
    trace: Trace = field(repr=False)
    passed: tuple[int, int]
    seconds: float
    files: tuple[Path, ...] = ()

    @property
    def answers(self) -> Sequence[Mapping[str, Any]]:
        key = "answers" if self.document.round is None else promise.ITERATIONS
        answers: Sequence[Mapping[str, Any]] = self.result[key]
        return answers


class Rehearsal:
    """The services of a task as processes of this machine, with all of their files in the private `folder`."""

    def __init__(
        self, specification: PlanSpecification, people: int, folder: Path, *, centroids: promise.Centroids | None = None
    ) -> None:
        steps, chain = promise.questions(specification, people, centroids), specification.traffic.scramblers or 1
        targets = specification.query.for_devices(centroids).task.targets
        task_steps = promise.together(specification, len(steps))
        self.names = [*names_of([targets] * task_steps, chain), RELAY, ISSUER]
        self.sockets = {name: _listening() for name in self.names}
        self.recorded = {name: _listening() for name in self.names if name != ISSUER}  # no message goes to an issuer
        keys = {name: ServiceKeys.generate(role_named(name), steps=len(steps)) for name in self.names if name != RELAY}
        places = {name: place_of(name, self.url(name), one.public) for name, one in keys.items()}
        services = promise.Services(
            relay=self.url(RELAY) + "/",
            chain=tuple(places[f"scrambler-{number}"] for number in range(1, chain + 1)),
            targets=tuple(
                tuple(places[f"target-{step}-{one}"] for one in range(1, targets + 1))
                for step in range(1, task_steps + 1)
            ),
            result=places["result"],
            issuer=Issuer(name="issuer.localhost", url=self.url(ISSUER)),
            token_keys=keys_of_steps(keys[ISSUER].public["tokens"], 0, len(steps)),
        )
        start = dt.datetime.now(dt.UTC)
        document = promise.draw_task(specification, people, services, start=start, centroids=centroids)
        messages = sum(step.sources for step in document.steps)
        longer = {"collect": max(document.collect, _READY + _EACH * messages)}
        self.document = TaskDocument.model_validate(document.model_dump() | longer)
        self.codes, public = make_codes(people)
        self.folder, self.running = folder, dict[str, asyncio.subprocess.Process]()
        for name in self.names:
            own = folder / name
            listen = f"fd:{self.sockets[name].fileno()}"
            write_service(own, name, self.document, listen=listen, gateway=self.url("scrambler-1"))
            if name != RELAY:
                write_private(own / f"{name}.keys", keys[name].text.encode(), durable=False)
        (folder / ISSUER / CODES).write_text("\n".join(public) + "\n", encoding="ascii")

    def url(self, name: str) -> str:
        """Return the address at which others reach a service: the recorder's, which forwards to the service."""
        return f"http://127.0.0.1:{self.recorded.get(name, self.sockets[name]).getsockname()[1]}"

    @property
    def routes(self) -> dict[str, tuple[socket.socket, socket.socket]]:
        """For each recorded service, the socket at which others reach it, and its own socket."""
        return {name: (public, self.sockets[name]) for name, public in self.recorded.items()}

    async def start(self, name: str, group: int = 0) -> None:
        """Start a service, whose output is appended to its log file."""
        place = self.folder / name
        command = (sys.executable, "-m", "hushuffle", "node", "start", str(place / f"{name}.toml"))
        inherited, nothing = [self.sockets[name].fileno()], asyncio.subprocess.DEVNULL
        with (place / "log").open("ab") as out:
            self.running[name] = await asyncio.create_subprocess_exec(
                *command, pass_fds=inherited, stdin=nothing, stdout=out, stderr=out, process_group=group
            )

    async def ready(self) -> None:
        """Wait until all services answer; raise RunFailedError if a service has ended, or is too late."""
        last = time.monotonic() + _READY * (1 + len(self.names) / 10)
        async with ClientSession(timeout=ClientTimeout(total=2.0)) as session:
            for name in self.names:
                while not (health := (await self._answer(session, name, "/health"))[1]):
                    if self.running[name].returncode is not None or time.monotonic() > last:
                        run_failed(f"{name} has not started: {self._last_words(name)}")
                    await asyncio.sleep(0.1)
                if not json.loads(health)["tasks"]:
                    run_failed(f"{name} refuses the task: {self._last_words(name)}")

    async def _answer(self, session: ClientSession, name: str, path: str) -> tuple[int, bytes]:
        """Return the status and content of a service's answer; status 0 and no content without an answer."""
        with contextlib.suppress(ClientError, TimeoutError, OSError):
            async with session.get(self.url(name) + path) as answer:
                return answer.status, await answer.read()
        return 0, b""

    def _last_words(self, name: str) -> str:
        lines = (self.folder / name / "log").read_text("utf-8", errors="replace").splitlines()
        return lines[-1] if lines else "its log is empty"

    async def has(self, document: TaskDocument) -> None:
        """Wait until all services take part in the task of a further iteration."""
        last, path = time.monotonic() + _READY, f"/tasks/{document.id.hex()}"
        async with ClientSession(timeout=ClientTimeout(total=2.0)) as session:
            for name in self.names:
                while (await self._answer(session, name, path))[0] != 200:
                    if time.monotonic() > last:
                        run_failed(f"{name} takes no part in the next iteration: {self._last_words(name)}")
                    await asyncio.sleep(0.1)

    async def result(self, document: TaskDocument) -> Mapping[str, Any]:
        """Wait until the result publishes a task, and return the publication."""
        last = document.deadline + 4 * document.patience
        async with ClientSession() as session:
            while time.time() < last:
                status, content = await self._answer(session, "result", f"/tasks/{document.id.hex()}/result")
                if status == 200:
                    return dict(json.loads(content))
                await asyncio.sleep(0.1)
        run_failed("the result service published nothing in time. Check the logs of the services.")

    async def counters(self) -> dict[str, dict[str, int]]:
        counters = {}
        async with ClientSession() as session:
            for name in self.names:
                async with session.get(self.url(name) + "/metrics") as answer:
                    counters[name] = read_metrics(await answer.text())
        return counters

    async def stop(self) -> None:
        """Stop all services with SIGTERM, and kill those that have not ended after a while."""
        for process in self.running.values():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await asyncio.gather(*(process.wait() for process in self.running.values()))
        for process in self.running.values():
            if process.returncode is None:
                process.kill()
                await process.wait()

    def close(self) -> None:
        for listener in (*self.sockets.values(), *self.recorded.values()):
            listener.close()


def _listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=4096)


def read_metrics(text: str) -> dict[str, int]:
    r"""Return the counters in the text of /metrics, by shortened names.

    >>> read_metrics('# HELP x y\nhushuffle_refused_total{reason="too late"} 2\nhushuffle_messages_total 5\n')
    {'refused too late': 2, 'messages': 5}
    """
    counts = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, _, count = line.rpartition(" ")
        base, _, label = name.partition("{")
        words = [base.removeprefix("hushuffle_").removesuffix("_total"), *label.split('"')[1:2]]
        counts[" ".join(words)] = int(count)
    return counts


def rehearse(
    specification: PlanSpecification,
    *,
    out: Path,
    base_folder: Path = Path(),
    trace: Path | None = None,
    interfere: Interference | None = None,
    progress: Progress | None = None,
) -> PhoneRun:
    """Run a plan on this machine, and write `task.json`, `result.json` and `trace.parquet` (or `trace`) into `out`."""
    tell = progress or (lambda _what, _share: None)
    tell("reading the records", 0.0)
    records = specification.query.records(base_folder)
    plan = specification.plan(records.n)
    seed = specification.run.seed
    rng: Randomness = reproducible(seed) if isinstance(seed, int) else secure()
    with failing(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
    tell("making keys", 0.02)
    with contextlib.ExitStack() as clean:
        place = Path(clean.enter_context(tempfile.TemporaryDirectory(prefix="hushuffle-phones-")))
        group = clean.enter_context(watched(place))
        start = None if records.start is None else records.start.tolist()
        rehearsal = Rehearsal(specification, records.n, place, centroids=start)
        clean.callback(rehearsal.close)
        step_rows = specification.query.asked(plan, records.n, rng)

        def made(document: TaskDocument) -> list[Sending]:
            number = 1 if document.round is None else document.round.number
            here = dict(enumerate(step_rows[number - 1 :][: len(document.steps)], 1))
            return sendings(document, promise.check_task(document), records.rows, here, rehearsal.codes, rng)

        run = _Run(rehearsal, group, made, interfere, tell)
        result = asyncio.run(run.run())
    if "failed" in result:
        run_failed(f"the task ended without a result. {result['failed']}")
    contents = {TASK: rehearsal.document.content, RESULT_FILE: json.dumps(result, indent=1).encode() + b"\n"}
    for name, content in contents.items():
        with failing(f"{out / name} cannot be written"):
            write_whole(out / name, content)
    trace_file = trace or out / TRACE
    run.trace.write(trace_file)
    tell("done", 1.0)
    return PhoneRun(
        document=rehearsal.document,
        plan=plan,
        records=records,
        result=result,
        counters=run.counters,
        crowd=run.crowd,
        trace=run.trace,
        passed=run.passed,
        seconds=run.seconds,
        files=(out / RESULT_FILE, out / TASK, trace_file),
    )


class _Run:
    """Starts services, lets phones send, and waits for the result; several iterations run one after the other."""

    def __init__(
        self,
        rehearsal: Rehearsal,
        group: int,
        draw: Callable[[TaskDocument], list[Sending]],
        interfere: Interference | None,
        tell: Progress,
    ) -> None:
        self._rehearsal, self._group, self._made, self._tell = rehearsal, group, draw, tell
        self._interfere = interfere
        self.crowd, self.trace, self.passed, self.seconds = Crowd(), Trace(), (0, 0), 0.0
        self.counters: dict[str, dict[str, int]] = {}

    async def run(self) -> Mapping[str, Any]:
        """Return the published result; for several iterations, the last result with the answers of all iterations."""
        async with Recorder(self.trace, self._rehearsal.routes):
            return await self._recorded()

    async def _recorded(self) -> Mapping[str, Any]:
        rehearsal, again = self._rehearsal, partial(self._rehearsal.start, group=self._group)
        try:
            self._tell("starting services", 0.05)
            for name in rehearsal.names:
                await rehearsal.start(name, self._group)
            await rehearsal.ready()
            start = time.monotonic()
            beside = None if self._interfere is None else asyncio.create_task(self._interfere(rehearsal.running, again))
            document: TaskDocument | None = rehearsal.document
            result, iterations = dict[str, Any](), list[Any]()
            while document is not None:
                result = {**await self._task(document)}
                iterations += result.get(promise.ITERATIONS, ())
                document = promise.after(document, result)
                if document is not None:
                    await rehearsal.has(document)
            if beside is not None:
                await beside
            self.seconds = time.monotonic() - start
            self.counters = await rehearsal.counters()
            return result | ({promise.ITERATIONS: iterations} if promise.ITERATIONS in result else {})
        finally:
            await rehearsal.stop()

    async def _task(self, document: TaskDocument) -> Mapping[str, Any]:
        iteration, sent, phones = document.round, self._made(document), Phones(document)
        before, rounds = (0, 1) if iteration is None else (iteration.number - 1, iteration.rounds)
        sending = asyncio.create_task(phones.send(sent))
        while not sending.done():
            await asyncio.wait([sending], timeout=0.5)
            done = (phones.crowd.taken + phones.crowd.refused.total()) / max(len(sent), 1)
            self._tell("sending", 0.1 + 0.8 * (before + done) / rounds)
        await sending
        self._tell(_awaited(document, phones.crowd), 0.1 + 0.82 * (before + 1) / rounds)
        result = await self._rehearsal.result(document)
        passed = (0, 0) if "failed" in result else await phones.passed()
        self.passed = self.passed[0] + passed[0], self.passed[1] + passed[1]
        self.crowd.taken += phones.crowd.taken
        self.crowd.refused.update(phones.crowd.refused)
        self.crowd.nonces |= {(before + step, place): one for (step, place), one in phones.crowd.nonces.items()}
        return result


def _awaited(document: TaskDocument, crowd: Crowd) -> str:
    """Return a text that states what a rehearsal waits for after its phones have sent, and until when at most."""
    planned = sum(step.sources for step in document.steps)
    if crowd.taken < planned:
        missing = f"{planned - crowd.taken:,} of {planned:,} messages are missing"
        return f"{missing}: scrambler-1 waits for them until {_clock(document.deadline)}"
    return f"waiting for the result, until {_clock(document.deadline + FORGET * document.patience)} at the latest"


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))
