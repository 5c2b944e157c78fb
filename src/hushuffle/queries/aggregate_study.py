"""The result of a query with grouping sets, true and under the plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.model import Cell, Table, number
from hushuffle.plans import GroupingQuery, GroupingSet, GroupStatistics, Plan, cluster_costs
from hushuffle.queries import AggregateRun, run_aggregate
from hushuffle.queries.data import Records
from hushuffle.queries.results import Simulated
from hushuffle.randomness import Randomness
from hushuffle.specification import AggregateQuery

Floats = npt.NDArray[np.float64]

_MOST_GROUPS: Final = 100
_NOTHING: Final = "-"


def simulated_aggregate(query: AggregateQuery, plan: Plan, records: Records, *, rng: Randomness) -> Simulated:
    """Return one run over the records: the answers beside the true ones, and their errors."""
    run = run_aggregate(plan, query.query(), records.table, rng=rng)
    labels = {name: tuple(groups) for name, groups in query.categories().items()}
    return Simulated(
        exchanges=run.exchanges,
        answers=tuple(_answers(run)),
        tables=(
            _errors(run, records.n),
            *result_tables(run.query, labels, run.true, [one.results(run.query) for one in run.estimated]),
        ),
    )


def _answers(run: AggregateRun) -> Iterator[str]:
    ratios, lost, groups = [], 0, 0
    for true, got in zip(run.true, run.estimated, strict=True):
        some = true.count > 0
        ratios.append(np.abs(got.count[some] / true.count[some] - 1))
        lost += int(np.count_nonzero(some & (got.count == 0)))
        groups += int(np.count_nonzero(some))
    off = float(np.median(np.concatenate(ratios)))
    yield f"Half of the estimated counts are off by {number(100 * off, up=True, digits=2)} % or less."
    if lost:
        yield f"{lost:,} of {groups:,} groups with records got no tuple: they are missing from the result."


def _errors(run: AggregateRun, people: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for place, (true, got) in enumerate(zip(run.true, run.estimated, strict=True)):
        used = cluster_costs(run.exchanges[place].cluster).used / people
        right, guessed = true.results(run.query), got.results(run.query)
        for name, exact in right.items():
            both = np.isfinite(exact) & np.isfinite(guessed[name])
            errors = (guessed[name] - exact)[both]
            # Each record counts with probability p, 1/p times: the variance of a count c is c (1 - p)/p.
            predicted = math.sqrt(float(true.count.mean()) * (1 - used) / used) if used else math.inf
            rows.append(
                (
                    true.name,
                    _spoken(name),
                    exact.size,
                    int(np.count_nonzero(np.isfinite(exact) & ~both)),
                    _mean_square(errors),
                    predicted if name == "count" else _NOTHING,
                    float(np.abs(errors).max(initial=0.0)),
                )
            )
    return Table(
        key="errors",
        title="Error of the result",
        caption=(
            "Root mean square and largest difference between the estimate and the truth over the groups, in the unit "
            "of the figure; predicted is the root mean square that the share of used tuples gives for counts."
        ),
        columns=("grouping set", "figure", "groups", "without answer", "error", "predicted", "largest"),
        rows=tuple(rows),
    )


def _mean_square(errors: Floats) -> float:
    return math.sqrt(float(np.mean(errors**2))) if errors.size else 0.0


def result_tables(
    query: GroupingQuery,
    labels: Mapping[str, tuple[str, ...]],
    exact: Sequence[GroupStatistics],
    answers: Sequence[Mapping[str, Floats]],
) -> Iterator[Table]:
    """Yield a table for each grouping set: the figures, true and as the plan returns them.

    Args:
        query: the query.
        labels: the names of the groups of each column.
        exact: the true statistics of each grouping set.
        answers: what the plan returns for each: an array for each figure, nan where there is no answer.
    """
    for place, (grouping, true, guessed) in enumerate(zip(query.grouping_sets, exact, answers, strict=True)):
        right = true.results(query)
        columns = [name for figure in right for name in (_spoken(figure), f"{_spoken(figure)}, plan")]
        largest = np.argsort(-true.count, kind="stable")[:_MOST_GROUPS]
        groups = np.sort(largest)
        names = [_name(grouping, group, labels) for group in groups.tolist()]
        rows = list(
            zip(names, *(_cells(one[figure][groups]) for figure in right for one in (right, guessed)), strict=True)
        )
        more = grouping.groups - len(rows)
        yield Table(
            key=f"result-{place + 1}",
            title=f"Result by {grouping.name}",
            caption=(
                "The truth, and what the plan returns: counts and sums are scaled up for the tuples that got lost, "
                "least and greatest are of the tuples that arrived."
                + (f" The {len(rows)} largest of {grouping.groups:,} groups." if more else "")
            ),
            columns=(grouping.name, *columns),
            rows=tuple(rows),
        )


def _name(grouping: GroupingSet, group: int, labels: Mapping[str, tuple[str, ...]]) -> str:
    codes: Sequence[int] = np.unravel_index(group, grouping.sizes)  # type: ignore[assignment]
    return ", ".join(labels[column][int(code)] for column, code in zip(grouping.columns, codes, strict=True))


def _spoken(figure: str) -> str:
    """Return "avg(age)" as "avg age"."""
    return figure.replace("(", " ").removesuffix(")")


def _cells(values: Floats) -> list[Cell]:
    """Return the cells of a column: integers if all are."""
    known = values[np.isfinite(values)]
    kind = int if bool((known == np.round(known)).all()) else float
    return [kind(value) if math.isfinite(value) else _NOTHING for value in values.tolist()]
