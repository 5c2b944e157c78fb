from __future__ import annotations

import math

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.questions import pse
from oracles.pse_neighbours import counts_of, divergence_of_laws, scores_information


def test_what_scores_say_rises_with_the_people_up_to_the_divergence() -> None:
    """By enumeration: PSE is at most log2 n and at most D, and rises with n."""
    rng = np.random.default_rng(8)
    for values, most in ((2, 9), (3, 6)):
        for _ in range(10):
            p, q = rng.dirichlet(np.ones(values)).tolist(), rng.dirichlet(np.ones(values)).tolist()
            said = [scores_information(p, q, n) for n in range(1, most + 1)]
            assert said == sorted(said)
            assert said[-1] <= divergence_of_laws(p, q)
            assert all(bits <= math.log2(n) + 1e-12 for n, bits in enumerate(said, start=1))


def middle(genuine: tuple[int, ...], impostor: tuple[int, ...]) -> float:
    """The estimate itself: the middle of an interval with next to no confidence."""
    bound = pse.plug_in(genuine, impostor, confidence=1e-9)
    return (bound.lower + bound.upper) / 2


def test_the_bias_is_taken_off() -> None:
    """Over every outcome: what is left of the bias falls as the square of the counts, the plug-in's as the counts."""
    p, q = (0.15, 0.85), (0.75, 0.25)
    expected = divergence_of_laws(p, q)
    left, plain = [], []
    for n in (60, 120):
        corrected = naive = 0.0
        for ours, chance in counts_of(n, p):
            for others, also in counts_of(n, q):
                if min(*ours, *others) and chance * also > 1e-14:
                    corrected += chance * also * middle(ours, others)
                    shares = ([c / n for c in ours], [c / n for c in others])
                    naive += chance * also * divergence_of_laws(*shares)
        left.append(abs(corrected - expected))
        plain.append(naive - expected)
    assert plain[1] > 0.01
    assert plain[1] / plain[0] == pytest.approx(0.5, abs=0.1)
    assert left[1] < plain[1] / 8
    assert left[1] < left[0] / 2.5


@pytest.mark.parametrize("same", [False, True])
def test_95_percent_intervals_hold_the_divergence(*, same: bool) -> None:
    """Of 400 samples at most 50 miss, which has chance 1e-8 at a coverage of 95%."""
    rng = np.random.default_rng(5)
    p = [0.1, 0.2, 0.3, 0.4]
    q = p if same else [0.4, 0.3, 0.2, 0.1]
    expected = divergence_of_laws(p, q)
    missed = sum(expected not in pse.plug_in(rng.multinomial(300, p), rng.multinomial(2000, q)) for _ in range(400))
    assert missed <= 50


def test_a_value_without_impostors_is_refused_with_advice() -> None:
    message = "3 of 5 genuine scores have values that no impostor score has.*score_counts"
    with pytest.raises(NumericalError, match=message):
        pse.plug_in([2, 3, 0], [5, 0, 2])


@pytest.mark.parametrize("wrong", [[0, 0], [-1, 2], [0.5, 1.0], [[1, 2]]])
def test_no_counts(wrong: list[object]) -> None:
    with pytest.raises(InvalidInputError, match="`impostor_counts` must be a list of counts"):
        pse.plug_in([1, 2], np.asarray(wrong))


def test_counts_of_different_lengths() -> None:
    with pytest.raises(InvalidInputError, match="must be of one length"):
        pse.plug_in([1, 2], [1, 2, 3])


def test_score_counts_keep_everybody_and_merge_only_neighbours() -> None:
    rng = np.random.default_rng(6)
    genuine, impostor = rng.normal(9, 4, 400), rng.normal(0, 3, 5000)
    ours, others = pse.score_counts(genuine, impostor, resolution=0.5, least=25)
    assert (ours.sum(), others.sum()) == (400, 5000)
    assert others.min() >= 25
    assert ours.size > 20
    assert ours[-1] > 100  # most genuine scores are above the impostors: they share the last cell
    assert isinstance(pse.plug_in(ours, others).upper, float)


def test_score_counts_of_separate_values_are_plain_counts() -> None:
    ours, others = pse.score_counts([2, 1, 2, 3], [1, 1, 2, 3, 3], least=1)
    assert ours.tolist() == [1, 2, 1]
    assert others.tolist() == [2, 1, 2]


@pytest.mark.parametrize(("genuine", "impostor"), [([], [1] * 10), ([1], [1] * 9)])
def test_too_few_scores_to_count(genuine: list[int], impostor: list[int]) -> None:
    with pytest.raises(InvalidInputError, match="at least 1 genuine score and 10 impostor scores"):
        pse.score_counts(np.array(genuine, dtype=np.int64), impostor)


def test_nearest_neighbours_and_plug_in_agree_on_integers() -> None:
    """Both scatter by about 0.02 bits (measured)."""
    rng = np.random.default_rng(7)
    genuine, impostor = rng.poisson(6, 20_000), rng.poisson(4, 50_000)
    counted = pse.plug_in(*pse.score_counts(genuine, impostor, least=1))
    neighbours = pse.kl_divergence(genuine, impostor, resolution=1.0)
    exact = (6 * math.log(6 / 4) - 2) / math.log(2)
    assert exact in counted
    assert neighbours.lower - 0.1 < exact < neighbours.upper + 0.1


def test_closed_form_refuses_a_point() -> None:
    with pytest.raises(InvalidInputError, match="`impostor\\[1\\]`"):
        pse.gaussian_divergence((0.0, 1.0), (0.0, 0.0))
