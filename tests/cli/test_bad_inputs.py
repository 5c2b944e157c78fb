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


@pytest.mark.skipif(os.name != "posix" or not shutil.which("setpriv"), reason="needs setpriv")
@pytest.mark.parametrize("kind", [".csv", ".csv.gz", ".parquet", "latin", "reports", "specification", "inspect"])
def test_a_file_that_may_not_be_read_is_not_called_damaged(folder: Path, kind: str) -> None:
    file = "people.csv"
    command = ["assess", "survey.toml"]
    if kind in (".csv.gz", ".parquet"):
        frame, file = pl.read_csv("people.csv"), f"people{kind}"
        frame.write_parquet(file) if kind == ".parquet" else frame.write_csv(file, compression="gzip")
    text = SURVEY.replace("FILE", file)
    if kind == "latin":
        text = text.replace('column = "x"', 'column = "x", encoding = "latin-1"')
    (folder / "survey.toml").write_text(text, encoding="utf-8")
    if kind == "reports":
        assert main(["collect", "survey.toml", "--out", "made"]) == Exit.DONE
        file, command = "made/reports.parquet", ["estimate", "made"]
    elif kind == "specification":
        file = "survey.toml"
    elif kind == "inspect":
        command = ["inspect", "people.csv"]
    Path(file).chmod(0)
    ended = subprocess.run(
        [*UNPRIVILEGED, sys.executable, "-m", "hushuffle", *command], capture_output=True, text=True, check=False
    )
    if "setpriv:" in ended.stderr:
        pytest.skip("privileges cannot be dropped here")
    assert ended.returncode == (Exit.USAGE if kind == "specification" else Exit.FAILED)
    assert "Permission denied" in ended.stderr
    assert file in ended.stderr
    assert "damaged" not in ended.stderr


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
