"""The reports of a run over the network and of a rehearsal with phones: arrivals, answers, traffic, refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from hushuffle.model import Cell, Finding, Guarantee, HeatMap, Report, Table, Warned
from hushuffle.model.citation import LADJEL
from hushuffle.model.report import software
from hushuffle.network.phones.settings import ROLES
from hushuffle.network.run import NetworkRun
from hushuffle.plans import Plan, cluster_costs
from hushuffle.queries import PlanSpecification
from hushuffle.queries.analyse import concerns
from hushuffle.queries.parts import about_run, no_guarantee, settings
from hushuffle.questions.traffic import plan_guarantee

if TYPE_CHECKING:
    from hushuffle.network.phones.rehearse import PhoneRun

_QUESTION: Final = "What did the nodes of this plan compute together, and what did an observer of the connections see?"
_MOST_SHOWN: Final = 30
_ROLES: Final = ("source", "scrambler", "compute", "result")


def network_study(specification: PlanSpecification, run: NetworkRun) -> Report:
    compared = specification.query.compared(_steps(run), run.records)
    seen = {(sender, receiver): count for sender, receiver, count in run.trace.messages().iter_rows()}
    guarantee = plan_guarantee(run.plan, delta=specification.targets.delta) if run.plan.applies else None
    return Report(
        key="plan-network",
        title=specification.title or run.plan.name,
        question=_QUESTION,
        answers=(*_sentences(run), *compared.answers),
        settings=(("run", run.deployment.document.run), *settings(specification, run.records)),
        findings=() if guarantee is None else (promised(specification, run.plan, guarantee),),
        tables=(_coverage(run), *compared.tables, _nodes(run), _wire(run, seen)),
        charts=compared.charts,
        heat_maps=(*compared.heat_maps, *_graph(run, seen)),
        warnings=tuple(_concerns(specification, run, guarantee)),
        citations=(LADJEL.at("execution model"),),
        software=software("polars", "cryptography"),
    )


def _steps(run: NetworkRun) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = run.result[run.deployment.document.query.answers]
    return steps


def _sentences(run: NetworkRun) -> Iterator[str]:
    came, planned, lost = (sum(one[key] for one in _steps(run)) for key in ("sources", "planned", "lost_batches"))
    yield f"{came:,} of {planned:,} messages of sources came through to the result."
    if lost:
        yield f"{lost} of {sum(len(step.batches) for step in run.deployment.document.steps)} batches were lost."
    yield (
        f"An observer of the connections saw {run.trace.cells:,} messages, all of {run.deployment.document.message:,} "
        "bytes, but not their content."
    )


def promised(specification: PlanSpecification, plan: Plan, guarantee: Guarantee) -> Finding:
    """Return the plan's guarantee as a finding; it holds for the smallest batches that the plan allows."""
    seen = "the traffic and the noisy releases reveal" if plan.releases else "the traffic reveals"
    sentence = (
        f"This bounds what {seen} about one person, at delta = {specification.targets.delta:g}, even if batches "
        "are as small as the plan allows."
    )
    who, bound = "an observer of all messages", guarantee.epsilon
    proof = "composition of dominating pairs over all clusters that one item affects"
    return Finding(question="plan-dp", adversary=who, sentence=sentence, bound=bound, proof=proof)


def _coverage(run: NetworkRun) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for step, answer in zip(run.deployment.document.steps, _steps(run), strict=True):
        arrived = round(sum(answer["received"])) if "received" in answer and "noise" not in answer else "not told"
        rows.append((step.name, answer["planned"], answer["sources"], answer["lost_batches"], arrived))
    caption = (
        "Sources of batches that all compute nodes received completely, lost batches, and records that reached the "
        "node of their group (not reported for centroids and noisy results)."
    )
    columns = ("step", "sources planned", "came through", "batches lost", "records that arrived")
    return Table(key="coverage", title="Who came through", caption=caption, columns=columns, rows=tuple(rows))


def _nodes(run: NetworkRun) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for role in _ROLES:
        own = [one for name, one in run.counters.items() if name.split("-")[0] == role]
        if not own:
            continue
        states, reasons = Counter(str(one["state"]) for one in own), Counter[str]()
        for counts in own:
            reasons.update(counts["rejected"])
        ended, refused = (
            ", ".join(f"{count:,} {what}" for what, count in counter.most_common()) for counter in (states, reasons)
        )
        counted = (sum(one[key] for one in own) for key in ("accepted", "sent", "dummies"))
        rows.append((role, len(own), ended, *counted, refused or "none"))
    caption = "Final states of the nodes, messages that they accepted, sent and added, and refusals by reason."
    columns = ("role", "nodes", "ended", "taken", "sent", "of these dummies", "refused")
    return Table(key="nodes", title="The nodes", caption=caption, columns=columns, rows=tuple(rows))


def _wire(run: NetworkRun, counts: Mapping[tuple[str, str], int]) -> Table:
    """Return a table of planned and recorded messages between roles; `counts`: recorded, by sender and receiver."""
    seen: Counter[tuple[str, str]] = Counter()
    for (sender, receiver), count in counts.items():
        seen[sender.split("-")[0], receiver.split("-")[0]] += count
    planned: Counter[tuple[str, str]] = Counter()
    for cluster in (one for one in run.plan.clusters if one.reads):
        costs = cluster_costs(cluster)
        if cluster.scrambler is None:
            planned["source", "compute"] += costs.messages
        else:
            planned["source", "scrambler"] += cluster.sources
            planned["scrambler", "compute"] += costs.messages - cluster.sources
    rows: list[tuple[Cell, ...]] = [
        (f"{start} to {end}", planned.get((start, end), "-"), seen[start, end]) for start, end in sorted(seen | planned)
    ]
    caption = "Messages between roles: the number in the plan, if it has one, and the number in the trace."
    title, columns = "Messages that an observer saw on the network", ("from and to", "planned", "seen")
    return Table(key="wire", title=title, caption=caption, columns=columns, rows=tuple(rows))


def _graph(run: NetworkRun, counts: Mapping[tuple[str, str], int]) -> Iterator[HeatMap]:
    """Yield a heat map of the recorded messages from each scrambler to each compute node in the first step."""
    step = run.deployment.document.step(1)
    if not step.scrambled:
        return
    scramblers = [batch.scrambler or "" for batch in step.batches][:_MOST_SHOWN]
    computes = step.computes[:_MOST_SHOWN]
    yield HeatMap(
        key="graph",
        title="Messages by scrambler and compute node",
        caption=f"The recorded messages of step {step.name}, which the privacy analysis describes.",
        x_label="compute node",
        y_label="scrambler",
        x=computes,
        y=tuple(scramblers),
        values=tuple(tuple(float(counts.get((one, target), 0)) for target in computes) for one in scramblers),
    )


def _concerns(specification: PlanSpecification, run: NetworkRun, guarantee: Guarantee | None) -> Iterator[Warned]:
    yield from no_guarantee(run.plan)
    yield from concerns(run.plan, guarantee)
    sentence = "All nodes ran on this machine, with keys that this machine generated: this run is only a rehearsal."
    advice = "To run the plan on several hosts, prepare it with `hushuffle plan run --hosts`."
    yield Warned(key="one-machine", sentence=sentence, advice=advice)
    for caution in run.result.get("cautions", ()):
        advice = "Nodes reject a batch whose counts are inconsistent, but they cannot detect forged messages."
        yield Warned(key="one-scrambler", sentence=caution, advice=advice)
    for name, why in islice(run.failures.items(), _MOST_SHOWN):
        yield Warned(key="node-failed", sentence=f"{name}: {why}", advice="Read the counters of lost messages.")
    if len(run.failures) > _MOST_SHOWN:
        more = f"{len(run.failures) - _MOST_SHOWN:,} more nodes failed."
        yield Warned(key="nodes-failed", sentence=more, advice="Read the counters of lost messages.")
    yield from about_run(specification, run.records)


def phone_study(specification: PlanSpecification, run: PhoneRun) -> Report:
    compared = specification.query.compared(run.answers, run.records)
    guarantee = plan_guarantee(run.plan, delta=specification.targets.delta)
    warnings = (*concerns(run.plan, guarantee), *_phone_concerns(specification, run))
    return Report(
        key="plan-phones",
        title=specification.title or run.plan.name,
        question="What did phones and services compute together, and did every message arrive?",
        answers=(*_phone_sentences(run), *compared.answers),
        settings=(("task", run.document.id.hex()), *settings(specification, run.records)),
        findings=(promised(specification, run.plan, guarantee),),
        tables=(_phone_coverage(run), *compared.tables, _services(run)),
        charts=compared.charts,
        heat_maps=compared.heat_maps,
        warnings=warnings,
        citations=(LADJEL.at("execution model"),),
        software=software("polars", "cryptography", "aiohttp"),
    )


def _phone_sentences(run: PhoneRun) -> Iterator[str]:
    came, planned = (sum(one[key] for one in run.answers) for key in ("sources", "planned"))
    yield f"{came:,} of {planned:,} messages of phones arrived at the result, each with a valid token."
    looked, there = run.passed
    yield f"{looked:,} phones looked for their entries in the lists of the targets; {there:,} entries are there."
    size = len(run.document.content)
    yield f"The task document has {size:,} bytes; every message of a phone had {run.document.sealed_request:,}."


def _phone_coverage(run: PhoneRun) -> Table:
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


_COUNTED: Final = ("messages", "repeated", "dummies", "batches released", "batches received", "tokens")


def _services(run: PhoneRun) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for role in ROLES:
        own, total = [counters for name, counters in run.counters.items() if name.split("-")[0] == role], Counter[str]()
        for counts in own:
            total.update(counts)
        refused = {key.removeprefix("refused "): total[key] for key in total if key.startswith("refused ")}
        reasons = [f"{count:,} {reason}" for reason, count in refused.items()]
        rows.append((role, len(own), *(total[key] for key in _COUNTED), ", ".join(reasons) or "none"))
    caption = "Counts: stored messages, repeated messages, generated dummies, batches, tokens, refusals."
    columns = ("role", "services", *_COUNTED, "refused")
    return Table(key="services", title="The services", caption=caption, columns=columns, rows=tuple(rows))


def _phone_concerns(specification: PlanSpecification, run: PhoneRun) -> Iterator[Warned]:
    what = "All services and phones ran on this machine, with keys that this machine generated"
    advice = "To run services on several hosts, prepare a task with `hushuffle plan run --phones --hosts`."
    yield Warned(key="one-machine", sentence=f"{what}: this run is only a rehearsal.", advice=advice)
    for caution in run.result.get("cautions", ()):
        yield Warned(key="scramblers", sentence=caution, advice="Let different parties run them.")
    for word, count in run.crowd.refused.items():
        sentence = f"{count:,} phones were refused: {word}."
        yield Warned(key="phones-refused", sentence=sentence, advice="Read the counters.")
    yield from about_run(specification, run.records)
