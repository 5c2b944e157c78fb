"""What targets tell the result, and whether it adds up: no scrambler is believed, and who lost something is named."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NoReturn

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from hushuffle.errors import DataError
from hushuffle.network.nodes.document import utc_text
from hushuffle.network.nodes.result import StepResult
from hushuffle.network.phones.batches import Head, Link, check_trail
from hushuffle.network.phones.promise import TaskPromise
from hushuffle.network.phones.rounds import NEXT
from hushuffle.network.phones.task import TaskDocument, canonical
from hushuffle.queries.query import Floats

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_INFO: Final = b"hushuffle part 1|"
_Count = Annotated[int, Field(ge=0, le=10**9)]
_AROUND, _COUNTED, _LINK = 256, 128, 384
"""Bytes of JSON, at most: around everything, around the counts of a batch, of what one scrambler says."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Counted(_Part):
    """What one target saw of one batch: messages, valid tokens among them, and what the scramblers said, signed."""

    batch: _Count
    messages: _Count
    valid: _Count
    trail: tuple[Link, ...]


class Part(_Part):
    """What a target tells: of each batch, how many there were to be (None: nobody said), and its numbers."""

    batches: tuple[Counted, ...]
    closed: _Count | None
    numbers: str

    @field_validator("numbers")
    @classmethod
    def _readable(cls, numbers: str) -> str:
        if len(base64.b64decode(numbers, validate=True)) % 8:
            message = "must be numbers of 8 bytes"
            raise ValueError(message)
        return numbers

    @property
    def floats(self) -> Floats:
        """The numbers."""
        return np.frombuffer(base64.b64decode(self.numbers), dtype="<f8").astype(np.float64)


def sealed_part(document: TaskDocument, sender: str, content: Mapping[str, Any]) -> bytes:
    """Return what a target tells, sealed for the result."""
    key = X25519PublicKey.from_public_bytes(bytes.fromhex(document.result.key))
    return _SUITE.encrypt(canonical(content), key, info=_INFO + document.id + sender.encode())


def opened_part(document: TaskDocument, sender: str, sealed: bytes, key: X25519PrivateKey) -> Part:
    """Return what a target told.

    Raises:
        DataError: it was not sealed for this result by this target, or says nothing that can be.
    """
    try:
        return Part.model_validate_json(_SUITE.decrypt(sealed, key, info=_INFO + document.id + sender.encode()))
    except (InvalidTag, ValueError, ValidationError):
        message = f"what {sender} told cannot be read."
        raise DataError(message) from None


def largest_part(promise: TaskPromise, document: TaskDocument) -> int:
    """Return how many bytes a target tells at most: its numbers, and what was counted of each batch."""
    numbers = max(promise.task.width(number) for number in range(1, len(document.steps) + 1))
    batches = 2 * max(step.batches for step in document.steps) + 16  # more than planned may come at the same time
    return _AROUND + 11 * numbers + batches * (_COUNTED + _LINK * len(document.chain))


@dataclass(frozen=True, kw_only=True)
class Reckoning:
    """What came of a step: valid tokens of the `sources` that scramblers had, all messages, lost batches."""

    valid: int
    sources: int
    messages: int
    lost: int


def reckon(document: TaskDocument, number: int, parts: Sequence[Part]) -> Reckoning:
    """Return what came of a step, from all of its targets.

    For each batch that is there: what all scramblers say is signed and the same at every target; the messages of all
    targets together are as many as the last one has sent; valid tokens are `min_batch` or more, and no more than there
    were sources. A scrambler that puts messages of its own in the place of others has no tokens for them.

    Raises:
        DataError: that is not so; the message says between whom. Nothing is published then.
    """
    step = document.step(number)
    said = {part.closed for part in parts} - {None}
    if len(said) > 1:
        _fail(document, number, "targets were told different numbers of batches")
    batches = sorted({one.batch for part in parts for one in part.batches})
    found = [_batch(document, number, batch, parts) for batch in batches]
    expected = max((one for one in said if one is not None), default=len(batches))
    if len(batches) > expected:
        _fail(document, number, f"{len(batches)} batches came, {expected} were said to be all")
    valid, sources, messages = (sum(one[place] for one in found) for place in range(3))
    if valid < document.least * step.sources:
        share = f"fewer than the share of {document.least:g} that the task asks for"
        _fail(document, number, f"only {valid:,} of {step.sources:,} sources came through, {share}")
    return Reckoning(valid=valid, sources=sources, messages=messages, lost=expected - len(batches))


def _batch(document: TaskDocument, number: int, batch: int, parts: Sequence[Part]) -> tuple[int, int, int]:
    step, where = document.step(number), f"batch {batch}"
    counted = [one for part in parts for one in part.batches if one.batch == batch]
    if len(counted) != len(parts):
        _fail(document, number, f"{where} came to {len(counted)} of {len(parts)} targets")
    trails = {one.trail for one in counted}
    if len(trails) > 1:
        _fail(document, number, f"of {where} targets were told different counts")
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
        _fail(document, number, f"{where}: {last.name} has sent {last.sent:,} messages, targets have {messages:,}")
    if not step.min_batch <= valid <= last.sources:
        words = f"{valid:,} valid tokens for {last.sources:,} sources, at least {step.min_batch:,} are asked for"
        _fail(document, number, f"{where}: {words}; messages were replaced, or sent without a token")
    return valid, last.sources, messages


def _fail(document: TaskDocument, number: int, why: str) -> NoReturn:
    message = f"{document.step(number).name!r}: {why}. What arrived may have been chosen: nothing is published."
    raise DataError(message)


def published(document: TaskDocument, promise: TaskPromise, parts: Mapping[str, Part]) -> dict[str, Any]:
    """Return the content of result.json: as the result of any run, with what came through.

    Raises:
        DataError: a target told nothing, or it does not add up.
    """
    query, answers = promise.task, list[dict[str, Any]]()
    for number, step in enumerate(document.steps, 1):
        missing = [one.name for one in step.targets if one.name not in parts]
        if missing:
            _fail(document, number, f"no word from {', '.join(missing[:5])}")
        told = [parts[one.name] for one in step.targets]
        came = reckon(document, number, told)
        combined = query.combine(number, [_read(promise, number, place, part) for place, part in enumerate(told)])
        result = StepResult(
            name=step.name,
            combined=combined,
            people=document.people,
            planned=step.sources,
            sources=came.valid,
            messages=came.messages,
            lost_batches=came.lost,
            sampling=step.sampling,
            only_on_purpose=step.only_on_purpose,
        )
        counts = {"sources": came.valid, "planned": step.sources, "lost_batches": came.lost}
        answer = query.answer(number, combined, counts, result.scale)
        answers.append(answer | {"without_token": came.sources - came.valid})
    about = {"schema_version": 1, "run": document.id.hex(), "people": document.people, "cautions": [_caution(document)]}
    if document.round is not None and document.round.number < document.round.rounds:
        about[NEXT] = utc_text(dt.datetime.now(dt.UTC))
    return {**about, query.answers: answers}


def _read(promise: TaskPromise, number: int, place: int, part: Part) -> Floats:
    query, floats = promise.task, part.floats
    if floats.size > query.width(number):
        message = "what a target told is not the part of the result that it should be."
        raise DataError(message)
    padded = np.zeros(query.width(number))
    padded[: floats.size] = floats
    return query.part(number, place, padded)


def _caution(document: TaskDocument) -> str:
    count = len(document.chain)
    if count == 1:
        return "All messages went through one scrambler: it knows which message went to which target."
    return (
        f"All messages went through {count} scramblers in a row. One of them must keep to the rules: all together know "
        "which message went to which target."
    )
