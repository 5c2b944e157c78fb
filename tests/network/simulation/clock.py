"""An event loop whose time jumps to the next timer: a run of minutes takes milliseconds, always the same way."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any

from network.simulation.hosts import HERE, Process

if TYPE_CHECKING:
    from network.simulation.network import Network


class StandstillError(AssertionError):
    """Nothing will ever happen again, and somebody still waits."""


class _Task(asyncio.Task[Any]):
    """A task that is ordered in sets by its number: where it lies in memory decides nothing."""

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._place = number
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._place


class Loop(asyncio.BaseEventLoop):
    """The loop of one simulation; connections go through `network`, threads run at once but end later."""

    network: Network

    def __init__(self, pause: Callable[[], float]) -> None:
        super().__init__()
        self._now, self._pause = 0.0, pause
        self._selector, self._clock_resolution = self, 1e-9
        self._numbers = itertools.count()
        self.complaints: list[str] = []
        self.set_task_factory(self._made)
        self.set_exception_handler(lambda _loop, context: self.complaints.append(_words(context)))

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Stand in for the selector: no file is ready, but time goes on."""
        if timeout is None:
            raise StandstillError
        self._now += timeout
        return []

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def _made(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, *, context: Context | None = None, **_more: Any
    ) -> _Task:
        task = _Task(next(self._numbers), coroutine, loop=loop, context=context)
        process = HERE.get() if context is None else context.get(HERE)
        if process is not None:
            process.tasks.append(task)
            if not process.alive:
                task.cancel()
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        del executor
        future, process = self.create_future(), HERE.get()

        def work() -> None:
            if process is not None and not process.alive:
                return
            try:
                outcome, error = func(*args), None
            except BaseException as raised:  # noqa: BLE001 - the waiting task takes it
                outcome, error = None, raised
            self.call_later(self._pause(), settle, outcome, error)

        def settle(outcome: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(outcome)
            else:
                future.set_exception(error)

        self.call_later(self._pause(), work)
        return future

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        return await self.network.connect(protocol_factory, (host, port), options["ssl"], options["server_hostname"])

    async def connect_accepted_socket(self, protocol_factory: Any, sock: Any, **options: Any) -> Any:
        patience = options.get("ssl_handshake_timeout") or 60.0
        return await self.network.accept(protocol_factory, sock, options["ssl"], patience)

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        fd.readable(callback, *args)

    def remove_reader(self, fd: Any) -> bool:
        fd.readable(None)
        return True


def current() -> Process:
    """Return the process that is running."""
    process = HERE.get()
    assert process is not None
    return process


def _words(context: dict[str, Any]) -> str:
    return f"{context.get('message')} {context.get('exception')!r} {context.get('future') or context.get('task')!r}"
