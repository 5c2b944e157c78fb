from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.mechanisms.randomizers.subset_selection import Sets
from oracles.subset_selection import subset_law

F = Fraction
GROWTHS = (F(3, 2), F(4), F(60))
SIZES = [(k, w) for k in (3, 4, 5) for w in range(2, k)]


def rows(k: int, w: int, growth: Fraction) -> list[list[Fraction]]:
    sets = list(itertools.combinations(range(k), w))
    return [[subset_law(x, k, w, growth)[chosen] for chosen in sets] for x in range(k)]


def law(k: int, w: int, growth: Fraction) -> Sets:
    return Sets(k=k, w=w, own=growth * w / (growth * w + k - w))


@pytest.mark.parametrize(("k", "w"), [(2, 1), (4, 1), *SIZES])
@pytest.mark.parametrize("growth", GROWTHS)
def test_the_channel_is_that_of_the_definition(k: int, w: int, growth: Fraction) -> None:
    selection = hs.SubsetSelection(k=k, w=w, epsilon=math.log(growth))
    channel, expected = selection.channel(), rows(k, w, growth)
    assert channel.matrix == pytest.approx(np.array(expected, dtype=np.float64), abs=1e-12)
    assert selection.local_epsilon == pytest.approx(math.log(growth), rel=1e-12)


@pytest.mark.parametrize(("k", "w"), [(5, 1), (5, 2), (7, 4)])
def test_it_is_target_sampling_with_floods(k: int, w: int) -> None:
    selection = hs.SubsetSelection(k=k, w=w, epsilon=1.2)
    sigma = 1 - selection.threshold / 2**64
    sampling = hs.TargetSampling(targets=k, sigma=sigma, flood=w - 1)
    assert selection.channel().matrix == pytest.approx(sampling.channel().matrix, abs=1e-15)
    values = np.arange(500) % k
    if sampling.threshold == selection.threshold:
        ours, theirs = (each.randomize(values, rng=hs.reproducible(1)) for each in (selection, sampling))
        assert np.array_equal(ours, theirs)


def test_one_value_is_randomized_response() -> None:
    selection, response = hs.SubsetSelection(k=6, w=1, epsilon=1.3), hs.RandomizedResponse(k=6, epsilon=1.3)
    assert selection.law() == response.law()
    assert isinstance(selection.law(), Symmetric)
    assert selection.local_epsilon == response.local_epsilon
    protocols = [hs.Protocol(randomizer=each, shuffler=hs.UniformShuffle(), n=50) for each in (selection, response)]
    for question in (hs.qif.vulnerability, hs.pie.alpha, hs.pie.bayes_error):
        assert len({str(question(protocol)) for protocol in protocols}) == 1
    assert len({str(hs.dp.epsilon(protocol, delta=1e-3)) for protocol in protocols}) == 1


def test_large_sets_have_figures_without_a_matrix() -> None:
    survey = hs.Protocol(
        randomizer=hs.SubsetSelection(k=2**20, w=1001, epsilon=2.0), shuffler=hs.UniformShuffle(), n=10**6
    )
    assert hs.pie.alpha(survey).kind == hs.pie.bayes_error(survey).kind == "exact"
    few = hs.Protocol(randomizer=survey.randomizer, shuffler=hs.UniformShuffle(), n=3)
    assert hs.pie.alpha(few).upper < hs.pie.alpha(survey).upper
    weights = np.linspace(1, 2, 1000)
    many = hs.Protocol(randomizer=survey.randomizer, shuffler=hs.UniformShuffle(), n=1000)
    skewed = hs.pie.bayes_error(many, prior=weights / weights.sum())
    assert 0 < skewed.lower < hs.pie.bayes_error(many).lower


@pytest.mark.parametrize(("k", "w", "epsilon"), [(20, 5, 0.7), (6, 2, 2.0)])
def test_noise_for_a_promise_on_identity(k: int, w: int, epsilon: float) -> None:
    survey = hs.Protocol(
        randomizer=hs.SubsetSelection(k=k, w=w, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=10**4
    )
    wanted = hs.pie.bayes_error(survey).lower
    exact, capacity_and_fano, general = hs.pie.calibrate(survey, bayes_error=wanted)
    assert exact.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert exact.protocol is not None
    assert hs.pie.bayes_error(exact.protocol).lower >= wanted
    names = [route.name for route in (exact, capacity_and_fano, general)]
    assert names == ["exact Bayes error", "exact alpha* and Fano", "Proposition 4.1 and Fano"]


def test_the_best_size() -> None:
    for k, epsilon in itertools.product((3, 10, 50), (0.5, 1.0, 3.0)):
        best = hs.SubsetSelection.best_w(k, epsilon)
        errors = [
            hs.Protocol(randomizer=hs.SubsetSelection(k=k, w=w, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=100)
            for w in range(1, k)
        ]
        spreads = [hs.estimate(hs.Histogram(counts=[0] * k), protocol=each).variance_intercept for each in errors]
        assert best == 1 + int(np.argmin(spreads))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 5, "w": 5, "epsilon": 1.0}, r"`w` must be an integer from 1 to 4, got w=5"),
        ({"k": 5, "w": 0, "epsilon": 1.0}, r"`w` must be an integer from 1 to 4"),
        ({"k": 1, "w": 1, "epsilon": 1.0}, r"`k` must be an integer from 2"),
        ({"k": 5, "w": 2, "epsilon": 0.0}, r"`epsilon` must be > 0"),
        (
            {"k": 5, "w": 2, "epsilon": 1e-20},
            r"`epsilon` must be large enough that a report depends on the value at k=5, w=2",
        ),
    ],
)
def test_bad_parameters(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.SubsetSelection(**arguments)  # type: ignore[arg-type]


def test_sets_of_one_size_have_the_same_reports() -> None:
    laws = [hs.SubsetSelection(k=5, w=2, epsilon=epsilon).law() for epsilon in (1.0, 2.0)]
    assert laws[0].classes == laws[1].classes
    assert hs.SubsetSelection(k=5, w=3, epsilon=1.0).law().classes != laws[0].classes


@pytest.mark.parametrize("k", [2, 3, 60])
def test_an_epsilon_that_no_float_tells_from_0_is_refused_in_words(k: int) -> None:
    with pytest.raises(InvalidInputError, match="epsilon"):
        hs.SubsetSelection.from_settings(k, {"epsilon": 1e-320})
