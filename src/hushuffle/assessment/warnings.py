"""The warnings of an assessment, the gravest first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.findings import central_bound, hides_senders
from hushuffle.assessment.trials import worst_error
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Finding, Utility, Warned, number
from hushuffle.questions.dp.central import LARGE_EPSILON
from hushuffle.specification import People, ReachPopulation, Specification
from hushuffle.specification.warnings import accuracy_warnings, privacy_warnings

SMALL_GROUP = 20
FALSE_ALARM = 1e-6
"""The probability, over all values together, that chance alone causes the warning that measured errors differ."""


def concerns(
    protocol: Protocol,
    *,
    people: People,
    specification: Specification,
    findings: Sequence[Finding],
    utility: Utility | None,
) -> tuple[Warned, ...]:
    """Return the warnings, the gravest first; warnings that need a missing central figure or utility are left out."""
    central = central_bound(findings)
    return (
        *privacy_warnings(
            protocol,
            delta=specification.targets.delta,
            times=Exposure.of(specification, k=protocol.randomizer.inputs).total,
        ),
        *_about_privacy(protocol, specification, central),
        *_about_groups(people, specification),
        *(_about_accuracy(protocol, utility) if utility else _about_unknown_accuracy(specification)),
        *(accuracy_warnings(protocol) if utility else ()),
        *people.warnings,
        *_about_the_run(people, specification),
    )


def _about_privacy(protocol: Protocol, specification: Specification, central: Bound | None) -> Iterator[Warned]:
    wanted, local = specification.targets.epsilon, protocol.randomizer.local_epsilon
    exposure = Exposure.of(specification, k=protocol.randomizer.inputs)
    if math.isfinite(local) and central is not None and central.upper > LARGE_EPSILON:
        yield Warned(
            key="large-epsilon",
            sentence=f"Epsilon is {number(central.upper, up=True)}, above {LARGE_EPSILON:g}: a weak guarantee.",
            advice="Lower the epsilon of [randomizer], or ask more people.",
        )
    if central is None:
        yield from unknown_privacy(specification)
    elif wanted is not None and central.upper > wanted:
        yield Warned(
            key="privacy-target-missed",
            sentence=(
                f"Central epsilon {'is' if central.lower > wanted else 'may be'} {number(central.upper, up=True)}, "
                f"above the {wanted:g} asked for."
            ),
            advice=_advice(protocol),
        )
    if not hides_senders(protocol):
        yield Warned(
            key="no-shuffler",
            sentence="Nothing hides who sent which report: only the noise on each device protects.",
            advice='Add [shuffler] kind = "uniform" if a shuffler can be trusted.',
        )
    elif central is not None and central.lower > 0.9 * exposure.local(protocol).upper:
        yield Warned(
            key="no-amplification",
            sentence="At this delta the shuffler adds almost nothing to the noise on each device.",
            advice="Ask more people, or use more noise: the charts show how much it takes.",
        )


def unknown_privacy(specification: Specification) -> Iterator[Warned]:
    """Yield a warning if there is no figure that can be compared with the target for epsilon."""
    wanted = specification.targets.epsilon
    if wanted is not None:
        yield Warned(
            key="privacy-target-unknown",
            sentence=f"Whether central epsilon meets the {wanted:g} asked for is not known: it has no figure here.",
            advice="Take a mechanism whose central guarantee can be computed.",
        )


def _about_groups(people: People, specification: Specification) -> Iterator[Warned]:
    population, counts = specification.population, people.population.counts
    if not isinstance(population, ReachPopulation) and population.grid is not None:
        return  # a level with few people does not harm the estimate of a mean
    small = [] if counts is None else [count for count in counts if count < SMALL_GROUP]
    if small:
        yield Warned(
            key="small-groups",
            sentence=f"{len(small)} of {people.k} categories hold under {SMALL_GROUP} people, too few to estimate.",
            advice="Merge rare categories before asking.",
        )


def _about_accuracy(protocol: Protocol, utility: Utility) -> Iterator[Warned]:
    worst = math.inf if utility.target is None else worst_error(protocol)
    if utility.target is not None and worst > utility.target:
        yield Warned(
            key="target-missed",
            sentence=f"The standard error is up to {number(worst, up=True)}, above the {utility.target:g} asked for.",
            advice="Ask more people, or use less noise: the charts show both.",
        )
    if utility.z is not None and float(abs(utility.z).max()) > NormalDist().inv_cdf(
        1 - FALSE_ALARM / utility.z.size / 2
    ):
        yield Warned(
            key="measured-differs",
            sentence="The measured error differs from the predicted one by more than chance allows.",
            advice="Please report this with result.json: prediction or sampler is wrong.",
        )


def _about_unknown_accuracy(specification: Specification) -> Iterator[Warned]:
    target = specification.targets.standard_error
    if target is not None:
        yield Warned(
            key="target-unknown",
            sentence=f"Whether the standard error meets the {target:g} asked for is not known: it has no figure here.",
            advice="Take a mechanism whose frequencies can be estimated.",
        )


def _about_the_run(people: People, specification: Specification) -> Iterator[Warned]:
    if people.population.dropped:
        yield Warned(
            key="dropped-records",
            sentence=f"{people.population.dropped:,} records without an answer were left out.",
            advice="Whether an answer is missing can be private too: document why answers are missing.",
        )
    if people.values is not None and specification.run.seed != "secure":
        yield Warned(
            key="fixed-seed",
            sentence="The randomness came from a fixed seed: an adversary who knows it can undo the noise of this run.",
            advice='Use seed = "secure" for anything but tests.',
        )
    if people.values is not None:
        yield Warned(
            key="true-values-shown",
            sentence="This report uses the true answers and shows their true shares.",
            advice="Internal use only. For a report to publish, replace data by n and categories.",
        )


def _advice(protocol: Protocol) -> str:
    """Return advice in words on how to reduce a central epsilon that is too large."""
    if protocol.shuffler.own_messages:
        return "Run hushuffle calibrate to find the local epsilon, or the number of messages, that meets it."
    if protocol.shuffler.value_law is not None:
        return "Let the shuffler add more dummies of each category, or keep fewer reports."
    return "Run hushuffle calibrate to find the local epsilon that meets it."
