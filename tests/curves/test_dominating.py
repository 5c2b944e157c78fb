from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hushuffle as hs
from hushuffle.curves.laws.symmetric import Binary
from hushuffle.curves.pairs.dominating import TabulatedCurve, common_step, typical_loss
from hushuffle.curves.search import privacy_curve
from hushuffle.numerics.loss_sum import LossLattice
from oracles import dp_composition as oracle


def survey(k: int, epsilon: float, n: int, *, shuffled: bool = True) -> hs.Protocol:
    shuffler = hs.UniformShuffle() if shuffled else hs.NoShuffle()
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=shuffler, n=n)


def curve(pair: LossLattice, x: float) -> float:
    """Sum of [P - x Q]_+ straight from the masses."""
    second = pair.mass * np.exp(-pair.losses)
    return float(np.maximum(pair.mass - x * second, 0.0).sum()) + pair.infinity


@pytest.mark.parametrize(("n", "k"), [(1, 2), (4, 2), (9, 2), (3, 3), (4, 3)])
def test_the_pair_dominates_every_neighbour_at_every_threshold(n: int, k: int) -> None:
    protocol = survey(k, 1.2, n)
    law = privacy_curve(protocol)
    mu = protocol.randomizer.law().truth  # type: ignore[attr-defined]
    pairs = oracle.round_pairs(n, k, float(Fraction(mu)))
    dominating = TabulatedCurve.of(law, step=common_step([(law, 1)]), negligible=1e-9).pair()
    closest = math.inf
    for epsilon in np.linspace(-1.5, 1.5, 61):
        worst = max(float(oracle.hockey_stick([pair], math.exp(epsilon))) for pair in pairs)
        assert worst <= curve(dominating, math.exp(epsilon)) + 1e-15
        closest = min(closest, curve(dominating, math.exp(epsilon)) - worst)
    assert closest < 1e-3


@given(heights=st.lists(st.floats(0, 1), min_size=2, max_size=12), step=st.floats(1e-4, 0.5))
def test_any_falling_points_are_dominated(heights: list[float], step: float) -> None:
    """Upper ends need not be convex; convex curves below them stay below the pair's, and it is a pair of laws."""
    deltas = np.sort(np.array(heights))[::-1].copy()
    index = np.arange(deltas.size, dtype=np.float64)
    pair = TabulatedCurve(step=step, index=index, deltas=deltas).pair()
    assert np.all(pair.mass >= 0)
    assert pair.mass.sum() + pair.infinity == pytest.approx(1.0, abs=1e-9)
    # Every curve of randomized response with a fault that lies below the points must lie below the pair's.
    for fault in (0.0, 0.1, 0.5):
        for top in index:
            grid = np.maximum(0.0, (1 - fault) * _response(step * top, step * index)) + fault
            if np.all(grid <= deltas):
                for level in step * np.linspace(-deltas.size, deltas.size, 41):
                    true = fault + (1 - fault) * float(_response(step * top, np.array([level]))[0])
                    assert true <= curve(pair, math.exp(level)) + 1e-12


def _response(epsilon: float, levels: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray:
    p, q = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    growth = np.exp(levels)
    return np.maximum(p - growth * q, 0.0) + np.maximum(q - growth * p, 0.0)


def test_symmetry_of_the_pair() -> None:
    law = privacy_curve(survey(2, 1.0, 50))
    pair = TabulatedCurve.of(law, step=common_step([(law, 1)]), negligible=1e-9).pair()
    assert pair.first == -(pair.mass.size // 2)
    second = pair.mass * np.exp(-pair.losses)
    np.testing.assert_allclose(second, pair.mass[::-1], rtol=1e-9, atol=1e-12)


def test_the_curve_is_certified_and_fine() -> None:
    for k, n in ((2, 500), (3, 100)):
        law = privacy_curve(survey(k, 2.0, n))
        table = TabulatedCurve.of(law, step=common_step([(law, 1)]), negligible=1e-8)
        assert table.deltas[-1] <= 1e-8 < table.deltas[-2]
        middle = int(table.index.size // 2)
        exact = law.upper(float(table.epsilons[middle]))
        assert exact * (1 - 1e-9) <= table.deltas[middle] <= exact * 1.03
        assert table.index.size < 200


def test_a_rare_large_loss_needs_no_endless_lattice() -> None:
    rare = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[1 - 2e-9, 2e-9], [1 - 4e-9, 4e-9]]))
    law = privacy_curve(hs.Protocol(randomizer=rare, shuffler=hs.UniformShuffle(), n=1))
    table = TabulatedCurve.of(law, step=common_step([(law, 3)]), negligible=1e-12)
    assert table.index[-1] < 2**25
    assert law.upper(float(table.epsilons[-1])) <= table.deltas[-1] < 2e-9


@pytest.mark.parametrize(("k", "n", "least"), [(2, 500, 1e-8), (3, 3000, 1e-8), (3, 40, 1e-4)])
def test_a_quick_table_approximates_the_certified_one(k: int, n: int, least: float) -> None:
    law = privacy_curve(survey(k, 1.5, n))
    step = common_step([(law, 3)])
    table, quick = (read(law, step=step, negligible=1e-9) for read in (TabulatedCurve.of, TabulatedCurve.about))
    near = np.interp(table.epsilons, quick.epsilons, np.log(np.maximum(quick.deltas, 1e-300)))
    matters = table.deltas > least
    assert np.exp(near[matters]) == pytest.approx(table.deltas[matters], rel=0.05)


def test_blocks_cover_every_composition() -> None:
    law = privacy_curve(survey(2, 2.0, 5003))
    cheap = law.near(1e-9, often=True)
    assert isinstance(cheap, Binary)
    assert isinstance(law, Binary)
    assert cheap.starts.size <= 600 < law.starts.size
    covered = {int(start) + extra for start in cheap.starts for extra in range(cheap.doubt + 1)}
    assert set(range(5003)) <= covered
    assert law.upper(0.05) <= cheap.upper(0.05) <= 1.02 * law.upper(0.05)
    assert cheap.near(1e-9, often=True) is cheap


def test_scales() -> None:
    """The typical loss is that of a Gaussian pair; without noise, it is the pure guarantee."""
    law = privacy_curve(survey(2, 1.0, 10**5))
    spread = math.tanh(0.5) / math.sqrt(10**5 * 0.7310586 * 0.2689414)
    assert typical_loss(law) == pytest.approx(spread, rel=0.01)
    assert typical_loss(privacy_curve(survey(2, math.inf, 5))) == math.inf
    small, large = privacy_curve(survey(2, 1.0, 10**4)), privacy_curve(survey(2, 1.0, 1, shuffled=False))
    assert common_step([(small, 1), (large, 1)]) == pytest.approx(common_step([(small, 1)]), rel=0.02)
