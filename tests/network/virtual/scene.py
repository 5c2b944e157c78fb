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
from hushuffle_network.promise import TaskPromise, check_task, draw_task
from hushuffle_network.queries import parse_plan
from hushuffle_network.settings import Role, ServiceKeys, place_of
from hushuffle_network.task import TaskDocument, names_of
from hushuffle_network.tokens import IssuerKey
from network.phone_cases import plan_text, services_at

PEOPLE, COLLECT, PATIENCE, TARGETS = 24, 60.0, 5.0, 3
START: Final = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
ODD: Final = 4
"""The first people, for each of whom there are also the messages of a phone that cheats."""
_SIZES: Final = "dummies = 3\nbatch = {}\nmin_batch = {}\nscramblers = {}"
SCENES: Final = (
    (1, '[["age"]]', "all", _SIZES.format(8, 5, 1)),
    (2, '[["age"]]', "all", _SIZES.format(8, 5, 2)),
    (2, '[["age"], ["sex"]]', "all", _SIZES.format(8, 4, 2)),
    (3, '[["age"]]', "all", _SIZES.format(6, 6, 3)),
    (2, '[["age"], ["sex"]]', "one", _SIZES.format(6, 3, 2)),
    (3, '[["age"]]', "all", _SIZES.format(9, 4, 3)),
    (1, '[["age"]]', "all", "dummies = 3\nbatch = 4\ncapped = true"),
    (1, '[["age"]]', "all", "flood = 0"),
)
"""Services that forward messages, grouping sets, per_person and traffic of each task; the last has no scramblers."""


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
        return COLLECT + 3 * PATIENCE


@cache
def _issuer_keys() -> ServiceKeys:
    return ServiceKeys.generate("issuer", steps=2)


signed: Final = cache(IssuerKey.sign)
"""Returns a blind signature, which depends on key and request only, and takes long."""


@cache
def scene(number: int) -> Scene:
    """Return one of the tasks of `SCENES`."""
    chain, sets, per_person, traffic = SCENES[number]
    counts = [TARGETS] * (1 + ("sex" in sets))
    names = (*names_of(counts, chain), "relay", "issuer")
    roles: dict[str, Role] = {name: name.split("-")[0] for name in names}  # type: ignore[misc]
    keys = {name: _issuer_keys() if role == "issuer" else ServiceKeys.generate(role) for name, role in roles.items()}
    places = {name: place_of(name, f"http://{name}", one.public) for name, one in keys.items()}
    tokens = keys["issuer"].public["tokens"][: 2 * len(counts)]
    plan = parse_plan(plan_text(sets=sets, traffic=traffic, more=f'per_person = "{per_person}"'))
    services = services_at(places, counts, chain, "http://{}".format, tokens)
    document = draw_task(plan, PEOPLE, services, start=START)
    folder = Path(tempfile.mkdtemp(prefix="hushuffle-faults-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "tasks").mkdir()
    (folder / "tasks" / "task.json").write_bytes(document.content)
    for name, one in keys.items():
        (folder / f"{name}.keys").write_text(one.text)
        (folder / f"{name}.keys").chmod(0o600)
    codes = [_secret(person, f"code {number}").hex() for person in range(PEOPLE)]
    public = [formats.Invitation(code).public.hex() for code in codes]
    (folder / "codes.public").write_text("".join(f"ed25519:{one}\n" for one in public))
    new = Scene(document, check_task(document), folder, roles, keys)
    _phones(new, codes)
    return new


def _phones(new: Scene, codes: Sequence[str]) -> None:
    task = client.Task(new.document.content)

    def parts_of(person: int, kind: str = "") -> list[client.Part]:
        answers = {"age": float(person * 7 % 60), "sex": "abc"[person % 3], "pay": float(person + 1)}
        return client.parts_of(task, answers, _secret(person, kind))

    parts = [parts_of(person) for person in range(PEOPLE)]
    for person, own in enumerate(parts):
        new.phones.append([_message(new, task, codes, person, part, part) for part in own])
    for person, own in enumerate(parts[:ODD]):
        # "second": another message with the same ticket. "bare": a message without a token, with a ticket.
        # "copy": the token of another person, with a ticket of its own.
        # "anew": the same person draws new requests for token and ticket.
        anew = parts_of(person, "anew")
        for kind, first, donors in (
            ("anew", anew, anew),
            ("second", own, own),
            ("bare", own, own),
            ("copy", own, parts[person + ODD]),
        ):
            pairs = [(part, donor) for part in first for donor in donors if part.number == donor.number]
            new.odd[kind, person] = [_message(new, task, codes, person, *pair, kind=kind) for pair in pairs]


def _secret(person: int, kind: str) -> bytes:
    return hashlib.sha256(f"{person} {kind}".encode()).digest()


def _message(
    new: Scene,
    task: client.Task,
    codes: Sequence[str],
    person: int,
    part: client.Part,
    donor: client.Part,
    *,
    kind: str = "",
) -> Message:
    """Return the message of a person with the token and the record of `donor`."""
    document, step, secret = new.document, part.number, _secret(person, kind)
    keys = {key.spki: key for key in new.keys["issuer"].tokens}
    requests = []
    for name, blinded in (("token", part.blinded), ("ticket", part.ticket)):
        url = f"http://issuer/tasks/{document.id.hex()}/steps/{step}/{name}"
        shown = formats.Invitation(codes[person]).shown(document.id, step, name, blinded.spki, blinded.request)
        requests.append((url, blinded.request, dict([shown])))
    token, ticket = (one.finalize(signed(keys[one.spki], one.request)) for one in (donor.blinded, part.ticket))
    onion = client.onion_of(task, donor, bytes(len(token)) if kind == "bare" else token, secret)
    sealed, open_response = client.request_of(task, part, onion, ticket, secret)
    layers, onions = [onion], Onions(document, step)
    for hop, place in enumerate(document.chain):
        inside = onions.opened(layers[-1], new.keys[place.name].seal, hop=hop)
        assert inside is not None
        layers.append(inside)
    passed = (*layers[1:-1], without_target(layers[-1]))
    record = None if kind == "bare" else donor.content
    facts = (donor.target, record, tuple(requests), sealed, open_response, passed, donor.entry)
    message = Message(person, step, kind, *facts)
    new.of_layer.update(dict.fromkeys(passed, message))
    return message
