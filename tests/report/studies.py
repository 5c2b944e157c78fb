"""A made-up study of everything that a page can show; no figure here is computed by an analysis."""

from __future__ import annotations

import math

from hushuffle.model import Bound, Diagram, HeatMap, Panel, PointMap, Report, Table, Warned
from hushuffle.model.citation import QIF
from report.assessments import charts, findings

BRACKET = Bound(lower=0.25, upper=0.26, kind="bracket", unit="nats", sources=(QIF.at("Theorem 4"),))
ESTIMATE = Bound(lower=0.1, upper=0.3, kind="estimate", unit="probability", confidence=0.95)
EXACT = Bound.exact(0.3, unit="nats")


def table(rows: int = 3) -> Table:
    given = (
        ("majority", "the vote of the 25 most similar people, among those near enough", 10, BRACKET, ESTIMATE, 0.5),
        ("boosted", "short", 1_234_567, BRACKET, EXACT, 1234.5678),
        ("other <b>", "short", 5, BRACKET, "not run", math.inf),
    )
    return Table(
        key="mixed",
        title="A table of everything",
        caption="One sentence.",
        columns=("method", "description", "people", "epsilon", "attack", "seconds"),
        rows=tuple(given[row % 3] for row in range(rows)),
    )


def panel(label: str = "no shuffle", points: int = 6, labels: int = 3) -> Panel:
    places = range(points)
    return Panel(
        label=label,
        x=tuple(100 * math.sin(0.1 * place * place) for place in places),
        y=tuple(math.cos(0.3 * place) for place in places),
        values=tuple(place % labels for place in places),
    )


def point_map(*panels: Panel, labels: int = 3) -> PointMap:
    return PointMap(
        key="people",
        title="People on a map",
        caption="Each person by the label that is seen.",
        x_label="longitude",
        y_label="latitude",
        labels=tuple(f"label <{place}>" for place in range(labels)),
        panels=panels or (panel(), panel("uniform shuffle")),
    )


def heat_map(rows: int = 3, columns: int = 4, *, log: bool = False, name: str = "row") -> HeatMap:
    return HeatMap(
        key="matrix",
        title="A matrix",
        caption="Probability.",
        x_label="guess",
        y_label="truth",
        x=tuple(f"c{column}" for column in range(columns)),
        y=tuple(f"{name} {row}" for row in range(rows)),
        values=tuple(tuple(abs(row - column) / 4 for column in range(columns)) for row in range(rows)),
        log=log,
    )


def diagram() -> Diagram:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1800 90"><title>no</title><text x="9">box</text></svg>'
    lines = "how it is built\n  one box, of which there is more to say than fits into a line of a terminal at once"
    return Diagram(key="built", title="A diagram", caption="One box.", svg=svg, text=lines)


def study(*, points: int = 6) -> Report:
    return Report(
        key="meehan2022/figure-9",
        title="A study of <everything>",
        question="Does it look right?",
        answers=("Yes: 40 % of the time.", "A second answer.", "A third."),
        settings=(("seed", "1"), ("people", "12,000")),
        findings=findings(2),
        tables=(table(),),
        charts=tuple(charts()),
        maps=(point_map(panel(points=points), panel("uniform shuffle", points=points)),),
        heat_maps=(heat_map(), heat_map(30, 30, log=True)),
        diagrams=(diagram(),),
        warnings=(Warned(key="w", sentence="Something is odd.", advice="Look twice."),),
        citations=(QIF.at("Figure 2"),),
        software=(("hushuffle", "0.1.0"), ("python", "3.11")),
    )


EMPTY = Report(key="jurado2023/table-1", title="Nothing", question="What?", answers=())
