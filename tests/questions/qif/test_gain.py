"""Vulnerability of channels: the published single-target figures, and which channels leak less."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushuffle.errors import InvalidInputError
from hushuffle.questions import qif
from oracles.qif_guessing import channel, success
from oracles.qif_max_load import by_counting

P = Fraction(3, 4)
seeds = st.integers(0, 2**32)


def random_prior(source: random.Random, size: int) -> npt.NDArray[Any]:
    weights = [source.randrange(6) for _ in range(size - 1)] + [1]
    return np.array([Fraction(weight, sum(weights)) for weight in weights])


def random_gain(source: random.Random, guesses: int, inputs: int) -> npt.NDArray[Any]:
    return np.array([[Fraction(source.randrange(9), 4) for _ in range(inputs)] for _ in range(guesses)])


@settings(max_examples=40)
@given(seed=seeds)
def test_shuffle_and_its_reduced_form_leak_the_same(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - examples, not secrets
    prior, gain = random_prior(source, 8), random_gain(source, 3, 8)
    full = qif.posterior_vulnerability(qif.shuffle(3, 2), prior, gain)
    assert full == qif.posterior_vulnerability(qif.reduced_shuffle(3, 2), prior, gain)
    noisy = qif.posterior_vulnerability(qif.noise_then_shuffle(3, 2, P), prior, gain)
    assert noisy == qif.posterior_vulnerability(qif.noise_then_reduced_shuffle(3, 2, P), prior, gain)


@settings(max_examples=40)
@given(seed=seeds)
def test_a_cascade_leaks_no_more_than_either_channel(seed: int) -> None:
    """N and S are both refined by NS = SN; looking never hurts."""
    source = random.Random(seed)  # noqa: S311
    prior, gain = random_prior(source, 9), random_gain(source, 4, 9)
    before = qif.prior_vulnerability(prior, gain)
    both = qif.posterior_vulnerability(qif.noise_then_shuffle(2, 3, P), prior, gain)
    assert before <= both
    assert both <= qif.posterior_vulnerability(qif.noise(2, 3, P), prior, gain)
    assert both <= qif.posterior_vulnerability(qif.shuffle(2, 3), prior, gain)


@pytest.mark.parametrize(("n", "k"), [(1, 2), (2, 2), (3, 2), (5, 2), (2, 3), (3, 3), (2, 5)])
def test_single_target_figures(n: int, k: int) -> None:
    """Jurado et al. 2023, Propositions 14, 15, 20 and 21, from the matrices."""
    prior, gain = qif.uniform_prior(k**n), qif.single_target_gain(n, k)
    wrong = (1 - P) / (k - 1)
    shuffled = by_counting(n, k) / n
    assert qif.prior_vulnerability(prior, gain) == Fraction(1, k)
    assert qif.posterior_vulnerability(qif.noise(n, k, P), prior, gain) == P
    assert qif.posterior_vulnerability(qif.reduced_shuffle(n, k), prior, gain) == shuffled
    both = qif.posterior_vulnerability(qif.noise_then_reduced_shuffle(n, k, P), prior, gain)
    assert both == P * shuffled + wrong * (1 - shuffled)
    assert both == success([None] * (n - 1), channel(k, P))


def test_every_target_is_as_exposed() -> None:
    prior, noisy = qif.uniform_prior(27), qif.noise_then_reduced_shuffle(3, 3, P)
    gains = [qif.single_target_gain(3, 3, target=target) for target in range(3)]
    assert len({qif.posterior_vulnerability(noisy, prior, gain) for gain in gains}) == 1


def test_identity_gain_is_bayes_vulnerability() -> None:
    """Guessing the whole dataset after a shuffle: one histogram each, its likeliest order."""
    posterior = qif.posterior_vulnerability(qif.reduced_shuffle(3, 2), qif.uniform_prior(8), qif.identity_gain(8))
    assert posterior == Fraction(4, 8)


def test_floats_stay_floats() -> None:
    gain = qif.single_target_gain(2, 2)
    before = qif.prior_vulnerability([0.25] * 4, gain)
    after = qif.posterior_vulnerability(qif.noise(2, 2, P), [0.25] * 4, gain.astype(float))
    assert isinstance(before, float)
    assert before == 0.5
    assert isinstance(after, float)
    assert after == pytest.approx(0.75, rel=1e-15)


def test_refuses_what_does_not_fit() -> None:
    shuffle = qif.reduced_shuffle(2, 2)
    with pytest.raises(InvalidInputError, match="probabilities >= 0 that sum to 1"):
        qif.prior_vulnerability([0.5, 0.6], qif.identity_gain(2))
    with pytest.raises(InvalidInputError, match="4 inputs"):
        qif.posterior_vulnerability(shuffle, qif.uniform_prior(3), qif.identity_gain(3))
    with pytest.raises(InvalidInputError, match="shape"):
        qif.posterior_vulnerability(shuffle, qif.uniform_prior(4), qif.identity_gain(3))
    with pytest.raises(InvalidInputError, match="`target` must be"):
        qif.single_target_gain(2, 2, target=2)
