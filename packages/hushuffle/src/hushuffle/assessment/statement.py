"""Write the first page of an assessment: the claim, its assumptions, and what the claim does not cover."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from hushuffle._version import __version__
from hushuffle.assessment.exposure import Exposure, chance, factor
from hushuffle.assessment.translations import translations
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Anonymity, Assumption, Bound, Finding, Population, Scenario, Statement, Unanswered, number
from hushuffle.specification import Specification
from hushuffle.specification.specification import Responsible

_ASSUMPTIONS: Final = {
    "one_answer": "Each person sends one report in a round. A person who sends more is protected less.",
    "no_repeats": "No person is asked the same question again. The table of cases shows the cost of more rounds.",
    "participation": "Taking part is not secret, and whether an answer is missing does not depend on the answer.",
    "devices": "Devices run the mechanism as described, with unpredictable random numbers.",
    "shuffler": "The shuffler does not reveal who sent which report, and does not collude with the analyst.",
}
_NOT_ANALYSED: Final = "This was not analysed: the specification names no adversary with this aim."


def statement(
    specification: Specification,
    *,
    population: Population,
    reveals: Reveals,
    findings: Sequence[Finding],
    unanswered: Sequence[Unanswered],
    scenarios: tuple[Scenario, ...],
    written: str = "",
) -> Statement:
    """If `specification` describes one of several columns, `written` is that of all columns."""
    figures = {finding.question: finding.bound for finding in findings}
    central, local = figures.get("central-dp"), figures.get("local-dp")
    respondents = tuple(_respondents(population, reveals, specification, central, local))
    return Statement(
        claim=_claim(specification, central),
        unit=_unit(specification, population),
        threats=tuple(_threats(specification, reveals, central, local)),
        assumptions=tuple(_assumptions(specification, reveals, population)),
        scenarios=scenarios,
        respondents=respondents,
        anonymity=tuple(_anonymity(findings, unanswered)),
        unprotected=tuple(_unprotected(specification, findings, unanswered)),
        facts=tuple(_facts(specification, population, written or specification.effective())),
        responsible=responsible(specification.statement),
        translations=translations(
            specification,
            english=respondents,
            exposure=Exposure.of(specification),
            population=population,
            reveals=reveals,
            central=central,
            local=local,
        ),
    )


def _claim(specification: Specification, central: Bound | None) -> str:
    delta = specification.targets.delta
    if central is None:
        return "No guarantee is stated: no central epsilon can be computed for this mechanism."
    if math.isinf(central.upper):
        return "No differential privacy: the release can show a person's answer as it is."
    times, exposure = factor(central.upper), Exposure.of(specification)
    covered = "" if exposure.alone else f" That covers {exposure.words}."
    promised = (
        f"except with probability {delta:g}, seeing it changes the odds of any conclusion about one person by at most "
        f"{times}, whatever else is known."
        if times
        else "this is no protection in practice, because a person's answers can be readable."
    )
    return (
        f"The release is (epsilon, delta)-differentially private with epsilon = {number(central.upper, up=True)} and "
        f"delta = {delta:g}: {promised}{covered}"
    )


def _unit(specification: Specification, population: Population) -> str:
    exposure = Exposure.of(specification)
    again = f", in all {exposure.rounds:,} rounds" if exposure.rounds > 1 else ""
    if population.label_of == "column":
        of_data = "; which values are missing is public. Each row of data counts as one person."
        return (
            f"One person, whose values in all {len(population.labels):,} columns are replaced by any others{again}"
            f"{'.' if specification.population.files is None else of_data}"
        )
    if population.label_of != "value":
        return "One person is added to the audiences or removed from them."
    if population.reports_per_person > 1:
        return (
            f"One person, all of whose reports, {population.reports_per_person:,} at most{again}, are replaced by any "
            f"others; how many each person gives, and the number of reports, {population.n:,}, are public."
        )
    row = (
        "" if population.people is not None or population.counts is None else " Each row of data counts as one person."
    )
    return (
        f"One person, whose {population.label_of} is replaced by any other{again}; the number of people, "
        f"{population.n:,}, is public.{_pattern(exposure)}{row}"
    )


def _pattern(exposure: Exposure) -> str:
    """A sentence on facts about a person's value that are public because reports are memoized."""
    if not exposure.memoised:
        return ""
    if exposure.changes == 0:
        return " The value never changes, and this is public."
    return f" It {exposure.stays}; in which rounds, and in which it is an earlier one again, is public, too."


def _threats(
    specification: Specification, reveals: Reveals, central: Bound | None, local: Bound | None
) -> Iterator[str]:
    names = specification.statement
    analyst = f"The analyst ({names.analyst})" if names.analyst else "The analyst"
    if central is not None:
        yield f"{analyst} is not trusted: the claim holds even for an adversary who knows all other answers."
    if reveals is Reveals.SENDERS:
        yield "There is no shuffler: reports are seen with their senders."
    elif reveals is Reveals.SUMS:
        who = f", run by {names.shuffler}," if names.shuffler else " (name them in [statement])"
        yield (
            f"The servers that add reports up{who} are trusted not to combine their shares: a single server learns "
            "nothing about a report."
        )
    else:
        who = f"The shuffler, run by {names.shuffler}," if names.shuffler else "The shuffler (set statement.shuffler)"
        hidden = "the order of release" if reveals is Reveals.NOISY_ORDER else "who sent which report"
        yield f"{who} is trusted to hide {hidden}. It sees every report as the device sent it."
        if specification.shuffler.declared().trusted_with:
            yield specification.shuffler.declared().trusted_with
    if local is not None and reveals is not Reveals.SENDERS:
        times = factor(local.upper)
        left = "answers are practically readable"
        left = f"the noise on the device limits the change of odds to {times}" if times else left
        left = "nothing protects the answers" if math.isinf(local.upper) else left
        where = "all servers collude" if reveals is Reveals.SUMS else "the shuffler fails, or colludes with the analyst"
        yield f"If {where}, {left}."
    yield "People may collude with the analyst: each of them reduces the number of people among whom a report hides."


def _assumptions(specification: Specification, reveals: Reveals, population: Population) -> Iterator[Assumption]:
    vouched, exposure = specification.statement.vouched, Exposure.of(specification)
    sentences = dict(_ASSUMPTIONS)
    if population.label_of == "column":
        sentences["one_answer"] = (
            "Each person sends one report for each column in a round. A person who sends more is protected less."
        )
    if exposure.reports > 1:
        sentences["one_answer"] = (
            f"No person sends more than {exposure.reports:,} reports in a round, even under several names."
        )
    if exposure.rounds > 1:
        sentences["no_repeats"] = f"No person is asked the same question more than {exposure.rounds:,} times."
    if exposure.memoised:
        sentences["participation"] += (
            f" All {population.n:,} people take part in every round, and their values stay: people who join, leave or "
            "change their value do not protect others."
        )
        sentences["devices"] += (
            " They memoize one report for each value, and send the same report whenever the person has this value."
        )
        sentences["no_repeats"] += f" Each person's value {exposure.stays}."
    for key, sentence in specification.shuffler.assumed.items():
        sentences[key] += sentence
    if reveals is Reveals.SUMS:
        sentences["shuffler"] = "At least one of the servers that add reports up does not collude with the others."
    for key, sentence in sentences.items():
        if key != "shuffler" or reveals is not Reveals.SENDERS:
            yield Assumption(key=key, sentence=sentence, vouched=getattr(vouched, key) or "")


def _respondents(
    population: Population, reveals: Reveals, specification: Specification, central: Bound | None, local: Bound | None
) -> Iterator[str]:
    if population.label_of not in ("value", "column"):
        return
    exposure = Exposure.of(specification)
    if local is None or math.isinf(local.upper):
        yield "Your device sends your answer as it is."
    else:
        several = population.label_of == "column"
        alone = exposure.alone and not several
        sent = "your message were" if alone else "everything that you send were"
        what = "each of your answers" if several else "your answer"
        yield f"Your device changes {what} at random before it sends it."
        if exposure.memoised:
            yield (
                "It stores the result and sends it every time. If your answer changes, it draws a new result, and a "
                "comparison of two releases may reveal the change."
            )
        times = factor(local.upper)
        yield (
            f"Even if {sent} read with your name on it, it would change the odds of any conclusion about you by at "
            f"most {times}."
            if times
            else f"If {sent} read with your name on it, your answers would be practically readable."
        )
    run = f", run by {specification.statement.shuffler}," if specification.statement.shuffler else ""
    if reveals is Reveals.SUMS:
        yield f"Servers{run} add up {_messages(population)}; none of them can read yours alone."
    elif reveals is not Reveals.SENDERS:
        yield f"A shuffler{run} removes the names and mixes {_messages(population)}."
    if central is not None and (times := factor(central.upper)):
        yield (
            f"What is released changes the odds of any conclusion about you by at most {times}, except with a "
            f"probability of {chance(specification.targets.delta)}, even for an observer who knows all other answers."
        )
    elif central is not None:
        yield "Your answers may be practically readable from what is released."
    if not exposure.alone:
        yield f"That covers {exposure.words}."
    yield "The fact that you take part is not hidden."


def _messages(population: Population) -> str:
    if population.reports_per_person > 1:
        return f"all {population.n:,} messages, of which you send at most {population.reports_per_person:,}"
    return f"the messages of all {population.n:,} people"


def _anonymity(findings: Sequence[Finding], unanswered: Sequence[Unanswered]) -> Iterator[Anonymity]:
    """The three questions of European guidance on anonymisation, each with the figure that answers it."""
    questions = (
        ("singling-out", "Singling out: can a report be traced to the person who sent it?", ("re-identification",)),
        ("linkability", "Linkability: how much does a report reveal about its sender?", ("identity-information",)),
        ("inference", "Inference: can a person's answer be guessed from the release?", ("vulnerability", "membership")),
    )
    for key, question, names in questions:
        rows = [finding for finding in findings if finding.question in names]
        same = key == "linkability" and not rows and "re-identification" in {row.question for row in unanswered}
        why = "Not known, for the same reason." if same else _NOT_ANALYSED
        reason = next((row.reason for row in unanswered if row.question in names), why)
        if rows and not any(row.question in names for row in unanswered):
            worst = max(rows, key=lambda row: row.figure.upper)
            sentence, bound = f"{worst.adversary}: {worst.sentence}" if len(names) > 1 else worst.sentence, worst.figure
        else:
            sentence, bound = reason, None
        yield Anonymity(key=key, question=question, sentence=sentence, bound=bound)


def _unprotected(
    specification: Specification, findings: Sequence[Finding], unanswered: Sequence[Unanswered]
) -> Iterator[str]:
    """What the statement does not cover: questions that were not asked or have no answer."""
    yield "Facts about the population as a whole: their publication is the purpose of the collection."
    yield "Whether a person takes part, when, and from which address: network traffic was not analysed."
    yield "Other collections about the same people: their epsilons add up with this one."
    if Exposure.of(specification).memoised:
        yield "Whether a person's value changes, and when: reports are memoized, so two releases show it."
    questions = {finding.question for finding in findings}
    refused = {row.question for row in unanswered}
    if not {"vulnerability", "membership"} & (questions | refused):
        yield "How often an adversary can guess a person's answer: [adversaries] does not ask for it."
    if "re-identification" not in questions | refused:
        yield "How often an adversary can identify the sender of a report: [adversaries] does not ask for it."
    for row in unanswered:
        if row.question in _REFUSED:
            yield f"{row.topic}: {row.reason}"
    if specification.shuffler.reveals is Reveals.NOISY_ORDER and "order-privacy" not in questions:
        yield "What the order of release reveals about people: [adversaries] does not ask for it."


_REFUSED: Final = ("central-dp", "vulnerability", "membership", "re-identification", "identity-information")


def _facts(specification: Specification, population: Population, written: str) -> Iterator[tuple[str, str]]:
    if specification.statement.author:
        yield "Author", specification.statement.author
    yield "Date", f"{today()}, by hushuffle {__version__}"
    yield "Specification, SHA-256", digest(written)
    tables = tomllib.loads(written)
    fields = {key: value for key, value in tables["population"].items() if key not in ("data", "n")}
    columns = [{key: one[key] for key in one if key != "randomizer"} for one in tables.get("columns", [])]
    schema = [fields, population.labels, *columns]
    yield "Columns and categories, SHA-256", digest(json.dumps(schema, sort_keys=True, default=str))


_RESPONSIBLE: Final = {
    "controller": "Controller",
    "purpose": "Purpose",
    "legal_basis": "Legal basis",
    "retention": "Retention",
    "contact": "Contact",
    "impact_assessment": "Impact assessment",
    "approved_by": "Approved by",
    "approved_on": "Approved on",
}


def responsible(names: Responsible) -> tuple[tuple[str, str], ...]:
    """Pairs (role, name) of the people responsible for the deployment; the name is "" if it is not given."""
    return tuple((name, getattr(names, key) or "") for key, name in _RESPONSIBLE.items())


def digest(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def today() -> str:
    """The date in UTC, or that of SOURCE_DATE_EPOCH, so that the page is reproducible."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)
    return moment.date().isoformat()
