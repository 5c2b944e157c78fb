from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import InvalidInputError
from hushuffle.model import Estimate, Histogram, Transcript


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=30))
def test_histograms_add_up(pairs: list[tuple[int, int]]) -> None:
    first, second = (Histogram(counts=list(column)) for column in zip(*pairs, strict=True))
    both = first + second
    assert both.counts.tolist() == [a + b for a, b in pairs]
    assert both == second + first
    assert both.total == first.total + second.total
    assert both.k == len(pairs)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([], r"`counts` must be a one-dimensional array of integers, got counts=<shape \(0,\), float64>"),
        ([[1]], r"`counts` must be a one-dimensional array of integers, got counts=<shape \(1, 1\), int64>"),
        ([1.0], r"`counts` must be a one-dimensional array of integers, got counts=<shape \(1,\), float64>"),
        ([3, -1], r"`counts` must be from 0 to 2\*\*63 - 1, got counts=-1"),
    ],
)
def test_counts_are_counts(counts: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Histogram(counts=counts)


def test_counts_beyond_64_bits_are_refused() -> None:
    with pytest.raises(InvalidInputError):
        Histogram(counts=[2**63])


def test_histograms_are_values() -> None:
    source = np.array([1, 2])
    histogram = Histogram(counts=source)
    source[0] = 9
    assert histogram.counts.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        histogram.counts[0] = 5
    assert histogram != Histogram(counts=[1, 3])
    assert histogram != [1, 2]
    with pytest.raises(TypeError, match="unhashable"):
        hash(histogram)
    with pytest.raises(InvalidInputError, match=r"`other` must be a histogram of 2 values, got other=3"):
        histogram + Histogram(counts=[1, 2, 3])


def test_histograms_print_their_first_counts() -> None:
    assert repr(Histogram(counts=[3, 4])) == "Histogram(3, 4)"
    assert repr(Histogram(counts=range(14))) == "Histogram(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...)"


def test_a_transcript_has_a_row_for_everyone() -> None:
    transcript = Transcript(reports=np.array([0, 1, 1]), people=2, dummies=1)
    assert repr(transcript) == "Transcript(people=2, dummies=1)"  # no reports
    assert Transcript(reports=np.zeros((2, 5), dtype=np.int64), people=2).dummies == 0
    with pytest.raises(
        InvalidInputError, match=r"`reports` must be 3 rows \(people and dummies\), got .*<shape \(2,\)>"
    ):
        Transcript(reports=np.array([0, 1]), people=2, dummies=1)
    with pytest.raises(InvalidInputError, match=r"`people` must be an integer >= 1"):
        Transcript(reports=np.array([0]), people=0, dummies=1)
    with pytest.raises(InvalidInputError, match=r"`dummies` must be an integer >= 0"):
        Transcript(reports=np.array([0]), people=2, dummies=-1)


def test_a_transcript_of_a_list_is_refused_or_read() -> None:
    assert Transcript(reports=[0, 1], people=2).people == 2  # type: ignore[arg-type]


def made(raw: Any, **fields: Any) -> Estimate:
    array = np.array(raw)
    default = {"frequencies": array, "raw": array, "n": 10, "variance_intercept": 0.01, "variance_slope": 0.02}
    return Estimate(**{**default, **fields})


def test_standard_errors_are_of_the_raw_frequencies() -> None:
    found = made([0.5, 0.0, -9.0], frequencies=np.array([0.6, 0.4, 0.0]))
    assert found.standard_errors.tolist() == pytest.approx([0.02**0.5, 0.1, 0.0])
    assert found.k == 3
    assert repr(found) == "Estimate(k=3, n=10)"
    assert repr(made([0.5], postprocessing=("cut",))) == "Estimate(k=1, n=10, postprocessing=('cut',))"


def test_intervals_stay_inside_and_hold_the_clipped_estimate() -> None:
    for confidence in (0.5, 0.95, 0.999999):
        found = made([-0.05, 0.0, 0.5, 1.0, 1.1])
        low, high = found.interval(confidence).T
        assert np.all((low >= 0) & (high <= 1) & (low <= high))
        middle = np.clip(found.raw, 0, 1)
        assert np.all((low <= middle) & (middle <= high))


def test_an_interval_far_outside_is_an_end_point() -> None:
    assert made([-40.0], variance_slope=0.0).interval().tolist() == [[0.0, 0.0]]
    assert made([-40.0], variance_slope=0.2).interval().tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("confidence", [0.0, 1.0, 1.5, float("nan")])
def test_confidence_is_strictly_between(confidence: float) -> None:
    with pytest.raises(InvalidInputError, match=r"`confidence` must be in \(0, 1\)"):
        made([0.5]).interval(confidence)


def test_frequencies_are_like_raw() -> None:
    with pytest.raises(InvalidInputError, match=r"`frequencies` must be a \(k,\) array like raw, got .*\(2,\)"):
        made([0.5], frequencies=np.array([0.5, 0.5]))
    with pytest.raises(InvalidInputError, match=r"`frequencies` must be a \(k,\) array like raw, got .*\(1, 1\)"):
        made([[0.5]])
