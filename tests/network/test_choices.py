"""Where a phone's message goes and what is in it: the law of the mechanism, the records of the query, exactly."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle_network import choices, client
from hushuffle_network.choices import below, choose, group_of, record_of
from hushuffle_network.queries.aggregate import Aggregate
from hushuffle_network.tokens import IssuerKey
from network.tasks import services
from network.vectors import published

KEY = IssuerKey.of(bytes.fromhex(published("tokens")["skS"]))
SCALE = 1 << 64


def step_of(
    targets: int, sigma: float, convention: str = "uniform", *, only_on_purpose: bool = False
) -> dict[str, Any]:
    return {"targets": [None] * targets, "sigma": sigma, "convention": convention, "only_on_purpose": only_on_purpose}


def drawn(monkeypatch: pytest.MonkeyPatch, step: dict[str, Any], own: int, words: list[int], place: int) -> Any:
    """Return target, whether it carries data, and the number of places, for given words of coins and a given place."""
    highs: list[int] = []
    left = iter(words)

    def below(high: int, _: object) -> int:
        highs.append(high)
        return place

    with monkeypatch.context() as patched:
        patched.setattr(choices, "below", below)
        return *choose(step, own, lambda _: next(left).to_bytes(8)), (highs or [0])[0]


def words_until(decide: Callable[[int], bool]) -> Fraction:
    """Return the share of all words for which a coin that falls with the word is heads, by bisection."""
    low, high = 0, SCALE
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if decide(middle) else (low, middle)
    return Fraction(low, SCALE)


def law_of(monkeypatch: pytest.MonkeyPatch, step: dict[str, Any], own: int) -> dict[tuple[int, bool], Fraction]:
    """Return the law of target and data in exact arithmetic, by every branch that the client can take."""
    coin = words_until(lambda word: drawn(monkeypatch, step, own, [word, 0], 0)[2] == 0)
    thin = words_until(lambda word: drawn(monkeypatch, step, own, [0, word], 0)[1]) if coin else Fraction(0)
    found: dict[tuple[int, bool], Fraction] = defaultdict(Fraction)
    found[own, True] += coin * thin
    found[own, False] += coin * (1 - thin)
    if coin < 1:
        places = drawn(monkeypatch, step, own, [SCALE - 1, 0], 0)[2]
        for place in range(places):
            target, carries, _ = drawn(monkeypatch, step, own, [SCALE - 1, 0], place)
            found[target, carries] += (1 - coin) / places
    return dict(found)


TARGETS, SIGMAS = (2, 3, 4, 7), (0.0, 0.1, 0.5, 1.0)
CASES = [(targets, sigma, "uniform") for targets in TARGETS for sigma in SIGMAS]
CASES += [(targets, sigma, "exclusive") for targets in TARGETS for sigma in (*SIGMAS[:2], (targets - 1) / targets)]
CASES += [(targets, math.nextafter((targets - 1) / targets, 1), "exclusive") for targets in TARGETS]


@pytest.mark.parametrize(("targets", "sigma", "convention"), CASES)
def test_the_law_of_targets_is_that_of_the_mechanism(
    targets: int, sigma: float, convention: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = hs.TargetSampling(targets=targets, sigma=sigma, convention=convention).law().symmetric
    assert law is not None
    for own, only in product(range(targets), (False, True)):
        found = law_of(monkeypatch, step_of(targets, sigma, convention, only_on_purpose=only), own)
        assert sum(found.values()) == 1
        for target in range(targets):
            chance = sum(found.get((target, carries), Fraction(0)) for carries in (False, True))
            assert chance == (law.truth if target == own else law.lie)
        assert all(target == own for target, carries in found if carries and found[target, carries])
        carrying = sum(chance for (_, carries), chance in found.items() if carries)
        # On purpose with probability truth - lie; a coin of 64 bits rounds it down.
        wanted = law.truth - law.lie if only else law.truth
        assert 0 <= wanted - carrying < Fraction(2, SCALE)


@pytest.mark.parametrize(("targets", "sigma", "convention"), CASES)
def test_the_average_over_all_answers_is_uniform(
    targets: int, sigma: float, convention: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a uniform target, which no answer has, is a mixture of what answers have: it tells no more than they do."""
    laws = [law_of(monkeypatch, step_of(targets, sigma, convention), own) for own in range(targets)]
    for target in range(targets):
        assert sum(law.get((target, carries), Fraction(0)) for law in laws for carries in (False, True)) == 1


def test_no_answer_goes_to_a_uniform_target_without_data() -> None:
    step = step_of(4, 0.2)
    drawn = [choose(step, None, client.stream(bytes([one]) * 32, "x")) for one in range(200)]
    assert {target for target, _ in drawn} == {0, 1, 2, 3}
    assert not any(carries for _, carries in drawn)


def test_uniform_numbers_are_uniform() -> None:
    """Each of the 4,096 words of a shorter coin is taken for a number, as many for each, or rejected."""
    for high in (1, 2, 3, 5, 8, 100):
        counts: Counter[int] = Counter()
        for word in range(1 << 12):
            words = iter([(word << 52).to_bytes(8)])
            try:
                counts[below(high, lambda _, words=words: next(words))] += 1  # type: ignore[misc]
            except (StopIteration, RuntimeError):
                counts[-1] += 1
        taken = [counts[number] for number in range(high)]
        assert taken == [(1 << 12) >> (high - 1).bit_length()] * high


GROUPS = {
    "groups": [
        {"name": "young", "when": [[["<", 18]]]},
        {"name": "middle", "when": [[[">=", 18], ["<=", 64]]]},
        {"name": "old", "when": [[[">", 64], ["!=", 99]], [["==", -1]]]},
        {"name": "unsaid", "when": [[["==", "no answer"]], [["==", "0.5"]], [["==", "99"]]]},
    ]
}


@pytest.mark.parametrize(
    ("answer", "group"),
    [
        (17.9, 0), (18, 1), (64, 1), (65, 2), (99, 3), (-1, None), ("no answer", 3), ("18", None), (None, None),
        (True, None), (math.nan, None), (math.inf, None), (0.5, None), ("other", None), ([18], None),
    ],
)  # fmt: skip
def test_groups_of_answers(answer: object, group: int | None) -> None:
    """-1 and 0.5 are in two groups, which is none; text is never a number."""
    assert group_of(GROUPS, answer) == group


def test_records_are_those_of_the_query() -> None:
    """Same bytes and same compute node as the program's own task, for every group."""
    sets = ((("age", "smokes"), (4, 2)), (("smokes",), (2,)))
    query = Aggregate(grouping_sets=sets, values=("bmi",), functions=("sum",), partitions=2)
    task = services(KEY).task
    for age, smokes, bmi in product((5, 25, 45, 79), ("no", "yes"), (9.0, 33.3, 61.0)):
        answers = {"age": age, "smokes": smokes, "bmi": bmi}
        row = np.array([[age // 20, smokes == "yes", min(max(bmi, 10.0), 60.0)]])
        for number in (1, 2):
            found = record_of(task.document, {**task.steps[number - 1], "targets": [None, None]}, answers)
            assert found is not None
            assert found[1] == query.pack(number, row)[0]
            assert found[0] == query.own(number, row, None)[0]
            query.check(number, *found)
