"""Scores spread over more decades than floats hold: no end but the trivial one, and no foreign error."""

from __future__ import annotations

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from hushuffle.numerics import score_sums
from hushuffle.numerics.score_sums import Nodes, ReportScores, log_damped, positive_part

ONE = np.ones(1)


def scores(value: list[float], mass: float) -> ReportScores:
    values = np.array(value)
    return ReportScores(value=values, size=np.abs(values), mass=np.full(values.size, mass))


@pytest.mark.parametrize("mass", [1e-300, 1e-200, 0.3])
@pytest.mark.parametrize("count", [1.0, 1e6])
def test_no_unit_holds_scores_so_far_apart(mass: float, count: float) -> None:
    wide = scores([1.0, -1e280], mass)
    assert score_sums._in_any_unit(wide, count * ONE, ONE, 0.01) == math.inf
    assert positive_part(scores([1.0, -1e280], mass), ONE, ONE, smoothing=0.01) >= mass


def test_nodes_of_scores_without_a_variance_are_refused() -> None:
    far = scores([1e160, -3e160], 0.3)
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ArithmeticError):
        Nodes.of(far, 10.0, 0.01)


def test_a_tilted_mass_that_vanishes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nodes, "of", lambda *_: SimpleNamespace(deep=True, tilt=1.0))
    with pytest.raises(ArithmeticError):
        score_sums._smoothed(scores([-1e5], 1.0), ONE, ONE, 0.01)


def test_products_of_powers_equal_the_powers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evenly spaced numbers of terms share powers of the transform; the last row of products is incomplete."""
    one, counts = scores([1.0, 0.2, -0.7], 0.3), np.arange(50.0, 127.0, 7.0)
    weights = np.linspace(1, 2, counts.size)
    products = positive_part(one, counts, weights, smoothing=0.01)
    monkeypatch.setattr(score_sums, "_ROWS", counts.size)
    assert products == pytest.approx(positive_part(one, counts, weights, smoothing=0.01), rel=1e-11)


@pytest.mark.parametrize("seed", range(40))
def test_a_bound_from_tilted_variances_is_above_enumeration(seed: int) -> None:
    """Sums of differently distributed scores, with the whole range and an interval in the middle."""
    rng = np.random.default_rng(seed)
    terms = int(rng.integers(1, 7))
    values = rng.normal(size=(terms, 3)) * float(rng.choice([0.1, 1.0, 10.0]))
    masses = rng.dirichlet(np.full(3, float(rng.choice([0.3, 5.0]))), size=terms)
    tilt, share = float(rng.choice([0.02, 0.3, 1.0, 3.0])), float(rng.uniform(0.1, 1.0))
    positive = sum(
        math.prod(masses[i, v] for i, v in enumerate(chosen))
        * max(sum(values[i, v] for i, v in enumerate(chosen)), 0.0)
        for chosen in product(range(3), repeat=terms)
    )
    grown = masses * np.exp(tilt * values)
    tilted = grown / grown.sum(axis=1, keepdims=True)
    widths = np.ptp(values, axis=1)
    middles = (tilted * values).sum(axis=1)
    variances = []
    for reach in (widths, share * widths / 2):
        inside = tilted * (np.abs(values - middles[:, None]) <= reach[:, None])
        size, mean, square = ((inside * values**power).sum(axis=1) for power in range(3))
        variances.append(float((size * square - mean**2).sum()))
    width = float(widths.max())
    for blur in (0.05, 0.2):
        bound = log_damped(tilt, np.array([variances]), np.array([[width, share * width]]), blur=blur)
        assert math.log(positive + 1e-300) <= float(np.log(grown.sum(axis=1)).sum()) + float(bound[0]) + 1e-12


@pytest.mark.parametrize("seed", range(60))
def test_left_out_nodes_are_negligible(seed: int) -> None:
    """Also for scores on a lattice, whose transform comes back to 1, and for two groups of reports."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    value = rng.integers(-4, 5, size).astype(float) if seed % 2 else rng.normal(size=size)
    value[:2] = 1.0, -1.5
    masses = rng.dirichlet(np.ones(size), size=2) * float(rng.choice([0.01, 0.3, 1.0]))
    groups = [
        (ReportScores(value=value, size=np.abs(value), mass=mass), float(count))
        for mass, count in zip(masses, rng.integers(0, 10 ** int(rng.integers(1, 7)), size=2), strict=True)
    ]
    full = Nodes(tilt=0.01, tau=0.01, period=float(rng.uniform(20.0, 300.0)), angles=np.arange(4000.0) * 0.02)
    kept = full.thinned(*groups)
    assert kept.angles[-1] == full.angles[-1]
    assert kept.skipped == full.angles.size - kept.angles.size
    gone = np.setdiff1d(full.angles, kept.angles)
    logs = np.zeros(gone.size)
    for scores, count in groups:
        grown = scores.mass * np.exp(0.01 * value)
        rest = 1 - float(scores.mass.sum())
        turned = np.exp(1j * np.outer(gone, value)) @ grown + rest
        logs += count * np.log(np.maximum(np.abs(turned), 1e-300) / (float(grown.sum()) + rest))
    assert bool((logs <= -45.0).all())
    if min(count for _, count in groups) > 10**5:
        assert kept.skipped > 0
