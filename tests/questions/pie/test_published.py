from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.questions import pie
from oracles.pie_information import best_success, capacity, error_of, mutual_information


def protocol(*, k: int, epsilon: float, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


@pytest.mark.parametrize(("epsilon", "ldp", "rr"), [(0.1, 0.014, 2.0e-7), (1.0, 1.4, 3.3e-6), (10.0, 14.0, 0.043)])
def test_figure_4_of_the_paper(epsilon: float, ldp: float, rr: float) -> None:
    places = protocol(k=10_500_393, epsilon=epsilon, n=1_370_637)
    assert pie.ldp_alpha(places).upper == pytest.approx(ldp, rel=0.035)  # printed with two digits
    assert pie.rr_alpha(places).upper == pytest.approx(rr, rel=0.035)


def test_what_limits_the_local_bound() -> None:
    bits = math.log2(math.e)
    assert pie.ldp_alpha(protocol(k=100, epsilon=0.5, n=10**6)).upper == pytest.approx(0.25 * bits)
    assert pie.ldp_alpha(protocol(k=100, epsilon=2.0, n=10**6)).upper == pytest.approx(2 * bits)
    assert pie.ldp_alpha(protocol(k=100, epsilon=9.0, n=8)).upper == pytest.approx(3.0)
    assert pie.ldp_alpha(protocol(k=4, epsilon=math.inf, n=8)).upper == pytest.approx(2.0)


@pytest.mark.parametrize("k", [2, 3, 50, 10**6])
@pytest.mark.parametrize("n", [2, 40, 10**9])
@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 4.0, 40.0, math.inf])
def test_the_exact_figure_is_below_both_bounds(k: int, n: int, epsilon: float) -> None:
    survey = protocol(k=k, epsilon=epsilon, n=n)
    exact, rr, ldp = pie.alpha(survey).upper, pie.rr_alpha(survey), pie.ldp_alpha(survey)
    assert exact <= rr.upper
    assert exact <= ldp.upper
    assert {rr.kind, ldp.kind} == {"upper"}
    assert {rr.unit, ldp.unit} == {"bits"}
    assert rr.lower == ldp.lower == 0.0


def test_example_after_corollary_3_9_is_in_nats() -> None:
    limits = [pie.alpha_for_error(beta, 10**6) for beta in (0.8, 0.5)]
    assert limits == pytest.approx([2.986, 8.966], abs=1e-3)
    assert [bits * math.log(2) for bits in limits] == pytest.approx([2.07, 6.21], abs=6e-3)  # as printed


def test_equation_11_has_the_wrong_sign() -> None:
    # The paper's own example in words: n = 1e8, k = 5, largest prior 0.01, error at least 0.5.
    corrected = pie.fano_error(math.log2(5), 10**8, largest_prior=0.01).lower
    printed = 1 - (math.log2(5) + 1) / math.log2(0.01)
    assert corrected == pytest.approx(0.5, abs=1e-9)
    assert printed > 1


def test_half_of_the_information_does_not_promise_an_error_above_one_half() -> None:
    """theta = 1/2, every assignment of values to people: the error is above one half only from n = k + 2 on."""
    for k in (2, 3, 4):
        lie = Fraction(1, 2 * k)
        channel = [[lie + Fraction(x == y, 2) for y in range(k)] for x in range(k)]
        errors = {n: 1 - best_success(channel, n) for n in range(1, k + 4)}
        assert [n for n, error in errors.items() if error > Fraction(1, 2)] == [k + 2, k + 3]
        assert all(errors[n] == Fraction(n - 1, 2 * n) for n in range(1, k + 1))
    # The paper's own experiment, by its own inequality and exactly.
    n, k = 1_370_637, 10_500_393
    promised = pie.fano_error(math.log2(n) / 2, n).lower
    assert promised == pytest.approx(0.5 - 1 / math.log2(n), abs=1e-12)
    assert f"{promised:.4f}" == "0.4509"
    exact = pie.bayes_error(protocol(k=k, epsilon=math.log1p(k), n=n))
    assert exact.kind == "exact"
    assert 0.499999 < exact.upper < 0.5


def test_the_identification_error_rate_counts_wrong_results() -> None:
    """Reports that say nothing: right is one guess in n, and the bound drawn below the rate is far above that."""
    n, nothing = 4, [[Fraction(1, 3)] * 3] * 3
    right = best_success(nothing, n)
    assert right == Fraction(1, n)
    assert right < Fraction(pie.fano_error(0.0, n).lower) <= 1 - right


def test_mutual_information_is_finite_without_noise() -> None:
    """What is released unchanged says at most log2 k bits about itself, the divergence of two people is infinite."""
    rng = np.random.default_rng(9)
    for k in (2, 5):
        unchanged = [[float(x == y) for y in range(k)] for x in range(k)]
        assert capacity(unchanged) == pytest.approx(math.log2(k), abs=1e-9)
        for prior in rng.dirichlet(np.ones(k), size=100):
            joint = [[float(p) if x == y else 0.0 for y in range(k)] for x, p in enumerate(prior)]
            assert mutual_information(joint) <= math.log2(k)
        # KL-DP compares two rows: the second gives no chance at all to what the first always releases.
        assert all(max(p for p, q in zip(unchanged[0], row, strict=True) if q == 0) == 1 for row in unchanged[1:])


def test_randomized_response_tells_the_truth_more_often_than_printed() -> None:
    """epsilon = 1: e/(k + e - 1) exceeds 0.73 for two values, and for no more; 2.718 < e < 2.719."""
    assert Fraction(2718, 1000) / (2 + Fraction(1718, 1000)) > Fraction(73, 100)
    assert Fraction(2719, 1000) / (3 + Fraction(1719, 1000)) < Fraction(73, 100)
    assert hs.RandomizedResponse(k=2, epsilon=1.0).law().truth == pytest.approx(0.7311, abs=1e-4)


def test_the_error_of_five_incomes_is_rounded_up() -> None:
    """1 - (log2 5 + 1)/log2 10**8 is 7/8, printed as at least 0.88: log2 5 + 1 = log2 10, an eighth of log2 10**8."""
    assert (5 * 2) ** 8 == 10**8
    assert pie.fano_error(math.log2(5), 10**8).lower == pytest.approx(0.875, abs=1e-12)
    # The statement is true all the same: by the exact error.
    assert pie.bayes_error(protocol(k=5, epsilon=math.inf, n=10**8)).lower > 0.88


def test_fano_holds_for_random_laws() -> None:
    rng = np.random.default_rng(6)
    tight = 0
    for _ in range(400):
        people, answers = int(rng.integers(2, 40)), int(rng.integers(2, 9))
        joint = rng.dirichlet(np.full(people * answers, rng.choice([0.05, 1.0]))).reshape(people, answers)
        prior = float(joint.sum(axis=1).max())
        bound = pie.fano_error(mutual_information(joint.tolist()), people, largest_prior=prior)
        assert error_of(joint.tolist()) >= bound.lower
        tight += bound.lower > 0
    assert tight > 50


def test_fano_never_exceeds_the_exact_error() -> None:
    for n in (1, 2, 10, 10**4, 10**9):
        for epsilon in (0.1, 2.0, math.inf):
            survey = protocol(k=6, epsilon=epsilon, n=n)
            fano = pie.fano_error(pie.alpha(survey).upper, n)
            assert (fano.kind, fano.unit, fano.upper) == ("lower", "probability", 1.0)
            assert 0 <= fano.lower <= pie.bayes_error(survey).lower


def test_fano_is_trivial_for_one_person_and_for_too_much_information() -> None:
    assert pie.fano_error(0.0, 1).lower == 0.0
    assert pie.fano_error(30.0, 10**6).lower == 0.0
    assert pie.fano_error(0.0, 10, largest_prior=1.0).lower == 0.0


@pytest.mark.parametrize("beta", [0.0, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("n", [10**4, 123_456_789])
@pytest.mark.parametrize("prior", [None, 1e-4])
def test_alpha_for_error_inverts_fano(beta: float, n: int, prior: float | None) -> None:
    if beta == 0.9 and (prior or n == 10**4):
        beta = 0.92
    alpha = pie.alpha_for_error(beta, n, largest_prior=prior)
    assert pie.fano_error(alpha, n, largest_prior=prior).lower == pytest.approx(beta, abs=1e-12)
    assert pie.fano_error(alpha * 1.01 + 1e-6, n, largest_prior=prior).lower < max(beta, 1e-300)


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (pie.fano_error, (-0.1, 10), r"`alpha_bits` must be finite and >= 0, got alpha_bits=-0.1"),
        (pie.fano_error, (0.1, 0), r"`n` must be an integer >= 1, got n=0"),
        (pie.fano_error, (0.1, 10, 0.05), r"`largest_prior` must be at least 1/n = 0.1, got largest_prior=0.05"),
        (pie.fano_error, (0.1, 10, 1.5), r"`largest_prior` must be in \[0, 1\], got largest_prior=1.5"),
        (
            pie.alpha_for_error,
            (0.95, 1000),
            r"`bayes_error` must be at most 1 - 1/log2\(1/largest prior\) = 0.89965[0-9]*,",
        ),
        (pie.alpha_for_error, (0.5, 1), r"`bayes_error` must be at most 1 - 1/log2\(1/largest prior\) = 0, "),
        (pie.alpha_for_error, (0.5, 2), r"`bayes_error` must be at most 1 - 1/log2\(1/largest prior\) = 0, "),
        (pie.alpha_for_error, (2.0, 1000), r"`bayes_error` must be in \[0, 1\]"),
    ],
)
def test_bad_input(call: Any, arguments: tuple[float, ...], message: str) -> None:
    keywords = {"largest_prior": arguments[2]} if len(arguments) > 2 else {}
    with pytest.raises(InvalidInputError, match=message):
        call(*arguments[:2], **keywords)


def test_several_reports_by_the_paper_s_theorems() -> None:
    survey = protocol(k=50, epsilon=4.0, n=1000)
    assert pie.rr_alpha(survey, reports=3).upper == pytest.approx(3 * pie.rr_alpha(survey).upper)
    assert pie.published_alpha(survey, reports=3) == pie.rr_alpha(survey, reports=3)
    assert pie.published_alpha(survey).upper == min(pie.rr_alpha(survey).upper, pie.ldp_alpha(survey).upper)
    assert pie.composed_alpha(survey, reports=3).upper <= pie.rr_alpha(survey, reports=3).upper
    assert "Theorem 4.3" in str(pie.rr_alpha(survey, reports=3).sources[0])
    with pytest.raises(InvalidInputError, match="`reports` must be an integer >= 1"):
        pie.rr_alpha(survey, reports=0)
