"""Parts of the reports on a plan: the drawing, the settings, the warnings, and charts of other traffic settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hushuffle.errors import NumericalError, SpecificationError
from hushuffle.model import Bound, Chart, Diagram, Progress, Series, Warned
from hushuffle.plans import Plan, describe, svg
from hushuffle.questions import traffic
from hushuffle_network.queries.query import Records
from hushuffle_network.queries.specification import PlanSpecification


def diagram(specification: PlanSpecification, plan: Plan, people: int) -> Diagram:
    """Return the drawing of a plan and its description; for a long plan, those of a shorter plan of equal structure."""
    drawn, shorter = plan, specification.query.drawn
    caption = "Boxes are data (green), and clusters of messages that depend on data (blue) or are fixed (grey)."
    if shorter is not None:
        query, words = shorter
        drawn = specification.model_copy(update={"query": query}).plan(people)
        drawn = replace(drawn, name=f"{plan.name} (drawn: {words.partition(' of ')[0]})")
        caption += f" Drawn are {words}"
    if any(edge.carries != "hidden" for edge in plan.edges):
        caption += " Dashed arrows carry public values."
    lines = [
        line for line in describe(drawn).splitlines() if not line.lstrip().startswith(("assumed:", "no guarantee:"))
    ]
    return Diagram(key="plan", title="The plan", caption=caption, svg=svg(drawn), text="\n".join(lines))


def refusal(plan: Plan) -> str:
    """Return why the first unprotected cluster has no guarantee; "" if the plan has a guarantee."""
    first, *others = plan.refusals() or ("",)
    return f"{first} The same holds for {len(others)} more cluster{'s' * (len(others) > 1)}." if others else first


def settings(specification: PlanSpecification, records: Records) -> tuple[tuple[str, str], ...]:
    return (("people", f"{records.n:,}"), ("records", records.source), *_flat(specification.plain()))


def about_records(records: Records) -> Iterator[Warned]:
    if records.dropped:
        sentence = f"{records.dropped:,} records with a missing value were left out."
        advice = "The fact that a value is missing can be private too: document why values are missing."
        yield Warned(key="dropped", sentence=sentence, advice=advice)


def about_ranges(specification: PlanSpecification) -> Iterator[Warned]:
    """Yield the warning that one person's number may dominate a sum, if columns have no public range."""
    names = specification.query.unbounded
    if names:
        sentence = f"No range bounds the values of {', '.join(names)}: one dishonest source can dominate every sum."
        advice = (
            "Give [query.ranges] with the public range [low, high] of each column; nodes then refuse values outside."
        )
        yield Warned(key="no-ranges", sentence=sentence, advice=advice)


def no_guarantee(plan: Plan) -> Iterator[Warned]:
    if not plan.applies:
        sentence = f"The traffic of this plan has no guarantee. {refusal(plan)}"
        yield Warned(key="no-guarantee", sentence=sentence, advice="`hushuffle plan analyse` shows the details.")


def about_run(specification: PlanSpecification, records: Records) -> Iterator[Warned]:
    if specification.run.seed != "secure":
        sentence = (
            "A fixed seed generated the randomness: an adversary with the seed can undo the protection of this run."
        )
        yield Warned(key="fixed-seed", sentence=sentence, advice='Use seed = "secure" except for tests.')
    if specification.query.data is not None:
        sentence = "This report uses all records and shows the true result."
        advice = "Share it only with parties that already have the records."
        yield Warned(key="true-values-shown", sentence=sentence, advice=advice)
    yield from about_ranges(specification)
    yield from about_records(records)


def _flat(values: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{start}{key}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list | tuple) and any(isinstance(entry, dict) for entry in value):
            for place, entry in enumerate(value):
                yield from _flat(entry, f"{name}[{place}].")
        else:
            yield name, _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(f"({_shown(one)})" if isinstance(one, list | tuple) else _shown(one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


_SIGMAS: Final = (0.05, 0.1, 0.4, 0.7)
_FEW_SIGMAS: Final = (0.1, 0.3, 0.6)
"""Values of sigma in a chart if contents are released, when one point takes seconds to compute."""


@dataclass(frozen=True)
class _Parameter:
    """A setting of [traffic]: the values to try, its title, and its effect."""

    key: str
    here: float
    values: Sequence[float]
    title: str
    caption: str
    label: str
    log: bool = False


def trade_offs(
    specification: PlanSpecification, plan: Plan, *, people: int, total: Bound, tell: Progress
) -> tuple[Chart, ...]:
    """Return charts of the whole plan's epsilon against sigma, and against dummies and batch, or flooding.

    `total` is the epsilon of `plan` itself.
    """
    parameters = list(_parameters(specification, plan))
    points = [(parameter, value) for parameter in parameters for value in parameter.values]
    curves: dict[str, list[tuple[float, Bound]]] = {parameter.key: [] for parameter in parameters}
    for done, (parameter, value) in enumerate(points):
        tell("other settings", 0.2 + 0.8 * done / len(points))
        figure = total if value == parameter.here else _figure(specification, people, parameter.key, value)
        if figure is not None:
            curves[parameter.key].append((value, figure))
    return tuple(_chart(specification, parameter, curves[parameter.key]) for parameter in parameters)


def _figure(specification: PlanSpecification, people: int, key: str, value: float) -> Bound | None:
    """Return the plan's epsilon with one setting changed; None if the plan does not allow the new value."""
    changed: dict[str, Any] = {key: value if key == "sigma" else int(value)}
    other = specification.traffic.model_copy(update=changed)
    try:
        plan = specification.model_copy(update={"traffic": other}).plan(people)
        return traffic.plan_guarantee(plan, delta=specification.targets.delta).epsilon
    except (SpecificationError, NumericalError):
        return None


def _parameters(specification: PlanSpecification, plan: Plan) -> Iterator[_Parameter]:
    now, sending = specification.traffic, [cluster for cluster in plan.clusters if not cluster.fixed]
    slow = any(plan.coins_known(cluster) for cluster in sending)
    sources, targets = min(cluster.sources for cluster in sending), sending[0].targets
    values = _with(now.sigma, _FEW_SIGMAS if slow else _SIGMAS, low=0, high=1)
    caption = "More redirected messages give more privacy, but fewer records reach their targets."
    yield _Parameter("sigma", now.sigma, values, "Redirected messages", caption, "sigma")
    if sending[0].scrambler is None:
        tried = (0, 1, 2, 4, targets // 4, targets // 2, 3 * targets // 4)
        values = _with(now.flood, tried, low=0, high=targets - 1)
        caption = (
            "Epsilon against the number of messages that each source also sends to other targets (to all: a broadcast)."
        )
        yield _Parameter("flood", now.flood, values, "Flooding", caption, "additional messages of each source")
        return
    batch, dummies = now.batch or sources, now.dummies or 0
    step = dummies or max(batch // 10, 1)
    values = _with(dummies, (0, 4 * step) if slow else (0, step // 2, step, 4 * step), low=0)
    caption = "Epsilon against the dummies of each scrambler. Dummies add traffic and lose no data."
    yield _Parameter("dummies", dummies, values, "Dummies", caption, "dummies of each scrambler")
    values = _with(batch, (batch // 2, 2 * batch) if slow else (batch // 4, batch // 2, 2 * batch), low=1, high=sources)
    caption = "Epsilon against the sources of each scrambler. More sources hide each other better."
    yield _Parameter("batch", batch, values, "Batches", caption, "sources of each scrambler", log=True)


def _with(here: float, values: Sequence[float], *, low: float, high: float | None = None) -> tuple[float, ...]:
    """Return those of `values` that are in [low, high], and `here`, sorted, without repetition."""
    return tuple(sorted({here, *(value for value in values if low <= value and (high is None or value <= high))}))


def _chart(specification: PlanSpecification, parameter: _Parameter, points: Sequence[tuple[float, Bound]]) -> Chart:
    x = tuple(float(value) for value, _ in points)
    series = [Series.through("the whole plan", x, (figure for _, figure in points))]
    wanted = specification.targets.epsilon
    if wanted is not None:
        series.append(Series.through("target", x, [wanted] * len(x)))
    missing = len(points) < len(parameter.values)
    return Chart(
        key=f"epsilon-by-{parameter.key}",
        title=parameter.title,
        caption=parameter.caption + (" Settings without a computed epsilon are omitted." if missing else ""),
        x_label=parameter.label,
        y_label=f"epsilon of one person, in nats, at delta = {specification.targets.delta:g}",
        series=tuple(series),
        x_log=parameter.log,
        here=float(parameter.here),
    )
