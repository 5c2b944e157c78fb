"""One column with Spark: from Parquet files on a cluster to the reports of everybody on this machine."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from hushuffle._checks import fail
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.spark import SparkCollection, dtype_of, quoted
from hushuffle.collection.engines.spark_session import check_installed, plainly, started
from hushuffle.collection.engines.spark_tasks import ID, NAMELESS, TWICE, VALUE, Reader
from hushuffle.collection.request import Asked, Gathered, Request
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.specification import Specification
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN
from hushuffle.tables.private import refuse_all, share
from hushuffle.tables.reader import Rule, coded
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


def check(specification: Specification, *, several: bool) -> None:
    """Refuse what is not collected with Spark."""
    if specification.population.whose is not None:
        message = "Records of which each person has several are not collected with Spark yet: take --engine local."
        raise UnsupportedProtocolError(message)
    check_installed()
    if specification.shuffler.kind == "mallows":
        message = "A Mallows shuffle needs everybody's place in one order: collect it with --engine local."
        raise UnsupportedProtocolError(message)
    if several:
        message = "Several columns are not collected with Spark yet: take --engine local, or a specification for each."
        raise UnsupportedProtocolError(message)


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
        engine = SparkCollection(
            _frame(session, asked, given=request.sources),
            Reader(answers=asked.answers, ids=keyed),
            kernel,
            spill,
            mechanism=asked.mechanism(kernel) if keyed else None,
        )

        def tell(rows: int, total: int) -> None:
            request.tell("randomizing", _STARTING + (_READING - _STARTING) * rows / max(rows, total, 1))

        tell(0, 1)
        engine.run(tell)
    _refuse_marked(asked, engine)
    return Gathered(
        reports=engine.people,
        dropped=engine.marks[MISSING],
        blocks=engine.blocks,
        entries=engine.entries if keyed else None,
    )


def _refuse_marked(asked: Asked, engine: SparkCollection) -> None:
    """Say of all records that have no report how many there are; rows of a cluster have no numbers."""
    total = engine.people + sum(engine.marks.values())
    problems = []
    for mark, sentence in _WRONG.items():
        count = engine.marks[mark]
        if count and not (mark == MISSING and asked.answers.drop):
            advice = sentence.format(advice=asked.answers.coding.advice)
            problems.append(f"{count:,} of {total:,} records ({share(count, total)}) {advice}")
    refuse_all(f"column {asked.column!r}", problems)


def _at(file: str, base_folder: Path) -> str:
    """Return a path relative to the specification as one on this machine; others are for Spark to understand."""
    return file if ":" in file else f"file://{(base_folder / Path(file).expanduser()).absolute()}"


def _frame(session: SparkSession, asked: Asked, *, given: Sequence[str]) -> DataFrame:
    """Return the rows with the columns that are needed; whatever could lose records silently is refused.

    Files that are `given` are for Spark to understand, those of the specification are on this machine.
    """
    files = given or [_at(file, asked.base_folder) for file in asked.files]
    names = [asked.called.get(file, file) for file in files]
    for file, called in zip(files, names, strict=True):
        if file.endswith((".csv", ".csv.gz")):
            fail(f"{called}: Spark's reader of CSV mends broken rows silently. Write Parquet, or take --engine local.")

    def read(*files: str) -> DataFrame:
        strict = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
        return session.read.options(**strict).parquet(*files)

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
                f"{', '.join(names)} has no column {name!r} (number of columns: {len(columns):,}). "
                "Capital letters and spaces matter."
            )
        _check_type(dtype_of(frame, name), name, None if role == ID else coded(asked.answers.coding))
    with plainly():
        # Spark takes no name with a dot here.
        return frame.selectExpr(*(f"{quoted(name)} AS {role}" for role, name in wanted.items()))


def _check_type(dtype: pl.DataType, column: str, rule: Rule | None) -> None:
    """Refuse a column of a type that its rule does not take; one without a rule is that of ids."""
    whole = dtype.is_integer() or (isinstance(dtype, pl.Decimal) and dtype.scale == 0)
    if rule is None and not (whole or dtype == pl.String):
        fail(f"column {column!r} is of type {type_name(dtype)}. Ids must be text or integers.")
    if rule is not None and not rule.takes(dtype):
        fail(f"column {column!r} is of type {type_name(dtype)}. {rule.must}")
