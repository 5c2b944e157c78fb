"""What another package adds: a mechanism and a command, found through its entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MODULE = """
from dataclasses import dataclass, replace
from typing import ClassVar
from cyclopts import App
from hushuffle.mechanisms.randomizers import RandomizedResponse

@dataclass(frozen=True, kw_only=True)
class Renamed(RandomizedResponse):
    table = replace(RandomizedResponse.table, kind="own-response")

own = App(name="own", help="Say hello.")

@own.default
def hello() -> int:
    print("hello")
    return 0
"""
ENTRIES = """
[hushuffle.mechanisms]
own = own_package
[hushuffle.commands]
own = own_package:own
"""
SURVEY = """
[population]
n = 50
k = 4
[randomizer]
kind = "own-response"
epsilon = 2.0
[shuffler]
kind = "uniform"
[targets]
delta = 1e-6
"""


def test_a_package_adds_a_mechanism_and_a_command(tmp_path: Path) -> None:
    (tmp_path / "own_package.py").write_text(MODULE)
    about = tmp_path / "own_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    (tmp_path / "town.toml").write_text(SURVEY)

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "hushuffle", *words]
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    assert "Anyone who sees" in run("assess", "town.toml")
    assert run("own") == "hello\n"
    assert "Say hello." in run("--help")
    assert '"own-response"' in run("schema")
