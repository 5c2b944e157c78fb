from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.attacks.linkage import (
    attacked,
    candidates,
    genuine_scores,
    hit_rate,
    impostor_scores,
    miss_rate,
    ranks,
    ranks_among,
    reports,
)
from hushuffle.errors import InvalidInputError
from oracles.linkage_markov import binomial_tail, chance_of_rank


def test_ranks_without_ties_are_positions_in_the_sorted_row() -> None:
    scores = np.random.default_rng(1).random((40, 40))
    slow = [1 + sorted(row.tolist(), reverse=True).index(row[i]) for i, row in enumerate(scores)]
    assert ranks(scores).tolist() == slow


def test_ties_are_broken_at_random() -> None:
    rng, trials = np.random.default_rng(2), 20_000
    scores = rng.integers(0, 3, (5, 5)).astype(float)
    scores[0] = -np.inf
    drawn = np.array([ranks(scores, rng=coins) for coins in [hs.reproducible(3)] for _ in range(trials)])
    for i, row in enumerate(scores.tolist()):
        for top in range(1, 6):
            wanted = chance_of_rank(row, i, top)
            # Hoeffding: false alarm below 2 exp(-2 * 20000 * 0.03**2) = 5e-16 each.
            assert abs(np.mean(drawn[:, i] <= top) - wanted) < 0.03


def test_lists_of_candidates_hold_the_right_user_as_often_as_ranks_say() -> None:
    scores = np.random.default_rng(3).random((30, 30))
    reached = ranks(scores)
    for top in (1, 3, 30):
        listed = candidates(scores, top=top)
        assert listed.shape == (30, top)
        assert [i in row for i, row in enumerate(listed.tolist())] == (reached <= top).tolist()


@pytest.mark.parametrize(("hits", "trials"), [(0, 7), (3, 7), (7, 7), (1, 1083)])
@pytest.mark.parametrize("confidence", [0.9, 1 - 1e-6])
def test_intervals_are_those_of_clopper_and_pearson(hits: int, trials: int, confidence: float) -> None:
    places = [1] * hits + [2] * (trials - hits)
    found, tail = hit_rate(places, top=1, confidence=confidence), (1 - confidence) / 2
    error = miss_rate(places, confidence=confidence)
    assert (error.lower, error.upper) == pytest.approx((1 - found.upper, 1 - found.lower), abs=1e-12)
    assert (found.kind, found.unit, found.confidence) == ("estimate", "probability", confidence)
    assert hits / trials in found
    if hits:
        assert binomial_tail(hits, trials, found.lower) == pytest.approx(tail, rel=1e-6)
    else:
        assert found.lower == 0
    if hits < trials:
        assert 1 - binomial_tail(hits + 1, trials, found.upper) == pytest.approx(tail, rel=1e-4)
    else:
        assert found.upper == 1


def test_intervals_hold_for_unlike_trials() -> None:
    rng = np.random.default_rng(4)
    chances = rng.random(50) ** 2
    missed = 0
    for _ in range(2000):
        places = np.where(rng.random(50) < chances, 1, 2)
        missed += float(chances.mean()) not in hit_rate(places, top=1, confidence=0.9)
    # At most 10 % may miss: more than 280 of 2,000 has probability below exp(-2 * 2000 * 0.04**2) = 2e-3 even then,
    # and unlike trials miss far less often.
    assert missed < 200


def test_ranks_in_blocks_are_those_of_the_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_BLOCK", 7)
    scores = np.random.default_rng(6).integers(0, 9, (40, 40)) + np.random.default_rng(7).random((40, 40)).round(1)
    users = np.array([3, 0, 39, 21])
    blocks, square = ranks_among(40, users, lambda at: scores[np.ix_(users, at)], rng=hs.reproducible(1))
    assert square.tolist() == scores[np.ix_(users, users)].tolist()
    for user, rank in zip(users, blocks, strict=True):
        better, tied = (
            int(np.count_nonzero(part))
            for part in (scores[user] > scores[user, user], scores[user] == scores[user, user])
        )
        assert better < rank <= better + tied
    everybody = np.arange(40)
    whole, _ = ranks_among(40, everybody, lambda at: scores[:, at], rng=hs.reproducible(1))
    assert whole.tolist() == ranks(scores, rng=hs.reproducible(1)).tolist()


def test_attacked_people_are_everybody_or_a_uniform_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "ATTACKED", 3)
    assert attacked(3, rng=hs.reproducible(1)).tolist() == [0, 1, 2]
    coins = hs.reproducible(1)
    drawn = [attacked(5, rng=coins).tolist() for _ in range(5000)]
    assert all(sorted(set(people)) == people for people in drawn)
    for wanted in itertools.combinations(range(5), 3):
        # Hoeffding: false alarm below 2 exp(-2 * 5000 * 0.04**2) = 3e-7 each.
        assert abs(drawn.count(list(wanted)) / 5000 - 0.1) < 0.04


@pytest.mark.parametrize("people", [(0, 0, 0, 1, 1), (1, 2, 3, 4, 5, 6), (0, 0, 0, 0, 6, 1), (3, 3, 3, 3, 3)])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_intervals_hold_for_people_drawn_without_replacement(people: tuple[int, ...], size: int) -> None:
    """All samples and outcomes are enumerated: the mean over all people is missed as rarely as the confidence says."""
    chances = [Fraction(part, 6) for part in people]
    mean, drawn = sum(chances) / len(people), list(itertools.combinations(chances, size))
    law = [Fraction(0)] * (size + 1)
    for sample in drawn:
        for hits in itertools.product((0, 1), repeat=size):
            each = (chance if hit else 1 - chance for chance, hit in zip(sample, hits, strict=True))
            law[sum(hits)] += math.prod(each, start=Fraction(1, len(drawn)))
    for confidence in (0.5, 0.8, 0.95):
        bounds = [hit_rate([1] * hits + [2] * (size - hits), top=1, confidence=confidence) for hits in range(size + 1)]
        below = sum(share for share, bound in zip(law, bounds, strict=True) if mean < bound.lower)
        above = sum(share for share, bound in zip(law, bounds, strict=True) if mean > bound.upper)
        assert max(below, above) <= (1 - confidence) / 2


def test_genuine_and_impostor_scores_share_out_the_matrix() -> None:
    scores = np.arange(16.0).reshape(4, 4)
    assert genuine_scores(scores).tolist() == [0, 5, 10, 15]
    assert impostor_scores(scores).tolist() == [1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14]


def test_what_is_no_score() -> None:
    for wrong in ([1.0], np.empty((0, 0)), [[math.nan]]):
        with pytest.raises(InvalidInputError, match="`scores` must be a matrix"):
            candidates(wrong, top=1)
    with pytest.raises(InvalidInputError, match="`scores` must be a square matrix"):
        ranks([[1.0, 2.0]])
    with pytest.raises(InvalidInputError, match="`top` must be an integer from 1 to 2"):
        candidates([[1.0, 2.0]], top=3)
    wrong_places: list[list[float]] = [[], [0], [1.5]]
    for places in wrong_places:
        with pytest.raises(InvalidInputError, match="`places` must be"):
            hit_rate(places, top=1)
    with pytest.raises(InvalidInputError, match="`confidence` must be"):
        miss_rate([1], confidence=1.0)
