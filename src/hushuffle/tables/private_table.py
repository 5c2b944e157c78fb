"""`load_table`: several private columns of the same records, as groups and as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle._checks import fail
from hushuffle.tables.categories import MISSING, UNSEEN, Answers, Categories
from hushuffle.tables.column import refuse_faults
from hushuffle.tables.records import NUMBER, Faults, Marks, TableReader, coded
from hushuffle.tables.sources import open_source

_NUMBER: Final = replace(
    NUMBER,
    takes=lambda dtype: dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null),
    must="It must hold numbers.",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateTable:
    """Records of people: `groups`, codes of each categorical column, and `numbers` of each other one, shape (n,)."""

    groups: Mapping[str, npt.NDArray[np.int64]] = field(repr=False)
    numbers: Mapping[str, npt.NDArray[np.float64]] = field(repr=False)
    n: int
    source: str
    dropped: int = 0


def load_table(
    source: str,
    *,
    categories: Mapping[str, Categories],
    numbers: Sequence[str] = (),
    missing: Literal["refuse", "drop"] = "refuse",
    base_folder: Path | None = None,
) -> PrivateTable:
    """Return columns of `source`, one record for each person.

    Args:
        source: as `load_column`.
        categories: of each column of groups.
        numbers: names of columns of finite numbers.
        missing: "drop" leaves out every record in which one of the columns is missing.
        base_folder: where relative paths start; None for the current folder.

    Raises:
        DataError: the data cannot be read or do not fit; the message shows no value.
        MissingDependencyError: statsmodels is not installed.

    >>> table = load_table("statsmodels:fair", categories={"religious": [1, 2, 3, 4]}, numbers=["educ"])
    >>> table.n, table.groups["religious"][:3].tolist(), table.numbers["educ"][:3].tolist()
    (6366, [2, 0, 0], [17.0, 14.0, 16.0])
    """
    answers = {name: Answers.of(groups, missing) for name, groups in categories.items()}
    wanted = {f"group {name}": (name, coded(meant.coding)) for name, meant in answers.items()}
    wanted |= {f"number {name}": (name, _NUMBER) for name in numbers}
    reader = TableReader(open_source(source, base_folder=base_folder or Path()), wanted)
    table = reader.whole()
    for name, meant in answers.items():
        refuse_faults(reader, f"group {name}", name, meant, where=f"column {name!r} of {source}", total=table.height)
    marks = {name: rule.marks(table[name]) for name, (_, rule) in wanted.items()}
    for name in numbers:
        _refuse_numbers(f"column {name!r} of {source}", marks[f"number {name}"], missing=missing)
    whole = np.logical_and.reduce([found >= 0 for found in marks.values()])
    n = int(np.count_nonzero(whole))
    if not n:
        fail(f"{source}: no record has all of the columns {', '.join((*answers, *numbers))}.")
    kept = table if n == table.height else table.filter(pl.Series(whole))
    return PrivateTable(
        groups={name: kept[f"group {name}"].to_numpy().astype(np.int64) for name in answers},
        numbers={name: kept[f"number {name}"].to_numpy() for name in numbers},
        n=n,
        source=source,
        dropped=table.height - n,
    )


def _refuse_numbers(where: str, marks: Marks, *, missing: str) -> None:
    faults, total = Faults(), marks.size
    faults.note(marks)
    if missing == "refuse":
        advice = 'are missing. Set missing = "drop" to leave them out.'
        faults.refuse(MISSING, where, f": {{count}} of {{total}} records ({{numbers}}) {advice}", total=total)
    faults.refuse(UNSEEN, where, ": {count} of {total} records ({numbers}) hold no finite number.", total=total)
