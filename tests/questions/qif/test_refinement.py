"""Refinement with its proof: published propositions about channels, random cascades, witnesses checked by hand."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hushuffle as hs
from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Channel
from hushuffle.numerics.exact import downwards, upwards
from hushuffle.questions import qif
from hushuffle.questions.qif import refinement
from oracles.qif_toolkit import local_mechanism, random_rows, shuffling
from plain_protocols import OtherShuffle, protocol

P = Fraction(3, 4)
SMALL = [(1, 2), (2, 2), (3, 2), (2, 3)]
seeds = st.integers(0, 2**32)


def proves_refinement(first: Channel, second: Channel) -> bool:
    """Whether the answer is yes, exactly, and its post-processing does it."""
    found = qif.refines(first, second)
    assert found.post_processing is not None
    assert found.separation is None
    assert found.deficiency.upper == found.deficiency.lower == 0
    return bool(found) and found.exact and first.cascade(found.post_processing) == second


def proves_separation(first: Channel, second: Channel) -> bool:
    """Whether the answer is no, and its prior and gain get more out of `second`."""
    found = qif.refines(first, second)
    separation = found.separation
    assert separation is not None
    assert found.post_processing is None
    before = qif.posterior_vulnerability(first, separation.prior, separation.gain)
    after = qif.posterior_vulnerability(second, separation.prior, separation.gain)
    assert 0 <= separation.gain.min() <= separation.gain.max() <= 1
    assert after - before == separation.gap
    # The programme's optimum is met from both sides.
    assert found.deficiency.lower <= separation.gap <= found.deficiency.upper
    assert found.deficiency.width < 1e-5
    return not found and found.exact and separation.gap > 0


@pytest.mark.parametrize(("n", "k"), [*SMALL, (3, 3)])
def test_proposition_9_the_full_and_the_reduced_shuffle_are_equivalent(n: int, k: int) -> None:
    full, reduced = qif.shuffle(n, k), qif.reduced_shuffle(n, k)
    assert proves_refinement(full, reduced)
    assert proves_refinement(reduced, full)
    assert qif.equivalent(full, reduced)


def test_rational_equivalence_at_the_largest_size() -> None:
    assert qif.equivalent(qif.shuffle(8, 2), qif.reduced_shuffle(8, 2))


@pytest.mark.parametrize(("n", "k"), SMALL)
@pytest.mark.parametrize("truth", [P, Fraction(1, 2), Fraction(1)])
def test_proposition_11_noise_and_shuffle_commute(n: int, k: int, truth: Fraction) -> None:
    noise, shuffle = qif.noise(n, k, truth), qif.shuffle(n, k)
    assert noise.cascade(shuffle) == shuffle.cascade(noise)


@pytest.mark.parametrize(("n", "k"), SMALL)
def test_proposition_12_the_cascades_with_full_and_reduced_shuffle_are_equivalent(n: int, k: int) -> None:
    full, reduced = qif.noise_then_shuffle(n, k, P), qif.noise_then_reduced_shuffle(n, k, P)
    assert proves_refinement(full, reduced)
    assert proves_refinement(reduced, full)
    assert qif.equivalent(full, reduced)


@pytest.mark.parametrize(("n", "k"), SMALL)
def test_proposition_26_the_reduced_cascade_commutes(n: int, k: int) -> None:
    after = qif.noise(n, k, P).cascade(qif.reduced_shuffle(n, k))
    assert after == qif.reduced_shuffle(n, k).cascade(qif.reduced_noise(n, k, P))


@pytest.mark.parametrize(("n", "k"), SMALL)
def test_proposition_28_full_and_reduced_compositions_are_equivalent(n: int, k: int) -> None:
    full = [qif.noise_then_shuffle(n, k, P), qif.shuffle_then_noise(n, k, P)]
    reduced = [qif.noise_then_reduced_shuffle(n, k, P), qif.reduced_shuffle(n, k).cascade(qif.reduced_noise(n, k, P))]
    for one in full:
        for other in reduced:
            assert qif.equivalent(one, other)
            assert qif.equivalent(other, one)


@pytest.mark.parametrize(("n", "k"), SMALL)
def test_noise_is_refined_by_noise_and_shuffle(n: int, k: int) -> None:
    noise, both = qif.noise(n, k, P), qif.noise_then_shuffle(n, k, P)
    assert proves_refinement(noise, both)
    assert proves_refinement(qif.shuffle(n, k), both)
    if n > 1:
        assert proves_separation(both, noise)
        assert not qif.equivalent(noise, both)


def test_noise_and_shuffle_neither_refines_the_other() -> None:
    assert proves_separation(qif.noise(3, 2, P), qif.shuffle(3, 2))
    assert proves_separation(qif.shuffle(3, 2), qif.noise(3, 2, P))


def test_noise_and_reduced_noise_are_not_comparable() -> None:
    """Their inputs are datasets and histograms."""
    with pytest.raises(InvalidInputError, match=r"8 inputs.*not comparable"):
        qif.refines(qif.noise(3, 2, P), qif.reduced_noise(3, 2, P))
    with pytest.raises(InvalidInputError, match="not comparable"):
        qif.equivalent(qif.noise(3, 2, P), qif.reduced_noise(3, 2, P))


@settings(max_examples=25, deadline=None)
@given(seed=seeds, n=st.integers(1, 3), k=st.integers(2, 3), reports=st.integers(1, 3))
def test_shuffling_commutes_with_any_local_mechanism(seed: int, n: int, k: int, reports: int) -> None:
    """Jurado et al. 2023, section VII, believes it; the shuffle acts on values before and on reports after."""
    mechanism = random_rows(random.Random(seed), k, reports)  # noqa: S311 - examples, not secrets
    local = Channel(matrix=local_mechanism(mechanism, n))
    assert local.cascade(Channel(matrix=shuffling(n, reports))) == Channel(matrix=shuffling(n, k)).cascade(local)


def test_the_shuffle_by_permutations_is_the_shuffle() -> None:
    assert Channel(matrix=shuffling(3, 3)) == qif.shuffle(3, 3)


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_a_cascade_refines_its_first_factor(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311
    inputs, middle, outputs = (source.randrange(1, 5) for _ in range(3))
    first = Channel(matrix=random_rows(source, inputs, middle))
    assert proves_refinement(first, first.cascade(Channel(matrix=random_rows(source, middle, outputs))))


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_every_answer_about_random_channels_is_proved(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311
    inputs = source.randrange(1, 5)
    first, second = (Channel(matrix=random_rows(source, inputs, source.randrange(1, 4))) for _ in range(2))
    if qif.refines(first, second):
        assert proves_refinement(first, second)
    else:
        assert proves_separation(first, second)
    both = bool(qif.refines(first, second)) and bool(qif.refines(second, first))
    assert qif.equivalent(first, second) == both


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_no_gain_beats_the_deficiency(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311
    first, second = (Channel(matrix=random_rows(source, 3, 3)) for _ in range(2))
    largest = qif.refines(first, second).deficiency.upper
    for _ in range(10):
        gain = [[Fraction(source.randrange(5), 4) for _ in range(3)] for _ in range(4)]
        after, before = (qif.posterior_vulnerability(c, qif.uniform_prior(3), gain) for c in (second, first))
        assert after - before <= largest


def test_deficiency_of_two_binary_symmetric_channels() -> None:
    """From truth 3/4 to 9/10 by hand: no post-processing does better than none, 0.15 off in each row."""
    less, more = qif.noise(1, 2, P), qif.noise(1, 2, Fraction(9, 10))
    assert 0.15 in qif.refines(less, more).deficiency
    assert qif.refines(less, more).deficiency.width < 1e-12


def floats(channel: Channel) -> Channel:
    return Channel(matrix=channel.matrix.astype(np.float64))


def test_float_channels_within_the_tolerance() -> None:
    noise, both = floats(qif.noise(2, 3, P)), floats(qif.noise_then_shuffle(2, 3, P))
    found = qif.refines(noise, both)
    assert found
    assert not found.exact
    assert found.deficiency.upper < 1e-12
    assert found.post_processing is not None
    assert noise.cascade(found.post_processing).matrix == pytest.approx(both.matrix, abs=1e-12)
    back = qif.refines(both, noise)
    assert not back
    assert not back.exact
    assert back.separation is not None
    assert float(back.separation.gap) == pytest.approx(15 / 64, abs=1e-5)
    assert not qif.equivalent(noise, both)
    assert qif.equivalent(floats(qif.shuffle(2, 3)), floats(qif.reduced_shuffle(2, 3)))
    # A tolerance above the deficiency accepts it.
    assert qif.refines(both, noise, tolerance=0.3)


def test_rational_channels_too_large_to_solve_are_within_the_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refinement, "EXACT_LIMIT", 0)
    found = qif.refines(qif.noise(2, 2, P), qif.noise_then_shuffle(2, 2, P))
    assert found
    assert not found.exact
    assert found.deficiency.lower == 0 <= found.deficiency.upper < 1e-12


def test_says_so_when_the_programme_leaves_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that returned nonsense is not believed."""
    nonsense = np.full((4, 4), 0.25), np.zeros((4, 4)), np.ones((4, 4), dtype=bool)
    monkeypatch.setattr(refinement, "_programme", lambda _first, _second: nonsense)
    monkeypatch.setattr(refinement, "EXACT_LIMIT", 0)
    with pytest.raises(NumericalError, match="Refinement is undecided"):
        qif.refines(qif.noise(2, 2, P), qif.noise_then_shuffle(2, 2, P))


def test_refuses_what_is_too_large_or_out_of_range() -> None:
    wide = Channel(matrix=np.full((2, 400), 1 / 400))
    with pytest.raises(InvalidInputError, match="5,000 entries"):
        qif.refines(wide, wide)
    with pytest.raises(InvalidInputError, match="`tolerance` must be"):
        qif.refines(qif.shuffle(1, 2), qif.shuffle(1, 2), tolerance=0.0)


def test_ends_are_rounded_outward() -> None:
    third = Fraction(1, 3)
    assert Fraction(downwards(third)) <= third <= Fraction(upwards(third))
    two = Fraction(2, 3)
    assert Fraction(downwards(two)) <= two <= Fraction(upwards(two))
    assert downwards(Fraction(1, 2)) == upwards(Fraction(1, 2)) == 0.5


def test_the_introductions_pair_equal_for_the_strong_unequal_for_the_uninformed() -> None:
    """Two people, two values: noise alone at 11/16, and noise at 3/4 with a shuffle (Jurado et al. 2023, section I)."""
    alone, mixed = qif.noise(2, 2, Fraction(11, 16)), qif.noise_then_reduced_shuffle(2, 2, P)
    gain = qif.single_target_gain(2, 2)
    for other in range(2):  # the strong adversary knows the second person's value
        strong = qif.explicit_prior(alone.inputs, {(0, other): Fraction(1, 2), (1, other): Fraction(1, 2)})
        right = [qif.posterior_vulnerability(channel, strong, gain) for channel in (alone, mixed)]
        assert right == [Fraction(11, 16), Fraction(11, 16)]
    right = [qif.posterior_vulnerability(channel, qif.uniform_prior(4), gain) for channel in (alone, mixed)]
    assert right == [Fraction(11, 16), Fraction(5, 8)]
    # Not a matter of refinement: asked about everybody at once, the second may leak more.
    assert proves_separation(mixed, alone)
    assert proves_separation(alone, mixed)


@pytest.mark.parametrize("n", [2, 3, 11, 100])
def test_the_pair_at_any_size(n: int) -> None:
    """Noise alone that equals the worst case of noise and shuffle for the strong adversary."""
    mixed = protocol(n, 2, P)
    strong = qif.vulnerability(mixed, adversary=hs.Strong()).upper
    alone = protocol(n, 2, Fraction(strong), OtherShuffle(revealed=Reveals.SENDERS))
    assert qif.vulnerability(alone, adversary=hs.Strong()).upper == pytest.approx(strong, rel=1e-15)
    assert qif.vulnerability(mixed).upper < qif.vulnerability(alone).upper - 0.01 / n
