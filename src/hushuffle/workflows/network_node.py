"""One process that runs nodes of a run, from its configuration; and records that were prepared for it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NoReturn, Self

import numpy as np

from hushuffle.errors import DataError, HushuffleError
from hushuffle.io.private_files import write_private
from hushuffle.io.private_table import load_table
from hushuffle.io.secret_keys import key_in_environment, key_in_file, text_of_secret
from hushuffle.runtime.compute import ComputeNode
from hushuffle.runtime.document import RunDocument, read_document
from hushuffle.runtime.identities import Identity, read_identity
from hushuffle.runtime.journal import Journal
from hushuffle.runtime.records import RecordCodec
from hushuffle.runtime.result import AggregateResult, ResultNode
from hushuffle.runtime.scrambler import ScramblerNode
from hushuffle.runtime.seals import SealKey
from hushuffle.runtime.source import Entry, SourceNode
from hushuffle.specification import AggregateQuery, parse_plan
from hushuffle.specification.node import NodeConfiguration, NodeRecords, load_node

AnyNode = SourceNode | ScramblerNode | ComputeNode | ResultNode

_AT_ONCE: Final = 24
"""Sources of one process that are busy at a time."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of the nodes of one process: their counters by name, the result if one of them was to give it."""

    counters: Mapping[str, Mapping[str, Any]]
    failures: Mapping[str, str]
    result: AggregateResult | None = None


def run_nodes(configuration: Path) -> Ran:
    """Run the nodes of a configuration to their end; SIGTERM and SIGINT end them early, what has begun is finished.

    Writes `status` (and `result`) if the configuration names them.

    Raises:
        SpecificationError: the configuration is wrong.
        DataError: a file cannot be used, or does not fit the others.
    """
    config, folder = load_node(configuration), configuration.parent
    document = read_document(folder / config.document)
    with _Sockets() as sockets:
        nodes = _nodes(config, document, folder, sockets)
        ran = asyncio.run(_run(nodes))
    if ran.result is not None and config.result is not None:
        _write(folder / config.result, result_table(document, ran.result))
    if config.status is not None:
        _write(folder / config.status, {"nodes": ran.counters, "failures": ran.failures})
    return ran


async def _run(nodes: Sequence[AnyNode]) -> Ran:
    loop, failures, results = asyncio.get_running_loop(), dict[str, str](), list[AggregateResult]()

    def stop() -> None:
        for node in nodes:
            node.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(node: AnyNode) -> None:
        try:
            if isinstance(node, SourceNode):
                async with limit:
                    await node.run()
                return
            found = await node.run()
            if found is not None:
                results.append(found)
        except HushuffleError as error:
            node.journal.enter("failed", reason=str(error))
            failures[node.name] = str(error)

    await asyncio.gather(*(one(node) for node in nodes))
    counters = {node.name: node.journal.counters() for node in nodes}
    return Ran(counters=counters, failures=failures, result=results[0] if results else None)


def result_table(document: RunDocument, result: AggregateResult) -> dict[str, Any]:
    """Return what a result node publishes: estimates of groups, and how many sources they are made of."""
    query = document.grouping
    answers = []
    for position, step in enumerate(result.steps):
        figures = step.estimated.results(query)
        answers.append(
            {
                "columns": list(query.grouping_sets[position].columns),
                "sizes": list(query.grouping_sets[position].sizes),
                "sources": step.sources,
                "planned": step.planned,
                "lost_batches": step.lost_batches,
                "received": step.received.count.tolist(),
                "estimates": {
                    name: [value if np.isfinite(value) else None for value in values.tolist()]
                    for name, values in figures.items()
                },
            }
        )
    return {"schema_version": 1, "run": result.run, "people": result.people, "answers": answers}


class _Sockets:
    """Listening sockets, closed in the end."""

    def __init__(self) -> None:
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._open:
            one.close()

    def listening(self, where: str, name: str) -> socket.socket:
        try:
            if where.startswith("fd:"):
                found = socket.socket(fileno=int(where.removeprefix("fd:")))
            else:
                host, _, port = where.rpartition(":")
                found = socket.create_server((host.strip("[]"), int(port)), backlog=1024)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not host:port"
            _fail(f"{name} cannot listen at {where}: {reason or 'an error'}.")
        self._open.append(found)
        return found


def _nodes(config: NodeConfiguration, document: RunDocument, folder: Path, sockets: _Sockets) -> list[AnyNode]:
    scramblers = {batch.scrambler for step in document.steps for batch in step.batches}
    prepared = None
    nodes: list[AnyNode] = []
    for name in config.nodes:
        journal, identity = Journal(node=name, out=sys.stderr), _identity(config, name, folder)
        if name in document.places:
            if prepared is None:
                prepared = _records(config, document, folder)
            assert config.records is not None
            nodes.append(
                SourceNode(
                    document,
                    identity,
                    prepared.get(name, ()),
                    key=_coins(config.records, folder),
                    state=folder / config.records.state,
                    journal=Journal(node=name),  # thousands of them: what they say is in their counters
                )
            )
            continue
        if name != document.result and name not in scramblers and document.target_of(name) is None:
            _fail(f"{name} takes no part in this run: the document does not name it.")
        where = sockets.listening(config.listen.get(name) or document.servers[name].address, name)
        if name in scramblers:
            nodes.append(ScramblerNode(document, identity, where, journal=journal))
            continue
        key = _seal_key(config, name, folder)
        if name == document.result:
            nodes.append(ResultNode(document, identity, where, key=key, journal=journal))
        else:
            nodes.append(ComputeNode(document, identity, where, key=key, journal=journal))
    return nodes


def _identity(config: NodeConfiguration, name: str, folder: Path) -> Identity:
    place = folder / config.identities
    return read_identity(
        name,
        certificate=place / f"{name}.pem",
        authority=place / "authority.pem",
        key=_placed(config.keys.get(name), folder) or str(place / f"{name}.key"),
        address=config.addresses.get(name),
    )


def _seal_key(config: NodeConfiguration, name: str, folder: Path) -> SealKey:
    where = _placed(config.seals.get(name), folder) or str(folder / config.identities / f"{name}.seal")
    return SealKey.of(text_of_secret(where))


def _placed(where: str | None, folder: Path) -> str | None:
    return where if where is None or where.startswith("env:") else str(folder / where)


def _coins(records: NodeRecords, folder: Path) -> bytes:
    if records.coins.startswith("env:"):
        return key_in_environment(records.coins.removeprefix("env:"))
    return key_in_file(folder / records.coins)


def _records(config: NodeConfiguration, document: RunDocument, folder: Path) -> Mapping[str, Sequence[Entry]]:
    """Return the records of every source node of a configuration."""
    if config.records is None:
        _fail("the configuration of source nodes must have [records]: where their data, coins and state are.")
    if config.records.prepared is not None:
        return read_prepared(folder / config.records.prepared)
    if len(config.nodes) != 1:
        _fail("a table of records belongs to one source node: give each a configuration of its own.")
    assert config.records.data is not None
    return {config.nodes[0]: _own_records(config.nodes[0], config.records.data, document, folder)}


def _own_records(name: str, data: str, document: RunDocument, folder: Path) -> list[Entry]:
    """Return the records of a table for one source node: its rows fill the node's places, step by step."""
    specification = parse_plan(document.plan, file="the plan in the run's document")
    query = specification.query
    assert isinstance(query, AggregateQuery)
    table = load_table(data, categories=query.categories(), numbers=query.values, base_folder=folder)
    columns = {**table.groups, **table.numbers}
    places = document.places[name]
    every = query.per_person == "all" and len(document.steps) > 1
    wanted = len(places) // len(document.steps) if every else len(places)
    if table.n != wanted:
        _fail(f"{data} has {table.n:,} records, but {name} speaks for {wanted:,} in this run.")
    entries, next_row = list[Entry](), 0
    for number in range(1, len(document.steps) + 1):
        codec = RecordCodec(query=document.grouping, position=number - 1)
        own, contents = codec.own(columns), codec.pack(columns)
        if every:
            next_row = 0
        for step, batch, slot in places:
            if step == number:
                entries.append(
                    Entry(
                        step=step,
                        batch=batch,
                        slot=slot,
                        record=next_row,
                        own=int(own[next_row]),
                        content=contents[next_row],
                    )
                )
                next_row += 1
    return entries


def write_prepared(path: Path, entries: Mapping[str, Sequence[Entry]]) -> None:
    """Write records for `read_prepared` into a new file that only its owner can read."""
    rows = [(name, entry) for name, own in entries.items() for entry in own]
    numbers = np.array(
        [(one.step, one.batch, one.slot, one.record, one.own, len(one.content)) for _, one in rows], dtype=np.int64
    )
    file = BytesIO()
    np.savez(
        file,
        names=np.array([name for name, _ in rows]),
        numbers=numbers,
        contents=np.frombuffer(b"".join(one.content for _, one in rows), dtype=np.uint8),
    )
    write_private(path, file.getvalue())


def read_prepared(path: Path) -> dict[str, list[Entry]]:
    """Return the records of every source node in a file.

    Raises:
        DataError: it cannot be read.
    """
    found: dict[str, list[Entry]] = {}
    try:
        with np.load(path, allow_pickle=False) as file:
            names, numbers, contents = (file[key] for key in ("names", "numbers", "contents"))
    except (OSError, ValueError, KeyError):
        _fail(f"{path} cannot be read: it was not written by hushuffle plan run, or is damaged.")
    whole, place = contents.tobytes(), 0
    for name, (step, batch, slot, record, own, size) in zip(names.tolist(), numbers.tolist(), strict=True):
        content = whole[place : place + size]
        place += size
        entry = Entry(step=step, batch=batch, slot=slot, record=record, own=own, content=content)
        found.setdefault(name, []).append(entry)
    return found


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON, whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        _fail(f"{path} cannot be written: {error.strerror or 'an error'}.")


def _fail(message: str) -> NoReturn:
    raise DataError(message) from None
