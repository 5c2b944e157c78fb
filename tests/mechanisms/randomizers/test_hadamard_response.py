from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.estimation import predicted_standard_error
from hushuffle.mechanisms.randomizers.hadamard_response import Halves
from hushuffle.model.prior import Prior
from oracles.one_hot import hadamard_rows
from oracles.pie_hashing import best_success_with_prior
from oracles.pie_information import capacity

F = Fraction
GROWTHS = (F(3, 2), F(4), F(60))


def law(k: int, growth: Fraction) -> Halves:
    return Halves(k=k, theta=(growth - 1) / (growth + 1))


@pytest.mark.parametrize("k", [2, 3, 4, 5, 7, 8])
@pytest.mark.parametrize("growth", GROWTHS)
def test_the_channel_is_that_of_the_definition(k: int, growth: Fraction) -> None:
    expected = np.array(hadamard_rows(k, growth), dtype=np.float64)
    response = hs.HadamardResponse(k=k, epsilon=math.log(growth))
    assert response.channel().matrix == pytest.approx(expected, abs=1e-12)
    assert law(k, growth).channel().matrix == pytest.approx(expected, abs=1e-16)
    assert response.local_epsilon == pytest.approx(math.log(growth), rel=1e-12)
    assert response.local_epsilon <= math.log(growth)


@pytest.mark.parametrize("k", [4, 5])
def test_naming_one_of_three_needs_a_product_of_rows(k: int) -> None:
    channel, growth = hadamard_rows(k, F(4)), F(4)
    for weights in ([F(1, 3)] * 3, [F(1, 2), F(3, 10), F(1, 5)]):
        blocks = tuple((weight, weights.count(weight)) for weight in sorted(set(weights), reverse=True))
        assert law(k, growth).bayes(Prior(blocks=blocks)) == (best_success_with_prior(channel, weights), True)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_capacity_holds(k: int) -> None:
    channel = [[float(entry) for entry in row] for row in hadamard_rows(k, F(4))]
    one_bit = float(law(2**20, F(4)).capacity(10)[1])
    for people in range(1, k + 2):
        low, high = law(k, F(4)).capacity(people)
        exact = max(
            capacity([channel[x] for x in chosen]) for chosen in itertools.combinations(range(k), min(people, k))
        )
        assert float(low) - 1e-9 <= exact <= float(high) + 1e-9
        assert exact <= one_bit


def test_every_other_value_is_like_one_of_the_rows() -> None:
    """Any three rows of the Hadamard matrix are independent, or one is the product of the two others."""
    rows = np.array(hadamard_rows(7, F(3)), dtype=np.float64)
    seen = set()
    for a, b, c in itertools.permutations(range(7), 3):
        classes, counts = np.unique(np.stack([rows[a], rows[b], rows[c]]), axis=1, return_counts=True)
        seen.add((classes.shape[1], *counts.tolist()))
    assert seen == {(4, 2, 2, 2, 2), (8, *[1] * 8)}
    ours = law(7, F(3)).pairs()[0]
    for third, kinds in ((2, 4), (3, 8)):
        assert len(np.unique(ours.rows[[0, 1, third]], axis=1).T) == kinds


def test_a_million_values_have_figures_and_counts() -> None:
    response = hs.HadamardResponse(k=10**6, epsilon=2.0)
    survey = hs.Protocol(randomizer=response, shuffler=hs.UniformShuffle(), n=10**6)
    assert hs.dp.epsilon(survey, delta=1e-8).upper < 0.1
    assert hs.pie.bayes_error(survey).kind == "exact"
    assert hs.pie.alpha(survey).kind == "upper"
    with pytest.raises(UnsupportedProtocolError, match="1,048,576,000,000 entries"):
        response.channel()
    values = np.where(np.arange(20_000) % 2, 0, 999_999)
    reports = response.randomize(values, rng=hs.reproducible(1))
    counts = response.counts(reports).counts
    for value in (0, 1, 777, 999_999):
        assert counts[value] == response.supports(reports, np.array([value])).sum()


@pytest.mark.parametrize(("epsilon", "more"), [(1.0, 1.13), (2.0, 1.54)])
def test_its_error_beside_that_of_bits_is_as_the_guide_says(epsilon: float, more: float) -> None:
    halves, bits = (
        predicted_standard_error(hs.Protocol(randomizer=one, shuffler=hs.UniformShuffle(), n=100), frequency=0.0)
        for one in (hs.HadamardResponse(k=50, epsilon=epsilon), hs.UnaryEncoding(k=50, epsilon=epsilon))
    )
    assert round(float(halves) / float(bits), 2) == more


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 1, "epsilon": 1.0}, r"`k` must be an integer from 2 to 134217727, got k=1"),
        ({"k": 5, "epsilon": 0.0}, r"`epsilon` must be > 0"),
        (
            {"k": 5, "epsilon": 1e-20},
            r"`epsilon` must be large enough that a report depends on the value",
        ),
    ],
)
def test_bad_parameters(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.HadamardResponse(**arguments)  # type: ignore[arg-type]


def test_responses_of_one_size_have_the_same_reports() -> None:
    first, second = (hs.HadamardResponse(k=5, epsilon=epsilon).law().classes for epsilon in (1.0, 2.0))
    assert first == second != hs.HadamardResponse(k=6, epsilon=1.0).law().classes


def test_the_value_is_told_on_purpose_as_often_as_a_report_is_no_dummys() -> None:
    law = hs.HadamardResponse(k=3, epsilon=1.0).law()
    assert law.support is not None
    assert float(law.told or 0) == pytest.approx(law.support.told)
