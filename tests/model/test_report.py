from __future__ import annotations

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model import Bound, Citation, Finding, HeatMap, Panel, PointMap, Population, Report, Table, Utility

FIRST, SECOND, THIRD = (Citation(key=name, text=name) for name in ("one", "two", "three"))


def finding(*sources: Citation) -> Finding:
    bound = Bound.exact(0.5, unit="probability", sources=sources)
    return Finding(question="vulnerability", adversary="anyone", sentence="Half.", bound=bound, proof="by hand")


def test_rows_have_one_cell_for_each_column() -> None:
    with pytest.raises(InvalidInputError, match="`rows` must be 2 cells each"):
        Table(key="t", title="T", caption="", columns=("a", "b"), rows=((1, 2), (1,)))


def test_panels_have_as_many_values_as_points() -> None:
    with pytest.raises(InvalidInputError, match="of one length"):
        Panel(label="p", x=(0.0, 1.0), y=(0.0, 1.0), values=(0,))


@pytest.mark.parametrize("values", [(0, 2), (-1, 0)])
def test_codes_are_codes_of_labels(values: tuple[int, int]) -> None:
    panel = Panel(label="p", x=(0.0, 1.0), y=(0.0, 1.0), values=values)
    with pytest.raises(InvalidInputError, match="codes of the 2 labels"):
        PointMap(key="m", title="M", caption="", x_label="x", y_label="y", labels=("a", "b"), panels=(panel,))


def test_a_map_may_be_empty() -> None:
    panel = Panel(label="p", x=(), y=(), values=())
    made = PointMap(key="m", title="M", caption="", x_label="x", y_label="y", labels=(), panels=(panel,))
    assert made.panels == (panel,)


@pytest.mark.parametrize("values", [((1.0, 2.0),), ((1.0, 2.0), (1.0,))])
def test_a_heat_map_has_a_value_for_each_name(values: tuple[tuple[float, ...], ...]) -> None:
    with pytest.raises(InvalidInputError, match="2 rows of 2"):
        HeatMap(key="h", title="H", caption="", x_label="x", y_label="y", x=("a", "b"), y=("c", "d"), values=values)


def test_the_sources_of_a_study_are_those_of_its_figures_and_its_own() -> None:
    learned = Bound.exact(0.5, unit="probability", sources=(SECOND,))
    cell = Bound.exact(0.25, unit="probability", sources=(FIRST, SECOND))
    study = Report(
        key="k",
        title="t",
        question="q",
        answers=(),
        findings=(Finding(question="q", adversary="a", sentence="s", bound=learned, proof="p"),),
        tables=(Table(key="t", title="T", caption="", columns=("a", "b"), rows=((1, cell),)),),
        citations=(THIRD, FIRST),
    )
    assert study.bounds == (learned, cell)
    assert study.sources == (SECOND, FIRST, THIRD)


def test_citations_are_those_used_once_each_in_order() -> None:
    made = Report(
        title="T",
        question="Q",
        population=Population(n=3, labels=("no", "yes"), source="none"),
        findings=(finding(SECOND), finding(FIRST, SECOND.at("Theorem 1")), finding(SECOND)),
        citations=(FIRST, SECOND.at("Theorem 2")),
    )
    assert made.sources == (SECOND, FIRST, SECOND.at("Theorem 1"), SECOND.at("Theorem 2"))


@pytest.mark.parametrize(("target", "met"), [(None, None), (0.02, True), (0.0199, False)])
def test_a_target_is_met_by_the_largest_error(target: float | None, met: bool | None) -> None:
    assert Utility(predicted=np.array([0.01, 0.02]), target=target).met is met
