"""Rules that tie several values of a plan's specification together; they read plain tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from hushuffle.errors import Problem


def plan_problems(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield every broken rule; values of the wrong type are passed over (they are problems of their own)."""
    query = _table(raw, "query")
    if query.get("kind") in ("aggregate", "k-means"):
        given = [key for key in ("data", "generated") if key in query]
        if len(given) != 1:
            hint = "" if given else "For example generated = { people = 10_000 }."
            value = "both" if given else "neither"
            yield Problem(key="query", rule="must have either data or generated", value=value, hint=hint)
    if query.get("kind") == "aggregate":
        yield from _columns(query)
        yield from _grouping_sets(query)
        yield from _values(query)
    if query.get("kind") == "k-means":
        yield from _ranges(query)
        yield from _noise(query)
    yield from _traffic(_table(raw, "traffic"))


def _columns(query: Mapping[str, Any]) -> Iterator[Problem]:
    for name, column in _table(query, "columns").items():
        here = f"query.columns.{name}"
        if isinstance(column, int) and "data" in query:
            hint = "Give a list of labels, a table of conditions, or { low, high, intervals }."
            yield Problem(key=here, rule="must say which values make a group of data", value=f"{column}", hint=hint)
        if isinstance(column, list | tuple) and len({str(label) for label in column}) < max(len(column), 2):
            yield Problem(key=here, rule="must be two or more different labels", value=f"{len(column)}")
        if isinstance(column, dict) and not isinstance(column.get("intervals"), int) and len(column) < 2:
            yield Problem(key=here, rule="must be two or more groups", value=f"{len(column)}")
        low, high = (column.get(end) if isinstance(column, dict) else None for end in ("low", "high"))
        if isinstance(low, int | float) and isinstance(high, int | float) and not low < high:
            yield Problem(key=here, rule="must have low < high", value=f"{low} and {high}")


def _grouping_sets(query: Mapping[str, Any]) -> Iterator[Problem]:
    columns, sets = _table(query, "columns"), _lists(query, "grouping_sets")
    for place, names in enumerate(sets):
        here = f"query.grouping_sets[{place}]"
        unknown = [str(name) for name in names if not (isinstance(name, str) and name in columns)]
        if unknown and "columns" in query:
            hint = "Say in [query.columns] how its values fall into groups."
            yield Problem(key=here, rule="must name grouping columns", value=", ".join(unknown), hint=hint)
        if not names or len(set(map(str, names))) < len(names):
            yield Problem(
                key=here, rule="must be one or more different columns", value=", ".join(map(str, names)) or "none"
            )
        if names in sets[:place]:
            yield Problem(key=here, rule="must be there once", value=", ".join(map(str, names)))
    sizes = {name: _size(column) for name, column in columns.items()}
    groups = [math.prod(sizes.get(str(name)) or 0 for name in names) for names in sets if names]
    partitions = query.get("partitions")
    if isinstance(partitions, int) and 0 < min(groups, default=0) < partitions:
        rule = f"must be at most the {min(groups):,} groups of the smallest grouping set"
        yield Problem(key="query.partitions", rule=rule, value=f"{partitions}")


def _values(query: Mapping[str, Any]) -> Iterator[Problem]:
    given = query.get("values", ())
    values = list(map(str, given)) if isinstance(given, list | tuple) else []
    functions = query.get("functions", ("count",))
    more = [name for name in functions if name != "count"] if isinstance(functions, list | tuple) else []
    if more and not values:
        value = ", ".join(str(name) for name in more)
        yield Problem(key="query.values", rule="must be given with these functions", value=value)
    if len(set(values)) < len(values):
        yield Problem(key="query.values", rule="must be different columns", value=", ".join(values))
    both = [name for name in values if name in _table(query, "columns")]
    if both:
        hint = "A column cannot both make groups and be summed up; make a copy of it under another name."
        value = ", ".join(both)
        yield Problem(key="query.values", rule="must be other columns than those of groups", value=value, hint=hint)
    unknown = [str(name) for name in _table(query, "ranges") if name not in values]
    if unknown:
        yield Problem(key="query.ranges", rule="must be of columns in values", value=", ".join(unknown))
    yield from _ends(query, "ranges")


def _ranges(query: Mapping[str, Any]) -> Iterator[Problem]:
    if "columns" in query and "data" not in query:
        yield Problem(key="query.columns", rule="must come with data", value="no data")
    yield from _ends(query, "columns")


def _ends(query: Mapping[str, Any], key: str) -> Iterator[Problem]:
    for name, ends in _table(query, key).items():
        numbers = isinstance(ends, list | tuple) and all(type(end) in (int, float) for end in ends)
        if numbers and len(ends) == 2 and not ends[0] < ends[1]:
            yield Problem(key=f"query.{key}.{name}", rule="must be [low, high], low first", value=f"{list(ends)}")


def _noise(query: Mapping[str, Any]) -> Iterator[Problem]:
    private = query.get("variant") == "private-centroids"
    if private and "noise" not in query:
        hint = 'For example noise = { kind = "gaussian", radius = 1.5, scale = 20.0 }.'
        yield Problem(key="query.noise", rule="must be given with private centroids", value="nothing", hint=hint)
    if not private and "noise" in query and "variant" in query:
        yield Problem(key="query.noise", rule="must be left out without private centroids", value="a table")


def _traffic(traffic: Mapping[str, Any]) -> Iterator[Problem]:
    scramblers = [key for key in ("dummies", "batch") if key in traffic]
    flood = traffic.get("flood", 0)
    if scramblers and isinstance(flood, int) and flood > 0:
        hint = "Let the scramblers add more dummies instead."
        yield Problem(key="traffic.flood", rule="must be 0 behind scramblers", value=f"{flood}", hint=hint)
    batch, least = traffic.get("batch"), traffic.get("min_batch")
    if least is not None and not scramblers:
        hint = "Give batch and dummies."
        yield Problem(key="traffic.min_batch", rule="must be left out without scramblers", value=f"{least}", hint=hint)
    if isinstance(batch, int) and isinstance(least, int) and least > batch:
        yield Problem(key="traffic.min_batch", rule=f"must be at most batch = {batch}", value=f"{least}")
    if traffic.get("capped") is True and not scramblers:
        hint = "Give batch and dummies."
        yield Problem(key="traffic.capped", rule="must be false without scramblers", value="true", hint=hint)


def _size(column: Any) -> int | None:
    """Return the number of groups of a column, if it can be told."""
    if isinstance(column, dict) and isinstance(column.get("intervals"), int):
        return int(column["intervals"])
    if isinstance(column, dict | list | tuple):
        return len(column)
    return column if isinstance(column, int) else None


def _table(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = raw.get(key)
    return found if isinstance(found, dict) else {}


def _lists(raw: Mapping[str, Any], key: str) -> list[list[Any]]:
    found = raw.get(key)
    tables = found if isinstance(found, list | tuple) else ()
    return [list(one) for one in tables if isinstance(one, list | tuple)]
