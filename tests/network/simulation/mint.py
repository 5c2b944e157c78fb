"""Every seal of a simulation, who made it and what is in it: the simulation reads what nobody else can."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from hushuffle.errors import DataError
from hushuffle.network.nodes.seals import KEY, OVERHEAD, PublicSealKey, SealKey, Seals
from network.simulation.hosts import HERE, Process

_TAG: Final = 16
_LENGTH: Final = struct.Struct("<H")
_NO_DATA: Final = 0xFFFF


@dataclass(frozen=True, kw_only=True)
class Made:
    """One seal."""

    number: int
    by: Process | None
    step: int
    target: str
    content: bytes | None


class Mint:
    """Makes seals without cryptography, repeatable and fast; or, if `real`, passes on to the real ones.

    What a seal is bound to is bound here too: another run, step, target or key does not open it.
    """

    def __init__(self, seed: int, *, real: bool) -> None:
        self._seed, self._real = seed, real
        self.made: dict[bytes, Made] = {}
        self.lies: dict[str, Callable[[int, bytes | None], bytes | None]] = {}
        """By the name of who lies: what it seals instead."""
        self._texts: dict[int, tuple[SealKey, str]] = {}

    def of(self, sealed: bytes) -> Made | None:
        """Return what is known of a seal."""
        return self.made.get(sealed[:KEY])

    @contextmanager
    def working(self) -> Iterator[None]:
        """Make all seals here."""
        seal, unseal = Seals.seal, Seals.open
        mint = self

        def recorded(seals: Seals, content: bytes | None, key: PublicSealKey, *, target: str) -> bytes:
            process = HERE.get()
            lie = mint.lies.get(process.name) if process is not None else None
            told = content if lie is None else lie(seals.step, content)
            sealed = (seal if mint._real else mint._seal)(seals, told, key, target=target)
            number = len(mint.made)
            mint.made[sealed[:KEY]] = Made(number=number, by=process, step=seals.step, target=target, content=told)
            return sealed

        fake: dict[str, Any] = {"seal": recorded} | ({} if self._real else {"open": self._opener()})
        for name, function in fake.items():
            setattr(Seals, name, function)
        try:
            yield
        finally:
            Seals.seal, Seals.open = seal, unseal  # type: ignore[method-assign]

    def _seal(self, seals: Seals, content: bytes | None, key: PublicSealKey, *, target: str) -> bytes:
        one_time = hashlib.blake2b(f"{self._seed} {len(self.made)}".encode(), digest_size=KEY).digest()
        length = _NO_DATA if content is None else len(content)
        body = _LENGTH.pack(length) + (content or b"").ljust(seals.size - OVERHEAD, b"\0")
        return one_time + _tag(one_time + body, seals, key.text, target) + body

    def _opener(self) -> Any:
        def unseal(seals: Seals, sealed: bytes, key: SealKey, *, target: str) -> bytes | None:
            one_time, tag, body = sealed[:KEY], sealed[KEY : KEY + _TAG], sealed[KEY + _TAG :]
            if len(sealed) != seals.size or tag != _tag(one_time + body, seals, self._public(key), target):
                message = "a message was not sealed for this node in this step of this run, or is damaged."
                raise DataError(message)
            length: int = _LENGTH.unpack_from(body)[0]
            return None if length == _NO_DATA else body[_LENGTH.size : _LENGTH.size + length]

        return unseal

    def _public(self, key: SealKey) -> str:
        if id(key) not in self._texts:
            self._texts[id(key)] = key, key.public.text  # kept, so that its number stays its own
        return self._texts[id(key)][1]


def _tag(text: bytes, seals: Seals, key: str, target: str) -> bytes:
    bound = b"|".join((seals.digest, _LENGTH.pack(seals.step), key.encode(), target.encode()))
    return hashlib.blake2b(text + bound, digest_size=_TAG).digest()
