from __future__ import annotations

import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model import Bound, Citation, Finding, HeatMap, Panel, PointMap, Study, Table

FIRST, SECOND, THIRD = (Citation(key=name, text=name) for name in ("one", "two", "three"))


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
    study = Study(
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
