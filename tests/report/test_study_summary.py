from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from hushuffle import report
from hushuffle.errors import InvalidInputError
from hushuffle.model import Table
from report.studies import EMPTY, study, table


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_line_is_wider_than_asked(width: int) -> None:
    said = report.terminal(study(), width=width)
    assert max(cell_len(line) for line in said.splitlines()) <= width


def test_what_it_says() -> None:
    said = " ".join(report.terminal(study(), width=120).split())
    for words in (
        "A study of <everything> Does it look right?",
        "- Yes: 40 % of the time.",
        "Warning: Something is odd. Look twice.",
        "A table of everything",
        "0.2500 to 0.2600 nats",
        "95% interval",
        "Pictures, in study.html:",
        "People on a map.",
    ):
        assert words in said
    assert "\x1b" not in said
    assert "\x1b" in report.terminal(study(), color=True)


def test_columns_that_do_not_fit_are_named() -> None:
    said = report.terminal(study(), width=60)
    assert "only in study.html and study.json:" in said
    assert "seconds." in said


def test_one_wide_column_is_folded() -> None:
    wide = Table(key="w", title="W", caption="", columns=("a",), rows=(("x" * 300,),))
    said = report.terminal(replace(EMPTY, tables=(wide,)), width=40)
    assert said.count("x" * 40) == 7


def test_long_tables_are_cut() -> None:
    said = report.terminal(replace(EMPTY, tables=(table(50),)), width=120)
    assert "30 more rows are in study.json." in said


def test_nothing_to_say() -> None:
    assert report.terminal(EMPTY) == "Nothing\nWhat?\n\n"


def test_too_narrow() -> None:
    with pytest.raises(InvalidInputError, match="width"):
        report.terminal(EMPTY, width=39)
