"""The records of source nodes: from a table of their own, or prepared by whoever starts all nodes on one machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle.errors import DataError
from hushuffle.files.array_files import refused
from hushuffle.files.private_files import write_private
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.k_means import Person
from hushuffle.network.nodes.records import RecordCodec
from hushuffle.network.nodes.source import Entry
from hushuffle.plans.centroids import Points
from hushuffle.queries.data import scaled_points
from hushuffle.specification import AggregateQuery, KMeansQuery
from hushuffle.specification.node import NodeConfiguration
from hushuffle.tables.private_table import load_table

Held: TypeAlias = Entry | Person
"""What a source node holds: a record in one step, or a point in all of them."""


def held_records(
    config: NodeConfiguration, document: RunDocument, query: AggregateQuery | KMeansQuery, folder: Path
) -> Mapping[str, Sequence[Held]]:
    """Return the records of every source node of a configuration; `query` is that of the document's plan.

    Raises:
        DataError: there are none, they cannot be read, or there are not as many as the document says.
    """
    if config.records is None:
        _fail("the configuration of source nodes must have [records]: where their data, coins and state are.")
    if config.records.prepared is not None:
        return read_prepared(folder / config.records.prepared, document)
    if len(config.nodes) != 1:
        _fail("a table of records belongs to one source node: give each a configuration of its own.")
    assert config.records.data is not None
    (name,) = config.nodes
    places = document.places.get(name, ())
    every = isinstance(query, KMeansQuery) or query.per_person == "all"
    wanted = len(places) // len(document.steps) if every else len(places)
    by_step = Counter(step for step, _, _ in places)
    if every and any(by_step[step] != wanted for step in range(1, len(document.steps) + 1)):
        _fail(f"the run's document does not list {name} equally often in every step, as its plan says.")
    if isinstance(query, KMeansQuery):
        points = _own_points(query, config.records.data, folder)
        _check(config.records.data, len(points), name, wanted)
        return {name: people(document, name, range(wanted), points)}
    return {name: _own_entries(query, config.records.data, name, wanted, document, folder)}


def _own_points(query: KMeansQuery, data: str, folder: Path) -> Points:
    if query.columns is None:
        _fail("points are read from a table: the plan must have [query.columns] with their public ranges.")
    table = load_table(data, categories={}, numbers=tuple(query.columns), base_folder=folder)
    return scaled_points(query, table.numbers)


def _own_entries(
    query: AggregateQuery, data: str, name: str, wanted: int, document: RunDocument, folder: Path
) -> list[Entry]:
    """Return the records of a table: its rows fill the node's places, in every step anew if all steps ask everybody."""
    table = load_table(data, categories=query.categories(), numbers=query.values, base_folder=folder)
    _check(data, table.n, name, wanted)
    columns = query.query().clipped({**table.groups, **table.numbers})
    places, entries, row = document.places[name], list[Entry](), 0
    for number in range(1, len(document.steps) + 1):
        codec = RecordCodec(query=document.grouping, position=number - 1)
        own, contents = codec.own(columns), codec.pack(columns)
        row = 0 if query.per_person == "all" else row
        for step, batch, slot in places:
            if step == number:
                entries.append(
                    Entry(step=step, batch=batch, slot=slot, record=row, own=int(own[row]), content=contents[row])
                )
                row += 1
    return entries


def _check(data: str, found: int, name: str, wanted: int) -> None:
    if found != wanted:
        _fail(f"{data} has {found:,} records, but {name} speaks for {wanted:,} in this run.")


def people(document: RunDocument, name: str, records: Sequence[int], points: Points) -> tuple[Person, ...]:
    """Return the points of one source node, one for each of its places in an iteration, in that order.

    `records` number them for their coins.
    """
    places: dict[int, list[tuple[int, int]]] = {}
    for step, batch, slot in document.places[name]:
        places.setdefault(step, []).append((batch, slot))
    return tuple(
        Person(
            record=record,
            places={step: own[place] for step, own in places.items()},
            point=np.asarray(points[place], dtype=np.float64),
        )
        for place, record in enumerate(records)
    )


def write_prepared(path: Path, held: Mapping[str, Sequence[Held]]) -> None:
    """Write records for `read_prepared` into a file that only its owner can read."""
    every = [(name, one) for name, own in held.items() for one in own]
    entries = [one for _, one in every if isinstance(one, Entry)]
    points = [one for _, one in every if isinstance(one, Person)]
    arrays = {"names": np.array([name for name, _ in every])}
    if entries:
        numbers = [(one.step, one.batch, one.slot, one.record, one.own, len(one.content)) for one in entries]
        arrays["entries"] = np.array(numbers, dtype=np.int64)
        arrays["contents"] = np.frombuffer(b"".join(one.content for one in entries), dtype=np.uint8)
    else:
        arrays["records"] = np.array([one.record for one in points], dtype=np.int64)
        arrays["points"] = np.stack([one.point for one in points])
    file = BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    write_private(path, file.getvalue(), durable=False)


def read_prepared(path: Path, document: RunDocument) -> dict[str, Sequence[Held]]:
    """Return the records of every source node in a file.

    Raises:
        DataError: it cannot be read.
    """
    with (
        refused(path, f"{path} cannot be read: it was not written by hushuffle plan run, or is damaged."),
        np.load(BytesIO(path.read_bytes()), allow_pickle=False) as file,
    ):
        names = file["names"].tolist()
        if "points" in file:
            return _with_points(document, names, file["records"].tolist(), file["points"])
        return _with_entries(names, file["entries"].tolist(), file["contents"].tobytes())


def _with_points(
    document: RunDocument, names: list[str], records: list[int], points: npt.NDArray[np.float64]
) -> dict[str, Sequence[Held]]:
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    return {name: people(document, name, [records[row] for row in own], points[own]) for name, own in rows.items()}


def _with_entries(names: list[str], numbers: list[list[int]], contents: bytes) -> dict[str, Sequence[Held]]:
    found: dict[str, list[Held]] = {}
    place = 0
    for name, (step, batch, slot, record, own, size) in zip(names, numbers, strict=True):
        content = contents[place : place + size]
        place += size
        entry = Entry(step=step, batch=batch, slot=slot, record=record, own=own, content=content)
        found.setdefault(name, []).append(entry)
    return {name: tuple(own) for name, own in found.items()}


def _fail(message: str) -> NoReturn:
    raise DataError(message) from None
