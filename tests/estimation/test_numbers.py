from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from oracles.number_enumeration import outcomes, report_law, rounding_law
from oracles.rr_statistics import largest_z, mean_square_range

GRID = hs.NumberGrid(low=-2, high=6, levels=3)
LEVELS = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.25, 0.125, 0.125], [0.25] * 4, [0.0, 0.25, 0.25, 0.5]]))
RESPONSE = hs.RoundedResponse(levels=3, epsilon=1.2, low=-2, high=6)


def exact(randomizer: hs.MatrixRandomizer | hs.RoundedResponse) -> list[list[Fraction]]:
    rows = [[Fraction(entry) for entry in row] for row in randomizer.channel().matrix.tolist()]
    return [[entry / sum(row) for entry in row] for row in rows]


@pytest.mark.parametrize("randomizer", [RESPONSE, LEVELS], ids=["response", "matrix"])
@pytest.mark.parametrize("dummies", [0, 1])
def test_the_mean_is_unbiased_with_the_predicted_error(
    randomizer: hs.MatrixRandomizer | hs.RoundedResponse, dummies: int
) -> None:
    """Over every rounding and every report of three people, in rationals."""
    numbers, channel = [Fraction(-2), Fraction(1), Fraction(23, 4)], exact(randomizer)
    shuffler = hs.Scrambler(dummies=dummies)
    survey = hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=3)
    laws = [report_law(rounding_law(number, Fraction(-2), Fraction(6), 3), channel) for number in numbers]
    laws += [[Fraction(part) for part in randomizer.law().blanket().law.tolist()]] * dummies
    mean = square = 0.0
    for reports, weight in outcomes(laws):
        counts = hs.Histogram(counts=np.bincount(reports, minlength=len(channel[0])))
        found = hs.estimate_numbers(counts, protocol=survey, grid=GRID)
        mean += float(weight) * found.mean
        square += float(weight) * found.mean**2
    variance = square - mean**2
    assert mean == pytest.approx(float(sum(numbers)) / 3, abs=1e-12)
    predicted = hs.mean_error(survey, grid=GRID, numbers=[float(number) for number in numbers])
    assert predicted**2 == pytest.approx(variance, rel=1e-9)
    assert hs.mean_error(survey, grid=GRID) >= predicted


@pytest.mark.parametrize("randomizer", [RESPONSE, LEVELS], ids=["response", "matrix"])
def test_the_worst_numbers_have_the_worst_error(randomizer: hs.MatrixRandomizer | hs.RoundedResponse) -> None:
    one = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=1)
    tried = [hs.mean_error(one, grid=GRID, numbers=[number]) for number in np.linspace(-2, 6, 401)]
    assert hs.mean_error(one, grid=GRID) == pytest.approx(max(tried), rel=1e-4)
    assert hs.mean_error(one, grid=GRID) >= max(tried) * (1 - 1e-12)


def test_simulated_means_agree_with_what_is_predicted_and_intervals_cover() -> None:
    n, trials = 4000, 400
    ages = hs.RoundedResponse(levels=9, epsilon=2.0, low=0, high=80)
    survey, rng = hs.Protocol(randomizer=ages, shuffler=hs.Scrambler(dummies=50), n=n), hs.reproducible(5)
    numbers = 80 * np.linspace(0, 1, n) ** 2
    found = [
        hs.estimate_numbers(survey.collect(ages.encode(numbers, rng=rng), rng=rng), protocol=survey, grid=ages.grid)
        for _ in range(trials)
    ]
    errors = np.array([one.mean for one in found]) - numbers.mean()
    predicted = hs.mean_error(survey, grid=ages.grid, numbers=numbers)
    assert abs(errors.mean()) / (predicted / math.sqrt(trials)) < largest_z(1)
    low, high = mean_square_range(trials, 1)
    assert low < (errors**2).mean() / predicted**2 < high
    covered = sum(one.interval(0.9)[0] <= numbers.mean() <= one.interval(0.9)[1] for one in found)
    assert covered > 0.9 * trials - largest_z(1) * math.sqrt(0.09 * trials)
    # The error that is told is never much too large: the rounding coin adds at most half a step.
    told = np.mean([one.standard_error**2 for one in found])
    assert predicted**2 * 0.99 < told < predicted**2 + ages.grid.step**2 / 4 / n * 1.05


def test_no_noise_gives_the_mean_of_the_rounded_numbers() -> None:
    certain = hs.RoundedResponse(levels=5, epsilon=math.inf, low=0, high=1)
    survey = hs.Protocol(randomizer=certain, shuffler=hs.UniformShuffle(), n=3)
    found = hs.estimate_numbers(np.array([0, 4, 4]), protocol=survey, grid=certain.grid)
    assert found.mean == pytest.approx(2 / 3)
    assert 0 <= found.interval()[0] <= found.mean <= found.interval()[1] <= 1


def test_counts_of_several_machines_add_up() -> None:
    survey = hs.Protocol(randomizer=RESPONSE, shuffler=hs.UniformShuffle(), n=5)
    reports = np.array([0, 1, 2, 2, 1])
    whole = hs.estimate_numbers(reports, protocol=survey, grid=GRID)
    parts = RESPONSE.counts(reports[:2]) + RESPONSE.counts(reports[2:])
    assert hs.estimate_numbers(parts, protocol=survey, grid=GRID).mean == whole.mean


def test_another_unit_is_another_grid() -> None:
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.UniformShuffle(), n=4)
    reports = np.array([0, 1, 2, 2])
    metres = hs.estimate_numbers(reports, protocol=survey, grid=hs.NumberGrid(low=0, high=2, levels=3))
    feet = hs.estimate_numbers(reports, protocol=survey, grid=hs.NumberGrid(low=10, high=10 + 6.5, levels=3))
    assert feet.mean == pytest.approx(10 + 3.25 * metres.mean)
    assert feet.standard_error == pytest.approx(3.25 * metres.standard_error)


def test_thousands_of_levels_need_no_matrix() -> None:
    fine = hs.RoundedResponse(levels=16_384, epsilon=8.0, low=0, high=1)
    survey = hs.Protocol(randomizer=fine, shuffler=hs.UniformShuffle(), n=1000)
    assert 0 < hs.mean_error(survey, grid=fine.grid) < 1


def test_what_does_not_fit_is_refused() -> None:
    survey = hs.Protocol(randomizer=RESPONSE, shuffler=hs.UniformShuffle(), n=4)
    drawn = hs.Protocol(randomizer=RESPONSE, shuffler=hs.Scrambler(dummies=hs.DummyLaw.of({0: 0.5, 2: 0.5})), n=4)
    four = hs.NumberGrid(low=0, high=1, levels=4)
    with pytest.raises(
        InvalidInputError, match=r"`grid` must be a grid of 3 levels, one for each value of the randomizer, got"
    ):
        hs.estimate_numbers(np.array([0, 1, 2, 2]), protocol=survey, grid=four)
    with pytest.raises(InvalidInputError, match=r"n \+ dummies = 4 reports, got reports=3"):
        hs.estimate_numbers(np.array([0, 1, 2]), protocol=survey, grid=GRID)
    with pytest.raises(InvalidInputError, match="n = 4 reports plus a number of dummies possible under"):
        hs.estimate_numbers(np.array([0, 1, 2, 2, 2]), protocol=drawn, grid=GRID)
    assert hs.estimate_numbers(np.array([0, 1, 2, 2, 2, 1]), protocol=drawn, grid=GRID).n == 4
    with pytest.raises(InvalidInputError, match="counts of 3 reports, got reports=4"):
        hs.estimate_numbers(hs.Histogram(counts=[1, 1, 1, 1]), protocol=survey, grid=GRID)
    with pytest.raises(InvalidInputError, match="`numbers` must be n = 4 numbers, got numbers=<2>"):
        hs.mean_error(survey, grid=GRID, numbers=[1.0, 2.0])
    with pytest.raises(InvalidInputError, match="`confidence` must be"):
        hs.estimate_numbers(np.array([0, 1, 2, 2]), protocol=survey, grid=GRID).interval(1.0)
    hashed = hs.Protocol(randomizer=hs.LocalHashing(k=3, g=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=4)
    with pytest.raises(UnsupportedProtocolError, match=r"distinct reports can be counted\. LocalHashing is neither"):
        hs.mean_error(hashed, grid=GRID)


def test_where_no_scores_are_unbiased_the_bias_is_known_and_in_the_interval() -> None:
    """Wide normal noise, and two levels with the same law: what cannot be told apart is not."""
    same = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.5], [0.5, 0.5], [0.25, 0.75]]))
    wide = hs.RoundedGaussian(levels=3, epsilon=0.5)
    for randomizer in (same, wide):
        survey = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=2000)
        for level in range(3):
            law = randomizer.channel().matrix[level]
            counts = hs.Histogram(counts=np.array([round(2000 * part) for part in law[:-1]] + [0]))
            counts = hs.Histogram(counts=np.array([*counts.counts[:-1], 2000 - counts.total]))
            found = hs.estimate_numbers(counts, protocol=survey, grid=GRID)
            assert abs(found.mean - GRID.points[level]) <= found.bias + 0.2
            low, high = found.interval(0.99)
            assert low <= GRID.points[level] <= high
    assert found.bias < GRID.step
    assert hs.mean_error(survey, grid=GRID) >= found.bias


def test_a_mean_under_wide_normal_noise_is_not_lost_for_want_of_unbiased_scores() -> None:
    grid = hs.NumberGrid(low=0, high=1, levels=16)
    survey = hs.Protocol(randomizer=hs.RoundedGaussian(levels=16, epsilon=4.0), shuffler=hs.UniformShuffle(), n=10_000)
    assert hs.mean_error(survey, grid=grid) < 0.2
