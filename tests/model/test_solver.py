"""One search for all calibrations, against rules whose answer is known."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.model import Bound
from hushuffle.model.solver import Parameter, Requirement, log_excess, solve, verdict


def whole(start: float, *, easiest: int, hardest: int, stride: float = 4, resolution: float = 1e-4) -> Parameter[int]:
    return Parameter(
        name="people",
        apply=int,
        start=start,
        easiest=easiest,
        hardest=hardest,
        outside=-7,
        whole=True,
        stride=stride,
        resolution=resolution,
    )


def test_the_smallest_whole_number_by_a_known_rule() -> None:
    for wanted in (1, 2, 3, 4, 5, 17, 1000):
        for start in (1, 3, 40, 10**5):
            solution = solve(
                whole(start, easiest=10**9, hardest=1),
                Requirement[int](excess=partial(lambda m, n: math.log(m / n), wanted)),
            )
            assert solution is not None
            assert (solution.value, solution.beyond) == (wanted, wanted - 1 if wanted > 1 else -7)
            assert (solution.bound, solution.beyond_bound, solution.monotone) == (None, None, True)


@given(
    wanted=st.integers(0, 10**6),
    start=st.integers(0, 10**6),
    stride=st.sampled_from([2, 4, math.inf]),
    size=st.booleans(),
    rising=st.booleans(),
)
def test_whole_numbers_are_exact_without_a_resolution(
    wanted: int, start: int, stride: float, size: bool, rising: bool
) -> None:
    """In both directions, from 0, by verdicts and by sizes."""
    easiest, hardest = (10**6, 0) if rising else (0, 10**6)
    sign = 1 if rising else -1
    requirement = (
        Requirement[int](excess=lambda n: float(sign * (wanted - n)))
        if size
        else verdict(lambda n: sign * (wanted - n) <= 0)
    )
    solution = solve(whole(start, easiest=easiest, hardest=hardest, stride=stride, resolution=0), requirement)
    assert solution is not None
    assert solution.value == wanted
    assert solution.beyond == (-7 if solution.ends else wanted - sign)
    assert solution.ends == (wanted == hardest)
    assert solution.evaluations <= 70


@given(
    root=st.floats(1e-6, 40),
    start=st.floats(1e-9, 1e3),
    stride=st.sampled_from([2.0, 4.0, math.inf]),
    resolution=st.sampled_from([1e-4, 1e-13]),
)
def test_real_numbers_are_bracketed_at_the_resolution(
    root: float, start: float, stride: float, resolution: float
) -> None:
    asked: list[float] = []

    def excess(value: float) -> float:
        asked.append(value)
        return value**2 - root**2

    parameter = Parameter(
        name="epsilon", apply=float, start=start, easiest=1e-9, hardest=100.0, stride=stride, resolution=resolution
    )
    solution = solve(parameter, Requirement(excess=excess))
    assert solution is not None
    assert excess(solution.value) <= 0 < excess(solution.beyond)
    assert solution.beyond - solution.value <= 1.01 * resolution * solution.value + 1e-15
    assert len(asked) - 2 == solution.evaluations <= 110


def test_what_no_value_meets_has_no_solution() -> None:
    assert solve(whole(5, easiest=100, hardest=1), verdict(lambda _: False)) is None
    never = Requirement[int](figure=lambda n: Bound.exact(float(n), unit="nats"), limit=-1.0)
    assert solve(whole(5, easiest=1, hardest=100), never) is None


def test_the_parameter_may_end_before_the_requirement_is_missed() -> None:
    solution = solve(
        whole(5, easiest=1, hardest=100), Requirement(figure=lambda n: Bound.exact(float(n), unit="nats"), limit=1e3)
    )
    assert solution is not None
    assert (solution.value, solution.beyond, solution.beyond_bound, solution.ends) == (100, -7, None, True)
    assert solution.bound == Bound.exact(100.0, unit="nats")


@pytest.mark.parametrize("believed", [18, 24, 40])
def test_the_figure_decides_where_the_excess_differs(believed: int) -> None:
    """The figure meets the limit up to 21, whatever the search believes."""
    requirement = Requirement[int](
        excess=lambda n: -math.inf if n <= believed else math.inf,
        figure=lambda n: Bound.exact(n / 21, unit="nats"),
        limit=1.0,
    )
    solution = solve(whole(1, easiest=1, hardest=100), requirement)
    assert solution is not None
    assert (solution.value, solution.beyond) == (21, 22)
    assert solution.bound == Bound.exact(1.0, unit="nats")
    assert solution.beyond_bound == Bound.exact(22 / 21, unit="nats")


def test_a_figure_a_hair_above_the_limit_is_cut_only_where_the_excess_proves_the_limit() -> None:
    def figure(value: float) -> Bound:
        return Bound(lower=0.005, upper=value * (1 + 5e-7), kind="bracket", unit="nats")

    parameter = Parameter(name="epsilon", apply=float, start=0.1, easiest=0.01, hardest=40.0, resolution=1e-9)
    proven = solve(parameter, Requirement(excess=lambda value: value - 1, figure=figure, limit=1.0))
    assert proven is not None
    assert proven.bound is not None
    assert proven.value == pytest.approx(1.0, rel=2e-9)
    assert proven.bound.upper == 1.0
    alone = solve(parameter, Requirement(figure=figure, limit=1.0))
    assert alone is not None
    assert alone.bound is not None
    assert alone.value == pytest.approx(1 - 5e-7, rel=2e-9)
    assert alone.bound.upper <= 1.0


def test_a_parameter_that_does_not_act_in_one_direction_is_named() -> None:
    """More messages than one for each value reveal again: the answer meets the requirement, and is not called best."""

    def excess(p: float) -> float:
        return 0.2 - p * (1 - p)

    wrong = Parameter(name="p", apply=float, start=0.99, easiest=0.5, hardest=0.01)
    assert (solution := solve(wrong, Requirement(excess=excess))) is not None
    assert excess(solution.value) <= 0
    assert solution.monotone
    there = Parameter(name="p", apply=float, start=0.55, easiest=0.01, hardest=0.99)
    assert (solution := solve(there, Requirement(excess=lambda p: excess(p) - 0.4 * (p > 0.52)))) is not None
    assert solution.value >= 0.55


def test_values_that_contradict_one_direction_are_noticed() -> None:
    table = {1: 0.9, 2: 3.0, 4: -1.0, 8: -2.0}
    solution = solve(whole(1, easiest=8, hardest=1, stride=2), Requirement(excess=lambda n: table.get(n, 0.5)))
    assert solution is not None
    assert (solution.value, solution.monotone) == (4, False)


def test_progress_never_goes_back() -> None:
    steps: list[tuple[str, float]] = []
    solution = solve(
        whole(3, easiest=10**9, hardest=0),
        verdict(lambda n: n >= 123_456),
        tell=lambda stage, share: steps.append((stage, share)),
    )
    assert solution is not None
    assert steps[0] == ("trying people = 3", 0.0)
    shares = [share for _, share in steps]
    assert shares == sorted(shares)
    assert shares[-1] > 0.5


def test_the_sign_of_a_logarithm_is_that_of_the_difference() -> None:
    above = math.nextafter(0.3, 1)
    assert log_excess(0.3, 0.3) == 0 < log_excess(above, 0.3)
    assert [log_excess(value, 1.0) for value in (0.0, 1e-300, math.e, math.inf)] == [-50, -50, 1, 50]
    assert (log_excess(0.0, 0.0), log_excess(1e-9, 0.0)) == (-50, 50)


def test_a_figure_that_no_value_meets_whatever_the_excess_says_has_no_solution() -> None:
    hopeful = Requirement[int](
        excess=lambda n: float(n - 9), figure=lambda n: Bound.exact(float(n), unit="nats"), limit=0.5
    )
    assert solve(whole(5, easiest=1, hardest=100), hopeful) is None


def test_without_a_resolution_the_search_ends_at_neighbouring_floats() -> None:
    side = Parameter(name="side", apply=float, easiest=1.0, hardest=2.0, resolution=0.0)
    solution = solve(side, Requirement[float](excess=lambda x: x * x - 2))
    assert solution is not None
    assert solution.value**2 <= 2 < solution.beyond**2
    assert solution.beyond - solution.value < 1e-14


@pytest.mark.parametrize("wrong", [1.0, 1.0005, 0.97, 30.0, 1e-9])
def test_an_estimate_says_only_where_the_search_begins(wrong: float) -> None:
    exact, tried = 123_456.5, list[float]()

    def excess(n: float) -> float:
        tried.append(n)
        return math.log(exact / n)

    plain = solve(whole(10, easiest=10**9, hardest=1, resolution=0), Requirement[int](excess=excess))
    alone = len(tried)
    tried.clear()
    rough = Requirement[int](excess=excess, estimate=lambda n: math.log(exact * wrong / n))
    guided = solve(whole(10, easiest=10**9, hardest=1, resolution=0), rough)
    assert plain is not None
    assert guided is not None
    assert guided.value == plain.value == 123_457
    assert guided.beyond == plain.beyond
    if abs(wrong - 1) < 0.01:
        assert len(tried) < alone


def test_an_estimate_that_sees_no_solution_is_ignored() -> None:
    blind = Requirement[float](excess=lambda x: x - 2, estimate=lambda _: math.inf)
    solution = solve(Parameter(name="side", apply=float, easiest=1.0, hardest=5.0), blind)
    assert solution is not None
    assert solution.value == pytest.approx(2, rel=2e-4)
