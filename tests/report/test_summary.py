from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from hushuffle import report
from hushuffle.errors import InvalidInputError
from hushuffle.model import Report
from report.assessments import assessment

CASES = {
    "two values": assessment(2),
    "seven values": assessment(7, wrong=True, warnings=False),
    "many values": assessment(200),
    "no data": assessment(5, data=False),
    "no noise": assessment(3, data=False, noise=False),
    "long labels": assessment(3, names=("x" * 200, "日本語" * 50, "a label of many words " * 9)),
    "long title": replace(assessment(2), title="t" * 300, question="d" * 300),
}
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", [40, 57, 80, 132])
@pytest.mark.parametrize("made", CASES.values(), ids=CASES.keys())
def test_no_line_is_longer_than_the_width(made: Report, width: int) -> None:
    text = report.terminal(made, width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    assert text == report.terminal(made, width)


def test_colors_on_request() -> None:
    text = report.terminal(assessment(2), color=True)
    assert "\x1b[" in text
    assert max(cell_len(ESCAPE.sub("", line)) for line in text.splitlines()) <= 80


def test_says_everything_that_matters() -> None:
    text = " ".join(report.terminal(assessment(2)).split())
    for expected in (
        "Affairs survey of 1974",
        "6,366 people each answer",
        "Left out: 12 records without an answer.",
        "certified bracket",
        "0.08651 to 0.08661",
        "Warning: The randomness of this run",
        'Set seed = "secure"',
        "predicted",
        "measured",
    ):
        assert expected in text


def test_figures_are_those_of_the_page() -> None:
    made = assessment(7)
    text = report.terminal(made, 300)
    for finding in made.findings:
        value, _, kind = str(finding.bound).rpartition(" (")
        assert value in text
        assert kind.removesuffix(")") in text


def test_nothing_to_warn_of_and_nothing_asked() -> None:
    made = replace(assessment(2, warnings=False), findings=(), utility=None)
    text = report.terminal(made)
    assert "No warnings." in text
    assert "The specification names no adversary." in text


def test_many_values_are_counted() -> None:
    assert "188 more in result.json" in " ".join(report.terminal(assessment(200)).split())


def test_labels_are_text_and_cannot_move_the_cursor() -> None:
    text = report.terminal(assessment(3, names=("[bold]a[/bold]", "b\x1b[2J", ":smile:")))
    assert "[bold]a[/bold]" in text
    assert ":smile:" in text
    assert "\x1b" not in text


def test_too_narrow() -> None:
    with pytest.raises(InvalidInputError, match="width"):
        report.terminal(assessment(2), 39)
