"""Tutorials are followed to the letter: their files are written, their commands run, what they print is compared."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.-]+)")?\n(.*?)^```', flags=re.DOTALL | re.MULTILINE)
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def steps(console: str) -> list[tuple[str, str]]:
    """Return each command of a console block with what is printed under it; no print-out means anything goes."""
    parts = re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]
    return [(command, expected) for command, _, expected in (part.partition("\n") for part in parts)]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with `hushuffle` and `python` on the path as after an installation."""
    programs, folder = tmp_path / "bin", tmp_path / "work"
    programs.mkdir()
    folder.mkdir()
    for name, command in (("hushuffle", f'"{sys.executable}" -m hushuffle'), ("python", f'"{sys.executable}"')):
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        (programs / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HUSHUFFLE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says(page: Path, shell: Path) -> None:
    commands = 0
    for language, title, content in BLOCK.findall(page.read_text(encoding="utf-8")):
        if title:
            (shell / title).write_text(content, encoding="utf-8")
        elif language == "console":
            for command, expected in steps(content):
                if command.startswith("pip install"):
                    continue
                done = subprocess.run(
                    ["/bin/sh", "-c", command],
                    cwd=shell,
                    check=False,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
                commands += 1
                assert done.returncode in ({0, 3} if "--strict" in command else {0}), f"$ {command}\n{done.stdout}"
                same = doctest.OutputChecker().check_output(expected, done.stdout, SAME)
                assert same or not expected, f"$ {command}\n{done.stdout}"
    assert commands >= 3, "a tutorial has commands to follow"
