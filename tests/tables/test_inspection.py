"""What is counted in a table, and a first specification for a column of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushuffle.specification import parse
from hushuffle.specification.draft import candidates, data_name, drafted
from hushuffle.tables import inspection
from hushuffle.tables.csv_form import CsvForm
from hushuffle.tables.inspection import guessed_form, inspect_table

ANSWERS = {"person": '"none"', "low": "0", "high": "120", "levels": "11", "epsilon": "3.0", "reports_per_person": "2"}


def answered(draft: str) -> str:
    """Return a draft with an answer in the place of each question."""
    return re.sub(r'^(\w+) = "\?"$', lambda match: f"{match[1]} = {ANSWERS[match[1]]}", draft, flags=re.MULTILINE)


def written(folder: Path, values: object, name: str = "x") -> str:
    pl.DataFrame({name: values}).write_parquet(folder / "x.parquet")
    return str(folder / "x.parquet")


@settings(deadline=None, max_examples=40)
@given(values=st.lists(st.sampled_from(["a", "b", "", "7", "1.5", "nan", "2024-05-31", None, " a"]), min_size=1))
def test_counts_are_those_of_a_plain_count(tmp_path_factory: pytest.TempPathFactory, values: list[str | None]) -> None:
    source = written(tmp_path_factory.mktemp("x"), pl.Series(values, dtype=pl.String))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspection, "ROWS", 3)
        (column,) = inspect_table(source).columns
    expected = Counter(value for value in values if value)
    assert dict(column.counts.rows()) == expected
    assert (column.missing, column.distinct) == (len(values) - expected.total(), len(expected))


@pytest.mark.parametrize("distinct", [3_000, 50_000, 400_000])
def test_very_many_values_are_counted_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distinct: int) -> None:
    monkeypatch.setattr(inspection, "_HELD", 1000)
    source = written(tmp_path, pl.int_range(500_000, eager=True) % distinct)
    (column,) = inspect_table(source).columns
    assert not column.exact
    assert abs(column.distinct / distinct - 1) < 0.1  # six standard deviations of 1/64


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("a,b\n1,2\n", "utf-8", CsvForm()),
        ("a;b\n1;2\n", "utf-8", CsvForm(separator=";")),
        ('a|b\n"x,y,z"|2\n', "utf-8", CsvForm(separator="|")),
        ("a\tb\né\t2\n", "windows-1252", CsvForm(encoding="windows-1252", separator="\t")),
        ("a,b\né,2\n", "utf-16", CsvForm(encoding="utf-16")),
        ("a\n1\n", "utf-8", CsvForm()),
    ],
)
def test_the_form_of_a_file_is_guessed(tmp_path: Path, text: str, encoding: str, expected: CsvForm) -> None:
    (tmp_path / "x.csv").write_bytes(text.encode(encoding))
    assert guessed_form(tmp_path / "x.csv") == expected


def test_bytes_that_only_latin_1_has(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"a,b\n\x81,2\n")
    assert guessed_form(tmp_path / "x.csv") == CsvForm(encoding="latin-1")


def test_tabs_in_a_tsv_file_are_no_news(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a\tb\n1\t2\n", encoding="utf-8")
    assert guessed_form(tmp_path / "x.tsv") == CsvForm()


def test_a_column_that_many_share_is_drafted_first(tmp_path: Path) -> None:
    rows = range(400)
    frame = pl.DataFrame(
        {
            "id": [f"{row}" for row in rows],
            "weight": [row / 7 for row in rows],
            "answer": ["yes" if row % 3 else "no" for row in rows],
            "same": ["x"] * 400,
            "person": [row % 80 for row in rows],
        }
    )
    frame.write_parquet(tmp_path / "x.parquet")
    found = inspect_table(str(tmp_path / "x.parquet"))
    assert [column.name for column in candidates(found)] == ["answer", "weight"]


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([f"{row % 5}" for row in range(100)], 'categories = [\n    "0",\n    "1",\n    "2",\n    "3",\n    "4",\n]'),
        (["yes", "Yes", "no"] * 10, "casefold = true"),
        (["yes", " yes", "no"] * 10, "trim = true"),
        (["other", "b\x07", "c"] * 10, 'otherwise = "none of these"'),
        (["yes", None] * 20, 'missing = "no answer"'),
        (["yes"] * 20, 'otherwise = "other"'),
        ([row / 3 for row in range(100)], 'kind = "number"'),
        ([*(row / 3 for row in range(100)), *["many"] * 3], "-inf,"),
        ([f"2024-{1 + row % 12:02}-{1 + row % 28:02}" for row in range(100)], "2024-02-01,"),
        ([f"{1990 + row % 30}-01-05" for row in range(100)], "1991-01-01,"),
        ([f"2024-05-{1 + row % 28:02}" for row in range(100)], 'categories = ["2024-05-01"'),
        ([*range(100), *["many"] * 3], 'otherwise = "other"'),
        ([True, False] * 4, 'categories = [\n    "false",\n    "true",\n]'),
    ],
)
def test_drafts(tmp_path: Path, values: list[object], line: str) -> None:
    content = pl.Series([str(one) for one in values]) if "many" in values else pl.Series(values)
    found = inspect_table(written(tmp_path, content))
    text = drafted(found, found.columns[0], data="x.parquet")
    assert text is not None
    if "2024-05-0" not in line:
        assert line in text
    people = parse(answered(text)).population.read(tmp_path)
    assert people.n == len(values)
    assert people.k >= 2


def test_a_draft_of_more_values_than_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_HELD", 1000)
    found = inspect_table(written(tmp_path, [f"v{row % 2000}" for row in range(6000)]))
    assert drafted(found, found.columns[0], data="x.parquet") is None
    text = drafted(replace(found, records=1000), found.columns[0], data="x.parquet")
    assert text is not None
    assert parse(answered(text)).population.read(tmp_path).n == 6000


def test_a_draft_names_the_data_from_where_it_stands() -> None:
    assert data_name("in/x.csv", None) == "in/x.csv"
    assert data_name("in/x.csv", Path("out/x.toml")) == "../in/x.csv"
    assert data_name("/in/x.csv", Path("out/x.toml")) == "/in/x.csv"
    assert data_name("statsmodels:fair", Path("out/x.toml")) == "statsmodels:fair"
