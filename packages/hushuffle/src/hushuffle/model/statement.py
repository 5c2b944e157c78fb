"""The first page of a report: `Target`s, which state whether they are met, and a `Statement` for signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from hushuffle import _checks
from hushuffle.model.bound import Bound

Rule = Literal["at most", "below", "at least"]
"""How a figure is compared with the limit of its target."""

_EPSILONS: Final = ("epsilon", "local_epsilon")
_GUESSES: Final = ("guessing", "reidentification")
Status = Literal["met", "not confirmed", "no privacy limit", "not met"]
"""The status in the first line of a report; only "met" means success."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One target of a deployment, its figure, and whether it is met.

    `key` is the target's name in [targets] of a specification, `topic` its name in words. `asked` is the limit, in the
    unit of the figure `got`; `rule` is the comparison of `got` with `asked` that must hold. Without a figure, `got` is
    None and `reason` says why.

    Raises:
        InvalidInputError: the rule is unknown, or there is neither a figure nor a reason.

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
        if self.rule not in get_args(Rule):
            _checks.reject("rule", f"one of {', '.join(get_args(Rule))}", self.rule)
        if self.got is None and not self.reason:
            _checks.reject("reason", "given where there is no figure", "nothing")

    @property
    def met(self) -> bool | None:
        """Whether the target is met by every value between the bounds of the figure; None: there is no figure."""
        if self.got is None:
            return None
        if self.rule == "at least":
            return self.got.lower >= self.asked
        return self.got.upper < self.asked if self.rule == "below" else self.got.upper <= self.asked

    @property
    def word(self) -> Literal["pass", "fail", "not shown", "not known"]:
        """The result in words: "not shown" if the figure's bounds do not decide, "not known" without a figure."""
        if self.got is None:
            return "not known"
        if self.met:
            return "pass"
        open_end = self.got.upper >= self.asked if self.rule == "at least" else self.got.lower <= self.asked
        return "not shown" if open_end and self.got.lower < self.got.upper else "fail"

    @property
    def check(self) -> bool:
        """Whether this target is a check that every assessment runs, rather than a target of the specification."""
        return self.key == "delta"

    @property
    def limits_privacy(self) -> bool:
        """Whether this target limits privacy in practice: an epsilon of at most 20, or a success rate below 0.99."""
        return (self.key in _EPSILONS and self.asked <= 20) or (self.key in _GUESSES and self.asked < 0.99)

    @property
    def sentence(self) -> str:
        """One line of text with the target, its figure and the result.

        >>> target = Target(key="people", topic="People", rule="at least", asked=1000, got=None, reason="No data.")
        >>> print(target.sentence)
        People: asked at least 1,000, not known. No data.
        """
        requirement = f"{self.topic}: {'must be' if self.check else 'asked'} {self.rule} {shown(self.asked)}"
        return f"{requirement}, not known. {self.reason}" if self.got is None else f"{requirement}, got {self.got}."


def shown(asked: float) -> str:
    """Return a limit as text, as a specification writes it, with commas in large numbers.

    >>> shown(33000), shown(1e-6), shown(0.02), shown(1 / 3)
    ('33,000', '1e-06', '0.02', '0.3333')
    """
    return f"{asked:,.0f}" if asked >= 1000 and asked == int(asked) else f"{asked:.4g}"


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """An unproven assumption of the claim: a stable `key`, a sentence, and who confirms it ("": not confirmed)."""

    key: str
    sentence: str
    vouched: str = ""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Central epsilon and the standard error of a share in one possible case, for example with fewer people.

    A figure that cannot be computed is None, and `remark` says why.
    """

    key: str
    case: str
    central: Bound | None
    standard_error: float | None
    remark: str = ""


@dataclass(frozen=True, kw_only=True)
class Anonymity:
    """One of the three questions of European guidance on anonymisation, with the figure that answers the question.

    `bound` is None if the question was not analysed; `sentence` then says so.

    Source: Article 29 Working Party, Opinion 05/2014 on anonymisation techniques (WP 216).
    """

    key: str
    question: str
    sentence: str
    bound: Bound | None


@dataclass(frozen=True, kw_only=True)
class Translation:
    """The information for respondents in one language: its own name, its `code` (such as "de"), and the sentences."""

    language: str
    code: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The statement about a deployment for a regulator, a board, or the respondents.

    `claim` is one sentence. `unit` says whose data is protected and against which change (the relation). `threats` say
    which actor is trusted with what, and `assumptions` what is not proven. `scenarios` are the figures in other cases,
    for example with fewer people. `respondents` is the information for the respondents. `anonymity` answers European
    guidance, and `unprotected` lists what the claim does not cover. `facts` are names and values that identify the
    deployment: a date, digests, the author. `responsible` are the names that a data protection officer needs, "" if
    missing. `translations` have the information for respondents in several languages, with the controller.
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
    """Return whether all targets are met; a target without a figure counts as not met. None: there are no targets.

    >>> met(())
    """
    return all(target.met for target in targets) if targets else None


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The first line of a report: a sentence that summarizes all targets and assumptions, and the `status`."""

    status: Status
    sentence: str


def headline(targets: tuple[Target, ...], assumptions: tuple[Assumption, ...] = ()) -> Headline | None:
    """Return the first line of a report, from its targets, checks and assumptions; None: there are no targets.

    The status is "met" only if an effective privacy target was set, all targets are met, no check failed, and every
    assumption is confirmed.

    >>> people = Target(key="people", topic="People", rule="at least", asked=9.0, got=Bound.exact(10.0, unit="people"))
    >>> print(headline((people,)).sentence)
    No privacy limit was set: write one, for example epsilon = 1, in [targets]. The other target is met.
    """
    if not targets:
        return None
    wanted = [target for target in targets if not target.check]
    missed = [target.topic for target in wanted if not target.met]
    failed = [target.topic for target in targets if target.check and not target.met]
    limited = any(target.limits_privacy for target in wanted)
    vacuous = [f"{each.key} = {shown(each.asked)}" for each in wanted if each.key in (*_EPSILONS, *_GUESSES)]
    open_ones = [row for row in assumptions if not row.vouched]
    sentences = [] if limited else ["No privacy limit was set: write one, for example epsilon = 1, in [targets]."]
    if vacuous and not limited:
        restrict = f"{' and '.join(vacuous)} {'restricts' if len(vacuous) == 1 else 'restrict'} nothing in practice"
        sentences = [
            f"No effective privacy limit was set: {restrict}. Write one, for example epsilon = 1, in [targets]."
        ]
    if missed:
        of = "The one target" if len(wanted) == 1 else f"{len(missed)} of {len(wanted):,} targets"
        sentences.append(f"{of} {'is' if len(missed) == 1 else 'are'} not met: {'; '.join(missed)}.")
    elif wanted:
        sentences.append(_all(len(wanted), other="" if limited or vacuous else "other "))
    sentences += [f"A check failed: {topic.removeprefix('Check: ')}." for topic in failed]
    if open_ones and not missed:
        are = "assumption is" if len(open_ones) == 1 else "assumptions are"
        sentences.append(f"{len(open_ones)} {are} not confirmed. Name who confirms each in [statement.vouched].")
    status: Status = "not met" if missed or failed else "not confirmed" if open_ones else "met"
    return Headline(status=status if limited or missed or failed else "no privacy limit", sentence=" ".join(sentences))


def _all(count: int, *, other: str) -> str:
    if count == 1:
        return f"The {other or 'one '}target is met."
    return f"{'The' if other else 'All'} {other}{count} targets {'are ' if other else ''}met."
