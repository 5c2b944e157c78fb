"""Tutorials are followed to the letter: their files are written, their commands run, what they print is compared."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hushuffle.cli import main

ROOT = Path(__file__).parents[1]
GUIDES = [
    ROOT / "docs" / "how-to" / f"{name}.md" for name in ("plan-a-query", "reach-study")
]  # with every file they need
PAGES = [*sorted((ROOT / "docs" / "tutorials").glob("*.md")), *GUIDES]
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.-]+)")?\n(.*?)^```', flags=re.DOTALL | re.MULTILINE)
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def steps(console: str) -> list[tuple[str, str]]:
    """Return each command of a console block with what is printed under it; no print-out means anything goes."""
    parts = re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]
    return [(command, expected) for command, _, expected in (part.partition("\n") for part in parts)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.setenv("COLUMNS", "80")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def run(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit code and what a command prints; hushuffle's runs in this process, which saves its imports."""
    program, *arguments = shlex.split(command)
    if program == "hushuffle":
        code = main(arguments)
        printed = capsys.readouterr()
        return code, printed.out + printed.err
    words = [sys.executable if program == "python" else program, *arguments]
    if ">" in words:
        *words, _, file = words
        Path(file).write_bytes(subprocess.run(words, check=True, capture_output=True).stdout)
        return 0, ""
    done = subprocess.run(words, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


@pytest.mark.usefixtures("few_points")  # pages show no chart
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = 0
    for language, title, content in BLOCK.findall(page.read_text(encoding="utf-8")):
        if title:
            (folder / title).write_text(content, encoding="utf-8")
        elif language == "console":
            for command, expected in steps(content):
                if command.startswith("pip install"):
                    continue
                code, printed = run(command, capsys)
                commands += 1
                assert code in ({0, 3} if "--strict" in command else {0}), f"$ {command}\n{printed}"
                same = doctest.OutputChecker().check_output(expected, printed, SAME)
                assert same or not expected, f"$ {command}\n{printed}"
    assert commands >= 3, "a tutorial has commands to follow"
