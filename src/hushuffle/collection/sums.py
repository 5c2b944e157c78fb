"""A sum by several messages: numbers in files to a folder of mixed messages, and from there to the sum."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from hushuffle._checks import fail
from hushuffle._version import __version__
from hushuffle.collection.budget import Entry, Part, Spent, refuse_used_up
from hushuffle.collection.budget import opened as opened_budget
from hushuffle.collection.engines.local import ExternalShuffle
from hushuffle.collection.engines.spark_session import check_installed
from hushuffle.collection.ledger import Candidate, opened
from hushuffle.collection.released import SCHEMA_VERSION, read_document, read_reports, write_reports
from hushuffle.collection.request import MANIFEST, Asked, KeyRounds, Request, TooFewPeople, rounds_of
from hushuffle.collection.sum_engines import MIXED, SumKernel, opened_source
from hushuffle.curves.shared_sums import SharedSums
from hushuffle.errors import DataError, InvalidInputError, SpecificationError
from hushuffle.estimation.sums import SumEstimate, residue, sums_found
from hushuffle.files.private_files import publish, workplace
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Bound
from hushuffle.model.report_layout import ReportLayout
from hushuffle.questions import dp
from hushuffle.randomness import secure
from hushuffle.specification.population import ONE_ROW, Answered, relation
from hushuffle.specification.sums import SumSpecification, parse_sum

MESSAGES: Final = "messages.parquet"
CONTENT: Final = "manifest of a sum"

_MIXED_BY: Final = "split and mix"
"""What the ledger is told of the shuffler."""


@dataclass(frozen=True, kw_only=True)
class CollectedSum:
    """What was released: messages of `protocol.n` people, into `files`.

    `dropped` numbers were missing and `clipped` outside the bounds; neither is in the files. `rounds` is what all that
    was collected with this key says together (None: without a key), and `repeated` says that the key has given these
    messages before. `spent` is what a budget says afterwards; None: without one. `total` is how many rounds there will
    be, and their central epsilon and delta together; None: one.
    """

    protocol: SplitAndMix
    central: Bound
    files: tuple[Path, ...]
    dropped: int
    clipped: int
    rounds: KeyRounds | None = None
    repeated: bool = False
    spent: Spent | None = None
    total: tuple[int, Bound, float] | None = None


def collect_sum(specification: SumSpecification, *, out: Path, request: Request) -> CollectedSum:
    """Split everybody's number, mix all messages, and write `messages.parquet` and `manifest.json` into a new folder.

    Files are read twice: the noise of a person depends on how many people there are. With a key everybody's messages
    can be repeated, for the same people with the same numbers only. This machine, or the cluster that
    `request` names, is all devices and the shuffler: a rehearsal, or a collection by somebody who is trusted with the
    numbers.

    Raises:
        DataError: data, key, ledger, budget or folder cannot be used; too few people, or too few for the budget; coins
            would be used again; a public order is asked for.
        MissingDependencyError: Spark is asked for, and not installed.
        SpecificationError: the population has no column to read, or there is no protocol for so many people.
    """
    _refuse_options(request)
    found = specification.asked.answered(request.column, given=bool(request.sources))
    if request.budget is not None:
        refuse_used_up(request.budget)
    grid = specification.asked.grid
    assert grid is not None  # a rule
    asked = _asked(specification, found, request)
    with workplace(out) as place:
        folder, spill = place / "release", place / "spill"
        folder.mkdir()
        spill.mkdir(mode=0o700)
        with opened_source(asked, request, grid, spill) as source:
            counted = source.count()
            _refuse_few(counted.people, request.min_batch, specification.targets.people)
            protocol = specification.build(counted.people)
            layout = layout_of(protocol)
            shuffle = ExternalShuffle(layout.dtype, spill, rng=secure(), memory=request.memory)
            key, number = (None, 0) if request.keys is None else (request.keys.begin(), request.keys.round)
            kernel = SumKernel(protocol=protocol, column=found.column, key=key, round=number)
            for messages in source.messages(kernel):
                shuffle.add(layout.pack(messages.ravel()))
            entries = source.entries()
        if shuffle.size != counted.people * protocol.messages:
            fail("The files have changed while they were read: nothing leaves.")
        text = _released(specification, protocol)
        write_reports(folder / MESSAGES, _told(shuffle, request), layout=layout)
        made = CollectedSum(
            protocol=protocol,
            central=SharedSums(protocol=protocol).epsilon(protocol.delta),
            files=(out / MESSAGES, out / MANIFEST),
            dropped=counted.dropped,
            clipped=counted.clipped,
            total=_total(specification, protocol),
        )
        with ExitStack() as held:
            note: Callable[[], None] | None = None
            if request.budget is not None:
                budget = held.enter_context(opened_budget(request.budget))
                digests = [] if entries is None else [entries.digest]
                entry = Entry.now([Part(specification=text, reports=counted.people)], coins=digests)
                spent, new = budget.with_entry(entry)
                made = replace(made, spent=spent)
                note = partial(budget.note, entry, spent) if new else None
            if entries is not None:
                made = _admitted(made, request, key, Candidate(entries=entries, shuffler=_MIXED_BY, specification=text))
            if note is not None:
                note()
            (folder / MANIFEST).write_text(_manifest(made, request, text), encoding="utf-8")
            publish(folder, out)
    request.tell("done", 1.0)
    return made


def _admitted(made: CollectedSum, request: Request, key: bytes | None, candidate: Candidate) -> CollectedSum:
    """Write the collection into the ledger of the key; coins that would be used again are refused."""
    assert request.keys is not None
    assert key is not None
    with opened(key, request.keys.file) as ledger:
        (new,) = ledger.check([candidate])
        known = (*ledger.batches, *([candidate.batch] if new else []))
        rounds = rounds_of(known, delta=made.protocol.delta)
        if new:
            ledger.admit([candidate])
    return replace(made, rounds=rounds, repeated=not new)


def _total(specification: SumSpecification, protocol: SplitAndMix) -> tuple[int, Bound, float] | None:
    """Return what all rounds will say together, if there are several."""
    times, delta = specification.times, specification.delta
    return None if times == 1 else (times, dp.compose([(protocol, times)], delta=delta), delta)


def layout_of(protocol: SplitAndMix) -> ReportLayout:
    """Return the column of messages in a file."""
    return ReportLayout(names=("message",), limits=(protocol.modulus,))


def _refuse_options(request: Request) -> None:
    if request.reference is not None:
        fail("Messages of a sum are mixed without any order: there is none to say with a public one.")
    if request.master is not None:
        check_installed()


def _asked(specification: SumSpecification, found: Answered, request: Request) -> Asked:
    files, sources = specification.asked.files, request.sources
    return Asked(
        files=sources or ([] if files is None else [files]),
        column=found.column,
        answers=found.answers,
        form=found.form,
        ids=None if request.keys is None else request.keys.ids,
        base_folder=Path() if sources else request.base_folder,
        called=request.called,
    )


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
        request.tell("mixing and writing", MIXED + (1 - MIXED) * written / shuffle.size)


def _released(specification: SumSpecification, protocol: SplitAndMix) -> str:
    """Return the specification of what is released: with the number of people, and nothing about files."""
    grid = protocol.grid
    population = {"n": protocol.n, "kind": "number", "low": grid.low, "high": grid.high, "levels": grid.levels}
    return SumSpecification.model_validate({**specification.plain(), "population": population}).effective()


def _manifest(made: CollectedSum, request: Request, text: str) -> str:
    """Return what may be known of the collection: nothing about files, ids or numbers."""
    protocol = made.protocol
    document = {
        "schema_version": SCHEMA_VERSION,
        "content": CONTENT,
        "software": {"hushuffle": __version__},
        "people": protocol.n,
        "messages": protocol.messages,
        "modulus": protocol.modulus,
        "numbers": _numbers(protocol),
        "deployment": protocol.describe(),
        "central": {
            "epsilon": made.central.as_dict(),
            "delta": protocol.delta,
            "relation": relation(1),
            "per": "person",
            "assumed": ONE_ROW,
            "needed": protocol.needed,
            **({} if made.total is None else {"rounds": _rounds(*made.total)}),
        },
        "local_epsilon": "infinity",
        **({} if made.rounds is None else {"key": made.rounds.facts()}),
        "coins": "secure" if request.keys is None else f"keyed, round {request.keys.round}",
        "specification": text,
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _rounds(times: int, epsilon: Bound, delta: float) -> dict[str, Any]:
    return {"times": times, "epsilon": epsilon.as_dict(), "delta": delta}


def _numbers(protocol: SplitAndMix) -> dict[str, Any]:
    """Return what the codes mean."""
    return {"low": protocol.low, "high": protocol.high, "levels": protocol.levels}


def is_of_sum(folder: Path) -> bool:
    """Return whether a folder is one that `collect_sum` wrote, though files of it may be missing."""
    try:
        document = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return (folder / MESSAGES).is_file()
    return isinstance(document, dict) and document.get("content") == CONTENT


def estimate_folder(folder: Path) -> tuple[SumSpecification, SumEstimate]:
    """Return the sum in a folder that `collect_sum` wrote, and its specification; messages are read some at a time.

    Raises:
        DataError: files are missing or damaged, or contradict each other. An edit that contradicts nothing is not
            noticed: files are not signed.
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
    told = {"messages": protocol.messages, "modulus": protocol.modulus, "numbers": _numbers(protocol)}
    for key, value in told.items():
        if document.get(key) != value:
            fail(f"{path}: {key} and specification do not fit together: it may have been edited.")
    if specification.plain()["population"].get("n") != people:
        fail(f"{path}: people and specification do not fit together: it may have been edited.")
    size = total = 0
    for messages in read_reports(folder / MESSAGES, layout=layout_of(protocol)):
        size, total = size + messages.size, (total + residue(messages, protocol.modulus)) % protocol.modulus
    if size != people * protocol.messages:
        fail(f"{path} speaks of {people * protocol.messages:,} messages, but there are {size:,}: it belongs to others.")
    try:
        return specification, sums_found([total], people=people, protocol=protocol)
    except InvalidInputError as error:
        raise DataError(str(error)) from error
