"""The published helpers against exact probabilities, everywhere, and against 50 digits at size."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.questions.bloom import evaluate_gauss_continued_fraction, ratio_of_hypergeometric_mgf
from hushuffle.questions.bloom import simulation as ratios
from oracles import bloom_enumeration as oracle


def test_both_statements_of_the_ratio_agree_with_the_probabilities() -> None:
    """Random m, y_d, y and p in rationals, y_d + y >= m as often as not."""
    rng = np.random.default_rng(1)
    reflected = 0
    for _ in range(40):
        m = int(rng.integers(1, 40))
        ones, p = int(rng.integers(0, m)), Fraction(int(rng.integers(1, 50)), 100)
        z = ((1 - p) / p) ** 2
        first, second = oracle.filling_law(m, ones, p), oracle.filling_law(m, ones + 1, p)
        found = ratio_of_hypergeometric_mgf(
            count_input_ones=ones, count_output_ones=np.arange(m + 1), p=float(p), bits=m
        )
        for seen in range(m + 1):
            exact = second[seen] / first[seen] * (1 - p) / p
            assert oracle.hypergeometric_ratio(m, ones, seen, z) == exact
            assert float(found[seen]) == pytest.approx(float(exact), rel=1e-13)
            reflected += ones + seen >= m
    assert reflected > 200


def law_in_digits(m: int, ones: int, seen: int, p: float) -> mpmath.mpf:
    """The probability of `seen` ones by its sum in 40 digits, each term from the one before."""
    flip = mpmath.mpf(p)
    z = ((1 - flip) / flip) ** 2
    first, last = max(0, ones + seen - m), min(ones, seen)
    term = mpmath.binomial(ones, first) * mpmath.binomial(m - ones, seen - first)
    term *= (1 - flip) ** (m - ones - seen + 2 * first) * flip ** (ones + seen - 2 * first)
    total = term
    for i in range(first, last):
        term *= z * (ones - i) * (seen - i) / ((i + 1) * (m - ones - seen + i + 1))
        total += term
    return total


@pytest.mark.parametrize(("m", "ones"), [(10**4, 0), (10**4, 5000), (10**4, 9999), (10**5, 300)])
def test_large_filters(m: int, ones: int) -> None:
    p = 0.05
    seen = round(ones * 0.95 + (m - ones) * 0.05) + 3
    with mpmath.workdps(40):
        exact = (
            law_in_digits(m, ones + 1, seen, p) / law_in_digits(m, ones, seen, p) * (1 - mpmath.mpf(p)) / mpmath.mpf(p)
        )
        found = ratio_of_hypergeometric_mgf(count_input_ones=ones, count_output_ones=[seen], p=p, bits=m)
        assert float(found[0]) == pytest.approx(float(exact), rel=1e-11)


def test_a_fixed_depth_is_not_enough() -> None:
    """m = 10**5, p = 0.05, half full: a thousand terms miss ln R by 1.4, where it is at most 0.1."""
    m, ones, seen, z = 10**5, 50_000, 49_999, 19.0**2
    left = float(m - ones - seen)
    short = ratios._cut(np.array(-ones - 1.0), np.array(-float(seen)), np.array(left), z, 1000)
    whole = evaluate_gauss_continued_fraction(-ones - 1, -seen, left, z)
    loss = abs(float(np.log(left / (m - ones) / whole * (0.05 / 0.95))))
    miss = abs(float(np.log(short / whole)))
    assert loss < 0.1
    assert miss > 1.0


def test_the_coefficients_against_hypergeometric_functions() -> None:
    with mpmath.workdps(40):
        for a, b, c, z in ((-5, -3, 2, 4.0), (-1, 0, 1, 9.0), (-7, -12, 1, 1.5), (-30, -40, 7, 20.0)):
            exact = mpmath.hyp2f1(a + 1, b, c + 1, z) / mpmath.hyp2f1(a, b, c, z)
            assert float(evaluate_gauss_continued_fraction(a, b, c, z)) == pytest.approx(float(exact), rel=1e-13)


def test_shapes() -> None:
    found = ratio_of_hypergeometric_mgf(count_input_ones=2, count_output_ones=[[0, 1], [2, 5]], p=0.1, bits=5)
    assert found.shape == (2, 2)
    assert evaluate_gauss_continued_fraction([-2, -3], -1, [[1], [2]], 4.0).shape == (2, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count_input_ones": 5}, "count_input_ones"),
        ({"count_output_ones": [6]}, "count_output_ones"),
        ({"p": 0.5}, "p"),
        ({"p": 0.0}, "p"),
        ({"bits": 0}, "bits"),
    ],
)
def test_arguments_out_of_range(arguments: dict[str, object], message: str) -> None:
    whole: dict[str, object] = {"count_input_ones": 1, "count_output_ones": [1], "p": 0.1, "bits": 5, **arguments}
    with pytest.raises(InvalidInputError, match=message):
        ratio_of_hypergeometric_mgf(**whole)  # type: ignore[arg-type]


@pytest.mark.parametrize(("a", "b", "c"), [(0, -1, 1), (-1, 1, 1), (-1, -1, 0), (-1.5, -1, 1)])
def test_parameters_outside_the_proof(a: float, b: float, c: float) -> None:
    with pytest.raises(InvalidInputError, match="a, b, c"):
        evaluate_gauss_continued_fraction(a, b, c, 2.0)


def test_too_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratios, "_DEEPEST", 100)
    with pytest.raises(NumericalError, match="more than 100 terms"):
        evaluate_gauss_continued_fraction(-50_001, -49_999, 1, 361.0)
