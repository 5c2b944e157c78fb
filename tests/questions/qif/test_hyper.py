from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushuffle.errors import InvalidInputError
from hushuffle.model import Channel
from hushuffle.questions import qif
from oracles.qif_toolkit import random_rows

P = Fraction(3, 4)
seeds = st.integers(0, 2**32)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_posteriors_average_to_the_prior_and_give_the_posterior_vulnerability(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - examples, not secrets
    channel, prior = Channel(matrix=random_rows(source, 3, 4)), random_rows(source, 1, 3)[0]
    seen = qif.hyper(prior, channel)
    assert sum(seen.outer) == 1
    assert (seen.outer @ seen.inners).tolist() == prior
    assert len({tuple(inner) for inner in seen.inners}) == seen.outer.size
    gain = [[Fraction(source.randrange(-4, 9), 4) for _ in range(3)] for _ in range(4)]
    assert seen.vulnerability(gain) == qif.posterior_vulnerability(channel, prior, gain)
    assert qif.hyper(prior, qif.merge_proportional_columns(channel)) == seen
    rough = qif.hyper(np.array(prior, dtype=np.float64), channel)
    assert rough.outer @ rough.inners == pytest.approx(np.array(prior, dtype=np.float64), abs=1e-15)
    assert rough.outer.size == seen.outer.size
    assert rough.vulnerability(gain) == pytest.approx(float(seen.vulnerability(gain)), abs=1e-14)


def test_equivalent_channels_have_one_hyper_distribution() -> None:
    prior = qif.iid_prior(3, [Fraction(1, 3), Fraction(2, 3)])
    full, reduced = qif.hyper(prior, qif.shuffle(3, 2)), qif.hyper(prior, qif.reduced_shuffle(3, 2))
    assert full == reduced
    assert full != qif.hyper(prior, qif.noise(3, 2, P))
    assert full != "something else"
    assert repr(full) == "Hyper(4 posteriors over 8 inputs)"


def test_a_float_gain_gives_a_float() -> None:
    seen = qif.hyper(qif.uniform_prior(2), qif.noise(1, 2, P))
    value = seen.vulnerability(np.eye(2))
    assert isinstance(value, float)
    assert value == 0.75


def test_parallel_shows_both() -> None:
    """Two independent looks at one bit: right unless they agree on the wrong value, or disagree (a coin)."""
    look = qif.noise(1, 2, P)
    both = qif.parallel(look, look)
    assert qif.posterior_vulnerability(both, qif.uniform_prior(2), qif.identity_gain(2)) == P
    three = qif.parallel(both, look)
    assert qif.posterior_vulnerability(three, qif.uniform_prior(2), qif.identity_gain(2)) == P**3 + 3 * P**2 / 4
    assert both.outputs[1] == ((0,), (1,))
    assert qif.refines(both, look)
    mixed = qif.parallel(look, Channel(matrix=np.array([[0.5, 0.5], [0.5, 0.5]])))
    assert not mixed.rational
    assert qif.hyper([0.5, 0.5], mixed).outer.size == 2


def test_noise_is_as_many_parallel_looks_at_as_many_people() -> None:
    """Each person's report depends on that person alone."""
    table = qif.datasets(2, 2)
    looks = [
        Channel(matrix=[[P if dataset[person] == value else 1 - P for value in range(2)] for dataset in table])
        for person in range(2)
    ]
    assert qif.parallel(*looks) == qif.noise(2, 2, P)


def test_refuses_what_does_not_fit() -> None:
    with pytest.raises(InvalidInputError, match="4 inputs"):
        qif.hyper(qif.uniform_prior(3), qif.shuffle(2, 2))
    with pytest.raises(InvalidInputError, match="4 inputs"):
        qif.parallel(qif.shuffle(2, 2), qif.shuffle(3, 2))
    with pytest.raises(InvalidInputError, match="shape"):
        qif.hyper(qif.uniform_prior(4), qif.shuffle(2, 2)).vulnerability(qif.identity_gain(3))
