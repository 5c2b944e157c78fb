from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hushuffle.errors import DataError
from hushuffle.tables.private import load_table

CSV = "group,x,y\na,1,2\nb,,3\n,4,5\nb,6.5,7\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text(CSV, encoding="utf-8")
    return tmp_path


def test_records_that_lack_a_column_are_dropped_together(folder: Path) -> None:
    table = load_table(
        "a.csv", categories={"group": ["a", "b"]}, numbers=["x", "y"], missing="drop", base_folder=folder
    )
    assert (table.n, table.dropped, table.source) == (2, 2, "a.csv")
    assert table.groups["group"].tolist() == [0, 1]
    assert (table.numbers["x"].tolist(), table.numbers["y"].tolist()) == ([1.0, 6.5], [2.0, 7.0])


def test_missing_is_refused_unless_asked_for(folder: Path) -> None:
    with pytest.raises(DataError, match=r"column 'x' of a.csv: 1 of 4 records \(record 2, counted from 1\) are miss"):
        load_table("a.csv", categories={}, numbers=["x"], base_folder=folder)
    with pytest.raises(DataError, match="1 of 4 records are missing"):
        load_table("a.csv", categories={"group": ["a", "b"]}, base_folder=folder)


def test_numbers_only_and_parquet(folder: Path) -> None:
    pl.DataFrame({"x": [1, 2, 3], "flag": [True, False, True], "day": ["a", "b", "c"]}).with_columns(
        pl.lit("2024-01-01").str.to_date().alias("date")
    ).write_parquet(folder / "a.parquet")
    table = load_table("a.parquet", categories={}, numbers=["x", "flag"], base_folder=folder)
    assert table.numbers["flag"].tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(DataError, match="It must hold numbers"):
        load_table("a.parquet", categories={}, numbers=["date"], base_folder=folder)
    with pytest.raises(DataError, match=r"3 of 3 records \(records 1, 2, 3, counted from 1\) hold no finite number"):
        load_table("a.parquet", categories={}, numbers=["day"], base_folder=folder)


def test_values_are_not_in_messages(folder: Path) -> None:
    rows = "\n".join(["x", *["secret"] * 7]) + "\n"
    (folder / "b.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(DataError, match=r"records 1, 2, 3, 4, 5, \.\.\., counted from 1") as caught:
        load_table("b.csv", categories={}, numbers=["x"], missing="drop", base_folder=folder)
    assert "secret" not in str(caught.value)


def test_nobody_is_left(folder: Path) -> None:
    (folder / "c.csv").write_text("g,x\na,\nb,\n", encoding="utf-8")
    with pytest.raises(DataError, match="no record has all of the columns g, x"):
        load_table("c.csv", categories={"g": ["a", "b"]}, numbers=["x"], missing="drop", base_folder=folder)


def test_one_column_may_be_a_group_and_a_number(folder: Path) -> None:
    found = load_table("a.csv", categories={"y": ["2", "3", "5", "7"]}, numbers=["y"], base_folder=folder)
    assert (found.groups["y"].tolist(), found.numbers["y"].tolist()) == ([0, 1, 2, 3], [2.0, 3.0, 5.0, 7.0])
