"""One process of a run: runs the nodes of its configuration."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushuffle._checks import fail
from hushuffle.errors import HushuffleError
from hushuffle.files.causes import failing
from hushuffle.files.private_files import write_whole
from hushuffle.files.secret_keys import derived, key_in_environment, key_in_file, text_of_secret
from hushuffle.network.check import Promise, check_policy, check_promise, spend
from hushuffle.network.nodes.compute import ComputeNode
from hushuffle.network.nodes.document import RunDocument, read_document
from hushuffle.network.nodes.identities import Identity, read_identity
from hushuffle.network.nodes.journal import Journal, Room
from hushuffle.network.nodes.node import Places, health
from hushuffle.network.nodes.result import ResultNode, RunResult
from hushuffle.network.nodes.scrambler import ScramblerNode
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.source import SourceNode
from hushuffle.network.setup import held_records
from hushuffle.network.specification import NodeConfiguration, Policy, load_node

AnyNode = SourceNode | ScramblerNode | ComputeNode | ResultNode


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The outcome of a process's nodes: counters and failures by node name, and the result node's result, if any."""

    counters: Mapping[str, Mapping[str, Any]]
    failures: Mapping[str, str]
    result: RunResult | None = None


def run_nodes(configuration: Path) -> Ran:
    """Run the nodes of a configuration to their end; SIGTERM, SIGHUP and SIGINT end them once work in progress is done.

    Nodes that were killed continue when they are started again with the same state folder.
    """
    config, folder = load_node(configuration), configuration.parent
    document = read_document(folder / config.document)
    promise = check_promise(document)  # every role checks before it listens or sends
    room = None if config.result is None else result_room(folder / config.result, document)
    try:
        with ExitStack() as sockets:
            nodes = _nodes(config, document, promise, folder, sockets)
            ran = asyncio.run(_run(nodes))
    finally:
        if room is not None:
            room.give()
    if ran.result is not None and config.result is not None:
        hint = f" The sealed reports are stored in {folder / config.state}: free disk space and start this node again."
        _write(folder / config.result, result_table(document, ran.result), hint=hint)
    for node in nodes:
        if node.name not in ran.failures:
            node.forget()
    if config.status is not None:
        _write(folder / config.status, {"nodes": ran.counters, "failures": ran.failures})
    return ran


async def _run(nodes: Sequence[AnyNode]) -> Ran:
    loop, failures, results = asyncio.get_running_loop(), dict[str, str](), list[RunResult | None]()

    def stop() -> None:
        for node in nodes:
            node.stop()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop)

    def unexpected(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """Replace asyncio's log of failed background tasks, since error texts may quote data."""
        kind = type(context.get("exception")).__name__
        Journal(node="process", out=sys.stderr).event("unexpected error", kind=kind)

    loop.set_exception_handler(unexpected)

    async def one(node: AnyNode) -> None:
        try:
            results.append(await node.run())
        except HushuffleError as error:
            node.journal.enter("failed", reason=str(error))
            failures[node.name] = str(error)

    await asyncio.gather(*(one(node) for node in nodes))
    counters = {node.name: node.journal.counters() for node in nodes}
    return Ran(counters=counters, failures=failures, result=next((one for one in results if one), None))


def ask_health(configuration: Path) -> dict[str, dict[str, Any]]:
    """Return the health of each listening node of a configuration; "failure" for a node that does not answer."""
    config, folder = load_node(configuration), configuration.parent
    document = read_document(folder / config.document)
    identities = {name: _identity(config, name, folder) for name in config.nodes if name in document.servers}

    async def ask(identity: Identity) -> dict[str, Any]:
        try:
            return await health(document, identity)
        except HushuffleError as error:
            return {"failure": str(error)}

    async def everybody() -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(ask(identity) for identity in identities.values())))

    return dict(zip(identities, asyncio.run(everybody()), strict=True))


def result_table(document: RunDocument, result: RunResult) -> dict[str, Any]:
    answers = []
    for number, step in enumerate(result.steps, start=1):
        came = {"sources": step.sources, "planned": step.planned, "lost_batches": step.lost_batches}
        answers.append(document.query.answer(number, step.combined, came, step.scale))
    cautions = [_ONE_SCRAMBLER] if any(step.scrambled for step in document.steps) else []
    about = {"schema_version": 1, "run": result.run, "people": result.people, "cautions": cautions}
    return {**about, document.query.answers: answers}


_ONE_SCRAMBLER: Final = (
    "Every batch passed only one scrambler. A dishonest scrambler can replace all but a few messages by dummies or "
    "forged records, and learn these few records from the result. So people must trust each scrambler."
)


def _listening(where: str, name: str) -> socket.socket:
    try:
        if where.startswith("fd:"):
            return socket.socket(fileno=int(where.removeprefix("fd:")))
        host, _, port = where.rpartition(":")
        return socket.create_server((host.strip("[]"), int(port)), backlog=4096)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not host:port"
        fail(f"{name} cannot listen at {where}: {reason or 'an error'}.")


def _nodes(
    config: NodeConfiguration, document: RunDocument, promise: Promise, folder: Path, sockets: ExitStack
) -> list[AnyNode]:
    """Return the nodes of a process; `sockets` closes the sockets on which they listen."""
    scramblers = {batch.scrambler for step in document.steps for batch in step.batches}
    owned = config.records is not None and config.records.data is not None
    policy = config.policy or (Policy() if owned else None)  # prepared records of a rehearsal have no owner
    held, coins, state, places = None, b"", folder / config.state, Places()
    nodes: list[AnyNode] = []
    for name in config.nodes:
        journal, identity = Journal(node=name, out=sys.stderr), _identity(config, name, folder)
        if name in document.places:
            if policy is not None:
                check_policy(policy, promise, document, identity)
            if held is None:
                held = held_records(config, document, promise.specification.query, folder)
            own = held.get(name, ())
            assert config.records is not None
            if not coins:
                place = config.records.coins
                env = place.startswith("env:")
                coins = key_in_environment(place.removeprefix("env:")) if env else key_in_file(folder / place)
            # The rows of every table are numbered from 0: nodes that share a key must not share their randomness.
            draws = coins if config.records.prepared is not None else derived(coins, f"node {name}")
            sent = folder / config.records.state
            journal = Journal(node=name)  # thousands of sources may run: they have counters, but no log
            nodes.append(SourceNode(document, identity, own, key=draws, state=sent, journal=journal, places=places))
            if policy is not None and config.records.data is not None:
                spend(policy, promise, document, own, key=coins, state=sent)
            continue
        if name != document.result and name not in scramblers and document.target_of(name) is None:
            fail(f"{name} takes no part in this run: the document does not list it.")
        address = config.listen.get(name) or document.servers[name].address
        where = sockets.enter_context(_listening(address, name))
        if name in scramblers:
            nodes.append(ScramblerNode(document, identity, where, journal=journal, state=state))
            continue
        secret = _placed(config.seals.get(name), folder) or str(folder / config.identities / f"{name}.seal")
        key = SealKey.of(text_of_secret(secret))
        kind = ResultNode if name == document.result else ComputeNode
        nodes.append(kind(document, identity, where, key=key, journal=journal, state=state))
    return nodes


def _identity(config: NodeConfiguration, name: str, folder: Path) -> Identity:
    place, address = folder / config.identities, config.addresses.get(name)
    key = _placed(config.keys.get(name), folder) or str(place / f"{name}.key")
    certificate, authority = place / f"{name}.pem", place / "authority.pem"
    return read_identity(name, certificate=certificate, authority=authority, key=key, address=address)


def _placed(where: str | None, folder: Path) -> str | None:
    return where if where is None or where.startswith("env:") else str(folder / where)


_FIGURE: Final = 40
"""Largest number of bytes of a number in a result."""


def room_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.room")


def result_room(path: Path, document: RunDocument) -> Room:
    figures = len(document.steps) * document.query.figures
    return Room(room_file(path), (1 << 16) + figures * _FIGURE)


def _write(path: Path, content: Mapping[str, Any], *, hint: str = "") -> None:
    """Write JSON to the disk atomically."""
    with failing(f"{path} cannot be written", then=hint):
        write_whole(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode(), durable=True)
