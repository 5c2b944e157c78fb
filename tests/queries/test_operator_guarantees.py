"""Guarantees of plans of operators against the same plans, enumerated in rationals with all data sets of few people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any, Final

import pytest
import tomli_w

from hushuffle.plans import Data, Plan, Release, Stage, Traffic, staged
from hushuffle.questions import traffic
from hushuffle_network.queries import parse_plan
from oracles.operator_enumeration import stages_of
from oracles.plan_enumeration import Law, Outcomes, excess, noisy_counts, plan_law, scrambled

HALF: Final = Fraction(1, 2)
COLUMNS: Final = {"role": ["asks", "offers"], "key": ["x", "y"], "size": ["s", "l"]}
SELECTS: Final = [
    {"kind": "select", "name": "left", "where": {"role": ["asks"]}},
    {"kind": "select", "name": "right", "where": {"role": ["offers"]}},
]
DELTAS: Final = (0.3, 0.02)


def group(name: str, by: list[str], of: str = "people", nodes: int = 2) -> dict[str, Any]:
    return {"kind": "group", "name": name, "of": of, "by": by, "nodes": nodes}


def join(of: list[str], most: list[int]) -> dict[str, Any]:
    return {"kind": "join", "name": "join", "of": of, "by": ["key", "key"], "nodes": 2, "most": most}


def aggregate(of: str, noise: float | None = None) -> dict[str, Any]:
    return {"kind": "aggregate", "name": f"{of} results", "of": of} | ({"noise": {"epsilon": noise}} if noise else {})


def iterate(rounds: int, per_person: int) -> dict[str, Any]:
    return {"kind": "iterate", "name": "model", "of": "a", "label": "v", "rounds": rounds, "per_person": per_person}


def plan_of(operators: Sequence[Any], people: int, sigma: Fraction, dummies: int | None) -> Plan:
    specification: dict[str, Any] = {
        "query": {
            "kind": "graph",
            "generated": {"people": people},
            "columns": COLUMNS,
            "ranges": {"v": [0, 1]},
            "operators": list(operators),
        },
        "traffic": {"sigma": float(sigma)} | ({} if dummies is None else {"dummies": dummies}),
        "targets": {"delta": 0.0},
    }
    if dummies is not None:
        turns = max((one["rounds"] // one["per_person"] for one in operators if one["kind"] == "iterate"), default=1)
        specification["traffic"]["min_batch"] = people // turns
    return parse_plan(tomli_w.dumps(specification)).plan(people)


def worst(
    stages: Sequence[Any], people: int, columns: Sequence[str], replaced: Sequence[int] = (0,)
) -> list[tuple[Law, Law]]:
    """Return the laws of all pairs of data sets that differ in the row of one of the people in `replaced`."""
    rows = [dict(zip(columns, labels, strict=True)) for labels in product(*(COLUMNS[name] for name in columns))]
    laws = {place: plan_law(stages, [rows[one] for one in place]) for place in product(range(len(rows)), repeat=people)}
    return [
        (laws[place], laws[*place[:who], other, *place[who + 1 :]])
        for place in laws
        for who in replaced
        for other in range(len(rows))
        if other != place[who]
    ]


CASES: Final[dict[str, tuple[list[Any], int, list[str]]]] = {
    "two groups": ([group("a", ["key"]), aggregate("a"), group("b", ["size"]), aggregate("b")], 2, ["key", "size"]),
    "a select": ([SELECTS[0], group("a", ["key"], "left"), aggregate("a")], 2, ["role", "key"]),
    "a join": ([*SELECTS, join(["left", "right"], [2, 2]), aggregate("join")], 2, ["role", "key"]),
    "a join with itself": ([join(["people", "people"], [2, 2]), aggregate("join")], 3, ["key"]),
    "two rounds": ([group("a", ["key"]), iterate(2, 2)], 3, ["key"]),
    "parts take turns": ([group("a", ["key"]), iterate(4, 2)], 3, ["key"]),
}


@pytest.mark.parametrize("dummies", [None, 1])
@pytest.mark.parametrize("case", CASES)
def test_the_guarantee_of_the_traffic_is_attained_and_never_exceeded(case: str, dummies: int | None) -> None:
    operators, people, columns = CASES[case]
    plan = plan_of(operators, people, HALF, dummies)
    stages = stages_of(operators, COLUMNS, people=people, sigma=HALF, dummies=dummies)
    pairs = worst(stages, people, columns, range(people) if case == "parts take turns" else (0,))
    for delta in DELTAS:
        figure = traffic.plan_guarantee(plan, delta=delta).epsilon
        assert max(excess(*pair, Fraction(math.exp(figure.upper))) for pair in pairs) <= delta * (1 + 1e-9)
        if figure.lower:
            below = Fraction(math.exp(figure.lower * (1 - 1e-9)))
            assert max(excess(*pair, below) for pair in pairs) >= delta * (1 - 1e-9)
    total = traffic.plan_delta(plan, epsilon=0.0)
    assert max(excess(*pair, Fraction(1)) for pair in pairs) <= total.upper * (1 + 1e-9)


RELEASED: Final[dict[str, tuple[list[Any], int, list[str], int]]] = {
    "a group": ([group("a", ["key"]), aggregate("a")], 2, ["key"], 2),
    "a select": ([SELECTS[0], group("a", ["key"], "left"), aggregate("a")], 2, ["role", "key"], 2),
    "a join of disjoint sides": ([*SELECTS, join(["left", "right"], [2, 1]), aggregate("join")], 2, ["role", "key"], 4),
    "a join with itself": ([join(["people", "people"], [2, 2]), aggregate("join")], 2, ["key"], 6),
}


@pytest.mark.parametrize("dummies", [None, 1])
@pytest.mark.parametrize("case", RELEASED)
def test_traffic_and_noisy_counts_together_stay_below_the_guarantee(case: str, dummies: int | None) -> None:
    operators, people, columns, change = RELEASED[case]
    noisy = [*operators[:-1], aggregate(operators[-1]["of"], change * math.log(2))]
    plan = plan_of(noisy, people, HALF, dummies)
    assert [release.epsilon for release in plan.releases] == [change * math.log(2)]
    stages = stages_of(operators, COLUMNS, people=people, sigma=HALF, dummies=dummies, ratio=HALF)
    pairs = worst(stages, people, columns)
    for delta in DELTAS:
        upper = traffic.plan_guarantee(plan, delta=delta).upper
        assert max(excess(*pair, Fraction(math.exp(upper))) for pair in pairs) <= delta * (1 + 1e-9)
    # The release alone, without the messages: the change of all counts together is what one person can move.
    alone = [tuple(_only_releases(law) for law in pair) for pair in pairs]
    growth = Fraction(2) ** change
    assert max(excess(one, other, growth) for one, other in alone) == 0


def _only_releases(law: Law) -> Law:
    released: Law = {}
    for views, chance in law.items():
        released[views[-1:]] = released.get(views[-1:], Fraction(0)) + chance
    return released


def test_a_join_with_itself_moves_more_pairs_than_a_join_of_disjoint_sides() -> None:
    """Two people have one key and one the other; who changes the key removes 2 + 2 - 1 pairs and adds as many."""
    operators, growth = [join(["people", "people"], [2, 2]), aggregate("join")], Fraction(2) ** 4
    stages = stages_of(operators, COLUMNS, people=3, sigma=Fraction(0), dummies=0, ratio=HALF)
    one, other = (plan_law(stages, data) for data in _moved())
    assert excess(_only_releases(one), _only_releases(other), growth) > 0
    assert excess(_only_releases(one), _only_releases(other), growth * 4) == 0


def _moved() -> list[list[dict[str, str]]]:
    return [[{"key": "x"}, {"key": "x"}, {"key": "y"}], [{"key": "y"}, {"key": "x"}, {"key": "y"}]]


@pytest.mark.parametrize("steered", [True, False])
def test_noise_between_rounds_composes_with_the_traffic(steered: bool) -> None:
    """In the second round a message goes to the emptier node if models steer, as public noisy counts show it."""

    def send(data: Sequence[int], views: Any, _hidden: Any) -> Outcomes:
        turned = steered and bool(views) and views[-1][0] > views[-1][1]
        return scrambled([value ^ turned for value in data], 2, HALF, dummies=1, lucky=False)

    def release(data: Sequence[int], _views: Any, hidden: Any) -> Outcomes:
        counts = [sum(came and value == node for value, came in zip(data, hidden[-1], strict=True)) for node in (0, 1)]
        return {(view, None): chance for view, chance in noisy_counts(counts, len(data), HALF).items()}

    stage = Stage(
        sends=("send",),
        nodes="nodes",
        targets=2,
        reads=(("people",),) * 2,
        repeats=True,
        steered=steered,
        carries="released",
        release=Release(name="counts", start="nodes", epsilon=2 * math.log(2)),
    )
    plan = staged(
        "two rounds",
        data=(Data(name="people", items=2),),
        stages=(stage,),
        traffic=Traffic(sigma=0.5, dummies=1, min_batch=2),
    )
    assert len(plan.moved_together("people")) == (1 if steered else 2)
    laws = {data: plan_law([send, release, send, release], data) for data in product((0, 1), repeat=2)}
    for delta in DELTAS:
        figure = traffic.plan_guarantee(plan, delta=delta).epsilon
        most = max(excess(laws[data], laws[1 - data[0], *data[1:]], Fraction(math.exp(figure.upper))) for data in laws)
        assert most <= delta * (1 + 1e-9)
    hidden = Stage(sends=("send",), nodes="nodes", targets=2, reads=stage.reads, repeats=True, steered=steered)
    plan = staged("hidden", data=plan.data, stages=(hidden,), traffic=Traffic(sigma=0.5, dummies=1))
    assert plan.applies == (not steered)
