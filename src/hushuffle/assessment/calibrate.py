"""From targets to parameters: which local epsilons meet the privacy target, which the accuracy target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.assessment.exposure import Exposure
from hushuffle.errors import InvalidInputError
from hushuffle.estimation import predicted_standard_error
from hushuffle.model import Bound, Population, Warned
from hushuffle.numerics.roots import halved
from hushuffle.questions.dp.calibration import LARGEST_LOCAL, Calibration, excess, smallest_people, with_local_epsilon
from hushuffle.questions.dp.calibration import calibrate as solve
from hushuffle.specification import Specification, build_protocol
from hushuffle.specification._base import unfit
from hushuffle.specification.warnings import deployment_warnings

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of all work done so far, in [0, 1]."""

_STEPS: Final = 60


@dataclass(frozen=True, kw_only=True)
class Point:
    """One local epsilon (nats) with what it gives: central epsilon at the target's delta, and the standard error.

    The central epsilon is that of all that one person gives.
    `standard_error` is that of an estimated share, at the worst true share.
    """

    local_epsilon: float
    central: Bound
    standard_error: float


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the targets allow, for one collection.

    `most` is the largest local epsilon that meets the privacy target, `least` the smallest that meets the
    accuracy target (None: no such target, or out of reach of every local epsilon). `people` is how many it
    takes for both (None: those there are will do, or no number up to 10**9). `warnings` are about the deployment with
    the local epsilon of `most`.
    """

    title: str
    population: Population
    deployment: str
    epsilon: float
    delta: float
    standard_error: float | None
    written: Point
    most: Point
    least: Point | None
    people: int | None
    warnings: tuple[Warned, ...] = ()

    @property
    def met(self) -> bool:
        """Whether one local epsilon meets all targets."""
        return self.standard_error is None or self.most.standard_error <= self.standard_error


def calibrate(specification: Specification, *, base_folder: Path = Path(), progress: Progress | None = None) -> Choice:
    """Return which noise meets the targets of a specification, and how many people it takes if none does.

    Values in the data are not looked at: people and categories are counted, and the standard error is the one at the
    worst true share, so that nothing about the answers shows in the parameters.

    Args:
        specification: the deployment, with targets.epsilon.
        base_folder: the folder that relative paths of data are relative to.
        progress: told what is going on.

    Raises:
        SpecificationError: no targets.epsilon, or one that no local epsilon meets.
        DataError, MissingDependencyError: the data cannot be used.
        UnsupportedProtocolError: the randomizer has no epsilon to choose, or no certified figure.

    >>> from hushuffle.specification import parse
    >>> choice = calibrate(parse('''
    ...     population = { n = 900, k = 2 }
    ...     randomizer = { kind = "randomized-response", epsilon = 1.0 }
    ...     shuffler = { kind = "uniform" }
    ...     targets = { delta = 1e-6, epsilon = 0.2 }
    ... '''))
    >>> round(choice.most.local_epsilon, 3), choice.met
    (1.371, True)
    """
    tell = progress or (lambda _stage, _share: None)
    targets = specification.targets
    if targets.epsilon is None:
        hint = "For example epsilon = 0.5: the central epsilon that is wanted, at most."
        unfit("targets.epsilon", "must be given to calibrate", "nothing", hint)
    tell("counting people", 0.0)
    people = specification.population.read(base_folder)
    protocol, exposure = build_protocol(specification, n=people.n, k=people.k), Exposure.of(specification)
    tell("looking for the least noise", 0.1)
    try:
        most = solve(
            protocol,
            parameter="epsilon",
            epsilon=targets.epsilon,
            delta=targets.delta,
            reports_per_person=exposure.reports,
            rounds=exposure.rounds,
        )
    except InvalidInputError:
        rule = "must be a target that some local epsilon meets"
        unfit("targets.epsilon", rule, f"{targets.epsilon:g}", "Allow a larger one.")
    best, wanted = _point(most), targets.standard_error
    least = needed = None
    if wanted is not None:
        tell("looking for the most noise", 0.4)
        least = _least(protocol, wanted)
        if best.standard_error > wanted:
            tell("looking for the number of people", 0.5)
            needed = _people(
                protocol, epsilon=targets.epsilon, delta=targets.delta, standard_error=wanted, exposure=exposure
            )
    tell("comparing", 0.9)
    choice = Choice(
        title=specification.title or "Calibration of a shuffled collection",
        population=people.population,
        deployment=protocol.describe(reports_per_person=exposure.reports),
        epsilon=targets.epsilon,
        delta=targets.delta,
        standard_error=wanted,
        written=_at(protocol, protocol.randomizer.local_epsilon, targets.delta, exposure),
        most=best,
        least=None if least is None else _at(with_local_epsilon(protocol, least), least, targets.delta, exposure),
        people=needed,
        warnings=deployment_warnings(most.protocol, delta=targets.delta),
    )
    tell("done", 1.0)
    return choice


def worst_error(protocol: Protocol) -> float:
    """Return the standard error of an estimated share at the worst true share."""
    return float(predicted_standard_error(protocol, frequency=np.array([0.0, 1.0])).max())


def _point(found: Calibration) -> Point:
    return Point(local_epsilon=found.value, central=found.bound, standard_error=worst_error(found.protocol))


def _at(protocol: Protocol, local_epsilon: float, delta: float, exposure: Exposure) -> Point:
    central = exposure.epsilon(protocol, delta=delta)
    return Point(local_epsilon=local_epsilon, central=central, standard_error=worst_error(protocol))


def _least(protocol: Protocol, wanted: float) -> float | None:
    """Return the smallest local epsilon with a standard error of at most `wanted`, rounded up, or None."""
    if worst_error(with_local_epsilon(protocol, LARGEST_LOCAL)) > wanted:
        return None
    largest = halved(
        lambda exponent: worst_error(with_local_epsilon(protocol, math.exp(exponent))) <= wanted,
        good=math.log(LARGEST_LOCAL),
        bad=math.log(1e-6),
        times=_STEPS,
    )
    return math.exp(largest) * (1 + 1e-12)


def _people(
    protocol: Protocol, *, epsilon: float, delta: float, standard_error: float, exposure: Exposure
) -> int | None:
    """Return the smallest n at which one local epsilon meets both targets; None if none up to 10**9 does."""

    def short_of(n: int) -> float:
        crowd = replace(protocol, n=n)
        noise = _least(crowd, standard_error)
        if noise is None:
            return math.inf
        return excess(
            with_local_epsilon(crowd, noise),
            epsilon,
            delta,
            reports_per_person=exposure.reports,
            rounds=exposure.rounds,
        )

    try:
        return smallest_people(short_of, start=protocol.n, target=epsilon)[0]
    except InvalidInputError:
        return None
