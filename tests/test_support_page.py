"""The page that says what answers what: nothing is missing in it, and its cheap cells, asked again."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.examples import RANDOMIZERS, SHUFFLERS

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("support", ROOT / "docs" / "support.py")
assert SPEC is not None
assert SPEC.loader is not None
support = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(support)
PAGE = support.PAGE.read_text(encoding="utf-8")
REASONS = re.findall(r"^\d+\. (.*)$", PAGE.partition("## Why none")[2], flags=re.MULTILINE)


def rows() -> Iterator[list[str]]:
    """Yield the cells of every row of the page's tables, a reason in the place of its number."""
    for line in PAGE.splitlines():
        if line.startswith("| ["):
            cells = [cell.strip() for cell in line.strip("|").split("|")][1:]
            yield [
                re.sub(r"^none \[(\d+)\].*", lambda found: f"none: {REASONS[int(found[1]) - 1]}", cell)
                for cell in cells
            ]


def test_every_mechanism_and_every_shuffler_has_its_rows() -> None:
    assert {type(mechanism) for mechanism, _ in support.MECHANISMS} == set(RANDOMIZERS)
    assert {type(shuffler) for _, shuffler, _ in support.SHUFFLERS} == set(SHUFFLERS)
    assert len(list(rows())) == 2 * sum(len(support.asked_of(title)) for title, *_ in support.SHUFFLERS)
    kinds = {"exact", "bracket", "upper", "lower", "yes"}
    assert all(cell in kinds or cell.startswith("none: ") for row in rows() for cell in row)


@pytest.mark.parametrize(
    ("shuffler", "mechanism"),
    [(0, 6), (1, 0), (3, 1), (4, 0)],
    ids=["sampling alone", "shuffled", "sums", "order"],
)
def test_the_library_answers_as_the_page_says(shuffler: int, mechanism: int) -> None:
    table = list(rows())[2 * len(support.MECHANISMS) * shuffler :]
    learned, used = support.answers(mechanism, shuffler)
    assert table[mechanism] == learned
    assert table[len(support.MECHANISMS) + mechanism] == used


@pytest.mark.slow
def test_the_whole_page_is_what_the_library_answers() -> None:
    assert support.page() == PAGE, "run python docs/support.py"
