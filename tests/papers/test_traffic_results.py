"""The page of the traffic study and the errata say what the program computes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from hushuffle_papers.ladjel2021 import deltas, traffic

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs/reference/network-results.md").read_text("utf-8")
ERRATA: Final[list[dict[str, Any]]] = json.loads((ROOT / "docs/explanation/errata.json").read_text("utf-8"))["errata"]
CLAIMS: Final[list[dict[str, Any]]] = json.loads((ROOT / "docs/reference/verdicts.json").read_text("utf-8"))["claims"]


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table under a heading, without its head."""
    section = re.search(rf"^## {heading}.*?(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert section is not None
    table = re.search(r"^\|.*?(?=^$|\Z)", section[0], flags=re.DOTALL | re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table[0].splitlines()[2:]]


def numbers(cell: str) -> list[tuple[float, float]]:
    """Return the numbers in a cell, each with one unit of its last digit; 1.5·10⁻⁶ is one number."""
    plain = cell.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")).replace("·10", "e")
    return [
        (float(found), 10.0 ** (-len(found.partition("e")[0].partition(".")[2]) + int(found.partition("e")[2] or 0)))
        for found in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", plain)
    ]


def says(cell: str, *values: float) -> None:
    found = numbers(cell)
    assert len(found) == len(values), cell
    for (number, unit), value in zip(found, values, strict=True):
        assert number == pytest.approx(value, abs=1.01 * unit), cell


@pytest.mark.parametrize("row", rows("With a delta"), ids=lambda row: "-".join(row[:3]))
def test_figures_with_a_delta(row: list[str]) -> None:
    case = (int(row[0]), float(row[1]), int(row[2]))
    exact = traffic.certified(*case)
    says(row[3], exact.lower, exact.upper)
    says(row[5], traffic.as_printed(*case))
    says(row[6], traffic.bennett(*case).upper)
    says(row[7], traffic.capped(*case).upper)
    assert ("**" in row[5]) == (traffic.as_printed(*case) < exact.lower)


def test_how_often_the_printed_form_fails_is_said_alike_everywhere() -> None:
    (claim,) = (one for one in CLAIMS if one["target"] == "ladjel2021/figure-7" and "Bennett" in one["sentence"])
    failed = re.match(r"In (\d+) of (\d+) settings", claim["ours"])
    assert failed is not None
    (entry,) = (one for one in ERRATA if one["id"] == "ladjel2021-figure-7")
    assert f"In {failed[1]} of {failed[2]} settings" in entry["consequence"]
    says(entry["corrected"].rpartition(" ")[2].rstrip("."), traffic.certified(100, 0.2, 300).lower)
    cases = [
        *((n, 0.2, 50) for n in deltas._BATCHES),
        *((100, 0.2, d) for d in deltas._DUMMIES),
        *((500, s, 50) for s in deltas._RATES),
    ]
    low = sum(traffic.as_printed(*case) < traffic.certified(*case).lower for case in cases)
    assert (low, len(cases)) == (int(failed[1]), int(failed[2]))
