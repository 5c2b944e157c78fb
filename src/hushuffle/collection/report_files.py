"""Reports on disk: one Parquet file with the columns of the reports and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from queue import Full, Queue
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.io.plugins import register_io_source

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.model.report_layout import Packed, ReportLayout
from hushuffle.tables.parquet import read_parquet

GROUP: Final = 1 << 18
"""Reports in a row group; the last group has the rest."""

_READ: Final = 1 << 20


def schema_of(layout: ReportLayout) -> dict[str, pl.DataType]:
    """Return the types of the columns in a table."""
    return dict(pl.DataFrame(layout.columns(np.empty(0, dtype=layout.dtype))).schema)


def write_reports(path: Path, blocks: Iterable[Packed], *, layout: ReportLayout) -> None:
    """Write reports, in the order given, to a new Parquet file, in row groups of `GROUP`.

    The bytes of the file depend on nothing but the sequence of reports, and not on how it is cut into blocks.
    Memory: some row groups. Where the disk is full, blocks are still read to their end.

    Raises:
        DataError: the file cannot be written.
    """
    waiting: Queue[tuple[pl.DataFrame, ...]] = Queue(maxsize=2)
    source = register_io_source(lambda *_: chain.from_iterable(iter(waiting.get, ())), schema=schema_of(layout))
    # The file is written in a thread of its own: this one goes on shuffling, and hears when somebody presses Ctrl-C.
    with ThreadPoolExecutor(max_workers=1) as pool:
        written = pool.submit(source.sink_parquet, path, row_group_size=GROUP, maintain_order=True, compression="zstd")
        try:
            for packed in _recut(blocks, layout):
                _hand_over((pl.DataFrame(layout.columns(packed)),), waiting, written)
        finally:
            _hand_over((), waiting, written)
        try:
            written.result()
        except (OSError, pl.exceptions.PolarsError) as error:
            fail(f"{path.name} cannot be written: {cause(OSError(str(error)), 'the disk may be full')}.")


def _hand_over(
    frames: tuple[pl.DataFrame, ...], waiting: Queue[tuple[pl.DataFrame, ...]], written: Future[Any]
) -> None:
    """Wait until there is room, or nobody takes anything any more."""
    while not written.done():
        with suppress(Full):
            waiting.put(frames, timeout=0.1)
            return


def _recut(blocks: Iterable[Packed], layout: ReportLayout) -> Iterator[Packed]:
    """Yield the same reports in blocks of `GROUP`, the last one shorter."""
    held: list[Packed] = [np.empty(0, dtype=layout.dtype)]
    size = 0
    for block in blocks:
        held.append(block)
        size += block.size
        if size >= GROUP:
            whole = np.concatenate(held)
            ready = size - size % GROUP
            for start in range(0, ready, GROUP):
                yield whole[start : start + GROUP]
            held, size = [whole[ready:]], size - ready
    if size:
        yield np.concatenate(held)


def read_reports(path: Path, *, layout: ReportLayout) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the reports in a file, as randomizers make them, some at a time.

    Raises:
        DataError: the file cannot be read, or its columns are not those of `layout`.
    """
    query = pl.scan_parquet(path.absolute(), glob=False)
    frames = read_parquet(query, path, name=str(path), rows=_READ)
    if dict(next(frames).schema) != schema_of(layout):
        fail(f"{path} has other columns than its manifest says. It must have: {', '.join(layout.names)}.")
    for frame in frames:
        yield _checked(frame, layout, path)


def _checked(frame: pl.DataFrame, layout: ReportLayout, path: Path) -> npt.NDArray[np.int64]:
    for name, limit in zip(layout.names, layout.limits, strict=True):
        column = frame[name]
        if column.null_count() or (column.len() and int(column.to_numpy().max()) >= limit):
            fail(f"{path}: column {name!r} holds something else than integers from 0 to {limit - 1:,}.")
    columns = [frame[name].to_numpy().astype(np.int64) for name in layout.names]
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
