"""The paper's formulas against term-by-term twins; which of them hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.questions import traffic
from hushuffle.questions.traffic import published
from oracles import dp_enumeration
from oracles import traffic_published as twin
from oracles.traffic_enumeration import largest_ratio

DELTA = 1e-4
CASES = ((20, 500, 0.2, 400), (20, 100, 0.2, 300), (20, 600, 0.5, 0), (20, 100, 0.9, 200), (5, 50, 0.3, 1000))


def meets(epsilon: float, sum_at: Callable[[float], float], delta: float) -> bool:
    """Say whether the sum is at most delta at epsilon, and above it just before."""
    return sum_at(epsilon) <= delta * (1 + 1e-9) and sum_at(epsilon * (1 - 1e-4)) > delta


def four(case: tuple[int, int, float, int], part: Callable[[float, int], float]) -> Callable[[float], float]:
    _, n, sigma, d = case
    return lambda epsilon: twin.theorem_four_sum(
        n, sigma, d, {r: part(math.exp(epsilon), r) for r in range(1, n + d + 1)}
    )


def test_theorem_three_as_printed() -> None:
    for targets, n, sigma in product((3, 4, 20), (2, 5, 9), (Fraction(1, 5), Fraction(1, 2))):
        for d in range(n):
            exact = math.log(twin.theorem_three(targets, n, sigma, d))
            found = published.printed_capped_epsilon(targets, n, float(sigma), d)
            assert found == pytest.approx(exact, rel=1e-11, abs=1e-13)


def test_theorem_three_understates() -> None:
    """The enumerated figure of the theorem's own convention is larger wherever there are dummies."""
    for targets, n, d in product((3, 4), (3, 4), (1, 2)):
        true = math.log(largest_ratio(targets, n, Fraction(1, 4), d, n, "exclusive"))
        assert published.printed_capped_epsilon(targets, n, 0.25, d) < true - 1e-3


def test_theorem_three_at_full_size() -> None:
    printed = published.printed_capped_epsilon(20, 100, 0.2, 50)
    for convention in ("exclusive", "uniform"):
        true = traffic.scrambler_epsilon(20, 100, 0.2, 50, cap=100, convention=convention)
        assert true.kind == "exact"
        assert printed < true.upper


def test_without_dummies_theorem_three_is_the_local_figure() -> None:
    local = traffic.sampling_epsilon(20, 0.2, convention="exclusive")
    assert published.printed_capped_epsilon(20, 50, 0.2, 0) == pytest.approx(local.upper, rel=1e-12)


@pytest.mark.parametrize("case", [(20, 100, 0.9, 200), (5, 50, 0.3, 1000), (3, 20, 0.5, 400), (3, 20, 0.0, 400)])
def test_theorem_four_by_its_sums(case: tuple[int, int, float, int]) -> None:
    targets, _, sigma, _ = case
    found = published.theorem_four_epsilon(*case, delta=DELTA)
    spread = (1 - sigma) * targets
    assert meets(found.upper, four(case, lambda growth, r: twin.hoeffding(spread * (1 + growth), growth, r)), DELTA)
    refined = published.theorem_four_epsilon(*case, delta=DELTA, inequality="bennett")
    assert meets(
        refined.upper, four(case, lambda growth, r: twin.bennett(targets, sigma, growth, r, printed=False)), DELTA
    )
    as_printed = published.printed_bennett_epsilon(*case, delta=DELTA)
    assert meets(as_printed, four(case, lambda growth, r: twin.bennett(targets, sigma, growth, r, printed=True)), DELTA)


@pytest.mark.parametrize("case", CASES)
def test_the_printed_bennett_form_is_below_the_certified_lower_end(case: tuple[int, int, float, int]) -> None:
    certified = traffic.scrambler_epsilon(*case, delta=DELTA)
    assert published.printed_bennett_epsilon(*case, delta=DELTA) < certified.lower


@pytest.mark.parametrize("case", [*CASES, (20, 100, 0.2, 50), (20, 100, 0.0, 1000)])
def test_valid_forms_are_above_the_certified_lower_end(case: tuple[int, int, float, int]) -> None:
    certified = traffic.scrambler_epsilon(*case, delta=DELTA)
    forms = [published.theorem_four_epsilon(*case, delta=DELTA, inequality=name) for name in ("hoeffding", "bennett")]
    forms += [published.theorem_five_epsilon(*case, delta=DELTA)] if case[2] else []
    for form in forms:
        assert form.kind == "upper"
        assert form.upper >= certified.upper * (1 - 1e-6)
    assert forms[0].upper >= forms[1].upper
    if case[2]:
        assert forms[2].upper >= forms[0].upper


@pytest.mark.parametrize("sigma", [Fraction(1, 5), Fraction(0)])
def test_theorems_four_and_five_as_printed_ask_for_a_delta_below_zero(sigma: Fraction) -> None:
    """With a = 1 - e**epsilon every term b**2/(4a) exp(...) is negative, for every epsilon; enumeration needs more."""
    targets, n, d, epsilon = 3, 3, 2, 0.5
    growth, rate = math.exp(epsilon), float(sigma)
    a = 1 - growth
    spreads = [(1 - rate) * targets * (1 + growth) - 2 * rate * a]
    if sigma:
        local = targets / rate - targets + 1  # e**epsilon_0
        spreads.append(rate * (1 + growth) * (local - 1 / local))
    for b in spreads:
        terms = {r: b**2 / (4 * a) * math.exp(-2 * r * a**2 / b**2) for r in range(1, n + d + 1)}
        assert twin.theorem_four_sum(n, rate, d, terms) < 0
    truth = 1 - sigma + sigma / targets
    assert dp_enumeration.worst_delta(n, targets, truth, Fraction(growth), d) > Fraction(1, 10)
    # Lemma 3 has the sign right: with E[L] = -a, a = e**epsilon - 1.
    for r in (1, 3, 5):
        assert twin.positive_part(targets, rate, growth, r) <= twin.hoeffding(spreads[0], growth, r)


def test_the_printed_range_of_the_loss_is_too_wide() -> None:
    """Lemma 5: the lower end is attained, the upper end is (1 - sigma) T + sigma (1 - e**epsilon), not minus that."""
    targets, sigma, growth = 4, 0.3, math.exp(0.7)
    found = [twin.loss(targets, sigma, growth, report) for report in range(targets)]
    base, pull = sigma * (1 - growth), (1 - sigma) * targets
    assert (min(found), max(found)) == pytest.approx((base - pull * growth, base + pull))
    assert pull - base > max(found)


def test_theorem_five_by_its_sum() -> None:
    case = (20, 100, 0.9, 400)
    local = traffic.sampling_epsilon(20, 0.9).upper
    width = 0.9 * (math.exp(local) - math.exp(-local))
    found = published.theorem_five_epsilon(*case, delta=DELTA)
    assert meets(found.upper, four(case, lambda growth, r: twin.hoeffding(width * (1 + growth), growth, r)), DELTA)


def test_where_a_form_says_nothing_the_local_figure_is_left() -> None:
    local = traffic.sampling_epsilon(20, 0.2).upper
    assert published.theorem_four_epsilon(20, 100, 0.2, 50, delta=DELTA).upper == local
    assert published.printed_bennett_epsilon(20, 10, 0.2, 1, delta=DELTA) == local
    assert published.simulated_epsilon(20, 10, 0.0, 0, delta=1e-4) == math.inf
    assert published.simulated_epsilon(20, 10, 0.2, 0, delta=1e-4) == pytest.approx(local, rel=1e-3)
    assert published.theorem_four_epsilon(20, 10, 0.0, 0, delta=DELTA).upper == math.inf


def test_where_delta_is_no_demand() -> None:
    assert published.theorem_four_epsilon(3, 10, 0.999, 10**6, delta=0.5).upper <= 1e-3


@pytest.mark.parametrize("sigma", [0.3, 0.0])
def test_algorithm_two_against_every_tuple_of_reports(sigma: float) -> None:
    """Within 6 standard errors of about 0.05/sqrt(5000) (false alarms below 1e-6); the seed is fixed."""
    targets, n, d, epsilon = 3, 4, 3, 0.7
    parts = {r: twin.positive_part(targets, sigma, math.exp(epsilon), r) for r in range(1, n + d + 1)}
    exact = twin.theorem_four_sum(n, sigma, d, parts)
    found = published.simulated_delta(targets, n, sigma, d, epsilon=epsilon, samples=5000, seed=1)
    assert found == pytest.approx(exact, abs=6 * 0.5 / math.sqrt(5000))
    assert found == pytest.approx(exact, rel=0.1)


def test_algorithm_two_needs_more_samples_than_the_paper_says() -> None:
    """Its relative error at R = 5000 is said to pass 1/1000 with probability below 1e-30."""
    case: dict[str, Any] = {"targets": 20, "sources": 500, "sigma": 0.2, "dummies": 50}
    sampling, scrambler = hs.TargetSampling(targets=20, sigma=0.2), hs.Scrambler(dummies=50)
    protocol = hs.Protocol(randomizer=sampling, shuffler=scrambler, n=500)
    exact = hs.dp.delta(protocol, epsilon=1.6).upper  # the blanket, summed exactly
    errors = [abs(published.simulated_delta(**case, epsilon=1.6, seed=seed) / exact - 1) for seed in range(5)]
    assert min(errors) > 1e-2


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: published.printed_capped_epsilon(3, 5, 0.5, 5), "dummies"),
        (lambda: published.printed_capped_epsilon(3, 5, 1.0, 3), "sigma"),
        (lambda: published.theorem_four_epsilon(3, 5, 0.5, 3, delta=0.1, inequality="x"), "inequality"),  # type: ignore[arg-type]
        (lambda: published.theorem_five_epsilon(3, 5, 0.0, 3, delta=0.1), "sigma"),
        (lambda: published.simulated_delta(3, 5, 0.5, 3, epsilon=-1.0), "epsilon"),
        (lambda: published.simulated_delta(3, 5, 0.5, 3, epsilon=1.0, samples=0), "samples"),
        (lambda: published.simulated_epsilon(3, 5, 0.5, 3, delta=0.0), "delta"),
        (lambda: published.printed_bennett_epsilon(1, 5, 0.5, 3, delta=0.1), "targets"),
    ],
)
def test_bad_arguments_are_refused(call: Callable[[], object], word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        call()
