"""Aggregate over tables: nothing lost without sampling, unbiased with it, everybody in one set if asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.plans import GroupingQuery, GroupingSet, aggregate, generate_table, k_means, plan_costs
from hushuffle.randomness import reproducible
from hushuffle_network.queries import run_aggregate

SETS = tuple(GroupingSet(columns=(name,), sizes=(20,)) for name in ("a", "b", "c", "d"))
QUERY = GroupingQuery(grouping_sets=SETS, values=("x",), functions=("count", "sum", "avg", "min", "max"), partitions=20)


def run(people: int, **changes: Any) -> Any:
    values: dict[str, Any] = {"sigma": 0.2, "dummies": 50, "batch": 100}
    plan = aggregate(QUERY, people=people, **(values | changes))
    return plan, run_aggregate(
        plan, QUERY, generate_table(QUERY, people, distribution="skewed", seed=5), rng=reproducible(6)
    )


def test_without_sampling_the_answer_is_the_true_one() -> None:
    plan, result = run(1000, sigma=0.0)
    assert result.used == (1000,) * 4
    for true, received, estimated in zip(result.true, result.received, result.estimated, strict=True):
        for name, answer in true.results(QUERY).items():
            assert np.array_equal(answer, received.results(QUERY)[name], equal_nan=True)
            assert estimated.results(QUERY)[name] == pytest.approx(answer, nan_ok=True)
    assert sum(one.costs.messages for one in result.exchanges) + 4 * 20 == plan_costs(plan).messages


@pytest.mark.parametrize(("per_person", "share"), [("all", 0.81), ("one", 0.81 / 4)])
def test_sampled_counts_are_unbiased(per_person: Any, share: float) -> None:
    _, result = run(100_000, per_person=per_person)
    assert len(result.used) == 4
    for true, received, estimated in zip(result.true, result.received, result.estimated, strict=True):
        # Binomial: 6 standard errors in each of 160 groups, false alarms below 1e-6 in all.
        error = 6 * np.sqrt(true.count * share * (1 - share))
        assert np.all(np.abs(received.count - share * true.count) <= error)
        assert np.all(np.abs(estimated.count - true.count) <= error / share)
        assert np.all(received.max["x"] <= true.max["x"])


def test_one_set_for_each_person_asks_everybody_once() -> None:
    _, result = run(10, per_person="one", sigma=0.0, dummies=None, batch=None)
    assert [one.used.size for one in result.exchanges] == [3, 3, 2, 2]
    assert sum(int(received.count.sum()) for received in result.received) == 10


def test_inputs_that_do_not_fit() -> None:
    plan = aggregate(QUERY, people=10, sigma=0.2)
    with pytest.raises(InvalidInputError, match="`table` must be of 10 rows"):
        run_aggregate(plan, QUERY, generate_table(QUERY, 9, seed=1))
    other = GroupingQuery(grouping_sets=SETS, partitions=10)
    strange = k_means(people=10, centroids=2, iterations=1, variant="hidden", sigma=0.5)
    for wrong in (aggregate(other, people=10, sigma=0.2), strange):
        with pytest.raises(InvalidInputError, match="`plan` must be made of this query"):
            run_aggregate(wrong, QUERY, generate_table(QUERY, 10, seed=1))
