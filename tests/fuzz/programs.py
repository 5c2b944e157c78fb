"""Command lines of the program, in one process: whatever is given, it ends with a code and says why."""

from __future__ import annotations

import io
import os
import random
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

from fuzz.fuzzing import SECRET, Input, Maker, changed_bytes, changed_text
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import DataError

_SURVEY: Final = """
population = { data = "people.csv", column = "answer", categories = ["a", "b", "c"] }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-2, epsilon = 1.0 }
run = { repetitions = 0 }
"""
_ODD: Final = (
    "",
    "nan",
    "inf",
    "-1",
    "0",
    "1e400",
    "é",
    "a,b",
    "a,a",
    ",",
    "--",
    "x" * 3000,
    "9" * 400,
    "missing.csv",
    ".",
)
_PIECES: Final = ("", ",", '"', "\n", "\r", "é", ";", SECRET, "9" * 30)
_LINES: Final = (
    ("audit", "--reports", "pairs.csv", "--epsilon", "1", "--out", "out"),
    ("audit", "--reports", "pairs.csv", "--epsilon", "1", "--values", "a,b", "--value", "value", "--report", "report"),
    ("inspect", "people.csv"),
    ("inspect", "people.csv", "--column", "answer", "--json"),
    ("calibrate", "survey.toml", "--json"),
    ("estimate", "reports", "--json"),
    ("estimate", "pairs.csv"),
    ("attack", "pairs.csv", "--json"),
    ("plan", "analyse", "survey.toml"),
    ("minimum-batch", "survey.toml"),
    ("schema",),
)


def command_lines(folder: Path) -> Maker:
    """Change, drop, double or add words of a command line, and the files that it names."""
    (folder / "survey.toml").write_text(_SURVEY, encoding="utf-8")
    people = "answer,x\n" + "".join(f"{'abc'[row % 3]},{row}\n" for row in range(30))
    pairs = "value,report\n" + "".join(f"{'ab'[row % 2]},{row % 3}\n" for row in range(60))

    def use(line: list[str]) -> None:
        said, home = io.StringIO(), Path.cwd()
        os.chdir(folder)
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(said):
                code = main(line)
        finally:
            os.chdir(home)
        words = said.getvalue()
        if "unexpected error" in words or code not in set(Exit):
            raise AssertionError(words[-600:])
        if code != Exit.DONE:
            raise DataError(words)

    def make(rng: random.Random) -> Input:
        for name, text in (("people.csv", people), ("pairs.csv", pairs)):
            changed = changed_text(text, rng, _PIECES, most=2).encode() if rng.random() < 0.5 else text.encode()
            (folder / name).write_bytes(changed_bytes(changed, rng, most=2) if rng.random() < 0.2 else changed)
        line = list(rng.choice(_LINES))
        for _ in range(rng.randint(0, 2)):
            place = rng.randrange(1, len(line) + 1)
            match rng.randrange(4):
                case 0 if place < len(line):
                    line[place] = rng.choice(_ODD)
                case 1 if place < len(line):
                    del line[place]
                case 2:
                    line[place:place] = [
                        rng.choice(["--delta", "--confidence", "--column", "--values", "--trials"]),
                        rng.choice(_ODD),
                    ]
                case _:
                    line.insert(place, rng.choice(_ODD))
        return Input(content=line, read=lambda: use(line))

    return make
