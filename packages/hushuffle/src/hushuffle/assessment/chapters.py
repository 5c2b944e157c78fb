"""`Deployment`: a kind of deployment lists the chapters of its report, from which one function assembles the report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar

from hushuffle.assessment.findings import Questions, central_bound
from hushuffle.assessment.minimum_batch import SmallestBatch
from hushuffle.assessment.scenarios import scenarios
from hushuffle.assessment.statement import ReportPage
from hushuffle.assessment.targets import GUESSES, Choice, strongest, targets
from hushuffle.assessment.translations import translations
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Cell, Citation, Finding, Population, Progress, Report, Table, Utility, Warned, silent
from hushuffle.model.pictures import Chart, PointMap
from hushuffle.model.report import software
from hushuffle.model.statement import Scenario, Statement, Target
from hushuffle.specification import Collection, Specification
from hushuffle.specification.exposure import Exposure
from hushuffle.specification.mixed import MixedSpecification
from hushuffle.specification.sums import SumSpecification

NO_FIGURE: Final = "no figure"
Described = TypeVar("Described", bound="Deployment")


@dataclass(kw_only=True)
class Draft:
    """A report in the making: chapters add to it, and `questions` records the questions without an answer.

    `words` say what is deployed. `error` is compared with targets.standard_error. `facts` are what a comparison shows
    in addition to the figures, by the name of the row, and `k` is the largest number of values of one answer.
    """

    tell: Progress = silent

    words: str = ""
    k: int = 1
    population: Population | None = None
    findings: list[Finding] = field(default_factory=list)
    questions: Questions = field(default_factory=Questions)
    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    maps: list[PointMap] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)
    scenarios: tuple[Scenario, ...] = ()
    utility: Utility | None = None
    error: Bound | None = None
    facts: dict[str, Cell] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    statement: Statement | None = None
    specification: str = ""
    citations: tuple[Citation, ...] = ()
    step: str = ""
    span: tuple[float, float] = (0.0, 1.0)

    @property
    def central(self) -> Bound | None:
        return central_bound(self.findings)

    def done(self, share: float, step: str = "") -> None:
        """Tell which share of the present chapter is done."""
        since, until = self.span
        self.tell(step or self.step, since + (until - since) * share)


@dataclass(frozen=True)
class Chapter(Generic[Described]):
    """A chapter of a report: `write` adds it to the draft about a deployment to which it `applies`.

    Its work has the name `step`, and begins when the share `since` of all work is done. A comparison leaves out a
    chapter that is `only_shown`: it has no figure or fact of a comparison.
    """

    step: str
    since: float
    write: Callable[[Described, Draft], None]
    applies: Callable[[Described], bool] = lambda _: True
    only_shown: bool = False


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A compared deployment: file name, specification as tables, assessment, and `facts` by row name.

    `k` is the largest number of values of one answer.
    """

    name: str
    plain: Mapping[str, Any]
    report: Report
    facts: Mapping[str, Cell]
    k: int

    @property
    def figures(self) -> dict[str, Bound]:
        """By question; "guessing" is the success rate of the most successful adversary."""
        findings = self.report.findings
        figures = {one.question: one.figure for one in findings if one.question not in GUESSES}
        guessed = strongest(findings)
        return figures if guessed is None else {**figures, "guessing": guessed}


class Deployment(ABC):
    """A deployment of any kind, and the folder of its data; a kind answers each verb, or says why not."""

    chapters: ClassVar[Sequence[Chapter[Any]]]

    def __init__(
        self, file: Specification | Collection | SumSpecification | MixedSpecification, heading: str, folder: Path
    ) -> None:
        self.plain: Final = file.plain
        self.title: Final = file.title or heading
        self.folder: Final = folder

    def draft(self, chapters: Sequence[Chapter[Any]], tell: Progress = silent) -> Draft:
        """Return what the chapters say that apply to the deployment."""
        draft = Draft(tell=tell)
        for chapter in chapters:
            if chapter.applies(self):
                until = min((other.since for other in chapters if other.since > chapter.since), default=1.0)
                draft.step, draft.span = chapter.step, (chapter.since, until)
                draft.done(0.0)
                chapter.write(self, draft)
        tell("done", 1.0)
        return draft

    def report(self, draft: Draft) -> Report:
        """Return the report that consists of the chapters in a draft."""
        return Report(
            title=self.title,
            question=draft.words,
            population=draft.population,
            targets=draft.targets,
            statement=draft.statement,
            findings=tuple(draft.findings),
            unanswered=tuple(draft.questions.unanswered),
            warnings=tuple(draft.warnings),
            utility=draft.utility,
            tables=tuple(draft.tables),
            charts=tuple(draft.charts),
            maps=tuple(draft.maps),
            specification=draft.specification,
            citations=draft.citations,
            software=software("polars", "cryptography"),
        )

    def assess(self, progress: Progress | None = None) -> Report:
        """Return what each adversary learns, and the accuracy."""
        return self.report(self.draft(self.chapters, progress or silent))

    @abstractmethod
    def calibrate(self, progress: Progress | None = None) -> Choice:
        """Return what the targets allow."""

    @abstractmethod
    def planned(self, colluders: int) -> Deployment:
        """Return the deployment without runs on the data, and with this number of colluders (0: its own)."""

    def compared(self, name: str, colluders: int) -> Compared:
        """Return the figures and facts for a comparison, with this number of colluders (0: its own)."""
        case = self.planned(colluders)
        draft = case.draft([chapter for chapter in self.chapters if not chapter.only_shown])
        facts = dict(draft.facts)
        if colluders:
            facts[f"central epsilon, {colluders:,} colluders"] = case.central_with(colluders, draft)
        return Compared(name=name, plain=self.plain(), report=case.report(draft), facts=facts, k=draft.k)

    @abstractmethod
    def central_with(self, colluders: int, draft: Draft) -> Cell:
        """Return central epsilon if this number of people collude with the analyst, or that there is none."""

    def colluders(self) -> int:
        """Return the number of colluding people that the guarantee expressly allows; 0 if it names none."""
        return 0

    @abstractmethod
    def smallest_batch(self) -> SmallestBatch:
        """Return the smallest number of people with whom the target is met."""

    @abstractmethod
    def audit(self, **options: Any) -> Report:
        """Return the tests of all claims; `options` are those of `audit_specification`."""


class Randomized(Deployment):
    """A deployment with a randomizer and a shuffler; `whole` is the specification of all that one person sends."""

    alone: ClassVar[bool | None] = None
    """Whether a person sends a single report in all rounds together; None: the specification decides."""

    @property
    @abstractmethod
    def whole(self) -> Specification:
        """The specification, or that of the first of several columns with the targets for all of them."""

    @property
    @abstractmethod
    def protocols(self) -> Sequence[Protocol]:
        """The protocol of each column."""

    @property
    def exposure(self) -> Exposure:
        return Exposure.of(self.whole)

    @property
    def written(self) -> str:
        """The specification with all defaults, as TOML text."""
        return self.whole.effective()

    def central_with(self, colluders: int, draft: Draft) -> Cell:  # noqa: ARG002 - the plan has as many
        self.what_if(draft)
        central = next((row.central for row in draft.scenarios if row.key == "colluders"), None)
        return NO_FIGURE if central is None else central

    def what_if(self, draft: Draft) -> None:
        """Write the figures in other cases."""
        draft.scenarios = scenarios(
            self.protocols,
            delta=self.whole.targets.delta,
            colluders=self.whole.statement.colluders,
            exposure=self.exposure,
            planned=draft.central,
        )

    def first_page(self, draft: Draft) -> None:
        """Write the claim, the targets, and what a comparison shows of the file."""
        whole, population, unanswered = self.whole, draft.population, draft.questions.unanswered
        assert population is not None  # of an earlier chapter
        draft.specification = self.written
        draft.targets = targets(
            whole,
            people=population.least_people,
            findings=draft.findings,
            unanswered=unanswered,
            error=draft.error,
            alone=self.alone,
        )
        reveals = self.protocols[0].shuffler.reveals if self.protocols else Reveals.MULTISET
        page = ReportPage(whole, population, reveals, draft.findings, unanswered, draft.specification)
        first = page.statement(draft.scenarios)
        draft.statement = replace(first, translations=translations(page, first.respondents))
        draft.facts = {
            "mechanism": mechanism(whole),
            "shuffler": whole.shuffler.kind,
            "delta": f"{whole.targets.delta:g}",
            **self.exposure.facts,
            **draft.facts,
        }


def mechanism(specification: Specification) -> str:
    """Return the mechanism of a column and its variant, in words."""
    given = specification.randomizer.model_dump(exclude_none=True)
    words = [word for key, word in given.items() if isinstance(word, str) and key not in ("kind", "file")]
    return " ".join([specification.randomizer.kind, *words])


def sent(parts: Sequence[tuple[float, float]], *, times: int) -> dict[str, Cell]:
    """Return what a person sends in all rounds together: of each column, the messages and the bits of one, `times`."""
    messages, bits = sum(each for each, _ in parts), sum(each * size for each, size in parts)
    return {
        **({"bits of a report": f"{parts[0][1]:.4g}"} if len(parts) == 1 else {}),
        "reports of each person": f"{len(parts) * times:,}",
        "messages of each person": f"{times * messages:.4g}",
        "bits of each person": f"{times * bits:.4g}",
    }


def unrun(specification: Specification, colluders: int) -> Specification:
    """Return the specification without runs on the data, and with this number of colluders (0: its own)."""
    changed: dict[str, Any] = {"run": specification.run.model_copy(update={"repetitions": 0})}
    if colluders:
        changed["statement"] = specification.statement.model_copy(update={"colluders": colluders})
    return specification.model_copy(update=changed)
