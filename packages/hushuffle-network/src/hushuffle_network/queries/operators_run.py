"""Run a graph of operators over rows, and compare its results with those without protection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import Flags, Floats, Integers
from hushuffle.model import Cell, Chart, Series, Table, number
from hushuffle.plans import Cluster, GroupStatistics, Plan, ResultNoise, group_statistics, use_chance
from hushuffle.plans.centroids import means, noisy_means, sums_and_counts
from hushuffle.plans.result_noise import discrete_laplace, noise_rate
from hushuffle.randomness import Randomness
from hushuffle_network.queries.aggregate_run import result_tables
from hushuffle_network.queries.exchange import Exchange, exchange
from hushuffle_network.queries.operators import (
    AggregateOperator,
    Computation,
    Graph,
    GroupOperator,
    IterateOperator,
    JoinOperator,
)
from hushuffle_network.queries.query import Records, Simulated

_MOST_KEYS: Final = 100
_FIRST_MODELS: Final = 2
"""The public seed of the first models, if each node has its own."""


def run_operators(
    graph: Graph, plan: Plan, records: Records, *, rng: Randomness, tell: Callable[[float], None]
) -> Simulated:
    """Return one run of `plan`, the plan of `graph`, compared with the results without protection.

    The rows of `records` have the codes of `graph.columns`, then `graph.numbers`.

    Source: docs/theory/traffic.md, Theorems 10 and 14.
    """
    run = _OperatorRun(graph=graph, plan=plan, records=records, rng=rng)
    done = []
    for place, step in enumerate(graph.steps):
        done.append(run.result(step, f"result-{place + 1}"))
        tell((place + 1) / len(graph.steps))
    return Simulated(
        exchanges=tuple(exchange for one in done for exchange in one.exchanges),
        answers=tuple(answer for one in done for answer in one.answers),
        tables=tuple(table for one in done for table in one.tables),
        charts=tuple(chart for one in done for chart in one.charts),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _OperatorRun:
    """One run over the records; every person of a part takes part in the rounds of this part."""

    graph: Graph
    plan: Plan
    records: Records
    rng: Randomness
    _rows: dict[str, Integers] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        people, sizes = np.arange(self.records.n), [data.items for data in self.plan.data]
        order = self.rng.permutation(self.records.n) if len(sizes) > 1 else people
        split = np.split(order, np.cumsum(sizes)[:-1])
        object.__setattr__(self, "_rows", {data.name: rows for data, rows in zip(self.plan.data, split, strict=True)})

    def result(self, step: Computation, key: str) -> Simulated:
        last, source = step.last, step.source
        if source.kind == "join":
            assert last.kind == "aggregate"
            return self._pairs(step, last, source, key)
        if last.kind == "aggregate":
            return self._aggregate(step, last, source, key)
        return self._rounds(step, last, source, key)

    @property
    def table(self) -> dict[str, npt.NDArray[np.number]]:
        """The rows as columns."""
        columns, rows = self.graph.columns, self.records.rows
        codes = {name: rows[:, place].astype(np.int64) for place, name in enumerate(columns)}
        return codes | {name: rows[:, len(columns) + place] for place, name in enumerate(self.graph.numbers)}

    def selected(self, name: str) -> Flags:
        """Return which rows a select keeps, shape (n,); all for "people"."""
        mask, table = np.ones(self.records.n, dtype=np.bool_), self.table
        for column, labels in self.graph.selected(name).items():
            groups = list(self.graph.categories[column])
            mask &= np.isin(table[column], [groups.index(label) for label in labels])
        return mask

    def send(self, cluster: Cluster, own: Integers, selected: Flags) -> tuple[Exchange, Flags]:
        """Return the exchange of a cluster's rows, and which rows arrive; rows that are not selected go last."""
        rows = np.sort(np.concatenate([self._rows[name] for name in cluster.reads]))
        targets = np.where(selected, own, cluster.targets - 1)[rows]
        run = exchange(cluster, targets, only_honest=self.plan.coins_known(cluster), rng=self.rng)
        arrived = np.zeros(self.records.n, dtype=np.bool_)
        arrived[rows[run.used]] = True
        return run, arrived & selected

    def chance(self, cluster: Cluster) -> float:
        """Return the probability that a row reaches its node and counts."""
        assert cluster.sampling is not None
        return use_chance(cluster.sampling, only_honest=self.plan.coins_known(cluster))

    def _aggregate(self, step: Computation, last: AggregateOperator, group: GroupOperator, key: str) -> Simulated:
        query, selected = self.graph.aggregated(last, group), self.selected(group.of)
        cluster, grouping = self.plan.cluster(step.stage.sends[0]), self.graph.grouping(group)
        noise = None if last.noise is None else ResultNoise(query=query, epsilon=last.noise.epsilon)
        run, arrived = self.send(cluster, query.nodes(0, grouping.codes(self.table)), selected)
        true = group_statistics(query, 0, self.table, used=selected)
        held = self.table if noise is None else noise.rounded(self.table)
        came = group_statistics(query, 0, held, used=arrived)
        if noise is not None:
            came = GroupStatistics.of(came.name, query.values, noise.release(came.numbers, rng=self.rng))
        estimated = came.scaled(1 / self.chance(cluster))
        labels = {name: tuple(groups) for name, groups in self.graph.categories.items()}
        tables = [
            replace(table, key=key, title=f"Result of {last.name}")
            for table in result_tables(query, labels, [true], [estimated.results(query)])
        ]
        answer = _off(f"the counts of {last.name}", true.count, estimated.count)
        return Simulated(exchanges=(run,), answers=(answer,), tables=tuple(tables))

    def _pairs(self, step: Computation, last: AggregateOperator, join: JoinOperator, key: str) -> Simulated:
        groups, exchanges, true, came, chance = self.graph.grouping(join).groups, [], [], [], 1.0
        for side, name in enumerate(step.stage.sends):
            codes, selected = self.graph.grouping(join, side).codes(self.table), self.selected(join.of[side])
            run, arrived = self.send(self.plan.cluster(name), codes * join.nodes // groups, selected)
            exchanges.append(run)
            true.append(np.bincount(codes[selected], minlength=groups))
            came.append(np.minimum(np.bincount(codes[arrived], minlength=groups), join.most[side]))
            chance *= self.chance(run.cluster)
        received = came[0] * came[1]
        if last.noise is not None:
            rate = noise_rate(last.noise.epsilon, self.graph.pairs_moved(join))
            received = received + np.array(discrete_laplace(rate, groups, rng=self.rng), dtype=np.int64)
        pairs, capped = true[0] * true[1], np.minimum(true[0], join.most[0]) * np.minimum(true[1], join.most[1])
        estimates = received / chance
        names = list(self.graph.categories[join.by[0]])
        shown = np.sort(np.argsort(-pairs, kind="stable")[:_MOST_KEYS]).tolist()
        rows: list[tuple[Cell, ...]] = [
            (names[key_number], int(pairs[key_number]), int(capped[key_number]), float(estimates[key_number]))
            for key_number in shown
        ]
        caption = (
            f"Pairs of rows with one key: all, with at most {join.most[0]:,} and {join.most[1]:,} rows of a key, and "
            "the plan's estimate, which is scaled up for lost rows. Scaling is biased for keys with more rows."
        )
        columns = (join.by[0], "pairs", "pairs, limited", "pairs, plan")
        table = Table(key=key, title=f"Result of {last.name}", caption=caption, columns=columns, rows=tuple(rows))
        answer = _off(f"the pairs of {last.name}", capped, estimates)
        return Simulated(exchanges=tuple(exchanges), answers=(answer,), tables=(table,))

    def _rounds(self, step: Computation, last: IterateOperator, group: GroupOperator, key: str) -> Simulated:
        fit, selected = _Fit.of(self.table, self.graph, last, group), self.selected(group.of)
        ours: Floats = fit.start
        plain = ours
        errors, exchanges = [(fit.error(plain, selected),) * 2], []
        for place in range(last.rounds):
            cluster = self.plan.cluster(step.stage.numbered(group.name, place + 1))
            run, arrived = self.send(cluster, fit.own(ours), selected)
            part = np.zeros(self.records.n, dtype=np.bool_)
            part[np.concatenate([self._rows[name] for name in cluster.reads])] = True
            ours = fit.updated(ours, arrived, self.rng)
            plain = fit.updated(plain, part & selected, None)
            errors.append((fit.error(plain, selected), fit.error(ours, selected)))
            exchanges.append(run)
        answer = (
            f"After {last.rounds:,} rounds the mean squared error of {last.label} is {number(errors[-1][1])} under the "
            f"plan, {number(errors[-1][0])} without protection (columns are scaled to [-1, 1])."
        )
        table = _models(key, last, fit, plain, ours)
        return Simulated(
            exchanges=tuple(exchanges), answers=(answer,), tables=(table,), charts=(_chart(key, last, errors),)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fit:
    """Linear models of the rows: `features`, shape (n, d), with a constant; `label`, shape (n,); `codes` of groups.

    Without `codes`, each node has its own model and each row belongs to the node whose model fits best. Models have
    shape (models, d).
    """

    iterate: IterateOperator
    nodes: int
    names: tuple[str, ...]
    features: Floats = field(repr=False)
    label: Floats = field(repr=False)
    codes: Integers | None = field(repr=False)

    @classmethod
    def of(
        cls, table: Mapping[str, npt.NDArray[np.number]], graph: Graph, iterate: IterateOperator, group: GroupOperator
    ) -> _Fit:
        scaled = {name: 2 * (table[name] - low) / (high - low) - 1 for name, (low, high) in graph.ranges.items()}
        label = scaled.pop(iterate.label).astype(np.float64)
        codes = None
        if group.by is not None:
            grouping = graph.grouping(group)
            codes = grouping.codes(table) * group.nodes // grouping.groups
        features = np.column_stack([np.ones(label.size), *scaled.values()])
        names = ("constant", *scaled)
        return cls(iterate=iterate, nodes=group.nodes, names=names, features=features, label=label, codes=codes)

    @property
    def start(self) -> Floats:
        """The public first models."""
        if self.codes is not None:
            return np.zeros((1, len(self.names)))
        return np.random.default_rng(_FIRST_MODELS).uniform(-0.5, 0.5, (self.nodes, len(self.names)))

    def _missed(self, models: Floats) -> Floats:
        """Return prediction minus label of each row and model, shape (n, models)."""
        return np.asarray(self.features @ models.T - self.label[:, None])

    def own(self, models: Floats) -> Integers:
        """Return each row's own node."""
        return np.abs(self._missed(models)).argmin(axis=1) if self.codes is None else self.codes

    def error(self, models: Floats, selected: Flags) -> float:
        """Return the mean squared error of the selected rows, each with its best model."""
        return float((self._missed(models)[selected] ** 2).min(axis=1).mean()) if selected.any() else 0.0

    def updated(self, models: Floats, used: Flags, rng: Randomness | None) -> Floats:
        """Return the models after one round: with noise and clipped updates, or without both if `rng` is None."""
        own, noise, pooled = self.own(models), self.iterate.noise, self.codes is not None
        missed = self._missed(models)
        chosen = missed[:, 0] if pooled else missed[np.arange(own.size), own]
        updates = chosen[:, None] * self.features
        if rng is not None and noise is not None:
            updates = np.asarray(noise.build().shorten(updates), dtype=np.float64)
        sums, counts = sums_and_counts(updates, own, self.nodes, used=used)
        still = np.zeros_like(models)
        if rng is not None and noise is not None:
            average = noisy_means(sums, counts, still, noise=noise.build(), pooled=pooled, rng=rng)
        elif pooled:
            average = means(sums.sum(axis=0, keepdims=True), counts.sum(keepdims=True), still)
        else:
            average = means(sums, counts, still)
        stepped: Floats = models - self.iterate.rate * average
        return stepped


def _off(what: str, true: npt.NDArray[np.number], estimated: npt.NDArray[np.number]) -> str:
    occupied = true > 0
    if not occupied.any():
        return f"All of {what} are zero."
    off = float(np.median(np.abs(estimated[occupied] / true[occupied] - 1)))
    return f"The median relative error of {what} is at most {number(100 * off, up=True, digits=2)} %."


def _models(key: str, iterate: IterateOperator, fit: _Fit, plain: Floats, ours: Floats) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for place in range(len(ours)):
        model = f"{place + 1}: " if len(ours) > 1 else ""
        rows += [
            (f"{model}{name}", float(left), float(right))
            for name, left, right in zip(fit.names, plain[place], ours[place], strict=True)
        ]
    caption = f"The weights with which a linear model predicts {iterate.label}; columns are scaled to [-1, 1]."
    columns = ("weight", "without protection", "under the plan")
    return Table(key=key, title=f"Result of {iterate.name}", caption=caption, columns=columns, rows=tuple(rows))


def _chart(key: str, iterate: IterateOperator, errors: list[tuple[float, float]]) -> Chart:
    rounds = tuple(float(place) for place in range(len(errors)))
    names = ("without protection", "under the plan")
    lines: Iterator[Series] = (
        Series.through(name, rounds, tuple(error[side] for error in errors)) for side, name in enumerate(names)
    )
    caption = f"Mean squared error of {iterate.label}, scaled to [-1, 1], after each round."
    return Chart(
        key=key,
        title=f"Error of {iterate.name}",
        caption=caption,
        x_label="round",
        y_label="mean squared error",
        series=tuple(lines),
    )
