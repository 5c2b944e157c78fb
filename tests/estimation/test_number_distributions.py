from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.estimation.distribution import cumulative_ends, quantile_ends, smoothed_shares, thresholds
from hushuffle.estimation.expectations import Expectations
from hushuffle.estimation.numbers import NumberEstimate
from hushuffle.mechanisms.randomizers import Mechanism
from oracles.rr_statistics import largest_z

GRID = hs.NumberGrid(low=0, high=1, levels=16)
NUMBERS = np.random.default_rng(3).beta(2, 5, 6000)


def simulated(
    randomizer: Mechanism, *, seed: int, trials: int, numbers: npt.NDArray[np.float64] = NUMBERS, dummies: int = 0
) -> list[NumberEstimate]:
    survey = hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=dummies), n=numbers.size)
    rng = hs.reproducible(seed)
    return [
        hs.estimate_numbers(survey.collect(GRID.encode(numbers, rng=rng), rng=rng), protocol=survey, grid=GRID)
        for _ in range(trials)
    ]


EXAMPLES: tuple[Mechanism, ...] = (
    hs.SquareWave(bins=16, epsilon=1.0),
    hs.RandomizedResponse(k=16, epsilon=3.0),
    hs.DiscreteLaplace(levels=16, epsilon=4.0),
    hs.RoundedGaussian(levels=16, epsilon=10.0),
)


@pytest.mark.parametrize("randomizer", EXAMPLES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("shape", ["hill", "two points"])
def test_intervals_of_shares_and_quantiles_cover(randomizer: Mechanism, shape: str) -> None:
    """At 90 %, for each threshold and quantile alone; with dummies where the blanket is uniform."""
    numbers = np.sort(NUMBERS if shape == "hill" else np.where(NUMBERS < 0.25, 0.2, 0.71))
    trials, points, wanted = 40, GRID.points, np.array([0.1, 0.5, 0.9])
    found = simulated(randomizer, seed=7, trials=trials, numbers=numbers, dummies=60)
    codes = found[0].cumulative(0.9)[0]
    below = np.searchsorted(numbers, points[codes + 1], "left") / numbers.size
    upto = np.searchsorted(numbers, points[codes], "right") / numbers.size
    truth = numbers[np.ceil(wanted * numbers.size).astype(int) - 1]
    ends = np.array([one.cumulative(0.9)[1] for one in found])
    quantiles = np.array([one.quantile_intervals(wanted, 0.9) for one in found])
    misses = np.concatenate(
        [
            (ends[:, :, 0] > below + 1e-12).sum(axis=0),
            (ends[:, :, 1] < upto - 1e-12).sum(axis=0),
            (quantiles[:, :, 0] > truth).sum(axis=0),
            (quantiles[:, :, 1] < truth).sum(axis=0),
        ]
    )
    # Each end misses at most one time in twenty.
    assert misses.max() < 0.05 * trials + largest_z(misses.size) * math.sqrt(0.05 * 0.95 * trials)
    assert misses.mean() < 0.05 * trials
    assert (ends[:, :, 1] - ends[:, :, 0]).mean() < 0.4


def test_scores_have_no_bias_to_the_wrong_side_whatever_the_distribution_is() -> None:
    """With the expected counts of a level in place of counts: an end is on the right side without any noise."""
    for randomizer in EXAMPLES:
        reports, codes = Expectations.of(randomizer), thresholds(16)
        matrix = reports.whole_matrix()
        for level in range(16):
            held = np.eye(16)[level]
            # So many people that their noise is next to nothing, planned for a few.
            counts = np.round(matrix[level] * 1e15).astype(np.int64)
            ends = cumulative_ends(reports, counts, held, n=int(counts.sum()), dummies=0, codes=codes, confidence=0.5)
            assert (ends[:, 0] <= (level <= codes) + 1e-5).all()
            assert (ends[:, 1] >= (level <= codes) - 1e-5).all()


def test_smoothed_shares_come_near_the_truth_and_dummies_do_not_move_them() -> None:
    rounded = np.bincount(np.rint(NUMBERS * 15).astype(int), minlength=16) / NUMBERS.size
    few, many = (
        simulated(hs.SquareWave(bins=16, epsilon=3.0), seed=2, trials=12, dummies=dummies) for dummies in (0, 3000)
    )
    for found in (few, many):
        mean = np.mean([one.shares for one in found], axis=0)
        assert mean.sum() == pytest.approx(1)
        assert mean.min() >= 0
        assert np.abs(np.cumsum(mean) - np.cumsum(rounded)).max() < 0.06
    assert abs(np.mean([one.quantile(0.5) for one in few]) - np.median(NUMBERS)) < 0.05


def test_a_step_of_expectation_maximisation_is_the_conditional_expectation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against plain loops, one step from equal shares, with dummies of known weight."""
    randomizer, dummies = EXAMPLES[0], 20
    matrix, blanket = randomizer.channel().matrix, randomizer.law().blanket().law
    counts = np.arange(1, matrix.shape[1] + 1, dtype=np.int64)
    n = int(counts.sum()) - dummies
    after = []
    for x in range(16):
        total = 0.0
        for y, count in enumerate(counts.tolist()):
            everybody = n * sum(matrix[z, y] / 16 for z in range(16)) + dummies * blanket[y]
            total += count * matrix[x, y] / 16 / everybody
        after.append(total)
    smooth = [
        (2 * after[x] + sum(after[z] for z in (x - 1, x + 1) if 0 <= z < 16)) / (2 + (x > 0) + (x < 15))
        for x in range(16)
    ]
    monkeypatch.setattr("hushuffle.estimation.distribution._STEPS", 1)
    found = smoothed_shares(Expectations.of(randomizer), counts, n=n, dummies=dummies)
    assert found == pytest.approx(np.array(smooth) / sum(smooth), rel=1e-12)


def test_randomized_response_without_a_matrix_is_as_with_one() -> None:
    counts = np.arange(10, 26, dtype=np.int64)
    plain = Expectations.of(EXAMPLES[1])
    matrix = Expectations(blanket=plain.blanket, matrix=plain.whole_matrix())
    assert plain.whole_matrix() == pytest.approx(EXAMPLES[1].channel().matrix, abs=1e-15)
    found = [smoothed_shares(one, counts, n=int(counts.sum()), dummies=0) for one in (plain, matrix)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert plain.levels == matrix.levels == 16


def test_ends_of_quantiles_are_the_bounds_where_nothing_is_known() -> None:
    silent = hs.Protocol(randomizer=hs.RandomizedResponse(k=16, epsilon=0.01), shuffler=hs.UniformShuffle(), n=16)
    found = hs.estimate_numbers(np.arange(16), protocol=silent, grid=GRID)
    assert found.quantile_intervals([0.1, 0.9]).tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert found.quantile(0.0) == 0.0
    assert found.quantile(1.0) == 1.0


def test_without_noise_quantiles_are_known_to_a_step() -> None:
    certain = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=16, epsilon=math.inf), shuffler=hs.UniformShuffle(), n=9000
    )
    found = hs.estimate_numbers(np.full(9000, 7), protocol=certain, grid=GRID)
    ends = found.quantile_intervals(0.5)[0]
    assert ends[0] <= GRID.points[7] <= ends[1]
    assert ends[1] - ends[0] <= 2 * GRID.step * (1 + 1e-9)


def test_a_quantile_s_bound_fails_only_if_a_bound_at_a_fixed_threshold_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Corollary 10, for 2,000 random truths and random bounds on shares, with 4 coarse thresholds."""
    monkeypatch.setattr("hushuffle.estimation.distribution._SHOWN", 4)
    rng, failures, close = np.random.default_rng(2), 0, 0
    for _ in range(2000):
        levels = int(rng.integers(6, 24))
        codes, coarse = np.arange(levels - 1), thresholds(levels)
        upto = np.sort(rng.integers(0, 12, size=levels - 1)) / 12  # share at most v_j; that below v_(j+1) is as large
        share = float(rng.choice([0.05, 0.3, 0.5, 0.7, 0.95]))
        noise = rng.choice([0.0, 0.05, 0.4]) * rng.normal(size=(2, 2, levels - 1))
        ends = {0.95: upto + 0.1 + noise[0], 0.955: upto + 0.05 + noise[1]}

        def bounds(codes: Any, confidence: float, ends: Any = ends) -> Any:
            upper = ends[0.955 if confidence < 0.99 else 0.95]
            return np.stack([upper[1][codes] - 0.2, upper[0][codes]], axis=1)

        ((low, high),) = quantile_ends(bounds, levels, [share], 0.95)
        true = int(np.argmax([*(upto >= share), True]))  # the quantile is above v_(true - 1), at most v_true
        wide = np.argmax(upto[coarse] >= share) if (upto[coarse] >= share).any() else None
        if low >= true:  # the bound may lie above the quantile
            failures += 1
            first = wide is not None and ends[0.95][0][coarse[wide]] < share
            assert first or ends[0.955][0][true] < share
        below = codes[upto < share]
        if below.size and high <= below[-1]:
            failures += 1
            under = coarse[upto[coarse] < share]
            first = bool(under.size) and ends[0.95][1][under[-1]] - 0.2 >= share
            assert first or ends[0.955][1][below[-1]] - 0.2 >= share
        close += high - low <= 4
    assert failures > 100
    assert close > 400


def test_intervals_of_quantiles_cover_with_many_levels() -> None:
    grid, numbers, trials = hs.NumberGrid(low=0, high=1, levels=120), np.sort(NUMBERS), 40
    survey = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=120, epsilon=8.0), shuffler=hs.UniformShuffle(), n=numbers.size
    )
    wanted = np.array([0.1, 0.5, 0.9])
    truth = numbers[np.ceil(wanted * numbers.size).astype(int) - 1]
    rng, intervals = hs.reproducible(5), []
    for _ in range(trials):
        reports = survey.collect(grid.encode(numbers, rng=rng), rng=rng)
        intervals.append(hs.estimate_numbers(reports, protocol=survey, grid=grid).quantile_intervals(wanted, 0.9))
    ends = np.array(intervals)
    misses = np.concatenate([(ends[:, :, 0] > truth).sum(axis=0), (ends[:, :, 1] < truth).sum(axis=0)])
    assert misses.max() < 0.05 * trials + largest_z(misses.size) * math.sqrt(0.05 * 0.95 * trials)
    assert (ends[:, :, 1] - ends[:, :, 0]).mean() < 12 * grid.step


def test_with_many_people_an_interval_is_two_levels_wide() -> None:
    grid = hs.NumberGrid(low=0, high=1440, levels=481)
    survey = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=481, epsilon=12.0), shuffler=hs.UniformShuffle(), n=1_000_000
    )
    rng, minutes = hs.reproducible(7), np.linspace(2, 122, 1_000_000)
    result = hs.estimate_numbers(survey.collect(grid.encode(minutes, rng=rng), rng=rng), protocol=survey, grid=grid)
    ((low, high),) = result.quantile_intervals(0.5)
    assert low <= 62 <= high
    assert high - low <= 3 * grid.step + 1e-9


def test_hundreds_of_levels_are_told_at_64() -> None:
    assert thresholds(2).tolist() == [0]
    assert thresholds(65).tolist() == list(range(64))
    assert thresholds(900)[[0, -1]].tolist() == [0, 898]


def test_what_cannot_be_is_refused() -> None:
    found = simulated(EXAMPLES[1], seed=1, trials=1)[0]
    with pytest.raises(InvalidInputError, match="`confidence` must be"):
        found.cumulative(0.0)
    with pytest.raises(InvalidInputError, match="`share` must be"):
        found.quantile(1.5)
    with pytest.raises(InvalidInputError, match="`shares` must be"):
        found.quantile_intervals([0.5, 1.0])
    fine = hs.RoundedResponse(levels=2000, epsilon=8.0, low=0, high=1)
    survey = hs.Protocol(randomizer=fine, shuffler=hs.UniformShuffle(), n=10)
    many = hs.estimate_numbers(np.arange(10), protocol=survey, grid=fine.grid)
    with pytest.raises(UnsupportedProtocolError, match="at most 1,024 levels; the grid has 2,000"):
        many.cumulative()
    assert many.shares.size == 2000
