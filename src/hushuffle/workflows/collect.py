"""Collect: read one private column, randomize it, shuffle, release reports and how they were made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from hushuffle import _checks
from hushuffle.analysis import dp
from hushuffle.engines.external_shuffle import MEMORY
from hushuffle.engines.kernel import Kernel
from hushuffle.engines.local import LocalCollection
from hushuffle.errors import DataError, Problem, SpecificationError, UnsupportedProtocolError
from hushuffle.io.column_batches import ColumnBatches
from hushuffle.io.ledger import Entries, Tags, admit, derived, record_numbers
from hushuffle.io.manifest import Manifest, figure, number
from hushuffle.io.new_folder import publish, workplace
from hushuffle.io.report_files import Packed, write_reports
from hushuffle.io.secret_keys import key_in_file
from hushuffle.model import Bound
from hushuffle.protocol import Protocol
from hushuffle.randomizers import LocalHashing
from hushuffle.shufflers import Reveals, Shuffler
from hushuffle.specification import CountedPopulation, DataPopulation, Specification

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of all work done so far, in [0, 1]."""

REPORTS: Final = "reports.parquet"
MANIFEST: Final = "manifest.json"

_READING: Final = 0.6  # the share of the time that reading and randomizing take, about


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What was released, and where; `dropped` records were missing (this is not released)."""

    manifest: Manifest
    central: Bound
    local_epsilon: float
    deployment: str
    files: tuple[Path, ...]
    dropped: int
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Where coins come from that are repeated for the same record: a key in a file, a round, a column of ids."""

    file: Path
    ids: str
    round: int = 0

    def __post_init__(self) -> None:
        _checks.integer("round", self.round, low=0, high=2**63 - 1)


def collect(
    specification: Specification,
    *,
    out: Path,
    sources: Sequence[str] = (),
    column: str | None = None,
    keys: Keys | None = None,
    min_batch: int = 1,
    base_folder: Path = Path(),
    memory: int = MEMORY,
    progress: Progress | None = None,
) -> Collected:
    """Run a collection on the people in files, and write `reports.parquet` and `manifest.json` into the folder `out`.

    The folder appears when both are whole, or not at all. What is in it depends on nothing but the multiset of the
    reports, their number, the specification, and the coins of the shuffle.

    Args:
        specification: the deployment; its n, if it has one, is replaced by the number of people there are.
        out: a folder that is not there yet, or empty.
        sources: files, folders, globs, relative to the current folder; the data of the specification if none.
        column: the private column, where the specification has no data: labels, or the codes 0..k-1.
        keys: None: every report has fresh cryptographic coins.
        min_batch: fewer people are refused.
        base_folder: the folder of the specification.
        memory: bytes of reports to hold before they are spilled to the disk beside `out`.
        progress: told what is going on.

    Raises:
        DataError: data, key, ledger or folder cannot be used; fewer people than `min_batch`, or too few for
            targets.epsilon.
        SpecificationError: the population has no column to read.
        UnsupportedProtocolError: the shuffler does not hide who sent what, or reports have no columns.
    """
    least = _checks.integer("min_batch", min_batch, low=1)
    shuffler = _shuffler(specification)
    batches = _batches(specification, sources, column, None if keys is None else keys.ids, base_folder)
    kernel = Kernel(
        randomizer=specification.randomizer.build(batches.k),
        key=None if keys is None else key_in_file(keys.file),
        round=0 if keys is None else keys.round,
    )
    tags = None if keys is None else _tags(kernel, batches)
    tell = progress or (lambda _stage, _share: None)
    total = batches.count() if progress else 0
    with workplace(out) as place:
        (place / "spill").mkdir(mode=0o700)
        (place / "release").mkdir()
        spill, release = place / "spill", place / "release"
        engine = LocalCollection(kernel, spill, memory=memory)
        dropped = _read(batches, engine, kernel, tags, lambda n: tell("randomizing", _READING * n / max(total, n, 1)))
        if engine.people < least:
            _fail(
                f"There are {engine.people:,} people, fewer than the {least:,} that a batch must have: nothing leaves."
            )
        protocol = Protocol(randomizer=kernel.randomizer, shuffler=shuffler, n=engine.people)
        central = _central(specification, protocol)
        entries = None if tags is None else tags.entries()
        manifest = _manifest(specification, protocol, central, batches, keys)
        blocks = engine.blocks(dummies=shuffler.dummies, dummy_key=_dummy_key(kernel, entries))
        everything = engine.people + shuffler.dummies
        write_reports(release / REPORTS, _told(blocks, everything, tell), layout=kernel.layout)
        (release / MANIFEST).write_text(manifest.text(), encoding="utf-8")
        fresh = True if keys is None or entries is None else admit(keys.file, entries)
        publish(release, out)
    tell("done", 1.0)
    return Collected(
        manifest=manifest,
        central=central,
        local_epsilon=kernel.randomizer.local_epsilon,
        deployment=protocol.describe(),
        files=(out / REPORTS, out / MANIFEST),
        dropped=dropped,
        repeated=not fresh,
    )


def _shuffler(specification: Specification) -> Shuffler:
    """Return the shuffler, if it hides who sent what altogether."""
    kind = specification.shuffler.kind
    if kind == "none":
        message = 'Without a shuffler the order of the reports would say who sent which. Use kind = "uniform".'
        raise UnsupportedProtocolError(message)
    if kind == "mallows":
        message = (
            "A Mallows shuffle cannot be collected yet: its order is made from public columns. Use hushuffle assess."
        )
        raise UnsupportedProtocolError(message)
    shuffler = specification.shuffler.build()
    assert shuffler.reveals is Reveals.MULTISET
    return shuffler


def _batches(
    specification: Specification, sources: Sequence[str], column: str | None, ids: str | None, base_folder: Path
) -> ColumnBatches:
    population = specification.population
    if isinstance(population, DataPopulation):
        if column is not None and column != population.column:
            _refuse("population.column", "must be the column that is asked for", population.column)
        where = Path() if sources else base_folder
        return _opened(
            sources or (population.data,), population.column, population.categories, population.missing, ids, where
        )
    if not isinstance(population, CountedPopulation):
        _refuse("population", "must be people with one value each, to be collected", "a reach study")
    if column is None or not sources:
        hint = "Or say --input and --column."
        _refuse("population", "must have data and column, to be collected", "a number of people", hint)
    categories = population.categories if population.k is None else population.k
    assert categories is not None
    return _opened(sources, column, categories, "refuse", ids, Path())


def _opened(
    sources: Sequence[str], column: str, categories: Any, missing: str, ids: str | None, where: Path
) -> ColumnBatches:
    if ids == column:
        _fail(f"The id of a record cannot be its private column {column!r}.")
    return ColumnBatches(sources, column=column, categories=categories, missing=missing, ids=ids, base_folder=where)


def _tags(kernel: Kernel, batches: ColumnBatches) -> Tags:
    """Return what tells whether coins are used again: for the same column, categories and randomizer only."""
    assert kernel.key is not None
    mechanism = "\n".join([repr(kernel.randomizer), repr(batches.column), *map(repr, batches.labels)])
    return Tags(key=kernel.key, round_number=kernel.round, mechanism=mechanism)


def _read(
    batches: ColumnBatches, engine: LocalCollection, kernel: Kernel, tags: Tags | None, done: Callable[[int], None]
) -> int:
    """Randomize everybody; return how many records were missing."""
    dropped = 0
    for batch in batches:
        records = None
        if tags is not None and kernel.key is not None and batch.ids is not None:
            records = record_numbers(batch.ids, key=kernel.key)
            tags.add(records, batch.values)
        engine.add(batch.values, records)
        dropped += batch.dropped
        done(engine.people + dropped)
    return dropped


def _central(specification: Specification, protocol: Protocol) -> Bound:
    """Return the central guarantee for the people there are, if it is what was wanted."""
    targets = specification.targets
    central = dp.epsilon(protocol, delta=targets.delta)
    if targets.epsilon is not None and central.upper > targets.epsilon:
        _fail(
            f"With {protocol.n:,} people the central epsilon is up to {central.upper:.4g} at delta = "
            f"{targets.delta:g}, above targets.epsilon = {targets.epsilon:g}: nothing leaves. "
            "More people help, or a smaller local epsilon."
        )
    return central


def _dummy_key(kernel: Kernel, entries: Entries | None) -> bytes | None:
    """Return a key that only this batch has: its repetition has the same dummies, another batch others."""
    if entries is None or kernel.key is None:
        return None
    return derived(kernel.key, f"dummies 1, {entries.digest.hex()}")


def _manifest(
    specification: Specification, protocol: Protocol, central: Bound, batches: ColumnBatches, keys: Keys | None
) -> Manifest:
    """Return what may be known of the collection: nothing about files, ids, or the order of people."""
    plain = specification.plain()
    categories = {"categories": list(batches.labels)} if batches.labels else {"k": batches.k}
    randomizer = dict(plain["randomizer"])
    if isinstance(protocol.randomizer, LocalHashing):
        randomizer["g"] = protocol.randomizer.g
    tables = {key: plain[key] for key in ("title", "shuffler", "targets") if key in plain}
    released = Specification.model_validate(
        {**tables, "population": {"n": protocol.n, **categories}, "randomizer": randomizer}
    )
    facts = {
        "deployment": protocol.describe(),
        "local_epsilon": number(protocol.randomizer.local_epsilon),
        "central": {
            "epsilon": figure(central),
            "delta": specification.targets.delta,
            "relation": "replace one person's value, n fixed",
            "per": "person",
        },
        "coins": "secure" if keys is None else f"keyed, round {keys.round}",
    }
    return Manifest(
        specification=released.effective(), people=protocol.n, dummies=protocol.shuffler.dummies, facts=facts
    )


def _told(blocks: Iterator[Packed], total: int, tell: Progress) -> Iterator[Packed]:
    """Yield the blocks and tell how far it is."""
    written = 0
    for block in blocks:
        yield block
        written += block.size
        tell("shuffling and writing", _READING + (1 - _READING) * written / total)


def _refuse(key: str, rule: str, value: str, hint: str = "") -> NoReturn:
    where = "specification"
    raise SpecificationError(where, (Problem(key=key, rule=rule, value=value, hint=hint),))


def _fail(message: str) -> NoReturn:
    raise DataError(message) from None
