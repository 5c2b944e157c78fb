"""`Study`: a table or figure of a paper, or an attack on data, as values. Computed by workflows, rendered by report."""

from __future__ import annotations

from dataclasses import dataclass

from hushuffle import _checks
from hushuffle.model.assessment import Chart, Warned
from hushuffle.model.bound import Bound
from hushuffle.model.citation import Citation
from hushuffle.model.finding import Finding

Cell = str | int | float | Bound
"""One cell of a table: text, a number, or a figure that says what it is."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells under named columns; `caption` is one plain sentence.

    Raises:
        InvalidInputError: a row has not one cell for each column.

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


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One picture of a `PointMap`: a point for each (x, y), coloured by the category `values`, codes into labels.

    Raises:
        InvalidInputError: x, y and values are not of one length.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.x) == len(self.y) == len(self.values):
            _checks.reject("x, y, values", "of one length", (len(self.x), len(self.y), len(self.values)))


@dataclass(frozen=True, kw_only=True)
class PointMap:
    """Pictures side by side on the same axes: the same people, coloured by what is seen of them.

    `labels` name the categories; `caption` is one plain sentence.

    Raises:
        InvalidInputError: a code is not one of 0..len(labels)-1.
    """

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    labels: tuple[str, ...]
    panels: tuple[Panel, ...]

    def __post_init__(self) -> None:
        for panel in self.panels:
            if panel.values and not 0 <= min(panel.values) <= max(panel.values) < len(self.labels):
                rule = f"codes of the {len(self.labels)} labels"
                _checks.reject("values", rule, f"<{min(panel.values)} to {max(panel.values)}>")


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """A matrix as a picture: `values[row][column]`, named rows (`y`) and columns (`x`).

    `log` colours by the logarithm.

    Raises:
        InvalidInputError: not one row for each name in `y`, or not one value for each name in `x`.
    """

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    log: bool = False

    def __post_init__(self) -> None:
        if len(self.values) != len(self.y) or any(len(row) != len(self.x) for row in self.values):
            shape = f"{len(self.values)} rows of {sorted({len(row) for row in self.values})}"
            _checks.reject("values", f"{len(self.y)} rows of {len(self.x)}", shape)


@dataclass(frozen=True, kw_only=True)
class Study:
    """What was asked, what came out, how it compares with what was claimed.

    `question` is one plain sentence; `answers` are plain sentences, the first one the most important;
    `settings` are names and values of everything that was chosen (sizes, seeds, rules), so that a
    reader can repeat it; `software` names and versions of what computed it.
    """

    key: str
    title: str
    question: str
    answers: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    maps: tuple[PointMap, ...] = ()
    heat_maps: tuple[HeatMap, ...] = ()
    warnings: tuple[Warned, ...] = ()
    citations: tuple[Citation, ...] = ()
    software: tuple[tuple[str, str], ...] = ()

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The figures of the findings, then those in the tables."""
        cells = [cell for table in self.tables for row in table.rows for cell in row]
        return (*(finding.bound for finding in self.findings), *(cell for cell in cells if isinstance(cell, Bound)))

    @property
    def sources(self) -> tuple[Citation, ...]:
        """Every source in use, each once per place: of the figures, then `citations`."""
        used = [source for bound in self.bounds for source in bound.sources]
        return tuple(dict.fromkeys([*used, *self.citations]))
