"""The relay, together with who draws up documents: whether it opens what it passes on."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from hushuffle.errors import DataError
from hushuffle_network.client import PhoneError, Task, onion_of, parts_of, request_of
from hushuffle_network.formats import encapsulate
from hushuffle_network.oblivious_http import GatewayKey
from hushuffle_network.settings import ServiceKeys
from hushuffle_network.tokens import IssuerKey
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage
from network.tasks import services
from network.vectors import published

KEY = IssuerKey.of(bytes.fromhex(published("tokens")["skS"]))
ANSWERS = {"age": 33, "smokes": "yes", "bmi": 21.5}
EVIL = ServiceKeys.generate("scrambler")


def posted(task: Task) -> bytes:
    """Return what a phone posts to the relay."""
    part = parts_of(task, ANSWERS, bytes(32))[0]
    return request_of(task, part, onion_of(task, part, bytes(354), bytes(32)), bytes(354), bytes(32))[0]


def opens(key: GatewayKey, request: bytes) -> bool:
    try:
        key.open(request)
    except DataError:
        return False
    return True


def changed(document: dict[str, Any], changes: dict[str, str]) -> dict[str, Any]:
    """Return a document that names the relay's keys: as the gateway's, as those of the first scrambler, or as some."""
    first = document["chain"][0] | {name: value for name, value in changes.items() if name != "gateway"}
    more = {name: value for name, value in changes.items() if name == "gateway"}
    return document | more | {"chain": [first, *document["chain"][1:]]}


GATEWAY = {"gateway": base64.b64encode(EVIL.gateway.config).decode()}
SEAL, SIGN = {"key": EVIL.public["seal"]}, {"sign": EVIL.public["sign"]}


@pytest.mark.parametrize("changes", [GATEWAY, SEAL, SIGN, SEAL | SIGN, GATEWAY | SEAL | SIGN], ids="-".join)
def test_no_request_that_the_relay_can_open_is_of_a_task_of_the_first_scrambler(
    changes: dict[str, str], tmp_path: Path
) -> None:
    """A relay with its own key as the gateway's took tickets out of requests, and left one person in a batch."""
    world = services(KEY)
    request = posted(Task(json.dumps(changed(world.document, changes)).encode()))
    assert opens(EVIL.gateway, request) == ("key" in changes)
    assert opens(world.gateway, request) == ("key" not in changes)

    async def run() -> None:
        async with PhoneStage(tmp_path, plan_text(sets='[["sex"]]')) as stage:
            document = json.dumps(changed(json.loads(stage.document.content), changes), sort_keys=True)
            (tmp_path / "tasks" / "task.json").write_text(json.dumps(json.loads(document), separators=(",", ":")))
            await stage.start("scrambler-1")
            assert stage.services["scrambler-1"].tasks == {}

    asyncio.run(run())


def test_the_key_of_the_gateway_is_the_one_that_limits_name() -> None:
    """Whoever trusts a first scrambler by its key has its gateway with it."""
    world = services(KEY)
    task = world.task
    assert task.gateway[3:35].hex() == task.chain[0]["key"]
    request, _ = encapsulate(task.gateway, b"a request")
    assert opens(world.gateway, request)
    with pytest.raises(PhoneError, match="no task document"):
        Task(json.dumps(changed(world.document, {"key": "zz"})).encode())
