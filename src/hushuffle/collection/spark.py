"""One column with Spark, from Parquet files on a cluster to a folder of shuffled reports that nobody has seen yet."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from hushuffle._checks import fail
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.spark import SparkCollection, dtype_of, quoted
from hushuffle.collection.engines.spark_session import check_installed, plainly, started
from hushuffle.collection.engines.spark_tasks import ID, NAMELESS, TWICE, VALUE, Reader
from hushuffle.collection.release import (
    Asked,
    central_of,
    dummy_key_of,
    manifest_of,
    mechanism_of,
    refuse_shuffler,
    told,
)
from hushuffle.collection.report_files import write_reports
from hushuffle.collection.request import MANIFEST, REPORTS, Release, Request, TooFewPeople
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.specification import Specification
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN
from hushuffle.tables.sources import type_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STARTING: Final = 0.05
_READING: Final = 0.55  # the share of the time in which reports arrive, about
_WRONG: Final = {
    UNSEEN: "match no category. {advice}",
    OVERLAP: "match several categories. Make the conditions exclude each other.",
    MISSING: 'are missing. Set missing = "drop" or to a category. Empty text and NaN count as missing.',
    NAMELESS: "have no id. Every record needs one.",
    TWICE: "have an id that another record has: they would share their coins. Give every record an id of its own.",
}


@dataclass(frozen=True, kw_only=True)
class _Answers:
    """Where Spark finds the answers that are `asked` for; `names` are what messages call the files."""

    files: tuple[str, ...]
    names: tuple[str, ...]
    asked: Asked


def release_with_spark(
    specification: Specification, request: Request, *, master: str, spill: Path, target: Path
) -> Release:
    """Write the reports of one column and their manifest into the folder `target`, as `release` does on one machine.

    With the same key, ids and round the reports are those of `release`.

    Args:
        specification: the deployment; without a Mallows shuffle.
        request: what is asked besides; `sources` are Parquet files as Spark names them.
        master: the address of the cluster, or "local[2]" for two tasks at a time on this machine.
        spill: a private, empty folder for reports on this machine.
        target: a folder that only this process knows.

    Raises:
        MissingDependencyError: pyspark or Java is not there.
        DataError, SpecificationError, UnsupportedProtocolError: see `hushuffle.collection.collect.collect`.
    """
    check_installed()
    _refuse(specification, request)
    answers, keys = _answers(specification, request), request.keys
    key = None if keys is None else keys.begin()
    kernel = Kernel(
        randomizer=specification.randomizer.build(answers.asked.answers.k),
        # Spark executes tasks again: coins are keyed always, without a file by a key that nobody will ever see.
        key=secrets.token_bytes(32) if key is None else key,
        round=0 if keys is None else keys.round,
    )
    request.tell("starting Spark", 0.0)
    with started(master) as session:
        frame = _frame(session, answers)
        engine = SparkCollection(
            frame,
            Reader(answers=answers.asked.answers, ids=keys is not None),
            kernel,
            spill,
            mechanism=None if keys is None else mechanism_of(kernel, answers.asked),
        )
        _run(engine, request)
    _refuse_records(engine, answers)
    if engine.people < request.min_batch:
        message = (
            f"There are {engine.people:,} people, fewer than the {request.min_batch:,} that a batch must have: "
            "nothing leaves."
        )
        raise TooFewPeople(message)
    protocol = Protocol(randomizer=kernel.randomizer, shuffler=specification.shuffler.build(), n=engine.people)
    assert protocol.shuffler.reveals is Reveals.MULTISET
    central = central_of(specification, protocol)
    entries = None if keys is None else engine.entries()
    manifest = manifest_of(specification, protocol, central, answers.asked.answers, request, {})
    blocks = engine.blocks(dummies=protocol.shuffler.dummies, dummy_key=dummy_key_of(kernel, entries))
    everything = engine.people + protocol.shuffler.dummies
    write_reports(target / REPORTS, told(blocks, everything, request), layout=kernel.layout)
    (target / MANIFEST).write_text(manifest.text(), encoding="utf-8")
    return Release(
        manifest=manifest,
        protocol=protocol,
        central=central,
        dropped=engine.marks[MISSING],
        entries=entries,
        key=key,
    )


def _refuse(specification: Specification, request: Request) -> None:
    refuse_shuffler(specification, request)
    if specification.shuffler.kind == "mallows":
        message = "A Mallows shuffle needs everybody's place in one order: collect it with --engine local."
        raise UnsupportedProtocolError(message)
    if request.one_of_several:
        message = "Several columns are not collected with Spark yet: take --engine local, or a specification for each."
        raise UnsupportedProtocolError(message)


def _answers(specification: Specification, request: Request) -> _Answers:
    asked = Asked.of(specification, request)
    files = tuple(request.sources) or tuple(_at(file, asked.base_folder) for file in asked.files)
    names = tuple(request.called.get(file, file) for file in (*request.sources,) or files)
    return _Answers(files=files, names=names, asked=asked)


def _at(file: str, base_folder: Path) -> str:
    """Return a path relative to the specification as one on this machine; others are for Spark to understand."""
    return file if ":" in file else f"file://{(base_folder / Path(file).expanduser()).absolute()}"


def _frame(session: SparkSession, answers: _Answers) -> DataFrame:
    """Return the rows with the columns that are needed; whatever could lose records silently is refused."""
    for file, called in zip(answers.files, answers.names, strict=True):
        if file.endswith((".csv", ".csv.gz")):
            fail(f"{called}: Spark's reader of CSV mends broken rows silently. Write Parquet, or take --engine local.")

    def read(*files: str) -> DataFrame:
        strict = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
        return session.read.options(**strict).parquet(*files)

    with plainly():
        frame = read(*answers.files)
        if len(answers.files) > 1:
            found = sum(len(read(file).inputFiles()) for file in answers.files)
            if found > len(frame.inputFiles()):
                fail("A file is there twice: its people would report twice.")
        names = frame.columns
    wanted = {VALUE: answers.asked.column} | ({} if answers.asked.ids is None else {ID: answers.asked.ids})
    for role, name in wanted.items():
        if name not in names:
            fail(
                f"{', '.join(answers.names)} has no column {name!r} (number of columns: {len(names):,}). "
                "Capital letters and spaces matter."
            )
        _check_type(dtype_of(frame, name), name, ids=role == ID)
    with plainly():
        # Spark takes no name with a dot here.
        return frame.selectExpr(*(f"{quoted(name)} AS {role}" for role, name in wanted.items()))


def _check_type(dtype: pl.DataType, column: str, *, ids: bool) -> None:
    whole = dtype.is_integer() or (isinstance(dtype, pl.Decimal) and dtype.scale == 0)
    if ids and not (whole or dtype == pl.String):
        fail(f"column {column!r} is of type {type_name(dtype)}. Ids must be text or integers.")
    if not (dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null)):
        fail(f"column {column!r} is of type {type_name(dtype)}. It must hold text, numbers or booleans.")


def _run(engine: SparkCollection, request: Request) -> None:
    def tell(rows: int, total: int) -> None:
        request.tell("randomizing", _STARTING + (_READING - _STARTING) * rows / max(rows, total, 1))

    request.tell("randomizing", _STARTING)
    engine.run(tell)


def _refuse_records(engine: SparkCollection, answers: _Answers) -> None:
    """Refuse a batch with records that have no report, but for missing ones that are to be dropped."""
    for mark, sentence in _WRONG.items():
        count = engine.marks[mark]
        if count and not (mark == MISSING and answers.asked.answers.drop):
            what = sentence.format(advice=answers.asked.answers.coding.advice)
            fail(f"column {answers.asked.column!r}: {count:,} records {what}")
