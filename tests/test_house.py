"""The size of the building may only fall: lower a limit when a change makes its figure smaller, and never raise one."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

import pytest

from scripts import script

ROOT: Final = Path(__file__).parents[1]
LIMITS: Final[dict[str, int]] = {
    "files": 472,
    "files of the library with its program": 367,
    "lines": 98_379,
    "lines of the library with its program": 74_503,
    "code lines": 65_304,
    "lines of the longest file": 508,
    "files over 400 lines": 17,
    "files under 40 code lines": 54,
    "class tests outside the class's file": 49,
    "files with such tests": 32,
    "flags of shufflers read outside their room": 143,
    "questions which kind of deployment it is": 16,
    "class names with several meanings": 31,
    "private helpers used once": 940,
    "lines of such helpers": 12_373,
    "pages of documentation": 70,
    "words of documentation by hand": 60_000,
    "files walked by epsilon": 50,
    "files walked by assess": 106,
    "files walked by collect": 56,
}


def check(measured: dict[str, int]) -> None:
    assert measured.keys() == LIMITS.keys()
    for name, figure in measured.items():
        assert figure <= LIMITS[name], f"{name}: {figure:,}, more than {LIMITS[name]:,}; see benchmarks/house.py"


def test_the_size_of_the_house_only_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = script("benchmarks/house")
    monkeypatch.setattr(quick, "_walk", lambda *_: [])
    monkeypatch.setattr(quick, "_code_lines", functools.cache(quick._code_lines))
    check(quick.measure(ROOT))


@pytest.mark.slow
def test_the_files_that_a_job_walks_through_only_fall() -> None:
    check(script("benchmarks/house").measure(ROOT))
