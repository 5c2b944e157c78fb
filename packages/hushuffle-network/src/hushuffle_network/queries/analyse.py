"""Analyse an execution plan: its guarantee against a network observer, its costs, and the effect of other settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hushuffle import _checks
from hushuffle.model import Bound, Cell, Chart, Finding, Guarantee, Progress, Report, Table, Target, Warned, number
from hushuffle.model.bound import percent
from hushuffle.model.citation import LADJEL
from hushuffle.model.report import software
from hushuffle.plans import Cluster, Plan, cluster_costs, plan_costs
from hushuffle.questions import traffic
from hushuffle.questions.dp.central import LARGE_EPSILON
from hushuffle_network.queries.parts import about_ranges, about_records, diagram, refusal, settings, trade_offs
from hushuffle_network.queries.query import Records
from hushuffle_network.queries.specification import Network, PlanSpecification

_WATCHER: Final = "Anyone who observes all traffic"
_HOLDER: Final = "An adversary who observes all traffic and controls all scramblers of a cascade except one"
_QUESTION: Final = "What does an observer of all (encrypted) messages of the plan learn about one person?"


@dataclass(frozen=True, kw_only=True)
class PlanAnalysis:
    """The study of a plan, and the reason why there is no guarantee (empty if there is one)."""

    study: Report
    refusals: tuple[str, ...]


def analyse_plan(
    specification: PlanSpecification,
    *,
    base_folder: Path = Path(),
    people: int | None = None,
    progress: Progress | None = None,
) -> PlanAnalysis:
    """Return a plan's guarantee, for each cluster and in total, its costs, and charts of the effect of its settings.

    The number of records matters, but not their values. A plan without a guarantee is also drawn, and its costs are
    computed, with the reason for the missing guarantee.

    Args:
        specification: as `hushuffle.specification.load_plan` reads it.
        base_folder: the folder to which relative paths of data refer.
        people: the number of people who take part; if it is given, no data are read.
        progress: called with a description of the present work.

    Raises:
        DataError, MissingDependencyError: the data cannot be used.
        SpecificationError: the specification does not fit the number of people.

    >>> from hushuffle_network.queries import parse_plan
    >>> spec = parse_plan('''
    ...     traffic = { sigma = 0.2 }
    ...     targets = { delta = 0.0, epsilon = 10.0 }
    ...     [query]
    ...     kind = "aggregate"
    ...     generated = { people = 1000 }
    ...     columns = { age = 20, bmi = 20 }
    ...     grouping_sets = [["age"], ["bmi"]]
    ...     partitions = 20
    ... ''')
    >>> analysis = analyse_plan(spec)
    >>> print(analysis.study.findings[0].bound, analysis.study.met)
    8.789 nats (exact) True
    """
    tell = progress or (lambda _what, _share: None)
    tell("counting the people", 0.0)
    if people is None:
        records = specification.query.counted(base_folder)
    else:
        people = _checks.integer("people", people, low=1)
        records = Records(n=people, source=f"no data were read: {people:,} people take part (--people)")
    plan = specification.plan(records.n)
    tell("the guarantee of every cluster", 0.05)
    delta, refusals = specification.targets.delta, plan.refusals()
    clusters = traffic.cluster_guarantees(plan, delta=delta)
    guarantee, summed, apart = None, None, None
    held: tuple[traffic.Collusion, ...] = ()
    charts: tuple[Chart, ...] = ()
    if not refusals:
        tell("the guarantee of the plan", 0.1)
        guarantee, summed = traffic.plan_guarantee(plan, delta=delta), traffic.theorem_one(plan, delta=delta)
        apart, held = traffic.traffic_and_releases(plan, delta=delta), traffic.collusions(plan, delta=delta)
        charts = trade_offs(specification, plan, people=records.n, total=guarantee.epsilon, tell=tell)
    targets = tuple(_targets(specification, plan, records.n, guarantee, held))
    watcher = _HOLDER if any(cluster.cascade > 1 for cluster in plan.clusters) else _WATCHER
    certified = all(target.met for target in targets if target.key == "epsilon")
    study = Report(
        key="plan",
        title=specification.title or plan.name,
        question=_QUESTION,
        answers=(*_answers(plan, guarantee), *_cascade_answers(held)),
        settings=settings(specification, records),
        targets=targets,
        findings=() if guarantee is None or summed is None else _findings(watcher, guarantee, summed, apart),
        tables=(_guarantees(plan, clusters, guarantee, summed), *_cascade_tables(held), _costs(plan), *_releases(plan)),
        charts=charts,
        diagrams=(diagram(specification, plan, records.n),),
        warnings=(*concerns(plan, guarantee, met=certified), *about_ranges(specification), *about_records(records)),
        citations=(LADJEL.at("execution plans, corrected"),),
        software=software("polars", "cryptography"),
    )
    tell("done", 1.0)
    return PlanAnalysis(study=study, refusals=refusals)


def _targets(
    specification: PlanSpecification,
    plan: Plan,
    people: int,
    guarantee: Guarantee | None,
    held: tuple[traffic.Collusion, ...],
) -> Iterator[Target]:
    """Yield each target of the plan with the value that the plan reaches."""
    targets, network = specification.targets, specification.network or Network()
    if targets.epsilon is not None:
        got, reason = (None, refusal(plan)) if guarantee is None else (guarantee.epsilon, "")
        topic = f"Epsilon of {_seen(plan)}, at delta = {targets.delta:g}{_passive(held, guarantee)}"
        yield Target(key="epsilon", topic=topic, rule="at most", asked=targets.epsilon, got=got, reason=reason)
    if targets.people is not None:
        got = Bound.exact(float(people), unit="people")
        yield Target(key="people", topic="People", rule="at least", asked=float(targets.people), got=got)
    if targets.tuples is not None:
        tuples = sum(cluster.sources for cluster in plan.clusters if not cluster.fixed)
        got = Bound.exact(plan_costs(plan).used / tuples, unit="")
        topic = "Share of records that reach their targets"
        yield Target(key="tuples", topic=topic, rule="at least", asked=targets.tuples, got=got)
    if targets.seconds is not None:
        steps = sum(bool(cluster.reads) for cluster in plan.clusters)
        longest = network.longest(steps if specification.query.task_type.rounds else 1)
        got = Bound.exact(longest, unit="seconds")
        topic = "Seconds until there is a result"
        yield Target(key="seconds", topic=topic, rule="at most", asked=targets.seconds, got=got)


def _answers(plan: Plan, guarantee: Guarantee | None) -> Iterator[str]:
    if guarantee is None:
        yield f"No guarantee can be stated. {refusal(plan)}"
    else:
        if math.isinf(guarantee.upper):
            yield "No protection: the traffic reveals a person's groups to an observer."
        else:
            delta = f" (plus delta = {guarantee.delta:g})" if guarantee.delta else ""
            times = number(math.exp(guarantee.upper), up=True)
            yield (
                f"Whatever an observer knows, no conclusion from {_seen(plan)} about one person is more than {times} "
                f"times as likely as with other data of this person{delta}."
            )
        if plan.releases:
            yield "This epsilon includes the noisy releases. The result is computed from them, so it adds nothing."
        else:
            yield "This epsilon covers only the traffic. What the result reveals about people is additional."
    costs = plan_costs(plan)
    tuples = sum(cluster.sources for cluster in plan.clusters if not cluster.fixed)
    yield (
        f"The plan sends {costs.messages:,} messages, {costs.overhead:,} of them for protection; about "
        f"{costs.used:,.0f} of {tuples:,} records reach their targets ({percent(costs.used / tuples)})."
    )


def _seen(plan: Plan) -> str:
    return "the traffic and the noisy releases" if plan.releases else "the traffic"


def _findings(
    watcher: str, guarantee: Guarantee, summed: Bound, apart: tuple[Bound, Bound] | None
) -> tuple[Finding, ...]:
    composed = "composition of dominating pairs over all clusters that one item affects"
    whole = "The certified guarantee: composition of all clusters and releases that one person affects."
    simple = "The sum of all epsilons, each at its share of delta. It is usually larger than the composition."
    rows = [
        ("plan-dp", watcher, whole, guarantee.epsilon, composed),
        ("plan-dp-simple", watcher, simple, summed, "sum over all clusters that one item affects"),
    ]
    if apart is not None:
        silent, reader = f"{watcher} and never sees the result", "Anyone who sees the result but no traffic"
        without_results = "The guarantee of the traffic without the released results."
        results = "The guarantee of the released results, with their noise, without the traffic."
        rows += [
            ("plan-dp-traffic", silent, without_results, apart[0], composed),
            ("plan-dp-results", reader, results, apart[1], "composition of the releases that one item affects"),
        ]
    return tuple(
        Finding(question=question, adversary=adversary, sentence=sentence, bound=bound, proof=proof)
        for question, adversary, sentence, bound, proof in rows
    )


def _guarantees(
    plan: Plan, clusters: tuple[tuple[Cluster, Bound], ...], guarantee: Guarantee | None, summed: Bound | None
) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (cluster.name, cluster.smallest, cluster.targets, plan.moves(cluster), bound) for cluster, bound in clusters
    ]
    if guarantee is not None and summed is not None:
        rows.append(("the whole plan", "", "", "", guarantee.epsilon))
        rows.append(("simple sum (upper bound)", "", "", "", summed))
    caption = (
        "Cluster: messages of a set of sources to common targets. Hidden among: sources of its smallest batch. Moves: "
        "messages whose target depends on one person. Epsilon: of one such message, at the same delta."
    )
    if guarantee is None:
        caption += " No guarantee of the whole plan follows."
    if any(plan.coins_known(cluster) for cluster, _ in clusters):
        caption += (
            " If contents are released, the guarantee of the whole plan uses a larger epsilon for each cluster, which "
            "holds even if the randomness of the other sources is known."
        )
    title = "Guarantee of every cluster, and in total" if guarantee else "Epsilon of one message of every cluster"
    columns = ("cluster", "hidden among", "targets", "moves", "epsilon")
    return Table(key="guarantees", title=title, caption=caption, columns=columns, rows=tuple(rows))


def _costs(plan: Plan) -> Table:
    every = [(one, cluster_costs(one, only_honest=plan.coins_known(one))) for one in plan.clusters]
    fixed = [costs for cluster, costs in every if cluster.fixed]
    rows: list[tuple[Cell, ...]] = []
    for cluster, costs in every:
        if not cluster.fixed:
            s, used = cluster.sources, costs.used
            more: Cell = math.ceil(s * (s / used) * (1 - 1e-12)) - s if used else math.inf
            rows.append(
                (cluster.name, costs.messages, costs.overhead, costs.channels, costs.busiest, round(used), more)
            )
    sent, opened = sum(one.messages for one in fixed), sum(one.channels for one in fixed)
    rows.append(("fixed messages", sent, 0, opened, max(one.busiest for one in fixed), "", ""))
    total = plan_costs(plan)
    rows.append(("in all", total.messages, total.overhead, total.channels, total.busiest, round(total.used), ""))
    caption = (
        "Numbers of messages, messages for protection, channels, channels of the busiest node, records that reach "
        "their targets on average, and additional people that compensate for lost records. Fixed messages do not "
        "depend on the data."
    )
    columns = ("cluster", "messages", "added", "channels", "busiest", "used", "extra consents")
    return Table(key="costs", title="Costs", caption=caption, columns=columns, rows=tuple(rows))


def _releases(plan: Plan) -> Iterator[Table]:
    rows: list[tuple[Cell, ...]] = []
    for release in plan.releases:
        concentrated = None if release.rho is None else f"rho = {release.rho:.4g} (zCDP)"
        rows.append((release.name, release.start, concentrated or f"epsilon = {release.epsilon:.4g}"))
    if rows:
        caption = "Public values, and their privacy cost for one person, for any adversary."
        columns = ("release", "released by", "guarantee")
        yield Table(key="releases", title="Released with noise", caption=caption, columns=columns, rows=tuple(rows))


def concerns(plan: Plan, guarantee: Guarantee | None, *, met: bool | None = None) -> Iterator[Warned]:
    """Yield the warnings about a plan and its guarantee, the most severe first; `met`: whether the target is met."""
    for sentence in plan.assumptions:
        advice = "The guarantee needs this assumption: state it with epsilon, and verify it."
        yield Warned(key="assumption", sentence=sentence, advice=advice)
    if guarantee is not None and LARGE_EPSILON < guarantee.upper < math.inf:
        sentence = f"Epsilon may be {number(guarantee.upper, up=True)}, above {LARGE_EPSILON:g}: a weak guarantee."
        advice = (
            "Redirect more messages, let more sources share a scrambler, or let each person answer fewer grouping sets."
        )
        yield Warned(key="large-epsilon", sentence=sentence, advice=advice)
    if met is False and guarantee is not None:
        sentence = "targets.epsilon is missed: no certified epsilon is that small."
        advice = "Use more redirection, more dummies or larger batches: the charts show their effects."
        yield Warned(key="privacy-target-missed", sentence=sentence, advice=advice)
    full = [one for one in plan.clusters if one.scrambler is not None and one.scrambler.cap is None]
    if any(one.min_batch == one.smallest > 1 for one in full):
        sentence = "A scrambler releases nothing unless all sources of its smallest batch respond (min_batch)."
        advice = "One failed device or invalid message blocks its whole batch. Choose a smaller min_batch."
        yield Warned(key="no-one-may-be-missing", sentence=sentence, advice=advice)
    if not all(release.exact for release in plan.releases):
        sentence = (
            "The Gaussian or Laplace noise is drawn in floating point, but epsilon was computed for real numbers."
        )
        advice = "The last bits of a release may reveal more. Only a discrete sampler prevents this."
        yield Warned(key="floating-point", sentence=sentence, advice=advice)


def _cascade_answers(held: Sequence[traffic.Collusion]) -> Iterator[str]:
    """Yield sentences on epsilon against colluding scramblers; no sentence for a plan without scramblers."""
    if not held:
        return
    best, least, none = held[0], held[-2], held[-1]
    if best.honest > 1:
        yield (
            f"{best.honest} scramblers process every batch one after the other. The guarantee above holds if at least "
            f"one of them is honest. If all are honest, epsilon is {best.curious}."
        )
    held_by = "the other scramblers" if best.honest > 1 else "the issuer of tickets"
    yield (
        f"With one honest scrambler, epsilon is {least.active} if {held_by} can replace all other messages by forged "
        f"ones. Without an honest scrambler it is {none.curious}, as without any scrambler."
    )


def _passive(held: Sequence[traffic.Collusion], guarantee: Guarantee | None) -> str:
    """Return words for the adversary of a plan's guarantee, and the figure of active adversaries if it is larger."""
    if not held or guarantee is None:
        return ""
    longest, active = held[0].honest, held[-2].active.upper
    words = f" ({number(active, up=True)} nats against active ones, with 1 honest scrambler of {longest})"
    return f", against passive adversaries{words if active > guarantee.upper else ''}"


def _cascade_tables(held: Sequence[traffic.Collusion]) -> Iterator[Table]:
    """Yield the table of epsilons against colluding scramblers."""
    if held:
        caption = (
            "Epsilon of the whole plan against an adversary who observes all traffic and controls the other scramblers "
            "of every batch. It does not matter which scramblers are honest. Active adversaries replace the messages "
            "of other people by forged ones, with these scramblers or with the issuer of tickets. If honest scramblers "
            "come first and their batch consists of people, later scramblers and message carriers cannot do this: the "
            "passive figure then holds."
        )
        title = "Scramblers that collude with the observer"
        columns = ("honest scramblers", "passive adversary", "active adversary")
        rows = tuple((f"{one.honest} of {held[0].honest}", one.curious, one.active) for one in held)
        yield Table(key="scramblers", title=title, caption=caption, columns=columns, rows=rows)
