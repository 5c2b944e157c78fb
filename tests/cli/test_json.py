"""What --json prints: one envelope for all commands, a version and the name of the content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit

SURVEY: Final = """
[population]
data = "people.csv"
column = "answer"
person = "none"
categories = ["no", "yes"]
[randomizer]
kind = "randomized-response"
epsilon = 2.0
[shuffler]
kind = "uniform"
[targets]
delta = 1e-4
epsilon = 1.0
[run]
repetitions = 0
"""
SUM: Final = """
sum = { epsilon = 1.0, delta = 1e-4 }
[population]
data = "people.csv"
column = "minutes"
person = "none"
kind = "number"
low = 0
high = 9
levels = 4
"""
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "assessment": ("assess", "survey.toml", "--out", "assessed"),
    "calibration": ("calibrate", "survey.toml"),
    "smallest batch": ("minimum-batch", "survey.toml"),
    "study": ("compare", "survey.toml", "survey.toml"),
    "frequencies": ("estimate", "collected"),
    "estimate of a sum": ("estimate", "total"),
    "inspection of true data": ("inspect", "people.csv"),
    "checks of figures": ("verify", "assessed/result.json"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("json")
    table = {"answer": ["no", "yes"] * 200, "minutes": list(range(10)) * 40}
    pl.DataFrame(table).write_csv(place / "people.csv")
    (place / "survey.toml").write_text(SURVEY, encoding="utf-8")
    (place / "sum.toml").write_text(SUM, encoding="utf-8")
    for file, out in (("survey.toml", "collected"), ("sum.toml", "total")):
        assert main(["collect", str(place / file), "--out", str(place / out)]) == Exit.DONE
    return place


@pytest.mark.parametrize("content", COMMANDS)
def test_every_document_has_the_same_envelope(
    content: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if content == "checks of figures":
        pytest.importorskip("flint")
    monkeypatch.chdir(folder)
    assert main([*COMMANDS[content], "--json"]) in (Exit.DONE, Exit.MISSED)
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert list(document)[:2] == ["schema_version", "content"]
    assert document["schema_version"] == 1
    assert document["content"] == content
