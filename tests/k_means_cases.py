"""Small runs of k-means for tests: a plan of a dozen people, real TLS on loopback, one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushuffle.network.nodes.compute import ComputeNode
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.intake import Counts, Told, ToldCodec
from hushuffle.network.nodes.result import ResultNode
from hushuffle.network.nodes.source import Person, SourceNode, coins
from hushuffle.network.run import Loopback
from hushuffle.network.setup import Deployment, deploy
from hushuffle.plans import Plan
from hushuffle.plans.centroids import Floats, nearest, sums_and_counts
from hushuffle.queries import KMeans, KMeansQuery, PlanSpecification, exchange, parse_plan
from hushuffle.queries.query import Records
from hushuffle.randomness import Randomness, reproducible
from runtime_cases import COINS, Case, adding_up, identity

SCRAMBLED = "dummies = 2\nbatch = 6\nmin_batch = 3"
NOISE = 'noise = { kind = "gaussian", radius = 2.0, scale = 0.01 }'


def plan_text(
    *,
    people: int = 12,
    iterations: int = 2,
    traffic: str = SCRAMBLED,
    private: bool = False,
    collect: float = 60.0,
    patience: float = 30.0,
    more: str = "",
) -> str:
    """Return the text of a plan with three centroids."""
    return f"""
[query]
kind = "k-means"
generated = {{ people = {people} }}
centroids = 3
iterations = {iterations}
variant = "{"private" if private else "public"}-centroids"
{NOISE if private else ""}
{more}
[traffic]
sigma = 0.4
{traffic}
[targets]
delta = 1e-6
[network]
collect = {collect}
patience = {patience}
least = 0.6
processes = 1
"""


@dataclass(kw_only=True, eq=False)
class Clusters(Case):
    """A run of k-means with everything that its nodes need."""

    specification: PlanSpecification
    plan: Plan
    records: Records
    deployment: Deployment
    loopback: Loopback
    journals: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.document, self.sockets = self.deployment.document, self.loopback.private

    @property
    def scramblers(self) -> list[str]:
        """Names of the scramblers."""
        return [name for name in self.document.servers if name.startswith("scrambler")]

    @property
    def task(self) -> KMeans:
        """The query, as nodes know it."""
        assert isinstance(self.document.query, KMeans)
        return self.document.query

    def people(self, name: str) -> tuple[Person, ...]:
        """Return the points of a source."""
        return tuple(self.deployment.people[name])

    def person(self, name: str, folder: Path, *, point: Floats | None = None) -> SourceNode:
        """Return a source; `point`: another than its own."""
        held = self.people(name)
        if point is not None:
            held = tuple(replace(one, row=point) for one in held)
        journal = self.journal(name)
        return SourceNode(self.document, identity(name), held, key=COINS, state=folder / "state", journal=journal)

    def centroid(self, name: str = "compute-1", *, rng: Randomness | None = None) -> ComputeNode:
        """Return the node of a centroid."""
        key, journal = self.deployment.seals[name], self.journal(name)
        return ComputeNode(self.document, identity(name), self.sockets[name], key=key, journal=journal, rng=rng)

    def board(self) -> ResultNode:
        """Return the result."""
        key, journal = self.deployment.seals["result"], self.journal("result")
        return ResultNode(self.document, identity("result"), self.sockets["result"], key=key, journal=journal)

    def simulated(self, number: int, centroids: Floats, *, only_honest: bool) -> tuple[Floats, Floats]:
        """Return sums and numbers of the points that arrive in one iteration, on the coins of the sources."""
        query, points = self.specification.query, self.records.rows
        assert isinstance(query, KMeansQuery)
        noise = query.centroid_noise()
        held = points if noise is None else noise.shorten(points)
        cluster = [one for one in self.plan.clusters if one.reads][number - 1]
        own, everybody = nearest(held, centroids), range(self.records.n)
        drawn = coins(COINS, run=self.document.drawn, step=number, records=everybody)
        run = exchange(cluster, own, only_honest=only_honest, coins=drawn, rng=reproducible(1))
        return sums_and_counts(held, own, len(centroids), used=run.used)


@contextmanager
def clusters(text: str, *, change: dict[str, Any] | None = None) -> Iterator[Clusters]:
    """Give a run that nobody has started; `change`: other values in its document."""
    specification, loopback = parse_plan(text), Loopback(recorded=False)
    try:
        records = specification.query.records(Path())
        plan = specification.plan(records.n)
        made = deploy(specification, plan, records, address=loopback.listening, rng=reproducible(1))
        # One number for all runs, and so the same coins.
        values = made.document.model_dump() | {"run": "0123456789abcdef" * 2} | (change or {})
        document = RunDocument.model_validate(values)
        made = Deployment(document=document, seals=made.seals, people=made.people)
        yield Clusters(specification=specification, plan=plan, records=records, deployment=made, loopback=loopback)
    finally:
        loopback.close()


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """End tasks."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def release(
    one: Clusters, number: int, centroid: Floats, counts: Counts | None = None, *, node: int = 0
) -> list[bytes]:
    """Return the contents of what a node tells of its centroid; `counts`: others than those that add up."""
    step, whole = one.document.step(number if 0 < number <= len(one.document.steps) else 1), np.asarray(centroid)
    if counts is None:
        targets = len(step.computes)
        counts = adding_up(step, node, [len(batch.holders) for batch in step.batches], targets=targets)
    return ToldCodec(one.document).pack(Told(step=number, counts=counts, numbers=whole.astype(np.float64)))
