"""`RunDocument`: the public document of a run, identical byte for byte at all nodes."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import secrets
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, NoReturn, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hushuffle._checks import fail
from hushuffle.errors import InvalidInputError
from hushuffle.files.causes import text_in
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.mechanisms.randomizers.target_sampling import Convention
from hushuffle.network.nodes.connections import LARGEST, SMALLEST, Layout
from hushuffle.network.nodes.seals import PublicSealKey, Seals
from hushuffle.plans import Traffic
from hushuffle.queries.query import Task
from hushuffle.queries.specification import RESULT_PATIENCE, AnyTask

Name = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9-]*$")]
Seconds = Annotated[float, Field(gt=0, le=86_400)]

_TARGET_SLACK: Final = 2
"""A target waits this many times `patience` longer than a scrambler, for the scrambler's start and sending."""


def utc_text(moment: dt.datetime) -> str:
    """Return a moment as UTC text, in the format of documents.

    >>> utc_text(dt.datetime(2026, 5, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))))
    '2026-05-01T10:00:00.000Z'
    """
    return moment.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


RESULT: Final = 0
"""The step number of messages from compute nodes to the result; the steps of the plan start at 1."""


class DocumentPart(BaseModel):
    """A part of a document that several parties read: its fields never change, and no other field is allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Server(DocumentPart):
    address: Annotated[str, Field(pattern=r"^.+:[0-9]{1,5}$")]
    seal: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Public seal key of the node, if messages are sealed for it."""

    @property
    def place(self) -> tuple[str, int]:
        host, _, port = self.address.rpartition(":")
        return host.strip("[]"), int(port)


class Batch(DocumentPart):
    """The sources of one scrambler; `holders[slot]` is the node that sends the message of source number `slot`."""

    scrambler: Name | None
    """Name of the scrambler; None if the sources send directly to the targets."""
    holders: Annotated[tuple[Name, ...], Field(min_length=1)]


class Step(DocumentPart):
    """One cluster of the plan in which the targets of messages depend on data."""

    name: Annotated[str, Field(min_length=1)]
    computes: Annotated[tuple[Name, ...], Field(min_length=2)]
    """The targets, in the order of their numbers."""
    sigma: Annotated[float, Field(ge=0, le=1)]
    convention: Convention = "uniform"
    flood: Annotated[int, Field(ge=0)] = 0
    dummies: Annotated[int, Field(ge=0)] = 0
    capped: bool = False
    min_batch: Annotated[int, Field(ge=1)] = 1
    """The fewest sources in a batch that may be released; the guarantee is for this number. A holder is one source."""
    only_on_purpose: bool = False
    """Whether a redirected message that reaches its own target carries no data either (see `TargetSampling.sample`)."""
    batches: Annotated[tuple[Batch, ...], Field(min_length=1)]

    @property
    def scrambled(self) -> bool:
        return self.batches[0].scrambler is not None

    @property
    def traffic(self) -> Traffic:
        return Traffic(
            sigma=self.sigma,
            convention=self.convention,
            flood=self.flood,
            dummies=self.dummies if self.scrambled else None,
            min_batch=self.min_batch if self.scrambled else None,
            capped=self.capped,
        )

    @property
    def sampling(self) -> TargetSampling:
        return self.traffic.sampling(len(self.computes))

    @property
    def sources(self) -> int:
        return sum(len(batch.holders) for batch in self.batches)


class RunDocument(DocumentPart):
    """The document of one run of a plan, independent of all data, with the same bytes at every node.

    Its digest is part of every seal, so a message of one run, plan, roster or step is invalid in another.
    """

    schema_version: Literal[2] = 2
    run: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] = Field(default_factory=lambda: secrets.token_hex(16))
    plan: str
    """The specification of the plan in TOML, with all defaults written out."""
    people: Annotated[int, Field(ge=1)]
    """The total number of people, including people without a place in any step."""
    query: AnyTask
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    result: Name
    servers: dict[Name, Server]
    message: Annotated[int, Field(ge=SMALLEST, le=LARGEST)] = 1024
    """Bytes of every message."""
    start: Annotated[str, Field(pattern=r"^[0-9T:.-]{19,26}Z$")] = Field(
        default_factory=lambda: utc_text(dt.datetime.now(dt.UTC))
    )
    """The moment, in UTC, from which all times of the run are counted at every node."""
    collect: Seconds = 60.0
    """Seconds after the start during which a scrambler waits for its sources."""
    patience: Seconds = 30.0
    """Seconds that a node waits for a peer."""
    least: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The smallest share of all sources for which there is a result."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        try:
            _ = self.starts
        except ValueError:
            refuse_field("start must be a time in UTC such as 2026-05-01T10:00:00Z")
        try:
            targets = self.query.targets
            for step in self.steps:
                _ = step.sampling
        except InvalidInputError as error:
            raise ValueError(str(error)) from None
        _check_steps(self.query, self.steps)
        for step in self.steps:
            _check(step, targets)
            for name in step.computes:
                self._server(name, sealed=True)
            for batch in step.batches:
                if batch.scrambler is not None:
                    self._server(batch.scrambler, sealed=False)
        self._server(self.result, sealed=True)
        # In a query with iterations, the nodes are the same in every step.
        steps = self.steps[:1] if self.query.rounds else self.steps
        roles = [self.result, *(name for step in steps for name in step.computes)]
        roles += {batch.scrambler for step in self.steps for batch in step.batches if batch.scrambler is not None}
        roles += {name for step in self.steps for batch in step.batches for name in batch.holders}
        if len(set(roles)) < len(roles):
            refuse_field(
                "result, computes, scramblers and holders must be different nodes, and each compute in one grouping set"
            )
        return self

    def _server(self, name: str, *, sealed: bool) -> None:
        if name not in self.servers or (sealed and self.servers[name].seal is None):
            refuse_field(f"servers must have an address{' and a seal key' if sealed else ''} for {name}")

    @cached_property
    def text(self) -> str:
        """The document as JSON; the digest is computed from exactly these bytes."""
        return json.dumps(self.model_dump(), indent=1, ensure_ascii=True, sort_keys=True) + "\n"

    @cached_property
    def digest(self) -> bytes:
        return hashlib.sha256(self.text.encode()).digest()

    @cached_property
    def drawn(self) -> str:
        """SHA-256 of the run and all fields that determine targets; if a field changes, new randomness is drawn."""
        chosen = self.model_dump(include={"run", "plan", "people", "query", "steps"})
        return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()

    @cached_property
    def layout(self) -> Layout:
        return Layout(size=self.message, digest=self.digest)

    @cached_property
    def stages(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the steps, grouped into stages; the steps of a stage run in parallel."""
        numbers = range(1, len(self.steps) + 1)
        return tuple((number,) for number in numbers) if self.query.rounds else (tuple(numbers),)

    @property
    def starts(self) -> float:
        """The start of the run, in seconds since 1970 on the system clock."""
        return dt.datetime.fromisoformat(self.start).timestamp()

    def starting(self, moment: dt.datetime) -> RunDocument:
        return RunDocument.model_validate({**self.model_dump(), "start": utc_text(moment)})

    def deadline(self, number: int) -> float:
        """Return the deadline for the sources of a step, in seconds after the start; stages are sequential."""
        before = number - 1 if self.query.rounds else 0
        return before * (self.collect + RESULT_PATIENCE * self.patience) + self.collect

    def target_deadline(self, number: int) -> float:
        """Return the deadline until which a target waits for the batches of a step, in seconds after the start."""
        return self.deadline(number) + _TARGET_SLACK * self.patience

    @property
    def result_deadline(self) -> float:
        """The deadline until which the result waits for the targets, in seconds after the start."""
        return self.deadline(len(self.steps)) + RESULT_PATIENCE * self.patience

    def seals(self, step: int) -> Seals:
        """Return the seals of a step; `step` counts from 1, or is `RESULT` for messages to the result."""
        return Seals(digest=self.digest, step=step, size=self.layout.sealed)

    def seal_key(self, name: str) -> PublicSealKey:
        seal = self.servers[name].seal
        assert seal is not None
        return PublicSealKey.of(seal)

    def step(self, number: int) -> Step:
        """Return the step with this number; numbers start at 1."""
        return self.steps[number - 1]

    @cached_property
    def places(self) -> dict[str, tuple[tuple[int, int, int], ...]]:
        """A mapping from each holder to the step, batch and slot of each of its sources."""
        by_holder: dict[str, list[tuple[int, int, int]]] = {}
        for number, step in enumerate(self.steps, start=1):
            for position, batch in enumerate(step.batches):
                for slot, holder in enumerate(batch.holders):
                    by_holder.setdefault(holder, []).append((number, position, slot))
        return {holder: tuple(places) for holder, places in by_holder.items()}

    def batches_of(self, scrambler: str) -> tuple[tuple[int, Batch], ...]:
        """Return the batches of a scrambler, each with the number of its step."""
        return tuple(
            (number, batch)
            for number, step in enumerate(self.steps, start=1)
            for batch in step.batches
            if batch.scrambler == scrambler
        )

    def target_of(self, compute: str) -> tuple[int, int] | None:
        """Return the first step in which a node is a target, and the target's number; None for other nodes."""
        for number, step in enumerate(self.steps, start=1):
            if compute in step.computes:
                return number, step.computes.index(compute)
        return None


def read_document(path: Path) -> RunDocument:
    text = text_in(path)
    try:
        document = RunDocument.model_validate_json(text)
    except ValidationError as error:
        lines = [f"{path} is not the document of a run:"]
        for problem in error.errors()[:20]:
            steps = problem["loc"]
            if problem["type"] == "extra_forbidden":  # the key may be private data
                steps = (*steps[:-1], "a key that no document has")
            lines.append(f"  {'.'.join(map(str, steps)) or 'document'}: {problem['msg']}")
        fail("\n".join(lines))
    if document.text != text:
        fail(f"{path} was changed or reformatted: all nodes need exactly the same file. Copy the original.")
    return document


def _check_steps(query: Task, steps: tuple[Step, ...]) -> None:
    if query.steps not in (None, len(steps)):
        refuse_field(f"steps must be {query.steps}, as the query requires")
    if query.rounds and len({step.computes for step in steps}) > 1:
        refuse_field("computes must be the same nodes in every iteration")
    holders = (tuple(sorted(name for batch in step.batches for name in batch.holders)) for step in steps)
    if query.rounds and len(set(holders)) > 1:
        refuse_field("holders must be the same in every iteration: each record takes part in all")
    if query.noisy and not all(step.only_on_purpose for step in steps):
        refuse_field(f"only_on_purpose must be true if {query.lost} are released with noise")


def _check(step: Step, partitions: int) -> None:
    if len(step.computes) != partitions or len(set(step.computes)) != partitions:
        refuse_field(f"computes of {step.name!r} must be {partitions} different nodes, one for each partition")
    kinds = {batch.scrambler is None for batch in step.batches}
    if len(kinds) > 1 or (kinds == {True} and len(step.batches) > 1):
        refuse_field(f"batches of {step.name!r} must all have scramblers, or be one without")
    _check_traffic(step)
    names = [batch.scrambler for batch in step.batches]
    if len(set(names)) < len(names):
        refuse_field(f"each batch of {step.name!r} must have a separate scrambler")
    for batch in step.batches:
        if step.scrambled and len(batch.holders) < step.min_batch:
            refuse_field(f"batches of {step.name!r} must have {step.min_batch} sources or more")
        if step.capped and len(batch.holders) != step.min_batch:
            refuse_field(f"min_batch of {step.name!r} must be the size of every batch if capped")
        if step.capped and step.dummies > (partitions - 1) * len(batch.holders):
            refuse_field(f"dummies of {step.name!r} must not exceed the cap")


def _check_traffic(step: Step) -> None:
    if step.flood and step.scrambled:
        refuse_field(f"flood of {step.name!r} must be 0 with scramblers")
    for name, value, without in (("dummies", step.dummies or step.capped, 0), ("min_batch", step.min_batch - 1, 1)):
        if value and not step.scrambled:
            refuse_field(f"{name} of {step.name!r} must be {without} without scramblers")


def refuse_field(rule: str) -> NoReturn:
    raise ValueError(rule)
