"""Small tasks with their services' keys, and every byte that their phones send: computed once, used by many seeds."""

from __future__ import annotations

import atexit
import datetime as dt
import hashlib
import shutil
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from hushuffle_network import client, formats
from hushuffle_network.batches import Onions, without_target
from hushuffle_network.promise import Services, TaskPromise, check_task, draw_task
from hushuffle_network.queries import parse_plan
from hushuffle_network.settings import Role, ServiceKeys, keys_of_steps, place_of
from hushuffle_network.task import Issuer, TaskDocument, names_of
from hushuffle_network.tokens import IssuerKey

PEOPLE, COLLECT, PATIENCE = 24, 60.0, 10.0
START: Final = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
TARGETS: Final = 3
ODD: Final = 4
"""The first people, for each of whom there are also the messages of a phone that cheats."""
SCENES: Final = (
    (1, 1, "all", 8, 5),
    (2, 1, "all", 8, 5),
    (2, 2, "all", 8, 4),
    (3, 1, "all", 6, 6),
    (2, 2, "one", 6, 3),
    (3, 1, "all", 9, 4),
)
"""Scramblers, steps, per_person, batch and min_batch of each task."""
_SETS: Final = ('["age"]', '["sex"]')


def _plan(chain: int, steps: int, per_person: str, batch: int, least: int) -> str:
    return f"""
[query]
kind = "aggregate"
generated = {{ people = {PEOPLE} }}
columns = {{ age = {{ low = 0, high = 60, intervals = 6 }}, sex = ["a", "b", "c"] }}
grouping_sets = [{", ".join(_SETS[:steps])}]
values = ["pay"]
ranges = {{ pay = [0, 100] }}
functions = ["count", "sum"]
partitions = {TARGETS}
per_person = "{per_person}"
[traffic]
sigma = 0.3
dummies = 3
batch = {batch}
min_batch = {least}
scramblers = {chain}
[targets]
delta = 1e-6
[network]
collect = {COLLECT}
patience = {PATIENCE}
least = 0.5
"""


@dataclass(frozen=True, eq=False)
class Message:
    """One message of a person, with the requests that precede it; `kind`: "" or how the phone cheats with it.

    `layers[h]` is the message as scrambler h + 1 forwards it. `entry` is published by the message's target.
    """

    person: int
    step: int
    kind: str
    target: int
    record: bytes | None
    requests: tuple[tuple[str, bytes, dict[str, str]], ...]
    sealed: bytes
    open: Callable[[bytes], bytes]
    layers: tuple[bytes, ...]
    entry: bytes

    @property
    def group(self) -> tuple[int, float]:
        """The group number and the value in the record, of one column and one value."""
        assert self.record is not None
        group, value = struct.unpack("<id", self.record)
        return group, value


@dataclass(frozen=True, eq=False)
class Scene:
    """A task; `phones[person]` are the messages of its honest phone, `odd[kind, person]` those of one that cheats."""

    document: TaskDocument
    promise: TaskPromise
    folder: Path
    roles: dict[str, Role]
    keys: dict[str, ServiceKeys]
    phones: list[list[Message]] = field(default_factory=list)
    odd: dict[tuple[str, int], list[Message]] = field(default_factory=dict)
    of_layer: dict[bytes, Message] = field(default_factory=dict)
    """Every message by its bytes after each scrambler."""

    @property
    def end(self) -> float:
        """Seconds of virtual time at which the task ends."""
        return COLLECT + 3 * self.document.patience


@cache
def _issuer_keys() -> ServiceKeys:
    return ServiceKeys.generate("issuer", steps=2)


@cache
def signed(key: IssuerKey, request: bytes) -> bytes:
    """Return a blind signature, which depends on key and request only, and takes long."""
    return _sign(key, request)


_sign: Final = IssuerKey.sign


@cache
def scene(number: int) -> Scene:
    """Return one of the tasks of `SCENES`."""
    chain, steps, per_person, batch, least = SCENES[number]
    roles: dict[str, Role] = {}
    for name in (*names_of([TARGETS] * steps, chain), "relay", "issuer"):
        roles[name] = name.split("-")[0]  # type: ignore[assignment]
    keys = {name: _issuer_keys() if role == "issuer" else ServiceKeys.generate(role) for name, role in roles.items()}
    places = {name: place_of(name, f"http://{name}", one.public) for name, one in keys.items()}
    targets = [
        tuple(places[f"target-{step}-{place}"] for place in range(1, TARGETS + 1)) for step in range(1, steps + 1)
    ]
    services = Services(
        relay="http://relay/",
        chain=tuple(places[f"scrambler-{place}"] for place in range(1, chain + 1)),
        targets=tuple(targets),
        result=places["result"],
        issuer=Issuer(name="issuer.example", url="http://issuer"),
        token_keys=keys_of_steps(keys["issuer"].public["tokens"], 0, steps),
    )
    text = _plan(chain, steps, per_person, batch, least)
    document = draw_task(parse_plan(text), PEOPLE, services, start=START)
    folder = Path(tempfile.mkdtemp(prefix="hushuffle-faults-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "tasks").mkdir()
    (folder / "tasks" / "task.json").write_bytes(document.content)
    for name, one in keys.items():
        (folder / f"{name}.keys").write_text(one.text)
        (folder / f"{name}.keys").chmod(0o600)
    codes = [hashlib.sha256(f"{number} {person}".encode()).hexdigest() for person in range(PEOPLE)]
    public = [formats.Invitation(code).public.hex() for code in codes]
    (folder / "codes.public").write_text("".join(f"ed25519:{one}\n" for one in public))
    new = Scene(document, check_task(document), folder, roles, keys)
    _phones(new, codes)
    return new


def _answers_of(person: int) -> client.Answers:
    return {"age": float(person * 7 % 60), "sex": "abc"[person % 3], "pay": float(person + 1)}


def _phones(new: Scene, codes: Sequence[str]) -> None:
    task = client.Task(new.document.content)
    parts: list[list[client.Part]] = []
    for person in range(PEOPLE):
        parts.append(client.parts_of(task, _answers_of(person), _secret(person)))
        new.phones.append([_message(new, task, codes, person, part) for part in parts[person]])
    for person in range(ODD):
        own, other = parts[person], parts[person + ODD]
        # "second": another message with the same ticket. "bare": a message without a token, with a ticket.
        # "copy": the token of another person, with a ticket of its own.
        # "anew": the same person draws new requests for token and ticket.
        anew = client.parts_of(task, _answers_of(person), _secret(person, "anew"))
        new.odd["anew", person] = [_message(new, task, codes, person, part, kind="anew") for part in anew]
        for kind, donors in (("second", own), ("bare", own), ("copy", other)):
            pairs = [(part, donor) for part in own for donor in donors if part.number == donor.number]
            new.odd[kind, person] = [_message(new, task, codes, person, *pair, kind=kind) for pair in pairs]


def _secret(person: int, kind: str = "") -> bytes:
    return hashlib.sha256(f"{person} {kind}".encode()).digest()


def _message(
    new: Scene,
    task: client.Task,
    codes: Sequence[str],
    person: int,
    part: client.Part,
    donor: client.Part | None = None,
    *,
    kind: str = "",
) -> Message:
    """Return the message of a person with the token and the record of `donor`, by default the person's own."""
    document, step, secret = new.document, part.number, _secret(person, kind)
    donor = part if donor is None else donor
    keys = {base: key for key in new.keys["issuer"].tokens for base in [key.spki]}
    requests = []
    for name, blinded in (("token", part.blinded), ("ticket", part.ticket)):
        url = f"http://issuer/tasks/{document.id.hex()}/steps/{step}/{name}"
        shown = formats.Invitation(codes[person]).shown(document.id, step, name, blinded.spki, blinded.request)
        requests.append((url, blinded.request, dict([shown])))
    token = donor.blinded.finalize(signed(keys[donor.blinded.spki], donor.blinded.request))
    ticket = part.ticket.finalize(signed(keys[part.ticket.spki], part.ticket.request))
    onion = client.onion_of(task, donor, bytes(len(token)) if kind == "bare" else token, secret)
    sealed, open_response = client.request_of(task, part, onion, ticket, secret)
    layers, onions = [onion], Onions(document, step)
    for hop, place in enumerate(document.chain):
        inside = onions.opened(layers[-1], new.keys[place.name].seal, hop=hop)
        assert inside is not None
        layers.append(inside)
    layers = [*layers[1:-1], without_target(layers[-1])]
    message = Message(
        person=person,
        step=step,
        kind=kind,
        target=donor.target,
        record=None if kind == "bare" else donor.content,
        requests=tuple(requests),
        sealed=sealed,
        open=open_response,
        layers=tuple(layers),
        entry=donor.entry,
    )
    new.of_layer.update(dict.fromkeys(layers, message))
    return message
