"""Write the first page of an assessment: the claim, its assumptions, and what the claim does not cover."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from hushuffle._version import __version__
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Anonymity, Assumption, Bound, Finding, Population, Scenario, Statement, Unanswered, number
from hushuffle.specification import Specification
from hushuffle.specification.exposure import Exposure, chance, factor

DEVICES: Final = "Devices run the mechanism as described, with unpredictable random numbers."
TAKING_PART: Final = "The fact that you take part is not hidden."
_ASSUMPTIONS: Final = {
    "one_answer": "Each person sends one report in a round. A person who sends more is protected less.",
    "no_repeats": "No person is asked the same question again. The table of cases shows the cost of more rounds.",
    "participation": "Taking part is not secret, and whether an answer is missing does not depend on the answer.",
    "devices": DEVICES,
    "shuffler": "The shuffler does not reveal who sent which report, and does not collude with the analyst.",
}
_NOT_ANALYSED: Final = "This was not analysed: the specification names no adversary with this aim."
_QUESTIONS: Final = {
    "singling-out": "Singling out: can a report be traced to the person who sent it?",
    "linkability": "Linkability: how much does a report reveal about its sender?",
    "inference": "Inference: can a person's answer be guessed from the release?",
}
"""The three questions of European guidance on anonymisation."""
_ANSWERED: Final = {
    "singling-out": ("re-identification",),
    "linkability": ("identity-information",),
    "inference": ("vulnerability", "membership"),
}
_REFUSED: Final = ("central-dp", "vulnerability", "membership", "re-identification", "identity-information")
_UNPROTECTED: Final = (
    "Facts about the population as a whole: their publication is the purpose of the collection.",
    "Whether a person takes part, when, and from which address: network traffic was not analysed.",
    "Other collections about the same people: their epsilons add to that of this collection.",
)


_RESPONSIBLE: Final = (
    *("controller", "purpose", "legal_basis", "retention", "contact"),
    *("impact_assessment", "approved_by", "approved_on"),
)
"""The keys of [statement] that a data protection officer needs."""


class ClaimPage(ABC):
    """The first page of an assessment: a kind of deployment writes its parts, and `statement` assembles them."""

    def __init__(self, names: Any, delta: float, written: str) -> None:
        self.names, self.delta, self.written = names, delta, written
        self.run = f", run by {names.shuffler}," if names.shuffler else ""
        self.shuffler = f"The shuffler{self.run}" if names.shuffler else "The shuffler (set statement.shuffler)"

    def statement(self, scenarios: tuple[Scenario, ...] = ()) -> Statement:
        """Return the page, with the figures of other cases."""
        vouched = self.names.vouched
        return Statement(
            claim=self.claim(),
            unit=self.unit(),
            threats=tuple(self.threats()),
            assumptions=tuple(
                Assumption(key=key, sentence=sentence, vouched=getattr(vouched, key) or "")
                for key, sentence in self.assumptions()
            ),
            scenarios=scenarios,
            respondents=tuple(self.respondents()),
            anonymity=tuple(
                Anonymity(key=key, question=question, sentence=sentence, bound=bound)
                for key, question in _QUESTIONS.items()
                for sentence, bound in [self.answered(key)]
            ),
            unprotected=(*_UNPROTECTED, *self.unprotected()),
            facts=tuple(self.facts()),
            responsible=tuple(
                (key.replace("_", " ").capitalize(), getattr(self.names, key) or "") for key in _RESPONSIBLE
            ),
        )

    @abstractmethod
    def claim(self) -> str:
        """Return the guarantee in words."""

    @abstractmethod
    def unit(self) -> str:
        """Return what may differ between two datasets that the release hardly distinguishes."""

    @abstractmethod
    def threats(self) -> Iterator[str]:
        """Yield who is trusted, and what happens otherwise."""

    @abstractmethod
    def assumptions(self) -> Iterator[tuple[str, str]]:
        """Yield the key and the sentence of each assumption."""

    @abstractmethod
    def respondents(self) -> Iterator[str]:
        """Yield the information for respondents."""

    @abstractmethod
    def answered(self, key: str) -> tuple[str, Bound | None]:
        """Return the answer to one of the questions on anonymisation, with its figure."""

    @abstractmethod
    def unprotected(self) -> Iterator[str]:
        """Yield what the claim does not cover, in addition to what no claim covers."""

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield who wrote the page, when, and from which specification."""
        if self.names.author:
            yield "Author", self.names.author
        yield "Date", f"{today()}, by hushuffle {__version__}"
        yield "Specification, SHA-256", digest(self.written)

    def claimed(self, central: Bound, promise: str) -> str:
        """Return the claim of a central epsilon, which ends with its meaning."""
        epsilon = number(central.upper, up=True)
        return (
            f"The release is (epsilon, delta)-differentially private with epsilon = {epsilon} and delta = "
            f"{self.delta:g}: {promise}"
        )

    def promise(self, seen: str, changes: str) -> str:
        """Return the meaning of a central epsilon."""
        return (
            f"except with probability {self.delta:g}, seeing {seen} changes the odds of any conclusion about one "
            f"person {changes}, whatever else is known"
        )

    def analyst(self, answers: str) -> str:
        """Return that the analyst is not trusted; an adversary may know all other answers."""
        analyst = f"The analyst ({self.names.analyst})" if self.names.analyst else "The analyst"
        return f"{analyst} is not trusted: the claim holds even for an adversary who knows all other {answers}."


class ReportPage(ClaimPage):
    """The first page about reports of people, whose figures are the findings."""

    def __init__(
        self,
        specification: Specification,
        population: Population,
        reveals: Reveals,
        findings: Sequence[Finding],
        unanswered: Sequence[Unanswered],
        written: str,
    ) -> None:
        super().__init__(specification.statement, specification.targets.delta, written)
        self.specification, self.population, self.reveals = specification, population, reveals
        self.findings, self.missing, self.exposure = findings, unanswered, Exposure.of(specification)
        figures = {finding.question: finding.bound for finding in findings}
        self.central, self.local = figures.get("central-dp"), figures.get("local-dp")
        self.of_columns = population.label_of == "column"

    def claim(self) -> str:
        central, exposure = self.central, self.exposure
        if central is None:
            return "No guarantee is stated: no central epsilon can be computed for this mechanism."
        if math.isinf(central.upper):
            return "No differential privacy: the release can show a person's answer as it is."
        times = factor(central.upper)
        covered = "" if exposure.alone else f" The claim covers {exposure.words}."
        promised = "this is no protection in practice, because a person's answers can be readable"
        if times:
            promised = self.promise("it", f"by at most {times}")
        return self.claimed(central, f"{promised}.{covered}")

    def unit(self) -> str:
        population, exposure = self.population, self.exposure
        again = f", in all {exposure.rounds:,} rounds" if exposure.rounds > 1 else ""
        if self.of_columns:
            of_data = "; which values are missing is public. Each row of data counts as one person."
            return (
                f"One person, whose values in all {len(population.labels):,} columns are replaced by any others{again}"
                f"{'.' if self.specification.population.files is None else of_data}"
            )
        if population.label_of != "value":
            return "One person is added to the audiences or removed from them."
        if population.reports_per_person > 1:
            return (
                f"One person, all of whose reports, {population.reports_per_person:,} at most{again}, are replaced by "
                f"any others; how many each person gives, and the number of reports, {population.n:,}, are public."
            )
        by_row = population.people is None and population.counts is not None
        row = " Each row of data counts as one person." if by_row else ""
        return (
            f"One person, whose {population.label_of} is replaced by any other{again}; the number of people, "
            f"{population.n:,}, is public.{exposure.public}{row}"
        )

    def threats(self) -> Iterator[str]:
        reveals, local = self.reveals, self.local
        if self.central is not None:
            yield self.analyst("answers")
        if reveals is Reveals.SENDERS:
            yield "There is no shuffler: reports are seen with their senders."
        elif reveals is Reveals.SUMS:
            who = self.run or " (name them in [statement])"
            yield (
                f"The servers that add reports up{who} are trusted not to combine their secret shares: a single server "
                "learns nothing about a report."
            )
        else:
            hidden = "the order of release" if reveals is Reveals.NOISY_ORDER else "who sent which report"
            yield f"{self.shuffler} is trusted to hide {hidden}. It sees every report as the device sent it."
            trusted_with = self.specification.shuffler.declared().trusted_with
            if trusted_with:
                yield trusted_with
        if local is not None and reveals is not Reveals.SENDERS:
            times = factor(local.upper)
            left = "answers are practically readable"
            left = f"the noise on the device limits the change of odds to {times}" if times else left
            left = "nothing protects the answers" if math.isinf(local.upper) else left
            where = (
                "all servers collude" if reveals is Reveals.SUMS else "the shuffler fails, or colludes with the analyst"
            )
            yield f"If {where}, {left}."
        yield (
            "People may collude with the analyst: each of them reduces the number of people among whom a report hides."
        )

    def assumptions(self) -> Iterator[tuple[str, str]]:
        reveals, exposure, sentences = self.reveals, self.exposure, dict(_ASSUMPTIONS)
        if self.of_columns:
            sentences["one_answer"] = (
                "Each person sends one report for each column in a round. A person who sends more is protected less."
            )
        if exposure.reports > 1:
            sentences["one_answer"] = (
                f"No person sends more than {exposure.reports:,} reports in a round, even under several names."
            )
        if exposure.rounds > 1:
            sentences["no_repeats"] = f"No person is asked the same question more than {exposure.rounds:,} times."
        for key, sentence in (*exposure.assumed(self.population.n), *self.specification.shuffler.assumed.items()):
            sentences[key] += sentence
        if reveals is Reveals.SUMS:
            sentences["shuffler"] = "At least one of the servers that add reports up does not collude with the others."
        for key, sentence in sentences.items():
            if key != "shuffler" or reveals is not Reveals.SENDERS:
                yield key, sentence

    def respondents(self) -> Iterator[str]:
        population, reveals, exposure = self.population, self.reveals, self.exposure
        central, local = self.central, self.local
        if population.label_of not in ("value", "column"):
            return
        if local is None or math.isinf(local.upper):
            yield "Your device sends your answer as it is."
        else:
            alone = exposure.alone and not self.of_columns
            sent = "your message were" if alone else "everything that you send were"
            what = "each of your answers" if self.of_columns else "your answer"
            yield f"Your device changes {what} at random before it sends it."
            yield from exposure.stored
            times = factor(local.upper)
            yield (
                f"Even if {sent} read with your name on it, it would change the odds of any conclusion about you by at "
                f"most {times}."
                if times
                else f"If {sent} read with your name on it, your answers would be practically readable."
            )
        if reveals is Reveals.SUMS:
            yield f"Servers{self.run} add up {_messages(population)}; none of them can read yours alone."
        elif reveals is not Reveals.SENDERS:
            yield f"A shuffler{self.run} removes the names and mixes {_messages(population)}."
        if central is not None and (times := factor(central.upper)):
            yield (
                f"What is released changes the odds of any conclusion about you by at most {times}, except with a "
                f"probability of {chance(self.delta)}, even for an observer who knows all other answers."
            )
        elif central is not None:
            yield "Your answers may be practically readable from what is released."
        if not exposure.alone:
            yield f"This covers {exposure.words}."
        yield TAKING_PART

    def answered(self, key: str) -> tuple[str, Bound | None]:
        names, unanswered = _ANSWERED[key], self.missing
        rows = [finding for finding in self.findings if finding.question in names]
        if rows and not any(row.question in names for row in unanswered):
            worst = max(rows, key=lambda row: row.figure.upper)
            return f"{worst.adversary}: {worst.sentence}" if len(names) > 1 else worst.sentence, worst.figure
        same = key == "linkability" and not rows and "re-identification" in {row.question for row in unanswered}
        why = "Not known, for the same reason." if same else _NOT_ANALYSED
        return next((row.reason for row in unanswered if row.question in names), why), None

    def unprotected(self) -> Iterator[str]:
        yield from self.exposure.shown
        questions = {finding.question for finding in self.findings}
        refused = {row.question for row in self.missing}
        if not {"vulnerability", "membership"} & (questions | refused):
            yield "How often an adversary can guess a person's answer: [adversaries] does not ask for it."
        if "re-identification" not in questions | refused:
            yield "How often an adversary can identify the sender of a report: [adversaries] does not ask for it."
        for row in self.missing:
            if row.question in _REFUSED:
                yield f"{row.topic}: {row.reason}"
        if self.specification.shuffler.reveals is Reveals.NOISY_ORDER and "order-privacy" not in questions:
            yield "What the order of release reveals about people: [adversaries] does not ask for it."

    def facts(self) -> Iterator[tuple[str, str]]:
        yield from super().facts()
        tables = tomllib.loads(self.written)
        fields = {key: value for key, value in tables["population"].items() if key not in ("data", "n")}
        columns = [{key: one[key] for key in one if key != "randomizer"} for one in tables.get("columns", [])]
        schema = [fields, self.population.labels, *columns]
        yield "Columns and categories, SHA-256", digest(json.dumps(schema, sort_keys=True, default=str))


def _messages(population: Population) -> str:
    if population.reports_per_person > 1:
        return f"all {population.n:,} messages, of which you send at most {population.reports_per_person:,}"
    return f"the messages of all {population.n:,} people"


def digest(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def today() -> str:
    """The date in UTC, or that of SOURCE_DATE_EPOCH, so that the page is reproducible."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)
    return moment.date().isoformat()
