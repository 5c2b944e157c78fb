"""What trials tell: every interval and lower end is held against all outcomes of a few trials, one by one."""

from __future__ import annotations

import math

import pytest

from hushuffle.numerics.trials import clopper_pearson, least_log_ratio


def chance(hits: int, trials: int, p: float) -> float:
    return math.comb(trials, hits) * p**hits * (1 - p) ** (trials - hits)


def test_the_interval_of_clopper_and_pearson_covers() -> None:
    for p in (0.01, 0.3, 0.9):
        covered = 0.0
        for hits in range(51):
            low, high = clopper_pearson(hits, 50, 0.9)
            covered += chance(hits, 50, p) * (low <= p <= high)
        assert covered >= 0.9
    assert clopper_pearson(50, 50, 0.9)[1] == 1.0


@pytest.mark.parametrize("delta", [0.0, 0.02, 0.15])
def test_the_lower_end_of_a_ratio_is_wrong_as_seldom_as_stated(delta: float) -> None:
    trials = 10
    ends = {
        (more, less): least_log_ratio(more, less, trials, delta=delta, confidence=0.8)
        for more in range(trials + 1)
        for less in range(trials + 1)
    }
    assert any(ends.values())
    for q in [0.001, *(step / 20 for step in range(1, 20))]:
        for x in [step / 4 for step in range(24)]:
            p = math.exp(x) * q + delta
            if p <= 1:
                of_more, of_less = ([chance(hits, trials, each) for hits in range(trials + 1)] for each in (p, q))
                wrong = sum(of_more[a] * of_less[b] for (a, b), end in ends.items() if end > x + 1e-9)
                assert wrong <= 0.2 + 1e-9


def test_it_is_nearer_than_two_intervals_and_grows_with_the_hits() -> None:
    for more, less, trials, delta in (
        (7_500, 2_500, 10_000, 0.0),
        (20_000, 3_000, 450_000, 0.01),
        (90, 9, 5_000, 0.001),
    ):
        truth = math.log((more / trials - delta) / (less / trials))
        found = least_log_ratio(more, less, trials, delta=delta)
        apart = math.log((clopper_pearson(more, trials, 0.95)[0] - delta) / clopper_pearson(less, trials, 0.95)[1])
        assert truth - found < 0.85 * (truth - apart)
        assert found < truth
        assert least_log_ratio(more + 30, less, trials, delta=delta) > found
        assert least_log_ratio(more, less + 30, trials, delta=delta) < found


def test_events_that_tell_nothing_and_events_of_one_input_only() -> None:
    assert least_log_ratio(0, 0, 100) == 0
    assert least_log_ratio(5, 5, 10) == 0
    assert least_log_ratio(100, 100, 100) == 0
    assert 3 < least_log_ratio(100, 0, 100) < 5
    assert least_log_ratio(100, 0, 10_000, delta=0.02) == 0
