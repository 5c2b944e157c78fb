"""The report of a run with phones and services: arrivals, answers, recorded traffic, refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hushuffle.model import Cell, Finding, Guarantee, HeatMap, Report, Table, Warned
from hushuffle.model.citation import LADJEL
from hushuffle.model.report import software
from hushuffle.plans import Cluster, Plan
from hushuffle.questions.traffic import plan_guarantee
from hushuffle_network.queries import PlanSpecification
from hushuffle_network.queries.analyse import concerns
from hushuffle_network.queries.parts import about_run, settings
from hushuffle_network.recorder import PHONES
from hushuffle_network.settings import ROLES

if TYPE_CHECKING:
    from hushuffle_network.rehearse import PhoneRun

_QUESTION: Final = "What did phones and services compute together, and what did an observer of the connections see?"
_MOST_SHOWN: Final = 30


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


def phone_study(specification: PlanSpecification, run: PhoneRun) -> Report:
    compared = specification.query.compared(run.answers, run.records)
    guarantee = plan_guarantee(run.plan, delta=specification.targets.delta)
    warnings = (*concerns(run.plan, guarantee), *_phone_concerns(specification, run))
    return Report(
        key="plan-phones",
        title=specification.title or run.plan.name,
        question=_QUESTION,
        answers=(*_phone_sentences(run), *compared.answers),
        settings=(("task", run.document.id.hex()), *settings(specification, run.records)),
        findings=(promised(specification, run.plan, guarantee),),
        tables=(_phone_coverage(run), *compared.tables, _services(run), _wire(run)),
        charts=compared.charts,
        heat_maps=(*compared.heat_maps, *_graph(run)),
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
    for number, cluster in _steps(run):
        batches = _batches(run, number)
        if cluster.scrambler is not None and batches:
            smallest, least = min(one.total() for one in batches.values()), _least(cluster)
            yield (
                f"In {cluster.name}, an observer saw {len(batches):,} batches with {smallest:,} messages or more; the "
                f"guarantee holds for {least:,} or more."
            )


def _steps(run: PhoneRun) -> Iterator[tuple[int, Cluster]]:
    yield from enumerate((one for one in run.plan.clusters if one.reads), 1)


def _batches(run: PhoneRun, step: int) -> dict[int, Counter[str]]:
    """Return how many messages the targets of a step received in each recorded batch."""
    return run.trace.received(step, {run.document.chain[-1].name})


def _least(cluster: Cluster) -> int:
    """Return the number of messages in the smallest batch for which a plan with scramblers states its guarantee."""
    assert cluster.scrambler is not None
    return (cluster.min_batch or 0) + cluster.cascade * cluster.scrambler.dummies


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


def _wire(run: PhoneRun) -> Table:
    """Return a table of planned and recorded messages between roles."""
    seen, planned = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for sender, receiver, step, _, _, messages in run.trace.rows:
        if step is not None or sender in (PHONES, "relay"):
            seen[_role(sender), _role(receiver)] += messages
    for _, cluster in _steps(run):
        dummies = 0 if cluster.scrambler is None else cluster.scrambler.dummies * cluster.scramblers
        planned[PHONES, "relay"] += cluster.sources
        planned["relay", "scrambler"] += cluster.sources
        for hop in range(1, cluster.cascade):
            planned["scrambler", "scrambler"] += cluster.sources + hop * dummies
        planned["scrambler", "target"] += cluster.sources + cluster.cascade * dummies
    rows: list[tuple[Cell, ...]] = [
        (f"{start} to {end}", planned[start, end], seen[start, end]) for start, end in sorted(seen | planned)
    ]
    caption = "Messages, dummies included: the number in the plan, and the number in the recorded trace."
    columns = ("from and to", "planned", "seen")
    return Table(key="wire", title="Messages that an observer saw", caption=caption, columns=columns, rows=tuple(rows))


def _role(name: str) -> str:
    return name.split("-", maxsplit=1)[0]


def _graph(run: PhoneRun) -> Iterator[HeatMap]:
    """Yield a heat map of the recorded messages of each batch of the first step to each target."""
    batches = dict(sorted(_batches(run, 1).items())[:_MOST_SHOWN])
    targets = [one.name for one in run.document.steps[0].targets][:_MOST_SHOWN]
    if batches:
        yield HeatMap(
            key="graph",
            title="Messages by batch and target",
            caption=f"The recorded messages of {run.document.steps[0].name}, which the privacy analysis describes.",
            x_label="target",
            y_label="batch",
            x=tuple(targets),
            y=tuple(f"{batch}" for batch in batches),
            values=tuple(tuple(float(one[target]) for target in targets) for one in batches.values()),
        )


def _phone_concerns(specification: PlanSpecification, run: PhoneRun) -> Iterator[Warned]:
    what = "All services and phones ran on this machine, with keys that this machine generated"
    advice = "To run services on several hosts, prepare a task with `hushuffle plan run --hosts`."
    yield Warned(key="one-machine", sentence=f"{what}: this run is only a rehearsal.", advice=advice)
    for caution in run.result.get("cautions", ()):
        yield Warned(key="scramblers", sentence=caution, advice="Let different parties run them.")
    for number, cluster in _steps(run):
        small = {batch: one.total() for batch, one in _batches(run, number).items()}
        if cluster.scrambler is not None and small and min(small.values()) < _least(cluster):
            smallest, least = min(small.values()), _least(cluster)
            sentence = f"In {cluster.name}, a batch had {smallest:,} messages, fewer than {least:,}."
            yield Warned(key="small-batch", sentence=sentence, advice="The guarantee does not hold for this batch.")
    for word, count in run.crowd.refused.items():
        sentence = f"{count:,} phones were refused: {word}."
        yield Warned(key="phones-refused", sentence=sentence, advice="Read the counters.")
    yield from about_run(specification, run.records)
