"""A request to end that libraries cannot lose: some turn Ctrl-C into an error of their own, some drop it."""

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
    """Let SIGTERM, and SIGHUP of a terminal that is closed, end what is done as Ctrl-C does; remember all three.

    Ctrl-C stays ignored where it is ignored, as in the background of a shell.
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
    """Raise KeyboardInterrupt if somebody asked for the end, whatever became of it then."""
    if _ASKED.is_set():
        raise KeyboardInterrupt


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    _ASKED.set()
    raise KeyboardInterrupt
