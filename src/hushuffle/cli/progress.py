"""How far a long run is, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, float], None]
"""Takes what is being done, and which share of everything is done, from 0 to 1."""


@contextmanager
def progress(*, enabled: bool) -> Iterator[Tell | None]:
    """Show a bar with the time left on standard error, if `enabled`; give what moves it, or None."""
    if not enabled:
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only when needed
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - only when needed

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)

        def tell(what: str, share: float) -> None:
            bar.update(task, description=what, completed=min(max(share, 0.0), 1.0))

        yield tell
