"""`hushuffle collect`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hushuffle.cli.exits import Exit, UsageError
from hushuffle.cli.progress import progress
from hushuffle.errors import InvalidInputError

if TYPE_CHECKING:
    from hushuffle.workflows.collect import Collected, Keys


def collect(
    specification: Path,
    /,
    *,
    out: Path,
    sources: Annotated[list[str] | None, Parameter(name="--input", consume_multiple=True, negative=())] = None,
    column: str | None = None,
    key_file: Path | None = None,
    round_number: Annotated[int | None, Parameter(name="--round")] = None,
    ids: Annotated[str | None, Parameter(name="--id")] = None,
    min_batch: int = 1,
) -> Exit:
    """Run a collection: randomize one column, shuffle, write reports that say nothing about who sent which.

    Writes reports.parquet and manifest.json into a new folder: both or neither.
    No other column leaves, and no order.

    Args:
        specification: the TOML file that describes the deployment.
        out: the folder to make; reports are never overwritten.
        sources: files (CSV, Parquet), folders or globs; the data of the specification by default.
        column: the private column, if the specification has no data.
        key_file: a secret key; every record's coins are then repeated when the collection is.
        round_number: of the key, 0 by default; a new one whenever values may have changed.
        ids: with a key: the column that says which record is whose.
        min_batch: fewer people are refused.
    """
    from hushuffle.specification import load  # noqa: PLC0415 - only when needed
    from hushuffle.workflows.collect import collect as run  # noqa: PLC0415

    keys = _keys(key_file, ids, round_number)
    spec = load(specification)
    with _termination(), progress(enabled=sys.stderr.isatty()) as tell:
        try:
            collected = run(
                spec,
                out=out,
                sources=sources or (),
                column=column,
                keys=keys,
                min_batch=min_batch,
                base_folder=specification.parent,
                progress=tell,
            )
        except InvalidInputError as error:  # options, or categories that cannot be collected
            raise UsageError(str(error)) from None
    _print(collected)
    return Exit.DONE


def _keys(file: Path | None, ids: str | None, round_number: int | None) -> Keys | None:
    if file is None:
        if ids is not None or round_number is not None:
            message = "--id and --round go with --key-file."
            raise UsageError(message)
        return None
    if ids is None:
        message = "--key-file needs --id, the column that says which record is whose."
        raise UsageError(message)
    from hushuffle.workflows.collect import Keys  # noqa: PLC0415 - only when needed

    try:
        return Keys(file=file, ids=ids, round=round_number or 0)
    except InvalidInputError as error:
        raise UsageError(str(error)) from None


@contextmanager
def _termination() -> Iterator[None]:
    """Let a request to end (SIGTERM) clean up as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print(collected: Collected) -> None:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    lines = [
        collected.deployment,
        f"Local epsilon {number(collected.local_epsilon, up=True)}; central epsilon {collected.central}.",
    ]
    if collected.dropped:
        lines.append(f"{collected.dropped:,} records were missing and left out (the files do not say so).")
    if collected.repeated:
        lines.append("This batch was collected before: the same reports, in another order.")
    sys.stdout.write("\n".join([*lines, "", *(f"Wrote {file}" for file in collected.files)]) + "\n")
