"""What services delete when a task is over, when, and what stays."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from hushuffle_network import service as services
from hushuffle_network.formats import Invitation, name_in
from hushuffle_network.service import Service
from hushuffle_network.store import TABLES
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage

PEOPLE = 16
PLAN = plan_text(sets='[["sex"]]').replace("people = 24", f"people = {PEOPLE}")


async def forget(stage: PhoneStage, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let all services forget the task now; return for which moments they have waited."""
    moments: list[float] = []

    async def until(moment: float) -> None:
        moments.append(moment)

    with monkeypatch.context() as patched:
        patched.setattr(services, "until", until)
        for one in stage.services.values():
            await one._forget(one.tasks[stage.document.id])
    return moments


async def rows(service: Service) -> dict[str, int]:
    """Return how many rows each table has."""

    def count(db: Any) -> dict[str, int]:
        return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in (*TABLES, "over")}  # noqa: S608

    return {name: number for name, number in (await service.store.do(count)).items() if number}


def test_after_a_task_nothing_is_left_but_its_result_and_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start_all()
            phones, document = stage.phones(), stage.document
            await phones.send(stage.sendings())
            result = await stage.result()
            used = {name: await rows(one) for name, one in stage.services.items()}
            assert set().union(*used.values()) >= {"taken", "spent", "issued", "came", "merged", "passage", "part"}
            nonces = [one for many in phones.crowd.nonces.values() for one in many]
            secret = [*nonces, *(name_in(document.id, Invitation(one).public) for one in stage.codes)]
            assert any(_holds(tmp_path, one) for one in secret)

            moments = await forget(stage, monkeypatch)
            assert set(moments) == {document.deadline + 3 * document.patience + 7 * 86_400}
            for name, one in stage.services.items():
                assert await rows(one) == ({"over": 1, "published": 1} if name == "result" else {"over": 1})
                assert _in_memory(one, document.id) == []
            assert not any(_holds(tmp_path, one) for one in secret)
            names = list(stage.running)
            await stage.stop(*names)
            await stage.start(*names)  # the document is in their folder still
            assert all(one.tasks == {} for one in stage.services.values())
            await stage.services["scrambler-1"].again()
            assert stage.services["scrambler-1"].tasks == {}
            task = f"/tasks/{document.id.hex()}"
            async with ClientSession() as session:
                for name, path in (
                    ("scrambler-2", "/batches"),
                    ("target-1-1", "/batches"),
                    ("result", "/parts"),
                    ("issuer", "/steps/1/token"),
                ):
                    async with session.post(stage.url(name) + task + path, data=b"") as answer:
                        assert (answer.status, await answer.text()) == (410, "over\n")
            assert await stage.result() == result

    asyncio.run(run())


def _holds(folder: Path, secret: bytes) -> bool:
    return any(secret in path.read_bytes() for path in (folder / "state").iterdir())


def _in_memory(service: Service, task: bytes) -> list[str]:
    """Return which of its tables in memory still have something of a task."""
    held = {name: [*value] for name, value in vars(service).items() if isinstance(value, dict)}
    return [name for name, keys in held.items() if any(task in (key, key[0]) for key in keys)]


def test_how_long_is_kept_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            stage.settings["relay"] = {"keep": 60}
            await stage.start("relay", "target-1-1")
            moments = await forget(stage, monkeypatch)
            assert moments[1] - moments[0] == 7 * 86_400 - 60

    asyncio.run(run())


def test_a_task_that_is_not_over_stays_when_another_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path, PLAN, people=PEOPLE) as stage:
            await stage.start("result")
            store, other = stage.services["result"].store, bytes(32)
            for task in (other, stage.document.id):
                await store.do(
                    lambda db, task=task: db.execute(  # type: ignore[misc]
                        "INSERT INTO part VALUES (?, 'counts', 'a', ?)", (task, b"b")
                    )
                )
            await forget(stage, monkeypatch)
            assert await store.do(lambda db: db.execute("SELECT task FROM part").fetchall()) == [(other,)]

    asyncio.run(run())
