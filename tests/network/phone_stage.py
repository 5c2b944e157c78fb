"""All services of a small task in one event loop, over HTTP on the loopback interface; and phones."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self, TextIO

import numpy as np
from aiohttp import ClientSession

from hushuffle.randomness import reproducible
from hushuffle_network.crowd import Phones, Sending, sendings
from hushuffle_network.formats import Invitation
from hushuffle_network.issuer import write_codes
from hushuffle_network.meter import Meter
from hushuffle_network.promise import TaskPromise, check_task, draw_task, together
from hushuffle_network.queries import parse_plan
from hushuffle_network.queries.query import Records
from hushuffle_network.serve import SERVICES, serving
from hushuffle_network.service import Service
from hushuffle_network.settings import Role, ServiceKeys, ServiceSettings, place_of
from hushuffle_network.task import TaskDocument, names_of
from network.phone_cases import plan_text, services_at

MADE: dict[tuple[Role, int], list[ServiceKeys]] = {}


def keys_of(role: Role, number: int, steps: int) -> ServiceKeys:
    """Return keys, made once for all tests: those of issuers take long."""
    made = MADE.setdefault((role, steps), [])
    while len(made) <= number:
        made.append(ServiceKeys.generate(role, steps=steps))
    return made[number]


class PhoneStage:
    """The services of a task; each is started and stopped when a test says so."""

    def __init__(self, folder: Path, text: str | None = None, *, people: int = 24, chain: int = 2) -> None:
        self.folder, self.specification = folder, parse_plan(text or plan_text())
        self.records: Records = self.specification.query.records(Path())
        query = self.specification.query
        plan = self.specification.plan(people)
        clusters = [one for one in plan.clusters if one.reads]
        targets = [cluster.targets for cluster in clusters][: together(self.specification, len(clusters))]
        start = None if self.records.start is None else self.records.start.tolist()
        self.sockets: dict[str, socket.socket] = {}
        self.keys: dict[str, ServiceKeys] = {}
        self.roles: dict[str, Role] = {}
        steps = len(clusters)
        for number, name in enumerate([*names_of(targets, chain), "relay", "issuer"]):
            self.roles[name] = name.split("-")[0]  # type: ignore[assignment]
            self.sockets[name] = socket.create_server(("127.0.0.1", 0))
            self.keys[name] = keys_of(self.roles[name], number, steps)
        places = {name: place_of(name, self.url(name), keys.public) for name, keys in self.keys.items()}
        services = services_at(places, targets, chain, self.url, self.keys["issuer"].public["tokens"])
        moment = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
        self.document: TaskDocument = draw_task(self.specification, people, services, start=moment, centroids=start)
        self.promise: TaskPromise = check_task(self.document)
        (folder / "tasks").mkdir()
        (folder / "tasks" / "task.json").write_bytes(self.document.content)
        write_codes(people, folder)
        self.codes = (folder / "codes.txt").read_text().split()
        self.rng = reproducible(1)
        self.asked = dict(enumerate(query.asked(plan, people, self.rng)[: len(targets)], 1))
        self.out: TextIO | None = None
        self.connections = 4096
        self.settings: dict[str, dict[str, Any]] = {}
        self.running: dict[str, AsyncExitStack] = {}
        self.services: dict[str, Service] = {}
        self.meters: dict[str, Meter] = {}

    def url(self, name: str) -> str:
        """Return where a service is."""
        return f"http://127.0.0.1:{self.sockets[name].getsockname()[1]}"

    async def start(self, *names: str) -> None:
        """Start services; a second time from what they kept."""
        for name in names:
            role = self.roles[name]
            (self.folder / f"{name}.keys").write_text(self.keys[name].text)
            (self.folder / f"{name}.keys").chmod(0o600)
            more: dict[str, Any] = {"connections": self.connections}
            if role == "relay":
                more |= {"gateway": self.url("scrambler-1"), "keys": None}
            if role == "issuer":
                more |= {"codes": "codes.public"}
            about = {"role": role, "name": name, "listen": "fd:0", "keys": f"{name}.keys"}
            settings = ServiceSettings(**about | more | self.settings.get(name, {}))
            self.meters[name] = meter = Meter(role, service=name, out=self.out)
            service = SERVICES[role](settings, self.folder, meter=meter)
            stack = AsyncExitStack()
            await stack.enter_async_context(serving(service, self.sockets[name].dup()))
            self.running[name], self.services[name] = stack, service

    async def stop(self, *names: str) -> None:
        """Stop services."""
        for name in names:
            await self.running.pop(name).aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop(*list(self.running))
        for one in self.sockets.values():
            one.close()

    async def start_all(self, *but: str) -> None:
        """Start all services but some."""
        await self.start(*(name for name in self.roles if name not in but))

    def proof(self, body: bytes, *, person: int = 0, step: int = 1, kind: str = "token") -> dict[str, str]:
        """Return the header with which a person shows an invitation to the issuer."""
        return shown(self.document, self.codes[person], body, step=step, kind=kind)

    def sendings(self) -> list[Sending]:
        """Return what all phones send."""
        return sendings(self.document, self.promise, self.records.rows, self.asked, self.codes, self.rng)

    def phones(self) -> Phones:
        """Return phones that have sent nothing yet."""
        return Phones(self.document, together=8)

    async def result(self, seconds: float = 90.0, *, of: bytes | None = None) -> dict[str, Any]:
        """Wait for the result, and return it; `of`: another task's id."""
        url = f"{self.url('result')}/tasks/{(of or self.document.id).hex()}/result"
        async with asyncio.timeout(seconds), ClientSession() as session:
            while True:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return dict(json.loads(await answer.read()))
                await asyncio.sleep(0.02)

    def used(self, all_of_them: list[Sending]) -> dict[int, np.ndarray[Any, Any]]:
        """Return by step what the merged records of messages that carry data come to, computed by the query alone."""
        found = {}
        for number in self.asked:
            records = [one.record for one in all_of_them if one.step == number and one.record is not None]
            task = self.promise.task
            found[number] = task.merge(number, task.empty(number), records, [True] * len(records))
        return found


def shown(document: TaskDocument, code: str, body: bytes, *, step: int = 1, kind: str = "token") -> dict[str, str]:
    """Return the header with which a phone shows that it has a code."""
    spki = document.token_key(step) if kind == "token" else document.ticket_key(step)
    return dict([Invitation(code).shown(document.id, step, kind, spki, body)])
