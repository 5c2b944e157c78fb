"""`Table`: rows of cells, a cell being text, a number, or a figure that says what it is."""

from __future__ import annotations

from dataclasses import dataclass

from hushuffle import _checks
from hushuffle.model.bound import Bound

Cell = str | int | float | Bound
"""One cell of a table: text, a number, or a figure that says what it is."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells under named columns; `caption` is one plain sentence.

    Raises:
        InvalidInputError: a row has not one cell for each column, or a number is nan.

    >>> Table(key="k", title="Errors", caption="", columns=("n", "error"), rows=((10, 0.5), (100, 0.25))).rows[1]
    (100, 0.25)
    """

    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                _checks.reject("rows", f"{len(self.columns)} cells each", len(row))
            _checks.no_nan("rows", [cell for cell in row if isinstance(cell, float)])

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The figures in its cells, row by row."""
        return tuple(cell for row in self.rows for cell in row if isinstance(cell, Bound))
