from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

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


def svg(drawn: ChartDrawing) -> ET.Element:
    return ET.fromstring(drawn.svg)  # noqa: S314


def areas(drawn: ChartDrawing) -> list[str]:
    return [path.attrib["d"] for path in svg(drawn).iter("path") if path.attrib.get("fill") != "none"]


def edges(drawn: ChartDrawing) -> list[str]:
    """Return the lines along the bounds; dots, grid, axes and the mark of the deployment are drawn in other ways."""
    paths = [path.attrib for path in svg(drawn).iter("path") if path.attrib.get("stroke") in COLORS]
    return [path["d"] for path in paths if "stroke-linecap" not in path]


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


def test_drawings_are_lean() -> None:
    text = draw(charts()[1]).svg
    assert "xmlns" not in text
    assert "font-family" not in text
    assert " id=" not in text
    assert not re.search(r"\d\.\d{2,}[ HV]", text)
    assert len(text) < 20_000


def test_a_band_is_an_area_between_two_lines_and_a_plain_line_is_one() -> None:
    both = draw(chart(band((1, 1, 2), (2, 1, 3)), band((1, 2, 2), (2, 2, 2), label="b")))
    upper, lower, plain = map(points, edges(both))
    assert [points(area) for area in areas(both)] == [upper + lower[::-1]]
    assert upper[0][1] == plain[0][1] == plain[1][1] > upper[1][1]
    assert lower[0][1] == lower[1][1] > plain[0][1]
    single = draw(chart(band((1, 2, 2), (2, 2, 2))))
    assert (len(areas(single)), len(edges(single))) == (0, 1)


def test_points_are_joined_from_left_to_right() -> None:
    mixed = draw(chart(band((3, 1, 2), (1, 2, 3), (2, 1, 1))))
    assert edges(mixed) == edges(draw(chart(band((1, 2, 3), (2, 1, 1), (3, 1, 2)))))


def test_colors_and_dashes_tell_series_apart() -> None:
    series = [band((1, i, i), (2, i, i), label=f"line {i}") for i in range(9)]
    drawn = draw(chart(*series))
    assert [entry.text for entry in drawn.key] == [f"line {i}" for i in range(9)]
    assert len({(entry.color, entry.dash) for entry in drawn.key}) == 9
    assert drawn.key[0].color == COLORS[0] == drawn.key[7].color
    paths = [path.attrib for path in svg(drawn).iter("path") if path.attrib["d"] in edges(drawn)]
    assert [(path["stroke"], path.get("stroke-dasharray", "")) for path in paths] == [
        (entry.color, entry.dash) for entry in drawn.key
    ]


def test_infinite_ends_reach_the_edge_and_are_said_to_go_on() -> None:
    drawn = draw(chart(band((1, 1, 2), (2, 1, math.inf), (3, 2, 2), (math.inf, 1, 1))))
    assert drawn.clipped
    (area,) = map(points, areas(drawn))
    upper, _ = edges(drawn)
    assert area[0][1] == area[2][1] > area[1][1]
    assert points(upper) == [area[0], area[2]]
    assert "L" not in upper
    made = replace(assessment(2), charts=(chart(band((1, 1, math.inf), (2, 1, 3))),))
    assert "Lines that reach the edge of the chart continue outside it." in report.html(made)


def test_zero_on_a_logarithmic_axis_reaches_the_edge() -> None:
    drawn = draw(chart(band((0, 1, 1), (1, 0, 2), (10, 1, 3)), x_log=True, y_log=True, here=0.0))
    (area,) = map(points, areas(drawn))
    assert len(area) == 4
    assert area[3][1] == max(y for _, y in area) > area[2][1]
    assert len(points(edges(drawn)[1])) == 1
    assert "this deployment" not in drawn.svg


def test_nothing_drawable_is_said_and_not_drawn() -> None:
    nothing = chart(band((1, math.inf, math.inf)))
    assert pictures.lines(nothing, numbers="result.json") is None
    assert pictures.lines(chart(band((math.inf, 1, 1))), numbers="result.json") is None
    assert pictures.lines(chart(), numbers="result.json") is None
    assert "No point of this chart is finite." in report.html(replace(assessment(2), charts=(nothing,)))


def test_this_deployment_is_marked_wherever_it_lies() -> None:
    for here, anchor in ((1.0, "start"), (2.0, "middle"), (3.0, "end"), (9.0, "end")):
        root = svg(draw(chart(band((1, 1, 1), (3, 1, 1)), here=here)))
        (name,) = (each for each in root.iter("text") if each.text == "this deployment")
        assert name.attrib["text-anchor"] == anchor
        assert 0 < float(name.attrib["x"]) <= drawing.WIDTH
        assert any(path.attrib["d"].startswith(f"M{name.attrib['x']} ") for path in root.iter("path"))


def test_single_points_are_seen() -> None:
    assert sum(path.attrib["d"].count("h0") for path in svg(draw(chart(band((2, 1, 1))))).iter("path")) == 1


def test_long_axis_labels_are_wrapped() -> None:
    long = replace(chart(band((1, 1, 1), (3, 1, 1))), x_label="a label of words " * 6, y_label="other words " * 8)
    shown = [each.text for each in svg(draw(long)).iter("text")]
    assert [text for text in shown if text and "words" in text] == [
        *("other words other words other words other words", "other words other words other words other words"),
        *("a label of words a label of words a label of words", "a label of words a label of words a label of words"),
    ]


def test_lines_are_described_in_words() -> None:
    said = svg(draw(charts()[0])).attrib["aria-label"]
    for expected in ("Central privacy", "people n", "epsilon after shuffling", "certified bracket", "result.json"):
        assert expected in said


def test_shares_are_drawn_for_the_rows_asked_for() -> None:
    made = assessment(7)
    assert made.utility is not None
    assert made.population is not None
    drawn = pictures.shares(made.population, made.utility, [3, 1])
    assert drawn is not None
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
    (path,) = edges(drawn)
    across, down = np.array(points(path)).T
    assert len(across) == 50
    assert np.allclose((down - down[0]) / (down[-1] - down[0]), x, atol=0.001)
    assert np.allclose((across - across[0]) / (across[-1] - across[0]), x, atol=0.001)
