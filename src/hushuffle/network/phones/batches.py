"""Batches of messages between services: their sizes, a signed head, the messages, and the counts of every scrambler."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Final, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field, ValidationError

from hushuffle._checks import fail
from hushuffle.network.nodes.document import DocumentPart
from hushuffle.network.phones.task import Key, Name, Place, TaskDocument, canonical

_LENGTH: Final = struct.Struct(">I")
_MOST_HEAD: Final = 8192
_SIGNED: Final = 64
_BATCH, _LINK, _RECEIPT = b"hushuffle batch 1|", b"hushuffle count 1|", b"hushuffle receipt 1|"
_LOST: Final = b"hushuffle lost 1|"
_CAME: Final = b"hushuffle came 1|"
_HEX: Final = re.compile("[0-9a-f]{128}")
_Signature = Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]
_Count = Annotated[int, Field(ge=0, le=10**9)]
FIRST: Final = _LENGTH.size
"""Length in bytes of the field that states the length of the head."""
AROUND: Final = FIRST + _MOST_HEAD + _SIGNED
"""Largest number of bytes that a request has in addition to the messages of its batch."""
_MOST_WAITING: Final = 20
"""Largest number of batches that wait. If `least` is nearly `batch`, a few messages may remain at the end."""


class Link(DocumentPart):
    """One scrambler's signed counts for a batch: received messages, their sources, and sent messages."""

    name: Name
    came: _Count
    sources: _Count
    sent: _Count
    signature: _Signature

    @staticmethod
    def text(task: bytes, step: int, batch: int, name: str, came: int, sources: int, sent: int) -> bytes:
        fields = {"task": task.hex(), "step": step, "batch": batch, "name": name}
        return _LINK + canonical({**fields, "came": came, "sources": sources, "sent": sent})

    @classmethod
    def signed(
        cls, key: Ed25519PrivateKey, task: bytes, step: int, batch: int, name: str, came: int, sources: int, sent: int
    ) -> Link:
        signature = key.sign(cls.text(task, step, batch, name, came, sources, sent)).hex()
        return cls(name=name, came=came, sources=sources, sent=sent, signature=signature)

    def by(self, place: Place, task: bytes, step: int, batch: int) -> bool:
        """Return whether this scrambler signed these counts for this batch."""
        text = self.text(task, step, batch, self.name, self.came, self.sources, self.sent)
        return self.name == place.name and signed_by(place, text, bytes.fromhex(self.signature))


class Came(DocumentPart):
    """A receiver's signed state of a step: its highest batch number, and whether it has the total number of batches.

    `nonce`: chosen by the scrambler that asks, so that an older answer is not accepted for a new query.
    """

    task: Key
    step: Annotated[int, Field(ge=1, le=1000)]
    nonce: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    highest: _Count
    closed: bool
    signature: str = ""

    @property
    def _text(self) -> bytes:
        return _CAME + canonical(self.model_dump(exclude={"signature"}))

    def signed(self, key: Ed25519PrivateKey) -> Came:
        return self.model_copy(update={"signature": key.sign(self._text).hex()})

    def by(self, place: Place, task: bytes, step: int, nonce: str) -> bool:
        """Return whether this receiver signed this state, for the query with this nonce."""
        matches = (self.task, self.step, self.nonce) == (task.hex(), step, nonce)
        signed = matches and _HEX.fullmatch(self.signature) is not None
        return signed and signed_by(place, self._text, bytes.fromhex(self.signature))


class Head(DocumentPart):
    """The head of a batch. With `closed`, it states that the step has exactly `batch` batches.

    `trail`: the counts of each scrambler that the batch has passed, in the order of the chain.
    `messages`: the number of messages that follow, each of `size` bytes; `digest`: SHA-256 of all these messages.
    """

    task: Key
    step: Annotated[int, Field(ge=1, le=1000)]
    batch: _Count
    sender: Name
    receiver: Name
    messages: _Count = 0
    size: _Count = 0
    digest: Key
    trail: tuple[Link, ...] = ()
    closed: bool = False

    @property
    def place(self) -> int:
        """The number under which a receiver stores the batch: 0 for the head that closes a step."""
        return 0 if self.closed else self.batch

    @property
    def sources(self) -> int:
        """The number of people behind the batch, as the last scrambler reports it."""
        return self.trail[-1].sources if self.trail else 0


def signed_by(place: Place, text: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(place.sign)).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def pack(head: Head, messages: Sequence[bytes], key: Ed25519PrivateKey) -> bytes:
    """Return the body of a request: length of the head (4 bytes), head (JSON), signature (64 bytes), messages."""
    text = canonical(head.model_dump(mode="json"))
    return b"".join((_LENGTH.pack(len(text)), text, key.sign(_BATCH + text), *messages))


def head_of(
    task: TaskDocument,
    step: int,
    batch: int,
    sender: str,
    receiver: str,
    messages: Sequence[bytes] = (),
    *,
    trail: tuple[Link, ...] = (),
    closed: bool = False,
) -> Head:
    digest = hashlib.sha256(b"".join(messages)).hexdigest()
    size = len(messages[0]) if messages else 0
    return Head(
        task=task.id.hex(),
        step=step,
        batch=batch,
        sender=sender,
        receiver=receiver,
        messages=len(messages),
        size=size,
        digest=digest,
        trail=trail,
        closed=closed,
    )


def rest_of_head(first: bytes) -> int:
    """Return how many bytes of head and signature follow the first `FIRST` bytes of a body."""
    length = _LENGTH.unpack(first)[0] if len(first) == FIRST else _MOST_HEAD + 1
    if length > _MOST_HEAD:
        _no_batch()
    return int(length) + _SIGNED


def signed_head(start: bytes, task: TaskDocument, *, senders: Sequence[Place], receiver: str) -> Head:
    """Return the head at the start of a body; refuse a head that its sender did not sign for this receiver."""
    end = FIRST + rest_of_head(start[:FIRST])
    text, signature = start[FIRST : end - _SIGNED], start[end - _SIGNED : end]
    try:
        head = Head.model_validate_json(text)
    except ValidationError:
        _no_batch()
    sender = next((one for one in senders if one.name == head.sender), None)
    if sender is None or (head.task, head.receiver) != (task.id.hex(), receiver):
        fail("a batch is of another task, of another sender, or for another receiver.")
    if not signed_by(sender, _BATCH + text, signature):
        fail(f"a batch was not signed by {sender.name}.")
    if head.step > len(task.steps):
        _no_batch()
    return head


def messages_of(body: bytes, head: Head, *, size: int | None) -> list[bytes]:
    """Return the messages of a body, checked against its head; `size`: bytes of each, None for the size in the head."""
    rest = body[FIRST + rest_of_head(body[:FIRST]) :]
    size = head.size if size is None else size
    sized = head.messages == 0 or head.size == size > 0
    if not sized or len(rest) != head.messages * head.size or hashlib.sha256(rest).hexdigest() != head.digest:
        _no_batch()
    return [rest[start : start + size] for start in range(0, len(rest), max(size, 1))]


def _no_batch() -> NoReturn:
    fail("the request contains no batch of messages, or is damaged.")


def receipt(body: bytes, key: Ed25519PrivateKey) -> bytes:
    """Return the signature with which a receiver confirms that it has stored a batch."""
    return key.sign(_RECEIPT + hashlib.sha256(body).digest())


def receipted(body: bytes, signature: bytes, receiver: Place) -> bool:
    return signed_by(receiver, _RECEIPT + hashlib.sha256(body).digest(), signature[:_SIGNED])


def lost_answer(body: bytes, lost: Sequence[int], key: Ed25519PrivateKey) -> bytes:
    """Return the result's answer to a target's counts: a receipt, and the signed list of lost batches."""
    text = canonical({"lost": list(lost)})
    return receipt(body, key) + key.sign(_LOST + hashlib.sha256(body).digest() + text) + text


def lost_in(answer: bytes, body: bytes, result: Place) -> frozenset[int]:
    """Return the batches that the result declares lost, in its signed answer to a target's request `body`."""
    signature, text = answer[_SIGNED : 2 * _SIGNED], answer[2 * _SIGNED :]
    lost: frozenset[int] | None = None
    if signed_by(result, _LOST + hashlib.sha256(body).digest() + text, signature):
        with suppress(ValueError, LookupError, TypeError):
            lost = frozenset(int(one) for one in json.loads(text)["lost"])
    if lost is None:
        fail("the result's list of lost batches is not signed.")
    return lost


def check_trail(task: TaskDocument, head: Head, *, hops: int) -> None:
    """Refuse a batch, after `hops` scramblers, whose counts do not add up; the message names the scramblers."""
    step, chain = task.step(head.step), task.chain[:hops]
    if len(head.trail) != hops:
        fail(f"a batch passed {hops} scramblers, but has the counts of {len(head.trail)}.")
    before = None
    for place, link in zip(chain, head.trail, strict=True):
        if not link.by(place, task.id, head.step, head.batch):
            fail(f"the counts of {place.name} lack its signature.")
        first = before is None
        if not step.min_batch <= link.sources <= step.batch or (first and link.came != link.sources):
            fail(f"{place.name} reports {link.sources:,} sources for {link.came:,} messages.")
        if before is not None and (link.came, link.sources) != (before.sent, before.sources):
            fail(
                f"between {before.name} and {place.name}: {before.sent:,} messages of {before.sources:,} sources were "
                f"sent, {link.came:,} of {link.sources:,} arrived."
            )
        if link.sent != link.came + step.dummies:
            fail(
                f"{place.name} got {link.came:,} messages, sent {link.sent:,}, and should add {step.dummies:,} dummies."
            )
        before = link


def held_back(batch: int, least: int) -> int:
    """Return how many messages must remain after a batch of `batch` messages is sent before the end.

    Every number of messages from this number on can be divided into batches of `least` to `batch` messages: k batches
    contain k·least to k·batch messages, and if (k + 1)·least <= k·batch + 1, no number lies between the ranges of k and
    of k + 1 batches. The result is 0 if `least` equals `batch`, since holding messages back then does not help.

    >>> held_back(500, 400), held_back(8, 8), held_back(8, 1)
    (1600, 0, 0)
    """
    if batch == least:
        return 0
    return min(-(-(least - 1) // (batch - least)), _MOST_WAITING) * least


def last_sizes(waiting: int, batch: int, least: int) -> list[int]:
    """Return the sizes of the last batches, for `waiting` messages when no further message is expected.

    Each batch has `least` to `batch` messages, and there are as few batches as possible. The remainder, fewer than
    `least` messages, is deleted; there is no remainder if `waiting` is at least `held_back` (except at the bound of
    `held_back`).

    >>> last_sizes(1966, 500, 400), last_sizes(900, 500, 400), last_sizes(700, 500, 400), last_sizes(399, 500, 400)
    ([492, 492, 491, 491], [450, 450], [500], [])
    """
    count = -(-waiting // batch)
    if count * least > waiting:  # `count` batches would be too small, and fewer cannot hold all messages
        return [batch] * (count - 1)
    return [waiting // count + (place < waiting % count) for place in range(count)]
