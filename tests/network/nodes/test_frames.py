"""Frames: every one comes back as it went, and nothing else becomes one."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.network.nodes.connections import (
    CONTROL,
    HEAD,
    LARGEST,
    SMALLEST,
    VERSION,
    Control,
    Kind,
    Layout,
    Message,
    Reason,
)

LAYOUT = Layout(size=256)
WORD, HALF = st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1)
CONTROLS = [kind for kind in Kind if kind is not Kind.MESSAGE]


@given(step=HALF, slot=WORD, target=WORD, sealed=st.binary(min_size=LAYOUT.sealed, max_size=LAYOUT.sealed))
def test_messages_come_back(step: int, slot: int, target: int, sealed: bytes) -> None:
    message = Message(step, slot, target, sealed)
    packed = LAYOUT.pack(message)
    assert len(packed) == 256
    assert LAYOUT.left(packed[:HEAD]) == 256 - HEAD
    assert LAYOUT.unpack(packed[:HEAD], packed[HEAD:]) == message


@given(
    kind=st.sampled_from(CONTROLS),
    step=HALF,
    reason=st.sampled_from(list(Reason)),
    numbers=st.lists(st.integers(0, 2**64 - 1), max_size=5),
)
def test_control_frames_come_back(kind: Kind, step: int, reason: Reason, numbers: list[int]) -> None:
    packed = LAYOUT.pack(Control(kind, step, reason, tuple(numbers)))
    assert len(packed) == CONTROL
    assert LAYOUT.left(packed[:HEAD]) == CONTROL - HEAD
    padded = (*numbers, 0, 0, 0, 0, 0)[:5]
    assert LAYOUT.unpack(packed[:HEAD], packed[HEAD:]) == Control(kind, step, reason, padded)


@given(head=st.binary(min_size=HEAD, max_size=HEAD), rest=st.binary(min_size=256, max_size=256), known=st.booleans())
def test_random_bytes_are_a_frame_or_refused(head: bytes, rest: bytes, known: bool) -> None:
    if known:
        head = bytes([VERSION, 1 + head[1] % len(Kind)]) + head[2:]
    with suppress(DataError):
        frame = LAYOUT.unpack(head, rest[: LAYOUT.left(head)])
        assert isinstance(frame, Message | Control)
        packed = LAYOUT.pack(frame)
        assert LAYOUT.unpack(packed[:HEAD], packed[HEAD:]) == frame


@pytest.mark.parametrize("start", [b"\0\1", b"\1\1", b"\2\0", b"\2\x63", b"\2\xff"])
def test_other_versions_and_kinds_are_refused(start: bytes) -> None:
    with pytest.raises(DataError, match="not a frame of this protocol"):
        LAYOUT.left(start.ljust(HEAD, b"\0"))


def test_unknown_reasons_are_refused() -> None:
    packed = bytearray(LAYOUT.pack(Control(Kind.REFUSED, 1, Reason.SLOT)))
    packed[HEAD] = 200
    with pytest.raises(DataError, match="unknown reason"):
        LAYOUT.unpack(bytes(packed[:HEAD]), bytes(packed[HEAD:]))


def test_messages_have_one_size() -> None:
    for size in (SMALLEST, 1024, LARGEST):
        layout = Layout(size=size)
        assert len(layout.pack(Message(1, 0, 0, bytes(layout.sealed)))) == size
        with pytest.raises(InvalidInputError, match=f"`sealed` must be of {size - HEAD} bytes") as caught:
            layout.pack(Message(1, 0, 0, b"secret"))
        assert "secret" not in str(caught.value)
    for size in (SMALLEST - 1, LARGEST + 1):
        with pytest.raises(InvalidInputError, match="`size` must be an integer from 256 to 16384"):
            Layout(size=size)


def test_a_greeting_is_the_whole_digest() -> None:
    digest = bytes(range(32))
    layout = Layout(size=SMALLEST, digest=digest)
    packed = layout.pack(layout.hello)
    assert len(packed) == CONTROL
    assert digest in packed
    assert layout.unpack(packed[:HEAD], packed[HEAD:]) == layout.hello
    assert Layout(size=SMALLEST, digest=digest[:-1] + b"x").hello != layout.hello
    with pytest.raises(InvalidInputError, match="`digest` must be of 32 bytes"):
        Layout(size=SMALLEST, digest=digest[:4])


def test_reasons_in_words() -> None:
    assert Reason.BELOW_MINIMUM.words == "below minimum"
    assert len({reason.words for reason in Reason}) == len(Reason)
