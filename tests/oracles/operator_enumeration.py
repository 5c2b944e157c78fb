"""Small plans of operators, enumerated in rationals from the meaning of the operators alone.

Operators are tables as in a file, people are rows of labels. A person sends one message for each group, for each side
of a join, and for each round of an iterate in which it takes part; messages of rows that are not selected go to a node
of their own. Released counts have two-sided geometric noise, moved into the possible range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from oracles.plan_enumeration import Outcomes, Stage, noisy_counts, scrambled, seen_senders

Row = Mapping[str, str]
Operators = Sequence[Mapping[str, Any]]


def is_selected(operators: Operators, name: str, row: Row) -> bool:
    """Return whether a row is in the result of the select of that name."""
    for operator in operators:
        if operator["name"] == name and operator["kind"] == "select":
            here = all(row[column] in labels for column, labels in operator["where"].items())
            return here and is_selected(operators, operator.get("of", "people"), row)
    return True


def selects(operators: Operators, name: str) -> bool:
    return any(operator["name"] == name and operator["kind"] == "select" for operator in operators)


def sent(
    operators: Operators, columns: Mapping[str, list[str]], source: str, by: Sequence[str], nodes: int, discards: bool
) -> Any:
    """Return the function from a row to its node; the last node discards."""

    def node(row: Row) -> int:
        if not is_selected(operators, source, row):
            assert discards
            return nodes
        code, groups = 0, 1
        for column in by:
            code = code * len(columns[column]) + columns[column].index(row[column])
            groups *= len(columns[column])
        return code * nodes // groups

    return node


def stages_of(
    operators: Operators,
    columns: Mapping[str, list[str]],
    *,
    people: int,
    sigma: Fraction,
    dummies: int | None,
    ratio: Fraction | None = None,
) -> list[Stage]:
    """Return the stages of the plan; with `ratio` every aggregate releases its counts with noise.

    People of an iterate with `per_person` are in consecutive parts of sizes that differ by at most one, larger ones
    first.
    """
    stages: list[Stage] = []

    def send(node: Any, targets: int, part: range) -> Stage:
        def stage(data: Sequence[Row], _views: Any, _hidden: Any) -> Outcomes:
            truths = [node(data[place]) for place in part]
            if dummies is None:
                return seen_senders(truths, targets, sigma, lucky=ratio is None)
            return scrambled(truths, targets, sigma, dummies=dummies, lucky=ratio is None)

        return stage

    def release(nodes: list[Any], groups: list[Any], most: Sequence[int], limit: int, size: int) -> Stage:
        first = len(stages) - len(groups)

        def stage(data: Sequence[Row], _views: Any, hidden: Any) -> Outcomes:
            counts = []
            for key in range(size):
                product = 1
                for side, group in enumerate(groups):
                    arrived = hidden[first + side]
                    here = sum(1 for row, came in zip(data, arrived, strict=True) if came and group(row) == key)
                    product *= min(here, most[side])
                counts.append(product)
            assert ratio is not None
            return {(view, None): chance for view, chance in noisy_counts(counts, limit, ratio).items()}

        del nodes
        return stage

    for operator in operators:
        if operator["kind"] not in ("group", "join"):
            continue
        join = operator["kind"] == "join"
        user = next(one for one in operators if one.get("of") == operator["name"])
        sides = operator["of"] if join else [operator.get("of", "people")]
        keys = [[key] for key in operator["by"]] if join else [operator["by"]]
        nodes, discards = operator["nodes"], any(selects(operators, side) for side in sides)
        size = 1
        for column in keys[0]:
            size *= len(columns[column])
        senders = [sent(operators, columns, side, key, nodes, discards) for side, key in zip(sides, keys, strict=True)]
        groups = [sent(operators, columns, side, key, size, discards) for side, key in zip(sides, keys, strict=True)]
        rounds = user.get("rounds", 1)
        turns = rounds // user.get("per_person", rounds)
        for number in range(rounds):
            large, small = people % turns, people // turns
            start = sum(small + (part < large) for part in range(number % turns))
            part = range(start, start + small + (number % turns < large))
            stages += [send(node, nodes + discards, part) for node in senders]
        if ratio is not None:
            most = operator.get("most", [people])
            limit = 1
            for one in most:
                limit *= min(one, people)
            stages.append(release(senders, groups, most, limit, size))
    return stages
