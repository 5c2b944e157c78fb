"""Calibrate a reach study: the flip probability of the Bloom filters that its targets allow."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Final

from hushuffle.assessment.findings import Questions
from hushuffle.assessment.reach import privacy as reach_privacy
from hushuffle.assessment.reach import trials as reach_trials
from hushuffle.assessment.reach.privacy import Design
from hushuffle.assessment.reach.study import describe
from hushuffle.assessment.targets import Choice, Point, targets
from hushuffle.model import Bound, Progress, silent
from hushuffle.model.solver import Parameter, Requirement, log_excess, solve
from hushuffle.questions import bloom
from hushuffle.specification import Audiences, ReachPopulation, Specification
from hushuffle.specification._base import unfit

_LEAST: Final = 1e-9
_MOST: Final = 0.4999
"""The smallest and the largest flip probability that is tried for an accuracy target."""


def calibrate_reach(
    specification: Specification, *, base_folder: Path = Path(), progress: Progress | None = None
) -> Choice:
    """Return the smallest flip probability for targets.epsilon, and the largest for targets.standard_error.

    Audiences are read to count people and to predict the relative error of the reach of all publishers together.

    Raises:
        SpecificationError: neither target is set, or no flip probability meets it.
        DataError, MissingDependencyError: the data cannot be used.

    >>> from hushuffle.specification import parse
    >>> choice = calibrate_reach(parse('''
    ...     population = { people = 100_000, audiences = { tv = 30_000, web = 20_000 }, bits = 100_000 }
    ...     randomizer = { kind = "bit-flipping", p = 0.25 }
    ...     shuffler = { kind = "uniform" }
    ...     targets = { delta = 1e-6, epsilon = 0.1, standard_error = 0.02 }
    ... '''))
    >>> round(choice.private.settings["p"], 4), round(choice.private.standard_error, 4), choice.met
    (0.0961, 0.0061, True)
    >>> round(choice.accurate.settings["p"], 4)
    0.2836
    """
    wanted, population, tell = specification.targets, specification.population, progress or silent
    assert isinstance(population, ReachPopulation)  # ensured by `Deployment`
    if wanted.epsilon is None and wanted.standard_error is None:
        hint = "Or set targets.standard_error to search for the largest flip probability with this error."
        unfit("targets.epsilon", "must be given to calibrate", "nothing", hint)
    tell("reading the audiences", 0.0)
    audiences = population.meet(base_folder)
    own = Design(names=population.names, bits=population.bits, hashes=population.hashes, p=0.25, delta=wanted.delta)
    private = accurate = None
    tell("looking for the fewest flips", 0.4)
    if wanted.epsilon is not None:
        fewest = bloom.estimate_flip_prob(
            filters=own.filters, bits=own.bits, hashes=own.hashes, epsilon=wanted.epsilon, delta=wanted.delta
        )
        private = _point(replace(own, p=fewest.p), audiences)
    tell("looking for the most flips", 0.6)
    if wanted.standard_error is not None:
        accurate = _accurate(own, audiences, wanted.standard_error)
    proposed = private or accurate
    if proposed is None:
        rule, limit = "must be a value that some flip probability achieves", wanted.standard_error
        unfit("targets.standard_error", rule, f"{limit:g}", "Allow a larger error, or use longer filters.")
    design = replace(own, p=proposed.settings["p"])
    tell("the other targets", 0.8)
    written = specification.randomizer.given().get("p")
    questions = Questions()
    choice = Choice(
        kind="reach",
        title=specification.title or "Calibration of a reach study",
        population=audiences.population,
        deployment="" if written is None else describe(replace(own, p=written)),
        epsilon=wanted.epsilon,
        delta=wanted.delta,
        standard_error=wanted.standard_error,
        written=None if written is None else _point(replace(own, p=written), audiences),
        private=private,
        accurate=accurate,
        targets=targets(
            specification,
            people=audiences.population.n,
            findings=reach_privacy.findings(questions, design),
            unanswered=questions.unanswered,
            error=Bound.exact(proposed.standard_error, unit="") if math.isfinite(proposed.standard_error) else None,
        ),
    )
    tell("done", 1.0)
    return choice


def _point(design: Design, audiences: Audiences) -> Point:
    return Point(
        settings={"p": design.p}, central=reach_privacy.central(design), standard_error=_error(design, audiences)
    )


def _error(design: Design, audiences: Audiences) -> float:
    """Return the relative standard error of the reach of all publishers; infinite if it cannot be estimated."""
    relative = reach_trials.predicted_error(audiences, design)
    return math.inf if relative is None else relative


def _accurate(own: Design, audiences: Audiences, limit: float) -> Point | None:
    flips = Parameter(name="p", apply=lambda p: replace(own, p=p), easiest=_LEAST, hardest=_MOST)
    solution = solve(flips, Requirement(excess=lambda design: log_excess(_error(design, audiences), limit)))
    return None if solution is None else _point(replace(own, p=solution.value), audiences)
