"""Read and write a release folder: reports in Parquet, and a manifest with the mechanism, without any secret."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from queue import Full, Queue
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.io.plugins import register_io_source

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle._version import __version__
from hushuffle.files.causes import cause
from hushuffle.model import json_number
from hushuffle.model.report_layout import Packed, ReportLayout
from hushuffle.tables.parquet import read_parquet

GROUP: Final = 1 << 18
"""Number of reports in a row group; the last group has the rest."""

_READ: Final = 1 << 20


def schema_of(layout: ReportLayout) -> dict[str, pl.DataType]:
    return dict(pl.DataFrame(layout.columns(np.empty(0, dtype=layout.dtype))).schema)


def write_reports(path: Path, blocks: Iterable[Packed], *, layout: ReportLayout) -> None:
    """Write reports, in the given order, to a new Parquet file, in row groups of `GROUP` reports.

    The bytes of the file depend only on the sequence of reports, and not on its division into blocks. If the disk is
    full, all blocks are still read.
    """
    waiting: Queue[tuple[pl.DataFrame, ...]] = Queue(maxsize=2)
    source = register_io_source(lambda *_: chain.from_iterable(iter(waiting.get, ())), schema=schema_of(layout))
    # The file is written in a thread of its own; meanwhile this thread shuffles, and reacts when Ctrl-C is pressed.
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
    while not written.done():
        with suppress(Full):
            waiting.put(frames, timeout=0.1)
            return


def _recut(blocks: Iterable[Packed], layout: ReportLayout) -> Iterator[Packed]:
    """Yield the same reports in blocks of `GROUP`; the last block may be shorter."""
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
    """Yield the reports in a file in blocks, in the form in which randomizers return them."""
    query = pl.scan_parquet(path.absolute(), glob=False)
    frames = read_parquet(query, path, name=str(path), rows=_READ)
    if dict(next(frames).schema) != schema_of(layout):
        fail(f"{path} has other columns than its manifest, which lists {', '.join(layout.names)}.")
    for frame in frames:
        yield _checked(frame, layout, path)


def _checked(frame: pl.DataFrame, layout: ReportLayout, path: Path) -> npt.NDArray[np.int64]:
    for name, limit in zip(layout.names, layout.limits, strict=True):
        column = frame[name]
        if column.null_count() or (column.len() and int(column.to_numpy().max()) >= limit):
            fail(f"{path}: column {name!r} must hold integers from 0 to {limit - 1:,} only.")
    columns = [frame[name].to_numpy().astype(np.int64) for name in layout.names]
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


SCHEMA_VERSION: Final = 1
MANIFEST: Final = "manifest"
COUNTS: Final = "support counts"
COLUMNS: Final = "manifest of columns"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The public description of a release: `specification` is the TOML text, with the actual number of people.

    `people` reports and `dummies` dummies were released, or sums that include the successes of `coins` Bernoulli trials
    for each value. `facts` is additional information: the guarantee, epsilon_0 as implemented, the deployment in a
    sentence. If the shuffler samples reports, the release hides how many of the `sampled` messages are dummies, and
    whose reports were sampled.
    """

    specification: str
    people: int
    dummies: int
    facts: Mapping[str, Any]
    coins: int = 0
    sampled: int | None = None

    @property
    def reports(self) -> int:
        """The number of released messages, dummies included."""
        return self.people + self.dummies if self.sampled is None else self.sampled

    def __post_init__(self) -> None:
        _checks.integer("people", self.people, low=1)
        _checks.integer("dummies", self.dummies, low=0)
        _checks.integer("coins", self.coins, low=0)
        _checks.integer("sampled", self.sampled or 0, low=0)

    def text(self) -> str:
        return _json(MANIFEST, self, {**self.facts})


@dataclass(frozen=True, kw_only=True)
class ColumnsManifest:
    """The manifest of several columns: `columns` has people and local epsilon by folder, `facts` the joint figures."""

    columns: Mapping[str, tuple[int, float]]
    facts: Mapping[str, Any]

    def text(self) -> str:
        columns = [
            {"name": name, "people": people, "local_epsilon": json_number(epsilon)}
            for name, (people, epsilon) in self.columns.items()
        ]
        return document_text(COLUMNS, {**self.facts, "columns": columns})


def read_manifest(path: Path) -> Manifest:
    document = read_document(path, MANIFEST)
    own_keys = ("schema_version", "content", "specification", "people", "dummies", "server_coins", "sampled_messages")
    facts = {key: value for key, value in document.items() if key not in own_keys}
    return _manifest(document, path, facts)


def counts_text(manifest: Manifest, counts: npt.NDArray[np.int64]) -> str:
    """Return support counts, shape (k,), as JSON text; counts of several machines can be added."""
    return _json(COUNTS, manifest, {"counts": [int(count) for count in counts]})


def read_counts(path: Path) -> tuple[Manifest, npt.NDArray[np.int64]]:
    """Return the mechanism of the counted reports, and the support counts, shape (k,)."""
    document = read_document(path, COUNTS)
    counts = document.get("counts")
    whole = isinstance(counts, list) and bool(counts) and all(is_count(count, low=1 - 2**53) for count in counts)
    if not whole or not isinstance(counts, list):
        fail(f"{path} has no valid support counts: they must be integers.")
    return _manifest(document, path, {}), np.array(counts, dtype=np.int64)


def columns_in(path: Path) -> tuple[str, ...]:
    """Return the names of the columns that a manifest of several columns lists; an empty tuple for any other file.

    >>> columns_in(Path("not-there.json"))
    ()
    """
    listed = (document_in(path, COLUMNS) or {}).get("columns")
    names = [one.get("name") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return tuple(name for name in names if isinstance(name, str) and Path(name).name == name != "..")


def _json(content: str, manifest: Manifest, more: dict[str, Any]) -> str:
    fields = {
        "people": manifest.people,
        "dummies": manifest.dummies,
        **({"server_coins": manifest.coins} if manifest.coins else {}),
        **({} if manifest.sampled is None else {"sampled_messages": manifest.sampled}),
        **more,
        "specification": manifest.specification,
    }
    return document_text(content, fields)


def document_text(content: str, fields: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Return a file of a release as JSON text; `content` is the type of the file."""
    document = {"schema_version": SCHEMA_VERSION, "content": content, "software": {"hushuffle": __version__}, **fields}
    return json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"


def document_in(path: Path, content: str) -> dict[str, Any] | None:
    """Return the JSON object in a file if its type is `content`; None for any other file."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and document.get("content") == content else None


def read_document(path: Path, content: str) -> dict[str, Any]:
    """Return the JSON object in a file, or raise an error if its type is not `content` or its version differs."""
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        fail(f"{path} does not exist. Reports need the manifest.json of the same collection beside them.")
    except OSError as error:
        fail(f"{path} cannot be read: {cause(error)}.")
    except (ValueError, RecursionError):
        fail(f"{path} is not valid JSON: it may be truncated or damaged.")
    if not isinstance(document, dict) or document.get("content") != content:
        fail(f"{path} contains no {content} of hushuffle collect.")
    if document.get("schema_version") != SCHEMA_VERSION:
        fail(f"{path} was written by another version of hushuffle, whose {content} this version does not read.")
    return document


def _manifest(document: Mapping[str, Any], path: Path, facts: Mapping[str, Any]) -> Manifest:
    specification, people, dummies = (document.get(key) for key in ("specification", "people", "dummies"))
    coins, sampled = document.get("server_coins", 0), document.get("sampled_messages")
    whole = all(is_count(number) for number in (people, dummies, coins, sampled or 0))
    if not isinstance(specification, str) or not whole or not people:
        fail(f"{path} must have `specification`, `people` and `dummies`: the file may have been edited.")
    record = Manifest(specification=specification, people=people, dummies=dummies or 0, facts=facts, coins=coins)
    return replace(record, sampled=sampled)


def is_count(value: Any, low: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value < 2**53
