"""Random channels, rounds and levels against enumeration: others' data chosen in view of what was released."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hushuffle as hs
from oracles import dp_composition as oracle

_MOST = 20_000
"""Levels at which the last round is evaluated, at most: a third round is left out beyond."""


def random_round(rng: np.random.Generator) -> tuple[hs.Protocol, list[oracle.Pair]]:
    """Return a protocol and the laws of all neighbouring datasets."""
    k, outputs = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    n, dummies = int(rng.integers(1, 6 - (outputs > 2) - (k > 2))), int(rng.choice([0, 0, 0, 1]))
    rows = rng.dirichlet(np.full(outputs, float(rng.choice([0.5, 2.0, 20.0]))), size=k) + 0.01
    rows /= rows.sum(axis=1, keepdims=True)
    randomizer = hs.MatrixRandomizer(channel=hs.Channel(matrix=rows))
    shuffler = hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n), oracle.finite_pairs(rows.tolist(), n, dummies)


def check(seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = [random_round(rng) for _ in range(int(rng.choice([1, 2])))]
    rounds = [drawn[int(rng.integers(len(drawn)))] for _ in range(int(rng.choice([2, 2, 3])))]
    sizes = [sum(len(pair) for pair in pairs) for _, pairs in rounds]
    while len(rounds) > 2 and math.prod(sizes[:-1]) > _MOST:
        rounds, sizes = rounds[:-1], sizes[:-1]
    protocols, pairs = [protocol for protocol, _ in rounds], [pair for _, pair in rounds]

    def truth(epsilon: float) -> float:
        return float(oracle.worst_adaptive_on_levels(pairs, [math.exp(epsilon)])[0])

    total = sum(protocol.randomizer.local_epsilon for protocol in protocols)
    epsilon = float(rng.choice([0.0, rng.uniform(0, 1) ** 2 * total]))
    joint, exact = hs.dp.compose_delta(protocols, epsilon=epsilon), truth(epsilon)
    assert joint.lower * (1 - 1e-9) - 1e-14 <= exact <= joint.upper * (1 + 1e-9) + 1e-14, (seed, epsilon, exact, joint)
    delta = float(np.exp(-rng.uniform(0.5, 12)))
    found = hs.dp.compose(protocols, delta=delta)
    assert truth(found.upper * (1 + 1e-12)) <= delta * (1 + 1e-9) + 1e-14, (seed, delta, found)
    assert found.lower == 0 or truth(found.lower * (1 - 1e-9)) >= delta * (1 - 1e-9) - 1e-14, (seed, delta, found)


def test_levels_side_by_side_are_levels_one_by_one() -> None:
    rng = np.random.default_rng(1)
    pairs = [random_round(rng)[1] for _ in range(2)]
    for growth in (1.0, 1.3, 4.0):
        one = float(oracle.worst_adaptive(pairs, growth))
        assert float(oracle.worst_adaptive_on_levels(pairs, [growth])[0]) == pytest.approx(one, rel=1e-12, abs=1e-15)


def test_rounds_of_random_channels_hold_every_adaptive_choice() -> None:
    for seed in (0, 2):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 1080, 8))
def test_rounds_of_many_random_channels_hold_every_adaptive_choice(start: int) -> None:
    for seed in range(start, start + 8):  # up to half a minute each: a curve of so few people has thousands of points
        check(seed)
