"""The size of the building may only fall: lower a limit when a change makes its figure smaller, and never raise one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
LIMITS: Final[dict[str, int]] = {
    "files": 453,
    "files of the library with its program": 353,
    "lines": 91_443,
    "lines of the library with its program": 68_976,
    "code lines": 60_980,
    "lines of the longest file": 508,
    "files over 400 lines": 10,
    "files under 40 code lines": 58,
    "class tests outside the class's file": 67,
    "files with such tests": 35,
    "flags of shufflers read outside their room": 134,
    "questions which kind of deployment it is": 156,
    "class names with several meanings": 32,
    "private helpers used once": 913,
    "lines of such helpers": 11_780,
    "pages of documentation": 67,
    "words of documentation by hand": 59_981,
    "files walked by epsilon": 47,
    "files walked by assess": 97,
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
