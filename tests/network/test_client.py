"""The phone: what it sends, what it sends again, what it keeps and refuses."""

from __future__ import annotations

import json
import math
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hushuffle.errors import DataError
from hushuffle_network import client
from hushuffle_network.choices import record_of
from hushuffle_network.client import (
    Phone,
    PhoneError,
    Task,
    TryAgainError,
    parts_of,
)
from hushuffle_network.oblivious_http import decode_request
from hushuffle_network.tokens import IssuerKey
from network.tasks import CODE, code_of, services
from network.vectors import published

KEY = IssuerKey.of(bytes.fromhex(published("tokens")["skS"]))
ANSWERS = {"age": 33, "smokes": "yes", "bmi": 21.5}


@pytest.mark.parametrize(
    "changed",
    [{"age": None}, {"age": 200}, {"smokes": 1}, {"bmi": None}, {"bmi": "21"}, {"bmi": math.nan}],
)
def test_what_is_no_answer_is_a_message_without_data(changed: dict[str, Any], tmp_path: Path) -> None:
    world = services(KEY)
    assert record_of(world.task.document, world.task.steps[0], ANSWERS | changed) is None
    Phone(world.task, tmp_path, ANSWERS | changed, send=world.send).send(CODE)
    step, _, _, record = world.arrived[0]
    assert (step, record) == (1, None)


def test_every_message_arrives_with_its_token_and_its_record(tmp_path: Path) -> None:
    world = services(KEY)
    for number in range(20):
        phone = Phone(world.task, tmp_path / str(number), ANSWERS, send=world.send)
        phone.send(code_of(number))
        assert all(there for _, there in phone.passed())
        mine = world.arrived[-2:]
        assert [(part.number, part.target, part.content) for part in phone.parts] == [(s, t, r) for s, t, _, r in mine]
    owns = {1: (1, struct.pack("<iid", 1, 1, 21.5)), 2: (1, struct.pack("<id", 1, 21.5))}
    for step, target, _, record in world.arrived:
        own, content = owns[step]
        assert record == (content if target == own else None)
    nonces = [nonce for _, _, nonce, _ in world.arrived]
    assert len(set(nonces)) == len(nonces) == 40
    assert len({target for step, target, _, _ in world.arrived if step == 1}) > 1


def test_all_that_is_seen_from_outside_has_one_size(tmp_path: Path) -> None:
    """Whatever the answer, the relay, the issuer and everybody on the wire see the same requests and lengths."""
    shapes = set()
    given: list[dict[str, Any]] = [
        ANSWERS,
        {"age": None, "smokes": "no", "bmi": 1e9},
        {"age": 0, "smokes": "yes", "bmi": 10},
    ]
    for number, answers in enumerate(given):
        world = services(KEY)
        phone = Phone(world.task, tmp_path / str(number), answers, send=world.send)
        phone.send(CODE)
        _ = list(phone.passed())
        for _, _, headers in world.seen:
            headers |= {name: f"{len(value)}" for name, value in headers.items() if name == "authorization"}
        shapes.add(tuple((url, len(body or b""), tuple(sorted(headers.items()))) for url, body, headers in world.seen))
    (shape,) = shapes
    assert [length for _, length, _ in shape] == [259, 259, shape[2][1], 259, 259, shape[2][1], *[0] * 18]


def test_the_same_bytes_are_sent_again(tmp_path: Path) -> None:
    """After any failure, at any point, by the same object or by a new one."""
    world = services(KEY)
    task, asked = world.task, list[tuple[str, bytes | None, Mapping[str, str]]]()

    def failing(at: int) -> client.Send:
        left = iter(range(100))

        def send(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
            asked.append((url, body, headers))
            if next(left) == at:
                message = "nobody there"
                raise TryAgainError(message)
            return world.send(url, body, headers)

        return send

    for at in range(6):
        with pytest.raises(TryAgainError):
            Phone(task, tmp_path, None if at else ANSWERS, send=failing(at)).send(CODE)
    phone = Phone(task, tmp_path, ANSWERS, send=failing(99))
    phone.send(CODE)
    phone.send(CODE)
    assert len({(url, body) for url, body, _ in asked}) == 6
    assert len(set(world.arrived)) == len(set(world.tickets)) == 2


def test_a_busy_service_is_asked_again_and_a_refusal_is_final(tmp_path: Path) -> None:
    world = services(KEY)
    phone = Phone(world.task, tmp_path, ANSWERS, send=world.send)
    for status in (408, 429, 500, 503):
        world.answers = [status]
        with pytest.raises(TryAgainError, match=f"the relay answered {status}"):
            phone.send(CODE)
    world.answers = [403]
    with pytest.raises(PhoneError, match="the relay answered 403") as caught:
        phone.send(CODE)
    assert not isinstance(caught.value, TryAgainError)
    with pytest.raises(PhoneError, match="the issuer answered 403"):
        Phone(world.task, tmp_path / "other", ANSWERS, send=world.send).send(CODE)


@pytest.mark.parametrize(
    ("status", "word", "words", "again"),
    [
        (403, b"code used\n", r"answered 403: the code was used already, with another request", False),
        (401, b"no such code\n", r"answered 401: it knows no such code for this task\.", False),
        (410, b"too late\n", r"answered 410: this task is closed since 2026-05-01 11:00 UTC\.", False),
        (410, b"over", r"answered 410: this task is over since 2026-05-01 11:00 UTC\.", False),
        (503, b"busy", r"answered 503: it cannot write to its disk\.", True),
        (403, b"<b>your answer was 33</b>", r"answered 403\.$", False),
    ],
)
def test_a_refusal_is_said_in_words_and_nothing_else_of_an_answer_is_shown(
    status: int, word: bytes, words: str, again: bool, tmp_path: Path
) -> None:
    about = {"start": "2026-05-01T10:00:00.000Z", "collect": 3600.0}
    task = Task(json.dumps(services(KEY).task.document | about).encode())
    phone = Phone(task, tmp_path, ANSWERS, send=lambda *_: (status, word))
    with pytest.raises(PhoneError, match=f"the issuer {words}") as caught:
        phone.send(CODE)
    assert isinstance(caught.value, TryAgainError) == again


def test_a_moment_that_is_none_is_not_said() -> None:
    for about in ({}, {"start": "soon", "collect": 1.0}, {"start": "2026-05-01T10:00:00Z", "collect": 1e300}):
        assert client._closed_since(about) == ""


def test_a_second_answer_is_refused(tmp_path: Path) -> None:
    world = services(KEY)
    Phone(world.task, tmp_path, ANSWERS, send=world.send)
    with pytest.raises(PhoneError, match="the stored answers for this task differ") as caught:
        Phone(world.task, tmp_path, ANSWERS | {"age": 34}, send=world.send)
    assert "34" not in str(caught.value)
    assert world.seen == []
    assert len(list(tmp_path.glob("[0-9a-f]*.json"))) == 1
    more = dict(reversed(ANSWERS.items())) | {"name": "of no task"}
    again = Phone(world.task, tmp_path, more, send=world.send)
    assert [part.blinded.request for part in again.parts] == [
        part.blinded.request for part in Phone(world.task, tmp_path).parts
    ]
    with pytest.raises(PhoneError, match="nothing was sent for this task"):
        Phone(services(KEY, per_person="one").task, tmp_path)
    with pytest.raises(PhoneError, match="lack bmi, smokes"):
        Phone(world.task, tmp_path / "new", {"age": 3})


def test_what_the_task_does_not_ask_is_not_kept(tmp_path: Path) -> None:
    world = services(KEY)
    Phone(world.task, tmp_path, ANSWERS | {"name": "of no task"})
    (state,) = tmp_path.glob("[0-9a-f]*.json")
    assert json.loads(state.read_bytes())["answers"] == ANSWERS


def test_of_two_answers_given_at_once_one_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process writes its state after this one has looked, and before it writes."""
    world, real = services(KEY), client.keep

    def keep(path: str, answers: client.Answers) -> None:
        real(path, ANSWERS)
        real(path, answers)

    monkeypatch.setattr(client, "keep", keep)
    with pytest.raises(PhoneError, match="the stored answers for this task differ"):
        Phone(world.task, tmp_path, ANSWERS | {"age": 34}, send=world.send)
    assert [path.name for path in tmp_path.glob("[0-9a-f]*.json")] == [f"{world.task.id.hex()}.json"]


def test_the_state_is_written_before_the_first_byte_leaves_for_the_owner_alone(tmp_path: Path) -> None:
    world = services(KEY)
    state = tmp_path / "state" / f"{world.task.id.hex()}.json"

    def send(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        assert json.loads(state.read_bytes())["answers"] == ANSWERS
        return world.send(url, body, headers)

    os.umask(os.umask(0o022))
    Phone(world.task, state.parent, ANSWERS, send=send).send(CODE)
    assert state.stat().st_mode & 0o777 == 0o600
    assert state.parent.stat().st_mode & 0o777 == 0o700


def test_a_damaged_state_sends_nothing(tmp_path: Path) -> None:
    world = services(KEY)
    path = tmp_path / f"{world.task.id.hex()}.json"
    for content in ("", "{}", "[]", '{"secret": "zz", "answers": {}}', '{"secret": 1, "answers": {}}'):
        path.write_text(content)
        with pytest.raises(PhoneError, match="damaged"):
            Phone(world.task, tmp_path, ANSWERS, send=world.send)
    (tmp_path / "file").write_text("")
    with pytest.raises(PhoneError, match="nothing was sent"):
        Phone(world.task, tmp_path / "file", ANSWERS)


def test_everything_is_drawn_anew_for_another_secret() -> None:
    """No two phones share a byte that is drawn; the same secret draws all of it again."""
    task = services(KEY).task
    first, again, other = (parts_of(task, ANSWERS, bytes([one]) * 32) for one in (1, 1, 2))
    assert [part.blinded.request for part in first] == [part.blinded.request for part in again]
    assert len({part.blinded.message[2:34] for part in first + other}) == 4
    token = bytes(354)
    onions = [
        client.onion_of(task, part, token, bytes([one]) * 32)
        for one, parts in ((1, first), (2, other))
        for part in parts
    ]
    assert len({onion[:32] for onion in onions}) == 4
    assert {len(onion) for onion in onions} == {1024}


def test_one_step_for_each_person() -> None:
    task = services(KEY, per_person="one").task
    drawn = [parts_of(task, ANSWERS, bytes([one]) * 32) for one in range(1, 60)]
    assert {len(parts) for parts in drawn} == {1}
    assert 15 < sum(parts[0].number == 1 for parts in drawn) < 45


def test_a_message_is_worth_nothing_in_another_task(tmp_path: Path) -> None:
    """One changed word of the document: seals, token and request fit no more."""
    world, other = services(KEY), services(KEY, relay="https://other.example/ohttp")
    (part, _) = parts_of(world.task, ANSWERS, bytes(32))
    token = part.blinded.finalize(KEY.sign(part.blinded.request))
    onion = client.onion_of(world.task, part, token, bytes(32))
    assert world.opened(1, onion)[3] in (part.content, None)
    with pytest.raises(PhoneError, match="not sealed for this key and purpose"):
        other.opened(1, onion)
    with pytest.raises(PhoneError, match="not sealed for this key and purpose"):
        world.opened(2, onion)
    resealed = client.onion_of(other.task, part, token, bytes(32))
    with pytest.raises(DataError, match="token is not valid for this task"):
        other.opened(1, resealed)
    request, _ = client.request_of(other.task, part, onion, bytes(354), bytes(32))
    assert other.task.id.hex() in decode_request(world.gateway.open(request)[0]).path
    assert tmp_path.exists()


def test_a_loss_is_seen(tmp_path: Path) -> None:
    world = services(KEY)
    phone = Phone(world.task, tmp_path, ANSWERS, send=world.send)
    phone.send(CODE)
    lost = world.arrived.pop(0)
    assert dict(phone.passed()) == {lost[0]: False, 2: True}
    asked = [url for url, body, _ in world.seen if body is None]
    targets = [target for step in world.task.steps for target in step["targets"]]
    lists = ("passage", "passage/3", "passage/7")
    every = [f"{target['url']}/tasks/{world.task.id.hex()}/{name}" for target in targets for name in lists]
    assert asked == every


def test_documents_that_are_refused() -> None:
    good = services(KEY).content
    assert Task(good, Task(good).id).id == Task(good).id
    with pytest.raises(PhoneError, match="expected id"):
        Task(good, bytes(32))
    for wrong in (
        b"",
        b"[]",
        b"{}",
        good.replace(b'"version":2', b'"version":1'),
        good.replace(b'"version":2', b'"version":2,"round":null'),
        good.replace(b'"version":2', b'"version":2,"round":[]'),
        good.replace(b'"chain":[{"key":"', b'"chain":[{"key":"\\u00e4'),
        good.replace(b'"message":1024', b'"message":2000000000'),
        good.replace(b'"message":1024', b'"message":511'),
        good.replace(b'"message":1024', b'"message":1024.5'),
        good.ljust(20_001),
    ):
        with pytest.raises(PhoneError, match="no task document of version 2"):
            Task(wrong)


def test_a_record_that_does_not_fit_is_not_sent() -> None:
    task = services(KEY, message=512).task
    part = parts_of(task, ANSWERS, bytes(32))[0]._replace(content=bytes(30))
    assert len(client.onion_of(task, part._replace(content=bytes(10)), bytes(354), bytes(32))) == 512
    with pytest.raises(PhoneError, match="does not fit"):
        client.onion_of(task, part, bytes(354), bytes(32))


@pytest.mark.parametrize(
    "url",
    [
        "http://relay.example/",
        "http://relay.example:80",
        "ftp://localhost/",
        "file:///etc/passwd",
        "",
        "http://localhost.example/",
    ],
)
def test_addresses_without_tls_are_refused(url: str) -> None:
    with pytest.raises(PhoneError, match="not https"):
        client.post(url, b"", {})


@pytest.mark.parametrize(
    "url",
    [
        "https://relay.example:port/",
        "https://relay.example:99999999999/",
        "https:///path",
        "https://name@relay.example/",
        "https://[::1/",
        "https://relay.example/a b",
        "https://relay.example/\u00e4",
        f"https://{'a' * 64}.example/",
        "http://localhost:99999/",
    ],
)
def test_addresses_that_are_none_are_one_error_and_final(url: str) -> None:
    with pytest.raises(PhoneError, match="does not have the form that HTTP requires") as caught:
        client.post(url, b"", {})
    assert not isinstance(caught.value, TryAgainError)


def test_a_code_that_no_header_can_hold_is_one_error_and_final() -> None:
    with socket.create_server(("127.0.0.1", 0)) as here, pytest.raises(PhoneError, match="or the code") as caught:
        client.post(f"http://127.0.0.1:{here.getsockname()[1]}/", b"", {"authorization": "Bearer a\nb"})
    assert not isinstance(caught.value, TryAgainError)


def test_nothing_shows_an_answer() -> None:
    parts = parts_of(services(KEY).task, ANSWERS, bytes(32))
    assert repr(parts[0]) == "Part()"
    assert repr(parts[0].blinded) == "Blinded()"
