"""A whole task where every service ends TLS itself, and several processes sign."""

from __future__ import annotations

import datetime as dt
import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle_network.bundle import prepare_task
from hushuffle_network.client import Phone, PhoneError, Task, TryAgainError
from hushuffle_network.queries import parse_plan
from hushuffle_network.task import names_of
from network.phone_cases import plan_text
from network.phone_stage import keys_of

PEOPLE = 3
TRAFFIC = "dummies = 2\nbatch = 3\nmin_batch = 2"
PLAN = plan_text(sets='[["age"]]', partitions=2, traffic=TRAFFIC).replace("people = 24", f"people = {PEOPLE}")
NAMES = [*names_of([2], 1), "issuer", "relay"]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, int]]:
    """Start all services with one certificate, for "localhost"; return the task's folder, and the issuer's process."""
    for number, name in enumerate(NAMES[:-1]):
        keys_of(name.split("-")[0], number, 1).write(tmp_path / "keys", name)  # type: ignore[arg-type]
    assert main(["node", "codes", str(PEOPLE), "--out", str(tmp_path / "keys")]) == Exit.DONE
    assert main(["node", "certs", "localhost", "--out", str(tmp_path / "tls")]) == Exit.DONE
    for name in NAMES:
        for ending in ("pem", "key"):
            (tmp_path / "tls" / f"{name}.{ending}").hardlink_to(tmp_path / "tls" / f"localhost.{ending}")
    held = [socket.create_server(("127.0.0.1", 0)) for _ in NAMES]
    ports = [one.getsockname()[1] for one in held]
    urls = "".join(f'{name} = "https://localhost:{port}"\n' for name, port in zip(NAMES, ports, strict=True))
    listen = "".join(f'{name} = "127.0.0.1:{port}"\n' for name, port in zip(NAMES, ports, strict=True))
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(f'people = {PEOPLE}\nkeys = "keys"\ncertificates = "tls"\n[urls]\n{urls}[listen]\n{listen}')
    prepare_task(parse_plan(PLAN), hosts, out=tmp_path / "task", start=dt.datetime.now(dt.UTC), bundle=True)
    with (tmp_path / "task" / "issuer" / "issuer.toml").open("a") as file:
        file.write("signers = 2\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "tls" / "authority.pem"))
    for one in held:
        one.close()
    words = [sys.executable, "-m", "hushuffle", "node", "start"]
    running = [
        subprocess.Popen([*words, str(tmp_path / "task" / name / f"{name}.toml")], stderr=subprocess.DEVNULL)
        for name in NAMES
    ]
    yield tmp_path / "task", running[NAMES.index("issuer")].pid
    for process in running:
        process.terminate()
    assert [process.wait(20) for process in running] == [0] * len(running)


def test_a_task_over_tls_with_two_signers(started: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> None:
    task, issuer = started
    document = Task((task / "task.json").read_bytes())
    codes = (task.parent / "keys" / "codes.txt").read_text().split()
    phones = [Phone(document, task.parent / f"{at}", {"age": 20 * at, "pay": 5.0}) for at in range(PEOPLE)]
    last = time.monotonic() + 60
    for phone, code in zip(phones, codes, strict=True):
        while True:
            try:
                phone.send(code)
                break
            except TryAgainError:
                assert time.monotonic() < last
                time.sleep(0.2)
    while not (written := list((task / "result" / "results").glob("*.json"))):
        assert time.monotonic() < last
        time.sleep(0.1)
    children = Path(f"/proc/{issuer}/task/{issuer}/children")
    assert not children.exists() or len(children.read_text().split()) >= 2, "each signs in a process of its own"
    assert json.loads(written[0].read_text())["answers"][0]["sources"] == PEOPLE
    assert dict(phones[0].passed()) == {1: True}
    port = int(document.chain[0]["url"].rpartition(":")[2])
    old = ssl.create_default_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        pytest.raises(ssl.SSLError, match=r"(?i)alert|version|protocol"),
    ):
        old.wrap_socket(plain, server_hostname="localhost")
    monkeypatch.delenv("SSL_CERT_FILE")  # an authority that nobody trusts
    with pytest.raises(PhoneError, match="the certificate of localhost is not signed by an authority") as caught:
        phones[0].send(codes[0])
    assert not isinstance(caught.value, TryAgainError), "the same at every try"
