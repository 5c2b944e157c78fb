"""Draw the document of a task for phones from a plan and its query, and check that a document matches its plan."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NoReturn

from hushuffle._checks import fail
from hushuffle.model import Guarantee, number
from hushuffle.plans import Cluster, Plan
from hushuffle.tables.labels import parse_condition
from hushuffle_network.fields import utc_text
from hushuffle_network.queries import PlanSpecification, parse_plan
from hushuffle_network.queries.columns import Groups
from hushuffle_network.queries.k_means import KMeans
from hushuffle_network.queries.query import Task
from hushuffle_network.queries.specification import Network
from hushuffle_network.task import (
    MOST,
    Column,
    Figures,
    Group,
    Issuer,
    Place,
    Round,
    Step,
    TaskDocument,
    Value,
    refuse_task,
)

ITERATIONS: Final = KMeans.answers
"""Key of the list of iterations in a result."""
NEXT: Final = "next_start"
"""Key of the start time of the next iteration in a result."""
_NUMBER: Final = 25
"""Largest number of characters of a number in JSON, with its comma."""
_NAMES: Final = 200
"""Additional characters in a later iteration's document: the ids of the first and of the previous iteration."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """The services of a task, with public keys: `chain` lists the scramblers, `targets` the targets of each step.

    `token_keys`: for each step, the issuer's key for tokens and its key for tickets, in base64.
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
    """Return the fields of a plan's steps for `people` people, without services; in k-means, steps are iterations.

    A batch is released when `batch` sources have arrived; the expected people are divided evenly among the batches.
    """
    answerable = specification.query.for_devices(centroids)
    plan = specification.plan(people)
    if not plan.applies:
        refuse_task(f"its traffic has no guarantee. {plan.refusals()[0]}")
    steps = list[dict[str, Any]]()
    for cluster, (columns, sizes) in zip((one for one in plan.clusters if one.reads), answerable.steps, strict=True):
        steps.append({"columns": columns, "sizes": sizes, **_hidden(plan, cluster)})
    return steps


def _hidden(plan: Plan, cluster: Cluster) -> dict[str, Any]:
    """Return the fields of a step that hide the targets of its messages.

    Without scramblers, the plan's guarantee is that of a single message whose sender the observer knows. One service
    still forwards the messages, without dummies and in batches of any size, from which the observer learns no more.
    """
    sampling, scrambler = cluster.sampling, cluster.scrambler
    assert sampling is not None
    if sampling.flood:
        refuse_task("traffic.flood asks each phone for several messages in a step, but a phone has a token for one")
    hidden: dict[str, Any] = {"dummies": 0, "batch": cluster.sources, "min_batch": 1}
    if scrambler is not None:
        batch = math.ceil(cluster.sources / cluster.scramblers)
        capped = None if scrambler.cap is None else True
        hidden = {"dummies": scrambler.dummies, "batch": batch, "min_batch": cluster.min_batch, "capped": capped}
    return {
        "name": cluster.name,
        "sigma": sampling.sigma,
        "convention": sampling.convention,
        "only_on_purpose": plan.coins_known(cluster),
        "capped": None,
        **hidden,
        "sources": cluster.sources,
    }


def together(specification: PlanSpecification, steps: int) -> int:
    """Return how many of a plan's steps one task has: all steps or, in k-means, one iteration."""
    return 1 if specification.query.task_type.rounds else steps


def draw_task(
    specification: PlanSpecification,
    people: int,
    services: Services,
    *,
    start: dt.datetime | None = None,
    centroids: Centroids | None = None,
) -> TaskDocument:
    """Return the document of a new task for a plan; in k-means, the document of the first iteration.

    `people`: the expected number of participants; the guarantee depends on `min_batch` instead.
    `start`: the moment from which all times are counted; now by default.
    `centroids`: the start centroids of k-means; by default those of the plan's public draw.
    """
    steps, answerable = questions(specification, people, centroids), specification.query.for_devices(centroids)
    count, iteration = together(specification, len(steps)), _iteration(specification, answerable.task)
    network, delta = specification.network or Network(), specification.targets.delta
    epsilon, issuer = _figures(specification.plan(people), delta)
    common: dict[str, Any] = {
        "plan": specification.effective(),
        "figures": Figures(epsilon=_upwards(epsilon), delta=delta, issuer=_upwards(issuer)),
        "people": people,
        "per_person": answerable.per_person,
        "columns": _columns(answerable.columns),
        "values": _values(answerable.values),
        "round": None if iteration is None else Round(number=1, keys=services.token_keys, **iteration),
        "relay": services.relay,
        "chain": services.chain,
        "issuer": services.issuer,
        "result": services.result,
        "start": utc_text(start or dt.datetime.now(dt.UTC)),
        **network.model_dump(),
    }
    record = max(4 * len(step["columns"]) for step in steps) + 8 * len(answerable.values)
    fitted = record + _AROUND + 48 * len(services.chain)
    if network.message < fitted:
        refuse_task(f"a message must have {fitted:,} bytes or more: raise network.message from {network.message:,}")
    parts = zip(steps[:count], services.targets, services.token_keys[:count], strict=True)
    drawn = tuple(
        Step(**step, targets=targets, token_key=token, ticket_key=ticket) for step, targets, (token, ticket) in parts
    )
    document = TaskDocument(**common, steps=drawn)
    numbers = [] if document.round is None else [one for centroid in document.round.centroids for one in centroid]
    later = _NAMES + sum(_NUMBER - len(repr(number)) for number in numbers) if numbers else 0
    size = len(document.content) + later
    if size > MOST:
        fewer = "partitions" if document.round is None else "centroids, columns or iterations"
        fail(f"the task document has {size:,} bytes, but at most {MOST:,} are allowed: choose fewer {fewer}.")
    check_task(document)
    return document


def _iteration(specification: PlanSpecification, task: Task) -> dict[str, Any] | None:
    """Return the fields of a query's iteration that its plan determines; None for a query without iterations."""
    shared = specification.query.iteration
    if shared is None or task.start is None:
        return None
    return {**shared, "centroids": tuple(map(tuple, task.start.tolist()))}


def _figures(plan: Plan, delta: float) -> tuple[float, float]:
    """Return the epsilon with one honest scrambler, and the epsilon if other people's messages may also be replaced."""
    from hushuffle.questions.traffic import collusions, plan_guarantee  # noqa: PLC0415 - takes half a second

    epsilon, colluding = plan_guarantee(plan, delta=delta).upper, collusions(plan, delta=delta)
    return epsilon, colluding[-2].active.upper if colluding else epsilon  # without scramblers nobody's messages help


def _upwards(value: float) -> float | None:
    """Return a figure rounded up, since another machine may compute another last digit; None for infinity."""
    return None if math.isinf(value) else math.ceil(value * (1 + 1e-6) * 1e4) / 1e4


_AROUND: Final = 354 + 2 + 2 + 48
"""Bytes that a target's seal adds to a record: token, record length, target's number, and the seal itself."""


@dataclass(frozen=True, kw_only=True)
class TaskPromise:
    """The plan of a document that matches it; `task` is the computation that targets run."""

    specification: PlanSpecification
    plan: Plan
    task: Task

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee for one person against an observer of all traffic."""
        # Imported here: the import takes half a second, which services of a plan without a target do not need.
        from hushuffle.questions.traffic import plan_guarantee  # noqa: PLC0415

        return plan_guarantee(self.plan, delta=self.specification.targets.delta)

    @property
    def in_words(self) -> str:
        return f"epsilon is up to {number(self.guarantee.upper, up=True)} at delta = {self.guarantee.delta:g}"


def check_task(document: TaskDocument) -> TaskPromise:
    """Return the plan in a document; refuse a document that differs from its plan, or misses `targets.epsilon`.

    Every service makes this check before it accepts messages: the guarantee holds for the text of the plan, whereas
    phones follow the steps of the document.
    """
    specification = parse_plan(document.plan, file="the plan in the task document")
    centroids = None if document.round is None else document.round.centroids
    steps = questions(specification, document.people, centroids)
    answerable = specification.query.for_devices(centroids)
    if together(specification, len(steps)) != len(document.steps):
        _refuse(f"the plan has {len(steps)} steps, but the document has {len(document.steps)}")
    if document.round is not None:
        different = _other_fields(document.round, specification, answerable.task)
        if different:
            _refuse(f"{', '.join(different)} of the iteration differ from the plan")
        steps = steps[document.round.number - 1 :][:1]
    chain = specification.traffic.scramblers or 1
    if len(document.chain) != chain:
        _refuse(f"the plan has a chain of {chain} scramblers, but the document has {len(document.chain)}")
    for wanted, step in zip(steps, document.steps, strict=True):
        done = step.model_dump(exclude={"targets", "token_key", "ticket_key"})
        different = [name for name, value in done.items() if wanted[name] != value]
        if different or len(step.targets) != answerable.task.targets:
            names = ", ".join(different) or "targets"
            _refuse(f"{names} of the step {step.name!r} differ from the plan")
    planned = answerable.per_person, _columns(answerable.columns), _values(answerable.values)
    if (document.per_person, document.columns, document.values) != planned:
        _refuse("per_person, columns or values differ from the plan")
    promise = TaskPromise(specification=specification, task=answerable.task, plan=specification.plan(document.people))
    figures, delta = document.figures, specification.targets.delta
    stated = [math.inf if one is None else one for one in (figures.epsilon, figures.issuer)]
    bounds = _figures(promise.plan, delta)
    if figures.delta != delta or any(one < figure for one, figure in zip(stated, bounds, strict=True)):
        words = f"epsilon is up to {bounds[0]:.4g}, and {bounds[1]:.4g} with the issuer's help, at delta = {delta:g}"
        _refuse(f"{words}, more than the figures in the document")
    wanted_epsilon = specification.targets.epsilon
    if wanted_epsilon is not None and promise.guarantee.upper > wanted_epsilon:
        _refuse(f"{promise.in_words}, above targets.epsilon = {wanted_epsilon:g}")
    return promise


def _other_fields(iteration: Round, specification: PlanSpecification, task: Task) -> list[str]:
    """Return the names of the fields of an iteration that differ from its plan; ["rounds"] if the plan has none."""
    planned, fields = _iteration(specification, task), iteration.model_dump()
    if planned is None:
        return ["rounds"]
    wrong = [name for name, value in planned.items() if fields[name] != value]
    if not iteration.later and iteration.scaled and specification.query.task() != task:
        wrong.append("centroids")
    return wrong


def after(document: TaskDocument, result: Mapping[str, Any]) -> TaskDocument | None:
    """Return the document of the next iteration after a published result; None if there is no next iteration.

    Every service derives the same document.
    """
    iteration = document.round
    if iteration is None or iteration.number == iteration.rounds or "failed" in result:
        return None
    specification = parse_plan(document.plan, file="the plan in the task document")
    steps = questions(specification, document.people, iteration.centroids)
    try:
        (answer,) = result[ITERATIONS]
        (token, ticket), step = iteration.keys[iteration.number], steps[iteration.number]
        following = {
            "number": iteration.number + 1,
            "run": iteration.run or document.id.hex(),
            "former": document.id.hex(),
            "centroids": tuple(tuple(float(number) for number in centroid) for centroid in answer["centroids"]),
        }
        changes = {
            "number": hashlib.sha256(b"hushuffle next 1|" + document.id).hexdigest()[:32],
            "start": result[NEXT],
            "round": iteration.model_dump() | following,
            "steps": [{**document.steps[0].model_dump(), **step, "token_key": token, "ticket_key": ticket}],
        }
        return TaskDocument.model_validate(document.model_dump() | changes)
    except (LookupError, TypeError, ValueError):
        fail("the result of this iteration cannot start another iteration.")


def _refuse(why: str) -> NoReturn:
    fail(f"the task document does not match its plan: {why}. The service refused the task.")


def _columns(categories: Mapping[str, Groups]) -> tuple[Column, ...]:
    return tuple(Column(name=name, groups=tuple(_groups(groups))) for name, groups in categories.items())


def _groups(groups: Groups) -> list[Group]:
    if not isinstance(groups, Mapping):
        return [Group(name=label, when=((("==", label),),)) for label in groups]
    parsed: dict[str, Any] = {name: parse_condition(text).alternatives for name, text in groups.items()}
    return [
        Group(name=name, when=tuple(tuple((one.operator, one.value) for one in clauses) for clauses in alternatives))
        for name, alternatives in parsed.items()
    ]


def _values(ranges: Mapping[str, tuple[float, float] | None]) -> tuple[Value, ...]:
    return tuple(
        Value(name=name) if ends is None else Value(name=name, low=ends[0], high=ends[1])
        for name, ends in ranges.items()
    )
