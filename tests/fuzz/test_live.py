"""Requests of outsiders and of services that sign anything, to real services: none answers with an error of its own."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientSession

from fuzz.fuzzing import changed_bytes, changed_tree
from hushuffle_network.batches import FIRST, Link, Onions, head_of, pack, text_of_head, without_target
from hushuffle_network.parts import sealed_part
from hushuffle_network.task import canonical
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage

_PATHS = (
    *("batches", "counts", "parts", "result", "next", "passage", "passage/1", "passage/99999999999999999999"),
    *("steps/1/token", "steps/9/ticket", "steps/0001", "steps/1/came/ab", ""),
)
_JSON: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    10**30,
    0.5,
    [],
    {},
    "",
    "\0",
    "é",
    "0" * 64,
    "f" * 128,
    "AAAA",
    "a" * 5000,
]


def _signed(stage: PhoneStage, rng: random.Random) -> tuple[str, str, bytes]:
    """Return receiver, path and body of a request with a valid signature, most often on changed content."""
    document, trail, batch = stage.document, list[Link](), rng.randrange(4)
    if rng.random() < 0.4:
        name, receiver = document.step(1).targets[rng.randrange(3)].name, "result"
        what = rng.choice(["counts", "parts"])
        told = {"batches": [], "closed": rng.randrange(4)} if what == "counts" else {"numbers": "AAAAAAAA8D8="}
        messages = [sealed_part(document, name, changed_tree(told, rng, _JSON))]
    else:
        hop, what = rng.randrange(2), "batches"
        name = document.chain[hop].name
        receiver = document.step(1).targets[rng.randrange(3)].name if hop else "scrambler-2"
        onions, count = Onions(document, 1), rng.choice([0, 1, 11, 11, 11, 14])
        whole = [onions.wrap(0, onions.inner(0, None, None), after=hop) for _ in range(count)]
        messages = [without_target(one) for one in whole] if hop else whole
        for place, (came, sent) in zip(document.chain[: hop + 1], [(8, 11), (11, 14)], strict=False):
            sign = stage.keys[place.name].sign
            trail.append(Link.signed(sign, document.id, 1, batch, place.name, came, 8, sent))
    closed = rng.random() < 0.2
    head = head_of(document, 1, batch, name, receiver, messages, trail=tuple(trail), closed=closed)
    body = pack(head, messages, stage.keys[name].sign)
    if rng.random() < 0.5:
        text = text_of_head(body)
        changed = canonical(changed_tree(json.loads(text), rng, _JSON))[:8000]
        signature = stage.keys[name].sign.sign(b"hushuffle batch 1|" + changed)
        body = len(changed).to_bytes(FIRST) + changed + signature + b"".join(messages)
    return receiver, f"/tasks/{document.id.hex()}/{what}", body


def _odd(stage: PhoneStage, rng: random.Random) -> tuple[str, str, bytes]:
    """Return receiver, path and body of a request that no service of the task has signed."""
    receiver, path, body = _signed(stage, rng)
    if rng.random() < 0.6:
        number = rng.choice([stage.document.id.hex(), "0" * 64, "x"])
        receiver, path = rng.choice(sorted(stage.roles)), rng.choice(["/", "/gateway", f"/tasks/{number}/"])
        path += rng.choice(_PATHS) if path.startswith("/tasks") else ""
    signature = slice(FIRST + len(text_of_head(body)), FIRST + len(text_of_head(body)) + 64)
    body = body[: signature.start] + bytes(64) + body[signature.stop :]
    return receiver, path, changed_bytes(body, rng) if rng.random() < 0.6 else rng.randbytes(rng.randrange(400))


@pytest.mark.parametrize(
    ("signed", "count"), [(False, 150), (True, 150), pytest.param(True, 3000, marks=pytest.mark.slow)]
)
def test_services_survive_any_request_and_outsiders_change_no_result(signed: bool, count: int, tmp_path: Path) -> None:
    rng = random.Random(count)  # noqa: S311 - the same requests every time
    unhandled, answers = list[str](), Counter[int]()

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(str(context)))
        async with PhoneStage(tmp_path, plan_text(sets='[["age"]]')) as stage, ClientSession() as session:
            await stage.start_all()
            for _ in range(count):
                receiver, path, body = (_signed if signed else _odd)(stage, rng)
                method = "POST" if rng.random() < 0.9 else "GET"
                headers = rng.choice([{}, {"Content-Type": "message/ohttp-req"}])
                async with session.request(method, stage.url(receiver) + path, data=body, headers=headers) as answer:
                    answers[answer.status] += 1
            for name in stage.roles:
                async with session.get(f"{stage.url(name)}/health") as answer:
                    assert answer.status == 200, name
            if not signed:
                sent = stage.sendings()
                assert (await stage.phones().send(sent)).taken == 24
                (answered,) = (await stage.result())["answers"]
                assert (answered["sources"], answered["lost_batches"]) == (24, 0)
                assert np.array_equal(answered["received"], stage.used(sent)[1][0])

    asyncio.run(run())
    assert unhandled == []
    assert max(answers) < 500, answers
    assert answers.total() == count
    assert bool(answers[200]) == signed
