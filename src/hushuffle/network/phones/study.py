"""The report of a rehearsal with phones: arrivals, answers, and refusals by services."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hushuffle.model import Cell, Report, Table, Warned
from hushuffle.model.citation import LADJEL
from hushuffle.model.report import software
from hushuffle.network.phones.keys import ROLES
from hushuffle.network.phones.rehearse import PhoneRun
from hushuffle.network.study import promised
from hushuffle.queries import PlanSpecification
from hushuffle.queries.analyse import concerns
from hushuffle.queries.parts import about_run, settings
from hushuffle.questions.traffic import plan_guarantee


def phone_study(specification: PlanSpecification, run: PhoneRun) -> Report:
    compared = specification.query.compared(run.answers, run.records)
    guarantee = plan_guarantee(run.plan, delta=specification.targets.delta)
    warnings = (*concerns(run.plan, guarantee), *_concerns(specification, run))
    return Report(
        key="plan-phones",
        title=specification.title or run.plan.name,
        question="What did phones and services compute together, and did every message arrive?",
        answers=(*_sentences(run), *compared.answers),
        settings=(("task", run.document.id.hex()), *settings(specification, run.records)),
        findings=(promised(specification, run.plan, guarantee),),
        tables=(_coverage(run), *compared.tables, _services(run)),
        charts=compared.charts,
        heat_maps=compared.heat_maps,
        warnings=warnings,
        citations=(LADJEL.at("execution model"),),
        software=software("polars", "cryptography", "aiohttp"),
    )


def _sentences(run: PhoneRun) -> Iterator[str]:
    came, planned = (sum(one[key] for one in run.answers) for key in ("sources", "planned"))
    yield f"{came:,} of {planned:,} messages of phones arrived at the result, each with a valid token."
    looked, there = run.passed
    yield f"{looked:,} phones looked for their entries in the lists of the targets; {there:,} entries are there."
    size = len(run.document.content)
    yield f"The task document has {size:,} bytes; every message of a phone had {run.document.sealed_request:,}."


def _coverage(run: PhoneRun) -> Table:
    rows: list[tuple[Cell, ...]] = []
    names = [step.name for step in run.document.steps]
    if run.document.round is not None:
        names = [f"assign {number}" for number in range(1, run.document.round.rounds + 1)]
    for name, answer in zip(names, run.answers, strict=True):
        arrived = round(sum(answer["received"])) if "received" in answer and "noise" not in answer else "not told"
        counts = (answer[key] for key in ("planned", "sources", "without_token", "lost_batches"))
        rows.append((name, *counts, arrived))
    caption = (
        "Numbers of expected phones, messages with a valid token, messages without one, lost batches, and records "
        "that reached the target of their group."
    )
    columns = ("step", "phones expected", "came through", "without a token", "batches lost", "records that arrived")
    return Table(key="coverage", title="Who came through", caption=caption, columns=columns, rows=tuple(rows))


_COLUMNS = ("messages", "repeated", "dummies", "batches released", "batches received", "tokens")


def _services(run: PhoneRun) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for role in ROLES:
        own, total = [counters for name, counters in run.counters.items() if name.split("-")[0] == role], Counter[str]()
        for counts in own:
            total.update(counts)
        refused = {key.removeprefix("refused "): total[key] for key in total if key.startswith("refused ")}
        reasons = [f"{count:,} {reason}" for reason, count in refused.items()]
        rows.append((role, len(own), *(total[key] for key in _COLUMNS), ", ".join(reasons) or "none"))
    caption = "Counts: stored messages, repeated messages, generated dummies, batches, tokens, refusals."
    columns = ("role", "services", *_COLUMNS, "refused")
    return Table(key="services", title="The services", caption=caption, columns=columns, rows=tuple(rows))


def _concerns(specification: PlanSpecification, run: PhoneRun) -> Iterator[Warned]:
    sentence = (
        "All services and phones ran on this machine, with keys that this machine generated: "
        "this run is only a rehearsal."
    )
    advice = "To run services on several hosts, prepare a task with `hushuffle plan run --phones --hosts`."
    yield Warned(key="one-machine", sentence=sentence, advice=advice)
    for caution in run.result.get("cautions", ()):
        yield Warned(key="scramblers", sentence=caution, advice="Let different parties run them.")
    for word, count in run.crowd.refused.items():
        sentence = f"{count:,} phones were refused: {word}."
        yield Warned(key="phones-refused", sentence=sentence, advice="Read the counters.")
    yield from about_run(specification, run.records)
