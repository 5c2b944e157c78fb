from __future__ import annotations

import json
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.exits import Exit
from hushuffle.workflows import collect as module

SPECIFICATION = """
population = { data = "people.csv", column = "answer", categories = ["no", "yes"], missing = "drop" }
randomizer = { kind = "randomized-response", epsilon = 2 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "town.toml").write_text(SPECIFICATION, encoding="utf-8")
    answers = ["yes", "no", "no"] * 100 + [""]
    pl.DataFrame({"id": range(301), "answer": answers}).write_csv(tmp_path / "specs" / "people.csv")
    key = tmp_path / "town.key"
    key.write_text(secrets.token_hex(32), encoding="ascii")
    key.chmod(0o600)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_data_of_the_specification(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "specs/town.toml", "--out", "out"]) == Exit.DONE
    shown = capsys.readouterr()
    assert "300 people" in shown.out
    assert "central epsilon 0." in shown.out
    assert "1 records were missing and left out" in shown.out
    assert "Wrote out/reports.parquet" in shown.out
    assert shown.err == ""
    assert main(["collect", "specs/town.toml", "--out", "out"]) == Exit.FAILED
    assert "Reports are never overwritten" in capsys.readouterr().err


def test_inputs_and_a_key(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    pl.DataFrame({"id": range(500, 560), "answer": ["yes"] * 60}).write_csv("more.csv")
    options = ["--input", "specs/people.csv", "more.csv", "--key-file", "town.key", "--id", "id", "--round", "2"]
    assert main(["collect", "specs/town.toml", "--out", "out", *options]) == Exit.DONE
    assert "360 people" in capsys.readouterr().out
    assert main(["collect", "specs/town.toml", "--out", "again", *options]) == Exit.DONE
    assert "This batch was collected before" in capsys.readouterr().out
    first, again = (pl.read_parquet(f"{out}/reports.parquet")["report"].sort() for out in ("out", "again"))
    assert first.equals(again)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--id", "id"], "--id and --round go with --key-file"),
        (["--round", "1"], "--id and --round go with --key-file"),
        (["--key-file", "town.key"], "--key-file needs --id"),
        (["--key-file", "town.key", "--id", "id", "--round", "-1"], "`round` must be"),
        (["--min-batch", "0"], "`min_batch` must be"),
    ],
)
def test_wrong_options(options: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "specs/town.toml", "--out", "out", *options]) == Exit.USAGE
    assert message in capsys.readouterr().err
    assert not (folder / "out").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("where", ["_central", "_told"])
def test_an_end_in_the_middle(number: int, where: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of the figures, and of the writing."""

    def killed(*_: Any) -> Iterator[Any]:
        os.kill(os.getpid(), number)
        return iter(())

    monkeypatch.setattr(module, where, killed)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["collect", "specs/town.toml", "--out", "out"]) == Exit.INTERRUPTED
    assert sorted(path.name for path in folder.iterdir()) == ["specs", "town.key"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_estimates(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["collect", "specs/town.toml", "--out", "out"]) == Exit.DONE
    capsys.readouterr()
    assert main(["estimate", "out", "--out", "shares.csv"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert shown.startswith("300 people, 0 dummies.")
    assert "95% interval" in shown
    assert shown.endswith("Wrote shares.csv\n")
    assert pl.read_csv("shares.csv")["value"].to_list() == ["no", "yes"]
    assert main(["estimate", "out", "--json", "--confidence", "0.9"]) == Exit.DONE
    document = json.loads(capsys.readouterr().out)
    assert (document["people"], document["confidence"]) == (300, 0.9)
    assert main(["estimate", "out", "--counts-only", "--out", "counts.json"]) == Exit.DONE
    assert capsys.readouterr().out == "Wrote counts.json\n"
    assert main(["estimate", "counts.json", "--json", "--confidence", "0.9"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out) == document
    assert sorted(path.name for path in folder.iterdir()) == ["counts.json", "out", "shares.csv", "specs", "town.key"]


def test_many_values(capsys: pytest.CaptureFixture[str]) -> None:
    Path("many.toml").write_text(
        SPECIFICATION.replace(
            '{ data = "people.csv", column = "answer", categories = ["no", "yes"], missing = "drop" }',
            "{ n = 10, k = 30 }",
        ),
        encoding="utf-8",
    )
    pl.DataFrame({"value": [one % 30 for one in range(400)]}).write_parquet("many.parquet")
    options = ["--out", "out", "--input", "many.parquet", "--column", "value"]
    assert main(["collect", "many.toml", *options]) == Exit.DONE
    assert main(["estimate", "out"]) == Exit.DONE
    assert "10 more values are not shown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--confidence", "1"], "--confidence must be between 0 and 1"),
        (["--counts-only"], "--counts-only needs --out FILE.json"),
        (["--out", "shares.xlsx"], "`out` must be a file of these kinds"),
    ],
)
def test_estimates_that_cannot_be(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", "out", *options]) == Exit.USAGE
    assert message in capsys.readouterr().err
    assert main(["estimate", "out"]) == Exit.FAILED
