"""Warnings of an assessment, the most serious first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Final

from hushuffle.assessment.chapters import Draft
from hushuffle.assessment.trials import worst_error
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Utility, Warned, number
from hushuffle.questions.dp.central import LARGE_EPSILON
from hushuffle.specification import People, Specification
from hushuffle.specification.exposure import Column, Exposure
from hushuffle.specification.population import AnyPopulation
from hushuffle.specification.warnings import accuracy_warnings, label_warnings, privacy_warnings, row_warnings

SMALL_GROUP = 20
FALSE_ALARM = 1e-6
"""The probability of a false warning that any measured error differs from its prediction."""

FIXED_SEED: Final = Warned(
    key="fixed-seed",
    sentence="The seed was fixed: an adversary who knows the seed can undo the noise of this run.",
    advice='Use seed = "secure" for anything but tests.',
)


def concerns(protocol: Protocol, column: Column, draft: Draft) -> tuple[Warned, ...]:
    """The most serious first, without those that need a missing central figure or utility."""
    people, specification, utility = column.people, column.specification, draft.utility
    central, missing = draft.central, getattr(specification.population, "missing", None)
    times = Exposure.of(specification, k=protocol.randomizer.inputs).total
    return (
        *privacy_warnings(protocol, delta=specification.targets.delta, times=times),
        *_about_privacy(protocol, specification, central),
        *_about_groups(people, specification),
        *(_about_accuracy(protocol, utility) if utility else _about_unknown_accuracy(specification)),
        *(accuracy_warnings(protocol) if utility else ()),
        *people.warnings,
        *(label_warnings(people.population.labels, missing) if people.population.counts else ()),
        *_about_the_run(people, specification),
    )


def about_rows(populations: Sequence[AnyPopulation], *, base_folder: Path, **remedy: str) -> tuple[Warned, ...]:
    """About a column without answers that may identify people; () if no row counts as a person."""
    population = populations[0]
    if population.files is None or population.whose is not None:
        return ()
    answers = {getattr(each, "column", "") for each in populations}
    return tuple(
        row_warnings([population.files], answers=answers, form=population.form, base_folder=base_folder, **remedy)
    )


def _about_privacy(protocol: Protocol, specification: Specification, central: Bound | None) -> Iterator[Warned]:
    wanted, local = specification.targets.epsilon, protocol.randomizer.local_epsilon
    exposure = Exposure.of(specification, k=protocol.randomizer.inputs)
    if math.isfinite(local) and central is not None:
        yield from large_epsilon(central, "Use a smaller epsilon in [randomizer], or ask more people.")
    if central is None:
        yield from unknown_privacy(specification)
    elif wanted is not None and central.upper > wanted:
        yield Warned(
            key="privacy-target-missed",
            sentence=(
                f"Central epsilon {'is' if central.lower > wanted else 'may be'} {number(central.upper, up=True)}, "
                f"above targets.epsilon = {wanted:g}."
            ),
            advice=_advice(protocol),
        )
    if protocol.reveals is Reveals.SENDERS:
        yield Warned(
            key="no-shuffler",
            sentence="No shuffler hides who sent which report: only the noise on each device protects the answers.",
            advice='Add [shuffler] kind = "uniform" if a shuffler can be trusted.',
        )
    elif central is not None and central.lower > 0.9 * exposure.local(protocol).upper:
        yield Warned(
            key="no-amplification",
            sentence="At this delta, the shuffler adds almost no privacy to that of the noise on each device.",
            advice="Ask more people, or use more noise: the charts show the required amount.",
        )


def large_epsilon(central: Bound, advice: str) -> Iterator[Warned]:
    """Warns of a weak central guarantee."""
    if central.upper > LARGE_EPSILON:
        sentence = f"Epsilon is {number(central.upper, up=True)}, above {LARGE_EPSILON:g}: a weak guarantee."
        yield Warned(key="large-epsilon", sentence=sentence, advice=advice)


def unknown_privacy(specification: Specification) -> Iterator[Warned]:
    """Warns if there is no figure that can be compared with the target for epsilon."""
    wanted = specification.targets.epsilon
    if wanted is not None:
        yield Warned(
            key="privacy-target-unknown",
            sentence=f"Central epsilon cannot be computed here. It may miss targets.epsilon = {wanted:g}.",
            advice="Use a mechanism whose central epsilon can be computed.",
        )


def _about_groups(people: People, specification: Specification) -> Iterator[Warned]:
    population, counts = specification.population, people.population.counts
    if population.grid is not None:
        return  # a level with few people does not harm the estimate of a mean
    small = [] if counts is None else [count for count in counts if count < SMALL_GROUP]
    if small:
        yield Warned(
            key="small-groups",
            sentence=f"{len(small)} of {people.k} categories have under {SMALL_GROUP} people, too few to estimate.",
            advice="Merge rare categories before asking.",
        )


def _about_accuracy(protocol: Protocol, utility: Utility) -> Iterator[Warned]:
    if utility.target is not None and (worst := worst_error(protocol)) > utility.target:
        yield Warned(
            key="target-missed",
            sentence=f"The standard error is up to {number(worst, up=True)}, above the target {utility.target:g}.",
            advice="Ask more people, or use less noise: the charts show both.",
        )
    if (z := utility.z) is not None and float(abs(z).max()) > NormalDist().inv_cdf(1 - FALSE_ALARM / z.size / 2):
        yield Warned(
            key="measured-differs",
            sentence="The measured error differs significantly from the predicted error.",
            advice="The prediction or the sampler has a bug. Please report it with result.json.",
        )


def _about_unknown_accuracy(specification: Specification) -> Iterator[Warned]:
    target = specification.targets.standard_error
    if target is not None:
        yield Warned(
            key="target-unknown",
            sentence=f"The standard error cannot be computed here. It may miss the target {target:g}.",
            advice="Use a mechanism whose frequencies can be estimated.",
        )


def _about_the_run(people: People, specification: Specification) -> Iterator[Warned]:
    if people.population.dropped:
        yield Warned(
            key="dropped-records",
            sentence=f"{people.population.dropped:,} records without an answer were left out.",
            advice="The fact that an answer is missing can be private too: document why answers are missing.",
        )
    if people.values is not None and specification.run.seed != "secure":
        yield FIXED_SEED
    if people.values is not None:
        yield Warned(
            key="true-values-shown",
            sentence="This report uses the true answers and shows their true shares.",
            advice="Internal use only. For a report to publish, give n and categories in [population] instead of data.",
        )


def _advice(protocol: Protocol) -> str:
    """How to reduce a central epsilon that is too large, in words."""
    if protocol.shuffler.own_messages:
        return "Run hushuffle calibrate to find the local epsilon, or the number of messages, that meets the target."
    if protocol.shuffler.value_law is not None:
        return "Let the shuffler add more dummies of each category, or let it remove more reports."
    return "Run hushuffle calibrate to find the local epsilon that meets the target."
