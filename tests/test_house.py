"""The size of the building may only fall: lower a limit when a change makes its figure smaller, and never raise one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
LIMITS: Final[dict[str, int]] = {
    "files": 465,
    "files of the library with its program": 365,
    "lines": 94_012,
    "lines of the library with its program": 71_493,
    "code lines": 62_540,
    "lines of the longest file": 508,
    "files over 400 lines": 10,
    "files under 40 code lines": 58,
    "class tests outside the class's file": 72,
    "files with such tests": 39,
    "flags of shufflers read outside their room": 135,
    "questions which kind of deployment it is": 156,
    "class names with several meanings": 34,
    "private helpers used once": 933,
    "lines of such helpers": 11_939,
    "pages of documentation": 69,
    "words of documentation by hand": 59_936,
    "files walked by epsilon": 47,
    "files walked by assess": 101,
    "files walked by collect": 56,
}


@pytest.fixture(scope="module")
def measured() -> dict[str, object]:
    specification = importlib.util.spec_from_file_location("house", ROOT / "benchmarks" / "house.py")
    assert specification is not None
    assert specification.loader is not None
    house = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(house)
    figures: dict[str, object] = house.measure(ROOT)
    return figures


@pytest.mark.parametrize("name", LIMITS)
def test_a_figure_of_the_house_only_falls(name: str, measured: dict[str, object]) -> None:
    figure = measured[name]
    assert isinstance(figure, int)
    assert figure <= LIMITS[name], f"{name}: {figure:,}, more than {LIMITS[name]:,}; see benchmarks/house.py"


def test_every_figure_has_a_limit(measured: dict[str, object]) -> None:
    assert measured.keys() == LIMITS.keys()
