"""The audit of a plan: an observer of all messages tries to distinguish two records of one person."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from hushuffle import _checks
from hushuffle._checks import Integers
from hushuffle.attacks.audit_study import audit_games
from hushuffle.attacks.games import Game, Named, Terms, enough, fair, fit, tell_apart
from hushuffle.model import Progress, Report, Witness
from hushuffle.plans import Cluster, Plan
from hushuffle.questions import dp, traffic
from hushuffle.randomness import Randomness
from hushuffle_network.queries.exchange import exchange
from hushuffle_network.queries.specification import PlanSpecification

_LARGEST: Final = 1e300


def audit_plan(
    specification: PlanSpecification,
    *,
    base_folder: Path = Path(),
    trials: int | None = None,
    confidence: float = 0.95,
    rng: Randomness | None = None,
    progress: Progress | None = None,
) -> Report:
    """Return the audit of a plan's traffic: the game that distinguishes two communication graphs.

    Args:
        specification: as `hushuffle_network.queries.load_plan` reads it.
        base_folder: the folder to which relative paths of data refer; only the number of records matters.
        trials: runs of the plan; 2,000 by default, or fewer for large plans.
        confidence: the audit refutes a correct plan with probability at most 1 - `confidence`.
        rng: `secure()` by default.
        progress: called with a description of the present work.

    Raises:
        DataError, MissingDependencyError: the data cannot be used.
        SpecificationError: the specification does not fit the number of people.

    >>> from hushuffle_network.queries import parse_plan
    >>> from hushuffle.randomness import reproducible
    >>> spec = parse_plan('''
    ...     traffic = { sigma = 0.2 }
    ...     targets = { delta = 0.0 }
    ...     [query]
    ...     kind = "aggregate"
    ...     generated = { people = 100 }
    ...     columns = { age = 20 }
    ...     grouping_sets = [["age"]]
    ...     partitions = 20
    ... ''')
    >>> audit_plan(spec, rng=reproducible(1)).tables[0].rows[0][:3]
    ('which of two records a person has', 'sees all messages and knows all other records', 'not refuted')
    """
    people = specification.query.counted(base_folder).n
    plan = specification.plan(people)
    messages = sum(one.smallest + one.protocol.shuffler.dummies for one in plan.clusters if not one.fixed)
    games, about = graph_games(plan), f"{plan.name}, {people:,} people."
    return audit_games(
        games, about=about, messages=messages, trials=trials, confidence=confidence, rng=rng, progress=progress
    )


def graph_games(plan: Plan) -> list[Named]:
    """Return the game on two communication graphs: one person's messages have other targets in every possible cluster.

    All other people of the person's batch have the worst known records. The adversary knows these
    records, and sees how many messages each target receives. Batches are as small as the plan allows. The certified
    bound is the total variation distance, `traffic.plan_delta` at epsilon = 0.

    Source: docs/theory/traffic.md, Theorem 6.
    """
    return [("Distinguish two communication graphs", lambda terms: _graphs(plan, terms))]


def _graphs(plan: Plan, terms: Terms) -> Game:
    distance = traffic.plan_delta(plan, epsilon=0.0)
    clusters = max((plan.moved_together(data.name) for data in plan.data), key=len)
    if not clusters:
        _checks.unsupported("The plan was not audited: no record decides where a message goes.")
    alone = [(_smallest(cluster), dp.delta(cluster.protocol, epsilon=0.0).witness) for cluster in clusters]
    enough(terms.releases, sum(cluster.sources for cluster, _ in alone))

    def run(world: int) -> float:
        return sum(_seen(cluster, witness, world, terms.rng) for cluster, witness in alone if witness is not None)

    what, attacker = "which of two records a person has", "sees all messages and knows all other records"
    certified = fair(distance.upper, distance)
    return Game(what=what, attacker=attacker, success=tell_apart(run, terms), certified=certified)


def _smallest(cluster: Cluster) -> Cluster:
    """Return the cluster with a single batch of the smallest size, or with one source if there are no scramblers."""
    if cluster.scrambler is None:
        return replace(cluster, sources=1, moves=None)
    sources = cluster.protocol.n
    return replace(cluster, sources=sources, batch=sources, min_batch=sources, moves=None)


def _seen(cluster: Cluster, witness: Witness, world: int, rng: Randomness) -> float:
    """Return an approximate log-likelihood ratio of one run's messages: the second record against the first."""
    others = np.array(witness.others, dtype=np.int64)
    rest = np.repeat(np.arange(others.size), others)[: cluster.sources - 1]
    graph = exchange(cluster, np.append(rest, witness.target[world]), rng=rng).graph
    held = np.flatnonzero(others)
    sampling = cluster.sampling
    assert sampling is not None
    if cluster.scrambler is None:
        messages: Integers = graph if sampling.flood else graph[:, 0]
    else:
        messages = np.repeat(np.arange(cluster.targets), graph[0])
    likely = sampling.likelihoods(messages, np.concatenate([witness.target, held]))
    crowd = likely[:2].mean(axis=0)
    if rest.size:
        dummies = 0 if cluster.scrambler is None else cluster.scrambler.dummies
        crowd = (others[held] @ likely[2:] + dummies / cluster.targets) / (rest.size + dummies)
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = np.log(fit(likely[:2], crowd))
        return float(np.nan_to_num(second - first, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST))
