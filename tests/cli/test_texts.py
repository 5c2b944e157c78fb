"""What each verb prints, as one snapshot of its sentences. Numbers are left out; other tests hold the figures.

`python tests/cli/test_texts.py` writes the snapshots anew, after a sentence was changed on purpose.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import textwrap
from pathlib import Path
from typing import Final

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit

ROOT: Final = Path(__file__).parents[2]
TEXTS: Final = Path(__file__).with_name("texts")
SURVEY: Final = """title = "A survey"
[population]
data = "people.csv"
column = "answer"
person = "id"
categories = ["no", "yes"]
[randomizer]
kind = "randomized-response"
epsilon = 2.0
[shuffler]
kind = "uniform"
[targets]
delta = 1e-5
epsilon = 1.0
guessing = 0.9
standard_error = 0.1
[run]
seed = 1
"""
COMMANDS: Final = {
    "inspect": "inspect people.csv",
    "assess": "assess survey.toml --out report",
    "verify": "verify report/result.json",
    "calibrate": "calibrate survey.toml",
    "minimum-batch": "minimum-batch survey.toml",
    "compare": "compare survey.toml weak.toml",
    "choose": "choose survey.toml",
    "collect": "collect survey.toml --out reports",
    "estimate": "estimate reports",
    "audit": "audit survey.toml --out audit --trials 1000 --seed 1",
    "plan": f"plan analyse {ROOT / 'examples' / 'histogram.toml'} --out plan",
    "missed": "assess weak.toml --out missed --strict",
    "refused": "assess wrong.toml",
}
"""A command for each snapshot, run one after the other in one folder."""

ENDS: Final = {"missed": Exit.MISSED, "refused": Exit.USAGE}


def printed(folder: Path) -> dict[str, str]:
    """The words that each command prints, without numbers."""
    rows = "".join(f"{'yes' if place % 3 else 'no'},{place}\n" for place in range(1, 361))
    (folder / "people.csv").write_text(f"answer,id\n{rows}", encoding="utf-8")
    (folder / "survey.toml").write_text(SURVEY, encoding="utf-8")
    (folder / "weak.toml").write_text(SURVEY.replace("epsilon = 1.0", "epsilon = 0.1"), encoding="utf-8")
    (folder / "wrong.toml").write_text(
        SURVEY.replace('"uniform"', '"unifrom"').replace("[run]", "sigma = 3\n[run]"), encoding="utf-8"
    )
    found = {}
    for name, command in COMMANDS.items():
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            end = main(command.split())
        assert end == ENDS.get(name, Exit.DONE), (name, end, err.getvalue())
        found[name] = words(out.getvalue() + err.getvalue())
    return found


def words(text: str) -> str:
    """A text without numbers, lines and paths, wrapped anew: only its words are compared."""
    plain = re.sub(r"[─━═│]+", " ", text.replace(str(ROOT), ""))
    plain = re.sub(r"(?<![\w-])[-+]?\d[\d,.]*(?:e[-+]?\d+)?(?![\w-])", "#", plain)
    return "\n".join(textwrap.wrap(" ".join(plain.split()), 100, break_on_hyphens=False, break_long_words=False)) + "\n"


@pytest.fixture(scope="module")
def now(tmp_path_factory: pytest.TempPathFactory, few_points: pytest.MonkeyPatch) -> dict[str, str]:
    few_points.undo()
    folder = tmp_path_factory.mktemp("texts")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        return printed(folder)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_verb_prints_the_sentences_of_its_snapshot(name: str, now: dict[str, str]) -> None:
    then = (TEXTS / f"{name}.txt").read_text(encoding="utf-8")
    assert now[name].split() == then.split(), "if it is on purpose: python tests/cli/test_texts.py"


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    TEXTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        for verb, sentences in printed(Path(place)).items():
            (TEXTS / f"{verb}.txt").write_text(sentences, encoding="utf-8")
