"""Collect one column with Spark: the files are on a cluster, and the reports arrive on this machine."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import polars as pl

from hushuffle._checks import fail, unsupported
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.spark import SparkCollection, dtype_of, quoted
from hushuffle.collection.engines.spark_session import check_installed, plainly, started
from hushuffle.collection.engines.spark_tasks import ID, NAMELESS, TWICE, VALUE, CsvReader, Reader
from hushuffle.collection.kept import FreshReports
from hushuffle.collection.request import Asked, Gathered, Request
from hushuffle.mechanisms.shufflers.base import Reveals
from hushuffle.specification import Specification
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN, Rule, coded
from hushuffle.tables.csv_form import KINDS
from hushuffle.tables.reader import type_name
from hushuffle.tables.refused import refuse_all, share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STRICT: Final = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
_LARGEST_CSV: Final = 1 << 27  # bytes of a file that a worker reads in one piece
_SHORT: Final = 8  # bytes of a short line of a CSV file; compressed lines are assumed eight times shorter
_STARTING: Final = 0.05
_READING: Final = 0.55  # approximate share of the time in which reports arrive
_WRONG: Final = {
    UNSEEN: "{unfit}. {advice}",
    OVERLAP: "match several categories. Change the conditions so that each value matches one category.",
    MISSING: "are missing. {missing} Empty text and NaN count as missing.",
    NAMELESS: "have no id. Every record needs one.",
    TWICE: "share their id with another record, so both would share their randomness. Give every record its own id.",
}


def check(specification: Specification) -> None:
    if FreshReports.of(specification).person(specification.population.whose) is not None:
        unsupported("Spark does not collect several records per person yet: pass `--engine local`.")
    if getattr(specification.population, "quarantine", None) is not None:
        unsupported('Spark sets no records aside (bad_rows = "quarantine"): pass `--engine local`.')
    if specification.shuffler.reveals is Reveals.NOISY_ORDER:
        unsupported(
            "A Mallows shuffle needs all records in one order, which Spark does not keep: pass `--engine local`."
        )
    if specification.shuffler.build().kept < 1:
        unsupported("A shuffler that samples the reports runs on one machine only: pass `--engine local`.")
    check_installed()


def gathered(asked: Asked, kernel: Kernel, request: Request, spill: Path) -> Gathered:
    """Randomize and shuffle all records on the cluster; equal key, ids and round give the reports of one machine."""
    keyed = kernel.key is not None
    # Spark may repeat tasks, so randomness is always keyed; without a key file, by a fresh key that is then discarded.
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
        persons=asked.reports.persons(engine.people),
    )


def refuse_marked(asked: Asked, engine: SparkCollection) -> None:
    """Raise an error if some records have no report; it states their number, since rows have no line numbers."""
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
    """Return a path relative to the specification as one on this machine; Spark itself resolves other paths."""
    return file if ":" in file else f"file://{(base_folder / Path(file).expanduser()).absolute()}"


def read_table(
    session: SparkSession, asked: Asked, *, given: Sequence[str]
) -> tuple[DataFrame, Reader, tuple[int, int] | None]:
    """Return all rows, their reader, and their size (None: unknown); reject sources that may lose rows.

    Spark resolves the files that are `given`; files named in the specification are on this machine.
    """
    files = given or [_at(file, asked.base_folder) for file in asked.files]
    called = ", ".join(asked.called.get(file, file) for file in (given or asked.files))
    text = [file.endswith(KINDS) for file in files]
    if any(text) and not all(text):
        fail(f"{called}: with Spark, all files must be CSV, or all Parquet. Collect them separately.")
    return _texts(session, asked, files, called) if all(text) else _rows(session, asked, files, called)


def _texts(
    session: SparkSession, selection: Asked, files: Sequence[str], called: str
) -> tuple[DataFrame, Reader, tuple[int, int]]:
    """Return whole CSV files: Spark's own CSV reader alters broken rows silently, and splits files."""
    with plainly():
        frame = (
            session.read.format("binaryFile").options(**_STRICT).load(list(files)).select("path", "content", "length")
        )
        sizes = sorted((row["path"], row["length"]) for row in frame.select("path", "length").collect())
        everything = len(frame.inputFiles())
    paths = dict(sizes)
    if len(paths) < len(sizes):
        fail("A file is given twice, so its people would report twice. Give each file once.")
    if empty := everything - len(paths):  # Spark omits empty files
        fail(f"{called}: {empty:,} of {everything:,} files are empty: they have no line of column names.")
    names = {path: called if len(paths) == 1 else Path(unquote(path)).name for path in paths}
    for path, length in sizes:
        if length > _LARGEST_CSV:
            fail(
                f"{names[path]} has {length / 2**20:,.0f} MB; with Spark a CSV file may have {_LARGEST_CSV >> 20} MB. "
                "Split it into several files, or write Parquet."
            )
    columns = {VALUE: selection.column} | ({} if selection.ids is None else {ID: selection.ids})
    reader = CsvReader(answers=selection.answers, columns=columns, form=selection.form, names=names)
    records = sum(length if path.endswith(".gz") else length // _SHORT for path, length in sizes)
    return frame.select("path", "content"), reader, (sum(paths.values()), records)


def _rows(session: SparkSession, selection: Asked, files: Sequence[str], called: str) -> tuple[DataFrame, Reader, None]:
    def read(*files: str) -> DataFrame:
        return session.read.options(**_STRICT).parquet(*files)

    with plainly():
        frame = read(*files)
        if len(files) > 1:
            count = sum(len(read(file).inputFiles()) for file in files)
            if count > len(frame.inputFiles()):
                fail("A file is given twice, so its people would report twice. Give each file once.")
        columns = frame.columns
    wanted = {VALUE: selection.column} | ({} if selection.ids is None else {ID: selection.ids})
    for role, name in wanted.items():
        if name not in columns:
            fail(
                f"{called} has no column {name!r} (number of columns: {len(columns):,}). "
                "Capital letters and spaces matter."
            )
        _check_type(dtype_of(frame, name), name, None if role == ID else coded(selection.answers.coding))
    with plainly():
        # Spark accepts no name with a dot here.
        rows = frame.selectExpr(*(f"{quoted(name)} AS {role}" for role, name in wanted.items()))
    return rows, Reader(answers=selection.answers), None


def _check_type(dtype: pl.DataType, column: str, rule: Rule | None) -> None:
    """Raise an error if a column's type does not fit its rule; a column without a rule is the column of ids."""
    whole = dtype.is_integer() or (isinstance(dtype, pl.Decimal) and dtype.scale == 0)
    if rule is None and not (whole or dtype == pl.String):
        fail(f"column {column!r} is of type {type_name(dtype)}. Ids must be text or integers.")
    if rule is not None and not rule.takes(dtype):
        fail(f"column {column!r} is of type {type_name(dtype)}. {rule.must}")
