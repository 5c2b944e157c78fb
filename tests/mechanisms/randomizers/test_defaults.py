"""What every mechanism has without a line of its own."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.randomizers.report_law import Matrix
from hushuffle.questions import pie
from plain_protocols import Opaque

SETS = hs.SubsetSelection(k=6, w=2, epsilon=1.0)
MATRIX = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.2, 0.3], [0.1, 0.7, 0.2]]))


class Pairs(hs.SubsetSelection):
    """Sets that are known by their matrix alone."""

    def law(self) -> Any:
        return Matrix(table=super().law().channel())

    counts = Mechanism.counts


def survey(randomizer: Mechanism, n: int = 20) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=n)


def test_counts_are_those_of_each_value() -> None:
    reports = SETS.randomize([0, 1, 2, 3, 4, 5, 5], rng=hs.reproducible(1))
    supported = SETS.supports(reports, np.arange(6))
    assert Mechanism.counts(SETS, reports).counts.tolist() == supported.sum(axis=1).tolist()
    assert supported.sum() == 2 * 7


def test_reports_of_several_columns_have_their_place_in_the_matrix() -> None:
    pairs = Pairs(k=6, w=2, epsilon=1.0)
    reports = pairs.randomize([0, 1, 2, 3, 4, 5, 5], rng=hs.reproducible(1))
    labels: list[Any] = [tuple(report) for report in reports.tolist()]
    assert pairs.counts(reports).counts.tolist() == [labels.count(output) for output in pairs.channel().outputs]
    with pytest.raises(InvalidInputError, match="`reports` must be possible reports of the mechanism"):
        pairs.counts(np.array([[5, 5]]))


def test_settings_are_the_arguments() -> None:
    build = Mechanism.from_settings.__func__  # type: ignore[attr-defined]
    assert build(hs.SubsetSelection, 6, {"w": 2, "epsilon": 1.0}) == SETS


def test_without_a_table_a_specification_has_nothing_to_say() -> None:
    assert list(Opaque.problems({}, None)) == []


def test_reports_are_one_column() -> None:
    assert MATRIX.layout.limits == (3,)
    assert hs.BitFlipping(width=3, p=0.2).layout.limits == (8,)


def test_a_matrix_tells_nothing_on_purpose() -> None:
    assert MATRIX.law().told is None


def test_sets_without_noise_hold_their_value() -> None:
    plain = hs.SubsetSelection(k=6, w=2, epsilon=math.inf).law()
    assert plain.values == 6
    # Five values can be held; a set of two has the own one and another, held with probability 4/5.
    assert float(plain.capacity(5)[0]) == pytest.approx(math.log2(5) - 4 / 5)


def test_the_least_noise_of_sets_keeps_the_promise() -> None:
    routes = pie.calibrate(survey(SETS), bayes_error=0.94)
    (exact, fano, *_) = routes
    assert exact.protocol is not None
    assert fano.protocol is None
    assert pie.bayes_error(exact.protocol).lower >= 0.94
    assert pie.calibrate(survey(SETS), bayes_error=0.5)[0].epsilon == math.inf
    weaker = pie.calibrate(survey(SETS), bayes_error=0.5)[1]
    assert weaker.protocol is not None
    assert pie.bayes_error(weaker.protocol).lower >= 0.5
    with pytest.raises(InvalidInputError, match="`bayes_error` must be an error that some amount of noise guarantees"):
        pie.calibrate(survey(SETS), bayes_error=0.95)


def test_noise_that_is_no_mixture_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    law = MATRIX.law()
    monkeypatch.setattr(hs.SubsetSelection, "law", lambda _: law)
    with pytest.raises(UnsupportedProtocolError, match="not a mixture of the true value and a dummy's report"):
        pie.calibrate(survey(SETS), bayes_error=0.5)


def test_values_share_a_bucket_where_reports_are_hashes_only() -> None:
    assert hs.RandomizedResponse(k=5, epsilon=1.0).law().collision == 0
    assert hs.LocalHashing(k=5, g=4, epsilon=1.0).law().collision == Fraction(1, 4)
