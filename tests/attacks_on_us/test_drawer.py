"""Who draws up documents: what a false one gets out of phones and services whose owners are honest."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from hushuffle_network.client import Phone, PhoneError, Task, TryAgainError
from hushuffle_network.formats import blind
from hushuffle_network.limits import Limits, read_limits
from hushuffle_network.tokens import IssuerKey
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage
from network.tasks import CODE, services
from network.vectors import published

KEY = IssuerKey.of(bytes.fromhex(published("tokens")["skS"]))
ANSWERS = {"sex": "a", "pay": 7.0}
EVIL = "https://evil.example"
Posts = list[tuple[str, bytes, dict[str, str]]]


def harvested(stage: PhoneStage, changes: dict[str, Any], folder: Path) -> Posts:
    """Return what phones post to the drawer's own issuer, which says that it is busy; nothing else is asked."""
    posts: Posts = []

    def send(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        assert url.startswith(EVIL)
        assert body is not None
        posts.append((url.removeprefix(EVIL), body, dict(headers)))
        return 503, b""

    document = json.loads(stage.document.content) | {"issuer": {"name": "issuer.example", "url": EVIL}} | changes
    task = Task(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    for number in range(3):
        with pytest.raises(TryAgainError):
            Phone(task, folder / str(number), ANSWERS, send=send).send(stage.codes[number])
    assert len(posts) == 3
    return posts


def bought(stage: PhoneStage, posts: Posts) -> set[tuple[int, bytes]]:
    """Return the answers of the true issuer, asked with what was harvested for tokens and tickets of the drawer."""
    number, answers = stage.document.id.hex(), set[tuple[int, bytes]]()

    async def run() -> None:
        async with stage, ClientSession() as session:
            await stage.start("issuer")
            for path, body, headers in posts:
                for kind, key in (("token", stage.document.token_key(1)), ("ticket", stage.document.ticket_key(1))):
                    own = blind(key, stage.document.ticket_challenge(1)).request
                    for wanted in (own, body) if number not in path else (own,):
                        url = f"{stage.url('issuer')}/tasks/{number}/steps/1/{kind}"
                        async with session.post(url, data=wanted, headers=headers) as answer:
                            answers.add((answer.status, await answer.read()))

    asyncio.run(run())
    return answers


@pytest.mark.parametrize("changes", [{"number": "0" * 32}, {}], ids=["another task", "the task itself"])
def test_what_phones_show_to_an_address_of_the_drawer_buys_nothing(changes: dict[str, Any], tmp_path: Path) -> None:
    """With codes, 15 of 16 people could be replaced in an honest task, and the last one's record was what is left."""
    stage = PhoneStage(tmp_path, plan_text(sets='[["sex"]]'))
    posts = harvested(stage, changes, tmp_path)
    assert not any(code in repr(post) for code in stage.codes for post in posts)
    assert bought(stage, posts) == {(401, b"no such code\n")}


def test_the_task_itself_with_another_address_gets_signatures_that_only_the_phone_can_use(tmp_path: Path) -> None:
    """The drawer may pass requests on, and keep people out that way: it gets no token of its own."""
    stage = PhoneStage(tmp_path, plan_text(sets='[["sex"]]'))
    changed = stage.document.model_dump() | {"issuer": {"name": "issuer.example", "url": EVIL}}
    stage.document = type(stage.document).model_validate(changed)
    (tmp_path / "tasks" / "task.json").write_bytes(stage.document.content)
    posts = harvested(stage, {}, tmp_path)
    assert {path for path, _, _ in posts} == {f"/tasks/{stage.document.id.hex()}/steps/1/token"}
    assert bought(stage, posts) == {(401, b"no such code\n")}


def test_names_of_one_phone_in_two_tasks_have_nothing_in_common(tmp_path: Path) -> None:
    stage = PhoneStage(tmp_path, plan_text(sets='[["sex"]]'))
    posts = [post for digit in "01" for post in harvested(stage, {"number": digit * 32}, tmp_path / digit)]
    names = [headers["authorization"].split('"')[1] for _, _, headers in posts]
    assert len(set(names)) == 6
    asyncio.run(stage.__aexit__())


@pytest.mark.parametrize("code", ["", "2f" * 15, "guess me", "2F" * 16])
def test_a_code_that_can_be_guessed_is_shown_to_nobody(code: str, tmp_path: Path) -> None:
    world = services(KEY)
    phone = Phone(world.task, tmp_path, {"age": 3, "smokes": "no", "bmi": 20}, send=world.send)
    with pytest.raises(PhoneError, match="32 hexadecimal digits or more"):
        phone.send(code)
    assert world.seen == []
    assert json.loads((tmp_path / "total.json").read_bytes())["runs"] == {}


def test_an_owner_names_issuers_by_their_keys(tmp_path: Path) -> None:
    world, answers = services(KEY), {"age": 3, "smokes": "no", "bmi": 20}
    keys = [hashlib.sha256(KEY.spki).hexdigest()]
    limits = read_limits(json.dumps({"issuers": keys}).encode())
    Phone(world.task, tmp_path / "a", answers, limits=limits, send=world.send).send(CODE)
    other = services(IssuerKey.generate())
    for given in (limits, Limits(issuers=())):
        with pytest.raises(PhoneError, match="not in the limit `issuers`"):
            Phone(other.task, tmp_path / "b", answers, limits=given, send=other.send)
    assert other.seen == []
    with pytest.raises(PhoneError, match="invalid names or values: issuers"):
        read_limits(b'{"issuers": ["short"]}')


@pytest.mark.parametrize("size", [2_000_000_000, 16_385, 511, -1, 1024.0, "1024", None, True])
def test_a_document_cannot_ask_for_any_amount_of_memory(size: Any) -> None:
    """3 kB of document asked for 7.7 GB."""
    content = services(KEY).document | {"message": size}
    with pytest.raises(PhoneError, match="no task document of version 2"):
        Task(json.dumps(content).encode())
    for right in (512, 16_384):
        assert Task(json.dumps(content | {"message": right}).encode()).document["message"] == right


def test_a_document_is_as_large_as_services_take_it() -> None:
    content = services(KEY).content
    assert Task(content.ljust(20_000)).id
    with pytest.raises(PhoneError, match="no task document"):
        Task(content.ljust(20_001))
