"""`Study`: a table or figure of a paper, or an attack on data, as values. Computed by workflows, rendered by report."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from hushuffle import _checks
from hushuffle.model.assessment import Chart, Warned
from hushuffle.model.bound import Bound
from hushuffle.model.citation import Citation
from hushuffle.model.diagram import Diagram
from hushuffle.model.finding import Finding
from hushuffle.model.point_map import PointMap
from hushuffle.model.table import Table


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
    diagrams: tuple[Diagram, ...] = ()
    warnings: tuple[Warned, ...] = ()
    citations: tuple[Citation, ...] = ()
    software: tuple[tuple[str, str], ...] = ()

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The figures of the findings, then those in the tables."""
        in_tables = [bound for table in self.tables for bound in table.bounds]
        return (*(finding.bound for finding in self.findings), *in_tables)

    @property
    def sources(self) -> tuple[Citation, ...]:
        """Every source in use, each once per place: of the figures, then `citations`."""
        used = [source for bound in self.bounds for source in bound.sources]
        return tuple(dict.fromkeys([*used, *self.citations]))


def software(*packages: str) -> tuple[tuple[str, str], ...]:
    """Return what computed a study, with versions: Python, hushuffle, numpy, scipy and `packages`."""
    from importlib.metadata import version  # noqa: PLC0415 - slow to load

    return (
        ("python", platform.python_version()),
        *((name, version(name)) for name in ("hushuffle", "numpy", "scipy", *packages)),
    )
