"""`Specification`: one deployment, as written in a TOML file, and the objects it describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from hushuffle.errors import Problem, SpecificationError
from hushuffle.mechanisms.adversaries import Guesser
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.mechanisms.shufflers import Shuffler
from hushuffle.specification._base import File, Name, Probability, Section, Seed, refuse
from hushuffle.specification.kinds import AnyAdversary, AnyRandomizer, AnyShuffler, Linker, Strong, Uninformed
from hushuffle.specification.order import Order, with_order_adversaries
from hushuffle.specification.population import AnyPopulation
from hushuffle.specification.reach import about_reach
from hushuffle.specification.rules import broken_rules, misfits


class Targets(Section):
    """Requirements on the deployment that assess checks."""

    delta: Probability
    """The delta of (epsilon, delta)-differential privacy; commonly well below 1/n."""
    epsilon: Annotated[float, Field(gt=0, le=LARGEST_EPSILON)] | None = None
    """Largest central epsilon at this delta, for all reports of one person in all rounds and all columns;
    `hushuffle calibrate` solves for it."""
    local_epsilon: Annotated[float, Field(gt=0, le=LARGEST_EPSILON)] | None = None
    """Largest local epsilon: the guarantee that remains with a compromised shuffler."""
    standard_error: Probability | None = None
    """Largest standard error of an estimated frequency, at the worst true frequency: 0.01 is one percentage point.

    In a reach study: the relative standard error of the reach of all publishers together (0.01 is 1 %).
    """
    guessing: Probability | None = None
    """Largest success probability of the strongest adversary that guesses a person's answer."""
    reidentification: Probability | None = None
    """Largest success probability of the re-identification adversary (linker), which names the sender of a report."""
    people: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """Minimum number of people; `hushuffle collect` releases nothing if fewer take part."""


class Run(Section):
    """Settings of the assessment itself."""

    repetitions: Annotated[int, Field(ge=0, le=1_000_000)] = 100
    """Number of simulated collections on the data, to compare measured with predicted errors; 0: none."""
    seed: Seed = "secure"
    """"secure", or an integer for reproducible and therefore predictable randomness: only for tests; the report
    warns."""
    confidence: Probability = 0.95
    """Confidence of the intervals around estimates."""
    show_people: bool = False
    """Whether the report maps every person's true and released value; only with a Mallows shuffle by two columns."""


_PLACEHOLDERS: Final = (
    *("", "no", "none", "na", "null", "nobody", "noone", "notyet", "notconfirmed", "notyetconfirmed", "unconfirmed"),
    *("unknown", "tbd", "tbc", "tba", "todo", "pending", "open", "unclear", "later"),
)
"""Entries that name neither a person nor a document, as their letters alone in small letters."""


def _vouching(value: str) -> str:
    if "".join(filter(str.isalpha, value.casefold())) in _PLACEHOLDERS:
        refuse(
            "must name who confirms the assumption: a person, a role or a document",
            "Leave the key out until someone confirms it.",
        )
    return value


Voucher = Annotated[Name, AfterValidator(_vouching)]
"""The name of a person, a role or a document that confirms an assumption, never a placeholder such as "TBD"."""


class Vouched(Section):
    """Who confirms each assumption, and how: "the works council, by the roster of March"."""

    one_answer: Voucher | None = None
    """Each person answers at most once in a round."""
    no_repeats: Voucher | None = None
    """No person is asked the same question in more rounds than the specification states."""
    participation: Voucher | None = None
    """Participation is not secret, and a missing answer reveals nothing."""
    devices: Voucher | None = None
    """Devices run the mechanism as described, with cryptographically secure randomness."""
    shuffler: Voucher | None = None
    """The shuffler does not reveal who sent what, and does not collude with the analyst."""


class Responsible(Section):
    """Who is responsible for the deployment and runs its parts, and the legal facts for a data protection officer."""

    controller: Name | None = None
    """The organisation that decides what is asked and why (the controller)."""
    purpose: Name | None = None
    """What the answers are used for."""
    legal_basis: Name | None = None
    """The legal basis: "consent, Art. 6 (1) (a) GDPR"."""
    retention: Name | None = None
    """How long reports and releases are kept."""
    contact: Name | None = None
    """Where people send questions and objections."""
    impact_assessment: Name | None = None
    """The reference of the data protection impact assessment."""
    approved_by: Name | None = None
    """Who approved the deployment."""
    approved_on: Annotated[Name, BeforeValidator(lambda day: f"{day}" if type(day) is date else day)] | None = None
    """The date of the approval: 2025-01-02, or text."""
    author: Name | None = None
    """Who is responsible for the deployment."""
    shuffler: Name | None = None
    """Who runs the shuffler."""
    analyst: Name | None = None
    """Who the analyst is: the recipient of the release."""


class StatementSection(Responsible):
    """Texts of the operator for the first page of the report."""

    colluders: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """Number of participants that collude with the analyst or are Sybil clients; 1 % of n if left out."""
    vouched: Vouched = Vouched()
    """Who confirms each assumption, and how."""


class Specification(File):
    """One deployment: population, randomizer, shuffler, adversaries, targets."""

    title: Name | None = None
    """Title of the report."""
    rounds: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """Number of rounds with the same people, with fresh randomness unless `memoised` (default: 1). Figures and
    `targets.epsilon` hold for all rounds together."""
    memoised: bool | None = None
    """Whether clients memoize one report per value and repeat it (default: false). Needs `rounds` of at least 2 and one
    report per person. Not with dummies, servers' noise, [[columns]] or numbers. `collect` needs `population.person`
    and a key."""
    changes: Annotated[int, Field(ge=0, le=10**6)] | None = None
    """With `memoised`: largest number of changes of one person's value over all rounds (default: 0). Each adds the
    local epsilon of one report."""
    population: AnyPopulation
    """The people who are asked."""
    randomizer: AnyRandomizer
    """The local randomizer on each person's device."""
    shuffler: AnyShuffler
    """The shuffler, which hides who sent which report."""
    adversaries: Annotated[tuple[AnyAdversary, ...], Field(strict=False)] = (
        Uninformed(kind="uninformed"),
        Strong(kind="strong"),
        Linker(kind="linker"),
    )
    """The adversaries to assess (default: uninformed, strong and linker; with a Mallows shuffle: order and linker). A
    study that estimates the reach of audiences ("bit-flipping") allows only "strong", which is then the default."""
    targets: Targets
    """Requirements that assess checks."""
    run: Run = Run()
    """Settings of the assessment."""
    statement: StatementSection = StatementSection()
    """Names of responsible people, and who confirms each assumption: words for the first page of the report."""

    @model_validator(mode="before")
    @classmethod
    def _default_adversaries(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and about_reach(raw) and "adversaries" not in raw:
            return {**raw, "adversaries": [{"kind": "strong"}]}
        return with_order_adversaries(raw)

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        return broken_rules(raw)

    @property
    def kind_of_deployment(self) -> str:
        return self.population.kind_of_deployment


@dataclass(frozen=True, kw_only=True)
class Adversaries:
    """The adversaries: `guessers` guess one person's answer; `linker`: whether an adversary guesses a report's sender.

    `order` is the adversary that sees the order of release, if there is one.
    """

    guessers: tuple[Guesser, ...]
    linker: bool
    order: Order | None = None


def build_protocol(spec: Specification, n: int, k: int, *, shuffler: Shuffler | None = None) -> Protocol:
    """Return the protocol for n people and k categories.

    `shuffler` must be given if the shuffler depends on the data (a Mallows shuffle); otherwise [shuffler] defines it.

    >>> from hushuffle.specification import parse
    >>> spec = parse('''
    ...     population = { n = 900, k = 3 }
    ...     randomizer = { kind = "randomized-response", epsilon = 1.0 }
    ...     shuffler = { kind = "uniform" }
    ...     targets = { delta = 1e-6 }
    ... ''')
    >>> build_protocol(spec, n=900, k=3).randomizer.local_epsilon
    1.0
    """
    problems = tuple(misfits(spec.plain(), n=n, k=k))
    if problems:
        where = f"specification, for n = {n:,} people and k = {k:,} categories"
        raise SpecificationError(where, problems)
    return Protocol(randomizer=spec.randomizer.build(k), shuffler=shuffler or spec.shuffler.build(), n=n)


def build_adversaries(spec: Specification) -> Adversaries:
    """Return the adversaries, in the order of the specification."""
    guessers = [adversary.guesser() for adversary in spec.adversaries]
    return Adversaries(
        guessers=tuple(guesser for guesser in guessers if guesser is not None),
        linker=any(adversary.kind == "linker" for adversary in spec.adversaries),
        order=next((adversary for adversary in spec.adversaries if adversary.kind == "order"), None),
    )
