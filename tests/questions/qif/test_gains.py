from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.questions import qif

P = Fraction(3, 4)


def test_tries_count_the_likeliest_secrets() -> None:
    prior = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    assert qif.prior_vulnerability(prior, qif.tries_gain(3, 1)) == Fraction(1, 2)
    assert qif.prior_vulnerability(prior, qif.tries_gain(3, 2)) == Fraction(5, 6)
    assert qif.prior_vulnerability(prior, qif.tries_gain(3, 3)) == 1


def test_two_tries_at_a_person_after_noise_and_shuffle() -> None:
    """k = 3: two tries at one of three values; noise alone gives 1 - (1 - P)/2, and two reports are two tries."""
    gains = {n: qif.target_gain(n, 3, qif.tries_gain(3, 2)) for n in (2, 3)}
    noisy = qif.posterior_vulnerability(qif.noise(3, 3, P), qif.uniform_prior(27), gains[3])
    assert noisy == 1 - (1 - P) / 2
    two = qif.posterior_vulnerability(qif.noise_then_shuffle(2, 3, P), qif.uniform_prior(9), gains[2])
    three = qif.posterior_vulnerability(qif.noise_then_shuffle(3, 3, P), qif.uniform_prior(27), gains[3])
    assert Fraction(2, 3) < three < two == noisy


def test_the_target_gain_of_the_identity_is_the_single_target_gain() -> None:
    for target in range(3):
        ours = qif.target_gain(3, 2, qif.identity_gain(2), target=target)
        assert ours.tolist() == qif.single_target_gain(3, 2, target=target).tolist()


def test_distances_in_floats_and_rationals() -> None:
    exact = qif.distance_gain([[0, 2, 6], [2, 0, 4], [6, 4, 0]])
    assert exact[0].tolist() == [1, Fraction(2, 3), 0]
    rough = qif.distance_gain(np.array([[0.0, 0.5], [0.5, 0.0]]))
    assert rough.dtype == np.float64
    assert rough.tolist() == [[1, 0], [0, 1]]
    assert qif.prior_vulnerability(qif.uniform_prior(3), exact) == Fraction(2, 3)


def test_iid_and_explicit_priors_agree() -> None:
    shares = [Fraction(1, 3), Fraction(2, 3)]
    weights = {(a, b): shares[a] * shares[b] for a in range(2) for b in range(2)}
    assert qif.explicit_prior(qif.datasets(2, 2), weights).tolist() == qif.iid_prior(2, shares).tolist()
    assert qif.iid_prior(1, [0.25, 0.75]).tolist() == [0.25, 0.75]
    assert sum(qif.iid_prior(3, [1, 0, 0])) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: qif.tries_gain(3, 4), "`tries` must be"),
        (lambda: qif.tries_gain(40, 20), "sets of guesses"),
        (lambda: qif.distance_gain([[0, 1]]), "square"),
        (lambda: qif.distance_gain([[0, 1], [2, 0]]), "symmetric"),
        (lambda: qif.distance_gain([[0, -1], [-1, 0]]), "symmetric"),
        (lambda: qif.distance_gain([[1, 1], [1, 0]]), "zero on the diagonal"),
        (lambda: qif.distance_gain([[0, 0], [0, 0]]), "not zero everywhere"),
        (lambda: qif.distance_gain([[0, float("nan")], [1, 0]]), "finite numbers"),
        (lambda: qif.target_gain(2, 2, [[1, 0, 0]]), "shape"),
        (lambda: qif.target_gain(2, 2, [[1, 0]], target=2), "`target` must be"),
        (lambda: qif.iid_prior(2, [0.5, 0.6]), "`frequencies` must be a distribution"),
        (lambda: qif.iid_prior(2, []), "`frequencies` must be a distribution"),
        (lambda: qif.iid_prior(2, np.array(["a", "b"])), "finite numbers"),
        (lambda: qif.explicit_prior([0, 1], {2: 1}), "1 of 1 labels"),
        (lambda: qif.explicit_prior([0, 1], {0: Fraction(1, 2)}), "`weights` must be a distribution"),
    ],
)
def test_refuses(call: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
