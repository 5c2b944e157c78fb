from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy.stats import norm

from hushuffle.curves.laws.local import Local, local_divergence
from hushuffle.curves.laws.released import CoinsKnown, ConcentratedRelease, PureRelease
from hushuffle.curves.laws.symmetric import Binary, Kary
from hushuffle.mechanisms.randomizers import Symmetric


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_a_pure_release_is_binary_randomized_response(epsilon: float) -> None:
    law, release = Symmetric(k=2, truth=Fraction(1, 2), lie=Fraction(1, 2)), PureRelease(promised=epsilon)
    told = Fraction(math.exp(epsilon)) / (1 + Fraction(math.exp(epsilon)))
    law = Symmetric(k=2, truth=told, lie=1 - told)
    for share in (0.0, 0.3, 0.9):
        assert release.upper(share * epsilon) == pytest.approx(local_divergence(law, share * epsilon), rel=1e-12)
    assert release.upper(epsilon) == 0
    assert release.pure == epsilon
    assert release.lower(0.0)[0] == 0


@pytest.mark.parametrize("rho", [1e-4, 0.005, 0.5])
def test_a_concentrated_release_covers_the_gaussian(rho: float) -> None:
    release, mu = ConcentratedRelease(rho=rho), math.sqrt(2 * rho)
    for epsilon in (0.1 * mu, mu, 3 * mu, 6 * mu):
        exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert exact <= release.upper(epsilon) <= 1
    assert release.pure == math.inf
    assert release.lower(1.0)[0] == 0


def test_known_coins_hide_no_more_than_hidden_ones() -> None:
    for k in (2, 3, 20):
        law = Symmetric(k=k, truth=1 - (k - 1) * Fraction(1, 10 * k), lie=Fraction(1, 10 * k))
        local = math.log(law.truth / law.lie)
        known = CoinsKnown.of(law=law, local_epsilon=local, n=200, dummies=10)
        hidden = (Binary.of if k == 2 else Kary)(law=law, local_epsilon=local, n=200, dummies=10)
        for epsilon in (0.0, 0.2, 1.0):
            assert known.upper(epsilon) >= hidden.upper(epsilon) * (1 - 1e-9)
            assert known.upper(epsilon) <= Local(law=law, local_epsilon=local, n=200).upper(epsilon)
        assert known.upper(local) == 0
        assert known.pure == local
        assert known.lower(0.0)[0] == 0
