"""Scores spread over more decades than floats hold: no end but the trivial one, and no foreign error."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from hushuffle.numerics import score_sums
from hushuffle.numerics.score_sums import Nodes, Scores, positive_part

ONE = np.ones(1)


def scores(value: list[float], mass: float) -> Scores:
    values = np.array(value)
    return Scores(value=values, size=np.abs(values), mass=np.full(values.size, mass))


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
