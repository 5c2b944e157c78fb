from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

import hushuffle as hs
import hushuffle.mechanisms.shufflers
from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.model import Channel
from hushuffle.questions import order
from hushuffle.questions.order.sensitivity import DISTANCES, Distance
from oracles import order_sensitivity as oracle
from oracles.rr_statistics import chi_square_excess


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_law_of_a_few_people(distance: Distance) -> None:
    for reference in ((0,), (1, 0), (2, 0, 3, 1)):
        orders, chances = order.mallows_law(reference, theta=0.4, distance=distance)
        expected = oracle.mallows(reference, 0.4, distance)
        assert {tuple(row): p for row, p in zip(orders.tolist(), chances.tolist(), strict=True)} == pytest.approx(
            expected
        )


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
def test_the_shuffler_draws_that_law(distance: Literal["kendall", "hamming"]) -> None:
    # False-alarm rate below 1e-6; the seed is fixed.
    reference, theta, draws = (2, 0, 3, 1), 0.4, 6000
    shuffler = hs.MallowsShuffle(reference=reference, theta=theta, distance=distance)
    orders, chances = order.mallows_law(reference, theta=theta, distance=distance)
    cells = {tuple(row): cell for cell, row in enumerate(orders.tolist())}
    rng, seen = hs.reproducible(5), np.zeros(24)
    for _ in range(draws):
        seen[cells[tuple(shuffler.release(np.arange(4), rng=rng).tolist())]] += 1
    assert chi_square_excess(seen, draws * chances) < 0


def law_of(reference: tuple[int, ...], theta: float) -> tuple[oracle.Law, order.guarantees.Law]:
    return oracle.mallows(reference, theta, "kendall"), order.mallows_law(reference, theta=theta)


@pytest.mark.parametrize("group", [None, (0, 1), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("theta", [0.0, 0.5])
def test_loss_by_enumeration(group: tuple[int, ...] | None, theta: float) -> None:
    rng, matrix = np.random.default_rng(1), oracle.randomized_response(2, 1.2)
    slow, fast = law_of((2, 0, 1), theta)
    for _ in range(5):
        table = rng.dirichlet(np.full(8, 0.5)).reshape(2, 2, 2)
        prior = {values: float(table[values]) for values in itertools.product(range(2), repeat=3)}
        found = order.inferential_loss(table, channel=Channel(matrix=matrix), law=fast, group=group)
        assert found.upper == pytest.approx(oracle.odds_shift(prior, matrix, slow, group), abs=1e-9)


def test_loss_with_more_reports_than_values() -> None:
    matrix = [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]
    table = np.random.default_rng(2).dirichlet(np.ones(4)).reshape(2, 2)
    prior = {values: float(table[values]) for values in itertools.product(range(2), repeat=2)}
    slow, fast = law_of((1, 0), 0.8)
    found = order.inferential_loss(table, channel=Channel(matrix=matrix), law=fast)
    assert found.upper == pytest.approx(oracle.odds_shift(prior, matrix, slow, None), abs=1e-9)


def test_shuffling_lowers_the_loss_and_order_privacy_bounds_it() -> None:
    # Three people who always agree: without shuffling three reports add up, and with it they still do (the bag).
    together = np.zeros((2, 2, 2))
    together[0, 0, 0] = together[1, 1, 1] = 0.5
    channel = Channel(matrix=oracle.randomized_response(2, 1.0))
    assert order.inferential_loss(together, channel=channel).upper == pytest.approx(3.0)
    uniform = order.mallows_law(range(3), theta=0.0)
    assert order.inferential_loss(together, channel=channel, law=uniform).upper == pytest.approx(3.0)
    # Two who agree and a stranger: the order says which two, and Theorem 4.1 bounds what that adds.
    pair = np.zeros((2, 2, 2))
    for value, stranger in itertools.product((0, 1), (0, 1)):
        pair[value, value, stranger] = 0.25
    plain = order.inferential_loss(pair, channel=channel).upper
    law = order.mallows_law(range(3), theta=0.2)
    alpha = order.alpha_for_theta(0.2, reference=range(3), groups=[range(3)]).upper
    assert order.inferential_loss(pair, channel=channel, law=law).upper <= plain == pytest.approx(2.0)  # three equal
    assert order.inferential_loss(pair, channel=channel, law=law, group=range(3)).upper <= alpha
    assert order.inferential_loss(pair, channel=channel, group=range(3)).upper > 2 * alpha  # no shuffling
    assert order.inferential_loss(pair, channel=channel, law=uniform, group=range(3)).upper == pytest.approx(
        0, abs=1e-9
    )


def test_exact_channels_no_noise_and_certain_values() -> None:
    half = Fraction(1, 2)
    coin = Channel(matrix=[[half, half], [half, half]])
    assert order.inferential_loss([0.3, 0.7], channel=coin).upper == 0.0
    truth = Channel(matrix=[[1, 0], [0, 1]])
    assert order.inferential_loss([0.3, 0.7], channel=truth).upper == math.inf
    assert order.inferential_loss([1.0, 0.0], channel=truth).upper == 0.0


def test_bad_input() -> None:
    channel = Channel(matrix=[[0.5, 0.5], [0.5, 0.5]])
    for prior, message in (
        (1.0, r"of shape \(k,\) \* n with k = 2"),
        ([0.2, 0.2, 0.6], r"of shape \(k,\) \* n"),
        ([0.5, 0.6], "non-negative with sum 1"),
        ([1.5, -0.5], "non-negative with sum 1"),
    ):
        with pytest.raises(InvalidInputError, match=f"`prior` must be {message}"):
            order.inferential_loss(prior, channel=channel)
    both = np.full((2, 2), 0.25)
    for law, message in (
        ((np.array([[0, 0]]), np.ones(1)), "of orders of 2 people"),
        ((np.array([0, 1]), np.ones(1)), "of orders of 2 people"),
        ((np.array([[0, 1]]), np.array([0.5])), "with one probability for each order"),
        ((np.array([[0, 1]]), np.ones(2)), "with one probability for each order"),
    ):
        with pytest.raises(InvalidInputError, match=f"`law` must be {message}"):
            order.inferential_loss(both, channel=channel, law=law)
    with pytest.raises(InvalidInputError, match=r"`group` must be integers from 0 to 1"):
        order.inferential_loss(both, channel=channel, group=[2])
    with pytest.raises(InvalidInputError, match=r"`reference` must be at most 8 people"):
        order.mallows_law(range(9), theta=1.0)
    with pytest.raises(InvalidInputError, match=r"`theta` must be finite and >= 0"):
        order.mallows_law(range(3), theta=math.inf)
    with pytest.raises(InvalidInputError, match=r"`distance` must be one of"):
        order.mallows_law(range(3), theta=1.0, distance="cayley")  # type: ignore[arg-type]
    with pytest.raises(NumericalError, match=r"Use fewer people, values or orders"):
        order.inferential_loss(np.full((2,) * 16, 2.0**-16), channel=channel)
