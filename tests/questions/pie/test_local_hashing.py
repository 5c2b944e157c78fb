from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.mechanisms.randomizers.local_hashing import LocalHashing
from hushuffle.questions import pie
from oracles.pie_hashing import affine_hashes, best_success_with_prior, binary_hashes, published_hash_channel
from oracles.pie_information import capacity, mutual_information, through

CASES = [
    (LocalHashing(k=4, g=2, epsilon=1.0), 4),
    (LocalHashing(k=3, g=4, epsilon=0.6), 3),
    (LocalHashing(k=4, g=4, epsilon=2.0), 3),
    (LocalHashing(k=5, g=3, epsilon=1.5), 2),
    (LocalHashing(k=4, g=3, epsilon=3.0), 4),
    (LocalHashing(k=3, g=2, epsilon=math.inf), 3),
    (LocalHashing(k=3, g=7, epsilon=1.0), 3),
    (LocalHashing(k=5, g=9, epsilon=2.5), 3),
]


def published(hashing: LocalHashing) -> list[list[Fraction]]:
    power = hashing.g & (hashing.g - 1) == 0
    hashes = binary_hashes(hashing.k, hashing.g) if power else affine_hashes(hashing.k, hashing.g)
    law = hashing.law().bucket
    return published_hash_channel(hashes, hashing.g, law.truth, law.lie)


def survey(hashing: LocalHashing, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=hashing, shuffler=hs.UniformShuffle(), n=n)


@pytest.mark.parametrize(("hashing", "n"), CASES, ids=str)
def test_alpha_is_not_below_the_capacity_of_the_published_hash(hashing: LocalHashing, n: int) -> None:
    channel = [[float(entry) for entry in row] for row in published(hashing)]
    assert np.array(channel) == pytest.approx(hashing.channel().matrix, abs=1e-15)  # the oracle's and the product's
    rows = min(n, hashing.k)
    true = max(
        capacity([channel[x] for x in chosen], gap=1e-10) for chosen in itertools.combinations(range(hashing.k), rows)
    )
    bound = pie.alpha(survey(hashing, n))
    assert true <= bound.upper + 1e-12
    assert bound.upper <= pie.hashing_alpha(survey(hashing, n)).upper
    assert pie.published_alpha(survey(hashing, n)).upper >= true - 1e-12
    if hashing.collision == 0:
        assert bound.kind == "exact"
        assert bound.upper == pytest.approx(true, abs=1e-9)
    else:
        assert (bound.kind, bound.lower) == ("upper", 0.0)


@pytest.mark.parametrize(("hashing", "n"), CASES, ids=str)
def test_error_is_not_above_that_of_any_assignment(hashing: LocalHashing, n: int) -> None:
    channel = published(hashing)
    for weights in ([1] * n, list(range(1, n + 1)), [10] + [1] * (n - 1)):
        prior = [Fraction(weight, sum(weights)) for weight in weights]
        true = 1 - best_success_with_prior(channel, prior)
        bound = pie.bayes_error(survey(hashing, n), prior=[float(p) for p in prior])
        assert bound.lower <= true + Fraction(1, 10**15)
        if hashing.collision == 0:
            assert bound.kind == "exact"
            assert bound.lower == pytest.approx(float(true), abs=1e-14)
        else:
            assert (bound.kind, bound.upper) == ("lower", 1.0)
    uniform = pie.bayes_error(survey(hashing, n))
    law, j = hashing.law().bucket, min(n, hashing.k, hashing.g)
    assert uniform.lower == pytest.approx(float(1 - (j * law.truth + (hashing.g - j) * law.lie) / n), abs=1e-15)


@pytest.mark.parametrize(("hashing", "n"), [case for case in CASES if math.isfinite(case[0].epsilon)], ids=str)
def test_contraction_is_the_smallest_constant(hashing: LocalHashing, n: int) -> None:
    rng = np.random.default_rng(n)
    channel = [[float(entry) for entry in row] for row in published(hashing)]
    eta = pie.contraction(survey(hashing, n))
    assert eta.kind == "exact"
    half = math.tanh(hashing.local_epsilon / 2)
    assert eta.upper == pytest.approx(float(hashing.law().bucket.theta * (1 - hashing.collision)) * half)
    for _ in range(40):
        joint = rng.dirichlet(np.full(2 * hashing.k, rng.choice([0.1, 1.0]))).reshape(2, hashing.k).tolist()
        kept = mutual_information(through(joint, channel))
        assert kept <= eta.upper * mutual_information(joint) + 1e-12
    tilt = 1e-3  # two values, two people who hardly differ: where the constant is approached
    joint = [[0.25 + s * tilt, 0.25 - s * tilt] + [0.0] * (hashing.k - 2) for s in (1, -1)]
    assert mutual_information(through(joint, channel)) / mutual_information(joint) == pytest.approx(eta.upper, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_several_reports_with_fresh_hashes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hashing, n = LocalHashing(k=3, g=2, epsilon=float(rng.uniform(0.3, 3))), 3
    single = np.array([[float(entry) for entry in row] for row in published(hashing)])
    double = np.kron(single, single)
    bits = pie.composed_alpha(survey(hashing, n), reports=2)
    error = pie.composed_error(survey(hashing, n), reports=2)
    likely = pie.composed_error(survey(hashing, n), reports=2, largest_prior=0.6)
    for _ in range(40):
        joint = rng.dirichlet(np.full(9 * n, rng.choice([0.02, 0.3]))).reshape(n, 9)
        assert mutual_information(through(joint.tolist(), double.tolist())) <= bits.upper + 1e-12
        given = joint / joint.sum(axis=1, keepdims=True)
        assert 1 - (given @ double).max(axis=0).sum() / n >= error.lower - 1e-12
        prior = np.array([0.6, 0.3, 0.1])
        assert 1 - (prior[:, None] * (given @ double)).max(axis=0).sum() >= likely.lower - 1e-12
    assert pie.hashing_alpha(survey(hashing, n), reports=2).upper == pytest.approx(
        2 * pie.hashing_alpha(survey(hashing, n)).upper
    )
    assert pie.published_alpha(survey(hashing, n), reports=2).upper >= bits.upper


def test_the_paper_s_hashing_never_collides_and_is_exact() -> None:
    places = survey(LocalHashing(k=10_500_393, g=10**8, epsilon=1.0), 1_370_637)
    assert pie.alpha(places).kind == pie.bayes_error(places).kind == "exact"
    assert pie.hashing_alpha(places).upper == pytest.approx(
        math.expm1(1) / (1e8 + math.expm1(1)) * math.log2(1_370_637)
    )
