"""`hushuffle inspect`: what the owner of a table sees, and a draft that the other verbs take."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.specification import load

ROWS = 3000
TOWNS = ["Zürich", "zürich ", "Genève", "Bern"]


def table() -> pl.DataFrame:
    rows = range(ROWS)
    return pl.DataFrame(
        {
            "key": [f"k{row}" for row in rows],
            "user": [f"u{row % 193}" for row in rows],
            "town": [None if row % 50 == 0 else TOWNS[row % 4] for row in rows],
            "age": [f"{(row * 7) % 90}" for row in rows],
            "day": [f"{2020 + row % 4}-0{1 + row % 9}-11" for row in rows],
            "note": ["rare" if row == 7 else "" for row in rows],
        }
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    content = table().write_csv(separator=";").encode("windows-1252")
    (tmp_path / "people.csv").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["inspect", *arguments, "--json"]) == Exit.DONE
    shown = capsys.readouterr()
    assert "true data" in shown.err
    found: dict[str, object] = json.loads(shown.out)
    return found


def test_the_owner_sees_what_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "people.csv"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert shown.startswith("These are true data, for their owner alone")
    flat = " ".join(shown.split())
    assert "people.csv: 3,000 records, 6 columns shown. It seems to be windows-1252, with semicolons between" in flat
    assert "user: values repeat, 15.5 records each. If they say whose a record is, some people have several" in flat
    assert "key: another value in every record" in flat
    assert "town: 1 values differ from others by spaces or capital letters alone: trim and casefold." in flat
    assert 'encoding = "windows-1252"' in shown
    assert not list(folder.glob("*.toml"))


@pytest.mark.parametrize("column", ["town", "age", "day"])
@pytest.mark.parametrize("verb", ["assess", "collect"])
def test_the_draft_is_taken_as_it_is(folder: Path, column: str, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "drafts").mkdir()
    assert main(["inspect", "people.csv", "--column", column, "--out", "drafts/survey.toml"]) == Exit.DONE
    assert "Wrote drafts/survey.toml" in capsys.readouterr().out
    population = load("drafts/survey.toml").population
    people = population.read(folder / "drafts")
    assert people.n == ROWS
    if verb == "collect":
        assert main(["collect", "drafts/survey.toml", "--out", "made"]) == Exit.DONE
    assert "taken from the data" in Path("drafts/survey.toml").read_text(encoding="utf-8")


def test_labels_that_few_records_have_are_not_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for column in ("note", "user"):
        found = document(capsys, "people.csv", "--column", column, "--out", "note.toml")
        assert found["draft"] is None
        assert not (folder / "note.toml").exists()
    frame = pl.DataFrame({"answer": ["rare"] * 19 + ["often"] * 2000})
    frame.write_csv("answers.csv")
    document(capsys, "answers.csv", "--out", "answers.toml")
    text = (folder / "answers.toml").read_text(encoding="utf-8")
    assert "rare" not in text
    assert "often" in text
    assert "in the category 'other': 19 records" in text


@pytest.mark.usefixtures("folder")
def test_what_a_program_reads(capsys: pytest.CaptureFixture[str]) -> None:
    table().write_parquet("people.parquet")
    by_name = {}
    for file in ("people.csv", "people.parquet"):
        found = document(capsys, file)
        assert found["records"] == ROWS
        by_name[file] = {column["name"]: column for column in found["columns"]}  # type: ignore[attr-defined]
    csv, parquet = by_name.values()
    for name in table().columns:
        for key in ("kind", "missing", "distinct", "distinct_is_exact", "values", "may_name_people"):
            assert csv[name][key] == parquet[name][key], (name, key)
    kinds = {name: column["kind"] for name, column in csv.items()}
    assert kinds == {
        "key": "text",
        "user": "text",
        "town": "text",
        "age": "whole numbers",
        "day": "dates",
        "note": "text",
    }
    assert csv["town"]["missing"] == 60
    assert csv["town"]["values"][0] == {"value": "Bern", "records": 750}
    assert csv["key"]["values"] == []
    assert csv["user"]["may_name_people"] is True
    assert csv["town"]["may_name_people"] is False


def test_a_draft_never_overwrites(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.toml").write_text("mine", encoding="utf-8")
    assert main(["inspect", "people.csv", "--out", "mine.toml"]) == Exit.USAGE
    assert "mine.toml is there already. A draft never overwrites" in capsys.readouterr().err
    assert (folder / "mine.toml").read_text(encoding="utf-8") == "mine"


def test_a_column_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "people.csv", "--column", "city"]) == Exit.FAILED
    assert "has no column 'city'" in capsys.readouterr().err
    assert main(["inspect", "nobody.csv"]) == Exit.FAILED
    assert "nobody.csv does not exist" in capsys.readouterr().err
    assert folder.exists()


def test_nothing_to_draft(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"key": ["a", "b"], "list": [[1], [2]], "none": [None, None]}).write_parquet(folder / "x.parquet")
    assert main(["inspect", "x.parquet"]) == Exit.DONE
    assert "No specification is drafted" in capsys.readouterr().out
    assert main(["inspect", "x.parquet", "--column", "none"]) == Exit.DONE
    assert "No specification is drafted" in capsys.readouterr().out


def test_bytes_that_are_no_table_are_one_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place, content in enumerate((b'a"\r\x00b\r\n\xff\xfe,;"', b"\x00" * 50, b'"' + b"\r" * 20 + b"x")):
        file = tmp_path / f"{place}.csv"
        file.write_bytes(content)
        main(["inspect", str(file)])
        assert "unexpected error" not in capsys.readouterr().err


def test_the_drafted_column_is_not_simply_the_one_with_the_fewest_values(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = range(ROWS)
    pl.DataFrame(
        {
            "exported": [True for _ in rows],
            "active": [row % 2 == 0 for row in rows],
            "version": ["old" if row == 1 else "new" for row in rows],
            "opinion": [("good", "fair", "bad")[row % 3] for row in rows],
            "country": [f"country {row % 40}" for row in rows],
        }
    ).write_csv(folder / "flags.csv")
    assert document(capsys, "flags.csv")["drafted_for"] == "opinion"


@pytest.mark.usefixtures("folder")
def test_a_column_that_repeats_people_is_drafted_as_a_comment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "people.csv", "--out", "survey.toml"]) == Exit.DONE
    written = Path("survey.toml").read_text(encoding="utf-8")
    lines = written.splitlines()
    place = lines.index('# person = "user"')
    assert lines[place + 1] == "# reports_per_person = 1"
    why = " ".join(line.removeprefix("# ") for line in lines[place - 2 : place])
    assert why.startswith(
        "Values of this column repeat, 15.5 records each. If it says whose a record is, one row is not"
    )
    assert load("survey.toml").population.read(Path()).n == ROWS
    taken = written.replace("# person", "person").replace("# reports_per_person", "reports_per_person")
    Path("taken.toml").write_text(taken, encoding="utf-8")
    people = load("taken.toml").population.read(Path())
    assert people.n == 193, "one report of each"
    capsys.readouterr()
    pl.DataFrame({"answer": ["yes", "no"] * 100}).write_csv("alone.csv")
    draft = document(capsys, "alone.csv")["draft"]
    assert "# person" not in str(draft)
