from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Channel
from hushuffle.questions import qif
from hushuffle.questions.qif import leakage
from oracles.pie_information import sibson
from oracles.qif_toolkit import mutual_information, random_rows

P = Fraction(3, 4)
seeds = st.integers(0, 2**32)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_leakages_of_random_channels(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - examples, not secrets
    rows, prior = random_rows(source, 3, 4), random_rows(source, 1, 3)[0]
    channel, gain = Channel(matrix=rows), [[Fraction(source.randrange(1, 9)) for _ in range(3)] for _ in range(3)]
    before, after = qif.prior_vulnerability(prior, gain), qif.posterior_vulnerability(channel, prior, gain)
    added, factor = qif.additive_leakage(channel, prior, gain), qif.multiplicative_leakage(channel, prior, gain)
    assert added.kind == factor.kind == "exact"
    assert added.upper == float(after - before) >= 0
    assert 1 <= factor.upper == float(after / before) <= qif.bayes_capacity(channel).upper * (1 + 1e-15)
    bits = qif.shannon_leakage(channel, prior)
    assert bits.upper == pytest.approx(float(mutual_information(rows, prior)), rel=1e-13, abs=1e-300)
    joint = [[float(p * cell) for cell in row] for p, row in zip(prior, rows, strict=True)]
    orders = [qif.shannon_leakage(channel, prior, order=order) for order in (1.5, 3.0, 40.0, math.inf)]
    for order, bound in zip((1.5, 3.0, 40.0, math.inf), orders, strict=True):
        assert sibson(joint, order) == pytest.approx(bound.upper, abs=1e-12)
        assert bound.width < 1e-12
    assert all(one.lower <= other.upper for one, other in pairwise([bits, *orders]))
    assert orders[-1].lower <= math.log2(qif.bayes_capacity(channel).upper) + 1e-15
    limit = qif.shannon_capacity(channel)
    assert bits.upper <= limit.upper
    assert limit.upper <= math.log2(qif.bayes_capacity(channel).upper) + 1e-9  # Shannon's is at most the Bayes capacity
    rough = Channel(matrix=np.array(rows, dtype=np.float64))
    assert qif.shannon_leakage(rough, prior).upper == pytest.approx(bits.upper, abs=1e-14)


def test_information_of_an_order_through_a_shuffle_is_at_most_that_of_the_reports() -> None:
    prior, whole = qif.iid_prior(3, [Fraction(1, 4), Fraction(3, 4)]), qif.noise(3, 2, P)
    shuffled = qif.noise_then_shuffle(3, 2, P)
    for order in (1.5, 4.0, math.inf):
        after, before = (qif.shannon_leakage(each, prior, order=order) for each in (shuffled, whole))
        assert 0 < after.upper < before.lower
    with pytest.raises(InvalidInputError, match="`order` must be at least 1"):
        qif.shannon_leakage(shuffled, prior, order=0.9)


@pytest.mark.parametrize("k", [2, 3, 8])
@pytest.mark.parametrize("truth", [Fraction(9, 10), Fraction(1), Fraction(1, 2) + Fraction(1, 10**6)])
def test_capacities_of_randomized_response(k: int, truth: Fraction) -> None:
    law = Symmetric(k=k, truth=truth, lie=(1 - truth) / (k - 1))
    channel = qif.noise(1, k, truth)
    assert qif.bayes_capacity(channel).upper == float(law.gain(k))
    exact = law.capacity(k)[1]
    bound = qif.shannon_capacity(channel)
    assert Decimal(bound.lower) <= exact <= Decimal(bound.upper)
    assert bound.kind == "bracket"
    assert bound.width < 1e-9
    leaked = qif.shannon_leakage(channel, qif.uniform_prior(k))
    assert leaked.upper == pytest.approx(float(exact), rel=1e-13)


def test_a_tiny_leakage_keeps_its_digits() -> None:
    truth = Fraction(1, 2) + Fraction(1, 10**9)
    channel = qif.noise(1, 2, truth)
    leaked = qif.shannon_leakage(channel, qif.uniform_prior(2)).upper
    oracle = mutual_information([list(row) for row in channel.matrix], list(qif.uniform_prior(2)))
    assert leaked == pytest.approx(float(oracle), rel=1e-13)
    assert leaked < 1e-17


def test_capacity_of_the_z_channel() -> None:
    """Capacity log2(1 + (1-q) q**(q/(1-q))), at an unequal prior; q is the chance that a 1 is read as 0."""
    q = 0.5
    bound = qif.shannon_capacity(Channel(matrix=[[1.0, 0.0], [q, 1 - q]]), tolerance=1e-12)
    assert math.log2(1 + (1 - q) * q ** (q / (1 - q))) in bound
    assert bound.width < 2e-12


def test_capacity_when_an_input_is_never_used() -> None:
    """The erased middle input only confuses: the capacity is one bit."""
    bound = qif.shannon_capacity(Channel(matrix=[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]))
    assert 1.0 in bound
    assert bound.width < 1e-9


def test_channels_that_say_nothing_and_everything() -> None:
    silent = Channel(matrix=[[Fraction(1, 3), Fraction(2, 3), Fraction(0)]] * 4)
    bound = qif.shannon_capacity(silent)
    assert bound.lower == 0
    assert bound.upper < 1e-9
    assert qif.shannon_leakage(silent, qif.uniform_prior(4)).upper == 0
    assert qif.bayes_capacity(silent).upper == 1
    assert 3.0 in qif.shannon_capacity(qif.noise(3, 2, Fraction(1)))


def test_tiny_entries_are_no_trouble() -> None:
    bound = qif.shannon_capacity(Channel(matrix=[[1 - 1e-200, 1e-200, 0], [0.5, 0.5, 0], [1.0, 0.0, 0.0]]))
    assert 0 < bound.lower <= bound.upper < 0.33
    assert bound.width < 1e-9


def test_a_step_that_overshoots_is_taken_back() -> None:
    """Longer steps pay: a hundred random channels, each to 1e-9 bits within the limit of work."""
    rng = np.random.default_rng(7)
    for _ in range(100):
        rows = rng.dirichlet(np.full(6, 0.3), size=8)
        bound = qif.shannon_capacity(Channel(matrix=rows / rows.sum(axis=1, keepdims=True)))
        assert bound.width < 1e-9


def test_work_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = Channel(matrix=[[1.0, 0.0], [0.5, 0.5]])
    whole = qif.shannon_capacity(channel)
    monkeypatch.setattr(leakage, "WORK_LIMIT", 1)
    cut = qif.shannon_capacity(channel)
    assert cut.lower <= whole.lower <= whole.upper <= cut.upper
    assert cut.width > 1e-3


def test_refuses() -> None:
    channel = qif.shuffle(2, 2)
    with pytest.raises(InvalidInputError, match="additive_leakage"):
        qif.multiplicative_leakage(channel, qif.uniform_prior(4), [[-1, 0, 0, 0]])
    with pytest.raises(InvalidInputError, match="4 inputs"):
        qif.shannon_leakage(channel, qif.uniform_prior(3))
    with pytest.raises(InvalidInputError, match="`tolerance` must be"):
        qif.shannon_capacity(channel, tolerance=0)
