from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.mechanisms.randomizers import Mechanism, ReportLaw
from hushuffle.mechanisms.randomizers.report_law import averages_to_dummies, is_processing
from hushuffle.mechanisms.randomizers.square_wave import SquareWave
from oracles.dp_enumeration import Number, add_report, channel, compositions, counts_law, worst_delta

K = 3
TRUTHS = [Fraction(2, 5), Fraction(3, 5), Fraction(4, 5), Fraction(1)]
GROWTHS = [Fraction(1), Fraction(5, 4), Fraction(2), Fraction(4)]
MECHANISMS: list[Mechanism] = [
    hs.RandomizedResponse(k=K, epsilon=1.0),
    hs.LocalHashing(k=K, epsilon=1.0, g=2),
    hs.SubsetSelection(k=4, epsilon=1.0, w=2),
    hs.HadamardResponse(k=K, epsilon=1.0),
    hs.UnaryEncoding(k=K, epsilon=1.0, encoding="symmetric"),
    hs.UnaryEncoding(k=K, epsilon=1.0),
]


def theta(truth: Fraction) -> Fraction:
    return truth - (1 - truth) / (K - 1)


def guess(n: int, truth: Fraction, dummies: int, *, known: bool) -> Number:
    """The best guess of the target's value: the worst values of all others, or uniform ones."""
    rows = channel(K, truth)

    def right(others: tuple[int, ...], unknown: int) -> Number:
        base = counts_law(others, rows, dummies + unknown)
        laws = [add_report(base, row) for row in rows]
        return (
            sum(
                (max(law.get(key, 0) for law in laws) for key in laws[0].keys() | laws[1].keys() | laws[2].keys()),
                Fraction(),
            )
            / K
        )

    if known:
        return max(right(others, 0) for others in compositions(n - 1, K))
    return right((0,) * K, n - 1)


@pytest.mark.parametrize("truth", TRUTHS)
def test_more_people_and_dummies_lower_all_figures(truth: Fraction) -> None:
    for n, dummies in itertools.product((1, 2, 3), (0, 1)):
        for growth in GROWTHS:
            here = worst_delta(n, K, truth, growth, dummies)
            assert worst_delta(n + 1, K, truth, growth, dummies) <= here
            assert worst_delta(n, K, truth, growth, dummies + 1) <= here
            assert worst_delta(n, K, truth, growth, dummies + 1) <= worst_delta(n + 1, K, truth, growth, dummies)
        for known in (True, False):
            here = guess(n, truth, dummies, known=known)
            assert guess(n + 1, truth, dummies, known=known) <= here
            assert guess(n, truth, dummies + 1, known=known) <= guess(n + 1, truth, dummies, known=known)


def test_more_noise_lowers_all_figures_and_epsilon_at_least_in_proportion() -> None:
    for less, more in itertools.pairwise(TRUTHS):
        ratio = theta(less) / theta(more)
        for n, dummies, growth in itertools.product((1, 2, 3), (0, 1), GROWTHS):
            before = worst_delta(n, K, more, growth, dummies)
            assert worst_delta(n, K, less, growth, dummies) <= before
            assert worst_delta(n, K, less, 1 + ratio * (growth - 1), dummies) <= ratio * before
        for n, dummies, known in itertools.product((1, 2, 3), (0, 1), (True, False)):
            assert guess(n, less, dummies, known=known) <= guess(n, more, dummies, known=known)


def test_naming_a_sender_gets_no_easier_with_more_people() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        rows = rng.dirichlet(np.ones(4), size=3)

        def best(n: int, rows: np.ndarray = rows) -> float:
            held = itertools.combinations_with_replacement(range(3), n)
            return max(float(rows[list(values)].max(axis=0).sum()) / n for values in held)

        assert best(4) <= best(3) + 1e-12
        assert best(3) <= best(2) + 1e-12


def matrix(law: ReportLaw) -> np.ndarray:
    return np.asarray(law.channel().matrix, dtype=np.float64)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: type(one).__name__)
def test_where_it_is_said_there_is_a_channel_that_adds_the_noise_and_keeps_dummies(mechanism: Mechanism) -> None:
    laws = [mechanism.with_epsilon(epsilon).law() for epsilon in (0.3, 1.0, 2.5)]
    for noisier, law in itertools.combinations(laws, 2):
        assert is_processing(noisier, law)
        assert not is_processing(law, noisier)
        first, second, dummy = matrix(law), matrix(noisier), law.blanket().law
        if law.one_hot is not None and noisier.one_hot is not None:
            slope = float((noisier.one_hot.own - noisier.one_hot.raised) / (law.one_hot.own - law.one_hot.raised))
            rise = float(noisier.one_hot.raised) - slope * float(law.one_hot.raised)
            bit = np.array([[1 - rise, rise], [1 - rise - slope, rise + slope]])
            outputs = [[report >> place & 1 for place in range(K)] for report in range(1 << K)]
            step = np.array([[np.prod(bit[a, b]) for b in np.array(outputs)] for a in np.array(outputs)])
        else:
            assert law.told is not None
            assert noisier.told is not None
            kept = float(noisier.told / law.told)
            step = kept * np.eye(dummy.size) + (1 - kept) * dummy
        assert (step >= -1e-15).all()
        np.testing.assert_allclose(first @ step, second, atol=1e-12)
        np.testing.assert_allclose(dummy @ step, noisier.blanket().law, atol=1e-12)
    if averages_to_dummies(laws[1]):
        np.testing.assert_allclose(matrix(laws[1]).mean(axis=0), laws[1].blanket().law, atol=1e-12)


def test_nothing_is_said_of_others() -> None:
    waves = [SquareWave(bins=8, epsilon=epsilon).law() for epsilon in (1.0, 2.0)]
    assert not is_processing(*waves)
    assert not averages_to_dummies(waves[0])
    two = hs.RandomizedResponse(k=2, epsilon=1.0).law()
    assert not is_processing(two, hs.RandomizedResponse(k=3, epsilon=2.0).law())
    mixed = hs.UnaryEncoding(k=K, epsilon=0.5, encoding="symmetric").law()
    assert not is_processing(mixed, hs.UnaryEncoding(k=2, epsilon=1.0).law())
    assert not is_processing(two, mixed)
    assert [averages_to_dummies(one.law()) for one in MECHANISMS] == [True, False, True, False, False, False]
