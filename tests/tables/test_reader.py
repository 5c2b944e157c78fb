"""The reader of tables: rules, blocks, and what is wrong with records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hushuffle.errors import DataError
from hushuffle.tables.categories import ANYTHING, ID, MISSING, NUMBER, TEXT, UNSEEN, coded, coding, given
from hushuffle.tables.private import load_table
from hushuffle.tables.reader import Faults, Part, TableReader, open_source

COLUMNS = {
    "code": ("town", coded(coding(["a", "b"]))),
    "text": ("town", TEXT),
    "number": ("x", NUMBER),
    "id": ("who", ID),
    "whole": ("x", given(pl.col("x").cast(pl.Int64, strict=False))),
}


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Part, ...]:
    table = pl.DataFrame(
        {"who": range(7), "town": ["a", "b", "a", "c", "", None, "b"], "x": [*"123", "inf", "", "y", "7"]}
    )
    table.write_csv(tmp_path / "1.csv")
    table.cast({"who": pl.String}).write_parquet(tmp_path / "2.parquet")
    return open_source("*", base_folder=tmp_path)


@pytest.mark.parametrize("rows", [None, 1, 3, 100])
def test_blocks_are_the_whole(parts: tuple[Part, ...], rows: int | None) -> None:
    reader = TableReader(parts, COLUMNS)
    blocks = list(reader.blocks(rows=rows))
    whole = TableReader(parts, COLUMNS).whole()
    assert pl.concat(block.frame for block in blocks).equals(whole)
    assert whole["code"].to_list() == [0, 1, 0, UNSEEN, MISSING, MISSING, 1] * 2
    assert whole["text"].to_list() == ["a", "b", "a", "c", None, None, "b"] * 2
    assert whole["id"].to_list() == list("0123456") * 2
    assert whole["whole"].to_list() == [1, 2, 3, None, None, None, 7] * 2
    numbers = whole["number"].to_list()
    assert (numbers[:3], numbers[4], numbers[6]) == ([1.0, 2.0, 3.0], None, 7.0)
    assert [dict(reader.faults[name].counts) for name in COLUMNS] == [
        {UNSEEN: 2, MISSING: 4},
        {MISSING: 4},
        {UNSEEN: 4, MISSING: 2},
        {},
        {MISSING: 6},
    ]


@pytest.mark.parametrize("rows", [None, 2])
def test_the_first_faults_are_named_with_their_file(parts: tuple[Part, ...], rows: int | None) -> None:
    reader = TableReader(parts[::-1], COLUMNS)
    for _ in reader.blocks(rows=rows):
        pass
    sentence = ": {count} are missing ({numbers}), the first is {first}"
    with pytest.raises(DataError, match=r"^here: 4 are missing \(records 5, 6, \.\.\. of 2\.parquet, "):
        reader.faults["code"].refuse(MISSING, "here", sentence, name_file=True)
    with pytest.raises(DataError, match=r"\(records 4, 6, \.\.\., counted from 1\), the first is 4$"):
        reader.faults["number"].refuse(UNSEEN, "here", sentence)
    reader.faults["id"].refuse(MISSING, "here", sentence)


def test_names_may_hold_braces() -> None:
    faults = Faults()
    faults.note(pl.Series([0, MISSING]).to_numpy())
    with pytest.raises(DataError, match=r"^column '\{x\}': 1$"):
        faults.refuse(MISSING, "column '{x}'", ": {count}")


def test_a_table_is_read_once_for_all_its_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pl.DataFrame({"a": ["u", "v"], "b": ["v", "u"], "x": [1, 2], "y": [3, 4]}).write_csv(tmp_path / "a.csv")
    collect, times = Part.collect, []

    def counted(part: Part, *wanted: Any) -> pl.DataFrame:
        times.append(len(wanted))
        return collect(part, *wanted)

    monkeypatch.setattr(Part, "collect", counted)
    load_table(str(tmp_path / "a.csv"), categories={"a": ["u", "v"], "b": ["u", "v"]}, numbers=["x", "y"])
    assert times == [4]


def test_dates_are_text_where_anything_is_taken(tmp_path: Path) -> None:
    pl.DataFrame({"day": ["2024-05-06", None]}).with_columns(pl.col("day").str.to_date()).write_parquet(
        tmp_path / "d.parquet"
    )
    parts = open_source("d.parquet", base_folder=tmp_path)
    assert TableReader(parts, {"day": ("day", ANYTHING)}).whole()["day"].to_list() == ["2024-05-06", None]
    for rule, message in ((NUMBER, "It must hold text, numbers or booleans"), (ID, "Ids must be text or integers")):
        with pytest.raises(DataError, match=rf"column 'day' is of type Date\. {message}"):
            TableReader(parts, {"day": ("day", rule)})
