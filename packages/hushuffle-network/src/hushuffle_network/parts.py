"""Reports from targets to the result, and their check, which trusts no scrambler and locates lost messages."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, NoReturn, TypeVar

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from pydantic import Field, ValidationError, field_validator

from hushuffle._checks import Floats, fail
from hushuffle.errors import DataError
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.plans import use_chance
from hushuffle_network.batches import Head, Link, check_trail
from hushuffle_network.fields import DocumentPart, refuse_field, utc_text
from hushuffle_network.promise import NEXT, TaskPromise
from hushuffle_network.task import TaskDocument, canonical

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_INFO: Final = b"hushuffle part 1|"
_Count = Annotated[int, Field(ge=0, le=10**9)]
_AROUND, _COUNTED, _LINK = 256, 128, 384
"""Largest number of bytes of JSON: around a whole report, around a batch's counts, and of one scrambler's counts."""


class Counted(DocumentPart):
    """One target's counts for one batch: messages, messages with a valid token, and the scramblers' signed counts."""

    batch: _Count
    messages: _Count
    valid: _Count
    trail: tuple[Link, ...]


class Counts(DocumentPart):
    """A target's first report: the counts of each batch, and the announced number of batches (None: not announced)."""

    batches: tuple[Counted, ...]
    closed: _Count | None


class Part(DocumentPart):
    """A target's second report, sent when the target knows the lost batches: its numbers over all other batches."""

    numbers: str

    @field_validator("numbers")
    @classmethod
    def _readable(cls, numbers: str) -> str:
        if len(base64.b64decode(numbers, validate=True)) % 8:
            refuse_field("must be numbers of 8 bytes")
        return numbers

    @property
    def floats(self) -> Floats:
        return np.frombuffer(base64.b64decode(self.numbers), dtype="<f8").astype(np.float64)


def sealed_part(document: TaskDocument, sender: str, content: Mapping[str, Any]) -> bytes:
    key = X25519PublicKey.from_public_bytes(bytes.fromhex(document.result.key))
    return _SUITE.encrypt(canonical(content), key, info=_INFO + document.id + sender.encode())


Told = TypeVar("Told", Counts, Part)


def opened_part(kind: type[Told], document: TaskDocument, sender: str, sealed: bytes, key: X25519PrivateKey) -> Told:
    """Return the content of a target's report; raise DataError unless this target sealed it for this result."""
    try:
        return kind.model_validate_json(_SUITE.decrypt(sealed, key, info=_INFO + document.id + sender.encode()))
    except (InvalidTag, ValueError, ValidationError):
        fail(f"the report of {sender} cannot be read.")


def largest_part(promise: TaskPromise, document: TaskDocument) -> int:
    """Return the largest number of bytes of a target's report, which has its numbers and the counts of each batch."""
    numbers = max(promise.task.width(number) for number in range(1, len(document.steps) + 1))
    batches = 2 * max(step.batches for step in document.steps) + 16  # more may arrive than planned
    return _AROUND + 11 * numbers + batches * (_COUNTED + _LINK * len(document.chain))


@dataclass(frozen=True, kw_only=True)
class Reckoning:
    """The counts of a step: valid tokens, sources and messages of all batches that are not lost; lost batches.

    `sources`: the number that the scramblers report. `short`: the lost batches that arrived with too few valid tokens.
    `missing`: the number of batches that did not arrive.
    """

    valid: int
    sources: int
    messages: int
    short: tuple[int, ...]
    missing: int

    @property
    def lost(self) -> int:
        return len(self.short) + self.missing


def reckon(document: TaskDocument, number: int, parts: Sequence[Counts]) -> Reckoning:
    """Return the counts of a step, over all of its targets and batches; raise DataError if they do not add up.

    For each batch that arrived, the scramblers' counts must be signed and the same at every target. All targets
    together must have as many messages as the last scrambler has sent, and no more valid tokens than sources. A batch
    with fewer than `min_batch` valid tokens is lost: phones have sent messages without a token, or a scrambler has
    replaced messages.
    """
    step = document.step(number)
    totals = {part.closed for part in parts} - {None}
    if len(totals) > 1:
        _fail(document, number, "targets received different numbers of batches from the last scrambler")
    batches = sorted({one.batch for part in parts for one in part.batches})
    reckoned = {batch: _batch(document, number, batch, parts) for batch in batches}
    expected = max((one for one in totals if one is not None), default=len(batches))
    if len(batches) > expected:
        _fail(document, number, f"{len(batches)} batches arrived, but {expected} were announced")
    short = tuple(batch for batch, (valid, _, _) in reckoned.items() if valid < step.min_batch)
    valid, sources, messages = (
        sum(one[at] for batch, one in reckoned.items() if batch not in short) for at in range(3)
    )
    if valid < document.least * step.sources:
        share = f"fewer than the share of {document.least:g} that the task requires"
        details = "".join(
            f" Batch {batch} is lost: {reckoned[batch][0]:,} valid tokens for {reckoned[batch][1]:,} sources, at least "
            f"{step.min_batch:,} are required; messages were replaced, or sent without a token."
            for batch in short[:5]
        )
        _fail(document, number, f"only {valid:,} of {step.sources:,} sources came through, {share}", details)
    return Reckoning(valid=valid, sources=sources, messages=messages, short=short, missing=expected - len(batches))


def _batch(document: TaskDocument, number: int, batch: int, parts: Sequence[Counts]) -> tuple[int, int, int]:
    """Return the numbers of valid tokens, sources and messages of a batch."""
    where = f"batch {batch}"
    counted = [one for part in parts for one in part.batches if one.batch == batch]
    if len(counted) != len(parts):
        _fail(document, number, f"{where} arrived at {len(counted)} of {len(parts)} targets")
    trails = {one.trail for one in counted}
    if len(trails) > 1:
        _fail(document, number, f"targets received different counts of {where} from the last scrambler")
    (trail,) = trails
    head = Head(
        task=document.id.hex(), step=number, batch=batch, sender="any", receiver="any", digest="0" * 64, trail=trail
    )
    try:
        check_trail(document, head, hops=len(document.chain))
    except DataError as error:
        _fail(document, number, f"{where}: {error}")
    last, messages, valid = trail[-1], sum(one.messages for one in counted), sum(one.valid for one in counted)
    if messages != last.sent:
        _fail(document, number, f"{where}: {last.name} has sent {last.sent:,} messages, but targets have {messages:,}")
    if valid > last.sources:
        _fail(document, number, f"{where}: {valid:,} valid tokens for {last.sources:,} sources")
    return valid, last.sources, messages


def _fail(document: TaskDocument, number: int, why: str, more: str = "") -> NoReturn:
    fail(
        f"{document.step(number).name!r}: {why}.{more} "
        "A scrambler may have selected messages, so nothing was published."
    )


def missing_of(document: TaskDocument, told: Mapping[str, Any]) -> None:
    for number, step in enumerate(document.steps, 1):
        missing = [one.name for one in step.targets if one.name not in told]
        if missing:
            _fail(document, number, f"no report arrived from {', '.join(missing[:5])}")


def reckoned(document: TaskDocument, counts: Mapping[str, Counts]) -> list[Reckoning]:
    missing_of(document, counts)
    return [
        reckon(document, number, [counts[one.name] for one in step.targets])
        for number, step in enumerate(document.steps, 1)
    ]


def published(
    document: TaskDocument, promise: TaskPromise, counts: Mapping[str, Counts], parts: Mapping[str, Part]
) -> dict[str, Any]:
    """Return the content of result.json: the fields that every run's result has, and the counts of each step."""
    query, answers, count = promise.task, list[dict[str, Any]](), len(document.chain)
    caution = "All messages passed only one scrambler, which knows the target of each message."
    if count > 1:
        caution = (
            f"All messages passed {count} scramblers one after the other. One of them must be honest: together they "
            "know which message went to which target."
        )
    reckonings = reckoned(document, counts)
    missing_of(document, parts)
    for number, (step, came) in enumerate(zip(document.steps, reckonings, strict=True), 1):
        step_parts = [parts[one.name] for one in step.targets]
        combined = query.combine(number, [_read(promise, number, place, part) for place, part in enumerate(step_parts)])
        about_it = {"sources": came.valid, "planned": step.sources, "lost_batches": came.lost}
        only = step.only_on_purpose
        scale = partial(_scale, document.people, came.valid, step.sampling, only_on_purpose=only)
        answer = query.answer(number, combined, about_it, scale)
        answers.append(answer | {"without_token": came.sources - came.valid})
    about = {"schema_version": 1, "run": document.id.hex(), "people": document.people, "cautions": [caution]}
    if document.round is not None and document.round.number < document.round.rounds:
        about[NEXT] = utc_text(dt.datetime.now(dt.UTC))
    return {**about, query.answers: answers}


def _read(promise: TaskPromise, number: int, place: int, part: Part) -> Floats:
    query, floats = promise.task, part.floats
    if floats.size > query.width(number):
        fail(
            f"the report of a target has {floats.size:,} numbers, but its part of the result must have at most "
            f"{query.width(number):,} numbers."
        )
    padded = np.zeros(query.width(number))
    padded[: floats.size] = floats
    return query.part(number, place, padded)


def _scale(people: int, sources: int, sampling: TargetSampling, *, only_on_purpose: bool) -> float:
    """Return the factor from counts and sums over the arrived records of `sources` to estimates for all people."""
    return people / (sources * use_chance(sampling, only_honest=only_on_purpose))
