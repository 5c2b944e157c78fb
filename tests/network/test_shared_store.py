"""Several issuers over one PostgreSQL database: a code that one has written down is used for all."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from hushuffle.errors import DataError, MissingDependencyError
from hushuffle_network.formats import blind, token_challenge
from hushuffle_network.issuer import Issuer
from hushuffle_network.meter import Meter
from hushuffle_network.serve import serving
from hushuffle_network.settings import ServiceSettings
from hushuffle_network.store import SharedStore
from network.phone_stage import PhoneStage

BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(BINARIES is None, reason="needs a PostgreSQL server")


class Server:
    """A server of its own, over a socket in a folder; it does not run as root."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._as = folder, ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        self.url = f"postgresql:///postgres?host={folder}&user=postgres"

    def run(self, program: str, *words: str) -> None:
        """Run one of its programs."""
        assert BINARIES is not None
        command = [*self._as, str(BINARIES / program), "-D", str(self.folder / "data"), *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", f"-k {self.folder} -h ''", "start")


@pytest.fixture
def server() -> Iterator[Server]:
    folder = Path(f"/tmp/hushuffle-pg-{os.getpid()}")  # noqa: S108 - a socket's path must be short
    folder.mkdir(mode=0o700)
    made = Server(folder)
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    made.run("initdb", "-U", "postgres", "-A", "trust", "--no-sync")
    made.start()
    yield made
    made.run("pg_ctl", "-m", "immediate", "stop")
    shutil.rmtree(folder)


def run_in_pairs(stage: PhoneStage, url: str, work: Any) -> None:
    async def run() -> None:
        async with stage:
            await stage.start("issuer")  # writes the files; its own state is not used below
            await stage.stop("issuer")
            settings = ServiceSettings(
                role="issuer", name="issuer", listen="fd:0", keys="issuer.keys", codes="codes.public", database=url
            )
            first, second = (Issuer(settings, stage.folder, meter=Meter("issuer", service="issuer")) for _ in range(2))
            held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
            ports = [one.getsockname()[1] for one in held]
            async with serving(first, held[0]), serving(second, held[1]), ClientSession() as session:
                await work(session, ports, (first, second))

    asyncio.run(run())


async def ask(session: ClientSession, stage: PhoneStage, port: int, body: bytes, *, kind: str = "token") -> Any:
    url = f"http://127.0.0.1:{port}/tasks/{stage.document.id.hex()}/steps/1/{kind}"
    async with session.post(url, data=body, headers=stage.proof(body, kind=kind)) as answer:
        return answer.status, await answer.read()


def requests_of(stage: PhoneStage, count: int) -> list[bytes]:
    challenge = token_challenge("issuer.example", bytes(32), "")
    return [blind(stage.document.token_key(1), challenge).request for _ in range(count)]


def test_a_code_is_used_once_by_all_processes(server: Server, tmp_path: Path) -> None:
    stage = PhoneStage(tmp_path)

    async def work(session: ClientSession, ports: list[int], issuers: tuple[Issuer, Issuer]) -> None:
        bodies = requests_of(stage, 12)
        answers = await asyncio.gather(*(ask(session, stage, ports[at % 2], one) for at, one in enumerate(bodies)))
        assert sorted(status for status, _ in answers) == [200, *[403] * 11]
        (won,) = (at for at, (status, _) in enumerate(answers) if status == 200)
        for port in ports:
            assert await ask(session, stage, port, bodies[won]) == answers[won]
        issuer = issuers[0]
        await issuer.store.forget(stage.document.id)
        assert await issuers[1].store.over() == {stage.document.id}
        count = "SELECT count(*) FROM issued"
        assert await issuers[1].store.do(lambda db: db.execute(count).fetchone()) == (0,)

    run_in_pairs(stage, server.url, work)
    with pytest.raises(DataError, match="for another service than other"):
        SharedStore(server.url, service="other")


def test_a_server_that_is_started_again_is_reached_again(server: Server, tmp_path: Path) -> None:
    stage = PhoneStage(tmp_path)

    async def work(session: ClientSession, ports: list[int], _: tuple[Issuer, Issuer]) -> None:
        first, second = requests_of(stage, 2)
        assert (await ask(session, stage, ports[0], first))[0] == 200
        await asyncio.to_thread(server.run, "pg_ctl", "-m", "immediate", "stop")
        assert [await ask(session, stage, port, first) for port in ports for _ in range(2)] == [(503, b"busy\n")] * 4
        await asyncio.to_thread(server.start)
        assert (await ask(session, stage, ports[0], first))[0] == 200
        assert (await ask(session, stage, ports[1], second))[0] == 403  # it was on the disk

    run_in_pairs(stage, server.url, work)


def test_what_is_refused_shows_nothing_of_the_address(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "postgresql://user:sekret@127.0.0.1:1/none")
    with pytest.raises(DataError, match="cannot be reached") as caught:
        SharedStore("env:WHERE", service="issuer")
    assert "sekret" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r"hushuffle\[postgresql\]"):
        SharedStore(server.url, service="issuer")
