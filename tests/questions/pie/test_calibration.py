from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.questions import pie


def protocol(*, k: int, epsilon: float, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


@pytest.mark.parametrize(("n", "k"), [(100, 1000), (1000, 1000), (3, 2), (1_370_637, 10_500_393)])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
def test_error_is_kept_and_no_more_noise_than_needed(n: int, k: int, share: float) -> None:
    error = share * (1 - 1 / n) + (1 - share) * (1 - min(n, k) / n)
    epsilon = pie.epsilon_for_error(error, n=n, k=k)
    assert pie.bayes_error(protocol(k=k, epsilon=epsilon, n=n)).lower >= error
    assert pie.bayes_error(protocol(k=k, epsilon=epsilon * (1 + 1e-6), n=n)).lower < error


@pytest.mark.parametrize(("n", "k"), [(2, 2), (100, 1000), (1_370_637, 10_500_393)])
@pytest.mark.parametrize("alpha", [1e-7, 0.01, 0.9])
def test_alpha_is_kept_and_no_more_noise_than_needed(n: int, k: int, alpha: float) -> None:
    epsilon = pie.epsilon_for_alpha(alpha, n=n, k=k)
    assert pie.alpha(protocol(k=k, epsilon=epsilon, n=n)).upper <= alpha
    assert pie.alpha(protocol(k=k, epsilon=epsilon * (1 + 1e-6), n=n)).upper > alpha


@pytest.mark.parametrize("alpha", [1e-36, 1e-30, 3e-9, 0.25])
def test_alpha_is_kept_exactly_by_the_implemented_threshold(alpha: float) -> None:
    randomizer = hs.RandomizedResponse(k=2, epsilon=pie.epsilon_for_alpha(alpha, n=2, k=2))
    assert randomizer.law().capacity(2)[1] <= Decimal(alpha)


def test_noise_is_not_needed_where_values_are_few() -> None:
    assert pie.epsilon_for_error(0.99, n=10**8, k=5) == math.inf
    assert pie.epsilon_for_alpha(math.log2(5), n=10**8, k=5) == math.inf
    assert pie.epsilon_for_alpha(0.0, n=1, k=5) == math.inf


@pytest.mark.parametrize(
    ("call", "value", "keywords", "message"),
    [
        (pie.epsilon_for_error, 0.9, {"n": 10, "k": 20}, r"`bayes_error` must be below 1 - 1/n = 0.9, got"),
        (pie.epsilon_for_error, 0.95, {"n": 10, "k": 20}, r"`bayes_error` must be below 1 - 1/n = 0.9, got"),
        (pie.epsilon_for_error, 1.5, {"n": 10, "k": 20}, r"`bayes_error` must be in \[0, 1\]"),
        (pie.epsilon_for_error, 0.5, {"n": 0, "k": 20}, r"`n` must be an integer >= 1"),
        (pie.epsilon_for_error, 0.5, {"n": 10, "k": 1}, r"`k` must be an integer from 2 to"),
        (pie.epsilon_for_error, 0.5, {"n": 10, "k": 5, "g": 1}, r"`g` must be an integer from 2 to"),
        (
            pie.epsilon_for_alpha,
            0.0,
            {"n": 10, "k": 20},
            r"`alpha_bits` must be large enough that a report depends on the value",
        ),
        (pie.epsilon_for_alpha, -1.0, {"n": 10, "k": 20}, r"`alpha_bits` must be finite and >= 0"),
        (pie.epsilon_for_alpha, 0.5, {"n": 10, "k": 1}, r"`k` must be an integer from 2 to"),
    ],
)
def test_bad_input(call: Any, value: float, keywords: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call(value, **keywords)
