"""Charts and maps of a Mallows shuffle."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.assessment.order import report as order_charts
from hushuffle.assessment.order import report as order_charts_module
from hushuffle.assessment.order.report import people_map
from hushuffle.model import Chart
from hushuffle.questions import order
from hushuffle.specification.order import Groups as Asked
from hushuffle.specification.order_setup import Arrangement

N = 90
PLACES = np.random.default_rng(6).random((N, 2))


def arrangement(
    groups: order.Groups,
    *,
    distance: Literal["kendall", "hamming"] = "kendall",
    metric: Literal["euclidean", "great-circle"] = "euclidean",
) -> Arrangement:
    reference = order.reference_order(groups, PLACES)
    theta = order.theta_for_alpha(2.0, reference=reference, groups=groups, distance=distance)
    return Arrangement(
        groups=groups,
        places=PLACES,
        names=("lat", "lon"),
        metric=metric,
        shuffler=hs.MallowsShuffle(reference=reference, theta=theta, distance=distance),
        alpha=order.alpha_for_theta(theta, reference=reference, groups=groups, distance=distance),
        sensitivity=order.sensitivity(reference, groups, distance=distance),
        published=order.published_sensitivity(reference, groups) if distance == "kendall" else None,
        width=order.width(reference, groups),
    )


def charts(found: Arrangement, asked: Asked) -> dict[str, Chart]:
    made = order_charts.order_charts(found, asked_for=asked, rng=hs.reproducible(1))
    return {chart.key: chart for chart in made}


def test_how_far_reports_move() -> None:
    groups = order.radius_groups(PLACES, 0.1)
    found = charts(arrangement(groups), Asked(columns=("lat", "lon"), radius=0.1))
    moved = found["displacement-against-alpha"]
    exact, published, uniform = moved.series
    assert published.label == "published sensitivity"
    assert list(exact.upper) == sorted(exact.upper, reverse=True)
    assert all(a <= b <= c for a, b, c in zip(exact.upper, published.upper, uniform.upper, strict=True))
    assert moved.here in exact.x
    assert "the published one" in moved.caption


def test_other_radii() -> None:
    groups = order.radius_groups(PLACES, 0.1)
    made = arrangement(groups)
    chart = charts(made, Asked(columns=("lat", "lon"), radius=0.1))["alpha-against-groups"]
    (line,) = chart.series
    assert chart.here == 0.1
    assert dict(zip(line.x, line.upper, strict=True))[0.1] == made.alpha.upper
    assert line.lower == line.upper == tuple(sorted(line.upper))
    assert max(line.x) == pytest.approx(0.2)


def test_larger_groups_only_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_charts, "_MOST_MEMBERSHIPS", 0)
    radius = charts(arrangement(order.radius_groups(PLACES, 0.1)), Asked(columns=("lat", "lon"), radius=0.1))
    assert max(radius["alpha-against-groups"].series[0].x) == 0.1
    size = charts(arrangement(order.nearest_groups(PLACES, 8)), Asked(columns=("lat", "lon"), nearest=8))
    assert size["alpha-against-groups"].series[0].x == (2.0, 4.0, 8.0)


def test_other_sizes() -> None:
    made = arrangement(order.nearest_groups(PLACES, 30))
    chart = charts(made, Asked(columns=("lat", "lon"), nearest=30))["alpha-against-groups"]
    (line,) = chart.series
    assert line.x == (2.0, 7.0, 15.0, 30.0, 60.0)
    assert line.upper[3] == made.alpha.upper
    assert chart.x_label == "people in a group"


def test_other_groups_have_no_radius_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_charts, "_MANY", 10)
    found = charts(arrangement(order.column_groups(np.arange(N) // 9), distance="hamming"), Asked(column="town"))
    assert list(found) == ["displacement-against-alpha"]
    assert [line.label for line in found["displacement-against-alpha"].series] == [
        "exact sensitivity",
        "uniform shuffle",
    ]


@pytest.mark.parametrize("metric", ["euclidean", "great-circle"])
def test_the_map(metric: Literal["euclidean", "great-circle"], monkeypatch: pytest.MonkeyPatch) -> None:
    found = arrangement(order.radius_groups(PLACES, 0.1), metric=metric)
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=found.shuffler, n=N)
    values = np.arange(N) % 3
    labels = ("a", "b", "c")
    made = people_map(protocol, found, values=values, labels=labels, rng=hs.reproducible(3))
    across, up = (1, 0) if metric == "great-circle" else (0, 1)
    assert (made.x_label, made.y_label) == (found.names[across], found.names[up])
    assert made.panels[0].values == tuple(values.tolist())
    assert len(made.panels) == 4
    for panel in made.panels:
        assert panel.x == tuple(PLACES[:, across].tolist())
        assert panel.y == tuple(PLACES[:, up].tolist())
    assert "evenly chosen" not in made.caption
    monkeypatch.setattr(order_charts_module, "MOST_SHOWN", 20)
    few = people_map(protocol, found, values=values, labels=labels, rng=hs.reproducible(3))
    assert [len(panel.x) for panel in few.panels] == [20] * 4
    assert "20 of 90 people, evenly chosen" in few.caption
    assert few.panels[0].values == tuple(int(values[place * 90 // 20]) for place in range(20))
