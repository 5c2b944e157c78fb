"""Every target of a specification, with the figure that is held against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hushuffle.assessment.exposure import Exposure
from hushuffle.model import Bound, Finding, Target, Unanswered
from hushuffle.specification import Specification

GUESSES = ("vulnerability", "membership")
"""What adversaries who guess are asked."""

_NO_FIGURE = "It has no figure for this mechanism."
_ONE_REPORT = "It is known for one report alone, and a person gives several."


def targets(
    specification: Specification,
    *,
    people: int,
    findings: Sequence[Finding],
    unanswered: Sequence[Unanswered],
    error: Bound | None,
    alone: bool | None = None,
) -> tuple[Target, ...]:
    """Return what is asked of the privacy, the people and the accuracy, in this order.

    `error` is the standard error that targets.standard_error is about; None: nobody knows it. `alone`: whether one
    report of a person is drawn in all; None: as the specification says.
    """
    asked, single = specification.targets, Exposure.of(specification).total == 1 if alone is None else alone
    reasons = {row.question: row.reason for row in unanswered}

    def target(key: str, topic: str, limit: float, got: Bound | None, question: str) -> Target:
        reason = "" if got else reasons.get(question, _NO_FIGURE)
        return Target(key=key, topic=topic, rule="at most", asked=limit, got=got, reason=reason)

    def privacy() -> Iterator[Target]:
        if asked.epsilon is not None:
            topic = f"Central epsilon, at delta = {asked.delta:g}"
            yield target("epsilon", topic, asked.epsilon, _figure(findings, "central-dp"), "central-dp")
        yield Target(
            key="delta",
            topic="Check: delta, against one over the number of people",
            rule="below",
            asked=1 / people,
            got=Bound.exact(asked.delta, unit="probability"),
        )
        if asked.local_epsilon is not None:
            topic = "Local epsilon, if the shuffler fails"
            yield target("local_epsilon", topic, asked.local_epsilon, _figure(findings, "local-dp"), "local-dp")
        if asked.guessing is not None:
            topic = "Guessing a person's answer, the strongest adversary"
            refused = any(row.question in GUESSES for row in unanswered)
            got = None if refused else strongest(findings)
            yield target("guessing", topic, asked.guessing, got, "vulnerability")
        if asked.reidentification is not None:
            got = _figure(findings, "re-identification") if single else None
            topic = "Naming the sender of a report"
            wanted = target("reidentification", topic, asked.reidentification, got, "re-identification")
            yield wanted if single else replace(wanted, reason=_ONE_REPORT)

    def rest() -> Iterator[Target]:
        if asked.people is not None:
            got = Bound.exact(float(people), unit="people")
            yield Target(key="people", topic="People", rule="at least", asked=float(asked.people), got=got)
        if asked.standard_error is not None:
            yield target("standard_error", "Standard error", asked.standard_error, error, "accuracy")

    return (*privacy(), *rest())


def _figure(findings: Sequence[Finding], question: str) -> Bound | None:
    return next((finding.figure for finding in findings if finding.question == question), None)


def strongest(findings: Sequence[Finding]) -> Bound | None:
    """Return the figure of the adversary who guesses best."""
    guesses = [finding.figure for finding in findings if finding.question in GUESSES]
    return max(guesses, key=lambda figure: figure.upper, default=None)
