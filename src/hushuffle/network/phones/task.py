"""`TaskDocument`: what phones and services of a task have in common, public, of one size for any number of people."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import secrets
import struct
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NoReturn, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hushuffle._checks import fail
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.files.causes import cause
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.mechanisms.randomizers.target_sampling import Convention
from hushuffle.network.phones.formats import authorization, encode_request, key_config, token_challenge

MOST: Final = 20_000
"""Bytes of a document, at most."""
SEAL: Final = 48
"""Bytes that each seal of a message adds: a one-time public key and a tag."""
TOKEN: Final = 354
"""Bytes of a token of type 2 (RFC 9578)."""
_NUMBER: Final = struct.Struct(">H")

Name = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9-]*$")]
Url = Annotated[
    str, Field(min_length=8, max_length=200, pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?$")
]
Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Base64 = Annotated[str, Field(min_length=4, max_length=1000, pattern=r"^[A-Za-z0-9+/]+={0,2}$")]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Clause = tuple[Literal["==", "!=", "<", "<=", ">", ">="], float | str]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Place(_Part):
    """A service: where it is, the public key that others seal for (X25519), and the one it signs with (Ed25519)."""

    name: Name
    url: Url
    key: Key
    sign: Key


class Issuer(_Part):
    """Who signs tokens."""

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[a-z0-9.-]+$")]
    url: Url


class Group(_Part):
    """One group of a column: an answer is in it if all comparisons of one of the lists hold."""

    name: str
    when: Annotated[tuple[tuple[Clause, ...], ...], Field(min_length=1)]


class Column(_Part):
    """A grouping column and its groups, in the order of their numbers."""

    name: str
    groups: Annotated[tuple[Group, ...], Field(min_length=2)]


class Value(_Part):
    """A column of numbers; an answer outside of its public range is moved to its end."""

    name: str
    low: float | None = None
    high: float | None = None


class Round(_Part):
    """Which iteration of a query that asks everybody several times a task is; each is a task of its own.

    What the query does and what hides it is the same in all of them: only the centroids, made from the result of the
    iteration before, and the keys of tokens are others.
    """

    number: Annotated[int, Field(ge=1)]
    rounds: Annotated[int, Field(ge=1)]
    """How many there are in all: the figures are for so many."""
    run: Key | None = None
    """The id of the first one; left out in the first."""
    former: Key | None = None
    """The id of the one before; left out in the first."""
    centroids: Annotated[tuple[tuple[Finite, ...], ...], Field(min_length=2)]
    """A point goes to the target of its nearest one."""
    scaled: bool
    """Whether the public ranges of values become -1 and 1."""
    norm: Literal["gaussian", "laplace"] | None = None
    """Where centroids have noise, points are made no longer than `radius`: Euclidean, or the sum of absolute values."""
    radius: float | None = None
    keys: Annotated[tuple[tuple[Base64, Base64], ...], Field(min_length=1)]
    """The issuer's keys for tokens and tickets of each iteration."""

    @property
    def later(self) -> bool:
        """Whether there was one before."""
        return self.number > 1


class Figures(_Part):
    """What the plan promises one person, epsilon in nats at `delta`, rounded up; left out: nothing can be promised.

    `epsilon`: against whoever watches all traffic and holds all scramblers but one. `issuer`: where messages of other
    people may be replaced besides, with the help of whoever says who takes part.
    """

    epsilon: Annotated[Finite, Field(ge=0)] | None = None
    delta: Annotated[float, Field(ge=0, lt=1)]
    issuer: Annotated[Finite, Field(ge=0)] | None = None


class Step(_Part):
    """One question of the plan: to which targets a message goes, and what hides it.

    An answer's group is number c = (…(c1 · sizes[1] + c2) · sizes[2] + …) of all G groups, from the numbers c1, c2, …
    of `columns`; its own target is number floor(c · T / G) of the T targets. A record is c1, c2, … in 4 bytes each,
    then the values in 8 bytes each (IEEE 754), least significant byte first.
    """

    name: Annotated[str, Field(min_length=1)]
    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    sigma: Annotated[float, Field(ge=0, le=1)]
    convention: Convention = "uniform"
    only_on_purpose: bool
    """Whether a message that falls on its own target by luck carries no data either."""
    dummies: Annotated[int, Field(ge=0)]
    """Of each scrambler of the chain, in each batch."""
    batch: Annotated[int, Field(ge=1)]
    min_batch: Annotated[int, Field(ge=1)]
    sources: Annotated[int, Field(ge=1)]
    """How many people are expected to answer."""
    token_key: Base64
    """The issuer's public key for this step of this task: no token of another opens this one."""
    ticket_key: Base64
    """The one for tickets of this step: tokens that the first scrambler takes, one for each message."""
    targets: Annotated[tuple[Place, ...], Field(min_length=2, max_length=1000)]

    @property
    def sampling(self) -> TargetSampling:
        """Where a message goes."""
        return TargetSampling(targets=len(self.targets), sigma=self.sigma, convention=self.convention)

    @property
    def batches(self) -> int:
        """The most batches that are planned."""
        return -(-self.sources // self.batch)


class TaskDocument(_Part):
    """What is asked of phones, how it is hidden, and who takes part; nothing in it depends on anybody's data.

    The SHA-256 digest of its bytes is the task's `id`. It goes into every seal, token and request: a message of one
    task is worth nothing in another.
    """

    version: Literal[2] = 2
    number: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] = Field(default_factory=lambda: secrets.token_hex(16))
    """A number that no other task has."""
    plan: str
    """The plan's specification, TOML, every default spelled out."""
    figures: Figures
    """What it promises: every service computes it again before it takes part."""
    people: Annotated[int, Field(ge=1)]
    """How many people there are in all."""
    per_person: Literal["all", "one"]
    """Whether a phone answers all steps, or one that it draws at random, each equally likely."""
    columns: tuple[Column, ...]
    values: tuple[Value, ...] = ()
    round: Round | None = None
    """For k-means: then there are no columns, one step, and a record is a point."""
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=1000)]
    relay: Url
    """Where phones send to."""
    chain: Annotated[tuple[Place, ...], Field(min_length=1, max_length=8)]
    """The scramblers; the first is the gateway of Oblivious HTTP, with its `key`."""
    issuer: Issuer
    result: Place
    message: Annotated[int, Field(ge=512, le=16_384)]
    """Bytes of what a phone sends to the gateway, without what Oblivious HTTP adds."""
    start: Annotated[str, Field(pattern=r"^[0-9T:.-]{19,26}Z$")]
    """The moment, UTC, from which all times are counted."""
    collect: Annotated[float, Field(gt=0, le=31_536_000)]
    """How many seconds phones have."""
    patience: Annotated[float, Field(gt=0, le=86_400)]
    """How many seconds a service waits for another."""
    least: Annotated[float, Field(gt=0, le=1)]
    """The share of the sources without which there is no result."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.round is None:
            if not self.columns or not all(step.columns for step in self.steps):
                _wrong("columns must be there, but for k-means")
        else:
            _agree_round(self.round, self.steps, len(self.values))
        known = {column.name for column in self.columns}
        for step in self.steps:
            if not set(step.columns) <= known or len(step.sizes) != len(step.columns):
                _wrong(f"columns of {step.name!r} must be columns of the document, each with its size")
            if not step.min_batch <= step.batch:
                _wrong(f"min_batch of {step.name!r} must be at most its batch")
            try:
                _ = step.sampling
            except InvalidInputError as error:
                _wrong(str(error))
        names = [one.name for one in (*self.chain, self.result, *(one for step in self.steps for one in step.targets))]
        if len(set(names)) < len(names):
            _wrong("scramblers, targets and the result must be different services")
        if self.room < max(self.size(number) for number in range(1, len(self.steps) + 1)):
            _wrong("message must be large enough for every record")
        try:
            _ = self.starts
        except ValueError:
            _wrong("start must be a moment such as 2026-05-01T10:00:00Z")
        return self

    @cached_property
    def content(self) -> bytes:
        """The document's bytes: JSON with sorted keys, no spaces, ASCII."""
        return canonical(self.model_dump(mode="json", exclude_none=True))

    @cached_property
    def id(self) -> bytes:
        """SHA-256 of its bytes, 32 bytes."""
        return hashlib.sha256(self.content).digest()

    @property
    def starts(self) -> float:
        """The start in seconds since 1970."""
        return dt.datetime.fromisoformat(self.start).timestamp()

    @property
    def deadline(self) -> float:
        """The moment, in seconds since 1970, after which no phone is heard."""
        return self.starts + self.collect

    def step(self, number: int) -> Step:
        """Return a step, from 1 on."""
        return self.steps[number - 1]

    def size(self, number: int) -> int:
        """Return the bytes of a record of a step."""
        return 4 * len(self.step(number).columns) + 8 * len(self.values)

    @property
    def room(self) -> int:
        """Bytes that a record can have."""
        return self.inner - SEAL - TOKEN - _NUMBER.size

    @property
    def inner(self) -> int:
        """Bytes of a message as a target gets it."""
        return self.at(len(self.chain)) - _NUMBER.size

    def at(self, hop: int) -> int:
        """Return the bytes of a message that comes to a scrambler, from 0 on."""
        return self.message - SEAL * hop

    @property
    def gateway(self) -> bytes:
        """The gateway's key configuration, as in application/ohttp-keys (RFC 9458, section 3)."""
        return key_config(bytes.fromhex(self.chain[0].key))

    def info(self, step: int, name: str) -> bytes:
        """Return what the seals for a scrambler or target are bound to, HPKE's info."""
        return b"hushuffle onion 1|" + self.id + _NUMBER.pack(step) + name.encode()

    def request(self, step: int, content: bytes, ticket: bytes) -> bytes:
        """Return the binary HTTP request that carries a message to the gateway: of one size for all steps."""
        scheme, _, rest = self.chain[0].url.partition("://")
        authority, _, base = rest.partition("/")
        path = f"/{base}".rstrip("/") + f"/tasks/{self.id.hex()}/steps/{step:04d}"
        return encode_request("POST", scheme, authority, path, [authorization(ticket)], content)

    @cached_property
    def sealed_request(self) -> int:
        """Bytes of what a phone posts to the relay: that request as Oblivious HTTP seals it."""
        return len(self.request(1, bytes(self.message), bytes(TOKEN))) + 7 + SEAL

    def context(self, step: int, name: str) -> bytes:
        """Return the redemption context of the tokens for a target, 32 bytes."""
        return hashlib.sha256(b"hushuffle token 1|" + self.id + _NUMBER.pack(step) + name.encode()).digest()

    def ticket_challenge(self, step: int) -> bytes:
        """Return what the tickets of a step are for."""
        name = self.chain[0].name.encode()
        context = hashlib.sha256(b"hushuffle ticket 1|" + self.id + _NUMBER.pack(step) + name).digest()
        return token_challenge(self.issuer.name, context, "")

    def role(self, name: str) -> str:
        """Return "scrambler", "target", "result" or "" for a name."""
        if any(one.name == name for one in self.chain):
            return "scrambler"
        if any(one.name == name for step in self.steps for one in step.targets):
            return "target"
        return "result" if self.result.name == name else ""

    def urls(self, name: str) -> tuple[str, ...]:
        """Return where phones and others reach a service of this name; the relay and the issuer are so called."""
        places = (*self.chain, self.result, *(one for step in self.steps for one in step.targets))
        others = {"relay": self.relay, "issuer": self.issuer.url}
        return (*(one.url for one in places if one.name == name), *([others[name]] if name in others else []))

    def target(self, name: str) -> tuple[int, int]:
        """Return the step and the number of a target, from 1 and from 0 on."""
        found = (
            (number, place)
            for number, step in enumerate(self.steps, 1)
            for place, one in enumerate(step.targets)
            if one.name == name
        )
        return next(found)

    def token_key(self, number: int) -> bytes:
        """Return the issuer's public key of a step, as RFC 9578 writes it."""
        return base64.b64decode(self.step(number).token_key)

    def ticket_key(self, number: int) -> bytes:
        """Return the issuer's public key for tickets of a step, as RFC 9578 writes it."""
        return base64.b64decode(self.step(number).ticket_key)


def _agree_round(one: Round, steps: Sequence[Step], values: int) -> None:
    """Refuse an iteration that is not like the others of its run."""
    (step, *more) = steps
    if more or step.columns or len(step.targets) != len(one.centroids):
        _wrong("an iteration has one step without columns, with a target for each centroid")
    if {len(centroid) for centroid in one.centroids} != {values} or not values:
        _wrong("centroids must have as many coordinates as there are values")
    if one.number > one.rounds or len(one.keys) != one.rounds:
        _wrong("an iteration is one of those that the run has keys for")
    if one.keys[one.number - 1] != (step.token_key, step.ticket_key):
        _wrong("an iteration has the keys of its number")
    if {one.run is not None, one.former is not None} != {one.later}:
        _wrong("all iterations but the first name the first and the one before")


def canonical(content: Mapping[str, Any]) -> bytes:
    r"""Return JSON in the one form that digests and signatures are made of.

    >>> canonical({"b": 1, "a": [0.5, "ä"]})
    b'{"a":[0.5,"\\u00e4"],"b":1}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def read_task(path: Path) -> TaskDocument:
    """Return the document in a file; one that was changed is another task, or none.

    Raises:
        DataError: it cannot be read, is too large, or is no document of a task in its one form.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST + 1)
    except OSError as error:
        fail(f"{path} cannot be read: {cause(error)}.")
    return parse_task(data, called=str(path))


def parse_task(data: bytes, *, called: str = "the task document") -> TaskDocument:
    """Return the document that `data` holds; `called` is for messages."""
    if len(data) > MOST:
        fail(f"{called} is larger than {MOST:,} bytes: it is no document of a task.")
    try:
        document = TaskDocument.model_validate_json(data)
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, one['loc'])) or 'document'}: {one['msg']}" for one in error.errors()[:20]]
        fail("\n".join([f"{called} is no document of a task:", *lines]))
    if document.content != data:
        fail(f"{called} was laid out anew: phones and services must hold the same bytes.")
    return document


def _wrong(rule: str) -> NoReturn:
    raise ValueError(rule)


def refuse_task(why: str) -> NoReturn:
    """Refuse a plan that phones cannot answer."""
    message = f"phones cannot run this plan: {why}."
    raise UnsupportedProtocolError(message)


def names_of(targets: Sequence[int], chain: int) -> list[str]:
    """Return the names of the services of a task with so many targets in each step, in the order of the document.

    >>> names_of([2], 2)
    ['scrambler-1', 'scrambler-2', 'target-1-1', 'target-1-2', 'result']
    """
    scramblers = [f"scrambler-{number}" for number in range(1, chain + 1)]
    found = [f"target-{step}-{one}" for step, count in enumerate(targets, 1) for one in range(1, count + 1)]
    return [*scramblers, *found, "result"]
