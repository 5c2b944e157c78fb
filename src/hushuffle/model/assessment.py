"""`Assessment`: everything a report shows, as values. Computed by workflows, rendered by report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from hushuffle.model.bound import Bound
from hushuffle.model.citation import Citation
from hushuffle.model.finding import Finding, Unanswered
from hushuffle.model.point_map import PointMap
from hushuffle.model.release import Estimate
from hushuffle.model.table import Table


@dataclass(frozen=True, kw_only=True)
class Population:
    """Who was asked: n people, the labels of their k values, where the data came from.

    `counts` are the true counts by value, shape (k,), if there is data; `dropped` records were left out. `label_of`
    says what a label names: a value, or for example a publisher, of which a person may have several or none.
    """

    n: int
    labels: tuple[str, ...]
    source: str
    counts: tuple[int, ...] | None = None
    dropped: int = 0
    label_of: str = "value"


@dataclass(frozen=True, kw_only=True, eq=False)
class Utility:
    """Predicted against measured error of the estimated frequencies.

    `predicted` are standard errors by value, shape (k,), at the true frequencies if there is data, else at
    the worst frequency. `measured` are root mean square errors over `repetitions` runs; `z` says for
    each value how many standard deviations the measured mean square lies from the predicted one.
    `target` is the standard error asked for.
    """

    predicted: npt.NDArray[np.float64]
    target: float | None = None
    repetitions: int = 0
    measured: npt.NDArray[np.float64] | None = None
    z: npt.NDArray[np.float64] | None = None
    estimate: Estimate | None = None
    confidence: float = 0.95

    @property
    def met(self) -> bool | None:
        """Whether the largest predicted standard error is within the target (None without a target)."""
        return None if self.target is None else bool(self.predicted.max() <= self.target)


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line of a chart: points x with a certified band [lower, upper] (equal: a plain line)."""

    label: str
    x: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @classmethod
    def through(cls, label: str, x: Iterable[float], figures: Iterable[Bound | float]) -> Self:
        """Return the line through `figures`: the ends of a `Bound`, or plain numbers.

        >>> Series.through("error", [1, 2], [0.5, Bound(lower=0.1, upper=0.2, kind="bracket", unit="")]).upper
        (0.5, 0.2)
        """
        ends = [(f.lower, f.upper) if isinstance(f, Bound) else (float(f), float(f)) for f in figures]
        return cls(
            label=label,
            x=tuple(float(place) for place in x),
            lower=tuple(low for low, _ in ends),
            upper=tuple(high for _, high in ends),
        )


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure against one parameter. `here` marks this deployment's x; `caption` is one plain sentence."""

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    here: float | None = None


@dataclass(frozen=True, kw_only=True)
class Warned:
    """A warning that matters: a stable `key`, one plain sentence, and what to do."""

    key: str
    sentence: str
    advice: str


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """One deployment, assessed.

    `deployment` is one sentence; `specification` the effective specification as TOML text;
    `software` names and versions of what computed it. `maps` show the values of persons: only for whoever
    holds them anyway.
    """

    title: str
    deployment: str
    population: Population
    findings: tuple[Finding, ...]
    utility: Utility | None
    charts: tuple[Chart, ...]
    warnings: tuple[Warned, ...]
    specification: str
    software: tuple[tuple[str, str], ...]
    further_citations: tuple[Citation, ...] = ()
    tables: tuple[Table, ...] = ()
    maps: tuple[PointMap, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The sources actually used, each once per place, in order of use."""
        used = [source for bound in self.bounds for source in bound.sources]
        return tuple(dict.fromkeys([*used, *self.further_citations]))

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The figures of the findings, then those in the tables."""
        in_tables = [bound for table in self.tables for bound in table.bounds]
        return (*(finding.bound for finding in self.findings), *in_tables)
