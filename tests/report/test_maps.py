from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model import HeatMap, Panel, PointMap
from hushuffle.report import heat, maps
from hushuffle.report.heat import HeatDrawing
from hushuffle.report.maps import MapDrawing, category_colors
from hushuffle.report.scales import steps, tick
from report.studies import heat_map, panel, point_map


def drawn(made: PointMap) -> MapDrawing:
    found = maps.draw(made)
    assert found is not None
    return found


def heated(made: HeatMap) -> HeatDrawing:
    found = heat.draw(made)
    assert found is not None
    return found


def dots(svg: str) -> dict[str, int]:
    """Return how many dots each colour has."""
    root = ET.fromstring(svg)  # noqa: S314
    paths = [path for path in root.iter("path") if path.get("stroke-linecap") == "round"]
    return {path.attrib["stroke"]: path.attrib["d"].count("h0") for path in paths}


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter("text")]  # noqa: S314


def test_one_path_for_each_category_all_points_drawn() -> None:
    made = drawn(point_map())
    assert [label for label, _ in made.panels] == ["no shuffle", "uniform shuffle"]
    assert [entry.text for entry in made.key] == ["label <0>", "label <1>", "label <2>"]
    assert dots(made.panels[0][1]) == dict.fromkeys(category_colors(3), 2)
    assert made.remark == ""


def test_points_stand_where_they_belong() -> None:
    corners = Panel(label="p", x=(0.0, 10.0, 5.0), y=(0.0, 10.0, 5.0), values=(0, 1, 2))
    (_, svg) = drawn(point_map(corners)).panels[0]
    places = [tuple(map(int, found)) for found in re.findall(r"M(\d+) (\d+)h0", svg)]
    low, high, middle = places
    assert low[0] < middle[0] < high[0]
    assert low[1] > middle[1] > high[1]
    assert middle[0] == pytest.approx((low[0] + high[0]) / 2, abs=1)


def test_many_points_are_thinned_and_that_is_said() -> None:
    made = drawn(point_map(panel(points=maps.POINTS_PER_PANEL + 5)))
    assert "Each picture shows at most 10,000 points" in made.remark
    many = drawn(point_map(*[panel(points=8000)] * 10))
    assert "shows at most 6,000 points" in many.remark
    assert sum(len(svg) for _, svg in many.panels) < 1_000_000


def test_panels_share_their_axes() -> None:
    wide = Panel(label="w", x=(-1000.0, 1000.0), y=(0.0, 1.0), values=(0, 1))
    first, second = drawn(point_map(panel(), wide)).panels
    assert words(first[1]) == words(second[1])


def test_the_commonest_category_is_drawn_first() -> None:
    uneven = Panel(label="u", x=tuple(map(float, range(10))), y=(0.0,) * 10, values=(1, *[2] * 9))
    assert list(dots(drawn(point_map(uneven)).panels[0][1])) == [category_colors(3)[2], category_colors(3)[1]]


def test_points_without_a_place_are_left_out() -> None:
    odd = Panel(label="o", x=(0.0, math.inf, 1.0), y=(0.0, 0.0, -math.inf), values=(0, 1, 2))
    assert dots(drawn(point_map(odd)).panels[0][1]) == {category_colors(3)[0]: 1}
    nowhere = Panel(label="n", x=(math.inf,), y=(0.0,), values=(0,))
    assert maps.draw(point_map(nowhere)) is None


def test_colours_differ() -> None:
    for count in (1, 8, 9, 40):
        assert len(set(category_colors(count))) == count


def test_small_matrices_print_their_values() -> None:
    made = heated(heat_map())
    assert {"0.25", "0.5", "0.75", "0", "row 0", "c3", "guess", "truth"} <= set(words(made.svg))
    assert made.remark == ""
    assert 'fill="#ffffff" text-anchor="middle"' in made.svg  # on dark cells
    assert 'fill="#1a1a1a" text-anchor="middle"' in made.svg


def test_large_matrices_print_none_and_some_names() -> None:
    made = heated(heat_map(60, 60, log=True))
    shown = words(made.svg)
    assert "0.5" not in shown
    assert "row 0" in shown
    assert "row 1" not in shown
    assert any("(logarithmic)" in word for word in shown)
    assert made.remark == "Grey cells have no finite value on this scale."
    assert len(heated(heat_map(300, 300)).svg) < 2_500_000


def test_long_names_are_turned_and_cut() -> None:
    made = heat_map(3, 4, name="a name of many many words")
    turned = replace(made, x=("never married at all",) * 4)
    assert "rotate(-90" in heated(turned).svg
    assert "rotate(-90" not in heated(made).svg
    assert "…" in heated(turned).svg


def test_flat_matrices_do_not_print_where_cells_are_too_low() -> None:
    tall = heat_map(60, 2)
    assert "0.5" not in words(heated(tall).svg)


def test_one_value_everywhere() -> None:
    same = replace(heat_map(2, 2), values=((0.5, 0.5), (0.5, 0.5)))
    assert "#08306b" in heated(same).svg


def test_nothing_to_colour() -> None:
    assert heat.draw(replace(heat_map(1, 2, log=True), values=((0.0, -1.0),))) is None


@pytest.mark.parametrize("seed", range(20))
def test_ticks_are_round_inside_and_few(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = float(rng.normal() * 10 ** rng.uniform(-3, 5))
    high = low + float(10 ** rng.uniform(-4, 6))
    found = steps(low, high, 6)
    assert 2 <= len(found) <= 7
    assert low - 1e-6 * (high - low) <= found[0]
    assert found[-1] <= high + 1e-6 * (high - low)


@pytest.mark.parametrize(
    ("value", "label"),
    [(0.0, "0"), (0.25, "0.25"), (1500.0, "1,500"), (1e6, "1e6"), (2.5e-7, "2.5e-7"), (1e-5, "1e-5")],
)
def test_labels_of_ticks(value: float, label: str) -> None:
    assert tick(value) == label


def test_categories_of_two_families_are_warm_and_cool() -> None:
    colors = category_colors(4, ("warm", "cool", "warm", "cool"))
    assert len(set(colors)) == 4
    for color, warm in zip(colors, (True, False, True, False), strict=True):
        red, blue = int(color[1:3], 16), int(color[5:7], 16)
        assert (red > blue) == warm


def test_families_are_given_for_every_label() -> None:
    with pytest.raises(InvalidInputError, match="one for each of the 2 labels"):
        PointMap(
            key="m", title="M", caption="", x_label="x", y_label="y", labels=("a", "b"), panels=(), families=("warm",)
        )
