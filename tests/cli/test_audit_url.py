"""`hushuffle audit --url`: a service on this machine, and no other."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit

TRUTH = math.e / (1 + math.e)


class Service(BaseHTTPRequestHandler):
    """Randomized response with epsilon = 1, and what a service may do wrong."""

    asked = 0

    def do_POST(self) -> None:
        type(self).asked += 1
        values = self.rfile.read(int(self.headers["Content-Length"])).decode().split()
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/report")
            self.end_headers()
            return
        told = [value if random.random() < TRUTH else {"yes": "no", "no": "yes"}[value] for value in values]  # noqa: S311
        body = "\n".join(told[:1] if self.path == "/short" else told).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"\xff\xfe" if self.path == "/bytes" else body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def audit(url: str, folder: Path, epsilon: str = "1", trials: str = "40000") -> int:
    rest = ["--values", "yes,no", "--epsilon", epsilon, "--trials", trials, "--out", str(folder)]
    return main(["audit", "--url", url, *rest])


def test_a_service_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as address:
        assert audit(f"{address}/report", tmp_path / "a", epsilon="0.8") == Exit.MISSED
        assert audit(f"{address}/report", tmp_path / "b", epsilon="1.2") == Exit.DONE
    assert "No claim is refuted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/moved", "answered 302, but 200 is needed"),
        ("/short", "got 1 lines for 50 values"),
        ("/bytes", "must be text in UTF-8"),
    ],
)
def test_answers_that_are_none(path: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Service.asked = 0
    with serving() as address:
        assert audit(address + path, tmp_path / "o", trials="100") == Exit.FAILED
    assert message in capsys.readouterr().err
    assert Service.asked == 1
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(("limit", "value", "message"), [("_BYTES", 20, "than 0 MB"), ("_LATE", 0, "than 600 seconds")])
def test_long_and_slow_answers_end(
    limit: str,
    value: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if limit == "_LATE":
        ticks = iter(range(0, 10**6, 700))
        monkeypatch.setattr("hushuffle.cli.audit_url.monotonic", lambda: next(ticks))
    else:
        monkeypatch.setattr(f"hushuffle.cli.audit_url.{limit}", value)
    with serving() as address:
        assert audit(f"{address}/report", tmp_path / "o", trials="100") == Exit.FAILED
    assert message in " ".join(capsys.readouterr().err.split())


def test_nobody_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as address:
        pass
    assert audit(f"{address}/report", tmp_path / "o", trials="100") == Exit.FAILED
    assert "did not answer (ConnectionRefusedError)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1/report",
        "http://example.org/report",
        "http://127.0.0.1.example.org/",
        "http://localhost@192.0.2.1/",
        "http://someone:secret@127.0.0.1/",
        "https://127.0.0.1/report",
        "file:///etc/hosts",
        "http://127.0.0.1:99999/",
        "http://0.0.0.0/",
        "nonsense",
    ],
)
def test_only_this_machine_is_asked(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hushuffle.cli.audit_url.HTTPConnection", lambda *_a, **_k: pytest.fail("it was asked"))
    assert audit(url, tmp_path / "o", trials="100") == Exit.USAGE
    told = capsys.readouterr().err
    assert "must be an http address of this machine" in " ".join(told.split())
    assert "secret" not in told
