from __future__ import annotations

import math

from hushuffle.model import Bound, Cell, Table
from hushuffle.report.cells import CellColumn, cell_columns
from report.studies import table


def column(*cells: Cell) -> CellColumn:
    (made,) = cell_columns(Table(key="t", title="T", caption="", columns=("a",), rows=tuple((cell,) for cell in cells)))
    return made


def texts(*cells: Cell) -> list[str]:
    return [cell.text for cell in column(*cells).cells]


def exact(value: float) -> Bound:
    return Bound.exact(value, unit="probability")


def test_a_column_of_figures_of_one_kind_says_it_once() -> None:
    _, description, people, epsilon, attack, seconds = cell_columns(table())
    assert (epsilon.kind, epsilon.style) == ("certified bracket", "bracket")
    assert {cell.kind for cell in epsilon.cells} == {""}
    assert epsilon.cells[0].text == "0.2500 to 0.2600 nats"
    assert attack.kind == ""
    assert [cell.kind for cell in attack.cells] == ["95% interval", "exact", ""]
    assert [cell.style for cell in attack.cells] == ["estimate", "exact", ""]
    assert attack.cells[1].text == "0.3000 nats"
    assert (description.words, people.words, attack.words, seconds.words) == (True, False, True, False)
    assert [cell.text for cell in people.cells] == ["10", "1,234,567", "5"]


def test_as_many_digits_as_tell_figures_apart() -> None:
    assert texts(exact(0.52111), exact(0.52116)) == ["0.5211", "0.5212"]
    assert texts(exact(0.521111), exact(0.521114)) == ["0.521111", "0.521114"]
    assert texts(exact(0.5211111), exact(0.5211112)) == ["0.521111", "0.521111"]
    assert texts(exact(0.5), exact(0.5)) == ["0.5000", "0.5000"]


def test_chosen_numbers_are_shown_as_they_were_chosen() -> None:
    assert texts(1.0, 0.99, 0.5) == ["1.00", "0.99", "0.50"]
    assert texts(1000.0, 20.0) == ["1,000", "20"]
    assert texts(1e-9, 0.5) == ["1.000e-09", "0.5000"]
    assert texts(1 / 3, math.inf) == ["0.3333", "infinity"]


def test_truth_and_text() -> None:
    assert texts(*(True, False)) == ["yes", "no"]
    assert texts("two\nlines", "9/64") == ["two lines", "9/64"]
    assert not column("9/64", "1").words


def test_a_table_without_rows() -> None:
    assert column().cells == ()
