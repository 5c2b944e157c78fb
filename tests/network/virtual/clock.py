"""An event loop in virtual time: when no callback is ready, its clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any


@dataclass(eq=False)
class Process:
    """One life of a service, from a start to a kill; `steps` counts its callbacks, `commits` its writing transactions.

    `due`: numbers of callbacks ("steps") or transactions ("commits") after which it is killed.
    """

    name: str
    skew: float
    lie: str
    kill: Callable[[Process], None]
    due: set[tuple[str, int]]
    alive: bool = True
    steps: int = 0
    commits: int = 0
    app: Any = None
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def notice(self, what: str, loop: Loop) -> None:
        """Count a callback or a transaction, and kill the process before its next callback if that is due."""
        count = getattr(self, what) + 1
        setattr(self, what, count)
        if self.alive and (what, count) in self.due:
            self.due.discard((what, count))
            loop.soon(self.kill, self)


def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task; if it has not begun, close the coroutines that it was given, which nothing else will await."""
    work = task.get_coro()
    if inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
        for given in inspect.getcoroutinelocals(work).values():
            if inspect.iscoroutine(given):
                given.close()
    task.cancel()


HERE: ContextVar[Process | None] = ContextVar("HERE", default=None)
"""The process whose code runs."""


class Loop(asyncio.BaseEventLoop):
    """Threads run inline: their work is done after a random pause, and its result arrives after another pause."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._now, self._rng = 0.0, rng
        self._selector, self._clock_resolution = self, 1e-9
        self.errors: list[str] = []
        self.set_task_factory(self._new_task)  # type: ignore[arg-type]
        self.set_exception_handler(lambda _, context: self.errors.append(repr(context)))

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Stand in for a selector: no socket exists, and time goes on."""
        assert timeout is not None, "no callback and no timer is left, but the run has not ended"
        self._now += timeout
        return []

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def soon(self, callback: Callable[..., Any], *args: Any) -> None:
        """Call a function that belongs to no process."""
        super().call_soon(callback, *args, context=Context())

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        process = HERE.get() if context is None else context.get(HERE)
        if process is not None:
            process.notice("steps", self)
        return super().call_soon(callback, *args, context=context)

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], *, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, context=context)
        process = HERE.get() if context is None else context.get(HERE)
        if process is not None:
            process.tasks.append(task)
            if not process.alive:
                end(task)
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
                outcome = partial(future.set_result, func(*args))
            except Exception as error:  # noqa: BLE001 - the waiting task gets it
                outcome = partial(future.set_exception, error)
            self.call_later(self._pause(), settle, outcome)

        def settle(outcome: Callable[[], None]) -> None:
            if not future.done():
                outcome()

        self.call_later(self._pause(), work)
        return future

    def _pause(self) -> float:
        return self._rng.expovariate(500.0)


class Inline:
    """Stands in for a ThreadPoolExecutor; its work is done when the result is asked for."""

    def __init__(self, **_: Any) -> None:
        self.shutdown = dict

    def submit(self, work: Callable[..., Any], *args: Any) -> SimpleNamespace:
        return SimpleNamespace(result=partial(work, *args))
