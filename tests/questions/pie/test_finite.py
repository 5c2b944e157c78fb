from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.questions import pie
from oracles.pie_hashing import best_success_with_prior
from oracles.pie_information import capacity, mutual_information, through


def matrix(values: int, outputs: int, seed: int) -> hs.MatrixRandomizer:
    rows = np.random.default_rng(seed).dirichlet(np.full(outputs, 0.6), size=values)
    return hs.MatrixRandomizer(channel=hs.Channel(matrix=rows))


CASES: list[tuple[Mechanism, int]] = [
    (matrix(3, 4, 1), 3),
    (matrix(3, 2, 2), 5),
    (matrix(4, 5, 3), 2),
    (matrix(2, 6, 4), 4),
    (hs.BitFlipping(width=2, p=0.2), 4),
    (hs.BitFlipping(width=2, p=0.1), 3),
    (hs.MatrixRandomizer(channel=hs.LocalHashing(k=4, g=2, epsilon=1.0).channel()), 4),
]


def survey(randomizer: Mechanism, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=n)


def exact(randomizer: Mechanism) -> list[list[Fraction]]:
    return [[Fraction(float(entry)) for entry in row] for row in randomizer.channel().matrix]


@pytest.mark.parametrize(("randomizer", "n"), CASES, ids=str)
def test_alpha_against_blahut_arimoto(randomizer: Mechanism, n: int) -> None:
    channel = [[float(entry) for entry in row] for row in exact(randomizer)]
    rows = min(n, len(channel))
    true = max(capacity([channel[x] for x in c], gap=1e-10) for c in itertools.combinations(range(len(channel)), rows))
    bound = pie.alpha(survey(randomizer, n))
    assert bound.lower - 1e-10 <= true <= bound.upper + 1e-12
    if n >= len(channel):
        assert bound.upper - bound.lower <= 2e-9
        assert bound.upper == pytest.approx(true, abs=1e-9)
        assert bound.kind == "bracket"
    else:
        assert (bound.kind, bound.lower) == ("upper", 0.0)


@pytest.mark.parametrize(("randomizer", "n"), CASES, ids=str)
def test_error_against_every_assignment(randomizer: Mechanism, n: int) -> None:
    channel = exact(randomizer)
    uniform, true = pie.bayes_error(survey(randomizer, n)), 1 - best_success_with_prior(channel, [Fraction(1, n)] * n)
    assert uniform.lower <= float(true) + 1e-14
    if n >= len(channel):
        assert uniform.kind == "exact"
        assert uniform.lower == pytest.approx(float(true), abs=1e-14)
    else:
        assert uniform.kind == "lower"
    weights = [Fraction(2 * u + 1, n * n) for u in range(n)]
    skewed = pie.bayes_error(survey(randomizer, n), prior=[float(w) for w in weights])
    assert skewed.kind == "lower"
    assert skewed.lower <= float(1 - best_success_with_prior(channel, weights)) + 1e-14


@pytest.mark.parametrize(("randomizer", "n"), CASES, ids=str)
def test_contraction_holds(randomizer: Mechanism, n: int) -> None:
    rng = np.random.default_rng(n)
    channel = [[float(entry) for entry in row] for row in exact(randomizer)]
    eta = pie.contraction(survey(randomizer, n))
    assert eta.kind == "upper"
    for _ in range(60):
        joint = rng.dirichlet(np.full(n * len(channel), rng.choice([0.05, 1.0]))).reshape(n, len(channel)).tolist()
        assert mutual_information(through(joint, channel)) <= eta.upper * mutual_information(joint) + 1e-12


def test_fewer_outputs_than_people_name_few() -> None:
    two = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]))
    bound = pie.bayes_error(survey(two, 4), prior=[0.4, 0.3, 0.2, 0.1])
    assert bound.lower == pytest.approx(0.3)  # two outputs name at most the two likeliest people


def test_several_reports() -> None:
    survey_ = survey(matrix(3, 4, 1), 3)
    assert pie.composed_alpha(survey_, reports=2).upper == pytest.approx(2 * pie.alpha(survey_).upper)
    assert pie.composed_error(survey_, reports=2).lower <= pie.composed_error(survey_, reports=1).lower
    assert pie.composed_error(survey_, reports=1).lower == pytest.approx(pie.bayes_error(survey_).lower)


def test_wide_bits_are_refused() -> None:
    with pytest.raises(UnsupportedProtocolError):
        pie.alpha(survey(hs.BitFlipping(width=40, p=0.1), 10))
    with pytest.raises(UnsupportedProtocolError, match="BitFlipping has no `epsilon`"):
        pie.calibrate(survey(hs.BitFlipping(width=2, p=0.1), 10), bayes_error=0.5)
