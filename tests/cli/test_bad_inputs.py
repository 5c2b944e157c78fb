"""What people give by mistake: each ends with one sentence that says the true cause and what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit

SURVEY = """
population = { data = "FILE", column = "x", categories = ["a", "b"] }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
run = { repetitions = 0 }
"""
ROOT = Path(__file__).parents[2]
_DROPPED = "-dac_override,-dac_read_search"
UNPRIVILEGED = ["setpriv", f"--bounding-set={_DROPPED}", f"--inh-caps={_DROPPED}"]
"""What makes root subject to permissions, as anybody else is."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text("x\na\nb\n", encoding="utf-8")
    (tmp_path / "survey.toml").write_text(SURVEY.replace("FILE", "people.csv"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: Exit = Exit.FAILED) -> str:
    capsys.readouterr()
    assert main(arguments) == code
    return capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_survey_is_no_plan_and_a_plan_is_no_survey(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("analyse", "simulate"):
        shown = refused(capsys, "plan", verb, "survey.toml", code=Exit.USAGE)
        assert "randomizer: must be left out here, got a file for a collection. A file with [randomizer]" in shown
        assert "1 problem" in shown
    plan = str(ROOT / "examples" / "aggregate.toml")
    for arguments in (["assess"], ["calibrate"], ["collect", "--out", "new"]):
        shown = refused(capsys, *arguments, plan, code=Exit.USAGE)
        assert (
            "must be left out here, got the plan of a query. A file with a plan is for hushuffle plan and audit."
            in shown
        )


@pytest.mark.usefixtures("folder")
def test_relative_paths_are_explained_where_there_is_a_specification_elsewhere(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = refused(capsys, "attack", "linkage", "nobody.csv", "--user", "u", "--item", "i")
    assert shown == "hushuffle: nobody.csv does not exist.\n"
    assert refused(capsys, "inspect", "nobody.csv") == "hushuffle: nobody.csv does not exist.\n"
    Path("away").mkdir()
    Path("away/survey.toml").write_text(SURVEY.replace("FILE", "people.csv"), encoding="utf-8")
    shown = refused(capsys, "assess", "away/survey.toml")
    assert shown == "hushuffle: people.csv does not exist. Relative paths start at the folder of the specification.\n"


@pytest.mark.usefixtures("folder")
def test_a_kind_of_file_that_is_not_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.xlsx").write_bytes(b"PK")
    Path("survey.toml").write_text(SURVEY.replace("FILE", "people.xlsx"), encoding="utf-8")
    shown = refused(capsys, "assess", "survey.toml")
    assert shown == "hushuffle: people.xlsx: unsupported format (use .csv, .csv.gz, .tsv, .tsv.gz, .parquet).\n"


@pytest.mark.usefixtures("folder")
def test_semicolons_and_other_encodings_name_the_key_that_helps(capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.csv").write_bytes(b"id;x\n1;a\n")
    assert 'In a specification, set separator = ";"' in refused(capsys, "assess", "survey.toml")
    Path("people.csv").write_bytes(b"x\na\n\xe9\n")
    shown = refused(capsys, "attack", "linkage", "people.csv", "--user", "x", "--item", "x")
    assert shown.startswith("hushuffle: people.csv is not UTF-8 text. Save it as UTF-8, for example: iconv")
    shown = refused(capsys, "assess", "survey.toml")
    assert 'people.csv is not UTF-8 text. Set the encoding in the specification, for example encoding = "' in shown


READ_ALL = """
import contextlib, io, json, sys
from hushuffle.cli import main
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = main(command)
    print(json.dumps([code, said.getvalue()]))
"""


@pytest.mark.skipif(os.name != "posix" or not shutil.which("setpriv"), reason="needs setpriv")
def test_a_file_that_may_not_be_read_is_not_called_damaged(folder: Path) -> None:
    assert main(["collect", "survey.toml", "--out", "made"]) == Exit.DONE
    people = pl.read_csv("people.csv")
    people.write_parquet("people.parquet")
    people.write_csv("people.csv.gz", compression="gzip")
    hidden = ["people.csv", "people.csv.gz", "people.parquet", "made/reports.parquet", "hidden.toml"]
    commands = [["inspect", "people.csv"], ["estimate", "made"], ["assess", "hidden.toml"]]
    for name, file, more in (("plain", *hidden[:1], ""), ("packed", *hidden[1:2], ""), ("table", *hidden[2:3], ""),
                             ("latin", *hidden[:1], ', encoding = "latin-1"')):  # fmt: skip
        text = SURVEY.replace("FILE", file).replace('column = "x"', f'column = "x"{more}')
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        commands.append(["assess", f"{name}.toml"])
    Path("hidden.toml").write_text("", encoding="utf-8")
    for file in hidden:
        Path(file).chmod(0)
    words = [*UNPRIVILEGED, sys.executable, "-c", READ_ALL, json.dumps(commands)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if "setpriv:" in ended.stderr:
        pytest.skip("privileges cannot be dropped here")
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [code for code, _ in found] == [Exit.FAILED, Exit.FAILED, Exit.USAGE, *[Exit.FAILED] * 4], ended
    files = ["people.csv", "made/reports.parquet", "hidden.toml", *hidden[:3], "people.csv"]
    for (_, said), file in zip(found, files, strict=True):
        assert "Permission denied" in said
        assert file in said
        assert "damaged" not in said


UNSEEN = "\x1b[31m\x9b31m\u200e\u200f\u202e\u2066\u2028\u2029\x07"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_that_is_printed_moves_or_reorders_what_a_terminal_shows(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"in{UNSEEN}.csv"
    Path(name).write_text("wrong\nx\n", encoding="utf-8")
    escaped = "".join(f"\\u{ord(character):04x}" for character in name)
    Path("odd.toml").write_text(SURVEY.replace("FILE", escaped), encoding="utf-8")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["inspect", name, "--json"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert json.loads(shown)["source"] == name, "what is escaped means the same in JSON"
    said = refused(capsys, "assess", "odd.toml", "--out", "report")
    assert "\\u001b[31m\\u009b31m\\u200e\\u200f\\u202e\\u2066\\u2028\\u2029\\u0007" in said
    assert main(["inspect", name, "--column", "wrong", "--out", f"draft{UNSEEN}.toml"]) == Exit.DONE
    for text in (shown, said.rpartition("hushuffle: ")[2], capsys.readouterr().out):
        assert not set(text) & set(UNSEEN.replace("31m", "").replace("[", ""))
