"""The first page of an assessment: a claim that can be defended, what it rests on, and what it does not cover."""

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
from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.odds import chance, factor
from hushuffle.assessment.translations import translations
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Anonymity, Assumption, Bound, Finding, Population, Scenario, Statement, Unanswered, number
from hushuffle.specification import Specification
from hushuffle.specification.statement import Responsible

_ASSUMPTIONS: Final = {
    "one_answer": "Everybody sends one report in a round. Of somebody who sends more, more is learned.",
    "no_repeats": "Nobody is asked the same again. What each further round costs is in the table of cases.",
    "participation": "That somebody takes part is no secret, and nobody's answer decides whether it is missing.",
    "devices": "Devices run the mechanism as it is described, with random numbers that nobody can guess.",
    "shuffler": "The shuffler does not tell who sent what, and does not work with those who read the release.",
}
_NOT_ANALYSED: Final = "Not analysed: the specification asks for no adversary who tries it."


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
    """Return the first page about a deployment from what was computed; nothing new is computed here.

    `written` is the whole effective specification where `specification` is that of one of several columns.
    """
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
        return "No guarantee is stated: it has no figure for this mechanism."
    if math.isinf(central.upper):
        return "No differential privacy: the release can show a person's answer as it is."
    times = factor(central.upper)
    promised = (
        f"except with probability {delta:g}, seeing it changes the odds of any conclusion about one person by at most "
        f"{times}, whatever else is known."
        if times
        else "that is no protection in practice, a person's answers can be readable."
    )
    return (
        f"The release is (epsilon, delta)-differentially private with epsilon = {number(central.upper, up=True)} and "
        f"delta = {delta:g}: {promised}{_covered(specification)}"
    )


def _covered(specification: Specification) -> str:
    """Return what the claim covers, where that is more than one report."""
    exposure = Exposure.of(specification)
    return "" if exposure.alone else f" That covers {exposure.words}."


def _unit(specification: Specification, population: Population) -> str:
    exposure = Exposure.of(specification)
    again = f", in all {exposure.rounds:,} rounds" if exposure.rounds > 1 else ""
    if population.label_of == "column":
        of_data = "; in which columns they are missing stays as it is. One row of data is taken for one person."
        return (
            f"One person, whose values in all {len(population.labels):,} columns are replaced by any others{again}"
            f"{'.' if specification.population.files is None else of_data}"
        )
    if population.label_of != "value":
        return "One person, who is in the audiences or not."
    if population.reports_per_person > 1:
        return (
            f"One person, all of whose reports, {population.reports_per_person:,} at most{again}, are replaced by any "
            f"others; how many each person gives, and the number of reports, {population.n:,}, are public."
        )
    row = (
        ""
        if population.people is not None or population.counts is None
        else " One row of data is taken for one person."
    )
    return (
        f"One person, whose {population.label_of} is replaced by any other{again}; the number of people, "
        f"{population.n:,}, is public.{_pattern(exposure)}{row}"
    )


def _pattern(exposure: Exposure) -> str:
    """Return what of one person's values is no secret where reports are kept."""
    if not exposure.memoised:
        return ""
    if exposure.changes == 0:
        return " In no round does it change: that it stays is public, too."
    return f" It {exposure.stays}; in which rounds, and in which it is an earlier one again, is public, too."


def _threats(
    specification: Specification, reveals: Reveals, central: Bound | None, local: Bound | None
) -> Iterator[str]:
    said = specification.statement
    reader = f"Whoever reads the release ({said.analyst})" if said.analyst else "Whoever reads the release"
    if central is not None:
        yield f"{reader} is not trusted: the claim holds even for somebody who knows everybody else's answer."
    if reveals is Reveals.SENDERS:
        yield "There is no shuffler: reports are seen with their senders."
    elif reveals is Reveals.SUMS:
        who = f", run by {said.shuffler}," if said.shuffler else " (say who runs them)"
        yield (
            f"The servers that add reports up{who} are trusted not to put what they hold together: each of them alone "
            "sees nothing of a report."
        )
    else:
        who = f"The shuffler, run by {said.shuffler}," if said.shuffler else "The shuffler (say who runs it)"
        kept = "the order of release" if reveals is Reveals.NOISY_ORDER else "who sent what"
        yield f"{who} is trusted to hide {kept}. It sees every report as the device sent it."
        if specification.shuffler.trusted_with:
            yield specification.shuffler.trusted_with
    if local is not None and reveals is not Reveals.SENDERS:
        times = factor(local.upper)
        left = f"the noise of the device bounds it by {times}" if times else "answers are practically readable"
        left = "nothing protects" if math.isinf(local.upper) else left
        where = (
            "all servers work together" if reveals is Reveals.SUMS else "the shuffler fails, or works with the reader"
        )
        yield f"If {where}, {left}."
    yield "People may tell the reader their own reports: each who does makes the crowd smaller by one."


def _assumptions(specification: Specification, reveals: Reveals, population: Population) -> Iterator[Assumption]:
    vouched, exposure = specification.statement.vouched, Exposure.of(specification)
    sentences = dict(_ASSUMPTIONS)
    if population.label_of == "column":
        sentences["one_answer"] = "Everybody sends one report for each column in a round. Of more, more is learned."
    if exposure.reports > 1:
        sentences["one_answer"] = (
            f"Nobody sends more than {exposure.reports:,} reports in a round, under one name or several."
        )
    if exposure.rounds > 1:
        sentences["no_repeats"] = f"Nobody is asked the same more than {exposure.rounds:,} times."
    if exposure.memoised:
        sentences["participation"] += (
            f" All {population.n:,} people take part in every round, and their values stay: who comes, goes or changes "
            "hides nobody."
        )
        sentences["devices"] += " They keep each report, and send it whenever its value is theirs."
        sentences["no_repeats"] += f" Each person's value {exposure.stays}."
    for key, sentence in specification.shuffler.assumed.items():
        sentences[key] += sentence
    if reveals is Reveals.SUMS:
        sentences["shuffler"] = "At least one of the servers that add reports up does not work with the others."
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
                "It does so once, keeps the result and sends it every time. If your answer changes it draws another, "
                "and whoever compares two releases may notice."
            )
        times = factor(local.upper)
        yield (
            f"Even if {sent} read with your name on it, it would change the odds of any conclusion about you by at "
            f"most {times}."
            if times
            else f"If {sent} read with your name on it, your answers would be practically readable."
        )
    if reveals is Reveals.SUMS:
        run = f", run by {specification.statement.shuffler}," if specification.statement.shuffler else ""
        yield f"Servers{run} add up {_messages(population)}; none of them can read yours alone."
    elif reveals is not Reveals.SENDERS:
        run = f", run by {specification.statement.shuffler}," if specification.statement.shuffler else ""
        yield f"A shuffler{run} takes off the names and mixes {_messages(population)}."
    if central is not None and (times := factor(central.upper)):
        yield (
            f"What is released changes the odds of any conclusion about you by at most {times}, except with a "
            f"probability of {chance(specification.targets.delta)}, even for somebody who knows all other answers."
        )
    elif central is not None:
        yield "In what is released your answers may be practically readable."
    if not exposure.alone:
        yield f"That covers {exposure.words}."
    yield "That you take part is not hidden."


def _messages(population: Population) -> str:
    if population.reports_per_person > 1:
        return f"all {population.n:,} messages, of which you send {population.reports_per_person:,} at most"
    return f"the messages of all {population.n:,} people"


def _anonymity(findings: Sequence[Finding], unanswered: Sequence[Unanswered]) -> Iterator[Anonymity]:
    """Yield the three questions, each with the figure that answers it."""
    asked = (
        ("singling-out", "Singling out: can a report be traced to the person who sent it?", ("re-identification",)),
        ("linkability", "Linkability: how much does a report say about whose it is?", ("identity-information",)),
        ("inference", "Inference: can a person's answer be guessed from the release?", ("vulnerability", "membership")),
    )
    for key, question, names in asked:
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
    """Yield what nothing here covers, from what was not asked and what has no answer."""
    yield "What is true of the people as a whole: to publish it is the purpose."
    yield "That somebody takes part, when, and from which address: the traffic of this collection was not analysed."
    yield "Other collections about the same people: their epsilons add up with this one."
    if Exposure.of(specification).memoised:
        yield "That somebody's value changes, and in which rounds: reports are kept, so that two releases show it."
    questions = {finding.question for finding in findings}
    refused = {row.question for row in unanswered}
    if not {"vulnerability", "membership"} & (questions | refused):
        yield "How often a person's answer is guessed: no adversary who guesses was asked for."
    if "re-identification" not in questions | refused:
        yield "Whose report it is: no adversary who links was asked for."
    for row in unanswered:
        if row.question in _REFUSED:
            yield f"{row.topic}: {row.reason}"
    if specification.shuffler.reveals is Reveals.NOISY_ORDER and "order-privacy" not in questions:
        yield "What the order of release says: no adversary who reads it was asked for."


_REFUSED: Final = ("central-dp", "vulnerability", "membership", "re-identification", "identity-information")


def _facts(specification: Specification, population: Population, written: str) -> Iterator[tuple[str, str]]:
    if specification.statement.author:
        yield "Answers for it", specification.statement.author
    yield "Date", f"{today()}, by hushuffle {__version__}"
    yield "Specification, SHA-256", digest(written)
    tables = tomllib.loads(written)
    asked = {key: value for key, value in tables["population"].items() if key not in ("data", "n")}
    columns = [{key: one[key] for key in one if key != "randomizer"} for one in tables.get("columns", [])]
    schema = [asked, population.labels, *columns]
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


def responsible(said: Responsible) -> tuple[tuple[str, str], ...]:
    """Return who is responsible, by name; "" where nobody wrote it."""
    return tuple((name, getattr(said, key) or "") for key, name in _RESPONSIBLE.items())


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def today() -> str:
    """Return the date in UTC; that of SOURCE_DATE_EPOCH where it is set, so that a page can be made again."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)
    return moment.date().isoformat()
