"""What every randomizer promises. Statistical tests: false-alarm rate below 1e-6 each, fixed seeds."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from contracts.examples import RANDOMIZERS, named
from hushuffle.errors import InvalidInputError
from hushuffle.estimation import standard_errors_at
from hushuffle.mechanisms.randomizers import Mechanism
from oracles.rr_statistics import chi_square_excess, largest_z, mean_square_range

ALL: dict[str, Any] = named(RANDOMIZERS)
KEY = bytes(range(32))


COUNTED = {name: example for name, example in ALL.items() if example.law().support is not None}
SYMMETRIC = {name: example for name, example in ALL.items() if example.law().symmetric is not None}


def among(chosen: dict[str, Any]) -> pytest.MarkDecorator:
    """Parametrize over some of the examples."""
    return pytest.mark.parametrize("randomizer", chosen.values(), ids=chosen.keys())


def labels(reports: npt.NDArray[np.int64]) -> list[Hashable]:
    """Reports as the output labels of a channel: an integer each, or a tuple of integers."""
    return [report if isinstance(report, int) else tuple(report) for report in reports.tolist()]


def tally(reports: npt.NDArray[np.int64], outputs: tuple[Hashable, ...]) -> npt.NDArray[np.int64]:
    """How often each output occurs, shape (outputs,)."""
    place = {label: position for position, label in enumerate(outputs)}
    return np.bincount([place[label] for label in labels(reports)], minlength=len(outputs))


def support(randomizer: Any) -> npt.NDArray[np.int64]:
    """Entry (y, x): whether report y supports value x."""
    return np.array([randomizer.counts(np.array([label])).counts for label in randomizer.channel().outputs])


@among(ALL)
def test_sampler_follows_the_channel(randomizer: Any) -> None:
    channel, each = randomizer.channel(), 40_000
    values = np.repeat(np.arange(randomizer.inputs), each)
    reports = randomizer.randomize(values, rng=hs.reproducible(1))
    seen = [tally(block, channel.outputs) for block in np.split(reports, randomizer.inputs)]
    assert chi_square_excess(seen, each * channel.matrix) < 0


@among(ALL)
def test_channel_keeps_local_epsilon_exactly(randomizer: Any) -> None:
    matrix = randomizer.channel().matrix
    with np.errstate(divide="ignore"):
        logs = np.log(matrix)
    spread = max(float(column.max() - column.min()) for column in logs.T if column.max() > -math.inf)
    if math.isinf(spread):
        assert randomizer.local_epsilon == math.inf
    else:
        # One rounding of each logarithm: the published figure itself is checked in 400 digits elsewhere.
        assert spread - 4e-15 <= randomizer.local_epsilon <= spread + 1e-12


@among(COUNTED)
def test_no_report_that_fits_the_columns_speaks_for_a_value_twice(randomizer: Any) -> None:
    """Whatever somebody makes up: it pulls no harder than a report that a device can send."""
    limits = np.array(randomizer.layout.limits, dtype=np.float64)
    drawn = np.random.default_rng(7).random((300, limits.size))
    drawn[:60] = np.round(drawn[:60] * 1.2 - 0.1).clip(0, 1 - 1e-9)  # corners: nothing but 0 and the largest
    rows = np.floor(drawn * limits).astype(np.int64)
    reports = rows if limits.size > 1 else rows[:, 0]
    values = np.arange(randomizer.inputs)
    each = np.array([randomizer.counts(reports[place : place + 1]).counts for place in range(len(reports))])
    assert each.max() <= 1
    assert (each == randomizer.supports(reports, values).T).all()
    assert (randomizer.counts(reports).counts == each.sum(axis=0)).all()


@among(ALL)
def test_blanket_is_what_all_rows_share(randomizer: Any) -> None:
    shared, blanket = randomizer.channel().matrix.min(axis=0), randomizer.law().blanket()
    law = randomizer.law()
    if law.support is None or not support(randomizer).all(axis=1).any():
        assert blanket.weight == pytest.approx(shared.sum(), abs=1e-14)
        assert blanket.weight * blanket.law == pytest.approx(shared, abs=1e-14)
    else:  # where a report supports all values, as some hashes do, these share more
        assert (blanket.weight * blanket.law <= shared + 1e-14).all()
    assert blanket.law.sum() == pytest.approx(1.0, abs=1e-12)


@among(SYMMETRIC)
def test_symmetric_law_is_the_channel(randomizer: Any) -> None:
    law, matrix = randomizer.law(), randomizer.channel().matrix
    expected = np.full((law.k, law.k), float(law.lie))
    np.fill_diagonal(expected, float(law.truth))
    assert np.array_equal(matrix, expected)
    assert law.theta + law.gamma == 1


@among(ALL)
def test_dummies_follow_the_blanket(randomizer: Any) -> None:
    count, outputs = 50_000, randomizer.channel().outputs
    seen = tally(randomizer.dummies(count, rng=hs.reproducible(2)), outputs)
    assert chi_square_excess(seen, count * randomizer.law().blanket().law) < 0
    assert randomizer.dummies(0, rng=hs.reproducible(2)).shape[0] == 0


@among(COUNTED)
def test_support_probabilities_follow_from_the_channel(randomizer: Any) -> None:
    law, supports = randomizer.law().support, randomizer.channel().matrix @ support(randomizer)
    expected = np.full_like(supports, law.false)
    np.fill_diagonal(expected, law.true)
    assert supports == pytest.approx(expected, abs=1e-12)


@among(COUNTED)
def test_dummies_support_every_value_alike(randomizer: Any) -> None:
    supports = randomizer.law().blanket().law @ support(randomizer)
    assert supports == pytest.approx(np.full(randomizer.inputs, randomizer.law().support.dummy), abs=1e-12)


@among(ALL)
def test_counts_of_disjoint_reports_add_up(randomizer: Any) -> None:
    rng = hs.reproducible(3)
    values = rng.integers(randomizer.inputs, 500)
    reports = randomizer.randomize(values, rng=rng)
    merged = randomizer.counts(reports[:123]) + randomizer.counts(reports[123:])
    assert merged == randomizer.counts(reports)
    assert merged.k == randomizer.counted


@among(ALL)
def test_estimates_are_unbiased_with_the_predicted_variance(randomizer: Any) -> None:
    n, trials, k = 800, 300, randomizer.inputs
    survey, rng = hs.Protocol(randomizer=randomizer, shuffler=hs.NoShuffle(), n=n), hs.reproducible(4)
    values = np.minimum(np.arange(n) * 2 * k // n, k - 1)  # the last value is as frequent as k others
    truth = np.bincount(values, minlength=k) / n
    found = [hs.estimate(survey.collect(values, rng=rng), protocol=survey) for _ in range(trials)]
    errors = np.array([estimate.raw for estimate in found]) - truth
    predicted = standard_errors_at(survey, frequencies=truth) ** 2
    if np.all(predicted < 1e-20):
        assert np.abs(errors).max() < 1e-12
        return
    z = errors.mean(axis=0) / np.sqrt(predicted / trials)
    assert np.abs(z).max() < largest_z(k)
    low, high = mean_square_range(trials, k)
    ratio = (errors**2).mean(axis=0) / predicted
    assert low < ratio.min()
    assert ratio.max() < high


@among(ALL)
def test_every_source_of_randomness_works(randomizer: Mechanism) -> None:
    values = np.arange(200) % randomizer.inputs
    shapes = {
        randomizer.randomize(values, rng=rng).shape
        for rng in (hs.secure(), hs.reproducible(0), hs.keyed(key=os.urandom(32), records=np.arange(200)))
    }
    assert len(shapes) == 1
    assert shapes.pop()[0] == 200


@among(ALL)
def test_values_are_read_not_written(randomizer: Mechanism) -> None:
    values = np.arange(300) % randomizer.inputs
    before = values.copy()
    reports = randomizer.randomize(values, rng=hs.reproducible(5))
    assert np.array_equal(values, before)
    assert not np.shares_memory(values, reports)


@among(ALL)
def test_a_seed_repeats_the_reports(randomizer: Mechanism) -> None:
    values = np.arange(300) % randomizer.inputs
    first, second = (randomizer.randomize(values, rng=hs.reproducible(6)) for _ in range(2))
    assert np.array_equal(first, second)


@among(ALL)
def test_a_keyed_record_repeats_its_report_in_any_batch(randomizer: Mechanism) -> None:
    records = np.array([31, 5, 2**40, 0, 17, 8, 99, 1000, 7, 3], dtype=np.uint64)
    values = np.arange(10) % randomizer.inputs
    whole = randomizer.randomize(values, rng=hs.keyed(key=KEY, records=records))
    turned = np.array([4, 9, 0, 2, 7, 1, 3, 8, 6, 5])
    assert np.array_equal(
        randomizer.randomize(values[turned], rng=hs.keyed(key=KEY, records=records[turned])), whole[turned]
    )
    for place in range(10):
        alone = hs.keyed(key=KEY, records=records[place : place + 1])
        assert np.array_equal(randomizer.randomize(values[place : place + 1], rng=alone)[0], whole[place])


@among(ALL)
def test_keyed_reports_follow_the_channel_too(randomizer: Any) -> None:
    channel, each = randomizer.channel(), 10_000
    values = np.repeat(np.arange(randomizer.inputs), each)
    reports = randomizer.randomize(values, rng=hs.keyed(key=KEY, records=np.arange(values.size)))
    seen = [tally(block, channel.outputs) for block in np.split(reports, randomizer.inputs)]
    assert chi_square_excess(seen, each * channel.matrix) < 0


@among(ALL)
def test_values_outside_the_domain_are_refused_and_not_shown(randomizer: Mechanism) -> None:
    outside = 987_654_321_987
    for values in ([0, outside], [-outside, 0]):
        with pytest.raises(InvalidInputError, match=r"`values` must be integers from 0 to .*1 of 2 values") as caught:
            randomizer.randomize(values, rng=hs.reproducible(0))
        assert str(outside) not in str(caught.value)


@among(ALL)
def test_dummies_must_be_counted(randomizer: Mechanism) -> None:
    with pytest.raises(InvalidInputError, match=r"`count` must be an integer >= 0, got count=-1"):
        randomizer.dummies(-1, rng=hs.reproducible(0))


@among(ALL)
def test_description_is_one_plain_line(randomizer: Mechanism) -> None:
    assert 10 < len(randomizer.describe()) < 300
    assert "\n" not in randomizer.describe()
