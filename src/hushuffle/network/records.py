"""The records of source nodes: from a table of their own, or prepared by whoever starts all nodes on one machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import NoReturn

import numpy as np

from hushuffle.errors import DataError
from hushuffle.files.causes import refused
from hushuffle.files.private_files import write_private
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.source import Person
from hushuffle.queries.query import Query, Rows
from hushuffle.specification.node import NodeConfiguration


def held_records(
    config: NodeConfiguration, document: RunDocument, query: Query, folder: Path
) -> Mapping[str, Sequence[Person]]:
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
    (name,), data = config.nodes, config.records.data
    places = document.places.get(name, ())
    wanted = len(places) // len(document.steps) if query.everybody else len(places)
    by_step = Counter(step for step, _, _ in places)
    if query.everybody and any(by_step[step] != wanted for step in range(1, len(document.steps) + 1)):
        _fail(f"the run's document does not list {name} equally often in every step, as its plan says.")
    rows = query.brought(data, folder).rows
    if len(rows) != wanted:
        _fail(f"{data} has {len(rows):,} records, but {name} speaks for {wanted:,} in this run.")
    return {name: people(document, name, range(wanted), rows)}


def people(document: RunDocument, name: str, records: Sequence[int], rows: Rows) -> tuple[Person, ...]:
    """Return the people of one source node; `records` number them for their coins.

    Each has one place in every step, in the order of the document; or, where all together have as many places as there
    are people, one place in one step.
    """
    by_step: dict[int, list[tuple[int, int]]] = {}
    for step, batch, slot in document.places[name]:
        by_step.setdefault(step, []).append((batch, slot))
    if sum(map(len, by_step.values())) == len(records):
        own = [{step: place} for step, places in by_step.items() for place in places]
    else:
        own = [{step: places[number] for step, places in by_step.items()} for number in range(len(records))]
    return tuple(
        Person(record=record, places=places, row=np.asarray(row, dtype=np.float64))
        for record, places, row in zip(records, own, rows, strict=True)
    )


def write_prepared(path: Path, held: Mapping[str, Sequence[Person]]) -> None:
    """Write records for `read_prepared` into a file that only its owner can read."""
    every = [(name, one) for name, own in held.items() for one in own]
    file = BytesIO()
    np.savez(
        file,
        names=np.array([name for name, _ in every]),
        records=np.array([one.record for _, one in every], dtype=np.int64),
        rows=np.stack([one.row for _, one in every]),
    )
    write_private(path, file.getvalue(), durable=False)


def read_prepared(path: Path, document: RunDocument) -> dict[str, Sequence[Person]]:
    """Return the records of every source node in a file.

    Raises:
        DataError: it cannot be read.
    """
    with (
        refused(path, f"{path} cannot be read: it was not written by hushuffle plan run, or is damaged."),
        np.load(BytesIO(path.read_bytes()), allow_pickle=False) as file,
    ):
        names, records, rows = file["names"].tolist(), file["records"].tolist(), file["rows"]
        places: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            places.setdefault(name, []).append(place)
        return {name: people(document, name, [records[one] for one in own], rows[own]) for name, own in places.items()}


def _fail(message: str) -> NoReturn:
    raise DataError(message) from None
