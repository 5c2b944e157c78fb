from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from hushuffle import report
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing, RandomizedResponse
from hushuffle.mechanisms.shufflers import NoShuffle
from hushuffle_papers.murakami2021 import frequencies
from hushuffle_papers.murakami2021.buckets import checkins, losses_by_buckets
from hushuffle_papers.murakami2021.frequencies import (
    EXPONENT,
    PEOPLE,
    VALUES,
    SampledPeople,
    epsilons_for,
    errors,
    losses,
    shares_of_the_top,
    zipf,
)
from hushuffle_papers.registry import Request


@pytest.fixture(scope="module")
def people() -> SampledPeople:
    return zipf(20_000, 5000, 1.0, seed=1)


def test_a_crowd_follows_its_law(people: SampledPeople) -> None:
    assert people.counts.sum() == people.values.size == 20_000
    weights = 1 / np.arange(1, 5001)
    expected = 20_000 * weights / weights.sum()
    # The ten most frequent values, within 5.6 standard deviations each: false-alarm rate 2e-7.
    assert np.all(np.abs(people.counts[:10] - expected[:10]) < 5.6 * np.sqrt(expected[:10]))
    assert np.array_equal(np.sort(people.counts[people.top])[::-1], people.counts[people.top])


@pytest.mark.parametrize("kind", ["rr", "hashing"])
def test_losses_are_those_of_a_plain_loop(people: SampledPeople, kind: str) -> None:
    randomizer = RandomizedResponse(k=5000, epsilon=6.0) if kind == "rr" else LocalHashing(k=5000, g=64, epsilon=5.0)
    runs = [losses(people, randomizer, seed) for seed in range(1, 41)]
    for position, name in enumerate(("top", "every")):
        found = np.array([getattr(run, name) for run in runs])
        # A sum of 100 or more squared normals: 6 standard errors, false-alarm rate below 1e-6.
        assert abs(found.mean() - runs[0].predicted[position]) < 6 * found.std(ddof=1) / np.sqrt(40)
    assert all(run.every_kept < run.every for run in runs)
    assert runs[0].shares.shape == (100,)


def test_errors_fall_with_epsilon_and_the_page_renders(people: SampledPeople) -> None:
    study = errors(people, g=64, epsilons=(2.0, 9.0), request=Request(), stand_in="Few.")
    table = study.tables[0]
    assert [row[0] for row in table.rows] == ["randomized response", "local hashing"] * 2
    predicted = [row[table.columns.index("predicted")] for row in table.rows]
    assert isinstance(predicted[0], float)
    assert isinstance(predicted[2], float)
    assert predicted[2] < predicted[0]
    assert [chart.key for chart in study.charts] == ["top", "all", "promise", "promise-all"]
    assert len(report.html(study)) < 2_000_000


def test_the_epsilon_of_a_loss_is_solved_for_and_not_read_off_a_grid(people: SampledPeople) -> None:
    for loss in (1e-2, 1e-3):
        epsilon = frequencies.epsilon_for_loss(people, loss)
        response = RandomizedResponse(k=people.counts.size, epsilon=epsilon)
        assert losses(people, response, 1).predicted[0] == pytest.approx(loss, rel=1e-3)
    study = errors(people, g=64, epsilons=(16.0,), request=Request(), stand_in="Few.")
    needs, promises = study.claims
    expected = frequencies.epsilon_for_loss(people, 1e-6)
    assert f"expected loss at epsilon = {expected:.3f}" in needs.ours
    assert {needs.verdict, promises.verdict} <= {"holds on other data", "differs on other data"}


def test_at_the_papers_size_the_loss_is_reached_between_the_points_of_the_figure() -> None:
    """Reading the grid gave epsilon = 14, where the published bound promises 0.848 only."""
    epsilon = frequencies.epsilon_for_loss(zipf(PEOPLE, VALUES, EXPONENT, seed=1), 1e-6)
    response = RandomizedResponse(k=VALUES, epsilon=epsilon)
    published, exact = frequencies.promised(Protocol(randomizer=response, shuffler=NoShuffle(), n=PEOPLE))
    assert (epsilon, published, exact) == pytest.approx((13.146, 0.9046, 0.9536), abs=3e-4)


def test_the_most_frequent_values_come_out_right_without_noise(people: SampledPeople) -> None:
    study = shares_of_the_top(people, {"little": 3.0, "almost all": 30.0}, Request())
    for row in study.tables[0].rows[:5]:
        assert row[3] == pytest.approx(row[1], rel=1e-6)
    assert [claim.printed for claim in study.claims] == ["1.05 (> 1)", "0.10"]
    assert [series.label for series in study.charts[0].series] == ["true share", "little", "almost all"]


def test_the_promise_fixes_epsilon() -> None:
    found = epsilons_for(0.92)
    assert found["promised by the published bound"] < found["promised by the exact bound"]


def test_more_buckets_at_the_same_promise(people: SampledPeople) -> None:
    study = losses_by_buckets(people, (16, 128, 1024), Request())
    assert [claim.verdict for claim in study.claims] == ["confirmed", "confirmed"]
    assert losses_by_buckets(people, (1024, 16), Request()).claims[0].verdict == "contradicted"
    assert losses_by_buckets(people, (16,), Request()).claims[0].verdict == "not testable"


@pytest.mark.parametrize("g", [16, 1024])
@pytest.mark.parametrize("theta", [0.1, 0.5])
def test_the_loss_falls_with_the_buckets_for_any_shares(people: SampledPeople, g: int, theta: float) -> None:
    n, k = people.values.size, people.counts.size
    hashing = LocalHashing.from_theta(k, g, theta, family="binary")
    shares = people.shares.tolist()
    expected = [p * (1 - theta) / (n * theta) + (1 / theta - p) / (n * theta * (g - 1)) for p in shares]
    assert losses(people, hashing, seed=1).predicted[1] == pytest.approx(math.fsum(expected), rel=1e-9)


def test_theta_of_one_half_promises_an_error_above_one_half_from_two_people_more_than_values_on() -> None:
    for n, verdict in ((21, "contradicted"), (22, "confirmed")):
        promise = losses_by_buckets(zipf(n, 20, 1.0, seed=1), (16,), Request()).claims[-1]
        assert promise.verdict == verdict
    assert promise.ours.startswith("0.2912 by the paper's inequality")


@pytest.mark.data
@pytest.mark.skipif("HUSHUFFLE_DATA" not in os.environ, reason="HUSHUFFLE_DATA is not set")
def test_real_check_ins() -> None:
    study = checkins(Request(data=Path(os.environ["HUSHUFFLE_DATA"])))
    assert len(study.tables[0].rows) == 16
