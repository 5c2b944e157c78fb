"""Values as people write them: spaces, capital letters, labels that nobody listed, bins of numbers and dates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.tables.categories import Answers, Categories
from hushuffle.tables.labels import Bins, Tidying
from hushuffle.tables.private import Column, load_column
from hushuffle.tables.value_files import load_labels_file

BOTH = Tidying(trim=True, casefold=True)


def load(
    folder: Path, values: Sequence[object], categories: Categories, dtype: type[pl.DataType], **more: object
) -> Column:
    pl.DataFrame({"x": pl.Series(values, dtype=dtype)}).write_parquet(folder / "x.parquet")
    return load_column("x.parquet", column="x", categories=categories, base_folder=folder, **more)  # type: ignore[arg-type]


def test_spaces_and_capital_letters_make_no_difference(tmp_path: Path) -> None:
    values = [" Bern", "bern", "BERN ", "zürich", "ZÜRICH", " ", None]
    found = load(tmp_path, values, ["Bern", "Zürich"], pl.String, tidying=BOTH, missing="none")
    assert (found.values.tolist(), found.domain.labels) == ([0, 0, 0, 1, 1, 2, 2], ("Bern", "Zürich", "none"))
    trimmed = load(tmp_path, [" a", "A"], ["a"], pl.String, tidying=Tidying(trim=True), otherwise="other")
    assert trimmed.values.tolist() == [0, 1]


def test_conditions_with_text_are_tidied_too(tmp_path: Path) -> None:
    conditions = {"yes": "== 'Yes' or == ' Y'", "no": "== 'no'"}
    assert load(tmp_path, ["YES", "y", "No "], conditions, pl.String, tidying=BOTH).values.tolist() == [0, 0, 1]


def test_labels_that_cannot_be_told_apart(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match=r"`categories` must be distinct, got categories='BERN' twice. With trim"
    ):
        load(tmp_path, ["a"], ["Bern", "BERN"], pl.String, tidying=Tidying(casefold=True))


def test_labels_from_the_data_are_tidy(tmp_path: Path) -> None:
    found = load(tmp_path, [" b", "B", "a"], "from-data", pl.String, tidying=BOTH, allow_categories_from_data=True)
    assert (found.domain.labels, found.values.tolist()) == (("a", "b"), [1, 1, 0])
    with pytest.raises(InvalidInputError, match="`otherwise` must be left out where"):
        load(tmp_path, ["a", "b"], "from-data", pl.String, otherwise="other", allow_categories_from_data=True)


def test_whatever_is_in_no_category_is_in_the_one_that_is_named(tmp_path: Path) -> None:
    values = ["a", "zz", None, "b"]
    found = load(tmp_path, values, ["a", "b"], pl.String, otherwise="other", missing="none")
    assert (found.domain.labels, found.values.tolist()) == (("a", "b", "other", "none"), [0, 2, 3, 1])
    found = load(tmp_path, values, ["a", "b"], pl.String, otherwise="b", missing="b")
    assert (found.domain.labels, found.values.tolist()) == (("a", "b"), [0, 1, 1, 1])
    found = load(tmp_path, values, ["a", "b"], pl.String, otherwise="other", missing="other")
    assert (found.domain.labels, found.values.tolist()) == (("a", "b", "other"), [0, 2, 2, 1])
    conditions = {"low": "< 3", "five": "== 5"}
    found = load(tmp_path, [1.0, 4.0, 5.0], conditions, pl.Float64, otherwise="other")
    assert found.values.tolist() == [0, 2, 1]
    with pytest.raises(InvalidInputError, match="`otherwise` must be the name of a category"):
        load(tmp_path, values, ["a", "b"], pl.String, otherwise=" ")


def test_a_catch_all_hides_no_overlap(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="2 records match both 'low' and 'all'"):
        load(tmp_path, [1.0, 2.0, 9.0], {"low": "< 3", "all": "< 5"}, pl.Float64, otherwise="other")


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Int64, pl.String])
def test_bins_have_their_lower_edge_and_not_their_upper_one(tmp_path: Path, dtype: type[pl.DataType]) -> None:
    numbers = [0, 17, 18, 64]
    values = [str(number) for number in numbers] if dtype == pl.String else numbers
    assert load(tmp_path, values, Bins(edges=(0, 18, 65)), dtype).values.tolist() == [0, 0, 1, 1]
    open_ended = Bins(edges=(-math.inf, 0, 18, math.inf))
    assert open_ended.labels == ("under 0", "0 to under 18", "18 or more")
    assert load(tmp_path, [*values, values[0]], open_ended, dtype).values.tolist() == [1, 1, 2, 2, 1]
    with pytest.raises(DataError, match="2 of 4 records match no category"):
        load(tmp_path, values, Bins(edges=(1, 18, 60)), dtype)


def test_bins_of_dates(tmp_path: Path) -> None:
    bins = Bins(edges=(date(2024, 1, 1), date(2024, 2, 1), date(2025, 1, 1)))
    assert bins.labels == ("2024-01-01 to before 2024-02-01", "2024-02-01 to before 2025-01-01")
    texts = ["2024-01-01", "2024-01-31T23:59:59+02:00", " 2024-02-01 00:00", "2024-12-31"]
    assert load(tmp_path, texts, bins, pl.String).values.tolist() == [0, 0, 1, 1]
    days = [date(2024, 1, 31), date(2024, 2, 1)]
    assert load(tmp_path, days, bins, pl.Date).values.tolist() == [0, 1]
    moments = [datetime(2024, 1, 31, 23, 59), datetime(2024, 2, 1)]  # noqa: DTZ001 - as tables hold them
    assert load(tmp_path, moments, bins, pl.Datetime).values.tolist() == [0, 1]
    wrong = ["2024-13-01", "1.2.2024", "2024-01-012", "2025-01-01", "2023-12-31"]
    assert load(tmp_path, wrong, bins, pl.String, otherwise="other").values.tolist() == [2] * 5
    assert load(tmp_path, ["", None, "2024-01-01"], bins, pl.String, missing="drop").dropped == 2
    ends = Bins(edges=(-math.inf, date(2024, 1, 1), math.inf))
    assert ends.labels == ("before 2024-01-01", "2024-01-01 or later")
    assert load(tmp_path, ["1969-12-31", "2024-01-01"], ends, pl.String).values.tolist() == [0, 1]
    with pytest.raises(DataError, match=r"of type Int64\. It must hold dates, or dates as text"):
        load(tmp_path, [19_000], bins, pl.Int64)


@pytest.mark.parametrize(
    "edges",
    [
        (),
        (0, 1),
        (0, 0, 1),
        (2, 1, 3),
        (math.nan, 1, 2),
        (-math.inf, math.inf),
        (0, date(2024, 1, 1), date(2025, 1, 1)),
    ],
)
def test_what_are_no_bins(edges: tuple[float | date, ...]) -> None:
    with pytest.raises(InvalidInputError, match="`bins` must be three or more numbers, or dates, in increasing order"):
        Bins(edges=edges)


def test_labels_of_numbers_are_exact() -> None:
    assert Bins(edges=(0, 0.5, 1234567, 1e15)).labels == (
        "0 to under 0.5",
        "0.5 to under 1234567",
        "1234567 to under 1000000000000000",
    )


def test_codes_have_no_other_category() -> None:
    assert Answers.of(3, "refuse").labels == ()


def test_labels_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\ufeffBern \n\n  Chur\r\n", encoding="utf-8")
    (tmp_path / "a.csv").write_text('town,people\n" Bern",3\nChur,4\n', encoding="utf-8")
    assert load_labels_file("a.txt", base_folder=tmp_path) == ("Bern", "Chur")
    assert load_labels_file("a.csv", base_folder=tmp_path) == (" Bern", "Chur")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.txt",
            b"SECRET\nb\nSECRET\n",
            "a.txt, line 3: it is the same label as in line 1. Remove one of them.",
        ),
        ("a.txt", b"a\nSECRET\x07\n", "a.txt, line 2: the label must be text on one line, without control characters"),
        ("a.txt", b"\n\n", "a.txt holds no labels"),
        ("a.txt", b"SECRET\xff\n", "a.txt is not UTF-8 text"),
        ("a.csv", b"x,y\nSECRET,1\n,2\n", "a.csv: its first column, the labels, is empty in record 2"),
        ("b.txt", b"a", "a.txt does not exist. Relative paths start"),
    ],
)
def test_files_of_labels_that_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_labels_file("a.csv" if name == "a.csv" else "a.txt", base_folder=tmp_path)
    assert message in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_a_folder_is_no_file_of_labels(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(DataError, match=r"a\.txt cannot be read: Is a directory"):
        load_labels_file("a.txt", base_folder=tmp_path)


def test_too_many_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.tables.value_files._MOST_LABELS", 2)
    (tmp_path / "a.txt").write_text("a\nb\nc\n", encoding="utf-8")
    with pytest.raises(DataError, match="holds 3 labels, but at most 2 are allowed"):
        load_labels_file("a.txt", base_folder=tmp_path)


def test_all_problems_of_a_column_are_said_at_once(tmp_path: Path) -> None:
    text = 'x,y\n1,"two\nlines"\n,a\n7,b\n4,c\nSECRET,d\n'
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    conditions = {"low": "< 5", "four": "== 4"}
    with pytest.raises(DataError) as caught:
        load_column("x.csv", column="x", categories=conditions, base_folder=tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[0] == "column 'x' of x.csv:"
    assert lines[1].startswith("  2 of 5 records match no category (40 %; lines 5, 7). Add a category")
    assert lines[2].startswith("  1 of 5 records are missing (20 %; line 4). Set missing")
    assert lines[3].startswith("  1 of 5 records match several categories (20 %; line 6). 1 records match both 'low' ")
    assert "SECRET" not in str(caught.value)
