"""The rules on combinations of operators: what each may use, and which values fit together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from hushuffle.errors import InvalidInputError, Problem
from hushuffle.plans.result_noise import noise_problem
from hushuffle_network.queries.operators import (
    PEOPLE,
    AggregateOperator,
    AnyOperator,
    Graph,
    GroupOperator,
    IterateOperator,
    JoinOperator,
    SelectOperator,
)

_INPUTS: Final = {
    "select": ("select",),
    "group": ("select",),
    "join": ("select",),
    "aggregate": ("group", "join"),
    "iterate": ("group",),
}
"""The kinds of operators whose results each kind may use; a kind that may use a select may use the people too."""
_HIDDEN: Final = (
    "A message of a person may depend only on the person's own row and on public values. If its target depended on "
    "the hidden contents of a node, one person could move the messages of all others."
)


def operator_problems(graph: Graph) -> Iterator[Problem]:
    """Yield every broken rule, in the order of the operators.

    >>> group = GroupOperator(kind="group", name="by age", by=("age",), nodes=2)
    >>> graph = Graph(operators=(group,), categories={"age": ("young", "old")}, ranges={})
    >>> [problem.rule for problem in operator_problems(graph)]
    ['must be used by exactly one later aggregate or iterate']
    """
    earlier: dict[str, str] = {}
    uses = Counter(name for operator in graph.operators for name in inputs(operator))
    for place, operator in enumerate(graph.operators):
        here = f"query.operators[{place}]"
        if operator.name in earlier or operator.name in (PEOPLE, "result"):
            yield Problem(key=f"{here}.name", rule="must differ from other names", value=operator.name)
        yield from _used(operator, here, earlier)
        if operator.kind in ("group", "join") and uses[operator.name] != 1:
            rule, value = "must be used by exactly one later aggregate or iterate", f"{uses[operator.name]} of them"
            yield Problem(key=f"{here}.name", rule=rule, value=value)
        if operator.kind == "select" and not uses[operator.name]:
            rule = "must be used by a later group, join or select"
            yield Problem(key=f"{here}.name", rule=rule, value="no operator")
        earlier[operator.name] = operator.kind
        match operator.kind:
            case "select":
                yield from _labels(graph, operator, here)
            case "group" | "join":
                yield from _keys(graph, operator, here)
            case "aggregate":
                yield from _functions(graph, operator, here)
            case "iterate":
                yield from _rounds(graph, operator, here)


def inputs(operator: AnyOperator) -> tuple[str, ...]:
    """Return the names that an operator uses."""
    return operator.of if operator.kind == "join" else (operator.of,)


def _used(operator: AnyOperator, here: str, earlier: Mapping[str, str]) -> Iterator[Problem]:
    allowed = _INPUTS[operator.kind]
    people = "select" in allowed
    rule = f"must be {f'{PEOPLE}, or ' if people else ''}the name of an earlier {' or '.join(allowed)}"
    for name in inputs(operator):
        if not (name == PEOPLE and people) and earlier.get(name) not in allowed:
            hint = _HIDDEN if people and name in earlier else ""
            yield Problem(key=f"{here}.of", rule=rule, value=name, hint=hint)


def _labels(graph: Graph, select: SelectOperator, here: str) -> Iterator[Problem]:
    for column, labels in select.where.items():
        groups = graph.categories.get(column)
        if groups is None:
            yield Problem(key=f"{here}.where", rule="must name columns of query.columns", value=column)
            continue
        for label in labels:
            if label not in groups:
                rule = f"must have labels among {', '.join(list(groups)[:10])}"
                yield Problem(key=f"{here}.where.{column}", rule=rule, value=label)


def _keys(graph: Graph, operator: GroupOperator | JoinOperator, here: str) -> Iterator[Problem]:
    names = operator.by or ()
    unknown = [name for name in names if name not in graph.categories]
    if unknown:
        yield Problem(key=f"{here}.by", rule="must name columns of query.columns", value=", ".join(unknown))
        return
    if operator.kind == "group":
        if len(set(names)) < len(names):
            yield Problem(key=f"{here}.by", rule="must be different columns", value=", ".join(names))
            return
        groups = [graph.grouping(operator).groups] if names else []
    else:
        groups = [graph.grouping(operator, side).groups for side in (0, 1)]
        if groups[0] != groups[1]:
            rule = "must be two columns with equally many groups"
            yield Problem(key=f"{here}.by", rule=rule, value=f"{groups[0]:,} and {groups[1]:,}")
    if groups and operator.nodes > min(groups):
        rule = f"must be at most {min(groups):,}, the number of groups"
        yield Problem(key=f"{here}.nodes", rule=rule, value=f"{operator.nodes}")


def _functions(graph: Graph, aggregate: AggregateOperator, here: str) -> Iterator[Problem]:
    source = graph.named(aggregate.of)
    numbers = [function for function in aggregate.functions if function != "count"]
    unknown = [name for name in aggregate.values if name not in graph.ranges]
    if unknown:
        yield Problem(key=f"{here}.values", rule="must name columns of query.ranges", value=", ".join(unknown))
    elif source is not None and source.kind == "join" and (numbers or aggregate.values):
        rule = 'must be ["count"], without values: a join only counts pairs'
        yield Problem(key=f"{here}.functions", rule=rule, value=", ".join(aggregate.functions))
    elif source is not None and source.kind == "group" and source.by is None:
        hint = "A group without `by` is for an iterate, whose models it needs."
        yield Problem(key=f"{here}.of", rule="must be a group with `by`", value=aggregate.of, hint=hint)
    elif (bool(numbers) and not aggregate.values) or len(set(aggregate.values)) < len(aggregate.values):
        rule = f"must be different columns of numbers for {', '.join(numbers)}"
        yield Problem(key=f"{here}.values", rule=rule, value=", ".join(aggregate.values) or "nothing")
    elif source is not None and source.kind == "group" and aggregate.noise is not None:
        try:
            problem = noise_problem(graph.aggregated(aggregate, source))
        except (InvalidInputError, KeyError):
            return  # the group's own rules are reported elsewhere
        if problem is not None:
            field, rule, value = problem
            yield Problem(key=f"{here}.{field}", rule=f"must be {rule}", value=value)


def _rounds(graph: Graph, iterate: IterateOperator, here: str) -> Iterator[Problem]:
    if iterate.label not in graph.ranges:
        yield Problem(key=f"{here}.label", rule="must name a column of query.ranges", value=iterate.label)
    if iterate.noise is not None and iterate.assume_public:
        rule = "must be false if results have noise, since the models are then published"
        yield Problem(key=f"{here}.assume_public", rule=rule, value="true")
    if iterate.per_person is not None and iterate.rounds % iterate.per_person:
        rule = f"must divide {iterate.rounds}, the number of rounds"
        yield Problem(key=f"{here}.per_person", rule=rule, value=f"{iterate.per_person}")
    elif iterate.turns not in (1, graph.turns):
        rule = f"must divide the people of all iterates into 1 or {graph.turns} parts"
        yield Problem(key=f"{here}.per_person", rule=rule, value=f"{iterate.turns} parts")
