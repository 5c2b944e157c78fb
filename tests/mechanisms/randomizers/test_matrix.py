from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product

import mpmath
import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import MatrixRandomizer
from hushuffle.randomness import SCALE


def test_weights_are_the_probabilities_on_the_scale_of_words() -> None:
    none = Fraction(0)
    matrix = [[Fraction(1, 3), Fraction(2, 3), none, none], [Fraction(1, 7), Fraction(2, 7), Fraction(4, 7), none]]
    randomizer = MatrixRandomizer(channel=hs.Channel(matrix=matrix))
    for row, weights in zip(matrix, randomizer.weights, strict=True):
        assert sum(weights) == SCALE
        assert all(abs(w - SCALE * p) < 4 for w, p in zip(weights, row, strict=True))
        assert all((w == 0) == (p == 0) for w, p in zip(weights, row, strict=True))
    assert randomizer.channel().matrix == pytest.approx(np.array(matrix, dtype=float), rel=1e-15)
    assert (randomizer.inputs, randomizer.outputs) == (2, 4)


def test_local_epsilon_is_rounded_up() -> None:
    randomizer = MatrixRandomizer(channel=hs.Channel(matrix=[[0.3, 0.7], [0.6, 0.4]]))
    with mpmath.workdps(60):
        ratios = [mpmath.mpf(max(c)) / min(c) for c in zip(*randomizer.weights, strict=True)]
        exact = max(mpmath.log(ratio) for ratio in ratios)
        assert 0 <= mpmath.mpf(randomizer.local_epsilon) - exact < 3e-16


def test_words_at_the_ends_of_their_intervals() -> None:
    quarter = SCALE // 4
    randomizer = MatrixRandomizer(channel=hs.Channel(matrix=[[0.0, 0.25, 0.0, 0.75, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]]))

    class Fixed(type(hs.reproducible(0))):  # type: ignore[misc]
        def words(self, size: int, *, at: object = None) -> np.ndarray:
            del size, at
            return np.array([0, quarter - 1, quarter, SCALE - 1, 0, SCALE - 1], dtype=np.uint64)

    assert randomizer.randomize([0, 0, 0, 0, 1, 1], rng=Fixed(0)).tolist() == [1, 1, 3, 3, 2, 2]


def test_long_inputs() -> None:
    n = 2 * (1 << 16) + 9
    randomizer = MatrixRandomizer(channel=hs.Channel(matrix=[[0.25, 0.25, 0.5], [1.0, 0.0, 0.0]]))
    reports = randomizer.randomize(np.zeros(n, dtype=np.int64), rng=hs.reproducible(1))
    assert abs((reports == 2).mean() - 0.5) < 5.4 * math.sqrt(0.25 / n)  # 7e-8, two-sided


def test_symmetric_pairs_are_listed_once() -> None:
    response = hs.RandomizedResponse(k=6, epsilon=1.7)
    assert MatrixRandomizer(channel=response.channel()).law().pairs()[0].pairs == ((0, 1),)
    skewed = MatrixRandomizer(channel=hs.Channel(matrix=[[0.6, 0.4], [0.5, 0.5], [0.1, 0.9]]))
    assert len(skewed.law().pairs()[0].pairs) == 6


def test_no_blanket_no_dummies() -> None:
    randomizer = MatrixRandomizer(channel=hs.Channel(matrix=[[1, 0], [0, 1]]))
    assert (randomizer.law().blanket().weight, randomizer.local_epsilon) == (0.0, math.inf)
    assert randomizer.dummies(0, rng=hs.reproducible(0)).size == 0
    assert "no pure guarantee" in randomizer.describe()
    with pytest.raises(InvalidInputError, match=r"`count` must be 0 for a randomizer without blanket"):
        randomizer.dummies(3, rng=hs.reproducible(0))


def test_values_that_say_nothing_have_a_full_blanket() -> None:
    randomizer = MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.5], [0.5, 0.5]]))
    assert (randomizer.law().blanket().weight, randomizer.local_epsilon) == (1.0, 0.0)
    assert set(randomizer.dummies(100, rng=hs.reproducible(0)).tolist()) == {0, 1}


def test_bad_channels() -> None:
    with pytest.raises(InvalidInputError, match=r"`channel` must be of at least two values"):
        MatrixRandomizer([[1.0]])
    with pytest.raises(InvalidInputError, match=r"`matrix` must be a matrix with"):
        MatrixRandomizer("identity")
    with pytest.raises(InvalidInputError, match=r"`channel` must be of at least two values"):
        MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.5]]))


def test_figures_are_those_of_the_probabilities_as_they_are_drawn() -> None:
    """Entries near 1e-8 and 1e-15 are rounded to multiples of 2**-64: the lower bound is above that of the matrix."""
    rows = [[3.849685869212868e-08, 0.9999999615031413], [6.9417740786583725e-15, 0.999999999999993]]
    device = MatrixRandomizer(rows)
    figure = hs.dp.epsilon(hs.Protocol(randomizer=device, shuffler=hs.UniformShuffle(), n=3), delta=1e-9)
    drawn = [Fraction(weights[0], SCALE) for weights in device.weights]
    given = [Fraction(row[0]) for row in rows]
    assert (
        _worst_of_three(drawn, math.exp(figure.upper)) < Fraction(1e-9) < _worst_of_three(drawn, math.exp(figure.lower))
    )
    assert _worst_of_three(given, math.exp(figure.lower)) < Fraction(1e-9)


def _worst_of_three(ones: list[Fraction], growth: float) -> Fraction:
    """The largest divergence of the number of ones that three people send, over all neighbouring datasets."""
    worst, factor = Fraction(0), Fraction(growth)
    for others in product(range(2), repeat=2):
        laws = []
        for target in range(2):
            law = [Fraction(1)]
            for value in (target, *others):
                p = ones[value]
                law = [a * (1 - p) + b * p for a, b in zip([*law, Fraction(0)], [Fraction(0), *law], strict=True)]
            laws.append(law)
        for first, second in permutations(laws):
            worst = max(
                worst, sum((max(a - factor * b, Fraction(0)) for a, b in zip(first, second, strict=True)), Fraction(0))
            )
    return worst
