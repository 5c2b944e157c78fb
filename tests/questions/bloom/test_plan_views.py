from __future__ import annotations

import dataclasses
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.estimation.column_views import assumed_reach, people
from hushuffle.estimation.contacts import frequencies
from hushuffle.questions.bloom.plan_views import ViewPlan

REACH = assumed_reach(15_000, [4000.0] * 3)
ALL = (0, 1, 2)


def planned(**keys: Any) -> ViewPlan:
    usual = {"publishers": 3, "columns": 20_000, "reach": REACH, "epsilon": 0.5, "delta": 1e-7, "unions": {ALL: 300.0}}
    return hs.bloom.plan_views(**{**usual, **keys})


def test_one_union_takes_one_count_and_the_whole_epsilon() -> None:
    plan = planned()
    (view,) = plan.design.views
    assert (view.shows, view.publishers) == ("union", ALL)
    assert 0.98 * 0.5 <= plan.epsilon.upper <= 0.5
    assert plan.epsilon == hs.bloom.views_epsilon(plan.design, delta=1e-7)
    assert view.each.variance == pytest.approx(2 * 2.0**2, rel=0.05)
    assert plan.met


def test_one_union_is_met_by_half_the_noise_of_bit_patterns() -> None:
    union = planned().design.views[0].each.variance
    law = hs.DummyLaw.discrete_laplace(center=80, scale=4.0)
    patterns = hs.ColumnView(publishers=ALL, shows="patterns", each=law)
    design = hs.ColumnViews(publishers=3, columns=20_000, views=(patterns,))
    assert hs.bloom.views_epsilon(design, delta=1e-7).upper == pytest.approx(0.5, rel=1e-3)
    assert law.variance == pytest.approx(4 * union, rel=0.05)


def test_all_unions_of_many_publishers_come_from_bit_patterns() -> None:
    sets = [chosen for size in range(1, 7) for chosen in combinations(range(6), size)]
    plan = planned(publishers=6, reach=assumed_reach(15_000, [2000.0] * 6), unions=dict.fromkeys(sets, 400.0))
    assert [view.shows for view in plan.design.views][-1] == "patterns"
    assert len(plan.design.views) < 10
    assert plan.epsilon.upper <= 0.5


def test_many_views_have_gaussian_dummies() -> None:
    sets = [(place,) for place in range(20)] + list(combinations(range(20), 2))
    reach = assumed_reach(15_000, [900.0] * 20)
    plan = planned(publishers=20, reach=reach, unions=dict.fromkeys(sets, 400.0), epsilon=2.0)
    (view,) = plan.design.views
    assert (view.shows, view.cells) == ("pairs", len(sets))
    assert "gaussian" in repr(view.each)
    assert view.single is not None
    sigma = math.sqrt((2 * view.single.variance + view.each.variance) / 4)  # of the union of two
    apart = hs.DummyLaw.discrete_gaussian(center=round(8 * sigma), sigma=sigma)
    unions = tuple(hs.ColumnView(publishers=chosen, each=apart) for chosen in sets)
    more = hs.bloom.views_epsilon(dataclasses.replace(plan.design, views=unions), delta=1e-7)
    assert more.lower > 1.7 * plan.epsilon.upper
    assert 0.98 * 2.0 <= plan.epsilon.upper <= 2.0


def test_a_plan_keeps_its_promises_in_a_simulation() -> None:
    truth = np.array([0, 2500, 1500, 700, 1200, 400, 900, 600])

    def reach(publishers: tuple[int, ...]) -> float:
        return float(truth[np.arange(8) & sum(1 << each for each in publishers) != 0].sum())

    contacts = [5200.0, 2000.0, 600.0]
    plan = planned(
        reach=reach, overlaps={(0, 2): 300.0}, contacts=contacts, contacts_error=400.0, unions={ALL: 200.0, (1,): 300.0}
    )
    assert plan.contacts is not None
    assert plan.met
    rng, errors, others = np.random.default_rng(1), [], []
    held = np.repeat(np.arange(8), truth)
    bits = (held[:, None] >> np.arange(3)) & 1
    for seed in range(100):
        columns = np.zeros((20_000, 3), dtype=np.int64)
        np.add.at(columns, rng.integers(20_000, size=held.size), bits)
        seen = plan.design.release(columns, rng=hs.reproducible(seed))
        answers = [people(seen, answer.question, publishers=answer.publishers) for answer in plan.answers]  # type: ignore[arg-type]
        errors.append([answer.estimate - true.estimate for answer, true in zip(answers, plan.answers, strict=True)])
        others.append(frequencies(seen).estimates - [5200, 2000, 600])
    predicted = [answer.standard_error for answer in plan.answers]
    assert np.sqrt(np.mean(np.square(errors), axis=0)) == pytest.approx(predicted, rel=0.3)
    assert np.sqrt(np.mean(np.square(others), axis=0)) == pytest.approx(plan.contacts.standard_errors, rel=0.3)


def test_two_hash_functions_and_a_missed_target() -> None:
    plan = planned(hashes=2, unions={ALL: 150.0}, epsilon=0.02)
    assert plan.epsilon.upper <= 0.02
    assert not plan.met


@pytest.mark.parametrize(
    ("keys", "error", "words"),
    [
        ({"unions": {}}, InvalidInputError, "at least one"),
        ({"unions": {ALL: 10.0}}, InvalidInputError, "hash collisions"),
        ({"unions": {(3,): 300.0}}, InvalidInputError, "publishers"),
        ({"epsilon": 0.0}, InvalidInputError, "epsilon"),
        ({"delta": 0.0}, InvalidInputError, "delta"),
        ({"epsilon": 1e-7}, NumericalError, "standard deviation"),
        ({"unions": {ALL: 300.0, (0,): math.nan}}, InvalidInputError, "hash collisions"),
    ],
)
def test_refusals(keys: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        planned(**keys)
