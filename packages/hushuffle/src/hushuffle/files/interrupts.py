"""Record requests to end the process, since some libraries turn Ctrl-C into their own error or ignore it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import Final

_ASKED: Final = Event()


@contextmanager
def heard() -> Iterator[None]:
    """Make SIGTERM and SIGHUP (the terminal was closed) end the work as Ctrl-C does; record all three signals.

    Ctrl-C stays ignored if it already was, as for background jobs of a shell.
    """
    numbers = [signal.SIGTERM, signal.SIGHUP]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    _ASKED.clear()
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _ASKED.clear()


def stop_if_asked() -> None:
    """Raise KeyboardInterrupt if the process was asked to end, even if a library ignored the request."""
    if _ASKED.is_set():
        raise KeyboardInterrupt


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    _ASKED.set()
    raise KeyboardInterrupt
