from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.collection import release as module
from hushuffle.collection.batch_state import BatchState
from hushuffle.errors import DataError
from key_memory import new_key

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
    new_key(tmp_path / "town.key")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".used")


def test_the_data_of_the_specification(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "specs/town.toml", "--out", "out"]) == Exit.DONE
    shown = capsys.readouterr()
    assert "300 people" in shown.out
    assert "central epsilon 0." in shown.out
    assert "Dropped 1 record without an answer (not recorded in the files)." in shown.out
    assert "Wrote out/reports.parquet" in shown.out
    assert shown.err == ""
    assert main(["collect", "specs/town.toml", "--out", "out"]) == Exit.FAILED
    assert "Reports are never overwritten" in capsys.readouterr().err


def test_rows_of_a_person_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "specs/town.toml", "--out", "out"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "Each row counts as one person: 300 rows, 300 people. If this is wrong, set population.person." in shown
    for person in ("none", "id"):
        text = SPECIFICATION.replace('data = "people.csv"', f'data = "people.csv", person = "{person}"')
        (folder / "specs" / f"{person}.toml").write_text(text, encoding="utf-8")
    assert main(["collect", "specs/none.toml", "--out", "none"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "Each row counts as one person: 300 rows, 300 people. Wrote" in shown.replace("Dropped 1 record", "Wrote")
    rows = [row % 50 for row in range(301)]
    pl.DataFrame({"id": rows, "answer": ["yes"] * 301}).write_csv(folder / "specs" / "people.csv")
    assert main(["collect", "specs/id.toml", "--out", "id"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "per person, for 50 people" in shown
    assert "Rows per person: 6.02 on average, 7 at most (not recorded in the files)." in shown
    assert "Left out 251 records" in shown


def test_batches_of_a_person_with_several_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SPECIFICATION.replace('data = "people.csv"', 'data = "*.csv", person = "id", reports_per_person = 2')
    (folder / "specs" / "town.toml").write_text(text, encoding="utf-8")
    (folder / "panel.toml").write_text("epsilon = 1.0\ndelta = 1e-6\n", encoding="utf-8")
    rows = pl.DataFrame({"id": [row % 100 for row in range(300)], "answer": ["yes"] * 300})
    rows.write_csv(folder / "specs" / "people.csv")
    options = ["collect", "specs/town.toml", "--batches", "--out", "out", "--min-batch", "100"]
    assert main(options) == Exit.DONE
    rows.reverse().write_csv(folder / "specs" / "two.csv")
    assert main(options) == Exit.DONE
    shown = capsys.readouterr()
    assert "hushuffle cannot check: 200 people were counted in 2 batches so far." in shown.err
    assert "per person, for 100 people" in shown.out
    assert pl.read_parquet("out/batch-0002/reports.parquet").height == 200
    few = [*options[:-1], "101"]
    rows.sort("id").write_csv(folder / "specs" / "few.csv")
    assert main(few) == Exit.DONE
    assert "No batch was released: fewer than 101 people" in capsys.readouterr().out


def test_a_budget_adds_up_batches_and_stops_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["collect", "specs/town.toml", "--batches", "--out", "out", "--budget", "panel.toml", "--input", "in"]
    (folder / "panel.toml").write_text("epsilon = 1.0\ndelta = 1e-6\n", encoding="utf-8")
    (folder / "in").mkdir()
    for day in range(1, 9):
        answers = ["yes", "no"] * (150 + day)
        pl.DataFrame({"answer": answers}).write_csv(folder / "in" / f"day-{day}.csv")
        before = (folder / "panel.toml").read_text(encoding="utf-8"), list(folder.glob("out/*"))
        ended = main(options)
        shown = capsys.readouterr()
        assert "cannot check" not in shown.err
        if ended != Exit.DONE:
            break
        assert f"Budget: {day} collection" in shown.out
    assert 2 < day < 8
    assert ended == Exit.FAILED
    assert "allows central epsilon 1 for one person" in shown.err
    assert before == ((folder / "panel.toml").read_text(encoding="utf-8"), list(folder.glob("out/*")))
    assert BatchState.load(folder / "out.state.json").last == day - 1, "the file waits"
    assert BatchState.load(folder / "out.state.json").claimed is None
    used_up = (folder / "panel.toml").read_text(encoding="utf-8").replace("epsilon = 1.0", "epsilon = 0.1", 1)
    (folder / "panel.toml").write_text(used_up, encoding="utf-8")
    assert main(options) == Exit.FAILED
    assert "is used up" in capsys.readouterr().err


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


def test_a_new_key(capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"id": range(20), "answer": ["yes"] * 20}).write_csv("few.csv")
    options = ["collect", "specs/town.toml", "--input", "few.csv", "--key-file", "new.key", "--id", "id"]
    assert main([*options, "--out", "out"]) == Exit.FAILED
    assert "new.key does not exist. To create a key, pass `--new-key`" in capsys.readouterr().err
    assert main([*options, "--new-key", "--out", "out"]) == Exit.DONE
    assert "With this key so far: 1 collection (rounds, columns), with central epsilon" in capsys.readouterr().out
    assert main([*options, "--new-key", "--round", "1", "--out", "again"]) == Exit.FAILED
    assert "new.key is not a new key" in capsys.readouterr().err
    assert main([*options, "--round", "1", "--out", "again"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "With this key so far: all 2 collections (rounds, columns), with central epsilon at most" in shown


def test_a_state_that_cannot_be_written_is_a_warning(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save = BatchState.save

    def full(self: BatchState, path: Path) -> None:
        if self.claimed is None and self.files:
            message = f"{path.name} cannot be written: No space left on device."
            raise DataError(message)
        save(self, path)

    monkeypatch.setattr(BatchState, "save", full)
    options = ["collect", "specs/town.toml", "--batches", "--out", "out"]
    assert main(options) == Exit.DONE
    shown = capsys.readouterr()
    assert "Batch 1, from 1 file." in shown.out
    assert shown.err == (
        "hushuffle: warning: each person must be in one batch only, which hushuffle cannot check: 300 rows, each "
        "counted as another person, were counted in 1 batch so far. If people may answer again, pass --budget, which "
        "adds up all batches, or --key-file, which rejects their new records.\n"
        "hushuffle: batch 1 is released; the next run will record it: out.state.json cannot be written: No space left "
        "on device.\n"
    )
    assert names(folder / "out") == ["batch-0001"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--id", "id"], "--id, --round and --new-key need --key-file"),
        (["--round", "1"], "--id, --round and --new-key need --key-file"),
        (["--key-file", "town.key"], "--key-file needs --id"),
        (["--key-file", "env:TOWN", "--id", "id", "--new-key"], "--key-file env:TOWN: collect reads keys from files."),
        (["--key-file", "town.key", "--id", "id", "--round", "-1"], "`round` must be"),
        (["--min-batch", "0"], "`min_batch` must be"),
        (["--late", "drop"], "--late and --interrupted need --batches"),
        (["--interrupted", "skip"], "--late and --interrupted need --batches"),
    ],
)
def test_wrong_options(options: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "specs/town.toml", "--out", "out", *options]) == Exit.USAGE
    assert message in capsys.readouterr().err
    assert not (folder / "out").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("where", ["central_of", "told"])
def test_an_end_in_the_middle(number: int, where: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of the figures, and of the writing."""

    def killed(*_: Any) -> Iterator[Any]:
        os.kill(os.getpid(), number)
        return iter(())

    monkeypatch.setattr(module, where, killed)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["collect", "specs/town.toml", "--out", "out"]) == Exit.INTERRUPTED
    assert names(folder) == ["specs", "town.key"]
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
    assert names(folder) == ["counts.json", "out", "shares.csv", "specs", "town.key"]


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
    assert "of 30 values are not shown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--confidence", "1"], "--confidence must be between 0 and 1"),
        (["--counts-only"], "--counts-only needs --out FILE.json"),
        (["--counts-only", "--out", "counts.json", "--chart", "a.svg"], "excludes options that print or draw"),
        (["--chart", "a.png"], "--chart must be a file of these kinds: .svg, .html, got a.png"),
        (["--out", "shares.xlsx"], "`out` must be a file of these kinds"),
    ],
)
def test_estimates_that_cannot_be(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", "out", *options]) == Exit.USAGE
    assert message in capsys.readouterr().err
    assert main(["estimate", "out"]) == Exit.FAILED


COLUMNS = """
population = { data = "people.csv" }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
[[columns]]
column = "answer"
categories = ["no", "yes"]
missing = "drop"
randomizer = { kind = "randomized-response", epsilon = 2 }
[[columns]]
name = "parity"
column = "id"
categories = { even = "< 30", odd = ">= 30" }
randomizer = { kind = "randomized-response", epsilon = 1 }
"""


def test_several_columns(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    few = pl.DataFrame({"id": range(61), "answer": [*["yes", "no", "no"] * 20, ""]})
    few.write_csv(folder / "specs" / "people.csv")
    (folder / "specs" / "columns.toml").write_text(COLUMNS, encoding="utf-8")
    assert main(["collect", "specs/columns.toml", "--out", "out"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert "answer: 60 people" in shown
    assert "parity: 61 people" in shown
    assert "numbers of people reveal how many answers are missing" in shown
    assert "All columns together: local epsilon 3.000; central epsilon 2." in shown
    assert shown.endswith("Wrote out/parity/manifest.json\nWrote out/manifest.json\n")
    (folder / "specs" / "columns.toml").write_text(COLUMNS.replace('"drop"', '"no"'), encoding="utf-8")
    assert main(["collect", "specs/columns.toml", "--out", "full"]) == Exit.DONE
    assert "reveal how many answers are missing" not in capsys.readouterr().out
    options = ["--out", "shares.csv", "--chart", "shares.html"]
    assert main(["estimate", "out", *options]) == Exit.DONE
    shown = capsys.readouterr().out
    assert shown.startswith("answer: 60 people, 0 dummies.")
    assert "\nparity: 61 people" in shown
    assert shown.endswith("\nWrote shares.csv\nWrote shares.html\n")
    assert pl.read_csv("shares.csv").select("column", "value").rows() == [
        ("answer", "no"),
        ("answer", "yes"),
        ("parity", "even"),
        ("parity", "odd"),
    ]
    assert "<svg" in Path("shares.html").read_text(encoding="utf-8")
    assert main(["estimate", "out", "--json", "--out", "shares.json"]) == Exit.DONE
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(Path("shares.json").read_text(encoding="utf-8"))
    assert document["columns"]["parity"]["people"] == 61
    assert main(["estimate", "out/parity", "--chart", "parity.svg"]) == Exit.DONE
    assert capsys.readouterr().out.startswith("61 people")
    assert Path("parity.svg").read_text(encoding="utf-8").startswith("<svg")
    assert main(["estimate", "out", "--counts-only", "--out", "counts.json"]) == Exit.USAGE
    assert "pass FOLDER/NAME, where NAME is one of answer, parity" in capsys.readouterr().err


def test_batches(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    options = ["--out", "out", "--batches", "--min-batch", "250", "--late", "drop"]
    assert main(["collect", "specs/town.toml", *options]) == Exit.DONE
    assert capsys.readouterr().out.startswith("Batch 1, from 1 file.\n300 people")
    assert main(["collect", "specs/town.toml", *options]) == Exit.DONE
    assert capsys.readouterr().out == "No batch was released: there are no new files.\n"
    for name in ("late.csv", "people2.csv"):
        pl.DataFrame({"id": range(40), "answer": ["yes"] * len(name) + ["no"] * (40 - len(name))}).write_csv(
            folder / "specs" / name
        )
    options += ["--input", "specs/"]
    (folder / "specs" / "other").mkdir()
    assert main(["collect", "specs/town.toml", *options]) == Exit.DONE
    assert capsys.readouterr().out == (
        "1 file arrived too late and will never be collected.\n"
        "No batch was released: fewer than 250 people in 1 file. The batch is pending.\n"
    )
    assert main(["estimate", "out"]) == Exit.DONE
    assert capsys.readouterr().out.startswith("300 people")


def test_damaged_files_are_set_aside(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "specs" / "people0.parquet").write_bytes(b"PAR1 and then nothing")
    options = ["--out", "out", "--batches", "--min-batch", "250", "--input", "specs/people0.parquet"]
    assert main(["collect", "specs/town.toml", *options]) == Exit.DONE
    seen = capsys.readouterr()
    assert seen.out == "No batch was released: there are no other new files.\n"
    message = "hushuffle: a file was left for the next run: specs/people0.parquet is not a readable Parquet file"
    assert seen.err.startswith(message)
    (people,) = (folder / "specs").glob("*.csv")
    assert main(["collect", "specs/town.toml", *options, "--input", str(people)]) == Exit.DONE
    seen = capsys.readouterr()
    assert seen.out.startswith("Batch 1, from 1 file.\n300 people")
    assert seen.err.startswith(message)
