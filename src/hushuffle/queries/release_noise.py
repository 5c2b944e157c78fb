"""The section [query.noise] of an aggregate: noise on what is released, and what it asks of the query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from hushuffle.errors import Problem
from hushuffle.mechanisms.randomizers.settings import LARGEST_EPSILON
from hushuffle.queries.query import table
from hushuffle.specification._base import Section


class ReleaseNoise(Section):
    """Discrete Laplace noise on counts and sums, added before they leave a compute node."""

    epsilon: Annotated[float, Field(ge=1e-4, le=LARGEST_EPSILON)]
    """What all released results together may tell about one person, in nats, whatever else is known."""


def noise_problems(query: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what stands in the way of noise on the results of an aggregate."""
    functions, values = query.get("functions", ("count",)), query.get("values", ())
    if "noise" not in query or not all(isinstance(given, list | tuple) for given in (functions, values)):
        return
    extremes = [name for name in functions if name in ("min", "max")]
    if extremes:
        hint = "The least and the greatest are one person's own value: noise of a fixed size does not hide it."
        rule = "must be count, sum or avg where results have noise"
        yield Problem(key="query.functions", rule=rule, value=", ".join(extremes), hint=hint)
    bare = [str(name) for name in values if str(name) not in table(query, "ranges")]
    if bare and not {"sum", "avg"}.isdisjoint(map(str, functions)):
        hint = "For example ranges = { income = [0, 200_000] }: how much one person can change decides the noise."
        rule = "must have every column of values where results have noise"
        yield Problem(key="query.ranges", rule=rule, value=f"nothing for {', '.join(bare)}", hint=hint)
