"""The first page of a report: targets and whether they are met, and a `Statement` that somebody can sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from hushuffle import _checks
from hushuffle.model.bound import Bound

Rule = Literal["at most", "below", "at least"]
"""How a figure is held against what was asked."""

_RULES: Final = ("at most", "below", "at least")
_PRIVACY: Final = ("epsilon", "local_epsilon", "guessing", "reidentification")
Status = Literal["met", "not confirmed", "no privacy limit", "not met"]
"""What the first line of a report says: only the first of them is good news."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One target of a deployment: what was asked, what is got, and so whether it is met.

    `key` names it as in [targets] of a specification, `topic` in plain words. `asked` is in the unit of `got`, the
    figure that is held against it by `rule`; where nobody knows the figure `got` is None and `reason` says why.

    Raises:
        InvalidInputError: another rule, or neither a figure nor a reason.

    >>> import hushuffle as hs
    >>> bound = hs.Bound(lower=0.1117, upper=0.1119, kind="bracket", unit="nats")
    >>> Target(key="epsilon", topic="Central epsilon", rule="at most", asked=0.5, got=bound).met
    True
    """

    key: str
    topic: str
    rule: Rule
    asked: float
    got: Bound | None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.rule not in _RULES:
            _checks.reject("rule", f"one of {', '.join(_RULES)}", self.rule)
        if self.got is None and not self.reason:
            _checks.reject("reason", "given where there is no figure", "nothing")

    @property
    def met(self) -> bool | None:
        """Whether the target is met whatever the truth between the ends of the figure is; None: there is no figure."""
        if self.got is None:
            return None
        if self.rule == "at least":
            return self.got.lower >= self.asked
        return self.got.upper < self.asked if self.rule == "below" else self.got.upper <= self.asked

    @property
    def word(self) -> Literal["pass", "fail", "not shown", "not known"]:
        """Say whether it is met; "not shown" where the figure leaves it open."""
        if self.got is None:
            return "not known"
        if self.met:
            return "pass"
        open_end = self.got.upper >= self.asked if self.rule == "at least" else self.got.lower <= self.asked
        return "not shown" if open_end and self.got.lower < self.got.upper else "fail"

    @property
    def check(self) -> bool:
        """Whether this is a check that always runs, and no target that somebody set."""
        return self.key == "delta"

    @property
    def sentence(self) -> str:
        """What was asked and what is got, on one line.

        >>> target = Target(key="people", topic="People", rule="at least", asked=1000, got=None, reason="No data.")
        >>> print(target.sentence)
        People: asked at least 1,000, not known. No data.
        """
        asked = f"{self.topic}: {'must be' if self.check else 'asked'} {self.rule} {shown(self.asked)}"
        return f"{asked}, not known. {self.reason}" if self.got is None else f"{asked}, got {self.got}."


def shown(asked: float) -> str:
    """Return what was asked as it was written, with commas in large numbers.

    >>> shown(33000), shown(1e-6), shown(0.02), shown(1 / 3)
    ('33,000', '1e-06', '0.02', '0.3333')
    """
    return f"{asked:,.0f}" if asked >= 1000 and asked == int(asked) else f"{asked:.4g}"


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """What a claim rests on and no mathematics shows: a stable `key`, a sentence, who vouches for it ("": nobody)."""

    key: str
    sentence: str
    vouched: str = ""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What the figures become if something is otherwise: central epsilon, and the standard error of a share.

    A figure that cannot be given is None, and `remark` says why.
    """

    key: str
    case: str
    central: Bound | None
    standard_error: float | None
    remark: str = ""


@dataclass(frozen=True, kw_only=True)
class Anonymity:
    """One of the three questions of European guidance on anonymisation, with the figure that answers it.

    `bound` is None where the question was not analysed; `sentence` says so.

    Source: Article 29 Working Party, Opinion 05/2014 on anonymisation techniques (WP 216).
    """

    key: str
    question: str
    sentence: str
    bound: Bound | None


@dataclass(frozen=True, kw_only=True)
class Translation:
    """The text for the people who are asked in one `language` (its own name, and its `code`: "de"), as sentences."""

    language: str
    code: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What somebody who answers for a deployment tells a regulator, a board, or the people who are asked.

    `claim` is one sentence. `unit` says whose data is protected and against which change (the relation). `threats` say
    who is trusted with what, `assumptions` what nobody has proved, `scenarios` what happens otherwise, `respondents`
    how to put it to the people, `anonymity` what European guidance asks, `unprotected` what is not covered.
    `facts` are names and values that tell which deployment this is about: a date, digests, who answers for it.
    `responsible` are the names that a data protection officer asks for, "" where nobody wrote one; `translations` are
    `respondents` in several languages, with who asks.
    """

    claim: str
    unit: str
    threats: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    scenarios: tuple[Scenario, ...]
    respondents: tuple[str, ...]
    anonymity: tuple[Anonymity, ...]
    unprotected: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    responsible: tuple[tuple[str, str], ...] = ()
    translations: tuple[Translation, ...] = ()


def met(targets: tuple[Target, ...]) -> bool | None:
    """Return whether all targets are met; one without a figure is not met. None: nothing was asked.

    >>> met(())
    """
    return all(target.met for target in targets) if targets else None


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The first line of a report: one sentence over all targets and assumptions, and its `status`."""

    status: Status
    sentence: str


def headline(targets: tuple[Target, ...], assumptions: tuple[Assumption, ...] = ()) -> Headline | None:
    """Return the first line over targets, checks and assumptions; None: nothing was asked.

    The status is "met" only if a target of privacy was set, all targets are met, no check failed, and somebody
    confirms each assumption.

    >>> people = Target(key="people", topic="People", rule="at least", asked=9.0, got=Bound.exact(10.0, unit="people"))
    >>> print(headline((people,)).sentence)
    No privacy limit was set: write one in [targets], for example epsilon = 1. The other target is met.
    """
    if not targets:
        return None
    asked = [target for target in targets if not target.check]
    missed = [target.topic for target in asked if not target.met]
    failed = [target.topic for target in targets if target.check and not target.met]
    limited = any(target.key in _PRIVACY for target in asked)
    open_ones = [row for row in assumptions if not row.vouched]
    said = [] if limited else ["No privacy limit was set: write one in [targets], for example epsilon = 1."]
    if missed:
        of = "The one target" if len(asked) == 1 else f"{len(missed)} of {len(asked):,} targets"
        said.append(f"{of} {'is' if len(missed) == 1 else 'are'} not met: {'; '.join(missed)}.")
    elif asked:
        said.append(_all(len(asked), other="" if limited else "other "))
    said += [f"A check failed: {topic.removeprefix('Check: ')}." for topic in failed]
    if open_ones and not missed:
        are = "assumption is" if len(open_ones) == 1 else "assumptions are"
        said.append(f"{len(open_ones)} {are} not confirmed: write who confirms each in [statement.vouched].")
    status: Status = "not met" if missed or failed else "not confirmed" if open_ones else "met"
    return Headline(status=status if limited or missed or failed else "no privacy limit", sentence=" ".join(said))


def _all(count: int, *, other: str) -> str:
    if count == 1:
        return f"The {other or 'one '}target is met."
    return f"{'The' if other else 'All'} {other}{count} targets {'are ' if other else ''}met."
