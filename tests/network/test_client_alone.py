"""The phone as a program of its own: two files in a folder, talking HTTP."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hushuffle_network import choices, client, formats, limits
from hushuffle_network.tokens import IssuerKey
from network.tasks import CODE, Services, services
from network.vectors import published

KEY = IssuerKey.of(bytes.fromhex(published("tokens")["skS"]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the four files and what a phone has."""
    for module in (client, choices, formats, limits):
        shutil.copy(str(module.__file__), tmp_path)
    (tmp_path / "answers.json").write_text('{"age": 33, "smokes": "yes", "bmi": 21.5}')
    (tmp_path / "code.txt").write_text(f"{CODE}\n")
    return tmp_path


@pytest.fixture
def world(folder: Path) -> Iterator[Services]:
    """All services behind one HTTP server on this machine."""
    made = services(KEY)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, content = made.send(made.host + self.path, self.rfile.read(length) if length else None, headers)
            self.send_response(status)
            if status == 302:
                self.send_header("location", content.decode())
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.host = f"http://127.0.0.1:{server.server_port}"
    (folder / "task.json").write_bytes(made.content)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "client.py", "task.json", "--state", "state", *arguments]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60, env=clean)


SEND = ("--answers", "answers.json", "--code-file", "code.txt")


def test_a_phone_answers_once_and_sees_that_it_passed(folder: Path, world: Services) -> None:
    sent = run(folder, *SEND, "--id", world.task.id.hex())
    assert (sent.returncode, sent.stdout, sent.stderr) == (0, "sent\n", "")
    assert len(world.arrived) == 2
    assert not any(CODE.encode() in repr(one).encode() for one in world.seen)
    again = run(folder, *SEND)
    assert (again.returncode, len(set(world.arrived)), len(world.arrived)) == (0, 2, 4)
    assert (run(folder, "--check").stdout, run(folder, "--check").returncode) == ("passed\n", 0)
    world.arrived = [one for one in world.arrived if one[0] == 1]
    missed = run(folder, "--check")
    assert (missed.returncode, missed.stdout) == (1, "not in the lists of step 2\n")


def test_what_a_phone_says_when_it_cannot_go_on(folder: Path, world: Services) -> None:
    world.answers = [503]
    busy = run(folder, *SEND)
    assert (busy.returncode, busy.stdout, busy.stderr) == (75, "", "the relay answered 503.\n")
    (folder / "answers.json").write_text('{"age": 44, "smokes": "yes", "bmi": 21.5}')
    other = run(folder, *SEND)
    assert (other.returncode, other.stderr) == (
        1,
        "the stored answers for this task differ from these: only the stored answers are sent. "
        "Give the same answers again.\n",
    )
    (folder / "answers.json").write_text("[3]")
    assert run(folder, *SEND).stderr == "a file or an answer does not have the required form.\n"
    assert "expected id" in run(folder, *SEND, "--id", "00" * 32).stderr
    for wrong in ((), ("--check", "more"), ("--id", "zz", "--check"), ("--nonsense",)):
        asked = run(folder, *wrong)
        assert (asked.returncode, asked.stderr) == (2, f"{client.__doc__}\n")
    world.answers = [418]
    assert run(folder, "--code-file", "code.txt").stderr == "the relay answered 418.\n"
    assert run(folder, "--code-file", "code.txt").stdout == "sent\n"


def test_the_owner_s_limits(folder: Path, world: Services) -> None:
    """Of a file; a copied folder goes on only if the owner says that it was moved."""
    given = folder / "limits.json"
    for text, why in (
        ('{"max_epsilon": 0.5}', "above max_epsilon = 0.5: this phone does not take part"),
        ('{"max_epsilonn": 9}', "invalid names or values: max_epsilonn"),
        ('{"recompute": true}', "is not the document of a task"),
    ):
        given.write_text(text)
        refused = run(folder, *SEND, "--limits", "limits.json")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert why in refused.stderr
    assert world.seen == []
    given.write_text('{"max_epsilon": 0.8, "budget": 0.8}')
    assert run(folder, *SEND, "--limits", "limits.json").stdout == "sent\n"
    shutil.copytree(folder / "state", folder / "copy")
    shutil.rmtree(folder / "state")
    (folder / "copy").rename(folder / "state")
    assert "is a copy" in run(folder, *SEND).stderr
    assert run(folder, *SEND, "--moved").stdout == "sent\n"
    assert run(folder, *SEND).stdout == "sent\n"


def test_no_redirection_is_followed(folder: Path, world: Services) -> None:
    """The code would go along."""
    real = world.send

    def send(url: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        real(url, body, headers)
        return 302, world.url("elsewhere").encode()

    world.send = send  # type: ignore[assignment,method-assign]
    for _ in range(2):
        assert run(folder, *SEND).stderr == "the issuer answered 302.\n"
    assert [url for url, _, _ in world.seen] == [
        world.url("issuer") + f"/tasks/{world.task.id.hex()}/steps/1/token"
    ] * 2


def test_nobody_there(folder: Path, world: Services) -> None:
    (folder / "task.json").write_bytes(world.content.replace(world.host.encode(), b"http://127.0.0.1:9"))
    failed = run(folder, *SEND)
    words = "there is no connection, or no answer in time: try again later.\n"
    assert (failed.returncode, failed.stderr) == (75, words)


def test_a_phone_that_is_killed_sends_the_same_bytes(folder: Path, world: Services) -> None:
    """Killed while its first message is on the way, once for each thing it asks for."""
    real, phones, left = world.send, list[subprocess.Popen[bytes]](), [0]

    def send(url: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        found = real(url, body, headers)
        left[0] -= 1
        if left[0] < 0:
            os.kill(phones[-1].pid, signal.SIGKILL)
        return found

    world.send = send  # type: ignore[assignment,method-assign]
    for asked in range(6):
        left[0] = asked
        command = [sys.executable, "client.py", "task.json", "--state", "state", *SEND]
        phones.append(subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL))
        assert phones[-1].wait(60) == -signal.SIGKILL
    world.send = real  # type: ignore[method-assign]
    assert run(folder, *SEND).returncode == 0
    assert len({(url, body) for url, body, _ in world.seen}) == 6
    assert len(set(world.arrived)) == 2


HEAVY = {"hushuffle", "numpy", "pydantic", "polars", "asyncio", "argparse", "dataclasses", "email", "pathlib"}


def test_a_phone_needs_nothing_of_hushuffle_and_little_memory(folder: Path, world: Services) -> None:
    """What a phone loads when it starts, and the most memory it has had when it has sent everything."""
    assert world.host
    code = """
import client, json, sys
modules = sorted(sys.modules)
code = client.main(["task.json", "--state", "state", "--answers", "answers.json", "--code-file", "code.txt"])
print(json.dumps([code, modules, open("/proc/self/status").read()]))
"""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env=clean)
    returned, modules, status = json.loads(done.stdout.splitlines()[-1])
    assert returned == 0
    assert not HEAVY & {name.partition(".")[0] for name in modules}
    assert int(status.split("VmHWM:")[1].split()[0]) < 36_000
