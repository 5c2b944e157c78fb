"""Seals against HPKE written out from the standard; what a seal is bound to; what its size tells (nothing)."""

from __future__ import annotations

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.network.nodes.seals import KEY, OVERHEAD, Once, PublicSealKey, SealKey, Seals
from oracles import hpke

KEY_OF_COMPUTE = SealKey.of("11" * 32)
DIGEST = bytes(range(32))
SEALS = Seals(digest=DIGEST, step=2, size=240)


def info(digest: bytes = DIGEST, step: int = 2, target: str = "compute-1") -> bytes:
    return b"hushuffle seal 1|" + digest + step.to_bytes(2, "little") + target.encode()


def test_the_oracle_gives_the_numbers_of_the_standard() -> None:
    # RFC 9180, appendix A.1.1: X25519, HKDF-SHA256, AES-128-GCM, the first encryption.
    one_time = "52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736"
    receiver = "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8"
    shared = "fe0e18c9f024ce43799ae393c7e8fe8fce9d218875e8227b0187c04e7d2ea1fc"
    said = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
    text = bytes.fromhex("4265617574792069732074727574682c20747275746820626561757479")
    key, nonce = hpke.schedule(bytes.fromhex(shared), said, 16)
    assert (key.hex(), nonce.hex()) == ("4531685d41d65f03dc48f6b8302c05b0", "56d890e5accaaf011cff4b7d")
    own, theirs = (X25519PrivateKey.from_private_bytes(bytes.fromhex(one)) for one in (one_time, receiver))
    sealed = hpke.seal(text, theirs.public_key(), info=said, extra=b"Count-0", one_time=own, key_size=16)
    assert sealed[:32].hex() == "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431"
    assert sealed[32:].hex() == (
        "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a"
    )
    assert hpke.unseal(sealed, theirs, info=said, extra=b"Count-0", key_size=16) == text


@given(content=st.one_of(st.none(), st.binary(max_size=240 - OVERHEAD)))
def test_seals_are_hpke_both_ways_and_all_of_one_size(content: bytes | None) -> None:
    sealed = SEALS.seal(content, KEY_OF_COMPUTE.public, target="compute-1")
    length = 0xFFFF if content is None else len(content)
    padded = length.to_bytes(2, "little") + (content or b"").ljust(SEALS.room, b"\0")
    assert len(sealed) == 240
    assert hpke.unseal(sealed, KEY_OF_COMPUTE.key, info=info()) == padded
    theirs = hpke.seal(padded, KEY_OF_COMPUTE.public.key, info=info())
    assert SEALS.open(theirs, KEY_OF_COMPUTE, target="compute-1") == content


def test_a_seal_opens_for_its_run_step_target_and_key_alone() -> None:
    sealed = SEALS.seal(b"a record", KEY_OF_COMPUTE.public, target="compute-1")
    others = [
        (Seals(digest=bytes(32), step=2, size=240), KEY_OF_COMPUTE, "compute-1"),
        (Seals(digest=DIGEST, step=1, size=240), KEY_OF_COMPUTE, "compute-1"),
        (SEALS, KEY_OF_COMPUTE, "compute-2"),
        (SEALS, SealKey.generate(), "compute-1"),
    ]
    for seals, key, target in others:
        with pytest.raises(DataError, match="not sealed for this node in this step of this run"):
            seals.open(sealed, key, target=target)
    for said in (info(digest=bytes(32)), info(step=1), info(target="compute-2")):
        with pytest.raises(InvalidTag):
            hpke.unseal(sealed, KEY_OF_COMPUTE.key, info=said)


def test_every_flipped_bit_is_noticed() -> None:
    sealed = SEALS.seal(None, KEY_OF_COMPUTE.public, target="compute-1")
    for place in range(len(sealed) * 8):
        if place == KEY * 8 - 1:
            continue  # X25519 ignores the highest bit of a public key; the standard binds the key as it was sent
        changed = bytearray(sealed)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(DataError):
            SEALS.open(bytes(changed), KEY_OF_COMPUTE, target="compute-1")
    changed = bytearray(sealed)
    changed[KEY - 1] ^= 128
    with pytest.raises(DataError):
        SEALS.open(bytes(changed), KEY_OF_COMPUTE, target="compute-1")


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(junk: bytes) -> None:
    with pytest.raises(DataError):
        SEALS.open(junk, KEY_OF_COMPUTE, target="compute-1")


@pytest.mark.parametrize("size", [0, 1, 2, 100, 191, 193])
def test_a_good_seal_of_another_size_is_refused(size: int) -> None:
    for start in (b"\xff\xff", b"\0\0"):
        sealed = hpke.seal(start.ljust(size, b"\0")[:size], KEY_OF_COMPUTE.public.key, info=info())
        with pytest.raises(DataError, match="does not have the size of this run's messages"):
            SEALS.open(sealed, KEY_OF_COMPUTE, target="compute-1")


def test_a_length_that_does_not_fit_is_refused() -> None:
    padded = (SEALS.room + 1).to_bytes(2, "little").ljust(SEALS.room + 2, b"\0")
    with pytest.raises(DataError, match="does not have the size of this run's messages"):
        SEALS.open(hpke.seal(padded, KEY_OF_COMPUTE.public.key, info=info()), KEY_OF_COMPUTE, target="compute-1")


def test_contents_that_are_too_long_are_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInputError, match=r"at most 190 bytes.*got content=<191 bytes>") as caught:
        SEALS.seal(b"secret!" * 27 + b"!!", KEY_OF_COMPUTE.public, target="compute-1")
    assert "secret" not in str(caught.value)


def test_two_seals_of_the_same_content_have_nothing_in_common() -> None:
    one, other = (SEALS.seal(b"x", KEY_OF_COMPUTE.public, target="compute-1") for _ in range(2))
    # Of 240 random bytes more than 20 agree by chance with probability below 1e-19.
    assert sum(a == b for a, b in zip(one, other, strict=True)) <= 20


def test_keys_as_text() -> None:
    key = SealKey.generate()
    assert SealKey.of(f"{key.text}\n").public.text == key.public.text == PublicSealKey.of(key.public.text).text
    assert key.text not in repr(key)
    for wrong in ("", "11" * 31, "zz" * 32):
        with pytest.raises(DataError, match="a secret seal key must be 64 hexadecimal digits") as caught:
            SealKey.of(wrong)
        assert not wrong or wrong not in str(caught.value)
        with pytest.raises(DataError, match="a public seal key must be 64 hexadecimal digits"):
            PublicSealKey.of(wrong)


@pytest.mark.parametrize("text", ["00" * 32, "01" + "00" * 31])
def test_public_keys_that_hide_nothing_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="nothing can be sealed for compute-1"):
        SEALS.seal(b"x", PublicSealKey.of(text), target="compute-1")


def test_once_remembers() -> None:
    once, seals = Once(), [bytes([number]) * 64 for number in range(3)]
    assert [once.first(one) for one in (*seals, *seals)] == [True] * 3 + [False] * 3
    assert seals[0] in once
    assert b"\7" * 64 not in once
