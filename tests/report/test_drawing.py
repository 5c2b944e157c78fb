from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import numpy as np

from hushuffle import report
from hushuffle.model import Chart, Series
from hushuffle.report import charts as pictures
from hushuffle.report import drawing
from hushuffle.report.drawing import COLORS, ChartDrawing
from report.assessments import assessment, charts


def chart(*series: Series, x_log: bool = False, y_log: bool = False, here: float | None = None) -> Chart:
    return Chart(
        key="any",
        title="Any",
        caption="Some.",
        x_label="x",
        y_label="y",
        series=series,
        x_log=x_log,
        y_log=y_log,
        here=here,
    )


def band(*points: tuple[float, float, float], label: str = "a") -> Series:
    x, lower, upper = zip(*points, strict=True)
    return Series(label=label, x=x, lower=lower, upper=upper)


def draw(made: Chart) -> ChartDrawing:
    drawn = pictures.lines(made, numbers="result.json")
    assert drawn is not None
    return drawn


def rows(drawn: ChartDrawing, layer: int) -> list[dict[str, Any]]:
    """Return the data of one layer; the library lifts data that layers share."""
    specification = drawn.specification
    data = specification["layer"][layer].get("data", specification.get("data"))
    found: list[dict[str, Any]] = specification["datasets"][data["name"]] if "name" in data else data["values"]
    return found


def svg(drawn: ChartDrawing, name: str = "chart-1") -> ET.Element:
    return ET.fromstring(drawing.svg(drawn, name))  # noqa: S314


def test_ids_are_named_after_the_chart_and_do_not_depend_on_what_was_drawn_before() -> None:
    drawn = draw(charts()[0])
    first = drawing.svg(drawn, "one")
    assert drawing.svg(drawn, "one") == first
    ids = re.findall(r'id="([^"]+)"', first)
    assert all(identifier.startswith("one-") for identifier in ids)
    assert set(re.findall(r"url\(#([^)]+)\)", first)) <= set(ids)


def test_ids_inside_a_drawing_are_kept_apart() -> None:
    clipped = draw(charts()[0])
    layer = clipped.specification["layer"]
    for one in layer:
        one["mark"] = {**one["mark"], "clip": True}
    text = drawing.svg(clipped, "two")
    ids = re.findall(r'id="([^"]+)"', text)
    assert len(ids) == len(set(ids)) >= len(layer)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) == set(ids)


def test_drawings_are_lean() -> None:
    text = drawing.svg(draw(charts()[1]), "one")
    assert "xmlns" not in text
    assert "font-family" not in text
    assert not re.search(r"\d\.\d{3,}[, L\"]", text)
    assert len(text) < 20_000


def test_a_band_is_an_area_between_two_lines_and_a_plain_line_is_one() -> None:
    both = draw(chart(band((1, 1, 2), (2, 1, 3)), band((1, 2, 2), (2, 2, 2), label="b")))
    assert [one["mark"]["type"] for one in both.specification["layer"]] == ["area", "line"]
    edges = rows(both, 1)
    assert {(row["series"], row["edge"]) for row in edges} == {("s0", "upper"), ("s0", "lower"), ("s1", "upper")}
    plain = draw(chart(band((1, 2, 2), (2, 2, 2))))
    assert [one["mark"]["type"] for one in plain.specification["layer"]] == ["line"]


def test_colors_and_dashes_tell_series_apart() -> None:
    series = [band((1, i, i), (2, i, i), label=f"line {i}") for i in range(9)]
    key = draw(chart(*series)).key
    assert [entry.text for entry in key] == [f"line {i}" for i in range(9)]
    assert len({(entry.color, entry.dash) for entry in key}) == 9
    assert key[0].color == COLORS[0] == key[7].color


def test_infinite_ends_reach_the_edge_and_are_said_to_go_on() -> None:
    drawn = draw(chart(band((1, 1, 2), (2, 1, math.inf), (3, 2, 2), (math.inf, 1, 1))))
    assert drawn.clipped
    high = drawn.specification["layer"][0]["encoding"]["y"]["scale"]["domain"][1]
    assert [row["high"] for row in rows(drawn, 0)] == [2.0, high, 2.0]
    upper = [row["y"] for row in rows(drawn, 1) if row["edge"] == "upper"]
    assert upper == [2.0, None, 2.0]
    json.dumps(drawn.specification, allow_nan=False)
    svg(drawn)
    made = replace(assessment(2), charts=(chart(band((1, 1, math.inf), (2, 1, 3))),))
    assert "Lines that reach the edge of the chart continue outside it." in report.html(made)


def test_zero_on_a_logarithmic_axis_reaches_the_edge() -> None:
    drawn = draw(chart(band((0, 1, 1), (1, 0, 2), (10, 1, 3)), x_log=True, y_log=True, here=0.0))
    area = drawn.specification["layer"][0]
    low = area["encoding"]["y"]["scale"]["domain"][0]
    assert [(row["x"], row["y"]) for row in rows(drawn, 0)] == [(1.0, low), (10.0, 1.0)]
    assert low > 0
    svg(drawn)


def test_nothing_drawable_is_said_and_not_drawn() -> None:
    nothing = chart(band((1, math.inf, math.inf)))
    assert pictures.lines(nothing, numbers="result.json") is None
    assert pictures.lines(chart(band((math.inf, 1, 1))), numbers="result.json") is None
    assert pictures.lines(chart(), numbers="result.json") is None
    assert "No point of this chart is finite." in report.html(replace(assessment(2), charts=(nothing,)))


def test_this_deployment_is_marked_wherever_it_lies() -> None:
    for here, align in ((1.0, "left"), (2.0, "center"), (3.0, "right"), (9.0, "right")):
        drawn = draw(chart(band((1, 1, 1), (3, 1, 1)), here=here))
        text = drawn.specification["layer"][-1]["mark"]
        assert (text["text"], text["align"]) == ("this deployment", align)
        domain = drawn.specification["layer"][0]["encoding"]["x"]["scale"]["domain"]
        assert domain[0] <= here <= domain[1]
        assert "this deployment" in "".join(svg(drawn).itertext())


def test_single_points_are_seen() -> None:
    drawn = draw(chart(band((2, 1, 1))))
    assert drawn.specification["layer"][0]["mark"]["point"]
    assert len(svg(drawn).findall(".//path")) > 0


def test_lines_are_described_in_words() -> None:
    said = draw(charts()[0]).description
    for expected in ("Central privacy", "people n", "epsilon after shuffling", "certified bracket", "result.json"):
        assert expected in said


def test_shares_are_drawn_for_the_rows_asked_for() -> None:
    made = assessment(7)
    assert made.utility is not None
    assert made.population is not None
    drawn = pictures.shares(made.population, made.utility, [3, 1])
    assert drawn is not None
    assert [row["row"] for row in rows(drawn, 0)] == ["r3", "r1"]
    text = list(svg(drawn).itertext())
    assert text.index("3 times") < text.index("once")
    assert [entry.mark for entry in drawn.key] == ["interval", "tick"]


def test_shares_without_truth_or_estimate() -> None:
    made = assessment(2)
    assert made.utility is not None
    assert made.population is not None
    hidden = replace(made, population=replace(made.population, counts=None))
    assert hidden.population is not None
    drawn = pictures.shares(hidden.population, made.utility, [0, 1])
    assert drawn is not None
    assert [entry.mark for entry in drawn.key] == ["interval"]
    assert pictures.shares(made.population, replace(made.utility, estimate=None), [0, 1]) is None


def test_labels_that_look_alike_keep_their_rows() -> None:
    made = assessment(2, names=("a very long label, first", "a very long label, second"))
    assert made.utility is not None
    assert made.population is not None
    drawn = pictures.shares(made.population, made.utility, [0, 1])
    assert drawn is not None
    assert [text for text in svg(drawn).itertext() if text.startswith("a very")] == ["a very long label…"] * 2


def test_coordinates_keep_their_place() -> None:
    x = np.linspace(0, 1, 50)
    drawn = draw(chart(Series(label="a", x=tuple(x), lower=tuple(x), upper=tuple(x))))
    path = max((one.attrib["d"] for one in svg(drawn).iter("path")), key=len)
    points = np.array(re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", path), dtype=float)
    assert points.shape == (50, 2)
    slope = np.diff(points[:, 1]) / np.diff(points[:, 0])
    assert np.ptp(slope) < 0.01
