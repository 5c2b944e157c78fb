"""Run a query with grouping sets over a table; compare the true, received and estimated answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks, plans
from hushuffle._checks import Floats
from hushuffle.model import Cell, Table, number
from hushuffle.plans.aggregates import column_of
from hushuffle.randomness import Randomness, secure
from hushuffle_network.queries.exchange import Exchange, asked_rows, exchange
from hushuffle_network.queries.query import Simulated

_MOST_GROUPS: Final = 100
_NOTHING: Final = "-"


@dataclass(frozen=True, kw_only=True, eq=False)
class AggregateRun:
    """One run of an aggregate plan; each tuple has one entry per grouping set.

    `true` is the answer over all rows, `received` over the tuples that arrived. `estimated` divides counts and sums
    by the probability that a row is selected and its tuple arrives, so it is unbiased. If results are released with
    `noise`, `received` and `estimated` include it, and only they are released.
    """

    query: plans.GroupingQuery
    true: tuple[plans.GroupStatistics, ...]
    received: tuple[plans.GroupStatistics, ...]
    estimated: tuple[plans.GroupStatistics, ...]
    exchanges: tuple[Exchange, ...]
    noise: plans.ResultNoise | None = None

    @property
    def used(self) -> tuple[int, ...]:
        """Number of records that count in the result, for each grouping set."""
        return tuple(int(np.count_nonzero(one.used)) for one in self.exchanges)


def run_aggregate(
    plan: plans.Plan, query: plans.GroupingQuery, table: Mapping[str, npt.ArrayLike], *, rng: Randomness | None = None
) -> AggregateRun:
    """Run `plan`, the result of `hushuffle.plans.aggregate` for `query`, over the rows of `table`.

    Args:
        plan: the plan that `hushuffle.plans.aggregate` returned for `query`; one row for each person.
        query: the query.
        table: a column for each name (a dict of arrays, or a data frame).
        rng: source of randomness (default: `secure()`).

    Raises:
        InvalidInputError: the plan is for another query, the table has a wrong number of rows, or a column is invalid.

    Source: docs/theory/traffic.md, Theorems 8 and 10.

    >>> from hushuffle.plans import GroupingQuery, GroupingSet, aggregate, generate_table
    >>> from hushuffle.randomness import reproducible
    >>> sets = tuple(GroupingSet(columns=(name,), sizes=(20,)) for name in ("age", "bmi"))
    >>> query = GroupingQuery(grouping_sets=sets, values=("insulin",), functions=("avg",), partitions=20)
    >>> plan = aggregate(query, people=1000, sigma=0.2, dummies=50, batch=100)
    >>> run = run_aggregate(plan, query, generate_table(query, 1000, seed=1), rng=reproducible(1))
    >>> run.used
    (812, 804)
    """
    source, people = secure() if rng is None else rng, sum(data.items for data in plan.data)
    names = {cluster.name for cluster in plan.clusters}
    wanted = [f"send by {grouping.name}" for grouping in query.grouping_sets]
    if not names.issuperset(wanted) or any(plan.cluster(name).targets != query.partitions for name in wanted):
        _checks.reject("plan", "made of this query by hushuffle.plans.aggregate", plan.name)
    shares = {release.epsilon for release in plan.releases if release.epsilon is not None}
    noise = plans.ResultNoise(query=query, epsilon=min(shares)) if shares else None
    held = table
    if noise is not None:
        used = (*(name for grouping in query.grouping_sets for name in grouping.columns), *query.values)
        held = noise.rounded({name: np.asarray(column_of(table, name)) for name in used})
    requested = asked_rows(plan, people, source)
    true, received, estimated, exchanges = [], [], [], []
    for position, grouping in enumerate(query.grouping_sets):
        codes = grouping.codes(table)
        if codes.size != people:
            _checks.reject("table", f"of {people:,} rows, one for each person", f"<{codes.size:,} rows>")
        cluster, rows = plan.cluster(wanted[position]), requested[position]
        only_honest = plan.coins_known(cluster)
        run = exchange(cluster, query.nodes(position, codes[rows]), only_honest=only_honest, rng=source)
        arrived = np.zeros(people, dtype=np.bool_)
        arrived[rows[run.used]] = True
        assert cluster.sampling is not None
        exchanges.append(run)
        true.append(plans.group_statistics(query, position, table))
        came = plans.group_statistics(query, position, held, used=arrived)
        if noise is not None:
            came = plans.GroupStatistics.of(came.name, query.values, noise.release(came.numbers, rng=source))
        received.append(came)
        chance = plans.use_chance(cluster.sampling, only_honest=only_honest)
        estimated.append(came.scaled(people / (rows.size * chance)))
    return AggregateRun(
        query=query,
        true=tuple(true),
        received=tuple(received),
        estimated=tuple(estimated),
        exchanges=tuple(exchanges),
        noise=noise,
    )


def simulated(run: AggregateRun, labels: Mapping[str, tuple[str, ...]]) -> Simulated:
    """Return the answers of a run compared with the true answers, with errors; `labels`: names of the groups."""
    estimated = [one.results(run.query) for one in run.estimated]
    tables = (_errors(run), *result_tables(run.query, labels, run.true, estimated))
    return Simulated(exchanges=run.exchanges, answers=tuple(_answers(run)), tables=tables)


def _answers(run: AggregateRun) -> Iterator[str]:
    ratios, lost, groups = [], 0, 0
    for true, got in zip(run.true, run.estimated, strict=True):
        occupied = true.count > 0
        ratios.append(np.abs(got.count[occupied] / true.count[occupied] - 1))
        if run.noise is None:
            lost += int(np.count_nonzero(occupied & (got.count == 0)))
        groups += int(np.count_nonzero(occupied))
    off = float(np.median(np.concatenate(ratios)))
    yield f"The median relative error of counts is at most {number(100 * off, up=True, digits=2)} %."
    if lost:
        yield f"{lost:,} of {groups:,} groups with records received no data, so they are missing from the result."


def _errors(run: AggregateRun) -> Table:
    people = int(run.true[0].count.sum())
    rows: list[tuple[Cell, ...]] = []
    for place, (true, got) in enumerate(zip(run.true, run.estimated, strict=True)):
        costs = plans.cluster_costs(run.exchanges[place].cluster, only_honest=run.noise is not None)
        used, noise = costs.used / people, 0.0
        if run.noise is not None and used:
            noise = run.noise.deviations["count"] / used
        right, guessed = true.results(run.query), got.results(run.query)
        for name, exact in right.items():
            both = np.isfinite(exact) & np.isfinite(guessed[name])
            errors = (guessed[name] - exact)[both]
            # Each record arrives with probability p and is weighted by 1/p: the variance of a count c is c (1 - p)/p.
            predicted = math.hypot(math.sqrt(float(true.count.mean()) * (1 - used) / used), noise) if used else math.inf
            unanswered = int(np.count_nonzero(np.isfinite(exact) & ~both))
            error = math.sqrt(float(np.mean(errors**2))) if errors.size else 0.0
            largest, shown = float(np.abs(errors).max(initial=0.0)), predicted if name == "count" else _NOTHING
            rows.append((true.name, _spoken(name), exact.size, unanswered, error, shown, largest))
    caption = (
        "Root mean square error and largest error over the groups, in the unit of the figure. `predicted` is the "
        "expected root mean square error of counts for this share of used records"
        + ("." if run.noise is None else ", with their noise.")
    )
    columns = ("grouping set", "figure", "groups", "without answer", "error", "predicted", "largest")
    return Table(key="errors", title="Error of the result", caption=caption, columns=columns, rows=tuple(rows))


def result_tables(
    query: plans.GroupingQuery,
    labels: Mapping[str, tuple[str, ...]],
    exact: Sequence[plans.GroupStatistics],
    answers: Sequence[Mapping[str, Floats]],
) -> Iterator[Table]:
    """Yield a table for each grouping set: each statistic, true and as the plan returned it, nan for no result."""
    for place, (grouping, true, guessed) in enumerate(zip(query.grouping_sets, exact, answers, strict=True)):
        right = true.results(query)
        columns = tuple(name for figure in right for name in (_spoken(figure), f"{_spoken(figure)}, plan"))
        groups = np.sort(np.argsort(-true.count, kind="stable")[:_MOST_GROUPS])
        own = [labels[column] for column in grouping.columns]
        codes = np.column_stack(np.unravel_index(groups, grouping.sizes)).tolist()
        names = [", ".join(label[code] for label, code in zip(own, row, strict=True)) for row in codes]
        rows = list(
            zip(names, *(_cells(one[figure][groups]) for figure in right for one in (right, guessed)), strict=True)
        )
        more = grouping.groups - len(rows)
        caption = (
            "The true results, and the results of the plan. Counts and sums are scaled up for lost records; minima "
            "and maxima cover only the records that arrived."
            + (f" The {len(rows)} largest of {grouping.groups:,} groups." if more else "")
        )
        key, title, columns = f"result-{place + 1}", f"Result by {grouping.name}", (grouping.name, *columns)
        yield Table(key=key, title=title, caption=caption, columns=columns, rows=tuple(rows))


def _spoken(figure: str) -> str:
    """Return a figure's name without brackets: "avg(age)" becomes "avg age"."""
    return figure.replace("(", " ").removesuffix(")")


def _cells(values: Floats) -> list[Cell]:
    """Return the cells of a table column: integers if all values are integers."""
    finite = values[np.isfinite(values)]
    kind = int if bool((finite == np.round(finite)).all()) else float
    return [kind(value) if math.isfinite(value) else _NOTHING for value in values.tolist()]
