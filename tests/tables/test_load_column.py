from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.tables import private as column_module
from hushuffle.tables.categories import Categories
from hushuffle.tables.private import Column, load_column

YES_NO = ("no", "yes")
SIGN = {"negative": "< 0", "zero": "== 0", "positive": "> 0"}


def csv(folder: Path, text: str, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def load(path: Path | str, categories: Categories, **further: Any) -> Column:
    return load_column(str(path), column="x", categories=categories, **further)


def parquet(folder: Path, values: list[Any], dtype: Any, name: str = "people.parquet") -> Path:
    path = folder / name
    pl.DataFrame({"id": range(len(values)), "x": pl.Series(values, dtype=dtype)}).write_parquet(path)
    return path


def test_the_bundled_surveys() -> None:
    fair = load_column("statsmodels:fair", column="affairs", categories={"none": "== 0", "some": "> 0"})
    assert (fair.n, fair.dropped, fair.warnings) == (6366, 0, ())
    assert fair.population().counts == (4313, 2053)
    party = load_column("statsmodels:anes96", column="PID", categories=[0, 1, 2, 3, 4, 5, 6])
    assert party.population().counts == (200, 180, 108, 37, 94, 150, 175)
    assert party.source == "column 'PID' of statsmodels:anes96"


def test_labels_in_a_csv_file(tmp_path: Path) -> None:
    found = load(csv(tmp_path, "id,x\n1,yes\n2,no\n3,yes\n"), YES_NO)
    assert found.values.tolist() == [1, 0, 1]
    assert found.values.dtype == np.int64
    assert not found.values.flags.writeable
    assert found.domain.labels == YES_NO
    assert found.population().counts == (1, 2)
    assert "values" not in repr(found)


def test_conditions_on_the_numbers_in_a_csv_file(tmp_path: Path) -> None:
    assert load(csv(tmp_path, "x\n-1\n 2\n0.0\n1e3\n-inf\n"), SIGN).values.tolist() == [0, 2, 1, 2, 0]


def test_quoted_fields_with_commas_line_breaks_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = csv(tmp_path, '\ufeffx,note\r\n"yes","a, b"\r\n"no","two\r\nlines"\r\nyes,é\r\n')
    assert load(path, YES_NO).values.tolist() == [1, 0, 1]


def test_packed_csv(tmp_path: Path) -> None:
    path = tmp_path / "people.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("x\nyes\nno\n")
    assert load(path, YES_NO).values.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("values", "dtype", "categories", "expected"),
    [
        ([1, 0, 1], pl.Int64, [0, 1], [1, 0, 1]),
        ([1, 0, 1], pl.UInt8, {"a": "== 0", "b": "== '1'"}, [1, 0, 1]),
        ([True, False], pl.Boolean, [False, True], [1, 0]),
        ([True, False], pl.Boolean, {"no": "== 'false'", "yes": "== 1"}, [1, 0]),
        ([1.0, 0.0, -3.0, 0.5], pl.Float64, [0, 1, -3, "0.5"], [1, 0, 2, 3]),
        ([0.1, 0.2], pl.Float32, {"low": "<= 0.1", "high": "> 0.1"}, [0, 1]),
        ([Decimal("0.1"), Decimal("0.2")], pl.Decimal(4, 2), {"low": "<= 0.1", "high": "> 0.1"}, [0, 1]),
        (["yes", "no"], pl.String, YES_NO, [1, 0]),
        (["yes", "no"], pl.Categorical, YES_NO, [1, 0]),
        (["yes", "no"], pl.Enum(["yes", "no"]), {"a": "== 'no'", "b": "!= 'no'"}, [1, 0]),
        ([2**53 + 1, 2**53 - 1], pl.Int64, {"low": "<= 9007199254740991", "high": "> 9007199254740991"}, [1, 0]),
    ],
)
def test_types_of_a_parquet_file(
    tmp_path: Path, values: list[Any], dtype: Any, categories: Categories, expected: list[int]
) -> None:
    assert load(parquet(tmp_path, values, dtype), categories).values.tolist() == expected


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["a", "b ", "ç", "NaN", "0", ""]), min_size=1, max_size=30))
def test_labels_agree_with_plain_loops(tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
    labels = ["ç", "a", "0", "b ", "NaN", "nothing"]
    path = tmp_path_factory.mktemp("labels") / "people.parquet"
    pl.DataFrame({"x": values}).write_parquet(path)
    expected = [labels.index(value or "nothing") for value in values]
    assert load(path, labels, missing="nothing").values.tolist() == expected


class TestMissing:
    TEXT = 'id,x\n1,yes\n2,\n3,""\n4,no\n\n'

    def test_is_refused_by_default_with_count_and_place(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"3 of 5 records are missing \(60 %; lines 3, 4, 6\)"):
            load(csv(tmp_path, self.TEXT), YES_NO)

    def test_is_dropped_and_counted(self, tmp_path: Path) -> None:
        found = load(csv(tmp_path, self.TEXT), YES_NO, missing="drop")
        assert (found.values.tolist(), found.dropped, found.population().dropped) == ([1, 0], 3, 3)

    def test_becomes_a_further_category(self, tmp_path: Path) -> None:
        found = load(csv(tmp_path, self.TEXT), YES_NO, missing="no answer")
        assert found.domain.labels == ("no", "yes", "no answer")
        assert (found.values.tolist(), found.dropped) == ([1, 2, 2, 0, 2], 0)

    def test_becomes_an_existing_category(self, tmp_path: Path) -> None:
        assert load(csv(tmp_path, self.TEXT), YES_NO, missing="no").values.tolist() == [1, 0, 0, 0, 0]

    def test_nan_and_null_in_floats(self, tmp_path: Path) -> None:
        path = parquet(tmp_path, [1.0, None, float("nan"), -1.0], pl.Float64)
        assert load(path, SIGN, missing="drop").values.tolist() == [2, 0]
        assert load(path, ["1", "-1"], missing="drop").dropped == 2

    def test_a_column_of_nothing(self, tmp_path: Path) -> None:
        path = parquet(tmp_path, [None, None], pl.Null)
        assert load(path, YES_NO, missing="none").values.tolist() == [2, 2]

    def test_nan_spelled_out_is_missing_where_numbers_are_asked_for(self, tmp_path: Path) -> None:
        path = csv(tmp_path, "x\n1\nNaN\nnan\n")
        assert load(path, SIGN, missing="drop").dropped == 2
        assert load(path, ["1", "NaN", "nan"]).values.tolist() == [0, 1, 2]

    def test_nothing_is_left(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no records are left, all 2 are missing"):
            load(parquet(tmp_path, [None, None], pl.Int64), SIGN, missing="drop")

    @pytest.mark.parametrize(("word", "near"), [("Drop", "'drop'"), ("refused", "'refuse'")])
    def test_a_slip_of_the_pen_is_no_category(self, tmp_path: Path, word: str, near: str) -> None:
        with pytest.raises(InvalidInputError, match=f"Did you mean {near}"):
            load(csv(tmp_path, self.TEXT), YES_NO, missing=word)

    def test_blank_is_no_category(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match=r"got missing=' '\.$"):
            load(csv(tmp_path, self.TEXT), YES_NO, missing=" ")


class TestCategories:
    def test_unseen_values_are_counted_and_not_shown(self, tmp_path: Path) -> None:
        path = csv(tmp_path, "x\nyes\nSECRET\nYes\n" + "maybe\n" * 9)
        with pytest.raises(
            DataError, match=r"11 of 12 records match no category \(91.7 %; lines 3, 4, 5, 6, 7, ..."
        ) as caught:
            load(path, YES_NO)
        assert "capital letters" in str(caught.value)
        assert "SECRET" not in str(caught.value)

    def test_a_gap_between_conditions(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"1 of 3 records match no category \(33.3 %; line 4\).*Add a category"):
            load(csv(tmp_path, "x\n1\n-1\n0\n"), {"a": "< 0", "b": "> 0"})

    def test_text_where_numbers_are_asked_for_is_unseen(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="2 of 3 records match no category"):
            load(csv(tmp_path, 'x\n1\nNA\n"1,000"\n'), SIGN)

    def test_overlapping_conditions_are_named_with_their_count(self, tmp_path: Path) -> None:
        for part, text in enumerate(("x\n17\n18\n70\n71\n", "x\n65\n66\n1\n5\n")):
            csv(tmp_path, text, f"{part}.csv")
        categories = {"young": "< 18", "adult": ">= 18", "senior": ">= 65", "five": "== 5"}
        with pytest.raises(DataError, match="4 records match both 'adult' and 'senior'"):
            load(tmp_path / "*.csv", categories)

    def test_missing_records_do_not_overlap(self, tmp_path: Path) -> None:
        path = csv(tmp_path, "x\nNaN\n3\n3\n-1\n")
        with pytest.raises(DataError, match="2 records match both 'b' and 'c'"):
            load(path, {"a": "< 0", "b": "> 0", "c": "== 3"}, missing="drop")

    def test_none_twice_or_one(self, tmp_path: Path) -> None:
        path = csv(tmp_path, "x\nyes\nno\n")
        with pytest.raises(InvalidInputError, match="at least one category"):
            load(path, [])
        with pytest.raises(InvalidInputError, match="`categories` must be distinct"):
            load(path, ["no", "yes", "no"])
        with pytest.raises(InvalidInputError, match="at least 2 labels"):
            load(path, {"all": "!= ''"})
        with pytest.raises(InvalidInputError, match="a table, a list or"):
            load(path, "yes")

    def test_dates_are_refused(self, tmp_path: Path) -> None:
        path = parquet(tmp_path, [dt.date(2020, 1, 1)], pl.Date)
        with pytest.raises(DataError, match=r"is of type Date\. It must hold text, numbers or booleans"):
            load(path, YES_NO)


class TestFromData:
    def test_is_refused_unless_allowed(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match="allow_categories_from_data = true"):
            load(csv(tmp_path, "x\nyes\nno\n"), "from-data")

    def test_is_sorted_and_warned_about(self, tmp_path: Path) -> None:
        path = csv(tmp_path, "x,y\n10,\nb,\n2,\n-1,\na,\n,\n2,\n")
        found = load(path, "from-data", missing="drop", allow_categories_from_data=True)
        assert found.domain.labels == ("-1", "2", "10", "a", "b")
        assert found.values.tolist() == [2, 4, 1, 0, 3, 1]
        assert [warned.key for warned in found.warnings] == ["categories-from-data"]

    def test_several_files(self, tmp_path: Path) -> None:
        csv(tmp_path, "x\n1\n", "1.csv")
        parquet(tmp_path, [2.0, 1.0], pl.Float64, "2.parquet")
        found = load(tmp_path / "*", "from-data", allow_categories_from_data=True)
        assert (found.domain.labels, found.values.tolist()) == (("1", "2"), [0, 1, 0])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("x\nyes\nyes\n", "fewer than two different values"),
            ('x\nyes\n"SEC\nRET"\n', "control characters"),
            ("x\n1\n2\n3\n4\n", "more than 3 different values"),
        ],
    )
    def test_what_cannot_be_categories(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
    ) -> None:
        monkeypatch.setattr(column_module, "_MOST_LABELS", 3)
        with pytest.raises(DataError, match=message):
            load(csv(tmp_path, text), "from-data", allow_categories_from_data=True)


class TestGlobs:
    def test_files_are_read_in_order_and_counted_together(self, tmp_path: Path) -> None:
        csv(tmp_path, "id,x\n1,yes\n", "b.csv")
        csv(tmp_path, "x\nno\nno\n", "a.csv")
        parquet(tmp_path, ["yes", "no"], pl.String, "c.parquet")
        parquet(tmp_path, [None], pl.Null, "d.parquet")
        found = load("[a-d].*", YES_NO, base_folder=tmp_path, missing="drop")
        assert found.values.tolist() == [0, 0, 1, 1, 0]
        assert found.source == "column 'x' of [a-d].* (4 files)"

    def test_the_file_with_the_first_wrong_record_is_told_by_its_place(self, tmp_path: Path) -> None:
        csv(tmp_path, "x\nno\nno\n", "a.csv")
        csv(tmp_path, "x\nno\noh\nah\n", "b.csv")
        with pytest.raises(DataError, match=r"2 of 5 records match no category \(40 %; lines 3, 4 of \w+\.csv\)"):
            load("*.csv", YES_NO, base_folder=tmp_path)

    def test_different_types_are_refused(self, tmp_path: Path) -> None:
        parquet(tmp_path, [1], pl.Int64, "a.parquet")
        parquet(tmp_path, ["1"], pl.String, "b.parquet")
        with pytest.raises(DataError, match=r"column 'x' holds numbers in a\.parquet, but text in b\.parquet"):
            load("*.parquet", YES_NO, base_folder=tmp_path)

    def test_numbers_of_different_width_are_the_same_type(self, tmp_path: Path) -> None:
        parquet(tmp_path, [1], pl.Int8, "a.parquet")
        parquet(tmp_path, [0.0], pl.Float64, "b.parquet")
        assert load("*.parquet", [0, 1], base_folder=tmp_path).values.tolist() == [1, 0]

    def test_a_column_that_one_file_lacks(self, tmp_path: Path) -> None:
        csv(tmp_path, "x\nno\n", "a.csv")
        csv(tmp_path, "X\nno\n", "b.csv")
        with pytest.raises(
            DataError, match=r"^b\.csv has no column 'x' \(number of columns: 1\)\. A column has almost this name"
        ):
            load("*.csv", YES_NO, base_folder=tmp_path)
