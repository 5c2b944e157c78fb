"""What only randomized response promises."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Symmetric, support_law, symmetric_law
from hushuffle.randomness import SCALE
from plain_protocols import Opaque


@pytest.mark.parametrize("epsilon", [1e-12, 0.3, 2.0, 44.0])
@pytest.mark.parametrize("k", [2, 3, 1000])
def test_law_is_that_of_the_implemented_threshold(k: int, epsilon: float) -> None:
    randomizer = hs.RandomizedResponse(k=k, epsilon=epsilon)
    law, coin = randomizer.law(), Fraction(randomizer.threshold, SCALE)
    assert law.truth == coin + (1 - coin) / k
    assert law.lie == (1 - coin) / k
    assert (law.theta, law.gamma) == (coin, 1 - coin)
    assert float(law.truth) == pytest.approx(math.exp(epsilon) / (k - 1 + math.exp(epsilon)), rel=1e-6)


def test_no_noise_reports_a_copy_of_the_truth() -> None:
    exact = hs.RandomizedResponse(k=3, epsilon=math.inf)
    values = np.array([2, 0, 1])
    reports = exact.randomize(values, rng=hs.secure())
    assert reports.tolist() == [2, 0, 1]
    assert not np.shares_memory(reports, values)
    assert exact.local_epsilon == math.inf
    assert "no noise" in exact.describe()
    assert "0.6488" in hs.RandomizedResponse(k=5, epsilon=2.0).describe()


def test_blocks_make_no_difference_to_the_law_of_long_inputs() -> None:
    n = 3 * (1 << 16) + 17
    reports = hs.RandomizedResponse(k=2, epsilon=1.0).randomize(np.ones(n, dtype=np.int8), rng=hs.reproducible(1))
    share = math.exp(1) / (1 + math.exp(1))
    assert abs(reports.mean() - share) < 5.4 * math.sqrt(share * (1 - share) / n)  # 7e-8, two-sided
    assert reports.dtype == np.int64


@pytest.mark.parametrize("p", [0.5001, 0.8, 0.999999, 1 - 2**-53])
@pytest.mark.parametrize("k", [2, 5])
def test_truth_probability_is_kept(k: int, p: float) -> None:
    law = hs.RandomizedResponse.from_truth_probability(k=k, p=p).law()
    assert float(law.truth) == pytest.approx(p, rel=1e-15)
    assert float(1 - law.truth) == pytest.approx(1 - p, rel=1e-12)


def test_truth_probability_one_is_no_noise() -> None:
    assert hs.RandomizedResponse.from_truth_probability(k=4, p=1.0).epsilon == math.inf


@pytest.mark.parametrize(
    ("k", "p", "message"),
    [
        (2, 0.5, r"`p` must be > 1/k = 0.5, got p=0.5. At p = 1/k, reports are independent of values."),
        (4, 0.1, r"`p` must be > 1/k = 0.25, got p=0.1"),
        (4, 1.1, r"`p` must be in \[0, 1\], got p=1.1"),
        (1, 0.9, r"`k` must be an integer from 2 to"),
    ],
)
def test_bad_truth_probability(k: int, p: float, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.RandomizedResponse.from_truth_probability(k=k, p=p)


@pytest.mark.parametrize(
    ("k", "epsilon", "message"),
    [
        (1, 1.0, r"`k` must be an integer from 2 to 1099511627776, got k=1"),
        (2**40 + 1, 1.0, r"`k` must be an integer from 2 to"),
        (2, 0.0, r"`epsilon` must be > 0 \(math.inf is allowed\), got epsilon=0.0. math.inf means no noise."),
        (2, math.nan, r"`epsilon` must be > 0 \(math.inf is allowed\), got epsilon=nan"),
        (
            2,
            1e-20,
            r"`epsilon` must be large enough that a report depends on the value at k=2, got",
        ),
        (2**40, 1e-8, r"`epsilon` must be large enough that a report depends on the value"),
    ],
)
def test_bad_parameters(k: int, epsilon: float, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.RandomizedResponse(k=k, epsilon=epsilon)


def test_equality_is_of_parameters() -> None:
    assert hs.RandomizedResponse(k=2, epsilon=1) == hs.RandomizedResponse(k=2, epsilon=1.0)
    assert hs.RandomizedResponse(k=2, epsilon=1.0) != hs.RandomizedResponse(k=3, epsilon=1.0)
    assert repr(hs.RandomizedResponse(k=2, epsilon=1)) == "RandomizedResponse(k=2, epsilon=1.0)"


def test_symmetric_law_must_be_one() -> None:
    with pytest.raises(InvalidInputError, match=r"`truth, lie` must be truth >= lie >= 0"):
        Symmetric(k=3, truth=Fraction(1, 2), lie=Fraction(1, 2))
    with pytest.raises(InvalidInputError, match=r"`truth, lie` must be truth >= lie >= 0"):
        Symmetric(k=2, truth=Fraction(1, 4), lie=Fraction(3, 4))


def test_laws_are_asked_for_by_what_is_needed() -> None:
    randomizer = hs.RandomizedResponse(k=2, epsilon=1.0)
    assert symmetric_law(randomizer, for_what="A question") == randomizer.law()
    assert support_law(randomizer, for_what="A question") == randomizer.law().support
    message = r"^A question needs randomized response, which treats all values alike, but the mechanism is Opaque"
    with pytest.raises(UnsupportedProtocolError, match=message):
        symmetric_law(Opaque(), for_what="A question")
    with pytest.raises(UnsupportedProtocolError, match=r"^A question needs reports that support values, but the mech"):
        support_law(Opaque(), for_what="A question")
    with pytest.raises(UnsupportedProtocolError, match="A matrix would have"):
        Opaque().counts(np.zeros(3, dtype=np.int64))
