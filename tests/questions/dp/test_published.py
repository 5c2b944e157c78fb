from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves import published as laws
from hushuffle.curves.published import Loss
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import symmetric_law
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.mechanisms.shufflers.base import Shuffler
from hushuffle.questions.dp import published
from oracles import dp_enumeration
from oracles import dp_published as oracle

DELTAS = (published.hoeffding_delta, published.bennett_delta, published.any_randomizer_delta, published.clones_delta)
EPSILONS = (
    published.hoeffding_epsilon,
    published.bennett_epsilon,
    published.any_randomizer_epsilon,
    published.clones_epsilon,
)
CLOSED = (published.clones_closed_form, published.stronger_clones_closed_form)


class WithDummies(UniformShuffle):
    """A uniform shuffle with three dummies."""

    @property
    def dummies(self) -> int:
        return 3


def protocol(k: int, epsilon: float, n: int, shuffler: Shuffler | None = None) -> hs.Protocol:
    return hs.Protocol(
        randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=shuffler or hs.UniformShuffle(), n=n
    )


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 4, 6])
@pytest.mark.parametrize("shuffler", [hs.UniformShuffle(), WithDummies()])
def test_upper_bounds_by_enumeration(n: int, k: int, shuffler: Shuffler) -> None:
    for epsilon_0 in (0.3, 1.0, 3.0):
        survey = protocol(k, epsilon_0, n, shuffler)
        truth = float(survey.randomizer.law().truth)  # type: ignore[attr-defined]
        for share in (0.0, 0.2, 0.6, 0.95, 1.2):
            epsilon = share * epsilon_0
            if n == 6 and (shuffler.dummies or epsilon_0 == 1.0):
                continue  # to save time
            exact = float(dp_enumeration.worst_delta(n, k, truth, math.exp(epsilon), shuffler.dummies))
            for bound in (function(survey, epsilon=epsilon) for function in DELTAS):
                assert (bound.lower, bound.kind, bound.unit) == (0.0, "upper", "probability")
                assert exact <= bound.upper <= 1.0


@pytest.mark.parametrize("k", [2, 3, 20])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.5])
def test_inequalities_bound_the_exact_sum(k: int, epsilon: float) -> None:
    truth, growth = 0.4 + 1 / k, math.exp(epsilon)
    loss = Loss.of(k=k, truth=truth, lie=(1 - truth) / (k - 1), epsilon=epsilon)
    values = oracle.losses(k, truth, growth)
    assert sum(value * chance for value, chance in values) == pytest.approx(-loss.drift)
    assert sum(value**2 * chance for value, chance in values) == pytest.approx(loss.square)
    for reports in (1, 2, 5, 20, 60):
        exact = oracle.expected_positive_part(values, reports) / reports
        count = np.array([float(reports)])
        assert exact <= float(laws.hoeffding(loss, count)[0])
        assert exact <= float(laws.bennett(loss, count)[0])


def test_bennett_as_printed_is_no_upper_bound() -> None:
    """Ladjel et al. 2021, Theorem 4 as printed: T = 20, sigma = 0.2, epsilon = 1, m + d = 50."""
    truth = 1 - 0.2 + 0.2 / 20
    values = oracle.losses(20, truth, math.e)
    exact, printed = oracle.expected_positive_part(values, 50), oracle.printed_bennett(values, 1.0, 50)
    assert exact == pytest.approx(2.8, abs=0.05)
    assert printed == pytest.approx(0.44, abs=0.005)
    loss = Loss.of(k=20, truth=truth, lie=0.01, epsilon=1.0)
    assert 50 * float(laws.bennett(loss, np.array([50.0]))[0]) >= exact


def test_bennett_says_nothing_where_no_loss_is_positive() -> None:
    loss = Loss.of(k=2, truth=0.6, lie=0.4, epsilon=1.0)
    assert loss.most < 0
    assert laws.bennett(loss, np.array([3.0])).tolist() == [0.0]


@pytest.mark.parametrize("n", [1, 2, 9, 40])
@pytest.mark.parametrize("epsilon_0", [0.2, 1.0, 2.5])
def test_clones_by_their_pair_of_laws(n: int, epsilon_0: float) -> None:
    survey = protocol(3, epsilon_0, n)
    for share in (0.1, 0.5, 0.9):
        exact = oracle.clones_pair(n, epsilon_0, math.exp(share * epsilon_0))
        assert published.clones_delta(survey, epsilon=share * epsilon_0).upper == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("epsilon_0", [0.2, 1.0, 2.5])
def test_any_randomizer_by_its_two_point_law(n: int, epsilon_0: float) -> None:
    survey, high = protocol(3, epsilon_0, n), 1 / (1 + math.exp(epsilon_0))
    for share in (0.1, 0.5, 0.9):
        growth = math.exp(share * epsilon_0)
        values = [(1 - growth * math.exp(epsilon_0), high), (1 - growth * math.exp(-epsilon_0), 1 - high)]

        def term(reports: int, values: list[tuple[float, float]] = values) -> float:
            return oracle.expected_positive_part(values, reports) / reports

        exact = oracle.over_blanket(n, math.exp(-epsilon_0), term)
        found = published.any_randomizer_delta(survey, epsilon=share * epsilon_0).upper
        assert found == pytest.approx(exact, rel=1e-9)


def test_hoeffding_and_bennett_term_by_term() -> None:
    survey, epsilon = protocol(4, 1.3, 25, WithDummies()), 0.4
    law = symmetric_law(survey.randomizer, for_what="a test")
    loss = Loss.of(k=4, truth=float(law.truth), lie=float(law.lie), epsilon=epsilon)
    pairs: list[tuple[Any, Any]] = [
        (published.hoeffding_delta, laws.hoeffding),
        (published.bennett_delta, laws.bennett),
    ]
    for function, term in pairs:
        by_count = {count: float(term(loss, np.array([count]))[0]) for count in range(1, 30)}
        exact = oracle.over_blanket(25, float(law.gamma), by_count.__getitem__, 3)
        assert function(survey, epsilon=epsilon).upper == pytest.approx(min(exact, 1.0), rel=1e-9)


@pytest.mark.parametrize("k", [2, 3, 100])
@pytest.mark.parametrize(
    ("n", "epsilon_0"), [(300, 0.5), (300, 4.0), (10**7, 0.5), pytest.param(10**7, 4.0, marks=pytest.mark.slow)]
)
def test_never_better_than_the_certified_figure(k: int, n: int, epsilon_0: float) -> None:
    survey = protocol(k, epsilon_0, n)
    ours = hs.dp.epsilon(survey, delta=1e-6)
    figures = {function.__name__: function(survey, delta=1e-6) for function in (*EPSILONS, *CLOSED)}
    for bound in figures.values():
        assert (bound.lower, bound.kind, bound.unit) == (0.0, "upper", "nats")
        assert ours.lower <= bound.upper <= epsilon_0
        assert bound.sources


@pytest.mark.parametrize("function", EPSILONS)
def test_a_generous_delta_needs_next_to_nothing(function: Callable[..., hs.Bound]) -> None:
    if function in EPSILONS[2:]:
        assert function(protocol(2, 0.1, 10**6), delta=0.5).upper <= 1e-9


def test_closed_forms_where_they_do_not_apply() -> None:
    assert laws.clones_closed_form(10, 1.0, 1e-6) is None
    assert laws.stronger_clones_closed_form(10, 1.0, 1e-6) is None
    assert laws.stronger_clones_closed_form(1000, 5.0, 1e-6) is None
    assert published.clones_closed_form(protocol(2, 1.0, 10), delta=1e-6).upper == 1.0


def test_a_closed_form_below_the_certified_figure_is_refused() -> None:
    with pytest.raises(NumericalError, match="below the certified upper bound"):
        published._closed_form(lambda *_: 1e-3, protocol(3, 2.0, 100), 1e-6, ())


def test_a_delta_of_one_in_as_many_as_there_are_people_lets_somebody_be_published() -> None:
    """Publish each record with probability delta: (0, delta)-private, and somebody's is out with 1 - (1 - delta)**S."""
    people, delta = 3, Fraction(1, 3)
    for first, second in itertools.product(itertools.product((0, 1), repeat=people), repeat=2):
        if sum(a != b for a, b in zip(first, second, strict=True)) == 1:
            laws_of = [published_law(records, delta) for records in (first, second)]
            assert dp_enumeration.hockey_stick(laws_of[0], laws_of[1], 1) == delta
            nobody = (None,) * people
            assert [law[nobody] for law in laws_of] == [(1 - delta) ** people] * 2
    # Ladjel et al. 2021, Table I: delta = 1e-4, 10,000 to 20,000 people.
    assert [f"{1 - (1 - 1e-4) ** size:.3f}" for size in (10_000, 20_000)] == ["0.632", "0.865"]


def published_law(records: tuple[int, ...], delta: Fraction) -> dict[Any, dp_enumeration.Number]:
    """The law of what is seen if each record is published with probability `delta`, alone."""
    law: dict[Any, dp_enumeration.Number] = {}
    for shown in itertools.product((True, False), repeat=len(records)):
        seen = tuple(record if open_ else None for record, open_ in zip(records, shown, strict=True))
        law[seen] = law.get(seen, 0) + math.prod(delta if open_ else 1 - delta for open_ in shown)
    return law


@pytest.mark.parametrize("function", [*EPSILONS, *CLOSED])
def test_what_they_do_not_speak_about(function: Callable[..., hs.Bound]) -> None:
    with pytest.raises(UnsupportedProtocolError, match="uniform shuffle"):
        function(protocol(3, 2.0, 100, hs.NoShuffle()), delta=1e-6)
    with pytest.raises(UnsupportedProtocolError, match="without noise"):
        function(protocol(3, math.inf, 100), delta=1e-6)
    with pytest.raises(InvalidInputError, match=r"`delta` must be in \(0, 1\)"):
        function(protocol(3, 2.0, 100), delta=0.0)


@pytest.mark.parametrize("function", DELTAS)
def test_bad_epsilon_is_refused(function: Callable[..., hs.Bound]) -> None:
    with pytest.raises(InvalidInputError, match="`epsilon` must be finite and >= 0"):
        function(protocol(3, 2.0, 100), epsilon=-1.0)


def test_every_published_bound_is_compared_with_the_certified_one() -> None:
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    found = hs.dp.published.compare(survey, delta=1e-6)
    assert found.certified == hs.dp.epsilon(survey, delta=1e-6)
    assert found.published["Hoeffding"] == hs.dp.published.hoeffding_epsilon(survey, delta=1e-6)
    assert found.published["clones, summed exactly"] == hs.dp.published.clones_epsilon(survey, delta=1e-6)
    assert len(found.published) == 6
    assert found.refused == {}
    assert all(bound.upper >= found.certified.lower for bound in found.published.values())
    ratios = [float(ratio) for _, _, ratio in found.rows]
    assert ratios == sorted(ratios)
    assert "<td>Bennett</td>" in found._repr_html_()


def test_bounds_that_do_not_apply_say_why() -> None:
    matrix = [[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.1, 0.2, 0.7]]
    survey = hs.Protocol(randomizer=hs.MatrixRandomizer(matrix), shuffler=hs.UniformShuffle(), n=2000)
    found = hs.dp.published.compare(survey, delta=1e-6)
    assert set(found.refused) == {"Hoeffding", "Bennett"}
    assert "needs randomized response" in str(found)
    with pytest.raises(InvalidInputError, match="delta"):
        hs.dp.published.compare(survey, delta=0.0)
    with pytest.raises(UnsupportedProtocolError, match="uniform shuffle"):
        hs.dp.published.compare(replace(survey, shuffler=hs.NoShuffle()), delta=1e-6)
