"""The whole curve of a release: against every dataset, against single figures, and that nothing is computed twice."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.laws.symmetric import Binary
from hushuffle.curves.pairs.dominating import TabulatedCurve
from hushuffle.errors import InvalidInputError
from hushuffle.model import Bounds
from hushuffle.numerics.normal_pair import excess
from hushuffle.questions.dp.curve import MANY
from oracles import dp_composition as enumeration
from oracles import pairs_of_laws as oracle

Pairs = list[list[tuple[float, float]]]


def survey(k: int, epsilon: float, n: int, shuffler: object = None) -> hs.Protocol:
    randomizer = hs.RandomizedResponse(k=k, epsilon=epsilon)
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler or hs.UniformShuffle(), n=n)  # type: ignore[arg-type]


def every_pair(protocol: hs.Protocol) -> Pairs:
    matrix = protocol.randomizer.law().channel().matrix
    pairs = enumeration.round_pairs(protocol.n, matrix.shape[0], float(Fraction(float(matrix[0, 0]))))
    return [[(float(p), float(q)) for p, q in pair] for pair in pairs]


def twice(pairs: Pairs) -> Pairs:
    """Two rounds, the datasets fixed in advance: what some adversary can do."""
    return [[(p * r, q * s) for (p, q), (r, s) in itertools.product(*two)] for two in itertools.product(pairs, pairs)]


@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 5), (3, 3), (4, 2)])
def test_every_figure_holds_for_every_dataset(k: int, n: int) -> None:
    protocol = survey(k, 1.3, n)
    profile, pairs = hs.dp.profile(protocol, points=12), every_pair(protocol)
    epsilons = np.linspace(0.0, 1.5, 100)  # more than are evaluated
    deltas = profile.delta(epsilons)
    true = np.array([oracle.delta(pairs, math.exp(level)) for level in epsilons])
    assert np.all(deltas.lower <= true + 1e-15)
    assert np.all(true <= deltas.upper + 1e-15)
    assert float((deltas.upper - deltas.lower).max()) < 0.02
    shares = np.linspace(0.0, 1.0, 21)
    tests = profile.false_negatives(shares)
    best = np.array([oracle.false_negatives(pairs, share) for share in shares])
    assert np.all(tests.lower <= best + 1e-14)
    assert np.all(best <= tests.upper + 1e-14)
    caught = profile.true_positive_rate(shares)
    assert np.array_equal(caught.upper, 1 - tests.lower)
    assert np.all(caught.lower <= 1 - best + 1e-14)
    mu, least = profile.gdp(), oracle.gdp(pairs)
    assert mu.lower <= least * (1 + 1e-12) <= mu.upper * (1 + 1e-11)
    assert mu.upper <= 1.03 * mu.lower
    assert profile.gdp(1e-2).lower <= mu.upper
    for alpha in (1.5, 2.0, 8.0, 64.0):
        loss, true_loss = profile.renyi(alpha), oracle.renyi(pairs, alpha)
        assert loss.lower <= true_loss * (1 + 1e-9) <= loss.upper * (1 + 1e-8)
        assert loss.upper <= 1.25 * loss.lower
    assert profile.advantage.lower - 1e-12 <= oracle.delta(pairs, 1.0) <= profile.advantage.upper + 1e-12
    for prior in (0.02, 0.3, 0.5, 0.9):
        chance = oracle.guess(pairs, prior)
        guess = profile.guess(prior)
        assert guess.lower - 1e-12 <= chance <= guess.upper + 1e-12
        for delta in (0.2, 1e-3):
            belief = profile.posterior(prior, delta=delta)
            assert belief.kind == "upper"
            assert oracle.believed(pairs, prior, belief.upper * (1 + 1e-12)) <= delta
    nearest = profile.gaussian()
    inside = np.linspace(0.0, nearest.epsilon, 30)
    true = np.array([oracle.delta(pairs, math.exp(level)) for level in inside])
    assert np.all(excess(nearest.below, inside) <= true + 1e-12)
    assert np.all(true <= excess(nearest.above, inside) + 1e-12)


def test_rounds_hold_for_datasets_fixed_in_advance() -> None:
    protocol = survey(2, 1.0, 3)
    profile, pairs = hs.dp.profile([(protocol, 2)], points=8), twice(every_pair(protocol))
    for level in (0.0, 0.5, 1.2):
        found = profile.delta(level)[()]
        assert oracle.delta(pairs, math.exp(level)) <= found.upper + 1e-14
        single = hs.dp.compose_delta([(protocol, 2)], epsilon=level)
        assert (found.lower, found.upper) == pytest.approx((single.lower, single.upper), rel=1e-4)
    assert profile.renyi(3.0).lower <= oracle.renyi(pairs, 3.0) * (1 + 1e-9) <= profile.renyi(3.0).upper * (1 + 1e-8)
    assert oracle.gdp(pairs) <= profile.gdp().upper * (1 + 1e-9)
    shares = np.linspace(0.0, 1.0, 11)
    best = np.array([oracle.false_negatives(pairs, share) for share in shares])
    assert np.all(profile.false_negatives(shares).lower <= best + 1e-14)
    assert profile.epsilon(1e-3)[()].upper == hs.dp.compose([(protocol, 2)], delta=1e-3).upper
    assert profile.posterior(0.5, delta=1e-3).upper < 1 / (1 + math.exp(-2.0)) * (1 + 1e-9)


def test_points_are_the_single_figures() -> None:
    protocol = survey(5, 2.0, 500)
    profile = hs.dp.profile(protocol)
    found = profile.delta([[0.0, 0.1], [0.2, 3.0]])
    assert found.lower.shape == (2, 2)
    assert (found.kind, found.unit) == ("bracket", "probability")
    for place, level in (((0, 1), 0.1), ((1, 0), 0.2)):
        single = hs.dp.delta(protocol, epsilon=level)
        assert (found[place].lower, found[place].upper) == (single.lower, single.upper)
    assert profile.epsilon([1e-3, 1e-6])[1].upper == hs.dp.epsilon(protocol, delta=1e-6).upper
    assert profile.epsilon(0.0)[()].upper == protocol.randomizer.local_epsilon
    local = hs.dp.profile(survey(2, 1.0, 1, hs.NoShuffle()))
    assert local.delta([0.0, 0.5]).kind == "exact"


@pytest.mark.parametrize("count", [10, MANY + 1])
def test_many_deltas_are_read_off_closely(count: int) -> None:
    protocol = survey(2, 1.0, 300)
    deltas = np.geomspace(1e-8, 1e-3, count)
    found = hs.dp.profile(protocol, points=24).epsilon(deltas)
    for place in (0, count // 2, count - 1):
        single = hs.dp.epsilon(protocol, delta=float(deltas[place]))
        assert found.lower[place] <= single.upper
        assert single.lower <= found.upper[place]
        assert found.upper[place] < single.upper * (1.0002 if count <= MANY else 1.03)
        assert found.lower[place] > single.lower * (0.9998 if count <= MANY else 0.97)


def test_more_points_narrow() -> None:
    protocol, shares = survey(2, 1.0, 200), np.linspace(0.0, 0.1, 7)
    coarse, fine = (hs.dp.profile(protocol, points=points) for points in (9, 33))
    for before, after in (
        (coarse.false_negatives(shares), fine.false_negatives(shares)),
        (coarse.delta(np.linspace(0, 0.1, 99)), fine.delta(np.linspace(0, 0.1, 99))),
    ):
        assert np.all(before.lower <= after.lower + 1e-12)
        assert np.all(after.upper <= before.upper + 1e-12)
    assert coarse.gaussian().below <= fine.gaussian().below < fine.gaussian().above <= coarse.gaussian().above


def test_gaussian_curves_except_for_a_delta() -> None:
    profile = hs.dp.profile(survey(10, 2.0, 10_000))
    mu, levels = profile.gdp(1e-9), np.linspace(0.0, 2.0, 20)
    assert mu.upper < 1.01 * mu.lower
    assert np.all(profile.delta(levels).lower <= np.maximum(excess(mu.upper, levels), 1e-9))
    everywhere = profile.gdp()
    assert everywhere.lower >= mu.lower
    assert np.all(profile.delta(levels).upper <= excess(everywhere.upper, levels) + 1e-15)
    small, far = hs.dp.profile(survey(2, 1.0, 100)), np.linspace(0.0, 0.99, 12)  # its mu is attained in the tail
    assert np.all(small.delta(far).lower <= excess(small.gdp().upper, far) * (1 + 1e-8))
    low, high = profile.renyi(16.0).lower, profile.renyi(16.0).upper
    assert 0.99 < low / (8 * mu.lower**2) < high / (8 * mu.lower**2) < 1.01  # a Gaussian's is alpha mu**2 / 2


def test_an_unbounded_loss_has_no_finite_mu_and_no_renyi_divergence() -> None:
    law = hs.DummyLaw.discrete_laplace(scale=5.0, center=50)
    bare = survey(4, math.inf, 100, hs.AugmentedShuffle(each=law))
    profile = hs.dp.profile(bare)
    for figure in (profile.gdp(), profile.gdp(1e-9), profile.renyi(2.0)):
        assert (figure.kind, figure.upper) == ("lower", math.inf)
        assert figure.lower > 0


@pytest.mark.parametrize("alpha", [1.0, 0.5, math.inf, math.nan])
def test_orders_of_renyi_divergence_are_above_1(alpha: float) -> None:
    with pytest.raises(InvalidInputError, match="alpha"):
        hs.dp.profile(survey(2, 1.0, 5)).renyi(alpha)


def test_a_mu_needs_a_delta_of_the_profile() -> None:
    with pytest.raises(InvalidInputError, match="least=1e-10"):
        hs.dp.profile(survey(2, 1.0, 5)).gdp(1e-10)


def test_nothing_is_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    upper = Binary.upper

    def counted(self: Binary, epsilon: float) -> float:
        calls.append(epsilon)
        return upper(self, epsilon)

    monkeypatch.setattr(Binary, "upper", counted)
    profile = hs.dp.profile(survey(2, 1.0, 100))
    assert not calls

    def ask() -> list[npt.NDArray[np.float64]]:
        found: list[Bounds] = [
            profile.delta(np.linspace(0, 0.3, 20)),
            profile.delta(np.linspace(0, 0.3, 200)),
            profile.epsilon(np.geomspace(1e-8, 1e-2, 12)),
            profile.epsilon(1e-6),
            profile.false_negatives([0.1, 0.2]),
        ]
        figures = profile.advantage, profile.guess(0.2), profile.posterior(0.2, delta=1e-4), profile.gaussian()
        return [*(ends for bounds in found for ends in (bounds.lower, bounds.upper)), np.array(list(map(str, figures)))]

    ask()
    made = len(calls)
    first = ask()
    assert len(calls) == made
    profile.chart(), profile.tests_chart()
    made = len(calls)
    for before, after in zip(first, ask(), strict=True):
        if before.dtype.kind == "f":  # the chart's points may narrow what is read off
            np.testing.assert_allclose(before, after, rtol=0.2)
    profile.chart(), profile.tests_chart()
    assert len(calls) == made


def test_points_of_rounds_share_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    make = TabulatedCurve.of

    def counted(law: PrivacyCurve, *, step: float, negligible: float) -> TabulatedCurve:
        calls.append(negligible)
        return make(law, step=step, negligible=negligible)

    monkeypatch.setattr(TabulatedCurve, "of", counted)
    profile = hs.dp.profile([(survey(2, 1.0, 30), 3)], least=1e-6)
    profile.delta(np.linspace(0.0, 1.0, 12))
    assert len(calls) == len(set(calls)) <= 3


def test_charts_hold_the_figures() -> None:
    profile = hs.dp.profile(survey(3, 1.0, 300))
    chart = profile.chart(points=7)
    assert len(chart.series[0].x) == 7
    assert chart.series[0].upper == tuple(profile.delta(np.array(chart.series[0].x)).upper)
    assert chart.series[0].upper[-1] <= 1e-9 * (1 + 1e-6)
    tests = profile.tests_chart(points=5)
    assert tests.series[1].lower == (1.0, 0.75, 0.5, 0.25, 0.0)
    assert all(low <= high for low, high in zip(tests.series[0].lower, tests.series[1].upper, strict=True))


def test_what_is_hidden_by_nothing() -> None:
    """No noise: certainty; a fault that shows now and then: a curve that stays above its chance."""
    bare = hs.dp.profile(survey(2, math.inf, 5, hs.NoShuffle()))
    assert bare.advantage.lower == 1.0
    assert bare.posterior(0.5, delta=1e-6).upper == 1.0
    assert bare.false_negatives(0.5)[()].upper == pytest.approx(0.0, abs=1e-12)
    assert bare.gaussian().above == math.inf
    matrix = hs.Channel(matrix=np.array([[0.5, 0.49, 0.01], [0.49, 0.51, 0.0]]))
    fault = hs.Protocol(randomizer=hs.MatrixRandomizer(channel=matrix), shuffler=hs.NoShuffle(), n=1)
    profile = hs.dp.profile(fault)
    assert profile.delta(200.0)[()].lower == pytest.approx(0.01)
    assert profile.false_negatives(0.0)[()].upper >= 0.99 >= profile.false_negatives(0.0)[()].lower
    assert profile.epsilon(1e-3)[()].upper == math.inf
    assert len(profile.chart().series[0].x) == 20


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: p.delta(-1.0), "`epsilon` must be finite and >= 0, got epsilon=-1.0"),
        (lambda p: p.delta([0.0, math.nan]), "`epsilon` must be finite and >= 0"),
        (lambda p: p.delta("1"), "`epsilon` must be a number or an array of numbers, got epsilon=<dtype <U1>"),
        (
            lambda p: p.delta([[0.1], [0.1, 0.2]]),
            "`epsilon` must be a number or an array of numbers, got epsilon=<ragged>",
        ),
        (lambda p: p.epsilon([0.5, 1.0]), r"`delta` must be in \[0, 1\), got delta=1.0"),
        (lambda p: p.false_negatives(1.5), r"`false_positives` must be in \[0, 1\]"),
        (lambda p: p.guess(1.0), r"`prior` must be in \(0, 1\)"),
        (lambda p: p.posterior(0.5, delta=0.0), r"`delta` must be in \(0, 1\)"),
        (lambda p: p.posterior(0.5, delta=1e-12), "of this profile"),
        (lambda p: p.chart(points=1), "`points` must be an integer >= 2"),
        (lambda _: hs.dp.profile([]), "`rounds` must be at least one protocol"),
        (lambda _: hs.dp.profile(survey(2, 1.0, 3), points=2), "`points` must be an integer >= 3"),
        (lambda _: hs.dp.profile(survey(2, 1.0, 3), least=0.5), r"`least` must be in \(0, 0.5\)"),
    ],
)
def test_bad_arguments(ask: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ask(hs.dp.profile(survey(2, 1.0, 3)))  # type: ignore[operator]


def test_bounds() -> None:
    ends = np.array([0.0, 0.1]), np.array([0.2, 0.3])
    bounds = Bounds(lower=ends[0], upper=ends[1], kind="bracket", unit="probability")
    assert len(bounds) == 2
    assert [figure.kind for figure in bounds] == ["upper", "bracket"]
    assert bounds[1:].upper.tolist() == [0.3]
    assert bounds[1].lower == 0.1
    with pytest.raises(ValueError, match="read-only"):
        bounds.lower[0] = 1.0
    with pytest.raises(InvalidInputError, match="two arrays of the same shape, with lower <= upper"):
        Bounds(lower=ends[1], upper=ends[0], kind="bracket", unit="")


def test_an_empty_array_has_no_figures() -> None:
    profile = hs.dp.profile(survey(2, 1.0, 3))
    assert profile.delta([]).upper.size == 0  # a list without numbers is one of floats
    assert isinstance(hs.dp.profile(survey(2, 1.0, 3))._curve, PrivacyCurve)


@pytest.mark.parametrize("prior", [1e-17, 1e-300, 5e-324])
def test_a_prior_next_to_nothing_is_hardly_ever_guessed_against(prior: float) -> None:
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=50)
    assert hs.dp.profile(survey).guess(prior).upper == 1.0
