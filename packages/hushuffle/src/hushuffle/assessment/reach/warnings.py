"""Warnings on a reach study (with Bloom filters), the most serious first."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import Final

from hushuffle.assessment.reach.privacy import Design
from hushuffle.assessment.reach.trials import Figure, relative_error
from hushuffle.assessment.warnings import FALSE_ALARM, FIXED_SEED, large_epsilon, unknown_privacy
from hushuffle.model import Bound, Warned, number
from hushuffle.specification import Audiences, Specification
from hushuffle.specification.warnings import SMALL_CROWD

_WIDE: Final = 1.5
_BLURRED: Final = 2.0  # standard errors: an overlap of fewer is not statistically significant
_NAMED: Final = 3


def concerns(
    design: Design,
    *,
    audiences: Audiences,
    figures: tuple[Figure, ...],
    specification: Specification,
    central: Bound | None,
) -> tuple[Warned, ...]:
    """Return the warnings, the gravest first."""
    return (
        *_about_privacy(design, audiences, specification, central),
        *_about_answers(figures, specification),
        *_about_errors(figures, specification),
        *_about_the_run(design, audiences, specification),
    )


def _about_privacy(
    design: Design, audiences: Audiences, specification: Specification, central: Bound | None
) -> Iterator[Warned]:
    people = audiences.population.n
    if central is None:
        yield from unknown_privacy(specification)
    else:
        yield from _about_the_guarantee(design, specification, central)
    if design.delta * people >= 1:
        yield Warned(
            key="large-delta",
            sentence=(
                f"Delta is {design.delta:g}, not below 1/n = {1 / people:.2g} for {people:,} people: this delta allows "
                "a release that reveals one person's data."
            ),
            advice="Use a delta well below one over the number of people.",
        )
    if design.hashes > 1:
        yield Warned(
            key="several-hash-functions",
            sentence=f"A person changes {design.hashes} columns, one per hash function; each increases epsilon.",
            advice="Use hashes = 1 to count people: the same filters are then more accurate and more private.",
        )
    if people < SMALL_CROWD:
        yield Warned(
            key="small-crowd",
            sentence=f"Only {people} people are in the audiences: errors can be as large as the estimates.",
            advice="Measure larger audiences.",
        )


def _about_the_guarantee(design: Design, specification: Specification, central: Bound) -> Iterator[Warned]:
    wanted, advice = specification.targets.epsilon, "Use a wider distribution of dummies."
    if design.views is None:
        advice = "Flip more bits, use larger filters, or release the filters of fewer publishers together."
    yield from large_epsilon(central, advice)
    if wanted is not None and central.upper > wanted:
        yield Warned(
            key="privacy-target-missed",
            sentence=f"Central epsilon is {number(central.upper, up=True)}, above targets.epsilon = {wanted:g}.",
            advice="Remove p from [randomizer]: then assess uses the smallest flip probability that meets the target."
            if design.views is None
            else "Use a wider distribution of dummies; hushuffle.bloom.plan_views chooses it.",
        )
    if central.upper > _WIDE * central.lower:
        yield Warned(
            key="wide-bracket",
            sentence=(
                f"The true epsilon may be as small as {number(central.lower, up=False)}: the proven upper bound is "
                f"{number(central.upper / central.lower, digits=2)} times that."
                if central.lower > 0
                else "The true epsilon may be 0: only its upper bound is proven."
            ),
            advice="Rely on the upper bound. More flips, larger filters or fewer hash functions narrow the gap.",
        )
    if central.lower > 0.9 * design.local.upper:
        yield Warned(
            key="no-amplification",
            sentence="At this delta, shuffling the columns adds almost no privacy to that of the flipped bits.",
            advice="Use larger filters or more flips: the charts show the required amount.",
        )


def _about_answers(figures: tuple[Figure, ...], specification: Specification) -> Iterator[Warned]:
    refused = [figure for figure in figures if figure.refused]
    if refused:
        yield Warned(
            key="refused",
            sentence=f"There is no estimate for {_some(refused)}. "
            f"{refused[0].refused.split('. ')[0].removesuffix('.')}.",
            advice="Use one bit or more for each person, fewer flips, one hash function, or fewer publishers together.",
        )
    target, relative = specification.targets.standard_error, relative_error(figures)
    if target is not None and (relative is None or relative > target):
        description = "is not defined" if relative is None else f"is {number(relative, up=True)} of the reach"
        yield Warned(
            key="target-missed",
            sentence=f"The standard error of the total reach {description}, above targets.standard_error = {target:g}.",
            advice="Use fewer flips, or filters of another size: the charts show both.",
        )
    blurred = [figure for figure in figures if not figure.refused and figure.truth < _BLURRED * figure.predicted]
    if blurred:
        yield Warned(
            key="noise-above-signal",
            sentence=f"The noise hides {_some(blurred)}: the number of people is below two standard errors.",
            advice="Estimates of it are not statistically significant. Use fewer flips, or filters of another size.",
        )


def _about_errors(figures: tuple[Figure, ...], specification: Specification) -> Iterator[Warned]:
    repeated = [figure for figure in figures if not figure.refused and specification.run.repetitions]
    unsteady = [figure for figure in repeated if figure.measured is None]
    if unsteady:
        yield Warned(
            key="unsteady",
            sentence=f"Some runs gave no answer for {_some(unsteady)}: the filters are nearly too full or too noisy.",
            advice="Use more bits or fewer flips, or the real release may have no estimate either.",
        )
    values = [abs(figure.z) for figure in repeated if figure.z is not None]
    if values and max(values) > NormalDist().inv_cdf(1 - FALSE_ALARM / len(values) / 2):
        yield Warned(
            key="measured-differs",
            sentence="A measured error differs significantly from the predicted error.",
            advice="Rely on the measured error: estimates from few columns are not normally distributed.",
        )


def _about_the_run(design: Design, audiences: Audiences, specification: Specification) -> Iterator[Warned]:
    if audiences.filters is None:
        yield Warned(
            key="assumed-audiences",
            sentence="The audiences and their overlaps are assumed, not read from files.",
            advice="Real audiences may overlap less or more, which changes the errors.",
        )
        return
    if audiences.population.dropped:
        yield Warned(
            key="dropped-records",
            sentence=f"{audiences.population.dropped:,} records without identifier were left out.",
            advice="If each is another person, the true reach is larger by this number.",
        )
    if specification.run.seed != "secure":
        yield FIXED_SEED
    yield Warned(
        key="true-values-shown",
        sentence="This report uses all publishers' identifiers and shows their true audiences.",
        advice="Internal use only. Real publishers flip their own filters once, and release only those."
        if design.views is None
        else "Internal use only. Real publishers send their filters to the shuffler only.",
    )


def _some(figures: list[Figure]) -> str:
    names = [f'"{figure.asked.label}"' for figure in figures[:_NAMED]]
    more = len(figures) - len(names)
    return f"{', '.join(names)}{f' and {more} more' if more else ''}"
