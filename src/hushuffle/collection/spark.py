"""One column with Spark: from Parquet files on a cluster to the reports of everybody on this machine."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import polars as pl

from hushuffle._checks import fail
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.spark import SparkCollection, dtype_of, quoted
from hushuffle.collection.engines.spark_session import check_installed, plainly, started
from hushuffle.collection.engines.spark_tasks import ID, NAMELESS, TWICE, VALUE, CsvReader, Reader
from hushuffle.collection.request import Asked, Gathered, Request
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.shufflers.base import Reveals
from hushuffle.specification import Specification
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN
from hushuffle.tables.csv_form import KINDS
from hushuffle.tables.private import refuse_all, share
from hushuffle.tables.reader import Rule, coded
from hushuffle.tables.sources import type_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STRICT: Final = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
_LARGEST_CSV: Final = 1 << 27  # bytes of a file that a worker reads whole
_SHORT: Final = 8  # bytes of a short line of a CSV file; packed lines are taken for eight times shorter
_STARTING: Final = 0.05
_READING: Final = 0.55  # the share of the time in which reports arrive, about
_WRONG: Final = {
    UNSEEN: "{unfit}. {advice}",
    OVERLAP: "match several categories. Make the conditions exclude each other.",
    MISSING: "are missing. {missing} Empty text and NaN count as missing.",
    NAMELESS: "have no id. Every record needs one.",
    TWICE: "have an id that another record has: they would share their coins. Give every record an id of its own.",
}


def check(specification: Specification) -> None:
    """Refuse what is not collected with Spark."""
    if specification.population.whose is not None and not specification.memoised:
        message = "Records of which each person has several are not collected with Spark yet: take --engine local."
        raise UnsupportedProtocolError(message)
    if specification.shuffler.reveals is Reveals.NOISY_ORDER:
        message = "A Mallows shuffle needs everybody's place in one order: collect it with --engine local."
        raise UnsupportedProtocolError(message)
    if specification.shuffler.build().kept < 1:
        message = "A shuffler that keeps a sample of the reports is run on one machine only: take --engine local."
        raise UnsupportedProtocolError(message)
    check_installed()


def gathered(asked: Asked, kernel: Kernel, request: Request, spill: Path) -> Gathered:
    """Randomize and shuffle everybody on the cluster of a request; what it makes lies in the private folder `spill`.

    With the same key, ids and round the reports are those of one machine.
    """
    keyed = kernel.key is not None
    # Spark executes tasks again: coins are keyed always, without a file by a key that nobody will ever see.
    kernel = kernel if keyed else replace(kernel, key=secrets.token_bytes(32))
    request.tell("starting Spark", 0.0)
    assert request.master is not None
    with started(request.master) as session:
        frame, reader, size = read_table(session, asked, given=request.sources)
        mechanism = asked.mechanism(kernel) if keyed else None
        engine = SparkCollection(frame, replace(reader, ids=keyed), kernel, spill, mechanism=mechanism, size=size)

        def tell(rows: int, total: int) -> None:
            request.tell("randomizing", _STARTING + (_READING - _STARTING) * rows / max(rows, total, 1))

        tell(0, 1)
        engine.run(tell)
    refuse_marked(asked, engine)
    return Gathered(
        reports=engine.people,
        dropped=engine.marks[MISSING],
        blocks=engine.blocks,
        entries=engine.entries if keyed else None,
        persons=engine.people if asked.memoised else None,
    )


def refuse_marked(asked: Asked, engine: SparkCollection) -> None:
    """Say of all records that have no report how many there are; rows of a cluster have no numbers."""
    total, answers = engine.people + sum(engine.marks.values()), asked.answers
    problems = []
    for mark, sentence in _WRONG.items():
        count = engine.marks[mark]
        if count and not (mark == MISSING and answers.drop):
            rule = answers.coding
            what = sentence.format(unfit=rule.unfit, advice=rule.advice, missing=answers.missing_advice)
            problems.append(f"{count:,} of {total:,} records ({share(count, total)}) {what}")
    refuse_all(f"column {asked.column!r}", problems)


def _at(file: str, base_folder: Path) -> str:
    """Return a path relative to the specification as one on this machine; others are for Spark to understand."""
    return file if ":" in file else f"file://{(base_folder / Path(file).expanduser()).absolute()}"


def read_table(
    session: SparkSession, asked: Asked, *, given: Sequence[str]
) -> tuple[DataFrame, Reader, tuple[int, int] | None]:
    """Return rows, what reads them, and their size if it is known; whatever could lose records silently is refused.

    Files that are `given` are for Spark to understand, those of the specification are on this machine.
    """
    files = given or [_at(file, asked.base_folder) for file in asked.files]
    called = ", ".join(asked.called.get(file, file) for file in (given or asked.files))
    text = [file.endswith(KINDS) for file in files]
    if any(text) and not all(text):
        fail(f"{called}: with Spark, files are either all CSV or all Parquet. Collect them apart.")
    return _texts(session, asked, files, called) if all(text) else _rows(session, asked, files, called)


def _texts(
    session: SparkSession, asked: Asked, files: Sequence[str], called: str
) -> tuple[DataFrame, Reader, tuple[int, int]]:
    """Return CSV files, each whole: Spark's own reader mends broken rows silently, and takes a part of a file."""
    with plainly():
        frame = (
            session.read.format("binaryFile").options(**_STRICT).load(list(files)).select("path", "content", "length")
        )
        found = sorted((row["path"], row["length"]) for row in frame.select("path", "length").collect())
        everything = len(frame.inputFiles())
    paths = dict(found)
    if len(paths) < len(found):
        fail("A file is there twice: its people would report twice.")
    if empty := everything - len(paths):  # Spark leaves them out
        fail(f"{called}: {empty:,} of {everything:,} files are empty: not even a line with the names of the columns.")
    names = {path: called if len(paths) == 1 else Path(unquote(path)).name for path in paths}
    for path, length in found:
        if length > _LARGEST_CSV:
            fail(
                f"{names[path]} has {length / 2**20:,.0f} MB: a CSV file is read whole with Spark, of "
                f"{_LARGEST_CSV >> 20} MB at most. Cut it into several, or write Parquet."
            )
    columns = {VALUE: asked.column} | ({} if asked.ids is None else {ID: asked.ids})
    reader = CsvReader(answers=asked.answers, columns=columns, form=asked.form, names=names)
    records = sum(length if path.endswith(".gz") else length // _SHORT for path, length in found)
    return frame.select("path", "content"), reader, (sum(paths.values()), records)


def _rows(session: SparkSession, asked: Asked, files: Sequence[str], called: str) -> tuple[DataFrame, Reader, None]:
    """Return rows of Parquet files, with the columns that are needed."""

    def read(*files: str) -> DataFrame:
        return session.read.options(**_STRICT).parquet(*files)

    with plainly():
        frame = read(*files)
        if len(files) > 1:
            found = sum(len(read(file).inputFiles()) for file in files)
            if found > len(frame.inputFiles()):
                fail("A file is there twice: its people would report twice.")
        columns = frame.columns
    wanted = {VALUE: asked.column} | ({} if asked.ids is None else {ID: asked.ids})
    for role, name in wanted.items():
        if name not in columns:
            fail(
                f"{called} has no column {name!r} (number of columns: {len(columns):,}). "
                "Capital letters and spaces matter."
            )
        _check_type(dtype_of(frame, name), name, None if role == ID else coded(asked.answers.coding))
    with plainly():
        # Spark takes no name with a dot here.
        rows = frame.selectExpr(*(f"{quoted(name)} AS {role}" for role, name in wanted.items()))
    return rows, Reader(answers=asked.answers), None


def _check_type(dtype: pl.DataType, column: str, rule: Rule | None) -> None:
    """Refuse a column of a type that its rule does not take; one without a rule is that of ids."""
    whole = dtype.is_integer() or (isinstance(dtype, pl.Decimal) and dtype.scale == 0)
    if rule is None and not (whole or dtype == pl.String):
        fail(f"column {column!r} is of type {type_name(dtype)}. Ids must be text or integers.")
    if rule is not None and not rule.takes(dtype):
        fail(f"column {column!r} is of type {type_name(dtype)}. {rule.must}")
