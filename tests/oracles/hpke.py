"""HPKE in base mode (RFC 9180, sections 4, 5.1 and 5.2) from X25519, HMAC-SHA256 and AES-GCM; one message a context."""

from __future__ import annotations

import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_KEM = b"KEM" + (0x0020).to_bytes(2, "big")
_AEADS = {16: 0x0001, 32: 0x0002}  # AES-128-GCM, AES-256-GCM by the bytes of their keys


def _extract(salt: bytes, material: bytes) -> bytes:
    return hmac.new(salt or bytes(32), material, hashlib.sha256).digest()


def _expand(key: bytes, info: bytes, size: int) -> bytes:
    blocks, block, number = b"", b"", 1
    while len(blocks) < size:
        block = hmac.new(key, block + info + bytes([number]), hashlib.sha256).digest()
        blocks, number = blocks + block, number + 1
    return blocks[:size]


def _labeled_extract(suite: bytes, salt: bytes, label: bytes, material: bytes) -> bytes:
    return _extract(salt, b"HPKE-v1" + suite + label + material)


def _labeled_expand(suite: bytes, key: bytes, label: bytes, info: bytes, size: int) -> bytes:
    return _expand(key, size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, size)


def public(key: X25519PublicKey) -> bytes:
    """Return the bytes of a public key."""
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def _shared_secret(mine: X25519PrivateKey, theirs: X25519PublicKey, sent: bytes, receiver: bytes) -> bytes:
    secret = _labeled_extract(_KEM, b"", b"eae_prk", mine.exchange(theirs))
    return _labeled_expand(_KEM, secret, b"shared_secret", sent + receiver, 32)


def schedule(shared: bytes, info: bytes, key_size: int) -> tuple[bytes, bytes]:
    """Return key and base nonce."""
    suite = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (0x0020, 0x0001, _AEADS[key_size]))
    names = _labeled_extract(suite, b"", b"psk_id_hash", b"") + _labeled_extract(suite, b"", b"info_hash", info)
    context = b"\0" + names  # mode 0: base
    secret = _labeled_extract(suite, shared, b"secret", b"")
    key = _labeled_expand(suite, secret, b"key", context, key_size)
    return key, _labeled_expand(suite, secret, b"base_nonce", context, 12)


def seal(
    text: bytes,
    receiver: X25519PublicKey,
    *,
    info: bytes,
    extra: bytes = b"",
    one_time: X25519PrivateKey | None = None,
    key_size: int = 32,
) -> bytes:
    """Return the one-time public key and the sealed text behind it."""
    own = one_time or X25519PrivateKey.generate()
    sent = public(own.public_key())
    key, nonce = schedule(_shared_secret(own, receiver, sent, public(receiver)), info, key_size)
    return sent + AESGCM(key).encrypt(nonce, text, extra)


def unseal(sealed: bytes, receiver: X25519PrivateKey, *, info: bytes, extra: bytes = b"", key_size: int = 32) -> bytes:
    """Return the text; raises InvalidTag where something was changed."""
    sent, text = sealed[:32], sealed[32:]
    theirs = X25519PublicKey.from_public_bytes(sent)
    shared = _shared_secret(receiver, theirs, sent, public(receiver.public_key()))
    key, nonce = schedule(shared, info, key_size)
    return AESGCM(key).decrypt(nonce, text, extra)
