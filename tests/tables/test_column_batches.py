from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.tables import private
from hushuffle.tables.categories import Answers, Categories
from hushuffle.tables.private import ColumnBatches, load_column

YES_NO = ("no", "yes")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "BATCH", 3)


def opened(
    folder: Path, sources: Sequence[str], categories: Categories | int = YES_NO, missing: str = "refuse", **more: Any
) -> ColumnBatches:
    answers = Answers.of(categories, missing)
    return ColumnBatches(sources, column="answer", answers=answers, base_folder=folder, **more)


def read(batches: ColumnBatches) -> tuple[list[int], list[str], int]:
    parts = list(batches)
    ids = [one for part in parts if part.ids is not None for one in part.ids]
    return [int(value) for part in parts for value in part.values], ids, sum(part.dropped for part in parts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    answers = ["yes", "no", "no", "yes", None, "no", "yes"]
    table = pl.DataFrame({"name": [f"p{one}" for one in range(7)], "answer": answers})
    (tmp_path / "in").mkdir()
    table.write_csv(tmp_path / "in" / "a.csv")
    table.write_parquet(tmp_path / "in" / "b.parquet")
    (tmp_path / "in" / "c.csv.gz").write_bytes(gzip.compress((tmp_path / "in" / "a.csv").read_bytes()))
    (tmp_path / "in" / "notes.txt").write_text("not read", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("source", ["in/a.csv", "in/b.parquet", "in/c.csv.gz", "in/*.parquet"])
@pytest.mark.parametrize("missing", ["drop", "no", "silent"])
def test_batches_are_what_the_whole_column_is(folder: Path, source: str, missing: str) -> None:
    batches = opened(folder, [source], missing=missing, ids="name")
    values, ids, dropped = read(batches)
    whole = load_column(source, column="answer", categories=YES_NO, missing=missing, base_folder=folder)
    assert values == whole.values.tolist()
    answers = Answers.of(YES_NO, missing)
    assert (answers.labels, answers.k, dropped) == (whole.domain.labels, whole.domain.k, whole.dropped)
    assert ids == [f"p{one}" for one in range(7) if one != 4 or missing != "drop"]
    assert batches.count() == 7


def test_a_folder_and_several_files(folder: Path) -> None:
    values, ids, dropped = read(opened(folder, ["in"], missing="drop"))
    assert values == [1, 0, 0, 1, 0, 1] * 3
    assert (ids, dropped) == ([], 3)
    assert read(opened(folder, [str(folder / "in" / "a.csv"), "in/b.parquet"], missing="drop"))[2] == 2


def test_a_column_of_codes(tmp_path: Path) -> None:
    for dtype in (pl.Int64, pl.Float64, pl.String):
        pl.DataFrame({"answer": pl.Series([0, 4, 2, 1]).cast(dtype)}).write_parquet(tmp_path / "a.parquet")
        assert read(opened(tmp_path, ["a.parquet"], 5))[0] == [0, 4, 2, 1]
        assert (Answers.of(5, "refuse").k, Answers.of(5, "refuse").labels) == (5, ())
    pl.DataFrame({"answer": [0, None, 2]}).write_parquet(tmp_path / "a.parquet")
    assert read(opened(tmp_path, ["a.parquet"], 5, missing="drop")) == ([0, 2], [], 1)
    for wrong in (5, -1, 1.5):
        pl.DataFrame({"answer": [0.0, 1.0, wrong]}).write_parquet(tmp_path / "a.parquet")
        with pytest.raises(DataError, match=r"match no category \(33.3 %; record 3, .*must be integers from 0 to 4"):
            read(opened(tmp_path, ["a.parquet"], 5))
    with pytest.raises(InvalidInputError, match='`missing` must be "refuse" or "drop"'):
        opened(tmp_path, ["a.parquet"], 5, missing="silent")


def test_records_that_do_not_fit(folder: Path) -> None:
    with pytest.raises(DataError, match=r"of in/a.csv: 1 of 7 records are missing \(14.3 %; line 6\)\. Set missing"):
        read(opened(folder, ["in/a.csv"]))
    with pytest.raises(
        DataError,
        match=r"(?s)3 of 7 .*match no category \(42.9 %; records 1, 4, 7, .*as text.*\n  1 of 7 records are missing",
    ) as caught:
        read(opened(folder, ["in/b.parquet"], ("no", "perhaps")))
    assert "yes" not in str(caught.value)
    conditions = {"low": "< 5", "high": "> 3"}
    np.savetxt(folder / "n.csv", np.full(20, 4), header="answer", comments="", fmt="%d")
    with pytest.raises(
        DataError, match=r"20 of 20 records match several categories .*20 records match both 'low' and 'high'"
    ):
        read(opened(folder, ["n.csv"], conditions))
    with pytest.raises(DataError, match=r"lines 2, 3, 4, 5, 6, \.\.\.\)"):
        read(opened(folder, ["n.csv"], YES_NO))


def test_more_wrong_records_than_are_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "BATCH", 100)
    np.savetxt(folder / "n.csv", np.full(20, 4), header="answer", comments="", fmt="%d")
    with pytest.raises(DataError, match=r"20 of 20 records .*100 %; lines 2, 3, 4, 5, 6, \.\.\.\)"):
        read(opened(folder, ["n.csv"]))


def test_sources_that_cannot_be_read(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "broken.parquet").write_bytes(b"PAR1 no")
    (folder / "ragged.csv").write_text("answer,name\nyes,a\nno,b,c\n", encoding="utf-8")
    for sources, message in (
        (["in/a.csv", "in/../in/a.csv"], "is given twice"),
        (["empty"], "without files of these kinds"),
        (["absent.csv"], "absent.csv does not exist"),
        (["broken.parquet"], "not a readable Parquet file"),
    ):
        with pytest.raises(DataError, match=message):
            opened(folder, sources)
    with pytest.raises(DataError, match="not a well-formed CSV file"):
        read(opened(folder, ["ragged.csv"]))
    with pytest.raises(DataError, match="has no column 'reply'"):
        ColumnBatches(["in/a.csv"], column="reply", answers=Answers.of(YES_NO, "refuse"), base_folder=folder)
    with pytest.raises(InvalidInputError, match="List the categories"):
        opened(folder, ["in/a.csv"], "from-data")


def test_bundled_data() -> None:
    answers = Answers.of({"none": "== 0", "some": "> 0"}, "refuse")
    batches = ColumnBatches(["statsmodels:fair"], column="affairs", answers=answers)
    assert sum(batch.values.size for batch in batches) == 6366


def test_ids_that_are_none(folder: Path) -> None:
    pl.DataFrame({"answer": ["no"] * 2, "id": ["a", None], "x": [0.5, 1.5]}).write_parquet(folder / "i.parquet")
    with pytest.raises(DataError, match="1 of 2 records have no id in column 'id'"):
        read(opened(folder, ["i.parquet"], ids="id"))
    with pytest.raises(DataError, match=r"'x' is of type Float64\. Ids must be text or integers"):
        opened(folder, ["i.parquet"], ids="x")
