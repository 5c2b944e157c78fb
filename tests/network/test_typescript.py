"""The client in TypeScript, in a browser: same vectors, and what it sends is opened by the services here."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from browser import CHROMIUM
from hushuffle_network import client
from hushuffle_network.choices import group_of, point_of, record_of
from hushuffle_network.client import Task, parts_of
from hushuffle_network.formats import receiver_keys, request_info
from hushuffle_network.limits import local_epsilon
from hushuffle_network.tokens import IssuerKey
from network.tasks import services
from network.test_choices import GROUPS
from network.test_client import ANSWERS
from network.test_phone_rounds import chain
from network.vectors import published

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
VECTORS = Path(__file__).parents[2] / "docs" / "phone-vectors.json"
NPM = CLIENT / "node_modules" / ".bin"
KEY = IssuerKey.of(bytes.fromhex(published("tokens")["skS"]))
TOO_LITTLE = {
    "above max_epsilon = 0.5": {"max_epsilon": 0.5},
    "above max_delta = 1e-7": {"max_delta": 1e-7},
    "a batch may have 40 people": {"min_batch": 41},
    "with the issuer colluding": {"max_epsilon_with": {"issuer": 1.5}},
    "with the scramblers colluding": {"max_epsilon_with": {"scramblers": 3.4}},
    "no scrambler of the task is in the limit `scramblers`": {"scramblers": ["00" * 32]},
    "not in the limit `collectors`": {"collectors": []},
    "not in the limit `issuers`": {"issuers": ["00" * 32]},
    "the limits have invalid names or values: colectors": {"colectors": []},
    "the limits have invalid names or values: budget": {"budget": "3"},
    "max_epsilon_with.targets": {"max_epsilon_with": {"targets": 1}},
}
GIVEN = [17.9, 18, 64, 65, 99, -1, "no answer", "18", None, True, 0.5, "other", [18]]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("node") is None, reason="needs Node"),
    pytest.mark.skipif(not NPM.is_dir(), reason="needs `npm install` in clients/typescript"),
]


def _given() -> dict[str, Any]:
    """Return the vectors, and what follows from their secrets."""
    read: dict[str, Any] = json.loads(VECTORS.read_text("ascii"))
    task, gateway = Task(read["task"].encode()), bytes.fromhex(read["keys"]["scrambler-1"])
    parts = parts_of(task, read["answers"], bytes.fromhex(read["secret"]))
    secrets, records = [], []
    for step in read["steps"]:
        request = bytes.fromhex(step["request"])
        keys = receiver_keys(gateway, request[7:39], request_info(request[:7]))
        secrets.append(keys.export(b"message/bhttp response", 32).hex())
        found = record_of(task.document, task.steps[step["step"] - 1], read["answers"])
        assert found is not None
        records.append([found[1].hex(), found[0]])
    inverses = [part.blinded.inverse.to_bytes(256).hex() for part in parts]
    groups = [[answer, group_of(GROUPS, answer)] for answer in GIVEN]
    refused = [[limits, why] for why, limits in TOO_LITTLE.items()]
    read["made"] = {"groups": groups, "records": records, "inverses": inverses, "secrets": secrets, "column": GROUPS}
    read["made"] |= {"points": list(_points()), "runs": [one.content.decode() for one in chain()]}
    read["made"] |= {"local": local_epsilon(task.document), "refused": refused}
    return read


def _points() -> Iterator[list[Any]]:
    """Yield what an iteration says, its values, a point, and what Python makes of it."""
    values = [{"name": "x", "low": 0.0, "high": 10.0}, {"name": "y", "low": -1.0, "high": 1.0}]
    centroids = {"number": 1, "rounds": 1, "centroids": [[0.5, 0.5], [-0.25, 0.5], [0.0, -1.0]]}
    for more in ({"scaled": False}, {"scaled": True}, {"scaled": True, "norm": "laplace", "radius": 2.0}):
        for answers in ({"x": 0, "y": -1.0}, {"x": 0.5, "y": 0.25}, {"x": 99, "y": 9.0}, {"x": None, "y": 0}):
            found = point_of({"round": centroids | more, "values": values}, answers)
            yield [centroids | more, values, answers, found and [found[0], found[1].hex()]]


def test_types_agree() -> None:
    done = subprocess.run([str(NPM / "tsc"), "--noEmit"], cwd=CLIENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_in_a_browser(tmp_path: Path) -> None:
    page = tmp_path / "page.js"
    bundle = [
        str(NPM / "esbuild"),
        "test/page.ts",
        "--bundle",
        "--format=iife",
        f"--outfile={page}",
        "--log-level=error",
    ]
    subprocess.run(bundle, cwd=CLIENT, check=True)
    world, told, done = services(KEY), dict[str, Any](), threading.Event()
    world.answers = [503, 503, 503]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages = {
                "/": ("text/html", b"<!DOCTYPE html><title>phone</title><script src='/page.js'></script>"),
                "/page.js": ("text/javascript", page.read_bytes()),
                "/vectors.json": ("application/json", json.dumps(_given()).encode()),
                "/task.json": ("application/json", world.content),
                "/late.json": ("application/json", world.content.replace(b"/issuer/", b"/late/")),
            }
            if self.path in pages:
                self._answer(200, *pages[self.path])
            elif "/passage" in self.path:
                self._answer(*self._passed(None))
            else:
                self._answer(404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/done":
                told.update(json.loads(body))
                self._answer(200)
                done.set()
            elif self.path.startswith("/late/"):
                self._trickle()
            else:
                self._answer(*self._passed(body))

        def _trickle(self) -> None:
            self.send_response(200)
            self.send_header("content-length", "256")
            self.end_headers()
            with suppress(OSError):
                for _ in range(256):
                    self.wfile.write(b".")
                    time.sleep(0.05)

        def _passed(self, body: bytes | None) -> tuple[int, str, bytes]:
            headers = {name.lower(): value for name, value in self.headers.items()}
            assert "cookie" not in headers
            assert "referer" not in headers
            status, content = world.send(world.host + self.path, body, headers)
            return status, "application/octet-stream", content

        def _answer(self, status: int, kind: str = "text/plain", content: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    world.host = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [str(CHROMIUM), *flags, f"--user-data-dir={tmp_path / 'profile'}", f"{world.host}/"]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert done.wait(120)
    finally:
        browser.terminate()
        browser.wait(30)
        server.shutdown()
        server.server_close()
        thread.join()
    assert told["wrong"] == []
    _check(world, told["found"])


def _check(world: Any, found: Any) -> None:
    """All of 13 phones arrived; what a phone sent more than once was the same; all have one size, that of Python's."""
    posts = [body for url, body, _ in world.seen if url.endswith("/ohttp")]
    part = parts_of(world.task, ANSWERS, bytes(32))[0]
    request, _ = client.request_of(world.task, part, bytes(1024), bytes(354), bytes(32))
    assert {len(body) for body in posts} == {len(request)}
    assert (len(posts), len(set(posts))) == (3 + 2 + 2 + 24, 26)
    assert len({nonce for _, _, nonce, _ in world.arrived}) == 26
    assert found["passed"] == [[1, True], [2, True]]
    first = [(step, target, None if record is None else record.hex()) for step, target, _, record in world.arrived[:2]]
    assert [tuple(one) for one in found["parts"]] == first
    records = {record for step, _, _, record in world.arrived if step == 1}
    assert None in records
    assert len(records) > 2
