"""A query with grouping sets, run over a table: true, received and estimated answers, and what a watcher sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.plans import GroupingQuery, GroupStatistics, Plan, group_statistics, use_chance
from hushuffle.queries.exchange import Exchange, Integers, exchange
from hushuffle.randomness import Randomness, secure


@dataclass(frozen=True, kw_only=True, eq=False)
class AggregateRun:
    """One run of an Aggregate plan; each tuple has one entry for each grouping set.

    `true` is the answer over all rows, `received` over the tuples that arrived, `estimated` the same with counts
    and sums divided by the probability that a row is asked and its tuple arrives, so that they are unbiased.
    """

    query: GroupingQuery
    true: tuple[GroupStatistics, ...]
    received: tuple[GroupStatistics, ...]
    estimated: tuple[GroupStatistics, ...]
    exchanges: tuple[Exchange, ...]

    @property
    def used(self) -> tuple[int, ...]:
        """Number of tuples effectively used, for each grouping set."""
        return tuple(int(np.count_nonzero(one.used)) for one in self.exchanges)


def run_aggregate(
    plan: Plan, query: GroupingQuery, table: Mapping[str, npt.ArrayLike], *, rng: Randomness | None = None
) -> AggregateRun:
    """Run `plan`, made of `query` by `hushuffle.plans.aggregate`, over the rows of `table`.

    Args:
        plan: the plan; one row for each person.
        query: the query.
        table: a column for each name (a dict of arrays, or a data frame).
        rng: defaults to `secure()`.

    Raises:
        InvalidInputError: the plan is not the query's, the table has another number of rows, or a column is wrong.

    Source: docs/theory/traffic.md, Theorem 8.

    >>> from hushuffle.plans import GroupingSet, aggregate, generate_table
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
    asked = asked_rows(plan, people, source)
    true, received, estimated, exchanges = [], [], [], []
    for position, grouping in enumerate(query.grouping_sets):
        codes = grouping.codes(table)
        if codes.size != people:
            _checks.reject("table", f"of {people:,} rows, one for each person", f"<{codes.size:,} rows>")
        cluster, rows = plan.cluster(wanted[position]), asked[position]
        run = exchange(cluster, query.nodes(position, codes[rows]), rng=source)
        arrived = np.zeros(people, dtype=np.bool_)
        arrived[rows[run.used]] = True
        assert cluster.sampling is not None
        exchanges.append(run)
        true.append(group_statistics(query, position, table))
        received.append(group_statistics(query, position, table, used=arrived))
        estimated.append(received[-1].scaled(people / (rows.size * use_chance(cluster.sampling))))
    return AggregateRun(
        query=query,
        true=tuple(true),
        received=tuple(received),
        estimated=tuple(estimated),
        exchanges=tuple(exchanges),
    )


def asked_rows(plan: Plan, people: int, rng: Randomness) -> list[Integers]:
    """Return the rows of each grouping set: all, or with one set per person a random share of the rows."""
    sets = len([cluster for cluster in plan.clusters if cluster.reads])
    if len(plan.data) == 1 and sets > 1:
        return [np.arange(people)] * sets
    ends = np.cumsum([data.items for data in plan.data])[:-1]
    return list(np.split(rng.permutation(people), ends))
