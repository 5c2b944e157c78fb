"""Queries that ask everybody several times, k-means: each iteration is a task, made from the result of the last."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hushuffle.errors import DataError
from hushuffle.network.phones.task import Round, TaskDocument
from hushuffle.queries import PlanSpecification
from hushuffle.queries.k_means import KMeans, KMeansQuery
from hushuffle.queries.query import Task

ITERATIONS: Final = KMeans.answers
"""Under which name a result lists the iterations that it has."""
NEXT: Final = "next_start"
"""Under which name a result says when the next iteration starts."""
_NUMBER: Final = 25
"""Characters of a number in JSON with its comma, at most."""
_NAMES: Final = 200
"""Characters that a later iteration has more than the first: ids of the first one and the one before."""


def first_round(specification: PlanSpecification, task: Task, keys: Sequence[tuple[str, str]]) -> Round | None:
    """Return what the first task says of its iteration; None for a query that asks once.

    `keys`: the issuer's keys for tokens and tickets of each iteration.
    """
    if not isinstance(task, KMeans):
        return None
    return Round(number=1, keys=tuple(keys), **_fixed(specification, task))


def _fixed(specification: PlanSpecification, task: KMeans) -> dict[str, Any]:
    query = specification.query
    assert isinstance(query, KMeansQuery)
    norm, radius = (None, None) if query.noise is None else (query.noise.kind, query.noise.radius)
    scaled = query.columns is not None
    return {"rounds": query.iterations, "centroids": task.initial, "scaled": scaled, "norm": norm, "radius": radius}


def other_round(one: Round, specification: PlanSpecification, task: Task) -> list[str]:
    """Return in what an iteration is not that of its plan: the first one starts from the plan's public centroids."""
    if not isinstance(task, KMeans):
        return ["rounds"]
    said = one.model_dump()
    wrong = [name for name, value in _fixed(specification, task).items() if said[name] != value]
    if not one.later and one.scaled and specification.query.task() != task:
        wrong.append("centroids")
    return wrong


def longest_growth(document: TaskDocument) -> int:
    """Return how many bytes a later iteration's document may have more than the first one's."""
    if document.round is None:
        return 0
    numbers = [number for centroid in document.round.centroids for number in centroid]
    return _NAMES + sum(_NUMBER - len(repr(number)) for number in numbers)


def next_task(document: TaskDocument, result: Mapping[str, Any], *, steps: Sequence[Mapping[str, Any]]) -> TaskDocument:
    """Return the document of the iteration after one whose result was published: everybody makes the same of it.

    `steps`: those of the plan, of each iteration, as `promise.questions` gives them.

    Raises:
        DataError: the result is none that another iteration starts from.
    """
    one = document.round
    assert one is not None
    assert one.number < one.rounds
    try:
        (answer,) = result[ITERATIONS]
        centroids = tuple(tuple(float(number) for number in centroid) for centroid in answer["centroids"])
        token, ticket = one.keys[one.number]
        changes = {
            "number": hashlib.sha256(b"hushuffle next 1|" + document.id).hexdigest()[:32],
            "start": result[NEXT],
            "round": {
                **one.model_dump(),
                "number": one.number + 1,
                "run": one.run or document.id.hex(),
                "former": document.id.hex(),
                "centroids": centroids,
            },
            "steps": [
                {
                    **document.steps[0].model_dump(),
                    **steps[one.number],
                    "token_key": token,
                    "ticket_key": ticket,
                }
            ],
        }
        return TaskDocument.model_validate(document.model_dump() | changes)
    except (LookupError, TypeError, ValueError):
        message = "the result of an iteration is none that another one starts from."
        raise DataError(message) from None
