"""Collect a sum by several messages: split people's numbers into mixed messages, and estimate the sum from these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hushuffle._checks import fail
from hushuffle.collection.budget import Part, Spent, charged, refuse_used_up
from hushuffle.collection.engines.local import ExternalShuffle
from hushuffle.collection.engines.spark_session import check_installed
from hushuffle.collection.kept import KeyRounds
from hushuffle.collection.ledger import Candidate, opened
from hushuffle.collection.release import told
from hushuffle.collection.released import document_in, document_text, read_document, read_reports, write_reports
from hushuffle.collection.request import MANIFEST, Asked, Request, refuse_few, rounds_of
from hushuffle.collection.sum_engines import MIXED, SumKernel, opened_source
from hushuffle.curves.laws.shared_sums import SharedSums
from hushuffle.errors import DataError, InvalidInputError, SpecificationError
from hushuffle.estimation.sums import SumEstimate, residue, sums_found
from hushuffle.files.private_files import publish, workplace
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Bound
from hushuffle.model.report_layout import ReportLayout
from hushuffle.questions import dp
from hushuffle.randomness import secure
from hushuffle.specification.population import ONE_ROW, relation
from hushuffle.specification.sums import SumSpecification, parse_sum

MESSAGES: Final = "messages.parquet"
CONTENT: Final = "manifest of a sum"

_MIXED_BY: Final = "split and mix"
"""The name of the shuffler that the ledger records for sums."""


@dataclass(frozen=True, kw_only=True)
class CollectedSum:
    """The release of a sum, without the counts `dropped` and `clipped`. `rounds` and `spent` are as in `Collected`.

    `total` is the number of rounds, and their joint central epsilon and delta (None: one round).
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
    """Split all numbers, mix all messages, and write `messages.parquet` and `manifest.json` into a new folder.

    Files are read twice, since the noise of a person depends on the number of people. With a key, all messages can be
    repeated for the same people with the same numbers. This machine, or the cluster that `request` names, simulates all
    clients and the shuffler. So this is a rehearsal, or a collection by an operator who is trusted with the numbers.
    """
    if request.reference is not None:
        fail("The messages of a sum are released without an order: remove --reference.")
    if request.master is not None:
        check_installed()
    specification.one_number("collect")
    selection = Asked.about(specification.asked, request)
    refuse_used_up(request.budget)
    grid = specification.asked.grid
    assert grid is not None  # a rule
    with workplace(out) as place:
        folder, spill = place / "release", place / "spill"
        folder.mkdir()
        spill.mkdir(mode=0o700)
        with opened_source(selection, request, grid, spill) as source:
            counted = source.count()
            refuse_few(
                counted.people, request.min_batch, specification.targets.people, (2, "a sum by several messages")
            )
            protocol = specification.build(counted.people)
            layout = layout_of(protocol)
            shuffle = ExternalShuffle(layout.dtype, spill, rng=secure(), memory=request.memory)
            key, number = (None, 0) if request.keys is None else (request.keys.begin(), request.keys.round)
            kernel = SumKernel(protocol=protocol, column=selection.column, key=key, round=number)
            for messages in source.messages(kernel):
                shuffle.add(layout.pack(messages.ravel()))
            entries = source.entries()
        if shuffle.size != counted.people * protocol.messages:
            fail("The files have changed while they were read: nothing was released. Run the collection again.")
        text, times, delta = _released(specification, protocol), specification.times, specification.delta
        blocks = told(shuffle.blocks(), shuffle.size, request, step="mixing and writing", since=MIXED)
        write_reports(folder / MESSAGES, blocks, layout=layout)
        collected = CollectedSum(
            protocol=protocol,
            central=SharedSums(protocol=protocol).epsilon(protocol.delta),
            files=(out / MESSAGES, out / MANIFEST),
            dropped=counted.dropped,
            clipped=counted.clipped,
            total=None if times == 1 else (times, dp.compose([(protocol, times)], delta=delta), delta),
        )
        parts, digests = [Part(specification=text, reports=counted.people)], [] if entries is None else [entries.digest]
        with charged(request.budget, parts, digests) as (spent, note):
            collected = replace(collected, spent=spent)
            if entries is not None:
                collected = _admitted(
                    collected, request, key, Candidate(entries=entries, shuffler=_MIXED_BY, specification=text)
                )
            note()
            (folder / MANIFEST).write_text(_manifest(collected, request, text), encoding="utf-8")
            publish(folder, out)
    request.tell("done", 1.0)
    return collected


def _admitted(collected: CollectedSum, request: Request, key: bytes | None, candidate: Candidate) -> CollectedSum:
    assert request.keys is not None
    assert key is not None
    with opened(key, request.keys.file) as ledger:
        (new,) = ledger.check([candidate])
        batches = (*ledger.batches, *([candidate.batch] if new else []))
        rounds = rounds_of(batches, delta=collected.protocol.delta)
        if new:
            ledger.admit([candidate])
    return replace(collected, rounds=rounds, repeated=not new)


def layout_of(protocol: SplitAndMix) -> ReportLayout:
    return ReportLayout(names=("message",), limits=(protocol.modulus,))


def _released(specification: SumSpecification, protocol: SplitAndMix) -> str:
    """Return the specification of the release: with the actual number of people, and without input files."""
    grid = protocol.grid
    population = {"n": protocol.n, "kind": "number", "low": grid.low, "high": grid.high, "levels": grid.levels}
    return SumSpecification.model_validate({**specification.plain(), "population": population}).effective()


def _manifest(collected: CollectedSum, request: Request, text: str) -> str:
    """Return the public facts about the collection: nothing about files, ids or numbers."""
    protocol, rounds = collected.protocol, dict[str, Any]()
    if collected.total is not None:
        times, epsilon, delta = collected.total
        rounds["rounds"] = {"times": times, "epsilon": epsilon.as_dict(), "delta": delta}
    fields = {
        "people": protocol.n,
        "messages": protocol.messages,
        "modulus": protocol.modulus,
        "numbers": _numbers(protocol),
        "deployment": protocol.describe(),
        "central": {
            "epsilon": collected.central.as_dict(),
            "delta": protocol.delta,
            "relation": relation(1),
            "per": "person",
            "assumed": ONE_ROW,
            "needed": protocol.needed,
            **rounds,
        },
        "local_epsilon": "infinity",
        **({} if collected.rounds is None else {"key": collected.rounds.facts()}),
        "coins": "secure" if request.keys is None else f"keyed, round {request.keys.round}",
        "specification": text,
    }
    return document_text(CONTENT, fields)


def _numbers(protocol: SplitAndMix) -> dict[str, Any]:
    return {"low": protocol.low, "high": protocol.high, "levels": protocol.levels}


def is_of_sum(folder: Path) -> bool:
    """Return whether `collect_sum` wrote `folder`; files in it may be missing."""
    manifest = folder / MANIFEST
    return document_in(manifest, CONTENT) is not None if manifest.is_file() else (folder / MESSAGES).is_file()


def estimate_folder(folder: Path) -> tuple[SumSpecification, SumEstimate]:
    """Return the sum in a folder that `collect_sum` wrote. Files are not signed: a consistent edit is not noticed."""
    path = folder / MANIFEST
    document = read_document(path, CONTENT)
    text, people = document.get("specification"), document.get("people")
    if not isinstance(text, str) or not isinstance(people, int) or isinstance(people, bool):
        fail(f"{path} must have `specification` and `people`: the file may have been edited.")
    try:
        specification = parse_sum(text, file=f"the specification in {path}")
        protocol = specification.build(people)
    except (SpecificationError, DataError) as error:
        raise DataError(str(error)) from error
    expected = {"messages": protocol.messages, "modulus": protocol.modulus, "numbers": _numbers(protocol)}
    for key, value in expected.items():
        if document.get(key) != value:
            fail(f"{path}: `{key}` and `specification` contradict each other: the file may have been edited.")
    if specification.plain()["population"].get("n") != people:
        fail(f"{path}: `people` and `specification` contradict each other: the file may have been edited.")
    size = total = 0
    for messages in read_reports(folder / MESSAGES, layout=layout_of(protocol)):
        size, total = size + messages.size, (total + residue(messages, protocol.modulus)) % protocol.modulus
    if size != people * protocol.messages:
        fail(f"{path} describes {people * protocol.messages:,} messages, but there are {size:,}: it is of another sum.")
    try:
        return specification, sums_found([total], people=people, protocol=protocol)
    except InvalidInputError as error:
        raise DataError(str(error)) from error
