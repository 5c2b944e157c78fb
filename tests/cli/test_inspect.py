"""`hushuffle inspect`: what the owner of a table sees, and a draft that the other verbs take."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.specification import load, load_collection

pytestmark = pytest.mark.usefixtures("no_charts")
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
    assert shown.startswith("This output shows true data. Only the data's owner")
    flat = " ".join(shown.split())
    assert "people.csv: 3,000 records, 6 columns shown. It seems to be windows-1252, with semicolons between" in flat
    assert (
        "user: 193 of 193 values occur more than once, 15.5 rows each on average. If the column "
        "identifies the person of each row, these 3,000 rows belong to 193 people."
    ) in flat
    assert "key: every record has a different value" in flat
    assert "town: 1 values differ from others by spaces or capital letters alone: trim and casefold." in flat
    assert 'encoding = "windows-1252"' in shown
    assert not list(folder.glob("*.toml"))


GIVEN = {"low": "0", "high": "120", "levels": "11", "epsilon": "3.0", "reports_per_person": "2"}


def answer(file: Path, person: str | None = None) -> list[str]:
    """Answer every question of a draft; return its keys."""
    text = file.read_text(encoding="utf-8")
    answers = GIVEN | ({} if person is None else {"person": f'"{person}"'})
    keys = re.findall(r'^(\w+) = "\?"$', text, flags=re.MULTILINE)
    assert keys.count("person") == (person is not None)
    new = re.sub(r'^(\w+) = "\?"$', lambda match: f"{match[1]} = {answers[match[1]]}", text, flags=re.MULTILINE)
    file.write_text(new, encoding="utf-8")
    return keys


@pytest.mark.parametrize("column", ["town", "age", "day"])
@pytest.mark.parametrize("verb", ["assess", "collect"])
def test_the_draft_is_taken_once_it_says_whose_a_row_is(
    folder: Path, column: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "drafts").mkdir()
    assert main(["inspect", "people.csv", "--column", column, "--out", "drafts/survey.toml"]) == Exit.DONE
    assert "Wrote drafts/survey.toml" in capsys.readouterr().out
    assert main([verb, "drafts/survey.toml", "--out", "made"]) == Exit.USAGE
    message = " ".join(capsys.readouterr().err.split())
    assert (
        'population.person: must be the column that identifies the person of each row, or "none", got "?".' in message
    )
    answer(folder / "drafts/survey.toml", "none")
    population = load("drafts/survey.toml").population
    people = population.read(folder / "drafts")
    assert people.n == ROWS
    if verb == "collect":
        assert main(["collect", "drafts/survey.toml", "--out", "made"]) == Exit.DONE
    text = Path("drafts/survey.toml").read_text(encoding="utf-8")
    assert "taken from the data" in text


def questions(message: str) -> list[str]:
    """Return the keys that an error names."""
    return re.findall(r"^  ([\w.\[\]]+): ", message, flags=re.MULTILINE)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("missing", [True, False])
def test_bounds_of_numbers_are_questions(missing: bool, capsys: pytest.CaptureFixture[str]) -> None:
    minutes = [None if missing and row == 3 else 0.25 * (row % 401) + 7 for row in range(ROWS)]
    pl.DataFrame({"minutes": minutes}).write_csv("minutes.csv")
    assert main(["inspect", "minutes.csv", "--column", "minutes", "--out", "minutes.toml"]) == Exit.DONE
    text = Path("minutes.toml").read_text(encoding="utf-8")
    assert not {"7.0", "107.0", "100.0", "32.0"} & set(re.findall(r"[\d.]+\d", text)), "nothing is taken from the data"
    assert "bounds taken from the data reveal the extreme answers" in text
    capsys.readouterr()
    for verb in ("assess", "calibrate"):
        assert main([verb, "minutes.toml"]) == Exit.USAGE
        keys = ["low", "high", "levels", "person"]
        assert questions(capsys.readouterr().err) == [*(f"population.{key}" for key in keys), "targets.epsilon"]
    assert answer(Path("minutes.toml"), "none") == ["person", "low", "high", "levels", "epsilon"]
    assert main(["calibrate", "minutes.toml", "--strict"]) == Exit.DONE
    assert main(["assess", "minutes.toml", "--out", "report"]) == Exit.DONE
    assert "Standard error of the mean" in " ".join(capsys.readouterr().out.split())
    assert load("minutes.toml").population.read(Path()).n == ROWS - missing


@pytest.mark.usefixtures("folder")
def test_several_columns_are_one_draft(capsys: pytest.CaptureFixture[str]) -> None:
    frame = table().rename({"town": "Town / Stadt"}).with_columns(Town_Stadt=pl.col("age").cast(pl.Int64) % 3)
    frame = frame.rename({"Town_Stadt": "town-stadt"})
    frame.write_csv("people.csv")
    names = ("Town / Stadt", "age", "town-stadt", "day")
    assert main(["inspect", "people.csv", *(f"--column={name}" for name in names), "--out", "all.toml"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "4 columns shown" in shown
    assert "To choose another" not in shown
    text = Path("all.toml").read_text(encoding="utf-8")
    assert text.count("[columns.randomizer]") == 4
    assert text.count("were taken from the data") == 3
    assert "# Values of user repeat: 15.5 rows per value, 193 values." in text
    assert main(["assess", "all.toml"]) == Exit.USAGE
    keys = ["population.person", "columns[1].low", "columns[1].high", "columns[1].levels", "targets.epsilon"]
    assert sorted(set(questions(capsys.readouterr().err))) == sorted(keys)
    answer(Path("all.toml"), "none")
    collection = load_collection("all.toml")
    assert list(collection.columns) == ["Town-Stadt", "age", "town-stadt-3", "day"]
    for arguments in (["calibrate"], ["assess", "--out", "report"], ["collect", "--out", "collected"]):
        assert main([arguments[0], "all.toml", *arguments[1:]]) == Exit.DONE, arguments
    assert main(["inspect", "people.csv", "--column", "day", "--column", "day"]) == Exit.USAGE
    assert "names a column twice" in capsys.readouterr().err
    found = document(capsys, "people.csv", "--column", "day", "--column", "user")
    assert (found["draft"], found["drafted_for"]) == (None, ["day", "user"]), "no id is listed"


@pytest.mark.usefixtures("folder")
def test_rows_of_a_given_person_are_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    draft = Path("visits.toml")
    arguments = ["people.csv", "--column", "town", "--person", "user"]
    assert main(["inspect", *arguments, "--out", "visits.toml"]) == Exit.DONE
    lines = draft.read_text(encoding="utf-8").splitlines()
    place = lines.index('reports_per_person = "?"')
    assert lines[place - 3] == 'person = "user"'
    assert lines[place - 1].startswith("# In this table a person has up to 16 rows. This is true data: delete this")
    capsys.readouterr()
    assert main(["assess", "visits.toml"]) == Exit.USAGE
    assert questions(capsys.readouterr().err) == ["population.reports_per_person", "targets.epsilon"]
    assert answer(draft) == ["reports_per_person", "epsilon"]
    people = load("visits.toml").population.read(Path())
    assert (people.n, people.population.least_people) == (2 * 193, 193)
    for verb in (["calibrate", "visits.toml"], ["assess", "visits.toml", "--out", "report"]):
        assert main(verb) == Exit.DONE
    assert main(["inspect", *arguments, "--column", "day"]) == Exit.USAGE
    assert "Several columns need one row per person" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_person_of_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "people.csv", "--column", "town", "--person", "key", "--out", "town.toml")
    assert 'person = "key"\ndata' in str(found["draft"])
    assert answer(Path("town.toml")) == []
    assert load("town.toml").population.read(Path()).n == ROWS
    found = document(capsys, "people.csv", "--column", "town", "--column", "day", "--person", "key")
    assert '# Every row has another id.\nperson = "none"\n' in str(found["draft"])
    assert document(capsys, "people.csv", "--person", "town")["drafted_for"] == "day"
    for person, message in (("town", "--person names a column of --column"), ("?", "must be a column, or none")):
        assert main(["inspect", "people.csv", "--column", "town", "--person", person]) == Exit.USAGE
        assert message in capsys.readouterr().err
    assert main(["inspect", "people.csv", "--person", "nobody"]) == Exit.USAGE
    assert "the table has no column 'nobody'. It has 'key', 'user'" in " ".join(capsys.readouterr().err.split())
    assert main(["inspect", "people.csv", "--column", "town", "--person", "nobody"]) == Exit.FAILED


@pytest.mark.usefixtures("folder")
def test_two_spellings_of_an_id_are_one_person(capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"id": ["a1", "A1 ", "b", "c"], "x": ["1", "2"] * 2, "y": ["1", "2"] * 2}).write_csv("ids.csv")
    assert 'reports_per_person = "?"' in str(document(capsys, "ids.csv", "--column", "x", "--person", "id")["draft"])
    assert main(["inspect", "ids.csv", "--column", "x", "--column", "y", "--person", "id"]) == Exit.USAGE


@pytest.mark.usefixtures("folder")
def test_rows_are_people_only_if_the_owner_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "people.csv", "--column", "town", "--person", "none", "--out", "town.toml"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "user: values repeat, but with --person none each row counts as another person." in shown
    assert "age: " not in shown, "ages repeat, too"
    text = Path("town.toml").read_text(encoding="utf-8")
    repeat = "Values of user repeat: 15.5 rows per value, 193 values."
    assert f'# Each row counts as another person. {repeat}\nperson = "none"\n' in text
    assert load("town.toml").population.read(Path()).n == ROWS


@pytest.mark.parametrize("person", [[], ["--person", "none"]])
@pytest.mark.usefixtures("folder")
def test_sizes_of_towns_are_no_ids(person: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """In a survey of 944 people the population of their towns was taken for an id: 99 values, 228 of them 0."""
    pytest.importorskip("statsmodels")
    found = document(capsys, "statsmodels:anes96", "--column", "vote", *person)
    assert 'popul"' not in str(found["draft"])
    assert [column["name"] for column in found["columns"]] == ["vote"]  # type: ignore[attr-defined]
    sizes = [0] * 228 + [(row * row) % 7300 for row in range(716)]
    pl.DataFrame({"popul": sizes, "vote": [0, 1] * 472}).write_csv("towns.csv")
    assert 'popul"' not in str(document(capsys, "towns.csv", "--column", "vote", *person)["draft"])


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
    assert "mine.toml exists and is not overwritten" in capsys.readouterr().err
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
@pytest.mark.parametrize("arguments", [[], ["--column", "town"]])
def test_a_draft_asks_whose_a_row_is(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "people.csv", *arguments, "--out", "survey.toml"]) == Exit.DONE
    assert "these 3,000 rows belong to 193 people" in " ".join(capsys.readouterr().out.split())
    lines = Path("survey.toml").read_text(encoding="utf-8").splitlines()
    place = lines.index('person = "?"')
    assert lines[place - 4].startswith("# Which column identifies the person of a row?")
    assert lines[place - 3 : place] == [
        '# person = "user"  # 15.5 rows per value, 193 values',
        '# person = "age"  # 33.3 rows per value, 90 values',
        "# With a column, also set the largest number of rows per person: reports_per_person = 1.",
    ]
    answer(Path("survey.toml"), "user")
    assert load("survey.toml").population.read(Path()).n == 193, "one report of each"
    assert main(["inspect", "people.csv", "--column", "town", "--json"]) == Exit.DONE
    assert [column["name"] for column in json.loads(capsys.readouterr().out)["columns"]] == ["user", "town", "age"]
    pl.DataFrame({"answer": ["yes", "no"] * 100}).write_csv("alone.csv")
    draft = str(document(capsys, "alone.csv")["draft"])
    assert draft.count("person = ") == 1
    assert 'person = "?"' in draft


def test_few_people_with_many_rows_are_flagged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """193 people with 232 rows each were taken for 44,809."""
    rows = range(44_809)
    pl.DataFrame(
        {
            "label": [row % 193 for row in rows],
            "poi": [(row * 7) % 2_000 for row in rows],
            "weather": [("sun", "rain", "snow")[row % 3] for row in rows],
        }
    ).write_parquet(folder / "checkins.parquet")
    found = document(capsys, "checkins.parquet", "--out", "weather.toml")
    assert found["drafted_for"] == "weather"
    draft = str(found["draft"])
    assert '# person = "label"  # 232.2 rows per value, 193 values' in draft
    assert '# person = "poi"  # 22.4 rows per value, 2,000 values' in draft
    assert main(["assess", "weather.toml", "--out", "report"]) == Exit.USAGE


@pytest.mark.skipif("HUSHUFFLE_DATA" not in os.environ, reason="HUSHUFFLE_DATA does not name a folder of data sets")
def test_people_of_a_public_table_of_check_ins(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pl.read_parquet(Path(os.environ["HUSHUFFLE_DATA"], "foursquare_nyc", "checkins.parquet"))
    few = table.filter(pl.col("user") < 194).rename({"user": "label"}).with_columns(late=pl.col("minute") % 1440 > 1080)
    few.write_parquet(folder / "checkins.parquet")
    people = few["label"].n_unique()
    draft = str(document(capsys, "checkins.parquet", "--out", "late.toml")["draft"])
    assert f'# person = "label"  # {few.height / people:.1f} rows per value, {people} values' in draft
    answer(folder / "late.toml", "label")
    assert load(str(folder / "late.toml")).population.read(folder).n == people


def test_ids_that_occur_twice_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [f"P{row:05}" for row in range(12_001)]
    ids += ids[:260] + [one.lower() for one in ids[400:500]]
    pl.DataFrame({"Patient-Nr": ids, "answer": ["no", "yes"] * 6180 + ["no"]}).write_csv(folder / "patients.csv")
    assert main(["inspect", "patients.csv"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "12,101 1.02" in shown
    assert (
        "Patient-Nr: 260 of 12,101 values occur more than once, 1.02 rows each on average. If the column identifies "
        "the person of each row, these 12,361 rows belong to 12,101 people. 100 values differ from others only by "
        "spaces, capital letters or how "
        "a number is written: as ids they are rejected, because they may identify the same people."
    ) in shown
    assert '# person = "Patient-Nr"' in shown
    pl.DataFrame({"id": [*map(str, range(5000)), "7"]}).write_csv(folder / "one.csv")
    assert main(["inspect", "one.csv"]) == Exit.DONE
    assert "a little over 1" in " ".join(capsys.readouterr().out.split())


def test_lists_are_not_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pl.DataFrame({"features": [[1, 2], None, [3]], "answer": ["no", "yes", "no"]})
    frame.write_parquet(folder / "lists.parquet")
    column = document(capsys, "lists.parquet")["columns"][0]  # type: ignore[index]
    assert (column["kind"], column["missing"], column["values"]) == ("other", 1, [])
    assert main(["inspect", "lists.parquet"]) == Exit.DONE
    assert "List, not read" in capsys.readouterr().out
    assert main(["inspect", "lists.parquet", "--column", "features"]) == Exit.DONE
    assert "No specification is drafted" in capsys.readouterr().out


def test_what_looks_wrong_is_pointed_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {
        "never": 900,
        "wöchentlich": 800,
        "daily": 700,
        "wöchendlich": 40,
        "NA": 68,
        "  ": 61,
        "k.A.": 25,
        "99": 65,
    }
    answers |= {"-": 5, "dialy": 4}
    given = [answer for answer, count in answers.items() for _ in range(count)]
    pl.DataFrame({"id": range(len(given)), "answer": given}).write_csv(folder / "patients.csv")
    assert main(["inspect", "patients.csv", "--column", "answer", "--out", "answers.toml"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "answer: these values look like missing answers: 'NA' (68), '99' (65), '" in shown
    assert "(61), 'k.A.' (25), '-' (5). Only empty fields count as missing." in shown
    assert "typing errors: 'wöchendlich' (40) of 'wöchentlich', 'dialy' (4) of 'daily'." in shown
    draft = (folder / "answers.toml").read_text(encoding="utf-8")
    assert "# These look like missing answers: 'NA' (68), '99' (65), 'k.A.' (25). If they are, make" in draft
    assert "# 'wöchendlich' (40) looks like a typing error of 'wöchentlich'." in draft
    assert "dialy" not in draft, "few records have it"
    answer(folder / "answers.toml", "none")
    assert load("answers.toml").population.read(folder).n == len(given)


def test_a_table_without_names_is_pointed_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bare.csv").write_text("P1,Bern,28\n" + "P2,Bern,30\nP3,Genf,28\n" * 50, encoding="utf-8")
    assert main(["inspect", "bare.csv"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "The line of column names may be missing: 'Bern', '28' look like a value." in shown
    assert main(["inspect", "people.csv"]) == Exit.DONE
    assert "line of names" not in capsys.readouterr().out


def test_the_column_of_the_draft_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("town,answer\n" + "Bern,yes\nBasel,no\nChur,yes\n" * 9)
    hint = "The draft is for column 'town'. To choose another, pass --column NAME."
    assert main(["inspect", str(tmp_path / "t.csv")]) == Exit.DONE
    assert hint in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "t.csv"), "--out", str(tmp_path / "t.toml")]) == Exit.DONE
    assert hint in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "t.csv"), "--column", "answer"]) == Exit.DONE
    assert "The draft is for column" not in capsys.readouterr().out


def test_spellings_of_ids_are_counted_where_every_row_has_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("id,answer\nAnn,yes\nann,no\nBob,yes\nCy,no\n")
    assert main(["inspect", str(tmp_path / "t.csv")]) == Exit.DONE
    assert "1 values differ from others only by spaces, capital letters" in " ".join(capsys.readouterr().out.split())
