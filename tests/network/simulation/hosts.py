"""Processes and what they get from their machine: disk, clock, randomness; each can fail, all are repeatable."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from network.simulation.network import Listener
    from network.simulation.wires import Wire

EPOCH = 1_800_000_000.0
"""The wall clock at the start of every simulation."""


class DiedError(BaseException):
    """The process was killed in the middle of a call of the system; nobody can catch that."""


@dataclass(eq=False)
class Process:
    """One life of a node, from its start to its end; `calls` of the file system, frames `sent` and `taken`."""

    name: str
    life: int
    address: str
    random: random.Random
    skew: float = 0.0
    alive: bool = True
    full: bool = False
    started: float = 0.0
    ended: float | None = None
    calls: int = 0
    sent: int = 0
    taken: int = 0
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    listeners: list[Listener] = field(default_factory=list)
    watch: Callable[[Process, str, int], None] | None = None
    outcome: Any = None
    error: BaseException | None = None
    node: Any = None

    def __repr__(self) -> str:
        return f"{self.name}#{self.life}"

    def notice(self, what: str) -> None:
        """Count an event of this life, and let the plan of faults see it."""
        count = getattr(self, what) + 1
        setattr(self, what, count)
        if self.watch is not None:
            self.watch(self, what, count)


HERE: ContextVar[Process | None] = ContextVar("HERE", default=None)


def _call() -> None:
    """Let a call of the file system fail if it should."""
    process = HERE.get()
    if process is None:
        return
    if process.alive:
        process.notice("calls")
    if not process.alive:
        raise DiedError
    if process.full:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def machine(now: Callable[[], float]) -> Iterator[None]:
    """Put the calls of a simulated machine in the place of the real ones, for processes of the simulation alone.

    Args:
        now: the time of the simulation.
    """
    real = {name: getattr(os, name) for name in ("open", "fsync", "link", "replace", "rename", "urandom")}
    real_open, real_time, state = io.open, time.time, random.getstate()

    def checked_open(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            _call()
        return real["open"](path, flags, *more, **options)  # type: ignore[no-any-return]

    def fsync(number: int) -> None:
        if HERE.get() is None:
            real["fsync"](number)
        _call()  # the files of a simulation are in memory

    def checked(name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            _call()
            return real[name](*args, **options)

        return call

    def opened(file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        if mode != "rb" and not isinstance(file, int):
            _call()
        return real_open(file, mode, *more, **options)

    def urandom(size: int) -> bytes:
        process = HERE.get()
        return process.random.randbytes(size) if process is not None else real["urandom"](size)

    def wall() -> float:
        process = HERE.get()
        return EPOCH + now() + (process.skew if process is not None else 0.0)

    fakes = {"open": checked_open, "fsync": fsync, "urandom": urandom}
    for name in real:
        setattr(os, name, fakes.get(name) or checked(name))
    io.open, time.time = opened, wall
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)
        io.open, time.time = real_open, real_time
        random.setstate(state)


def secret(what: str) -> bytes:
    """Return 32 bytes that are always the same for the same words."""
    return hashlib.sha256(what.encode()).digest()
