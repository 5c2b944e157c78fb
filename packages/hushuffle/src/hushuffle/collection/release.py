"""Randomize and shuffle the records of one column, and write the reports into a private folder before publication."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail, unsupported
from hushuffle.collection import spark
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.local import LocalCollection, OrderedCollection
from hushuffle.collection.order import order_facts, order_shuffler, refuse_order
from hushuffle.collection.record_tags import Entries, TagSorter, record_numbers, written_normally
from hushuffle.collection.released import Manifest, counts_text, write_reports
from hushuffle.collection.request import MANIFEST, REPORTS, SUMS, Asked, Gathered, Request, refuse_few
from hushuffle.files.secret_keys import derived
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals, Shuffler
from hushuffle.model import Bound, Histogram, json_number
from hushuffle.model.report_layout import Packed
from hushuffle.questions import dp
from hushuffle.randomness import Randomness, keyed, secure
from hushuffle.specification import Specification
from hushuffle.specification.exposure import Exposure
from hushuffle.specification.population import relation
from hushuffle.tables.people import FewOfEach
from hushuffle.tables.private import BATCH, Batch, ColumnBatches
from hushuffle.tables.refused import RefusedRecords

_SHARED: Final = ("title", "rounds", "memoised", "changes", "shuffler", "targets")
_READING: Final = 0.6  # approximate fraction of the time for reading and randomizing


@dataclass(frozen=True, kw_only=True)
class Release:
    """The reports of one column. No report is released of `dropped` records, whose value was missing, and of `beyond`
    records, which exceeded the limit per person.

    One person had at most `largest` records. `person_known`: the specification names the column that identifies people.
    `clipped` numbers were outside the bounds (counted on this machine, not on a cluster). These figures stay private.

    `persons` is the number of people if a column identifies them, each with at most `reports` reports. `total` is the
    guarantee of all rounds that the specification announces, if there are several.

    With a key, `key` (the complete key) and `entries` (for its ledger) are present before publication. Afterwards,
    `files` lists the written files, and `repeated` states that the key has released these reports before.
    """

    manifest: Manifest
    protocol: Protocol
    central: Bound
    dropped: int
    entries: Entries | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    files: tuple[Path, ...] = ()
    repeated: bool = False
    persons: int | None = None
    beyond: int = 0
    largest: int = 1
    person_known: bool = False
    clipped: int = 0
    reports: int = 1
    total: Bound | None = None
    refused: RefusedRecords | None = field(default=None, repr=False)

    @property
    def content(self) -> str:
        """The name of the released file, which holds the reports or, if only sums are released, the sums."""
        return SUMS if self.protocol.shuffler.reveals is Reveals.SUMS else REPORTS

    @property
    def people(self) -> int:
        return self.protocol.n if self.persons is None else self.persons

    @property
    def local_epsilon(self) -> float:
        return self.protocol.randomizer.local_epsilon

    @property
    def local_of_person(self) -> float:
        return dp.local_epsilon(self.protocol, reports_per_person=self.reports).upper


def release(specification: Specification, request: Request, *, name: str, spill: Path, target: Path) -> Release:
    """Write the reports of one column and their manifest into the private folder `target`; `spill` must be empty."""
    _refuse_shuffler(specification, request)
    if request.master is not None:
        spark.check(specification)
    selection, keys = Asked.of(specification, request), request.keys
    batches = None if request.master is not None else batches_of(selection)  # before a key is created
    key = None if keys is None else keys.begin()
    kernel = Kernel(
        randomizer=specification.randomizer.build(selection.answers.k),
        grid=selection.answers.coding.grid,
        # The derived key of one column reveals nothing about the derived keys of other columns.
        key=derived(key, f"column 1, {selection.column}") if key is not None and name else key,
        round=0 if keys is None else keys.round,
    )
    kernel = selection.reports.kernel(kernel, selection.mechanism(kernel))
    ordered, summed = (specification.shuffler.reveals is kind for kind in (Reveals.NOISY_ORDER, Reveals.SUMS))
    none = _counted(kernel, np.empty(0, dtype=kernel.layout.dtype)) if summed else None
    if batches is None:
        gathered = spark.gathered(selection, kernel, request, spill)
    else:
        sampler = None if ordered else specification.shuffler.build()
        gathered = _gathered(batches, selection, kernel, request, spill, sampler=sampler)
    refuse_few(gathered.people, request.min_batch, specification.targets.people)
    facts: dict[str, Any] = {}
    if ordered:
        arrangement = order_shuffler(specification, request, selection, n=gathered.reports, dropped=gathered.dropped)
        facts = order_facts(arrangement)
    shuffler = arrangement.shuffler if ordered else specification.shuffler.build()
    protocol = Protocol(randomizer=kernel.randomizer, shuffler=shuffler, n=gathered.reports)
    total = total_of(specification, protocol)
    central = central_of(specification, protocol, total)
    entries = None if gathered.entries is None else gathered.entries()
    manifest = _manifest(specification, protocol, central, selection, request, facts, total)
    # A repeated batch has the same dummies; another batch has other dummies.
    dummy_key = None if entries is None else derived(kernel.key or b"", f"dummies 1, {entries.digest.hex()}")
    # The guarantee and refusals average over all possible numbers; the drawn numbers only determine how many are sent.
    numbers = 1 if protocol.shuffler.value_law is None else protocol.randomizer.inputs

    def repeatable(purpose: str, records: int) -> Randomness:
        """Return randomness that is specific to this batch, and repeated with it; without a key it is fresh."""
        return secure() if dummy_key is None else keyed(key=derived(dummy_key, purpose), records=np.arange(records))

    drawn = protocol.shuffler.drawn(repeatable("number of dummies 1", numbers))
    manifest = replace(manifest, dummies=drawn.dummies, coins=drawn.all_coins)
    sizes: list[int] = []
    blocks = told(_sized(gathered.blocks(drawn, dummy_key), sizes), gathered.reports + drawn.dummies, request)
    if none is not None:
        sums = none
        for block in blocks:
            sums = sums + _counted(kernel, block)
        noisy = drawn.noisy(sums.counts, rng=repeatable("coins of servers 1", sums.k))
        (target / SUMS).write_text(counts_text(manifest, noisy), encoding="utf-8")
    else:
        write_reports(target / REPORTS, blocks, layout=kernel.layout)
    if drawn.kept < 1:  # the number of dummies would reveal how many reports were kept
        manifest = replace(manifest, dummies=0, sampled=sum(sizes))
    (target / MANIFEST).write_text(manifest.text(), encoding="utf-8")
    return Release(
        manifest=manifest,
        protocol=protocol,
        central=central,
        dropped=gathered.dropped,
        entries=entries,
        key=key,
        persons=gathered.persons,
        beyond=gathered.beyond,
        largest=gathered.largest,
        person_known=specification.population.person_known,
        clipped=gathered.clipped,
        reports=specification.population.most,
        total=total,
        refused=None if batches is None else batches.refused,
    )


def _refuse_shuffler(specification: Specification, request: Request) -> None:
    reveals = specification.shuffler.reveals
    if reveals is Reveals.SENDERS:
        unsupported('Without a shuffler the order of the reports identifies the senders. Use kind = "uniform".')
    if reveals is Reveals.NOISY_ORDER:
        refuse_order(request)
    elif request.reference is not None:
        fail('A reference order needs [shuffler] kind = "mallows": other shufflers release no order. Remove it.')


def _counted(kernel: Kernel, reports: Packed) -> Histogram:
    """Return an empty histogram that adds up the reports; raise an error if the reports cannot be counted."""
    return kernel.randomizer.counts(kernel.layout.unpack(reports))


def batches_of(asked: Asked) -> ColumnBatches:
    return ColumnBatches(
        asked.files,
        column=asked.column,
        answers=asked.answers,
        ids=asked.ids,
        form=asked.form,
        person=asked.person,
        base_folder=asked.base_folder,
        called=asked.called,
    )


def _gathered(
    batches: ColumnBatches, selection: Asked, kernel: Kernel, request: Request, spill: Path, *, sampler: Shuffler | None
) -> Gathered:
    """Randomize all records on this machine. `sampler` selects some reports; None keeps all reports in their order."""
    total = batches.count() if request.progress else 0
    engine: OrderedCollection | LocalCollection = OrderedCollection(kernel)
    if sampler is not None:
        engine = LocalCollection(kernel, spill, memory=request.memory, sampler=sampler)
    tags = None if kernel.key is None else _Tags(kernel.key, kernel, selection, spill / "tags")
    chosen = None if selection.person is None else _Chosen(kernel, selection)
    dropped = seen = clipped = 0

    def take(values: npt.NDArray[np.int64], records: npt.NDArray[np.uint64] | None) -> None:
        nonlocal clipped
        if kernel.grid is not None:
            clipped += int(np.count_nonzero(kernel.grid.outside(values)))
        if tags is not None and records is not None:
            tags.add(records, values)
        engine.add(values, records)

    for batch in batches:
        records = None if tags is None else tags.numbers(batch)
        if chosen is None:
            take(batch.values, records)
        else:
            chosen.add(batch, records)
        dropped, seen = dropped + batch.dropped, seen + batch.values.size + batch.dropped
        request.tell("randomizing", _READING * seen / max(total, seen, 1))
    if chosen is not None:
        chosen.keep.refuse_spellings(selection.person or "")
        chosen.give(take)
    return Gathered(
        reports=engine.people,
        dropped=dropped,
        blocks=engine.blocks,
        entries=None if tags is None else tags.entries,
        persons=selection.reports.persons(engine.people) if chosen is None else chosen.keep.people,
        beyond=0 if chosen is None else chosen.keep.left_out,
        largest=1 if chosen is None else chosen.keep.largest,
        clipped=clipped,
    )


class _Chosen:
    """Selects at most a given number of records per person, by fresh or keyed randomness."""

    def __init__(self, kernel: Kernel, selection: Asked) -> None:
        self._kernel, self._keyed = kernel, kernel.key is not None
        self._key = derived(kernel.key or b"", "choice among a person's records 1")
        self.keep = FewOfEach(selection.most)

    def add(self, batch: Batch, records: npt.NDArray[np.uint64] | None) -> None:
        assert batch.persons is not None
        coins: Randomness = secure()
        if records is not None:
            coins = keyed(key=self._key, records=records, round=self._kernel.round)
        self.keep.add(batch.persons, coins.words(batch.values.size), batch.values, records)

    def give(self, take: Callable[[npt.NDArray[np.int64], npt.NDArray[np.uint64] | None], None]) -> None:
        values, records = self.keep.values, self.keep.records
        for start in range(0, values.size, BATCH):
            part = slice(start, start + BATCH)
            take(values[part], records[part] if self._keyed else None)


def total_of(specification: Specification, protocol: Protocol) -> Bound | None:
    """Return the central guarantee of all rounds that a specification announces; None if it is a single round."""
    exposure = Exposure.of(specification, k=protocol.randomizer.inputs)
    return None if exposure.rounds == 1 else exposure.epsilon(protocol, delta=specification.targets.delta)


def central_of(specification: Specification, protocol: Protocol | MixedProtocol, total: Bound | None) -> Bound:
    """Return the central guarantee for the actual number of people, checked against the target (over all rounds)."""
    targets, reports = specification.targets, specification.population.most
    central = dp.epsilon(protocol, delta=targets.delta, reports_per_person=reports)
    largest = (total or central).upper
    if targets.epsilon is not None and largest > targets.epsilon:
        of = f"{protocol.n:,} people" if reports == 1 else f"{protocol.n:,} reports, up to {reports:,} of a person,"
        rounds = "" if total is None else f" of all {specification.rounds:,} rounds together"
        fail(
            f"With {of} the central epsilon{rounds} is up to {largest:.4g} at delta = {targets.delta:g}, above "
            f"targets.epsilon = {targets.epsilon:g}: nothing was released. Collect from more people, or "
            "choose a smaller local epsilon."
        )
    return central


def _manifest(
    specification: Specification,
    protocol: Protocol,
    central: Bound,
    selection: Asked,
    request: Request,
    more: dict[str, Any],
    total: Bound | None,
) -> Manifest:
    """Return the public facts about the collection: no files, no ids, no order of people."""
    plain, answers = specification.plain(), selection.answers
    categories: dict[str, Any] = {"categories": list(answers.labels)} if answers.labels else {"k": answers.k}
    categories = specification.population.answer.written or categories
    randomizer = specification.randomizer.settled(protocol.randomizer)
    tables = {key: plain[key] for key in _SHARED if key in plain}
    if more:
        # The order is described under "order"; its groups are computed from private data, so they are not released.
        tables["shuffler"] = {"kind": "none"}
    most = specification.population.most
    several = {"reports_per_person": most} if most > 1 else {}
    released = Specification.model_validate(
        {**tables, "population": {"n": protocol.n, **categories, **several}, "randomizer": randomizer}
    )
    rounds: dict[str, Any] = {}
    if total is not None:
        shared = selection.reports.rounds(protocol.n)
        rounds["rounds"] = {"times": specification.rounds, "epsilon": total.as_dict(), **shared}
    facts = {
        "deployment": protocol.describe(reports_per_person=most),
        "local_epsilon": json_number(protocol.randomizer.local_epsilon),
        "central": {
            "epsilon": central.as_dict(),
            "delta": specification.targets.delta,
            "relation": relation(most),
            "per": "person",
            **({} if selection.person is not None else selection.reports.assumed),
            **several,
            **rounds,
        },
        **more,
        "coins": "secure" if request.keys is None else f"keyed, round {request.keys.round}",
    }
    return Manifest(specification=released.effective(), people=protocol.n, dummies=0, facts=facts)


class _Tags:
    """The tags of a column's records, to detect reuse of randomness for the same column, categories and randomizer."""

    def __init__(self, key: bytes, kernel: Kernel, selection: Asked, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self._key, self._tags = key, kernel.tags(selection.mechanism(kernel))
        self._sorter = TagSorter(folder, scope=self._tags.scope, deployment=self._tags.deployment, plain=True)
        self.entries = self._sorter.entries

    def numbers(self, batch: Batch) -> npt.NDArray[np.uint64]:
        assert batch.ids is not None
        self._sorter.plain &= written_normally(batch.ids)
        return record_numbers(batch.ids, key=self._key)

    def add(self, records: npt.NDArray[np.uint64], values: npt.NDArray[np.int64]) -> None:
        self._sorter.add(self._tags.of(records, values))


def _sized(blocks: Iterator[Packed], sizes: list[int]) -> Iterator[Packed]:
    for block in blocks:
        sizes.append(block.size)
        yield block


def told(
    blocks: Iterator[Packed],
    total: int,
    request: Request,
    *,
    step: str = "shuffling and writing",
    since: float = _READING,
) -> Iterator[Packed]:
    """Yield the blocks, and report the progress of the `step` that begins at the share `since` of the time."""
    written = 0
    for block in blocks:
        yield block
        written += block.size
        request.tell(step, since + (1 - since) * written / total)
