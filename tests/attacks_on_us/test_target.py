"""A target, or any other service that answers: how long and how much it can make a phone wait and read."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hushuffle_network import client
from hushuffle_network.client import Phone, PhoneError, TryAgainError
from hushuffle_network.tokens import IssuerKey
from network.tasks import Services, services
from network.vectors import published

KEY = IssuerKey.of(bytes.fromhex(published("tokens")["skS"]))
ANSWERS = {"age": 33, "smokes": "yes", "bmi": 21.5}


@contextmanager
def trickling(head: bytes) -> Iterator[str]:
    """Give the address of a server that answers with `head`, and then a byte every 20 milliseconds."""
    here, ended = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        connection, _ = here.accept()
        with connection, suppress(OSError):
            connection.sendall(head)
            while not ended.wait(0.02):
                connection.sendall(b"0")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{here.getsockname()[1]}/"
    finally:
        ended.set()
        thread.join()
        here.close()


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
    ids=["status", "header", "body", "body without a length"],
)
def test_an_answer_that_comes_byte_by_byte_has_a_time(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client._EACH == 60
    monkeypatch.setattr(client, "_EACH", 0.2)
    begun = time.monotonic()
    with trickling(head) as url, pytest.raises(TryAgainError, match="no answer in time"):
        client.post(url, None, {})
    assert time.monotonic() - begun < 5


def test_all_answers_of_one_call_have_a_time_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target may list batch after batch, each in time."""
    assert client._ALL == 600
    moment, world = [0.0], services(KEY)
    phone = Phone(world.task, tmp_path, ANSWERS, send=slow(world, moment))
    monkeypatch.setattr(client, "monotonic", lambda: moment[0])
    with pytest.raises(TryAgainError, match="more than 600 seconds together"):
        list(phone.passed())
    assert 600 < moment[0] <= 660


def slow(world: Services, moment: list[float]) -> client.Send:
    def send(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        moment[0] += 59
        return world.send(url, body, headers)

    return send


@pytest.mark.parametrize(
    ("listed", "entries"), [(list(range(19)), 0), (list(range(10**6)), 0), ([1], 25), ([1], 10**6)]
)
def test_lists_are_as_long_as_the_task_can_make_them(listed: list[int], entries: int, tmp_path: Path) -> None:
    """20 people in one batch, and 2 dummies of each of 2 scramblers."""
    world, asked = services(KEY), list[str]()

    def send(url: str, *_: Any) -> tuple[int, bytes]:
        asked.append(url)
        return 200, json.dumps({"batches": listed}).encode() if url.endswith("/passage") else bytes(32 * entries)

    with pytest.raises(PhoneError, match="more batches or messages than the task can have"):
        list(Phone(world.task, tmp_path, ANSWERS, send=send).passed())
    assert len(asked) <= 2
    listed, entries = list(range(18)), 24
    assert dict(Phone(world.task, tmp_path, send=send).passed()) == {1: False, 2: False}


def test_an_answer_has_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client._MOST == 1 << 26
    monkeypatch.setattr(client, "_MOST", 100)
    phone = Phone(services(KEY).task, tmp_path, ANSWERS, send=lambda *_: (200, bytes(101)))
    with pytest.raises(PhoneError, match="more than 100 bytes"):
        list(phone.passed())
    with trickling(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + bytes(200)) as url:
        assert client.post(url, None, {}) == (200, bytes(101))
