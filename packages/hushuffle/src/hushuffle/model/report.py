"""`Report`: the content of a report as values, which `hushuffle.report` renders as files; `Certificate` checks it."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.model import notebook
from hushuffle.model.bound import Bound, as_bound
from hushuffle.model.citation import Citation
from hushuffle.model.claim import Claim
from hushuffle.model.pictures import Chart, Diagram, HeatMap, PointMap
from hushuffle.model.release import Estimate
from hushuffle.model.statement import Headline, Statement, Target, headline, met

Cell = str | int | float | Bound
"""One cell of a table: text, a number, or a `Bound`."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: rows of cells under named columns; `caption` is one plain sentence.

    Raises:
        InvalidInputError: the numbers of cells in a row and of columns differ, or a number is nan.

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
        """The `Bound`s in the cells of the table, row by row."""
        return tuple(bound for row in self.rows for cell in row if (bound := as_bound(cell)))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A finding on what one adversary learns: the question, one plain sentence, and the figure behind the sentence.

    `question` is a short stable name ("central-dp", "vulnerability", "re-identification", ...); `adversary` names the
    adversary in words; `proof` names the theorem or argument. The sources of `bound` are the citations. `shown` is the
    figure next to the sentence if it differs from `bound`: for example a success rate where `bound` is the error rate.
    `certificate`, if any, lets a third party check `bound` without this library.
    """

    question: str
    adversary: str
    sentence: str
    bound: Bound
    proof: str
    shown: Bound | None = None
    certificate: Certificate | None = None

    @property
    def figure(self) -> Bound:
        """The figure that a report shows next to the sentence: `shown` if it is set, else `bound`."""
        return self.bound if self.shown is None else self.shown


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """A question, or a figure of a report, that has no answer for this mechanism.

    `question` is the name that the finding or chart would have had. `topic` names the adversary or the missing figure.
    `reason` is the message of the error that was raised for the question.
    """

    question: str
    topic: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Warned:
    """A warning of a report: a stable `key`, one plain sentence, and advice on what to do."""

    key: str
    sentence: str
    advice: str


@dataclass(frozen=True, kw_only=True)
class Population:
    """The respondents: their number n, the labels of the k values, and the source of the data.

    `counts` are the true counts by value, shape (k,), if there is data. `dropped` is the number of records left out.
    `label_of` says what a label names: a value, or for example a publisher, of which a person may have several or none.

    If a person may send several reports, at most `reports_per_person`, `n` is the number of reports. `people` is then
    the number of people who sent them, if a column identifies people, and `beyond` the number of reports left out
    because their sender exceeded the limit.
    """

    n: int
    labels: tuple[str, ...]
    source: str
    counts: tuple[int, ...] | None = None
    dropped: int = 0
    label_of: str = "value"
    reports_per_person: int = 1
    people: int | None = None
    beyond: int = 0

    @property
    def least_people(self) -> int:
        """The number of people, or a lower bound on it if the senders of reports are unknown.

        >>> Population(n=9, labels=("no", "yes"), source="no data", reports_per_person=4).least_people
        3
        """
        return -(-self.n // self.reports_per_person) if self.people is None else self.people


@dataclass(frozen=True, kw_only=True, eq=False)
class Utility:
    """The predicted and the measured error of the estimated frequencies.

    `predicted` are standard errors by value, shape (k,), at the true frequencies if there is data, else at
    the worst frequency. `measured` are root mean square errors over `repetitions` runs. For each value, `z`
    is the difference of measured and predicted mean square error, in standard deviations.
    `target` is the largest standard error that the specification allows.

    Raises:
        InvalidInputError: a number is nan.
    """

    predicted: npt.NDArray[np.float64]
    target: float | None = None
    repetitions: int = 0
    measured: npt.NDArray[np.float64] | None = None
    z: npt.NDArray[np.float64] | None = None
    estimate: Estimate | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name in ("predicted", "measured", "z"):
            values = getattr(self, name)
            if values is not None:
                _checks.no_nan(name, values)

    @property
    def met(self) -> bool | None:
        """Whether the largest predicted standard error is within the target (None without a target)."""
        return None if self.target is None else bool(self.predicted.max() <= self.target)


@dataclass(frozen=True, kw_only=True)
class Report:
    """A question, its results, and everything needed to reproduce them.

    `question` states in plain sentences what was asked, or which deployment is assessed. `answers` are plain sentences,
    the most important first. `settings` are the names and values of all choices (sizes, seeds, rules). `software` lists
    names and versions of the software that ran. `citations` are sources in addition to those of the figures.

    `claims` are claims of a paper, each with its verdict. `targets` are the limits of the specification, each with the
    figure that is compared with it. `statement` is the first page of an assessment.

    The assessment of a deployment has a `population`, the effective `specification` as TOML text and, where
    frequencies are estimated, `utility`. A study (a figure of a paper, an attack, a plan) has a stable `key` instead.
    The `maps` of an assessment show values of individual people, and are for the data holder only.
    """

    title: str
    question: str
    key: str = ""
    claims: tuple[Claim, ...] = ()
    answers: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    statement: Statement | None = None
    findings: tuple[Finding, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    warnings: tuple[Warned, ...] = ()
    population: Population | None = None
    utility: Utility | None = None
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    heat_maps: tuple[HeatMap, ...] = ()
    maps: tuple[PointMap, ...] = ()
    diagrams: tuple[Diagram, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    specification: str = ""
    citations: tuple[Citation, ...] = ()
    software: tuple[tuple[str, str], ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether all targets are met; a target without a figure counts as not met. None: there are no targets."""
        return met(self.targets)

    @property
    def headline(self) -> Headline | None:
        """The first line of the report: are all targets met and all assumptions confirmed? None without targets."""
        return headline(self.targets, () if self.statement is None else self.statement.assumptions)

    def _repr_html_(self) -> str:
        targets = [(target.word.upper(), target.sentence) for target in self.targets]
        learned = [(one.adversary, one.sentence, str(one.figure)) for one in self.findings]
        warnings = [("", one.sentence + " " + one.advice) for one in self.warnings]
        parts = [f"<h3>{escape(self.title)}</h3>", *(f"<p>{escape(answer)}</p>" for answer in self.answers)]
        parts += [f"<p><strong>{escape(self.headline.sentence)}</strong></p>"] if self.headline is not None else []
        parts += [notebook.table(("target", ""), targets)] if targets else []
        parts += [notebook.table(("adversary", "what they learn", "figure"), learned)] if learned else []
        parts += [notebook.table(("", "warning"), warnings)] if warnings else []
        for shown in self.tables:
            cells = [[cell if isinstance(cell, str) else str(cell) for cell in row] for row in shown.rows]
            parts.append(f"<h4>{escape(shown.title)}</h4>{notebook.table(shown.columns, cells, more=shown.caption)}")
        return "".join(parts)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The figures (`Bound`s) of the findings, then the figures in the tables."""
        in_tables = [bound for table in self.tables for bound in table.bounds]
        return (*(finding.bound for finding in self.findings), *in_tables)

    @property
    def sources(self) -> tuple[Citation, ...]:
        """All distinct sources (with theorem or page) in order of use: those of the figures, then `citations`."""
        used = [source for bound in self.bounds for source in bound.sources]
        return tuple(dict.fromkeys([*used, *self.citations]))


def software(*packages: str) -> tuple[tuple[str, str], ...]:
    """Return pairs (name, version) of Python, hushuffle, numpy, scipy and `packages`."""
    from importlib.metadata import version  # noqa: PLC0415 - slow to load

    return (
        ("python", platform.python_version()),
        *((name, version(name)) for name in ("hushuffle", "numpy", "scipy", *packages)),
    )


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A self-contained claim about one release: the smallest epsilon (nats) at `delta` is within the bounds `epsilon`.

    Neighbouring datasets differ in one person's value. `steps` derive the claim: each has the `name` of a rule or law,
    the `page` of its proof, and the `release` that it treats. The first release is that of the claim. The last one is
    described by `release`, `n` and `dummies`: the reports of n people and dummies in uniformly random order, or every
    report with its sender. `values` is the number of values. Randomized response reports the true value with
    probability `truth`, a fraction, and every other value with equal probability; a dummy is uniform. For other
    randomizers `rows` holds the probabilities of the reports, a row for each value, and `dummy` the probabilities of a
    dummy. Sums of one-hot reports have `bits`: the probabilities, as fractions, that the bit of the true value, or of
    another value, is 1; then `dummies` is the number of secret random bits in each sum. `randomizers` describes further
    randomizers in the same way. The lower bound is attained at `others`, the number of other people by value, and
    `target`, the target's two values. `further` describes further releases of the same people in the same way: then the
    claim is about all of them together, and the version is 3. A certificate contains worst cases and no collected data.
    """

    version: Literal[2, 3] = 2
    release: Literal["shuffled", "senders", "sums"]
    n: int
    dummies: int
    delta: float
    kind: str
    epsilon: tuple[float, float]
    values: int
    truth: str | None
    rows: tuple[tuple[float, ...], ...] | None
    dummy: tuple[float, ...] | None
    others: tuple[int, ...]
    target: tuple[int, int]
    randomizers: tuple[Mapping[str, Any], ...]
    steps: tuple[Mapping[str, Any], ...]
    bits: tuple[str, str] | None = None
    further: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> str:
        """Return the certificate as a JSON object for `hushuffle verify`; infinity is the text "infinity"."""
        ends = [end if math.isfinite(end) else "infinity" for end in self.epsilon]
        return json.dumps({**asdict(self), "epsilon": ends})
