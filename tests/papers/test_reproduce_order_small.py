"""The worked example and the de Finetti attack of Meehan et al. 2022, against plain loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hushuffle_papers.meehan2022 import example
from oracles import mallows_enumeration
from papers.rendered import rendered


def test_the_worked_example() -> None:
    study = rendered("meehan2022/figure-6")
    assert [claim.verdict for claim in study.claims] == ["not testable", "confirmed", "contradicted", "confirmed"]
    reference = [person - 1 for person in example.PRINTED]
    tau = [example.PRINTED.index(person) for person in example.DRAWN]
    assert mallows_enumeration.released(reference, tau, range(1, 9)) == example.RELEASED
    by_person = {row[0]: row for row in study.tables[0].rows}
    for person, row in by_person.items():
        group = [other - 1 for other in example.neighbours(int(str(person)))]
        assert row[4] == mallows_enumeration.sensitivity(reference, group, "kendall")


def test_no_group_of_five_has_the_printed_sensitivity() -> None:
    reference = [person - 1 for person in example.PRINTED]
    fives = itertools.combinations(range(8), 5)
    most = max(mallows_enumeration.sensitivity(reference, list(group), "kendall") for group in fives)
    assert most == 22
    assert f"no group of 5 in this order has more than {most}." in rendered("meehan2022/figure-6").claims[2].reason


def test_the_text_gives_three_groups() -> None:
    assert {4: (4, 5, 7), 5: (2, 3, 4, 5, 8), 8: (3, 5, 8)}.items() <= {
        person: example.neighbours(person) for person in range(1, 9)
    }.items()


@pytest.mark.parametrize("classes", [(0, 1), (0, 0, 1)])
@pytest.mark.parametrize("theta", [0.0, 0.7, math.inf])
def test_the_attack_by_plain_loops(classes: tuple[int, ...], theta: float) -> None:
    n, channel = len(classes), np.array([[0.8, 0.2], [0.3, 0.7]])
    law = {tuple(range(n)): 1.0} if theta == math.inf else mallows_enumeration.law(n, theta, "kendall")
    rates = [rate / 10 for rate in range(1, 10)]
    joint: dict[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], float] = {}
    for values, reports in itertools.product(itertools.product((0, 1), repeat=n), repeat=2):
        chance = 0.0
        for pair in itertools.product(rates, repeat=2):
            chance += math.prod(pair[c] if x else 1 - pair[c] for x, c in zip(values, classes, strict=True)) / 81
        chance *= math.prod(channel[x, y] for x, y in zip(values, reports, strict=True))
        for tau, weight in law.items():
            seen = tuple(reports[tau[place]] for place in range(n))
            joint[values, reports, seen] = joint.get((values, reports, seen), 0.0) + weight * chance
    right, moved = 0.0, 0.0
    for person, seen in itertools.product(range(n), itertools.product((0, 1), repeat=n)):
        here = {key: chance for key, chance in joint.items() if key[2] == seen}
        alike = {key: chance for key, chance in joint.items() if sum(key[2]) == sum(seen)}
        right += max(sum(c for (x, _, _), c in here.items() if x[person] == value) for value in (0, 1)) / n
        for report in (0, 1):
            after, before = (
                sum(c for (_, y, _), c in some.items() if y[person] == report) / sum(some.values())
                for some in (here, alike)
            )
            if before > 0:
                moved = max(moved, abs(math.log(after / before)) if after else math.inf)
    found = example.attack(classes, theta, channel)
    assert found.right == pytest.approx(right, rel=1e-12)
    assert found.moved == pytest.approx(moved, rel=1e-9, abs=1e-12)


def test_the_attack_is_held_by_everybody_s_alpha_and_the_printed_proof_is_not() -> None:
    study = rendered("meehan2022/property-1")
    assert [claim.verdict for claim in study.claims] == ["confirmed", "confirmed", "contradicted"]
