"""Throughput and memory of one scrambler: python benchmarks/network.py [--memory].

A scrambler in a process of its own takes sealed messages of 1 KiB over mutual TLS, and hands them on to targets that
only count. Its processor time is set against that of the cryptography alone, for the same messages, records, handshakes
and dummies, in the same run. `--memory` sends 10^6 messages through one process, batch after batch (takes a minute).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hushuffle.network.nodes.connections import Connection, Control, Kind, Message, connect
from hushuffle.network.nodes.document import Batch, RunDocument, Server, Step
from hushuffle.network.nodes.identities import Authority, Identity
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.listening import listen
from hushuffle.network.nodes.scrambler import ScramblerNode
from hushuffle.network.nodes.seals import SealKey, Seals
from hushuffle.plans import GroupingQuery, GroupingSet
from hushuffle.queries import Aggregate

TARGETS: Final = 4
AT_ONCE: Final = 24
PATIENCE: Final = 120.0


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What goes through: `connections` sources with `each` messages, and dummies."""

    connections: int
    each: int
    dummies: int

    @property
    def messages(self) -> int:
        """How many go through."""
        return self.connections * self.each


@dataclass(frozen=True, kw_only=True)
class Used:
    """What a scrambler used: seconds of processor and clock from its first batch to its last, peak memory in MB."""

    processor: float
    clock: float
    peak: tuple[float, ...]


def run_document(setting: Setting, ports: list[int], key: SealKey) -> RunDocument:
    """Return a run of one scrambler; its last port is the scrambler's."""
    sets = (GroupingSet(columns=("group",), sizes=(TARGETS,)),)
    computes = tuple(f"compute-{number}" for number in range(TARGETS))
    holders = tuple(f"source-{number}" for number in range(setting.connections) for _ in range(setting.each))
    places = dict(zip((*computes, "scrambler"), ports, strict=True)) | {"result": 1}  # nothing is told to the result
    servers = {name: Server(address=f"127.0.0.1:{port}", seal=key.public.text) for name, port in places.items()}
    return RunDocument(
        plan="",
        people=setting.messages,
        query=Aggregate.of(GroupingQuery(grouping_sets=sets, partitions=TARGETS)),
        steps=(
            Step(
                name="measured",
                computes=computes,
                sigma=0.2,
                dummies=setting.dummies,
                min_batch=setting.connections,  # the places of one node count once
                batches=(Batch(scrambler="scrambler", holders=holders),),
            ),
        ),
        result="result",
        servers=servers,
        collect=PATIENCE * 4,
        patience=PATIENCE,
    )


def peak_megabytes() -> float:
    """Return the most memory that this process ever had; `getrusage` would count what its parent had."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def scrambler_process(text: str, identity: Identity, where: socket.socket, batches: int, pipe: Pipe) -> None:
    """Run a scrambler for as many batches; say after each that it is done."""
    document = RunDocument.model_validate_json(text)
    assert document.digest  # made once for each process, and kept
    pipe.send(time.process_time())
    for _ in range(batches):
        asyncio.run(ScramblerNode(document, identity, where.dup(), journal=Journal(node="scrambler")).run())
        pipe.send((time.process_time(), peak_megabytes()))


class Sinks:
    """Targets that only count."""

    def __init__(self) -> None:
        self.counted = 0
        self.ends = asyncio.Semaphore(0)

    async def take(self, connection: Connection) -> None:
        """Count what comes over a connection."""
        while not isinstance(frame := await connection.receive(), Control):
            assert frame is not None
            self.counted += 1
        await connection.send(Control(Kind.ACCEPTED, 1))
        self.ends.release()


async def drive(
    setting: Setting,
    document: RunDocument,
    identities: dict[str, Identity],
    listening: list[socket.socket],
    *,
    turns: int,
    done: Callable[[], object],
) -> None:
    """Send everything through the scrambler, `turns` times; `done` waits until it is done with a turn."""
    sinks, layout, limit = Sinks(), document.layout, asyncio.Semaphore(AT_ONCE)
    place, loop = document.servers["scrambler"].place, asyncio.get_running_loop()
    sealed = [os.urandom(layout.sealed) for _ in range(64)]  # nobody opens them here

    async def source(number: int) -> None:
        name = f"source-{number}"
        async with limit:
            until = loop.time() + PATIENCE
            connection = await connect(
                "scrambler", place, identities[name], layout=layout, patience=PATIENCE, until=until
            )
            for slot in range(number * setting.each, (number + 1) * setting.each):
                await connection.send(Message(1, slot, slot % TARGETS, sealed[slot % 64]))
            await connection.send(Control(Kind.END, 1, numbers=(setting.each, setting.each)))
            answer = await connection.answer()
            assert answer.kind is Kind.ACCEPTED, answer.reason
            await connection.close()

    tasks = [
        asyncio.create_task(
            listen(
                one,
                identities[f"compute-{number}"].server(),
                sinks.take,
                layout=layout,
                patience=PATIENCE,
                journal=Journal(node="sink"),
            )
        )
        for number, one in enumerate(listening)
    ]
    for _ in range(turns):
        await asyncio.gather(*(source(number) for number in range(setting.connections)))
        for _ in range(TARGETS):
            await sinks.ends.acquire()
        await asyncio.to_thread(done)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert sinks.counted == turns * (setting.messages + setting.dummies), sinks.counted


def through_scrambler(setting: Setting, *, batches: int = 1) -> Used:
    """Return what a scrambler used for batches of a setting."""
    with ExitStack() as clean:
        sockets = [
            clean.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1024)) for _ in range(TARGETS + 1)
        ]
        key, authority = SealKey.generate(), Authority()
        document = run_document(setting, [one.getsockname()[1] for one in sockets], key)
        names = [*document.servers, *(f"source-{number}" for number in range(setting.connections))]
        identities = {name: authority.issue(name) for name in names}
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=scrambler_process,
            args=(document.text, identities["scrambler"], sockets[-1], batches, there),
        )
        process.start()
        begin = here.recv()
        clock = time.perf_counter()
        said = list[tuple[float, float]]()

        def done() -> None:
            said.append(here.recv())

        asyncio.run(drive(setting, document, identities, sockets[:TARGETS], turns=batches, done=done))
        clock = time.perf_counter() - clock
        process.join()
    return Used(processor=said[-1][0] - begin, clock=clock, peak=tuple(peak for _, peak in said))


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Processor seconds of one operation each, in this process."""

    accept: float
    connect: float
    encrypt: float
    decrypt: float
    cipher: float
    seal: float
    unseal: float

    def alone(self, setting: Setting) -> float:
        """Return the seconds of the cryptography in what a scrambler does."""
        return (
            setting.connections * self.accept
            + setting.messages * self.decrypt
            + setting.dummies * self.seal
            + TARGETS * self.connect
            + (setting.messages + setting.dummies) * self.encrypt
        )


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> Iterator[tuple[ssl.SSLObject, ssl.MemoryBIO, float]]:
    """Yield server's and client's end of a connection in memory: object, what comes in, processor seconds."""
    first, second = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(first, second, server_hostname="scrambler"),
        server.wrap_bio(second, first, server_side=True),
    ]
    took, waiting = [0.0, 0.0], [True, True]
    while any(waiting):
        for number, end in enumerate(ends):
            start = time.thread_time()
            try:
                end.do_handshake()
                waiting[number] = False
            except ssl.SSLWantReadError:
                pass
            took[number] += time.thread_time() - start
    yield ends[1], second, took[1]
    yield ends[0], first, took[0]


def each(work: Callable[[int], Any], count: int) -> float:
    """Return processor seconds of one call."""
    gc.collect()
    start = time.thread_time()
    for number in range(count):
        work(number)
    return (time.thread_time() - start) / count


def costs(count: int = 5_000) -> Costs:
    """Measure the cryptography alone."""
    authority = Authority()
    server, client = authority.issue("scrambler").server(), authority.issue("source").client()
    shakes = [tuple(handshake(server, client)) for _ in range(200)]
    (reader, _, _), (writer, _, _) = shakes[0]
    message = os.urandom(1024)
    encrypt = each(lambda _: writer.write(message), count)
    decrypt = each(lambda _: reader.read(1 << 16), count)
    cipher, nonce = AESGCM(AESGCM.generate_key(256)), os.urandom(12)
    closed = cipher.encrypt(nonce, message, None)
    key, seals = SealKey.generate(), Seals(digest=os.urandom(32), step=1, size=1008)
    record, sealed = os.urandom(40), list[bytes]()
    seal = each(lambda _: sealed.append(seals.seal(record, key.public, target="compute-1")), count // 5)
    return Costs(
        accept=sum(one[0][2] for one in shakes) / len(shakes),
        connect=sum(one[1][2] for one in shakes) / len(shakes),
        encrypt=encrypt,
        decrypt=decrypt,
        cipher=each(lambda _: cipher.encrypt(nonce, cipher.decrypt(nonce, closed, None), None), count),
        seal=seal,
        unseal=each(lambda number: seals.open(sealed[number], key, target="compute-1"), count // 5),
    )


def throughput(settings: list[Setting]) -> None:
    before = costs()
    for setting in settings:
        used = through_scrambler(setting)
        after = costs()
        # The machine may be busier at one time than at another: the cryptography is measured before and after.
        alone = (before.alone(setting) + after.alone(setting)) / 2
        sealing = setting.messages * (before.seal + before.unseal + after.seal + after.unseal) / 2
        print(
            f"{setting.connections:,} connections of {setting.each:,} messages, {setting.dummies:,} dummies\n"
            f"    {setting.messages / used.processor:,.0f} messages per second of processor, "
            f"{setting.messages / used.clock:,.0f} by the clock, clients included\n"
            f"    {used.processor:.2f} s of processor, {alone:.2f} s for the cryptography alone: "
            f"ratio {used.processor / alone:.2f}\n"
            f"    sealing and opening every message at its ends: {sealing:.2f} s, ratio {used.processor / sealing:.2f}"
        )
        before = after
    print("the cryptography, in microseconds:")
    for name, value in vars(before).items():
        print(f"    {name:<8}{value * 1e6:>8.1f}")


def memory(setting: Setting, batches: int) -> None:
    used = through_scrambler(setting, batches=batches)
    for share in (1, batches // 10, batches // 2, batches):
        print(f"{share * setting.messages:>9,} messages: peak {used.peak[share - 1]:.1f} MB")
    print(f"{batches * setting.messages / used.clock:,.0f} messages per second by the clock")
    whole = Setting(connections=20, each=5_000, dummies=50)
    print(f"{whole.messages:>9,} messages in one batch: peak {through_scrambler(whole).peak[0]:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", action="store_true")
    if parser.parse_args().memory:
        memory(Setting(connections=5, each=1_000, dummies=50), 200)
    else:
        throughput(
            [
                Setting(connections=8, each=2_500, dummies=50),
                Setting(connections=8, each=2_500, dummies=1_000),
                Setting(connections=1_000, each=1, dummies=50),
            ]
        )


if __name__ == "__main__":
    main()
