"""Load private tables: several columns of the same records, either as codes of categories or as numbers."""

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
from hushuffle.tables.csv_form import CsvForm
from hushuffle.tables.private import WrongRecords, refuse_all, wrong_answers
from hushuffle.tables.reader import NUMBER, Faults, Marks, TableReader, coded
from hushuffle.tables.sources import open_source

_NUMBER: Final = replace(
    NUMBER,
    takes=lambda dtype: dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null),
    must="It must hold numbers.",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateTable:
    """Records of people: `groups` contains codes of categorical columns, and `numbers` other columns, shape (n,)."""

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
    form: CsvForm | None = None,
) -> PrivateTable:
    """Return the columns of `source` that are keys of `categories`, as codes, and the columns `numbers`, as floats.

    `source`, `base_folder` and `form` (of CSV files) are as in `load_column`. `missing="drop"` omits every record in
    which a column is missing.

    >>> table = load_table("statsmodels:fair", categories={"religious": [1, 2, 3, 4]}, numbers=["educ"])
    >>> table.n, table.groups["religious"][:3].tolist(), table.numbers["educ"][:3].tolist()
    (6366, [2, 0, 0], [17.0, 14.0, 16.0])
    """
    answers = {name: Answers.of(groups, missing) for name, groups in categories.items()}
    wanted = {f"group {name}": (name, coded(meant.coding)) for name, meant in answers.items()}
    wanted |= {f"number {name}": (name, _NUMBER) for name in numbers}
    reader = TableReader(open_source(source, base_folder=base_folder or Path(), form=form), wanted)
    table = reader.whole()
    messages = []
    for name, meant in answers.items():
        try:
            refuse_all(
                f"column {name!r} of {source}", wrong_answers(reader, f"group {name}", name, meant, total=table.height)
            )
        except WrongRecords as error:
            messages.append(str(error))
    if messages:
        fail("\n".join(messages))
    marks = {name: rule.marks(table[name]) for name, (_, rule) in wanted.items()}
    for name in numbers:
        _refuse_numbers(f"column {name!r} of {source}", marks[f"number {name}"], missing=missing)
    whole = np.logical_and.reduce([found >= 0 for found in marks.values()])
    n = int(np.count_nonzero(whole))
    if not n:
        fail(f"{source}: no record has all of the columns {', '.join((*answers, *numbers))}.")
    complete = table if n == table.height else table.filter(pl.Series(whole))
    return PrivateTable(
        groups={name: complete[f"group {name}"].to_numpy().astype(np.int64) for name in answers},
        numbers={name: complete[f"number {name}"].to_numpy() for name in numbers},
        n=n,
        source=source,
        dropped=table.height - n,
    )


def _refuse_numbers(where: str, marks: Marks, *, missing: str) -> None:
    faults, these = Faults(), f": {{count}} of {marks.size:,} records ({{numbers}})"
    faults.note(marks)
    if missing == "refuse":
        faults.refuse(MISSING, where, f'{these} are missing. Set missing = "drop" to exclude them.')
    faults.refuse(UNSEEN, where, f"{these} hold no finite number.")
