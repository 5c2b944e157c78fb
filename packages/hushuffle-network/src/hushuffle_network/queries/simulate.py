"""Simulate an execution plan on its data: the results with and without protection, the costs, an observer's view."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from hushuffle.model import Cell, HeatMap, Progress, Report, Table
from hushuffle.model.bound import percent
from hushuffle.model.citation import LADJEL
from hushuffle.model.report import software
from hushuffle.plans import Costs, cluster_costs
from hushuffle.randomness import Randomness, reproducible, secure
from hushuffle_network.queries.exchange import Exchange
from hushuffle_network.queries.parts import about_run, no_guarantee, settings
from hushuffle_network.queries.specification import PlanSpecification

_MOST_SHOWN: Final = 30
_QUESTION: Final = "How accurate is the result of the plan with its protection, and how many messages does it need?"


def simulate_plan(
    specification: PlanSpecification, *, base_folder: Path = Path(), progress: Progress | None = None
) -> Report:
    """Return the report on one run of a plan: results, records that count, counted costs, the communication graph.

    Args:
        specification: as `hushuffle.specification.load_plan` reads it.
        base_folder: the folder to which relative paths of data refer.
        progress: called with a description of the present work.

    Raises:
        DataError, MissingDependencyError: the data cannot be used.
        SpecificationError: the specification does not fit the number of people.

    >>> from hushuffle_network.queries import parse_plan
    >>> spec = parse_plan('''
    ...     traffic = { sigma = 0.2 }
    ...     targets = { delta = 0.0 }
    ...     run = { seed = 1 }
    ...     [query]
    ...     kind = "aggregate"
    ...     generated = { people = 1000 }
    ...     columns = { age = 20 }
    ...     grouping_sets = [["age"]]
    ...     partitions = 20
    ... ''')
    >>> simulate_plan(spec).answers[-1]
    '831 of 1,000 records reached their targets (83.10 %); 810 were expected.'
    """
    tell = progress or (lambda _what, _share: None)
    tell("reading the records", 0.0)
    records = specification.query.records(base_folder)
    plan = specification.plan(records.n)
    seed = specification.run.seed
    rng: Randomness = reproducible(seed) if isinstance(seed, int) else secure()
    tell("running the plan", 0.1)
    done = specification.query.simulate(
        plan, records, rng=rng, tell=lambda share: tell("running the plan", 0.1 + 0.8 * share)
    )
    formula = [cluster_costs(one.cluster, only_honest=plan.coins_known(one.cluster)) for one in done.exchanges]
    sent, used = sum(one.cluster.sources for one in done.exchanges), sum(one.costs.used for one in done.exchanges)
    reached = (
        f"{used:,.0f} of {sent:,} records reached their targets ({percent(used / sent)}); "
        f"{sum(one.used for one in formula):,.0f} were expected."
    )
    study = Report(
        key="plan-run",
        title=specification.title or plan.name,
        question=_QUESTION,
        answers=(*done.answers, reached),
        settings=settings(specification, records),
        tables=(*done.tables, _costs(formula, done.exchanges), _graph(done.exchanges)),
        charts=done.charts,
        heat_maps=(*done.heat_maps, *_seen(done.exchanges[0])),
        warnings=(*no_guarantee(plan), *about_run(specification, records)),
        citations=(LADJEL.at("experiments"),),
        software=software("polars", "cryptography"),
    )
    tell("done", 1.0)
    return study


def _costs(formula: Sequence[Costs], exchanges: Sequence[Exchange]) -> Table:
    """Return the costs of all clusters that send messages, by formula and as counted."""
    counted = [one.costs for one in exchanges]
    spread = math.sqrt(
        sum(cost.used * (1 - cost.used / one.cluster.sources) for cost, one in zip(formula, exchanges, strict=True))
    )
    away = 0.0 if spread == 0 else (sum(one.used for one in counted) - sum(one.used for one in formula)) / spread
    rows: tuple[tuple[Cell, ...], ...] = (
        ("messages", *(sum(one.messages for one in costs) for costs in (formula, counted))),
        ("channels", *(sum(one.channels for one in costs) for costs in (formula, counted))),
        ("channels of the busiest node", *(max(one.busiest for one in costs) for costs in (formula, counted))),
        ("scramblers", *(sum(one.scramblers for one in costs) for costs in (formula, counted))),
        ("tuples that reach their targets", *(round(sum(one.used for one in costs)) for costs in (formula, counted))),
    )
    caption = (
        "Messages and channels must agree exactly. For records the formula is the expectation, from which this run "
        f"differs by {away:+.2f} standard deviations."
    )
    title, columns = "Costs of the clusters whose messages depend on data", ("cost", "formula", "counted")
    return Table(key="costs", title=title, caption=caption, columns=columns, rows=rows)


def _graph(exchanges: Sequence[Exchange]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for exchange in exchanges:
        received, cluster = exchange.received, exchange.cluster
        senders = f"{cluster.scramblers:,} scramblers" if cluster.scramblers else f"{cluster.sources:,} sources"
        numbers = int(received.min()), round(float(received.mean())), int(received.max())
        rows.append((cluster.name, senders, cluster.targets, *numbers))
    caption = "The senders that an observer sees, their number of targets, and the messages of each target."
    columns = ("cluster", "senders", "targets", "minimum at a target", "on average", "most")
    return Table(key="graph", title="An observer's view", caption=caption, columns=columns, rows=tuple(rows))


def _seen(exchange: Exchange) -> Iterator[HeatMap]:
    """Yield a heat map of how many messages each scrambler of the first cluster sends to each target."""
    if exchange.scrambler_of is None:
        return
    scramblers, targets = (min(size, _MOST_SHOWN) for size in exchange.graph.shape)
    cut = "" if exchange.graph.shape == (scramblers, targets) else f" Shown: at most the first {_MOST_SHOWN} of each."
    yield HeatMap(
        key="graph",
        title="Messages by scrambler and target",
        caption=f"The complete view that an observer has of the cluster {exchange.cluster.name}.{cut}",
        x_label="target",
        y_label="scrambler",
        x=tuple(str(target) for target in range(targets)),
        y=tuple(str(scrambler) for scrambler in range(scramblers)),
        values=tuple(tuple(row) for row in exchange.graph[:scramblers, :targets].astype(np.float64).tolist()),
    )
