"""The section [query.noise] of an aggregate: noise on the releases, and its requirements on the query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from hushuffle.errors import Problem
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.queries.query import table
from hushuffle.specification._base import Section


class ReleaseNoise(Section):
    """Discrete Laplace noise on counts and sums, added before they leave a compute node."""

    epsilon: Annotated[float, Field(ge=1e-4, le=LARGEST_EPSILON)]
    """Epsilon of all results about one person, over all grouping sets, in nats, for any adversary."""


def noise_problems(query: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of an aggregate query with noise on its results."""
    functions, values = query.get("functions", ("count",)), query.get("values", ())
    if "noise" not in query or not all(isinstance(given, list | tuple) for given in (functions, values)):
        return
    extremes = [name for name in functions if name in ("min", "max")]
    if extremes:
        hint = "A minimum or maximum is the value of one person, which noise of a fixed size cannot hide."
        rule = "must be count, sum or avg if results have noise"
        yield Problem(key="query.functions", rule=rule, value=", ".join(extremes), hint=hint)
    bare = [str(name) for name in values if str(name) not in table(query, "ranges")]
    if bare and not {"sum", "avg"}.isdisjoint(map(str, functions)):
        hint = (
            "Noise must hide what one person adds to a sum. Set ranges, for example ranges = { income = [0, 200_000] }."
        )
        rule = "must include every column of values if results have noise"
        yield Problem(key="query.ranges", rule=rule, value=f"nothing for {', '.join(bare)}", hint=hint)
