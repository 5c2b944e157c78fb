"""The page about phones is followed word by word: files written, services started, phones run, the result read."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hushuffle.cli import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "run-for-phones.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.-]+)")?\n(.*?)^```', flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []
    yield running
    for one in running:
        one.terminate()
    codes = [one.wait(20) for one in running]
    assert codes == [0] * len(running)


def shell(command: str) -> str:
    """Run a command; one that waits for a file is tried again."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for _ in range(200):
        done = subprocess.run(
            ["/bin/sh", "-c", command], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        if done.returncode in (75, 1) and ("client" in command or "results" in command):
            time.sleep(0.2)  # a service that is starting, a result that is coming
            continue
        break
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_page_does_what_it_says(
    started: list[subprocess.Popen[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    page, _, _ = PAGE.read_text(encoding="utf-8").partition("## Ask several times")  # see test_phone_rounds.py
    for language, title, content in BLOCK.findall(page):
        if title:
            (tmp_path / title).write_text(content, encoding="utf-8")
            continue
        for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:] if language == "console" else ():
            command, _, expected = part.partition("\n")
            commands += 1
            if command.startswith("pip install") or "examples/" in command:
                continue  # the example runs in a test of its own
            if command.endswith(" &"):
                words = [sys.executable, "-m", *command.removesuffix(" &").split()]
                started.append(subprocess.Popen(words, stderr=subprocess.DEVNULL))
            elif command.startswith("hushuffle"):
                words = shell(f"echo {command}").split()[1:]  # so that $(date) is run
                assert main(words) == 0
            else:
                printed = shell(command)
                same = doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)
                assert same or not expected, f"$ {command}\n{printed}"
    assert (commands, len(started)) == (23, 7)
