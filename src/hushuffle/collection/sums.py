"""A sum by several messages: numbers in files to a folder of mixed messages, and from there to the sum."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushuffle._checks import fail
from hushuffle._version import __version__
from hushuffle.collection.engines.local import ExternalShuffle
from hushuffle.collection.released import SCHEMA_VERSION, read_document, read_reports, write_reports
from hushuffle.collection.request import MANIFEST, Request, TooFewPeople
from hushuffle.curves.shared_sums import SharedSums
from hushuffle.errors import DataError, SpecificationError
from hushuffle.estimation.sums import SumEstimate, residue, sums_found
from hushuffle.files.private_files import publish, workplace
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Bound
from hushuffle.model.report_layout import ReportLayout
from hushuffle.randomness import secure
from hushuffle.specification.population import ONE_ROW, Answered, relation
from hushuffle.specification.sums import SumSpecification, parse_sum
from hushuffle.tables.private import ColumnBatches

MESSAGES: Final = "messages.parquet"
CONTENT: Final = "manifest of a sum"

_COUNTING: Final = 0.2
"""The share of the time that the first reading takes, about."""

_MIXED: Final = 0.7
"""And that has passed when all messages are made."""


@dataclass(frozen=True, kw_only=True)
class CollectedSum:
    """What was released: messages of `protocol.n` people, into `files`.

    `dropped` numbers were missing and `clipped` outside the bounds; neither is in the files.
    """

    protocol: SplitAndMix
    central: Bound
    files: tuple[Path, ...]
    dropped: int
    clipped: int


def collect_sum(specification: SumSpecification, *, out: Path, request: Request) -> CollectedSum:
    """Split everybody's number, mix all messages, and write `messages.parquet` and `manifest.json` into a new folder.

    Files are read twice: the noise of a person depends on how many people there are. Coins are fresh ones. This
    machine is all devices and the shuffler: a rehearsal, or a collection by somebody who is trusted with the numbers.

    Raises:
        DataError: data or folder cannot be used; too few people; keys, batches, budgets or Spark are asked for.
        SpecificationError: the population has no column to read, or there is no protocol for so many people.
    """
    _refuse_options(request)
    found = specification.asked.answered(request.column, given=bool(request.sources))
    with workplace(out) as place:
        people, dropped, clipped = _counted(_batches(specification, found, request), request)
        _refuse_few(people, request.min_batch, specification.targets.people)
        protocol = specification.build(people)
        folder, spill = place / "release", place / "spill"
        folder.mkdir()
        spill.mkdir(mode=0o700)
        layout = layout_of(protocol)
        shuffle = ExternalShuffle(layout.dtype, spill, rng=secure(), memory=request.memory)
        grid, rng, seen = protocol.grid, secure(), 0
        for batch in _batches(specification, found, request):
            codes = grid.rounded(batch.values, rng=rng)
            shuffle.add(layout.pack(protocol.shares(codes, rng=rng).ravel()))
            seen += codes.size
            request.tell("splitting numbers up", _COUNTING + (_MIXED - _COUNTING) * seen / people)
        if seen != people:
            fail("The files have changed while they were read: nothing leaves.")
        write_reports(folder / MESSAGES, _told(shuffle, request), layout=layout)
        central = SharedSums(protocol=protocol).epsilon(protocol.delta)
        (folder / MANIFEST).write_text(_manifest(specification, protocol, central), encoding="utf-8")
        publish(folder, out)
    request.tell("done", 1.0)
    files = (out / MESSAGES, out / MANIFEST)
    return CollectedSum(protocol=protocol, central=central, files=files, dropped=dropped, clipped=clipped)


def layout_of(protocol: SplitAndMix) -> ReportLayout:
    """Return the column of messages in a file."""
    return ReportLayout(names=("message",), limits=(protocol.modulus,))


def _refuse_options(request: Request) -> None:
    for given, what in (
        (request.keys, "a key: coins that are repeated"),
        (request.master, "Spark"),
        (request.reference, "a public order"),
        (request.budget, "a budget"),
    ):
        if given is not None:
            fail(f"A sum by several messages is collected on this machine with fresh coins, not with {what}.")


def _batches(specification: SumSpecification, found: Answered, request: Request) -> ColumnBatches:
    files = specification.asked.files
    return ColumnBatches(
        request.sources or ([] if files is None else [files]),
        column=found.column,
        answers=found.answers,
        form=found.form,
        base_folder=Path() if request.sources else request.base_folder,
    )


def _counted(batches: ColumnBatches, request: Request) -> tuple[int, int, int]:
    """Return how many numbers there are, how many are missing, and how many are outside the bounds."""
    people = dropped = clipped = 0
    total = max(batches.count(), 1) if request.progress else 1
    for batch in batches:
        people, dropped = people + batch.values.size, dropped + batch.dropped
        grid = batches.grid
        clipped += 0 if grid is None else int(np.count_nonzero(grid.outside(batch.values)))
        request.tell("counting people", _COUNTING * min((people + dropped) / total, 1.0))
    return people, dropped, clipped


def _refuse_few(people: int, batch: int, asked: int | None) -> None:
    for least, source in ((2, "a sum by several messages"), (asked or 1, "targets.people"), (batch, "--min-batch")):
        if people < least:
            message = f"There are {people:,} people, fewer than the {least:,} that {source} asks for: nothing leaves."
            raise TooFewPeople(message)


def _told(shuffle: ExternalShuffle, request: Request) -> Iterator[Any]:
    written = 0
    for block in shuffle.blocks():
        yield block
        written += block.size
        request.tell("mixing and writing", _MIXED + (1 - _MIXED) * written / shuffle.size)


def _manifest(specification: SumSpecification, protocol: SplitAndMix, central: Bound) -> str:
    """Return what may be known of the collection: nothing about files, or numbers."""
    grid = protocol.grid
    population = {"n": protocol.n, "kind": "number", "low": grid.low, "high": grid.high, "levels": grid.levels}
    plain = {**specification.plain(), "population": population}
    document = {
        "schema_version": SCHEMA_VERSION,
        "content": CONTENT,
        "software": {"hushuffle": __version__},
        "people": protocol.n,
        "messages": protocol.messages,
        "modulus": protocol.modulus,
        "deployment": protocol.describe(),
        "central": {
            "epsilon": central.as_dict(),
            "delta": protocol.delta,
            "relation": relation(1),
            "per": "person",
            "assumed": ONE_ROW,
            "needed": protocol.needed,
        },
        "local_epsilon": "infinity",
        "coins": "secure",
        "specification": SumSpecification.model_validate(plain).effective(),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def estimate_folder(folder: Path) -> tuple[SumSpecification, SumEstimate]:
    """Return the sum in a folder that `collect_sum` wrote, and its specification; messages are read some at a time.

    Raises:
        DataError: files are missing, damaged, edited, or do not belong together.
    """
    path = folder / MANIFEST
    document = read_document(path, CONTENT)
    text, people = document.get("specification"), document.get("people")
    if not isinstance(text, str) or not isinstance(people, int) or isinstance(people, bool):
        fail(f"{path} must say specification and people: it may have been edited.")
    try:
        specification = parse_sum(text, file=f"the specification in {path}")
        protocol = specification.build(people)
    except (SpecificationError, DataError) as error:
        raise DataError(str(error)) from error
    if specification.plain()["population"].get("n") != people:
        fail(f"{path}: people and specification do not fit together: it may have been edited.")
    size = total = 0
    for messages in read_reports(folder / MESSAGES, layout=layout_of(protocol)):
        size, total = size + messages.size, (total + residue(messages, protocol.modulus)) % protocol.modulus
    if size != people * protocol.messages:
        fail(f"{path} speaks of {people * protocol.messages:,} messages, but there are {size:,}: it belongs to others.")
    return specification, sums_found([total], people=people, protocol=protocol)
