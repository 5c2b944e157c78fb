"""The help of every verb: what it does in one imperative sentence, examples that can be run, options in groups."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit

ROOT: Final = Path(__file__).parents[2]
WIDTH: Final = 80
GROUPS: Final = {"attack": ("linkage",), "plan": ("analyse", "simulate", "run"),
                 "node": ("start", "keys", "codes", "certs")}  # fmt: skip
VERBS: Final = (
    *("assess", "attack", "audit", "calibrate", "choose", "collect", "compare", "estimate", "examples", "explore"),
    *("init", "inspect", "minimum-batch", "node", "plan", "reproduce", "schema", "verify"),
)
COMMANDS: Final = [*VERBS, *(f"{verb} {command}" for verb, commands in GROUPS.items() for command in commands)]
IMPERATIVES: Final = {
    *(
        "Analyse",
        "Ask",
        "Bound",
        "Check",
        "Compare",
        "Compute",
        "Create",
        "Describe",
        "Estimate",
        "Find",
        "Link",
        "List",
        "Print",
    ),
    *("Query", "Randomize", "Rank", "Recompute", "Run", "Show", "Simulate", "Test", "Write"),
}
FILE: Final = re.compile(r"\.(?:toml|csv|parquet|json|ipynb|html|svg|txt)$")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def helped(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*words.split(), "--help"]) == Exit.DONE
    return capsys.readouterr().out


def described(text: str) -> list[str]:
    """Return the lines of the description: after the usage, before the first panel."""
    return text.partition("\n\n")[2].partition("╭")[0].splitlines()


def examples(text: str) -> list[list[str]]:
    """Return the commands of the block of examples, in words."""
    lines = described(text)
    (start,) = [number for number, line in enumerate(lines) if re.fullmatch(r"Examples( \(.+\))?:", line)]
    block = "\n".join(lines[start + 1 :]).partition("\n\n")[0]
    return [shlex.split(line) for line in block.splitlines()]


def panels(text: str) -> dict[str, str]:
    """Return the text in each panel by its title, spaces joined."""
    rows, title = dict[str, list[str]](), ""
    for line in text.splitlines():
        if heading := re.fullmatch(r"╭─ (.+?) ─+╮", line):
            title = heading[1]
            rows[title] = []
        elif line.startswith("│"):
            rows[title].append(line.strip("│"))
    return {name: "\n".join(lines) for name, lines in rows.items()}


def test_every_verb_is_tested(capsys: pytest.CaptureFixture[str]) -> None:
    for words, names in (("", VERBS), *GROUPS.items()):
        listed = re.findall(r"^│ ([a-z][\w-]*)", helped(words, capsys), flags=re.MULTILINE)
        assert sorted(listed) == sorted(names)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("words", ["", *COMMANDS])
def test_help_fits_the_terminal(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = helped(words, capsys)
    assert max(map(len, text.splitlines())) <= WIDTH
    for line in described(text):  # written to fit: nothing is folded
        assert len(line) < WIDTH or not line.endswith(" ")


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("words", COMMANDS)
def test_help_begins_with_one_imperative_sentence(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, blank, *_ = described(helped(words, capsys))
    assert first.split()[0].rstrip(",") in IMPERATIVES
    assert first.endswith(".")
    assert ". " not in first
    assert not blank


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("words", COMMANDS)
def test_examples_name_files_that_exist(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands = examples(helped(words, capsys))
    assert len(commands) == 2
    assert any(command[1:][: len(words.split())] == words.split() for command in commands)
    for program, verb, *rest in commands:
        assert program == "hushuffle"
        assert verb in VERBS
        for word in rest:
            if FILE.search(word) and "://" not in word:
                written = word.startswith("hushuffle-out/")  # what a verb writes
                assert written or (word.startswith("examples/") and (ROOT / word).is_file()), word


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("words", COMMANDS)
def test_options_are_explained_with_their_defaults(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    every = panels(helped(words, capsys))
    options = [title for title in every if title not in ("Arguments", "Commands")]
    assert options[:1] in ([], ["Common options"])
    for title in options:
        for entry in re.split(r"\n(?=[ *]{0,4}--)", every[title]):
            name, _, about = entry.strip(" *").partition("  ")
            sentence = " ".join(about.split())
            assert len(sentence.split()) > 2, entry
            takes_value = " " in name
            assert not takes_value or "default" in sentence or "[required]" in sentence, entry
