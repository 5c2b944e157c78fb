"""The page that says what answers what: nothing is missing in it, and its cheap cells are computed again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from contracts.examples import RANDOMIZERS, SHUFFLERS
from hushuffle.cli.console import Exit
from scripts import script

ROOT = Path(__file__).parent.parent
support = script("docs/support")
PAGE = support.PAGE.read_text(encoding="utf-8")
REASONS = re.findall(r"^\d+\. (.*)$", PAGE.partition("## Why none")[2], flags=re.MULTILINE)
KINDS = support.kinds()
SOON = {
    "shares of one column": ("inspect", "init", "calibrate", "explore", "collect", "collect, budget", "estimate"),
    "shares of several columns": ("compare", "explore", "audit", "minimum-batch"),
    "shares, several reports of a person": ("assess", "collect, key", "minimum-batch"),
    "shares, fresh reports in 2 rounds": ("collect, key", "collect, second round"),
    "shares, memoized reports in 2 rounds": ("init", "collect", "collect, key", "collect, batches", "estimate"),
    "shares, blanket messages": ("assess", "verify", "collect, batches"),
    "shares, a random number of dummies": ("collect", "estimate"),
    "shares, sums of bits": ("collect", "estimate", "minimum-batch"),
    "shares, noisy order": ("calibrate", "explore", "collect, key", "collect, batches", "minimum-batch"),
    "shares, groups with different randomizers": ("calibrate", "collect", "estimate", "audit", "minimum-batch"),
    "numbers: the mean": ("assess", "compare"),
    "numbers: quantiles": ("inspect", "collect", "estimate"),
    "numbers: the sum": ("assess", "calibrate", "choose", "collect", "collect, batches", "estimate", "verify"),
    "reach of audiences": ("choose", "explore", "collect", "audit"),
    "plan of a query": ("assess", "collect", "audit", "verify"),
}
"""Cells that take little time: each kind, and each command."""


def full(cell: str) -> str:
    """Return a cell of the page with its reason in the place of the reason's number."""
    return re.sub(r"^none \[(\d+)\].*", lambda found: f"none: {REASONS[int(found[1]) - 1]}", cell)


def table_of_kinds() -> dict[str, dict[str, str]]:
    """Return the cells of the table of kinds and commands."""
    part = PAGE.partition("## Kinds of deployment\n")[2].partition("\n## ")[0]
    head, _, *lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("|")]
    return {line[0]: dict(zip(head[1:], map(full, line[1:]), strict=True)) for line in lines}


def check_kind(kind: str, verbs: Iterable[str]) -> None:
    """Every command works, or refuses with an exit code of a refusal and in words; the page agrees."""
    shown = table_of_kinds()[kind]
    for verb, (cell, code) in KINDS.row(kind, verbs).items():
        assert cell == shown[verb], (verb, cell)
        assert "unexpected error" not in cell, (verb, cell)
        if cell.startswith("none: "):
            assert code in (Exit.FAILED, Exit.USAGE) or (code == Exit.DONE and verb in KINDS.WRITES), (verb, code)
            assert re.search(r"\w+ \w+ \w+.*\.$", cell), (verb, cell)
        else:
            assert code == Exit.DONE, (verb, code)


def rows() -> Iterator[list[str]]:
    """Yield the cells of every row of the page's tables, a reason in the place of its number."""
    for line in PAGE.splitlines():
        if line.startswith("| ["):
            cells = [cell.strip() for cell in line.strip("|").split("|")][1:]
            yield list(map(full, cells))


def test_every_mechanism_and_every_shuffler_has_its_rows() -> None:
    assert {type(mechanism) for mechanism, _ in support.MECHANISMS} == set(RANDOMIZERS)
    assert {type(shuffler) for _, shuffler, _ in support.SHUFFLERS} == set(SHUFFLERS)
    assert len(list(rows())) == 2 * sum(len(support.asked_of(title)) for title, *_ in support.SHUFFLERS)
    kinds = {"exact", "bracket", "upper", "lower", "yes"}
    assert all(cell in kinds or cell.startswith("none: ") for row in rows() for cell in row)


@pytest.mark.parametrize(
    ("shuffler", "mechanism"), [(0, 6), (1, 0), (3, 1), (4, 0)], ids=["sampling alone", "shuffled", "sums", "order"]
)
def test_the_library_answers_as_the_page_says(shuffler: int, mechanism: int) -> None:
    table = list(rows())[2 * len(support.MECHANISMS) * shuffler :]
    learned, used = support.answers(mechanism, shuffler)
    assert table[mechanism] == learned
    assert table[len(support.MECHANISMS) + mechanism] == used


def test_every_kind_and_every_command_has_a_cell() -> None:
    shown = table_of_kinds()
    assert list(shown) == list(KINDS.KINDS) == list(SOON)
    assert all(list(cells) == list(KINDS.VERBS) for cells in shown.values())
    assert {verb for verbs in SOON.values() for verb in verbs} == set(KINDS.VERBS)
    kinds = {"yes", "in part"}
    assert all(cell in kinds or cell.startswith("none: ") for cells in shown.values() for cell in cells.values())


@pytest.mark.usefixtures("few_points")
@pytest.mark.parametrize("kind", SOON)
def test_the_program_answers_or_refuses_as_the_page_says(kind: str) -> None:
    check_kind(kind, SOON[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOON)
def test_every_command_answers_or_refuses_for_every_kind(kind: str) -> None:
    check_kind(kind, KINDS.VERBS)


@pytest.mark.slow
@pytest.mark.usefixtures("all_points")
def test_the_whole_page_is_what_the_library_answers() -> None:
    assert support.page() == PAGE, "run python docs/support.py"
