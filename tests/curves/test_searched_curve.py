"""Both ends of epsilon are evaluated on the curve itself, whatever the search aids say."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hushuffle.curves.base import PrivacyCurve
from hushuffle.model import Witness


@dataclass(frozen=True, kw_only=True)
class Scattered(PrivacyCurve):
    """A curve whose search aid shows `shown` of it: delta = scale (0.3 - epsilon/10)."""

    shown: float
    scale: float = 1.0

    @property
    def pure(self) -> float:
        return 3.0

    def upper(self, epsilon: float) -> float:
        return self.scale * max(0.0, 0.3 - epsilon / 10)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return 0.5 * self.upper(epsilon), Witness(family="made up", others=(1, 0), target=(0, 1))

    def contenders(self, epsilon: float) -> PrivacyCurve:
        del epsilon
        return Scattered(shown=self.shown, scale=self.shown)


@pytest.mark.parametrize("shown", [0.8, 0.99, 0.99999, 1.0])
def test_the_upper_end_holds_where_the_contenders_miss_the_worst(shown: float) -> None:
    curve = Scattered(shown=shown)
    bound = curve.epsilon(0.1)
    assert curve.upper(bound.upper) <= 0.1
    assert bound.upper == pytest.approx(2.0, rel=1e-6)
    assert bound.lower == pytest.approx(3 - 2 / shown, rel=1e-6)


def test_delta_takes_its_upper_end_from_the_curve_itself() -> None:
    bound = Scattered(shown=0.8).delta(1.0)
    assert bound.upper == pytest.approx(0.2)
    assert bound.lower == pytest.approx(0.8 * 0.1)


def test_pure_guarantees_and_hopeless_deltas_need_no_search() -> None:
    curve = Scattered(shown=0.8)
    assert curve.epsilon(0.0).upper == 3.0
    assert curve.epsilon(0.31).upper == 0.0
    assert curve.delta(3.0).upper == 0.0
