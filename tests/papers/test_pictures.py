"""Pictures of the papers that have few numbers or none."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from hushuffle_papers.murakami2021.frameworks import information
from papers.rendered import rendered

PICTURES = (
    "murakami2021/figure-1",
    "murakami2021/figure-2",
    "murakami2021/figure-3",
    "meehan2022/figure-2",
    "meehan2022/figure-3",
)


@pytest.mark.parametrize("name", PICTURES)
def test_they_render(name: str) -> None:
    assert rendered(name).diagrams


def test_a_cluster_with_scramblers_has_fewer_views() -> None:
    study = rendered("ladjel2021/figure-4")
    (without, mixed), names = study.tables[0].rows, study.tables[0].columns
    assert names[:4] == ("cluster", "views", "messages", "channels")
    assert without[1:4] == (64, 6, 6)
    assert mixed[1:4] == (16, 12, 10)
    assert [len(diagram.text.splitlines()) for diagram in study.diagrams] == [12, 10]


def test_mutual_information_is_that_of_a_binary_symmetric_channel() -> None:
    p = Fraction(1, 10)
    joint = {(x, y): (p if x != y else 1 - p) / 2 for x in (0, 1) for y in (0, 1)}
    entropy = -float(p) * math.log2(p) - float(1 - p) * math.log2(1 - p)
    assert information(joint) == pytest.approx(1 - entropy, abs=1e-15)
