"""From a plan to the document of a task for phones, and back: whether a document keeps what its plan promises."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NoReturn

from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle.model import Guarantee
from hushuffle.network.check import in_words
from hushuffle.network.nodes.document import utc_text
from hushuffle.network.phones.asked import asked_of
from hushuffle.network.phones.rounds import first_round, longest_growth, next_task, other_round
from hushuffle.network.phones.task import MOST, Figures, Issuer, Place, Step, TaskDocument, refuse_task
from hushuffle.plans import Cluster, Plan
from hushuffle.queries import PlanSpecification, parse_plan
from hushuffle.queries.query import Task
from hushuffle.queries.specification import Network


@dataclass(frozen=True, kw_only=True)
class Services:
    """Who takes part in a task, with public keys: `chain` of scramblers, `targets` by step.

    `token_keys`: base64, the issuer's keys for tokens and tickets of each step.
    """

    relay: str
    chain: tuple[Place, ...]
    targets: tuple[tuple[Place, ...], ...]
    result: Place
    issuer: Issuer
    token_keys: tuple[tuple[str, str], ...]


Centroids = Sequence[Sequence[float]]


def questions(
    specification: PlanSpecification, people: int, centroids: Centroids | None = None
) -> list[dict[str, Any]]:
    """Return what each step of a plan for so many people is, without its services; of k-means each iteration.

    A batch is released when `batch` sources came: as many as an even share of those who are expected.

    Raises:
        UnsupportedProtocolError: phones cannot run it; the message says why.
    """
    asked = asked_of(specification.query, centroids)
    plan = specification.plan(people)
    if not plan.applies:
        refuse_task(f"its traffic has no guarantee. {plan.refusals()[0]}")
    found = list[dict[str, Any]]()
    for cluster, (columns, sizes) in zip((one for one in plan.clusters if one.reads), asked.sets, strict=True):
        found.append({"columns": columns, "sizes": sizes, **_hidden(plan, cluster)})
    return found


def _hidden(plan: Plan, cluster: Cluster) -> dict[str, Any]:
    if cluster.scrambler is None or cluster.sampling is None or cluster.min_batch is None:
        refuse_task("it has no scramblers: give traffic.batch and traffic.dummies")
    if cluster.scrambler.cap is not None:
        refuse_task("traffic.capped = true asks that nobody is missing, which nobody knows of phones")
    return {
        "name": cluster.name,
        "sigma": cluster.sampling.sigma,
        "convention": cluster.sampling.convention,
        "only_on_purpose": plan.coins_known(cluster),
        "dummies": cluster.scrambler.dummies,
        "batch": math.ceil(cluster.sources / cluster.scramblers),
        "min_batch": cluster.min_batch,
        "sources": cluster.sources,
    }


def chain_of(specification: PlanSpecification) -> int:
    """Return how many scramblers a message passes one after the other."""
    return specification.traffic.scramblers or 1


def together(specification: PlanSpecification, steps: int) -> int:
    """Return how many of a plan's steps one task asks: all of them, of k-means one iteration."""
    return 1 if specification.query.task_type.rounds else steps


def draw_task(
    specification: PlanSpecification,
    people: int,
    services: Services,
    *,
    start: dt.datetime | None = None,
    centroids: Centroids | None = None,
) -> TaskDocument:
    """Return the document of a new task of a plan; of k-means that of the first iteration.

    Args:
        specification: of the plan; its [network] with defaults if it has none.
        people: how many are expected to take part; the guarantee does not rest on it, but on `min_batch`.
        services: who takes part.
        start: the moment from which all times are counted; now by default.
        centroids: what k-means starts from; by default the plan's public draw.

    Raises:
        UnsupportedProtocolError: phones cannot run the plan, or its messages are too small; the message says why.
        DataError: the document would be larger than 20,000 bytes, or misses what its plan asks for.
    """
    steps, asked = questions(specification, people, centroids), asked_of(specification.query, centroids)
    count = together(specification, len(steps))
    network = specification.network or Network()
    common: dict[str, Any] = {
        "plan": specification.effective(),
        "figures": _stated(specification, specification.plan(people)),
        "people": people,
        "per_person": asked.per_person,
        "columns": asked.columns,
        "values": asked.values,
        "round": first_round(specification, asked.task, services.token_keys),
        "relay": services.relay,
        "chain": services.chain,
        "issuer": services.issuer,
        "result": services.result,
        "message": network.message,
        "start": utc_text(start or dt.datetime.now(dt.UTC)),
        "collect": network.collect,
        "patience": network.patience,
        "least": network.least,
    }
    fitted = _fitting(len(services.chain), steps, len(asked.values))
    if network.message < fitted:
        refuse_task(f"a message must have {fitted:,} bytes or more: make network.message = {network.message:,} larger")
    parts = zip(steps[:count], services.targets, services.token_keys[:count], strict=True)
    document = TaskDocument(
        **common,
        steps=tuple(
            Step(**step, targets=targets, token_key=token, ticket_key=ticket)
            for step, targets, (token, ticket) in parts
        ),
    )
    size = len(document.content) + longest_growth(document)
    if size > MOST:
        fewer = "partitions" if document.round is None else "centroids, columns or iterations"
        fail(f"the task document has {size:,} bytes, {MOST:,} are allowed: take fewer {fewer}.")
    check_task(document)
    return document


def _stated(specification: PlanSpecification, plan: Plan) -> Figures:
    """Return the figures of a plan, rounded up: another machine may come to another last digit."""
    epsilon, issuer = _figures(plan, specification.targets.delta)
    return Figures(epsilon=_upwards(epsilon), delta=specification.targets.delta, issuer=_upwards(issuer))


def _figures(plan: Plan, delta: float) -> tuple[float, float]:
    """Return the epsilon of a plan, and the one where others' messages may be replaced, with one honest scrambler."""
    from hushuffle.questions.traffic import collusions, plan_guarantee  # noqa: PLC0415 - takes half a second

    return plan_guarantee(plan, delta=delta).upper, collusions(plan, delta=delta)[-2].active.upper


def _upwards(value: float) -> float | None:
    return None if math.isinf(value) else math.ceil(value * (1 + 1e-6) * 1e4) / 1e4


_AROUND: Final = 354 + 2 + 2 + 48
"""Bytes around a record in the seal for its target: token, length, the target's number, the seal itself."""


def _fitting(chain: int, steps: Sequence[Mapping[str, Any]], values: int) -> int:
    record = max(4 * len(step["columns"]) for step in steps) + 8 * values
    return record + _AROUND + 48 * chain


@dataclass(frozen=True, kw_only=True)
class TaskPromise:
    """The plan in a document that keeps it, and what is computed: `task`, by the targets."""

    specification: PlanSpecification
    task: Task
    plan: Plan

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the traffic of the whole plan tells about one person."""
        from hushuffle.questions.traffic import plan_guarantee  # noqa: PLC0415 - half a second that few wait for

        return plan_guarantee(self.plan, delta=self.specification.targets.delta)


def check_task(document: TaskDocument) -> TaskPromise:
    """Return the plan in a document; refuse a document that does something else than its plan.

    Every service looks before it hears anybody: what the guarantee is about is the plan's text, what phones do is said
    by the steps.

    Raises:
        DataError: the document does not keep its plan, or the plan misses its own `targets.epsilon`.
    """
    specification = parse_plan(document.plan, file="the plan in the task document")
    centroids = None if document.round is None else document.round.centroids
    steps, asked = questions(specification, document.people, centroids), asked_of(specification.query, centroids)
    if together(specification, len(steps)) != len(document.steps):
        _refuse(f"its plan has {len(steps)} steps, the document {len(document.steps)}")
    if document.round is not None:
        different = other_round(document.round, specification, asked.task)
        if different:
            _refuse(f"{', '.join(different)} of the iteration are not those of its plan")
        steps = steps[document.round.number - 1 :][:1]
    chain = chain_of(specification)
    if len(document.chain) != chain:
        _refuse(f"its plan has {chain} scramblers one after the other, the document {len(document.chain)}")
    for wanted, step in zip(steps, document.steps, strict=True):
        done = step.model_dump(exclude={"targets", "token_key", "ticket_key"})
        different = [name for name, value in done.items() if wanted[name] != value]
        if different or len(step.targets) != asked.task.targets:
            names = ", ".join(different) or "targets"
            _refuse(f"{names} of the step {step.name!r} are not those of its plan")
    if (document.per_person, document.columns, document.values) != (asked.per_person, asked.columns, asked.values):
        _refuse("per_person, columns or values are not those of its plan")
    promise = TaskPromise(specification=specification, task=asked.task, plan=specification.plan(document.people))
    said, delta = document.figures, specification.targets.delta
    stated = [math.inf if one is None else one for one in (said.epsilon, said.issuer)]
    found = _figures(promise.plan, delta)
    if said.delta != delta or any(one < figure for one, figure in zip(stated, found, strict=True)):
        words = f"epsilon is up to {found[0]:.4g}, and {found[1]:.4g} with the issuer's help, at delta = {delta:g}"
        _refuse(f"{words}, more than its figures say")
    wanted_epsilon = specification.targets.epsilon
    if wanted_epsilon is not None and promise.guarantee.upper > wanted_epsilon:
        _refuse(f"{in_words(promise.guarantee)}, above its own targets.epsilon = {wanted_epsilon:g}")
    return promise


def after(document: TaskDocument, result: Mapping[str, Any]) -> TaskDocument | None:
    """Return the document of the next iteration, when this one's result was published; None if there is none."""
    one = document.round
    if one is None or one.number == one.rounds or "failed" in result:
        return None
    specification = parse_plan(document.plan, file="the plan in the task document")
    return next_task(document, result, steps=questions(specification, document.people, one.centroids))


def _refuse(why: str) -> NoReturn:
    message = f"the task document does not keep what its plan promises: {why}. Nothing is done for it."
    raise DataError(message)
