"""Members of a run that say anything over good connections: real TLS, real nodes."""

from __future__ import annotations

import asyncio
import random
import struct
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fuzz.fuzzing import NUMBERS
from hushuffle.errors import HushuffleError
from hushuffle.network.nodes.connections import VERSION, Kind
from network.network_tools import Stage, plan_text, stage
from runtime_cases import bounded

_HEAD = struct.Struct("<BBHII4x")
_REST = struct.Struct("<H2x5Q4x")


def _said(nodes: Stage, to: str, rng: random.Random) -> bytes:
    """Return frames: messages, sealed well or not, and control frames, with odd numbers; sometimes cut off, or junk."""
    document, said = nodes.document, b""
    for _ in range(rng.randint(1, 6)):
        kind = rng.choice([Kind.MESSAGE, *Kind])
        number = rng.choice(NUMBERS) % 2**32 if rng.random() < 0.5 else rng.randrange(3)
        said += _HEAD.pack(VERSION, kind, rng.choice([0, 1, 2, 65_535]), number, rng.choice([0, 1, 2, 2**32 - 1]))
        if kind != Kind.MESSAGE:
            said += _REST.pack(rng.choice([0, 1, 16, 17, 65_535]), *(rng.choice(NUMBERS) for _ in range(5)))
        elif rng.random() < 0.5:
            said += rng.randbytes(document.layout.sealed)
        else:
            target = to if to in nodes.deployment.seals else document.steps[0].computes[0]
            content = rng.choice([None, b"", rng.randbytes(4), rng.randbytes(rng.randint(0, 900))])
            said += document.seals(rng.choice([0, 1])).seal(content, document.seal_key(target), target=target)
    if rng.random() < 0.2:
        return said[: rng.randint(0, len(said))]
    return rng.randbytes(200) if rng.random() < 0.1 else said


async def _attack(nodes: Stage, me: str, to: str, rng: random.Random) -> str:
    """Make one connection, say something, and leave in some way."""
    try:
        connection: Any = await asyncio.wait_for(nodes.client(me, to), 10)
    except (HushuffleError, TimeoutError) as error:
        return type(error).__name__
    connection._writer.write(_said(nodes, to, rng))
    with suppress(HushuffleError, OSError, TimeoutError):
        match rng.randrange(4):
            case 0:
                await asyncio.wait_for(connection.receive(), 1)
            case 1:
                connection.abort()
            case 2:
                await connection._writer.drain()
    with suppress(TimeoutError):
        await asyncio.wait_for(connection.close(), 2)
    connection.abort()
    return f"{me.partition('-')[0]} to {to.partition('-')[0]}"


@pytest.mark.slow
def test_nodes_survive_what_members_say(tmp_path: Path) -> None:
    rng = random.Random(3)  # noqa: S311 - the same frames every time
    unhandled: list[str] = []

    async def play() -> Counter[str]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(str(context)))
        made: Counter[str] = Counter()
        async with stage(plan_text(people=12, collect=300.0, patience=3.0), tmp_path) as nodes:
            nodes.start_servers()
            first, result = nodes.scramblers[0], nodes.document.result
            pairs = [(nodes.sources_of(first)[0], first), (first, nodes.computes[0]), ("stranger", first)]
            pairs += [(nodes.computes[0], result), (result, result), (nodes.sources_of(first)[0], result)]
            for _ in range(800):
                made[await _attack(nodes, *rng.choice(pairs), rng)] += 1
            for name, task in nodes.tasks.items():
                if task.done() and not task.cancelled():
                    assert task.exception() is None or isinstance(task.exception(), HushuffleError), name
            alive = [name for name, task in nodes.tasks.items() if not task.done()]
            assert set(nodes.scramblers) <= set(alive)
            print(dict(made), nodes.rejected(*nodes.scramblers, *nodes.computes, result))
        return made

    made = bounded(play())
    assert not unhandled
    assert made.total() == 800
    assert made["source to scrambler"] > 50
