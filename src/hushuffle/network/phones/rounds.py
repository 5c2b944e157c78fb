"""The iterations of k-means: each iteration is a task, derived from the result of the previous iteration."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hushuffle._checks import fail
from hushuffle.network.phones.task import Round, TaskDocument
from hushuffle.queries import PlanSpecification
from hushuffle.queries.k_means import KMeans, KMeansQuery
from hushuffle.queries.query import Task

ITERATIONS: Final = KMeans.answers
"""Key of the list of iterations in a result."""
NEXT: Final = "next_start"
"""Key of the start time of the next iteration in a result."""
_NUMBER: Final = 25
"""Largest number of characters of a number in JSON, with its comma."""
_NAMES: Final = 200
"""Additional characters in a later iteration's document: the ids of the first and of the previous iteration."""


def first_round(specification: PlanSpecification, task: Task, keys: Sequence[tuple[str, str]]) -> Round | None:
    """Return the first iteration of a k-means query, or None; `keys`: each iteration's keys for tokens and tickets."""
    if not isinstance(task, KMeans):
        return None
    return Round(number=1, keys=tuple(keys), **_fixed(specification, task))


def _fixed(specification: PlanSpecification, task: KMeans) -> dict[str, Any]:
    query = specification.query
    assert isinstance(query, KMeansQuery)
    norm, radius = (None, None) if query.noise is None else (query.noise.kind, query.noise.radius)
    scaled = query.columns is not None
    return {"rounds": query.iterations, "centroids": task.initial, "scaled": scaled, "norm": norm, "radius": radius}


def other_round(iteration: Round, specification: PlanSpecification, task: Task) -> list[str]:
    """Return the names of the fields of an iteration that differ from its plan; ["rounds"] if the task is not k-means.

    With scaled values, the first iteration must start from the plan's public centroids.
    """
    if not isinstance(task, KMeans):
        return ["rounds"]
    fields = iteration.model_dump()
    wrong = [name for name, value in _fixed(specification, task).items() if fields[name] != value]
    if not iteration.later and iteration.scaled and specification.query.task() != task:
        wrong.append("centroids")
    return wrong


def longest_growth(document: TaskDocument) -> int:
    """Return the largest number of bytes by which a later iteration's document can exceed the first one's."""
    if document.round is None:
        return 0
    numbers = [number for centroid in document.round.centroids for number in centroid]
    return _NAMES + sum(_NUMBER - len(repr(number)) for number in numbers)


def next_task(document: TaskDocument, result: Mapping[str, Any], *, steps: Sequence[Mapping[str, Any]]) -> TaskDocument:
    """Return the document of the iteration after a published result; every service derives the same document.

    `steps`: the fields of the plan's steps, one for each iteration, as `promise.questions` returns them.
    """
    iteration = document.round
    assert iteration is not None
    assert iteration.number < iteration.rounds
    try:
        (answer,) = result[ITERATIONS]
        centroids = tuple(tuple(float(number) for number in centroid) for centroid in answer["centroids"])
        token, ticket = iteration.keys[iteration.number]
        changes = {
            "number": hashlib.sha256(b"hushuffle next 1|" + document.id).hexdigest()[:32],
            "start": result[NEXT],
            "round": {
                **iteration.model_dump(),
                "number": iteration.number + 1,
                "run": iteration.run or document.id.hex(),
                "former": document.id.hex(),
                "centroids": centroids,
            },
            "steps": [
                {**document.steps[0].model_dump(), **steps[iteration.number], "token_key": token, "ticket_key": ticket}
            ],
        }
        return TaskDocument.model_validate(document.model_dump() | changes)
    except (LookupError, TypeError, ValueError):
        fail("the result of this iteration cannot start another iteration.")
