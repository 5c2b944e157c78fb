"""Assess and calibrate a reach study (with Bloom filters): what its release reveals about people, and its accuracy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

from hushuffle.assessment.chapters import Chapter, Draft, Randomized, unrun
from hushuffle.assessment.findings import Questions
from hushuffle.assessment.minimum_batch import SmallestBatch
from hushuffle.assessment.reach import charts as reach_charts
from hushuffle.assessment.reach import privacy as reach_privacy
from hushuffle.assessment.reach import trials as reach_trials
from hushuffle.assessment.reach import warnings as reach_warnings
from hushuffle.assessment.reach.privacy import Design
from hushuffle.assessment.targets import Choice, Point, targets
from hushuffle.estimation.reach import WHANG
from hushuffle.estimation.reach_questions import questions
from hushuffle.mechanisms.column_views import ColumnViews
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Progress, Report, number, silent
from hushuffle.model.solver import Parameter, Requirement, log_excess, solve
from hushuffle.questions.bloom.plan_views import TAIL
from hushuffle.report.formatting import plural
from hushuffle.specification import Audiences, ReachPopulation, Specification
from hushuffle.specification._base import unfit
from hushuffle.specification.column_views import LAWS
from hushuffle.specification.reach import with_dummies

_LEAST: Final = 1e-9
_MOST: Final = 0.4999
"""The smallest and the largest flip probability that is tried for an accuracy target."""

_WIDEST: Final = 29_000.0
"""The largest standard deviation of dummies that is tried; a table of dummies has at most 2**20 numbers."""

_SHOWN: Final = {"union": "union", "pairs": "pairs", "patterns": "bit patterns", "contacts": "contacts"}


class ReachStudy(Randomized):
    """Audiences of publishers, whose people send no reports."""

    def __init__(self, specification: Specification, folder: Path) -> None:
        super().__init__(specification, "Assessment of a reach study", folder)
        self.specification = specification
        self.audience = cast(ReachPopulation, specification.population)

    @cached_property
    def audiences(self) -> Audiences:
        return self.audience.meet(self.folder)

    @cached_property
    def design(self) -> Design:
        """The design in the file, or that with the fewest flips for targets.epsilon."""
        people, targets = self.audience, self.specification.targets
        design = Design(names=people.names, bits=people.bits, hashes=people.hashes, delta=targets.delta)
        if self.dummies:
            each = self.specification.shuffler.build().value_law
            assert each is not None  # the augmented shuffle has one
            return replace(design, views=people.shown(each))
        return replace(design, p=people.flips(self.specification.randomizer, targets))

    @property
    def dummies(self) -> bool:
        """Whether the shuffler gets columns without flips and adds dummies of each bit pattern."""
        return with_dummies(self.specification.plain()["shuffler"])

    @property
    def whole(self) -> Specification:
        if self.dummies:
            return self.specification
        randomizer = self.specification.randomizer.model_copy(update={"p": self.design.p})
        return self.specification.model_copy(update={"randomizer": randomizer})

    @property
    def protocols(self) -> Sequence[Protocol]:
        return [] if self.dummies else [self.design.protocol]

    def planned(self, colluders: int) -> ReachStudy:
        return ReachStudy(unrun(self.specification, colluders), self.folder)

    def calibrate(self, progress: Progress | None = None) -> Choice:
        """Return the least noise that meets targets.epsilon, and the most noise that meets targets.standard_error.

        The noise is the flip probability, or a factor on the widths of all dummies, of which then as few are used as
        delta allows. Audiences are read to count people and to predict the relative error of the reach of all
        publishers together.

        Raises:
            SpecificationError: neither target is set, no noise meets it, or the dummies have another distribution than
                discrete Laplace or discrete Gaussian.
            DataError, MissingDependencyError: the data cannot be used.

        >>> from hushuffle.specification import parse
        >>> specification = parse('''
        ...     population = { people = 100_000, audiences = { tv = 30_000, web = 20_000 }, bits = 100_000 }
        ...     randomizer = { kind = "bit-flipping", p = 0.25 }
        ...     shuffler = { kind = "uniform" }
        ...     targets = { delta = 1e-6, epsilon = 0.1, standard_error = 0.02 }
        ... ''')
        >>> choice = ReachStudy(specification, Path()).calibrate()
        >>> round(choice.private.settings["p"], 4), round(choice.private.standard_error, 4), choice.met
        (0.0961, 0.0061, True)
        >>> round(choice.accurate.settings["p"], 4)
        0.2836
        """
        wanted, tell, questioned = self.specification.targets, progress or silent, Questions()
        if wanted.epsilon is None and wanted.standard_error is None:
            hint = "Or set targets.standard_error to search for the most noise with this error."
            unfit("targets.epsilon", "must be given to calibrate", "nothing", hint)
        tell("reading the audiences", 0.0)
        population, noise = self.audiences.population, self._noise
        tell("looking for the least noise", 0.2)
        private = None if wanted.epsilon is None else self._private(noise, wanted.epsilon)
        tell("looking for the most noise", 0.6)
        accurate = None
        if (limit := wanted.standard_error) is not None:
            error = Requirement[ReachStudy](excess=lambda study: log_excess(self._error(study.design), limit))
            solution = solve(replace(noise, easiest=noise.hardest, hardest=noise.easiest), error)
            accurate = None if solution is None else (noise.apply(solution.value), {"factor": solution.value})
        proposed = private or accurate
        if proposed is None:
            rule = "must be a value that some amount of noise achieves"
            unfit("targets.standard_error", rule, f"{limit:g}", "Allow a larger error, or use longer filters.")
        tell("the other targets", 0.8)
        study, point = proposed[0], self._point(proposed[0], **proposed[1])
        given = self.dummies or self.specification.randomizer.given().get("p") is not None
        choice = Choice(
            kind="views" if self.dummies else "reach",
            title=self.specification.title or "Calibration of a reach study",
            population=population,
            deployment=describe(self.design) if given else "",
            epsilon=wanted.epsilon,
            delta=wanted.delta,
            standard_error=wanted.standard_error,
            written=self._point(self, factor=1.0) if given else None,
            private=None if private is None else point,
            accurate=None if accurate is None else self._point(accurate[0], **accurate[1]),
            targets=targets(
                self.specification,
                people=population.n,
                findings=reach_privacy.findings(questioned, study.design),
                unanswered=questioned.unanswered,
                error=Bound.exact(point.standard_error, unit="") if math.isfinite(point.standard_error) else None,
            ),
            specification=study.specification.effective() if self.dummies else None,
        )
        tell("done", 1.0)
        return choice

    @property
    def _noise(self) -> Parameter[ReachStudy]:
        """The flip probability, or the factor on the widths of all dummies; privacy is easiest with the most noise."""
        if not self.dummies:
            return Parameter(name="p", apply=self._flipping, easiest=_MOST, hardest=_LEAST)
        assert self.design.views is not None
        most = _WIDEST / max(math.sqrt(view.variances.max()) for view in self.design.views.views)
        return Parameter(name="factor", apply=self._widened, easiest=most, hardest=most * _LEAST, start=1.0, stride=2)

    def _private(self, noise: Parameter[ReachStudy], epsilon: float) -> tuple[ReachStudy, dict[str, float]]:
        """Return the study with the least noise for epsilon, and the factor with the neighbour that misses it."""
        if not self.dummies:
            return self._flipping(self.audience.fewest_flips(self.specification.targets)), {}
        solution = solve(
            noise,
            Requirement(
                excess=lambda study: log_excess(reach_privacy.central(study.design).upper, epsilon),
                figure=lambda study: reach_privacy.central(study.design),
                limit=epsilon,
            ),
        )
        if solution is None:
            hint = "Allow a larger epsilon, or release fewer views."
            unfit("targets.epsilon", "must be a value that some width of the dummies achieves", f"{epsilon:g}", hint)
        missed = {} if solution.beyond_bound is None else {"next_epsilon": solution.beyond_bound.upper}
        return noise.apply(solution.value), {"factor": solution.value, "next_factor": solution.beyond, **missed}

    @property
    def laws(self) -> dict[str, dict[str, Any]]:
        """The distributions of the dummies, by their keys in the file."""
        plain = self.specification.plain()
        views = enumerate(plain["population"].get("views", ()))
        return {"shuffler.each": plain["shuffler"]["each"]} | {
            f"population.views[{place}].{key}": view[key] for place, view in views for key in LAWS if key in view
        }

    def _flipping(self, p: float) -> ReachStudy:
        return self._with(randomizer=self.specification.randomizer.model_copy(update={"p": p}))

    def _widened(self, factor: float) -> ReachStudy:
        """Return the study with dummies of `factor` times the widths, and as few of them as delta allows."""
        views, design = self.audience.views, self.design.views
        assert design is not None  # only dummies have widths
        tail = self.specification.targets.delta / TAIL / design.hashes / sum(view.moved for view in design.views)

        def scaled(section: Any, key: str, *names: str) -> Any:
            given = {name: law for name in names if (law := getattr(section, name)) is not None}
            update = {name: law.scaled(factor, tail) for name, law in given.items()}
            if None in update.values():
                rule, hint = "must be discrete-laplace or discrete-gaussian to calibrate", "Their widths can be scaled."
                unfit(f"{key}.kind", rule, ", ".join(law.kind for law in given.values()), hint)
            return section.model_copy(update=update)

        shown = views and tuple(scaled(view, "population.views.each", *LAWS) for view in views)
        return self._with(
            population=self.audience.model_copy(update={"views": shown}),
            shuffler=scaled(self.specification.shuffler, "shuffler.each", "each"),
        )

    def _with(self, **sections: Any) -> ReachStudy:
        return ReachStudy(self.specification.model_copy(update=sections), self.folder)

    def _point(self, study: ReachStudy, **settings: float) -> Point:
        """Return the figures of a proposed study."""
        design = study.design
        own = {"p": design.p} if design.views is None else {"dummies": design.views.dummies, "laws": study.laws}
        return Point(
            settings={**own, **settings}, central=reach_privacy.central(design), standard_error=self._error(design)
        )

    def _error(self, design: Design) -> float:
        """Return the relative standard error of the reach of all publishers; infinite if it cannot be estimated."""
        figures = reach_trials.planned_figures(self.audiences, design, questions(design.names)[:1])
        relative = reach_trials.relative_error(figures)
        return math.inf if relative is None else relative

    def smallest_batch(self) -> SmallestBatch:
        hint = "Its columns of bits hide people, and their number is population.bits. Run calibrate for the flips."
        unfit("population", "must be people with one value each for minimum-batch", "a study of reach", hint)

    def audit(self, **options: Any) -> Report:
        from hushuffle.attacks.audit_specification import audit_reach  # noqa: PLC0415 - only this verb needs it

        if self.dummies:
            hint = "The dummies are independent of all columns; assess states their certified epsilon."
            unfit("shuffler.kind", 'must be "uniform" to audit a reach study', '"augmented"', hint)
        options.pop("delta")
        return audit_reach(self.specification, base_folder=self.folder, **options)

    def _read(self, draft: Draft) -> None:
        draft.population, draft.citations = self.audiences.population, (WHANG,)

    def _learned(self, draft: Draft) -> None:
        draft.words = describe(self.design)
        draft.findings += reach_privacy.findings(draft.questions, self.design)

    def _study(self, draft: Draft) -> None:
        design, run, target = self.design, self.specification.run, self.specification.targets.standard_error
        figures = reach_trials.figures(self.audiences, design, run=run, progress=draft.done)
        relative = reach_trials.relative_error(figures)
        draft.error = None if relative is None else Bound.exact(relative, unit="")
        draft.tables.append(reach_trials.table(figures, design, target=target, confidence=run.confidence))
        draft.warnings += reach_warnings.concerns(
            design, audiences=self.audiences, figures=figures, specification=self.specification, central=draft.central
        )

    def _changes(self, draft: Draft) -> None:
        topic = "The table of guarantees by change"
        privacy = draft.questions.ask("privacy", topic, lambda: reach_privacy.table(self.design))
        draft.tables += [] if privacy is None else [privacy]

    def _charts(self, draft: Draft) -> None:
        draft.charts += reach_charts.charts(draft.questions, self.audiences, self.design, progress=draft.done)

    chapters = (
        Chapter("reading the audiences", 0.0, _read),
        Chapter("what each adversary learns", 0.15, _learned),
        Chapter("running the study", 0.25, _study),
        Chapter("running the study", 0.55, _changes, only_shown=True),
        Chapter("what happens with other designs", 0.55, _charts, lambda study: not study.dummies, only_shown=True),
        Chapter("the first page", 1.0, Randomized.first_page),
    )


def describe(design: Design) -> str:
    hashes = "one hash function" if design.hashes == 1 else f"{design.hashes} hash functions"
    size = f"{design.bits:,} bits"
    filters = f"One Bloom filter of {size}" if design.filters == 1 else f"{design.filters} Bloom filters of {size} each"
    if design.views is not None:
        return f"{filters} ({hashes}): a shuffler gets all bits, and releases {_counted(design.views)}."
    return (
        f"{filters} ({hashes}): every bit is flipped with probability "
        f"{number(design.p)}, and the columns of all filters are released in random order."
    )


def _counted(design: ColumnViews) -> str:
    """Return what is counted, and with how many dummies, in words."""
    first = design.views[0]
    if len(design.views) == 1 and first.shows == "patterns" and len(first.publishers) == design.publishers:
        return (
            "how often each bit pattern of a column occurs, plus a random number of dummies for each, with mean "
            f"{first.each.mean:,.6g}"
        )
    counted = Counter((view.shows, len(view.publishers)) for view in design.views)
    parts = [
        f"{plural(times, 'view')} of the {_SHOWN[shows]} of {plural(size, 'publisher')}"
        for (shows, size), times in counted.items()
    ]
    cells = sum(view.cells for view in design.views)
    return (
        f"{', '.join(parts)}: in all {plural(cells, 'count')} of columns, each plus a random number of dummies, "
        f"{design.dummies:,.6g} dummies on average"
    )
