"""Lists the targets of a specification, each with the computed number that must meet it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hushuffle.model import Bound, Finding, Population, Target, Unanswered, Warned
from hushuffle.specification import Specification
from hushuffle.specification.exposure import Exposure

GUESSES = ("vulnerability", "membership")
"""The names of the questions about adversaries who guess a value."""

_NO_FIGURE = "This figure cannot be computed for this mechanism."
_ONE_REPORT = "This figure is defined only for one report per person; here a person sends several."


class Proposal:
    """A proposed deployment; `targets` are all targets of the request, each with the figure of the proposal."""

    targets: tuple[Target, ...]

    @property
    def met(self) -> bool:
        """Whether the proposal meets all targets."""
        return all(target.met for target in self.targets)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One deployment of a calibration: its settings by name, its central epsilon (nats), and its standard error.

    `central` covers everything that one person sends, at the target's delta. `standard_error` is that of an estimated
    share, at the worst true share, of the mean of a sum, or of the reach of all publishers (relative). `settings` are
    those that the calibration chooses.
    """

    settings: Mapping[str, Any]
    central: Bound
    standard_error: float
    protocol: Any = None

    @property
    def local_epsilon(self) -> float:
        """The local epsilon of one report (nats)."""
        return float(self.settings["local_epsilon"])


@dataclass(frozen=True, kw_only=True)
class Choice(Proposal):
    """The result of the calibration of a deployment: what its targets allow.

    `kind` says what was chosen: the local epsilon ("noise"), the number of additional messages, the levels and noise of
    a sum, the common factor of all local epsilons of several columns, the flip probability of filters, or the widths of
    all dummies ("views"). `written` is the deployment in the file (None: several columns). `private` is the most
    accurate deployment that meets the privacy targets; `binding` is the target that limits it. `accurate` is the most
    private deployment that meets the accuracy target. Both are None without their target; `accurate` is also None if
    nothing tried meets it. `people` is the number of people needed for privacy and accuracy (None: the present number
    suffices, or no number up to 10**9 does). `reports` counts all reports of one person, and `columns` are the columns
    of `private`. `targets` and `warnings` are those of `proposed`, for which `specification` is the file (sum, views).
    """

    kind: Literal["noise", "messages", "sum", "columns", "reach", "views"]
    title: str
    population: Population
    deployment: str = ""
    epsilon: float | None
    delta: float
    standard_error: float | None = None
    written: Point | None = None
    private: Point | None = None
    accurate: Point | None = None
    columns: tuple[Point, ...] = ()
    people: int | None = None
    binding: str = "epsilon"
    reports: int = 1
    rounds: int = 1
    specification: str | None = None
    targets: tuple[Target, ...]
    warnings: tuple[Warned, ...] = ()

    @property
    def proposed(self) -> Point:
        """The deployment for privacy or, without such a target, for accuracy."""
        point = self.private or self.accurate
        assert point is not None  # without any, calibration raises an error
        return point


def targets(
    specification: Specification,
    *,
    people: int,
    findings: Sequence[Finding],
    unanswered: Sequence[Unanswered],
    error: Bound | None,
    alone: bool | None = None,
) -> tuple[Target, ...]:
    """Return the targets of privacy, people and accuracy, in this order, with their figures.

    `error` is the standard error that is compared with targets.standard_error; None: unknown. `alone` states whether a
    person sends a single report in all rounds together; None: the specification decides.
    """
    limits, exposure = specification.targets, Exposure.of(specification)
    single = exposure.total == 1 if alone is None else alone
    reasons = {row.question: row.reason for row in unanswered}

    def target(key: str, topic: str, limit: float, got: Bound | None, question: str) -> Target:
        reason = "" if got else reasons.get(question, _NO_FIGURE)
        return Target(key=key, topic=topic, rule="at most", asked=limit, got=got, reason=reason)

    def privacy() -> Iterator[Target]:
        if limits.epsilon is not None:
            topic = f"Central epsilon, at delta = {limits.delta:g}"
            yield target("epsilon", topic, limits.epsilon, _figure(findings, "central-dp"), "central-dp")
        yield delta_check(limits.delta, people)
        if limits.local_epsilon is not None:
            topic = "Local epsilon, if the shuffler fails"
            yield target("local_epsilon", topic, limits.local_epsilon, _figure(findings, "local-dp"), "local-dp")
        if limits.guessing is not None:
            topic = "Probability that the strongest adversary guesses a person's answer"
            refused = any(row.question in GUESSES for row in unanswered)
            got = None if refused else strongest(findings)
            yield target("guessing", topic, limits.guessing, got, "vulnerability")
        if limits.reidentification is not None:
            got = _figure(findings, "re-identification") if single else None
            topic = "Naming the sender of a report"
            wanted = target("reidentification", topic, limits.reidentification, got, "re-identification")
            yield wanted if single else replace(wanted, reason=_ONE_REPORT)

    def rest() -> Iterator[Target]:
        if limits.people is not None:
            yield enough_people(limits.people, people)
        if limits.standard_error is not None:
            yield target("standard_error", "Standard error", limits.standard_error, error, "accuracy")

    condition = exposure.condition
    return (*(row if row.check else replace(row, topic=row.topic + condition) for row in privacy()), *rest())


def delta_check(delta: float, people: int) -> Target:
    """Return the check of every assessment that delta is small for this number of people."""
    topic, got = "Check: delta, against one over the number of people", Bound.exact(delta, unit="probability")
    return Target(key="delta", topic=topic, rule="below", asked=1 / people, got=got)


def enough_people(least: int, people: int) -> Target:
    """Return the target for the number of people."""
    got = Bound.exact(float(people), unit="people")
    return Target(key="people", topic="People", rule="at least", asked=float(least), got=got)


def error_of_mean(limit: float, error: float) -> Target:
    """Return the target for the standard error of a mean."""
    topic, got = "Standard error of the mean", Bound.exact(error, unit="")
    return Target(key="standard_error", topic=topic, rule="at most", asked=limit, got=got)


def _figure(findings: Sequence[Finding], question: str) -> Bound | None:
    return next((finding.figure for finding in findings if finding.question == question), None)


def strongest(findings: Sequence[Finding]) -> Bound | None:
    """Return the figure of the most successful adversary who guesses a value; None without such a finding."""
    guesses = [finding.figure for finding in findings if finding.question in GUESSES]
    return max(guesses, key=lambda figure: figure.upper, default=None)
