"""Messages in nested seals, all of one size in a task, and their batches: sizes, signed heads, scramblers' counts."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, NoReturn

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from pydantic import Field, ValidationError

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.randomness import Randomness
from hushuffle_network.fields import DocumentPart, Name
from hushuffle_network.task import SEAL, TOKEN, Key, Place, TaskDocument, canonical

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_NUMBER: Final = struct.Struct(">H")
_NO_DATA: Final = 0xFFFF
_NO_TOKEN: Final = bytes(TOKEN)
ONCE: Final = 32
"""Length in bytes of the one-time public key at the start of every message."""


class Onions:
    """Creates and opens the messages of one step of a task.

    Every seal is HPKE in base mode (X25519, HKDF-SHA256, AES-256-GCM). The inner seal is for the target; it contains
    the token, the length of the record (2 bytes, 65,535 for no record), the record, and zeros. The seal for the last
    scrambler contains the number of the target (2 bytes) and the inner seal. The seal for every other scrambler
    contains the seal for the next scrambler.

    Source: RFC 9180 (Barnes, Bhargavan, Lipp, Wood 2022), section 5.1.
    """

    def __init__(self, task: TaskDocument, number: int) -> None:
        self.task, self.number, self.step = task, number, task.step(number)
        self._targets = [_Receiver(one, task.info(number, one.name)) for one in self.step.targets]
        self._chain = [_Receiver(one, task.info(number, one.name)) for one in task.chain]

    def inner(self, target: int, token: bytes | None, record: bytes | None) -> bytes:
        """Return a text sealed for a target: a token or none, and a record or none."""
        if record is not None and len(record) > self.task.room:
            _checks.reject("record", f"of at most {self.task.room} bytes", f"<{len(record)} bytes>")
        if token is not None and len(token) != TOKEN:
            _checks.reject("token", f"of {TOKEN} bytes", f"<{len(token)} bytes>")
        length = _NO_DATA if record is None else len(record)
        padded = (record or b"").ljust(self.task.room, b"\0")
        return self._targets[target].seal((token or _NO_TOKEN) + _NUMBER.pack(length) + padded)

    def wrap(self, target: int, inner: bytes, *, after: int = -1) -> bytes:
        """Return a target's sealed text, also sealed for the scramblers after number `after` (-1: for all)."""
        message = _NUMBER.pack(target) + inner
        for receiver in reversed(self._chain[after + 1 :]):
            message = receiver.seal(message)
        return message

    def message(self, target: int, token: bytes | None, record: bytes | None) -> bytes:
        return self.wrap(target, self.inner(target, token, record))

    def dummies(self, count: int, *, hop: int, rng: Randomness) -> list[bytes]:
        """Return messages without data or token, to random targets, for the service after number `hop`."""
        return self._dummies(self.step.sampling.dummies(count, rng=rng).tolist(), hop)

    def completed(self, messages: list[bytes], *, hop: int, rng: Randomness) -> list[bytes]:
        """Return the messages of a batch, which this scrambler has opened, followed by its dummies.

        Under a cap, the targets of the messages decide which targets still receive dummies.
        """
        present = np.array([target_of(message) for message in messages if self.step.capped], dtype=np.int64)
        complete = self.step.shuffler.complete(present, draw=lambda count: self.step.sampling.dummies(count, rng=rng))
        return messages + self._dummies(complete[present.size :].tolist(), hop)

    def _dummies(self, targets: Sequence[int], hop: int) -> list[bytes]:
        return [self.wrap(target, self.inner(target, None, None), after=hop) for target in targets]

    def opened(self, message: bytes, key: X25519PrivateKey, *, hop: int) -> bytes | None:
        """Return the content of a message at a scrambler; None if the message does not open, or names no target."""
        inside = self._chain[hop].open(message, key)
        if inside is None or (hop == len(self._chain) - 1 and target_of(inside) >= len(self._targets)):
            return None
        return inside

    def taken(self, message: bytes, key: X25519PrivateKey, *, target: int) -> tuple[bytes, bytes | None]:
        """Return token and record of a message at its target; the token of a dummy is all zeros."""
        inside = self._targets[target].open(message, key) if len(message) == self.task.inner else None
        if inside is None:
            fail("a message was not sealed for this target in this step of this task, or is damaged.")
        (length,) = _NUMBER.unpack_from(inside, TOKEN)
        if length != _NO_DATA and length > self.task.room:
            fail("a message has no valid length of its record.")
        start = TOKEN + _NUMBER.size
        return inside[:TOKEN], None if length == _NO_DATA else inside[start : start + length]


class _Receiver:
    def __init__(self, place: Place, info: bytes) -> None:
        self._key, self._info = X25519PublicKey.from_public_bytes(bytes.fromhex(place.key)), info

    def seal(self, content: bytes) -> bytes:
        return _SUITE.encrypt(content, self._key, info=self._info)

    def open(self, sealed: bytes, key: X25519PrivateKey) -> bytes | None:
        try:
            return _SUITE.decrypt(sealed, key, info=self._info)
        except (InvalidTag, ValueError):
            return None


def is_token(token: bytes) -> bool:
    """Return whether a token is present: a dummy has zeros in its place."""
    return token != _NO_TOKEN


def target_of(message: bytes) -> int:
    """Return the target's number in a message that the last scrambler has opened."""
    return int(_NUMBER.unpack_from(message)[0])


def without_target(message: bytes) -> bytes:
    return message[_NUMBER.size :]


def by_target(messages: Iterable[bytes], targets: int) -> list[list[bytes]]:
    """Return one list of messages for each target, in order, from messages that the last scrambler has opened."""
    messages_of: list[list[bytes]] = [[] for _ in range(targets)]
    for message in messages:
        messages_of[target_of(message)].append(without_target(message))
    return messages_of


assert SEAL == ONCE + 16


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
    about: dict[str, Any] = {"task": task.id.hex(), "step": step, "batch": batch, "trail": trail, "closed": closed}
    size, digest = len(messages[0]) if messages else 0, hashlib.sha256(b"".join(messages)).hexdigest()
    return Head(**about, sender=sender, receiver=receiver, messages=len(messages), size=size, digest=digest)


def rest_of_head(first: bytes) -> int:
    """Return how many bytes of head and signature follow the first `FIRST` bytes of a body."""
    length = _LENGTH.unpack(first)[0] if len(first) == FIRST else _MOST_HEAD + 1
    if length > _MOST_HEAD:
        _no_batch()
    return int(length) + _SIGNED


def text_of_head(start: bytes) -> bytes:
    """Return the JSON text of the head at the start of a body."""
    return start[FIRST : FIRST + rest_of_head(start[:FIRST]) - _SIGNED]


def signed_head(start: bytes, task: TaskDocument, *, senders: Sequence[Place], receiver: str) -> Head:
    """Return the head at the start of a body; refuse a head that its sender did not sign for this receiver."""
    text = text_of_head(start)
    signature = start[FIRST + len(text) :][:_SIGNED]
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
