from __future__ import annotations

import subprocess
import sys

import pytest

from hushuffle import report


def test_importing_the_room_loads_nothing_heavy() -> None:
    heavy = ("vl_convert", "jinja2", "rich")
    code = f"import sys, hushuffle.report; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_public_names() -> None:
    assert dir(report) == sorted(report.__all__)
    for name in report.__all__:
        assert getattr(report, name) is not None


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'pdf'"):
        _ = report.pdf
