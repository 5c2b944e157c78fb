"""`TaskDocument`: the public document of a task, for phones and services; its size is independent of the people."""

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

from pydantic import Field, ValidationError, model_validator

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.errors import InvalidInputError
from hushuffle.files.causes import failing
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.mechanisms.randomizers.target_sampling import Convention
from hushuffle.mechanisms.shufflers.scrambler import Scrambler
from hushuffle_network.fields import DocumentPart, Name, refuse_field
from hushuffle_network.formats import authorization, encode_request, key_config, token_challenge

MOST: Final = 20_000
"""Largest number of bytes of a document."""
SEAL: Final = 48
"""Bytes that each seal adds to a message: a one-time public key and a tag."""
TOKEN: Final = 354
"""Bytes of a token of type 2 (RFC 9578)."""
_NUMBER: Final = struct.Struct(">H")

Url = Annotated[
    str, Field(min_length=8, max_length=200, pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?$")
]
Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Base64 = Annotated[str, Field(min_length=4, max_length=1000, pattern=r"^[A-Za-z0-9+/]+={0,2}$")]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Clause = tuple[Literal["==", "!=", "<", "<=", ">", ">="], float | str]


class Place(DocumentPart):
    """A service: its address, its public key for seals (X25519), and its public key for signatures (Ed25519)."""

    name: Name
    url: Url
    key: Key
    sign: Key


class Issuer(DocumentPart):
    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[a-z0-9.-]+$")]
    url: Url


class Group(DocumentPart):
    """One group of a column. An answer belongs to the group if all comparisons in some list of `when` are true."""

    name: str
    when: Annotated[tuple[tuple[Clause, ...], ...], Field(min_length=1)]


class Column(DocumentPart):
    """A grouping column with its groups, in the order of their numbers."""

    name: str
    groups: Annotated[tuple[Group, ...], Field(min_length=2)]


class Value(DocumentPart):
    """A column of numbers; answers are clipped to the public range from `low` to `high`."""

    name: str
    low: float | None = None
    high: float | None = None


class Round(DocumentPart):
    """One iteration of a query with several iterations; each iteration is a task of its own.

    Only the token keys and the centroids differ; centroids are computed from the result of the previous iteration.
    """

    number: Annotated[int, Field(ge=1)]
    rounds: Annotated[int, Field(ge=1)]
    """The number of iterations of the run; the stated figures are for all iterations together."""
    run: Key | None = None
    """The id of the run's first task; absent in the first iteration."""
    former: Key | None = None
    """The id of the previous iteration's task; absent in the first iteration."""
    centroids: Annotated[tuple[tuple[Finite, ...], ...], Field(min_length=2)]
    """The current centroids; the message of a point goes to the target of the nearest centroid."""
    scaled: bool
    """Whether values are scaled from their public ranges to -1 to 1."""
    norm: Literal["gaussian", "laplace"] | None = None
    """If centroids are released with noise, points are clipped to norm `radius`: "gaussian" Euclidean, "laplace" L1."""
    radius: float | None = None
    keys: Annotated[tuple[tuple[Base64, Base64], ...], Field(min_length=1)]
    """The issuer's keys for tokens and tickets of each iteration."""

    @property
    def later(self) -> bool:
        return self.number > 1


class Figures(DocumentPart):
    """The plan's guarantee for one person: epsilon in nats at `delta`, rounded up; infinite values are omitted.

    `epsilon`: against an adversary who observes all traffic and controls all scramblers but one. `issuer`: against the
    same adversary, who can also replace messages of other people with the issuer's help.
    """

    epsilon: Annotated[Finite, Field(ge=0)] | None = None
    delta: Annotated[float, Field(ge=0, lt=1)]
    issuer: Annotated[Finite, Field(ge=0)] | None = None


class Step(DocumentPart):
    """One question of the plan: the targets of its messages, and the parameters that hide a message's target.

    An answer's group has number c = (…(c1 · sizes[1] + c2) · sizes[2] + …) among all G groups, where c1, c2, … are its
    group numbers in `columns`. The answer's own target is number floor(c · T / G) of the T targets. A record is c1, c2,
    … in 4 bytes each, then the values in 8 bytes each (IEEE 754), least significant byte first.
    """

    name: Annotated[str, Field(min_length=1)]
    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    sigma: Annotated[float, Field(ge=0, le=1)]
    convention: Convention = "uniform"
    only_on_purpose: bool
    """Whether a redirected message that reaches its own target by chance carries no data either."""
    dummies: Annotated[int, Field(ge=0)]
    """Number of dummies that each scrambler of the chain adds to each batch."""
    capped: Literal[True] | None = None
    """Whether a target receives at most as many messages of a batch as the batch has sources; absent without a cap."""
    batch: Annotated[int, Field(ge=1)]
    min_batch: Annotated[int, Field(ge=1)]
    sources: Annotated[int, Field(ge=1)]
    """Expected number of people who answer this step."""
    token_key: Base64
    """The issuer's public key for tokens of this step and task; tokens of another step are invalid here."""
    ticket_key: Base64
    """The issuer's public key for tickets of this step: the first scrambler accepts one message for each ticket."""
    targets: Annotated[tuple[Place, ...], Field(min_length=2, max_length=1000)]

    @property
    def sampling(self) -> TargetSampling:
        return TargetSampling(targets=len(self.targets), sigma=self.sigma, convention=self.convention)

    @property
    def shuffler(self) -> Scrambler:
        """The scrambler's draw of dummies."""
        return Scrambler(dummies=self.dummies, cap=self.batch if self.capped else None)

    @property
    def batches(self) -> int:
        """The planned number of batches, at most."""
        return -(-self.sources // self.batch)


class TaskDocument(DocumentPart):
    """The questions to phones, their protection, and the services; the document is independent of all data.

    The SHA-256 digest of the document's bytes is the task's `id`. The id is part of every seal, token and request, so a
    message of one task is invalid in another task.
    """

    version: Literal[2] = 2
    number: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] = Field(default_factory=lambda: secrets.token_hex(16))
    plan: str
    """The specification of the plan in TOML, with all defaults written out."""
    figures: Figures
    """The stated guarantee of the plan; every service computes it again before it takes part."""
    people: Annotated[int, Field(ge=1)]
    """The expected number of participants."""
    per_person: Literal["all", "one"]
    """Whether a phone answers all steps, or one step that it draws uniformly at random."""
    columns: tuple[Column, ...]
    values: tuple[Value, ...] = ()
    round: Round | None = None
    """The iteration, for k-means only: then there are no columns, one step, and a record is a point."""
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=1000)]
    relay: Url
    """The address to which phones send their requests."""
    chain: Annotated[tuple[Place, ...], Field(min_length=1, max_length=8)]
    """The scramblers in order; the first scrambler is the gateway of Oblivious HTTP, with its `key`."""
    issuer: Issuer
    result: Place
    message: Annotated[int, Field(ge=512, le=16_384)]
    """Bytes of a phone's message at the gateway, without the bytes that Oblivious HTTP adds."""
    start: Annotated[str, Field(pattern=r"^[0-9T:.-]{19,26}Z$")]
    """The moment, in UTC, from which all times are counted."""
    collect: Annotated[float, Field(gt=0, le=31_536_000)]
    """Seconds after the start during which phones may send."""
    patience: Annotated[float, Field(gt=0, le=86_400)]
    """Seconds that a service waits for another service."""
    least: Annotated[float, Field(gt=0, le=1)]
    """The smallest share of the sources for which a result is published."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.round is None:
            if not self.columns or not all(step.columns for step in self.steps):
                refuse_field("columns must be given, except for k-means")
        else:
            _agree_round(self.round, self.steps, len(self.values))
        asked_columns = {column.name for column in self.columns}
        for step in self.steps:
            if not set(step.columns) <= asked_columns or len(step.sizes) != len(step.columns):
                refuse_field(f"columns of {step.name!r} must be columns of the document, each with its size")
            _agree_step(step, len(self.chain))
        names = [one.name for one in (*self.chain, self.result, *(one for step in self.steps for one in step.targets))]
        if len(set(names)) < len(names):
            refuse_field("scramblers, targets and the result must be different services")
        if self.room < max(self.size(number) for number in range(1, len(self.steps) + 1)):
            refuse_field("message must be large enough for every record")
        try:
            _ = self.starts
        except ValueError:
            refuse_field("start must be a time in UTC such as 2026-05-01T10:00:00Z")
        return self

    @cached_property
    def content(self) -> bytes:
        """The document's bytes: JSON in ASCII, with sorted keys and without spaces."""
        return canonical(self.model_dump(mode="json", exclude_none=True))

    @cached_property
    def id(self) -> bytes:
        return hashlib.sha256(self.content).digest()

    @property
    def starts(self) -> float:
        """The start of the task, in seconds since 1970."""
        return dt.datetime.fromisoformat(self.start).timestamp()

    @property
    def deadline(self) -> float:
        """The moment, in seconds since 1970, after which phones' messages are refused."""
        return self.starts + self.collect

    def step(self, number: int) -> Step:
        """Return the step with this number; numbers start at 1."""
        return self.steps[number - 1]

    def size(self, number: int) -> int:
        """Return the bytes of a record in a step."""
        return 4 * len(self.step(number).columns) + 8 * len(self.values)

    @property
    def room(self) -> int:
        """Largest number of bytes of a record."""
        return self.inner - SEAL - TOKEN - _NUMBER.size

    @property
    def inner(self) -> int:
        """Bytes of a message when it arrives at a target."""
        return self.at(len(self.chain)) - _NUMBER.size

    def at(self, hop: int) -> int:
        """Return the bytes of a message when it arrives at a scrambler; `hop` is 0 for the first scrambler."""
        return self.message - SEAL * hop

    @property
    def gateway(self) -> bytes:
        """The gateway's key configuration, in the format of application/ohttp-keys (RFC 9458, section 3)."""
        return key_config(bytes.fromhex(self.chain[0].key))

    def info(self, step: int, name: str) -> bytes:
        return b"hushuffle onion 1|" + self.id + _NUMBER.pack(step) + name.encode()

    def request(self, step: int, content: bytes, ticket: bytes) -> bytes:
        """Return the binary HTTP request that carries a message to the gateway; its size is the same in all steps."""
        scheme, _, rest = self.chain[0].url.partition("://")
        authority, _, base = rest.partition("/")
        path = f"/{base}".rstrip("/") + f"/tasks/{self.id.hex()}/steps/{step:04d}"
        return encode_request("POST", scheme, authority, path, [authorization(ticket)], content)

    @cached_property
    def sealed_request(self) -> int:
        """Bytes of a phone's request to the relay, which is sealed by Oblivious HTTP."""
        return len(self.request(1, bytes(self.message), bytes(TOKEN))) + 7 + SEAL

    def context(self, step: int, name: str) -> bytes:
        """Return the redemption context of the tokens for a target in a step, 32 bytes."""
        return hashlib.sha256(b"hushuffle token 1|" + self.id + _NUMBER.pack(step) + name.encode()).digest()

    def ticket_challenge(self, step: int) -> bytes:
        name = self.chain[0].name.encode()
        context = hashlib.sha256(b"hushuffle ticket 1|" + self.id + _NUMBER.pack(step) + name).digest()
        return token_challenge(self.issuer.name, context, "")

    def role(self, name: str) -> str:
        """Return the role of a service by its name: "scrambler", "target", "result", or "" for another name."""
        if any(one.name == name for one in self.chain):
            return "scrambler"
        if any(one.name == name for step in self.steps for one in step.targets):
            return "target"
        return "result" if self.result.name == name else ""

    def urls(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a service; the relay and the issuer have the names "relay" and "issuer"."""
        places = (*self.chain, self.result, *(one for step in self.steps for one in step.targets))
        others = {"relay": self.relay, "issuer": self.issuer.url}
        return (*(one.url for one in places if one.name == name), *([others[name]] if name in others else []))

    def target(self, name: str) -> tuple[int, int]:
        """Return the step of a target, counted from 1, and the target's number in the step, counted from 0."""
        places = (
            (number, place)
            for number, step in enumerate(self.steps, 1)
            for place, target in enumerate(step.targets)
            if target.name == name
        )
        return next(places)

    def token_key(self, number: int) -> bytes:
        """Return the issuer's public key for tokens of a step, in the encoding of RFC 9578."""
        return base64.b64decode(self.step(number).token_key)

    def ticket_key(self, number: int) -> bytes:
        return base64.b64decode(self.step(number).ticket_key)


def _agree_step(step: Step, scramblers: int) -> None:
    """Refuse a step whose fields contradict each other or the number of scramblers."""
    if not step.min_batch <= step.batch:
        refuse_field(f"min_batch of {step.name!r} must be at most its batch")
    if step.capped and (step.min_batch < step.batch or scramblers > 1):
        refuse_field(f"capped of {step.name!r} must be left out with several scramblers or sizes of batches")
    try:
        _ = step.sampling
    except InvalidInputError as error:
        refuse_field(str(error))


def _agree_round(iteration: Round, steps: Sequence[Step], values: int) -> None:
    """Refuse an iteration whose fields contradict each other or the step."""
    (step, *more) = steps
    if more or step.columns or len(step.targets) != len(iteration.centroids):
        refuse_field("an iteration has one step without columns, with a target for each centroid")
    if {len(centroid) for centroid in iteration.centroids} != {values} or not values:
        refuse_field("centroids must have one coordinate for each value")
    if iteration.number > iteration.rounds or len(iteration.keys) != iteration.rounds:
        refuse_field("number must be at most rounds, and the run must have keys for each iteration")
    if iteration.keys[iteration.number - 1] != (step.token_key, step.ticket_key):
        refuse_field("token_key and ticket_key must be the keys of this iteration's number")
    if {iteration.run is not None, iteration.former is not None} != {iteration.later}:
        refuse_field("run and former must be set in all iterations except the first")


def canonical(content: Mapping[str, Any]) -> bytes:
    r"""Return JSON in the canonical form for digests and signatures.

    >>> canonical({"b": 1, "a": [0.5, "ä"]})
    b'{"a":[0.5,"\\u00e4"],"b":1}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def read_task(path: Path) -> TaskDocument:
    """Return the document in a file; a changed document is another task, or invalid."""
    with failing(f"{path} cannot be read"), path.open("rb") as file:
        data = file.read(MOST + 1)
    return parse_task(data, called=str(path))


def parse_task(data: bytes, *, called: str = "the task document") -> TaskDocument:
    """Return the document in the bytes `data`; error messages call the document `called`."""
    if len(data) > MOST:
        fail(f"{called} is larger than {MOST:,} bytes: it is no document of a task.")
    try:
        document = TaskDocument.model_validate_json(data)
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, one['loc'])) or 'document'}: {one['msg']}" for one in error.errors()[:20]]
        fail("\n".join([f"{called} is not the document of a task:", *lines]))
    if document.content != data:
        fail(f"{called} was reformatted: phones and services need exactly the same file. Copy the original.")
    return document


def refuse_task(why: str) -> NoReturn:
    _checks.unsupported(f"phones cannot run this plan: {why}.")


def names_of(targets: Sequence[int], chain: int) -> list[str]:
    """Return the names of a task's services, in the order of the document; `targets`: number of targets per step.

    >>> names_of([2], 2)
    ['scrambler-1', 'scrambler-2', 'target-1-1', 'target-1-2', 'result']
    """
    scramblers = [f"scrambler-{number}" for number in range(1, chain + 1)]
    targets_of = [f"target-{step}-{one}" for step, count in enumerate(targets, 1) for one in range(1, count + 1)]
    return [*scramblers, *targets_of, "result"]
