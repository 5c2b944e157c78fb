"""Prepare a task for services on several hosts: write its document, the settings, and one folder for each host."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import tomli_w
from pydantic import Field

from hushuffle._checks import fail
from hushuffle.errors import Problem, SpecificationError
from hushuffle.files.causes import failing
from hushuffle.files.private_files import write_private
from hushuffle.files.secret_keys import text_of_secret
from hushuffle.specification._base import File
from hushuffle.specification.reading import parsed, read_text
from hushuffle.specification.wording import Vocabulary
from hushuffle_network.fields import ServiceName, Text
from hushuffle_network.promise import Services, draw_task, questions, together
from hushuffle_network.queries import PlanSpecification
from hushuffle_network.settings import CODES, keys_of_steps, place_of, public_of, role_named
from hushuffle_network.task import Issuer, Place, TaskDocument, names_of

TASK: Final = "task.json"
RELAY, ISSUER, RESULT = "relay", "issuer", "result"
AHEAD: Final = dt.timedelta(minutes=15)
_LISTEN: Final = "127.0.0.1:8080"


class PhoneHosts(File):
    """The services of a task for phones, and their addresses."""

    people: Annotated[int, Field(ge=1)]
    """Expected number of participants."""
    keys: Text
    """Folder with NAME.public.json for every service except the relay; `hushuffle node keys` creates these files."""
    urls: dict[ServiceName, Text]
    """Public URL of each service: relay, issuer, result, scrambler-1, ..., target-1-1, ..."""
    listen: dict[ServiceName, Text] = Field(default_factory=dict)
    """Address on which each service listens; default: 127.0.0.1:8080, behind a proxy on the same host that ends TLS."""
    certificates: Text | None = None
    """Folder with NAME.pem and NAME.key for each service that ends TLS itself."""
    issuer_name: Text | None = None
    """The issuer's name in tokens; by default the host in its URL."""
    first_step: Annotated[int, Field(ge=1)] = 1
    """Number of the first of the issuer's key pairs for this task: every step of every task needs a new key pair."""


@dataclass(frozen=True, kw_only=True)
class PreparedTask:
    document: Path
    id: str
    start: str
    commands: tuple[str, ...]
    promise: tuple[str, ...]
    """The task's guarantee for one person, in sentences."""


def prepare_task(
    specification: PlanSpecification, hosts: Path, *, out: Path, start: dt.datetime | None = None, bundle: bool = False
) -> PreparedTask:
    """Write a task's document and the settings of its services into a new or empty folder; no data are read.

    `start`: the moment from which all times are counted; by default 15 minutes from now. `bundle`: write one
    folder for each service, with the secret keys of this service only; by default all settings are in `out`, no keys.
    """
    words = Vocabulary(sections={"": (PhoneHosts,)}, goes_with={})
    wanted = parsed(read_text(hosts), PhoneHosts, file=str(hosts), words=words)
    steps, chain = questions(specification, wanted.people), specification.traffic.scramblers or 1
    query = specification.query.task()
    task_steps = together(specification, len(steps))
    names = [RELAY, ISSUER, *names_of([query.targets] * task_steps, chain)]
    wrong = sorted({*names} ^ {*wanted.urls})
    if wrong:
        hint = "The services of this plan: " + ", ".join(names)
        problem = Problem(key="urls", rule="must name every service once", value=", ".join(wrong[:5]), hint=hint)
        raise SpecificationError(str(hosts), (problem,))
    keys = hosts.parent / wanted.keys
    services = _services(wanted, keys, task_steps=task_steps, steps=len(steps), targets=query.targets, chain=chain)
    document = draw_task(specification, wanted.people, services, start=start or dt.datetime.now(dt.UTC) + AHEAD)
    with failing(f"{out} cannot be written"):
        if out.exists() and any(out.iterdir()):
            fail(f"{out} exists, and is not empty: give a new folder.")
        out.mkdir(parents=True, exist_ok=True)
        (out / TASK).write_bytes(document.content)
        for name in names:
            listen, gateway = wanted.listen.get(name, _LISTEN), wanted.urls["scrambler-1"]
            tls = None if wanted.certificates is None else hosts.parent / wanted.certificates
            if bundle:
                write_service(out / name, name, document, listen=listen, gateway=gateway, keys=keys, tls=tls)
            else:
                table = settings_of(name, listen=listen, gateway=gateway, tls=tls)
                (out / f"{name}.toml").write_text(tomli_w.dumps(table), encoding="utf-8")
    place = "{0}/{0}.toml" if bundle else "{0}.toml"
    commands = tuple("hushuffle node start " + place.format(name) for name in names)
    number, promise = document.id.hex(), tuple(_promise(document))
    return PreparedTask(document=out / TASK, id=number, start=document.start, commands=commands, promise=promise)


def _promise(document: TaskDocument) -> Iterator[str]:
    """Yield the sentences of a task's guarantee, and warn of steps in which one invalid message costs a batch."""
    figures = document.figures
    at, words = f"at delta = {figures.delta:g}", "one scrambler of the chain is honest"
    if figures.epsilon is None:
        yield "The task states no epsilon, so phones refuse the task."
    else:
        yield f"Epsilon for one person: at most {figures.epsilon:g} {at}, where {words}."
    if figures.issuer is not None:
        yield f"If the issuer invents people: at most {figures.issuer:g} {at}, where {words}."
    for step in document.steps:
        if step.min_batch == step.batch > 1:
            yield (
                f"Warning: a batch of {step.name!r} needs all of its {step.batch:,} people (min_batch), so one invalid "
                "message costs the batch. Choose a smaller min_batch."
            )


def settings_of(name: str, *, listen: str, gateway: str, tls: Path | None = None) -> dict[str, Any]:
    """Return the settings of a service beside its tasks and keys; it ends TLS if `tls` has its certificate."""
    role = RELAY if name == RELAY else role_named(name)
    table: dict[str, Any] = {"role": role, "name": name, "listen": listen}
    if tls is not None and (tls / f"{name}.pem").exists():
        table |= {"certificate": f"{name}.pem", "certificate_key": f"{name}.key"}
    if role == RELAY:
        return table | {"gateway": gateway}
    more = {"codes": CODES} if role == ISSUER else {}
    return table | {"keys": f"{name}.keys"} | more


def write_service(
    folder: Path,
    name: str,
    document: TaskDocument,
    *,
    listen: str,
    gateway: str,
    keys: Path | None = None,
    tls: Path | None = None,
) -> Path:
    """Write the folder of one service, with copies of this service's files only; return the path of its settings.

    `keys`: a folder with NAME.keys and, for the issuer, codes.public. `tls`: a folder with NAME.pem and NAME.key.
    """
    (folder / "tasks").mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    (folder / "tasks" / TASK).write_bytes(document.content)
    path = folder / f"{name}.toml"
    path.write_text(tomli_w.dumps(settings_of(name, listen=listen, gateway=gateway, tls=tls)), encoding="utf-8")
    if tls is not None and (tls / f"{name}.pem").exists():
        shutil.copyfile(tls / f"{name}.pem", folder / f"{name}.pem")
        if (tls / f"{name}.key").exists():
            write_private(folder / f"{name}.key", text_of_secret(str(tls / f"{name}.key")).encode())
    if keys is not None and (keys / f"{name}.keys").exists():
        write_private(folder / f"{name}.keys", text_of_secret(str(keys / f"{name}.keys")).encode())
    if keys is not None and name == ISSUER and (keys / CODES).exists():
        shutil.copyfile(keys / CODES, folder / CODES)
    return path


def _services(wanted: PhoneHosts, keys: Path, *, task_steps: int, steps: int, targets: int, chain: int) -> Services:
    public = {name: public_of(keys, name) for name in wanted.urls if name != RELAY}

    def place(name: str) -> Place:
        return place_of(name, wanted.urls[name], public[name])

    issuer, first = wanted.issuer_name or urlsplit(wanted.urls[ISSUER]).hostname or ISSUER, wanted.first_step - 1
    tokens = keys_of_steps(public[ISSUER].get("tokens", ()), first, steps)
    if len(tokens) < steps:
        fail(
            f"the issuer has keys for {len(tokens)} steps from number {first + 1} on, but this task takes {steps}. "
            "Create its keys with a larger `--steps`."
        )
    return Services(
        relay=wanted.urls[RELAY],
        chain=tuple(place(f"scrambler-{number}") for number in range(1, chain + 1)),
        targets=tuple(
            tuple(place(f"target-{step}-{one}") for one in range(1, targets + 1)) for step in range(1, task_steps + 1)
        ),
        result=place(RESULT),
        issuer=Issuer(name=issuer, url=wanted.urls[ISSUER]),
        token_keys=tokens,
    )
