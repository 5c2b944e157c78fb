"""The bytes of a task for phones as they were at the freeze: its document, the records of phones, the targets' figures.

Keys are random; the document has fixed ones.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from hushuffle.randomness import reproducible
from hushuffle_network.promise import Services, check_task, draw_task
from hushuffle_network.queries import parse_plan
from hushuffle_network.task import Issuer, Place, TaskDocument, names_of

_AGGREGATE: Final = """
kind = "aggregate"
generated = {{ people = 60 }}
columns = {{ age = 6, sex = ["a", "b", "c"] }}
grouping_sets = [["age"], ["sex", "age"]]
values = ["x", "y"]
ranges = {{ x = [0, 200], y = [-1, 1] }}
functions = ["count", "sum", "avg", "min", "max"]
partitions = 3
per_person = "{}"
"""
_K_MEANS: Final = """
kind = "k-means"
generated = {{ people = 60, dimensions = 3 }}
centroids = 3
iterations = 2
variant = "{}"
"""
_QUERIES: Final = {
    "all": _AGGREGATE.format("all"),
    "one": _AGGREGATE.format("one"),
    "public": _K_MEANS.format("public-centroids"),
    "private": _K_MEANS.format("private-centroids") + 'noise = { kind = "gaussian", radius = 1.0, scale = 4.0 }',
    "grid": """
kind = "histogram"
generated = { people = 60 }
columns = { age = { low = 0, high = 60, intervals = 4 }, bmi = { low = 10, high = 40, intervals = 3 } }
partitions = 3
""",
}
_TRAFFIC: Final = {"scr": "dummies = 3\nbatch = 20", "cap": "dummies = 3\nbatch = 20\ncapped = true", "bare": ""}
FROZEN: Final = {
    "all/scr": ("e4b5fda7757063ea", "5324aa6c788af48c", "465eac5fdb034b7b"),
    "all/cap": ("706800803580d3fd", "5324aa6c788af48c", "465eac5fdb034b7b"),
    "all/bare": ("b9a7b0f5de07df0d", "5324aa6c788af48c", "465eac5fdb034b7b"),
    "one/scr": ("491f73d6483ef7d7", "5324aa6c788af48c", "465eac5fdb034b7b"),
    "one/cap": ("6942de58a9c6cb4d", "5324aa6c788af48c", "465eac5fdb034b7b"),
    "one/bare": ("cb1479f3da592dae", "5324aa6c788af48c", "465eac5fdb034b7b"),
    "public/scr": ("63abb1850c5b0e2f", "f8e3776d707468c6", "6450e64461482d85"),
    "public/cap": ("c6ae0030c21a75b2", "f8e3776d707468c6", "6450e64461482d85"),
    "public/bare": ("cb7418109243b8a9", "f8e3776d707468c6", "6450e64461482d85"),
    "private/scr": ("2a11eedf5cf2908d", "811b684dbbb78d51", "65e993c8945f01a3"),
    "private/cap": ("649b7711eaeb6265", "811b684dbbb78d51", "65e993c8945f01a3"),
    "private/bare": ("1abe8423a29c192e", "811b684dbbb78d51", "65e993c8945f01a3"),
    "grid/scr": ("353ba6657bbe3ea7", "3dcb7700ec4ca694", "655bf57d53a70fd9"),
    "grid/cap": ("91e728532f119e53", "3dcb7700ec4ca694", "655bf57d53a70fd9"),
    "grid/bare": ("9e44d59e20c5cdef", "3dcb7700ec4ca694", "655bf57d53a70fd9"),
}
"""Digests of the document, of the records with their targets, and of the figures that targets report."""


def _digest(what: object) -> str:
    return hashlib.sha256(what if isinstance(what, bytes) else repr(what).encode()).hexdigest()[:16]


def _services(targets: int, steps: int, task_steps: int) -> Services:
    places = {
        name: Place(name=name, url=f"https://{name}.example", key=f"{number:064x}", sign=f"{number:064x}")
        for number, name in enumerate(names_of([targets] * task_steps, 1), 1)
    }
    return Services(
        relay="https://relay.example/",
        chain=(places["scrambler-1"],),
        targets=tuple(
            tuple(places[f"target-{step}-{target}"] for target in range(1, targets + 1))
            for step in range(1, task_steps + 1)
        ),
        result=places["result"],
        issuer=Issuer(name="issuer.example", url="https://issuer.example"),
        token_keys=((base64.b64encode(bytes(340)).decode(),) * 2,) * steps,
    )


def _written(query: str, traffic: str) -> tuple[TaskDocument, list[object], list[bytes]]:
    """Return the document of a task, the records of all phones in it, and the targets' figures from these records."""
    specification = parse_plan(f"[query]\n{query}\n[traffic]\nsigma = 0.3\n{traffic}\n[targets]\ndelta = 1e-6\n")
    found, rounds = specification.query.records(Path()), specification.query.task_type.rounds
    start = None if found.start is None else found.start.tolist()
    moment = dt.datetime(2026, 5, 1, 10, tzinfo=dt.UTC)
    steps = sum(bool(cluster.reads) for cluster in specification.plan(found.n).clusters)
    services = _services(3, steps, 1 if rounds else steps)
    document = draw_task(specification, found.n, services, start=moment, centroids=start)
    document = TaskDocument.model_validate(document.model_dump() | {"number": "ab" * 16})
    task = check_task(document).task
    records, figures = list[object](), list[bytes]()
    for step in range(1, len(document.steps) + 1):
        own, contents = task.own(step, found.rows, task.start).tolist(), task.pack(step, found.rows)
        records += [(step, target, content.hex()) for target, content in zip(own, contents, strict=True)]
        for target in range(task.targets):
            mine = [content for content, other in zip(contents, own, strict=True) if other == target]
            if rounds:
                mine = [np.array(point).tobytes() for point in ([0.5, 0.25, 0.125], [0.25, 0.5, 0.0])]
            merged = task.merge(step, task.empty(step), mine, [True] * len(mine))
            figures.append(task.tell(step, target, merged, reproducible(target)).tobytes())
    return document, records, figures


@pytest.mark.parametrize("name", FROZEN)
def test_the_bytes_of_a_task_are_those_of_the_freeze(name: str) -> None:
    query, _, traffic = name.partition("/")
    document, records, figures = _written(_QUERIES[query], _TRAFFIC[traffic])
    assert (_digest(document.content), _digest(records), _digest(figures)) == FROZEN[name]
