"""One column, from records to a folder of shuffled reports that nobody has seen yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.local import LocalCollection, OrderedCollection
from hushuffle.collection.manifest import Manifest, figure, number
from hushuffle.collection.order import order_facts, order_shuffler, refuse_order
from hushuffle.collection.record_tags import Entries, Tags, TagSorter, record_numbers
from hushuffle.collection.report_files import Packed, write_reports
from hushuffle.collection.request import MANIFEST, REPORTS, Release, Request, TooFewPeople, column_key
from hushuffle.errors import Problem, SpecificationError, UnsupportedProtocolError
from hushuffle.files.secret_keys import derived
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing
from hushuffle.mechanisms.shufflers import MallowsShuffle, Reveals
from hushuffle.model import Bound
from hushuffle.questions import dp
from hushuffle.specification import CountedPopulation, DataPopulation, Specification
from hushuffle.tables.categories import Answers
from hushuffle.tables.column_batches import Batch, ColumnBatches

_READING: Final = 0.6  # the share of the time that reading and randomizing take, about


def release(specification: Specification, request: Request, *, spill: Path, target: Path) -> Release:
    """Write the reports of one column and their manifest into the folder `target`.

    Args:
        specification: the deployment.
        request: what is asked besides.
        spill: a private, empty folder for reports that do not fit into memory, and for tags of the ledger.
        target: a folder that only this process knows.

    Raises:
        DataError, SpecificationError, UnsupportedProtocolError: see `hushuffle.collection.collect.collect`.
    """
    if request.master is not None:
        from hushuffle.collection.spark import release_with_spark  # noqa: PLC0415 - it needs this module

        return release_with_spark(specification, request, master=request.master, spill=spill, target=target)
    refuse_shuffler(specification, request)
    asked, keys = Asked.of(specification, request), request.keys
    batches = asked.batches()
    key = None if keys is None else keys.begin()
    kernel = Kernel(
        randomizer=specification.randomizer.build(asked.answers.k),
        key=column_key(key, asked.column) if key is not None and request.one_of_several else key,
        round=0 if keys is None else keys.round,
    )
    tags = None if key is None else _KeptTags(kernel, asked, spill / "tags")
    total = batches.count() if request.progress else 0
    ordered = specification.shuffler.kind == "mallows"
    engine = OrderedCollection(kernel) if ordered else LocalCollection(kernel, spill, memory=request.memory)
    dropped = _read(batches, engine, tags, lambda n: request.tell("randomizing", _READING * n / max(total, n, 1)))
    if engine.people < request.min_batch:
        message = (
            f"There are {engine.people:,} people, fewer than the {request.min_batch:,} that a batch must have: "
            "nothing leaves."
        )
        raise TooFewPeople(message)
    facts: dict[str, Any] = {}
    if isinstance(engine, OrderedCollection):
        arrangement = order_shuffler(
            specification, request, labels=asked.answers.labels, n=engine.people, dropped=dropped
        )
        protocol = Protocol(randomizer=kernel.randomizer, shuffler=arrangement.shuffler, n=engine.people)
        facts = order_facts(arrangement)
    else:
        protocol = Protocol(randomizer=kernel.randomizer, shuffler=specification.shuffler.build(), n=engine.people)
        assert protocol.shuffler.reveals is Reveals.MULTISET
    central = central_of(specification, protocol)
    entries = None if tags is None else tags.entries()
    manifest = manifest_of(specification, protocol, central, asked.answers, request, facts)
    blocks = _blocks(engine, protocol, kernel, entries)
    everything = engine.people + protocol.shuffler.dummies
    write_reports(target / REPORTS, told(blocks, everything, request), layout=kernel.layout)
    (target / MANIFEST).write_text(manifest.text(), encoding="utf-8")
    return Release(manifest=manifest, protocol=protocol, central=central, dropped=dropped, entries=entries, key=key)


def refuse_shuffler(specification: Specification, request: Request) -> None:
    """Refuse what does not hide who sent what, and an order with what does not go with it."""
    kind = specification.shuffler.kind
    if kind == "none":
        message = 'Without a shuffler the order of the reports would say who sent which. Use kind = "uniform".'
        raise UnsupportedProtocolError(message)
    if kind == "mallows":
        refuse_order(specification, request)
    elif request.reference is not None:
        fail('A reference order goes with [shuffler] kind = "mallows" only: others leave nothing of the order.')


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which column of which files is collected, and what its values mean; relative files start at `base_folder`.

    Messages name a file as `called` says, if it does.
    """

    files: Sequence[str]
    column: str
    answers: Answers
    ids: str | None
    base_folder: Path
    called: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.ids == self.column:
            fail(f"The id of a record cannot be its private column {self.column!r}.")

    @classmethod
    def of(cls, specification: Specification, request: Request) -> Asked:
        """Return what a specification and a request say.

        Raises:
            DataError, SpecificationError: they do not fit, or there is nothing to read.
        """
        population, sources, column = specification.population, request.sources, request.column
        ids = None if request.keys is None else request.keys.ids
        if isinstance(population, DataPopulation):
            if column is not None and column != population.column:
                _refuse("population.column", "must be the column that is asked for", population.column)
            return cls(
                files=sources or (population.data,),
                column=population.column,
                answers=Answers.of(population.categories, population.missing),
                ids=ids,
                base_folder=Path() if sources else request.base_folder,
                called=request.called,
            )
        if not isinstance(population, CountedPopulation):
            _refuse("population", "must be people with one value each, to be collected", "a reach study")
        if column is None or not sources:
            hint = "Or say --input and --column."
            _refuse("population", "must have data and column, to be collected", "a number of people", hint)
        categories = population.categories if population.k is None else population.k
        assert categories is not None
        return cls(
            files=sources,
            column=column,
            answers=Answers.of(categories, "refuse"),
            ids=ids,
            base_folder=Path(),
            called=request.called,
        )

    def batches(self) -> ColumnBatches:
        """Return the records in the files."""
        return ColumnBatches(
            self.files,
            column=self.column,
            answers=self.answers,
            ids=self.ids,
            base_folder=self.base_folder,
            called=self.called,
        )


class _KeptTags:
    """What tells whether coins are used again, for the same column, categories and randomizer only."""

    def __init__(self, kernel: Kernel, asked: Asked, folder: Path) -> None:
        assert kernel.key is not None
        folder.mkdir(mode=0o700)
        self._key = kernel.key
        self._tags = Tags(key=kernel.key, round_number=kernel.round, mechanism=mechanism_of(kernel, asked))
        self._sorter = TagSorter(folder, scope=self._tags.scope)

    def add(self, batch: Batch) -> npt.NDArray[np.uint64]:
        """Keep the tags of a batch with ids; return the numbers of its records."""
        assert batch.ids is not None
        records = record_numbers(batch.ids, key=self._key)
        self._sorter.add(self._tags.of(records, batch.values))
        return records

    def entries(self) -> Entries:
        """Return all of them; once."""
        return self._sorter.entries()


def mechanism_of(kernel: Kernel, asked: Asked) -> str:
    """Return what the ledger is told of how values become reports."""
    return "\n".join([repr(kernel.randomizer), repr(asked.column), *map(repr, asked.answers.labels)])


def _read(
    batches: ColumnBatches,
    engine: LocalCollection | OrderedCollection,
    tags: _KeptTags | None,
    done: Callable[[int], None],
) -> int:
    """Randomize everybody; return how many records were missing."""
    dropped = 0
    for batch in batches:
        engine.add(batch.values, None if tags is None else tags.add(batch))
        dropped += batch.dropped
        done(engine.people + dropped)
    return dropped


def _blocks(
    engine: LocalCollection | OrderedCollection, protocol: Protocol, kernel: Kernel, entries: Entries | None
) -> Iterator[Packed]:
    """Return the shuffled reports; with a key, dummies come from a key that only this batch has."""
    if isinstance(engine, OrderedCollection):
        assert isinstance(protocol.shuffler, MallowsShuffle)
        return engine.blocks(protocol.shuffler)
    # The repetition of a batch has the same dummies, another batch others.
    return engine.blocks(dummies=protocol.shuffler.dummies, dummy_key=dummy_key_of(kernel, entries))


def dummy_key_of(kernel: Kernel, entries: Entries | None) -> bytes | None:
    """Return the key of a batch's dummies; None where nothing is repeated."""
    if entries is None or kernel.key is None:
        return None
    return derived(kernel.key, f"dummies 1, {entries.digest.hex()}")


def central_of(specification: Specification, protocol: Protocol) -> Bound:
    """Return the central guarantee for the people there are, if it is what was wanted."""
    targets = specification.targets
    central = dp.epsilon(protocol, delta=targets.delta)
    if targets.epsilon is not None and central.upper > targets.epsilon:
        fail(
            f"With {protocol.n:,} people the central epsilon is up to {central.upper:.4g} at delta = "
            f"{targets.delta:g}, above targets.epsilon = {targets.epsilon:g}: nothing leaves. "
            "More people help, or a smaller local epsilon."
        )
    return central


def manifest_of(
    specification: Specification,
    protocol: Protocol,
    central: Bound,
    answers: Answers,
    request: Request,
    more: dict[str, Any],
) -> Manifest:
    """Return what may be known of the collection: nothing about files, ids, or the order of people."""
    plain = specification.plain()
    categories = {"categories": list(answers.labels)} if answers.labels else {"k": answers.k}
    randomizer = dict(plain["randomizer"])
    if isinstance(protocol.randomizer, LocalHashing):
        randomizer["g"] = protocol.randomizer.g
    tables = {key: plain[key] for key in ("title", "shuffler", "targets") if key in plain}
    if more:
        # An order is described by what it says, under "order": its groups are made from data that do not leave.
        tables["shuffler"] = {"kind": "none"}
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
        **more,
        "coins": "secure" if request.keys is None else f"keyed, round {request.keys.round}",
    }
    return Manifest(
        specification=released.effective(), people=protocol.n, dummies=protocol.shuffler.dummies, facts=facts
    )


def told(blocks: Iterator[Packed], total: int, request: Request) -> Iterator[Packed]:
    """Yield the blocks and tell how far it is."""
    written = 0
    for block in blocks:
        yield block
        written += block.size
        request.tell("shuffling and writing", _READING + (1 - _READING) * written / total)


def _refuse(key: str, rule: str, value: str, hint: str = "") -> NoReturn:
    where = "specification"
    raise SpecificationError(where, (Problem(key=key, rule=rule, value=value, hint=hint),))
