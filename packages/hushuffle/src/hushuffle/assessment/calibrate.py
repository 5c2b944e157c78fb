"""Calibrate a collection: compute the local epsilons that meet its privacy target and its accuracy target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

from hushuffle.assessment import findings
from hushuffle.assessment.targets import GUESSES, Choice, Point
from hushuffle.assessment.targets import targets as held_targets
from hushuffle.assessment.trials import LEAST, error_of, least_accurate, no_error
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Finding, Progress, Target, silent
from hushuffle.model.solver import RESOLUTION, Parameter, Requirement, log_excess
from hushuffle.model.solver import solve as search
from hushuffle.questions.dp.calibration import LARGEST_LOCAL, Calibration, excess, number_of_people, with_local_epsilon
from hushuffle.questions.dp.calibration import calibrate as solve
from hushuffle.specification import Specification, build_adversaries
from hushuffle.specification._base import unfit
from hushuffle.specification.exposure import Column, Exposure
from hushuffle.specification.warnings import deployment_warnings

_FINE: Final = 1e-7
"""Relative resolution of a local epsilon."""


def calibrate(specification: Specification, *, base_folder: Path = Path(), progress: Progress | None = None) -> Choice:
    """Return the local epsilons that meet the targets of a specification, or how many people are needed if none does.

    Values in the data are not used: only people and categories are counted. Standard errors are computed at the worst
    true share, so the parameters reveal nothing about the answers.

    Args:
        specification: the deployment, with targets.epsilon.
        base_folder: the folder against which relative paths of data are resolved.
        progress: receives the current step and the share of the work that is done.

    Raises:
        SpecificationError: targets.epsilon is missing, or no local epsilon meets it.
        DataError, MissingDependencyError: the data cannot be used.
        UnsupportedProtocolError: the randomizer has no parameter epsilon, or no certified central epsilon.

    >>> from hushuffle.specification import parse
    >>> choice = calibrate(parse('''
    ...     population = { n = 900, k = 2 }
    ...     randomizer = { kind = "randomized-response", epsilon = 1.0 }
    ...     shuffler = { kind = "uniform" }
    ...     targets = { delta = 1e-6, epsilon = 0.2 }
    ... '''))
    >>> round(choice.private.local_epsilon, 3), choice.met
    (1.371, True)
    """
    tell = progress or silent
    targets, wished = specification.targets, wished_epsilon(specification)
    tell("counting people", 0.0)
    column = Column(specification, base_folder)
    exposure, protocol = column.exposure, column.protocol
    if protocol.randomizer.chosen_epsilon is None:
        hint = "Calibration searches for the largest local epsilon. Run assess for the guarantee of this mechanism."
        rule = "must be a mechanism whose local epsilon can be chosen"
        unfit("randomizer.kind", rule, f'"{specification.randomizer.kind}"', hint)
    tell("looking for the least noise", 0.1)
    most = solved(specification, protocol, exposure, parameter="epsilon", name="local epsilon")
    tell("looking at the other targets", 0.3)
    binding, value = _binding(specification, protocol, exposure, most.value)
    chosen = with_local_epsilon(protocol, value)
    best = _point(most.protocol, most.bound, local_epsilon=most.value)
    if binding != "epsilon":
        best = point_at(chosen, value, targets.delta, exposure)
    wanted = targets.standard_error
    least = needed = None
    if wanted is not None:
        tell("looking for the most noise", 0.4)
        least = _least(protocol, wanted)
        if best.standard_error > wanted:
            tell("looking for the number of people", 0.5)
            if binding == "local_epsilon" or exposure.drawn_again:
                # This local epsilon is allowed for any n.
                needed = _fewest(chosen, lambda crowd: log_excess(error_of(crowd), wanted), resolution=0.0)
            elif binding == "epsilon":
                needed = _people(
                    protocol, epsilon=wished, delta=targets.delta, standard_error=wanted, exposure=exposure
                )
    tell("comparing", 0.9)
    choice = _choice(
        column,
        chosen,
        kind="noise",
        standard_error=wanted,
        written=point_at(protocol, protocol.randomizer.local_epsilon, targets.delta, exposure),
        private=best,
        accurate=None
        if least is None
        else point_at(with_local_epsilon(protocol, least), least, targets.delta, exposure),
        people=needed,
        binding=binding,
        reports=exposure.total,
        warnings=deployment_warnings(chosen, delta=targets.delta),
    )
    tell("done", 1.0)
    return choice


def calibrate_messages(
    specification: Specification,
    *,
    base_folder: Path = Path(),
    progress: Progress | None = None,  # noqa: ARG001 - as calibrate
) -> Choice:
    """Return the fewest messages of each person that meet the privacy target of a specification.

    Raises:
        SpecificationError: targets.epsilon is missing, or no number of messages meets it.
        DataError, MissingDependencyError: the data cannot be used.

    >>> from hushuffle.specification import parse
    >>> choice = calibrate_messages(parse('''
    ...     population = { n = 1_000_000, k = 1000 }
    ...     randomizer = { kind = "randomized-response", epsilon = "inf" }
    ...     shuffler = { kind = "blanket-messages", p = 0.5 }
    ...     targets = { delta = 1e-7, epsilon = 1.0 }
    ... '''))
    >>> round(choice.private.settings["messages"], 4), choice.met
    (0.0523, True)
    """
    wished_epsilon(specification)  # before the data are read
    column = Column(specification, base_folder)
    calibration = solved(
        specification, column.protocol, column.exposure, parameter="messages", name="number of messages"
    )

    def point(protocol: Protocol, central: Bound) -> Point:
        tossed = protocol.shuffler.tossed
        assert tossed is not None
        return _point(protocol, central, messages=protocol.shuffler.own_messages, p=tossed[1])

    return _choice(
        column,
        calibration.protocol,
        kind="messages",
        standard_error=specification.targets.standard_error,
        written=point(column.protocol, column.central(column.protocol)),
        private=point(calibration.protocol, calibration.bound),
    )


def _fixed(specification: Specification, **_: Any) -> NoReturn:
    hint = "The keys of [shuffler] already set the guarantee, so there is nothing to search. Run assess instead."
    unfit("shuffler.kind", "must be another to calibrate", f'"{specification.shuffler.kind}"', hint)


CALIBRATED: Final = {"noise": calibrate, "messages": calibrate_messages, "nothing": _fixed}
"""The calibration of each answer to `SettingsTable.calibrated`."""


def _choice(column: Column, chosen: Protocol, *, private: Point, **facts: Any) -> Choice:
    """Return the result for one column; `chosen` is the protocol of `private`."""
    specification, population = column.specification, column.people.population
    return Choice(
        title=specification.title or "Calibration of a shuffled collection",
        population=population,
        deployment=column.protocol.describe(reports_per_person=column.exposure.reports),
        epsilon=wished_epsilon(specification),
        delta=column.delta,
        private=private,
        targets=held(specification, chosen, column.exposure, private, population.least_people),
        **facts,
    )


def wished_epsilon(specification: Specification) -> float:
    """Return targets.epsilon; a specification without this target raises SpecificationError."""
    epsilon = specification.targets.epsilon
    if epsilon is None:
        hint = "Write the largest acceptable central epsilon, for example epsilon = 0.5."
        unfit("targets.epsilon", "must be given to calibrate", "nothing", hint)
    return epsilon


def solved(
    specification: Specification,
    protocol: Protocol,
    exposure: Exposure,
    *,
    parameter: Literal["epsilon", "messages"],
    name: str,
) -> Calibration:
    """Return the value of a parameter that meets targets.epsilon; raise SpecificationError if no value does."""
    epsilon = wished_epsilon(specification)
    if exposure.drawn_again:
        return _of_kept_reports(protocol, exposure, epsilon=epsilon, delta=specification.targets.delta)
    try:
        return solve(
            protocol,
            parameter=parameter,
            epsilon=epsilon,
            delta=specification.targets.delta,
            reports_per_person=exposure.reports,
            rounds=exposure.composed,
        )
    except InvalidInputError:
        unfit("targets.epsilon", f"must be a value that some {name} achieves", f"{epsilon:g}", "Allow a larger one.")


def _of_kept_reports(protocol: Protocol, exposure: Exposure, *, epsilon: float, delta: float) -> Calibration:
    """Return the largest local epsilon if a person has several memoized reports, whose local epsilons add up."""
    value = min(epsilon / exposure.total, LARGEST_LOCAL) * (1 - 1e-9)
    chosen, beyond = with_local_epsilon(protocol, value), value * (1 + 1e-4)
    above = exposure.epsilon(with_local_epsilon(protocol, beyond), delta=delta)
    return Calibration(
        parameter="epsilon",
        value=value,
        bound=exposure.epsilon(chosen, delta=delta),
        beyond=beyond,
        beyond_bound=above if above.upper > epsilon else None,
        evaluations=2,
        epsilon=epsilon,
        delta=delta,
        protocol=chosen,
    )


def point_at(protocol: Protocol, local_epsilon: float, delta: float, exposure: Exposure) -> Point:
    """Return the figures of a protocol with this local epsilon."""
    return _point(protocol, exposure.epsilon(protocol, delta=delta), local_epsilon=local_epsilon)


def _point(protocol: Protocol, central: Bound, **settings: float) -> Point:
    return Point(settings=settings, central=central, standard_error=error_of(protocol), protocol=protocol)


def learned(specification: Specification, protocol: Protocol) -> tuple[Finding, ...]:
    """Return the findings on adversaries that see the target's only report; empty if people send several reports."""
    if Exposure.of(specification).total > 1:
        return ()
    targets, adversaries = specification.targets, build_adversaries(specification)
    guessers = adversaries.guessers if targets.guessing is not None else ()
    guessed = [findings.guesser(protocol, adversary) for adversary in guessers]
    return (*guessed, *([findings.identified(protocol)] if targets.reidentification is not None else []))


def held(
    specification: Specification, protocol: Protocol, exposure: Exposure, point: Point, people: int
) -> tuple[Target, ...]:
    """Return all targets, each with the figure at the local epsilon of `point`."""
    central = Finding(question="central-dp", adversary="", sentence="", bound=point.central, proof="")
    rows = [central, findings.local(protocol, exposure=exposure), *learned(specification, protocol)]
    if exposure.total > 1 and specification.targets.guessing is not None:
        delta, source = specification.targets.delta, exposure.words
        rows.append(findings.guessed(protocol, central=central, delta=delta, what="an answer", source=source))
    return held_targets(
        specification, people=people, findings=rows, unanswered=(), error=Bound.exact(point.standard_error, unit="")
    )


def _binding(specification: Specification, protocol: Protocol, exposure: Exposure, most: float) -> tuple[str, float]:
    """Return the most restrictive privacy target, and the largest local epsilon, up to `most`, that meets all."""
    targets, binding = specification.targets, "epsilon"
    if targets.local_epsilon is not None and targets.local_epsilon < most * exposure.total:
        # The local epsilon of the implemented probabilities is rounded up.
        binding, most = "local_epsilon", targets.local_epsilon / exposure.total * (1 - 1e-12)
    for key, questions in (("guessing", GUESSES), ("reidentification", ("re-identification",))):
        limit = getattr(targets, key)
        if limit is None or exposure.total > 1:
            continue

        def surplus(local: float, limit: float = limit, questions: tuple[str, ...] = questions) -> float:
            try:
                rows = learned(specification, with_local_epsilon(protocol, local))
            except InvalidInputError:  # the mechanism does not exist with so much noise
                return -math.inf
            return log_excess(max(row.figure.upper for row in rows if row.question in questions), limit)

        least = min(LEAST, most)
        noise = Parameter(name="local epsilon", apply=float, easiest=least, hardest=most, resolution=_FINE)
        solution = search(noise, Requirement(excess=surplus))
        if solution is None or surplus(solution.value) == -math.inf:
            rule = "must be a probability that some local epsilon achieves"
            unfit(f"targets.{key}", rule, f"{limit:g}", "Raise it above the probability of a blind guess.")
        if solution.value < most:
            binding, most = key, solution.value
    return binding, most


def _least(protocol: Protocol, wanted: float) -> float | None:
    """Return the smallest local epsilon whose standard error is at most `wanted`, rounded up; None if there is none."""
    least = least_accurate(lambda local: no_error(lambda: error_of(with_local_epsilon(protocol, local))), wanted)
    return None if least is None else least * (1 + 1e-12)


def _people(
    protocol: Protocol, *, epsilon: float, delta: float, standard_error: float, exposure: Exposure
) -> int | None:
    """Return the smallest n at which a local epsilon meets privacy and accuracy; None if no n up to 10**9 does."""

    def short_of(crowd: Protocol) -> float:
        noise = _least(crowd, standard_error)
        if noise is None:
            return math.inf
        reports, rounds = exposure.reports, exposure.composed
        return excess(with_local_epsilon(crowd, noise), epsilon, delta, reports_per_person=reports, rounds=rounds)

    return _fewest(protocol, short_of)


def _fewest(protocol: Protocol, excess: Callable[[Protocol], float], resolution: float = RESOLUTION) -> int | None:
    """Return the smallest n whose protocol has no `excess`; None if no n up to 10**9 has none."""
    crowd = replace(number_of_people(protocol.n, lambda n: replace(protocol, n=n)), resolution=resolution)
    solution = search(crowd, Requirement(excess=excess))
    return None if solution is None else int(solution.value)
