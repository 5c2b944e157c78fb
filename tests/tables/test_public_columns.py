"""Public columns beside the private one: read for the same people, in the same order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.errors import DataError
from hushuffle.tables.private import load_column
from hushuffle.tables.published import load_attributes, load_codes, load_edges, load_labels, load_numbers

TABLE = "name,x,y,town,answer\na,1.5,0,north,yes\nb, 2 ,1,south,\nc,-3e1,2,north,no\nd,4,3,west,yes\n"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def test_numbers_of_those_who_are_kept(people: Path) -> None:
    column = load_column(str(people), column="answer", categories=["yes", "no"], missing="drop")
    assert column.kept is not None
    assert column.kept.tolist() == [True, False, True, True]
    found = load_numbers(str(people), ["y", "x"], n=column.n, kept=column.kept)
    assert found.tolist() == [[0.0, 1.5], [2.0, -30.0], [3.0, 4.0]]
    everybody = load_column(str(people), column="answer", categories=["yes", "no"], missing="no")
    assert everybody.kept is None
    assert load_numbers("people.csv", ["x"], n=4, base_folder=people.parent).tolist() == [[1.5], [2.0], [-30.0], [4.0]]


def test_two_readings_of_one_large_file_are_in_the_same_order(tmp_path: Path) -> None:
    n = 300_000
    rng = np.random.default_rng(5)
    answers = rng.integers(0, 7, n)
    frame = pl.DataFrame({"answer": answers.astype(str), "place": np.arange(n) * 7 + answers})
    frame.write_csv(tmp_path / "large.csv")
    for part in range(3):
        frame.slice(part * 100_000, 100_000).write_parquet(tmp_path / f"part-{part}.parquet", row_group_size=7001)
    for source in ("large.csv", "part-*.parquet"):
        column = load_column(source, column="answer", categories=[str(code) for code in range(7)], base_folder=tmp_path)
        places = load_numbers(source, ["place"], n=n, base_folder=tmp_path)[:, 0]
        assert np.array_equal(places % 7, column.values)


def test_labels_and_attributes(people: Path) -> None:
    kept = np.array([True, False, True, True])
    assert load_labels(str(people), "town", n=3, kept=kept).tolist() == ["north", "north", "west"]
    assert load_attributes(str(people), "x", n=4).tolist() == [[1.5], [2.0], [-30.0], [4.0]]
    assert load_attributes(str(people), "town", n=4).tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("town", "public column 'town' of .*: 4 of 4 records lack a finite number .records 1, 2, 3, 4, "),
        ("answer", "4 of 4 records lack a finite"),
        ("z", "has no column 'z'"),
    ],
)
def test_what_is_no_number_is_refused(people: Path, column: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        load_numbers(str(people), [column], n=4)
    assert "north" not in str(caught.value)


def test_missing_labels_are_counted_in_the_file(people: Path) -> None:
    with pytest.raises(DataError, match=r"'answer' of .*: 1 of 2 records are missing \(record 2, counted from 1\)"):
        load_labels(str(people), "answer", n=2, kept=np.array([False, True, True, False]))


def test_many_wrong_ones_are_not_all_listed(tmp_path: Path) -> None:
    path = tmp_path / "many.parquet"
    pl.DataFrame({"x": ["a"] * 9, "day": [None] * 9, "when": pl.Series([1] * 9).cast(pl.Date)}).write_parquet(path)
    with pytest.raises(DataError, match=r"records 1, 2, 3, 4, 5, \.\.\., counted"):
        load_numbers(str(path), ["x", "day"], n=9)
    with pytest.raises(DataError, match="column 'when' is of type Date"):
        load_numbers(str(path), ["when"], n=9)


def test_too_many_labels(tmp_path: Path) -> None:
    path = tmp_path / "many.parquet"
    pl.DataFrame({"town": [f"t{code}" for code in range(101)]}).write_parquet(path)
    with pytest.raises(DataError, match="more than 100 different labels"):
        load_attributes(str(path), "town", n=101)


def test_a_file_that_changed(people: Path) -> None:
    with pytest.raises(DataError, match="has changed while it was read: 4 records now"):
        load_numbers(str(people), ["x"], n=3)


def test_edges(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("from,to,since\n0,1,2001\n1,3,2002\n3,2,2003\n", encoding="utf-8")
    pl.DataFrame({"from": [2], "to": [3]}).write_parquet(tmp_path / "more.parquet")
    assert load_edges("edges.csv", n=4, base_folder=tmp_path).tolist() == [[0, 1], [1, 3], [3, 2]]
    assert load_edges("more.parquet", n=4, base_folder=tmp_path).tolist() == [[2, 3]]
    kept = np.array([True, False, True, True])
    assert load_edges("edges.csv", n=3, kept=kept, base_folder=tmp_path).tolist() == [[2, 1]]
    names = np.array(["3", "2", "1", "0"])
    assert load_edges("edges.csv", n=4, names=names, base_folder=tmp_path).tolist() == [[3, 2], [2, 0], [0, 1]]


def test_edges_that_join_nobody(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("from,to\n0,1\n1,4\n", encoding="utf-8")
    (tmp_path / "one.csv").write_text("from\n0\n", encoding="utf-8")
    (tmp_path / "gap.csv").write_text("from,to\n0,\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"1 of 4 entries of the edges name no record of the data\. Records are counted from 0"
    ):
        load_edges("edges.csv", n=3, base_folder=tmp_path)
    with pytest.raises(DataError, match="Names are compared as text"):
        load_edges("edges.csv", n=2, names=np.array(["a", "b"]), base_folder=tmp_path)
    with pytest.raises(DataError, match="two records have the same name"):
        load_edges("edges.csv", n=2, names=np.array(["a", "a"]), base_folder=tmp_path)
    with pytest.raises(DataError, match="must have two columns"):
        load_edges("one.csv", n=2, base_folder=tmp_path)
    with pytest.raises(DataError, match="a person of an edge is missing"):
        load_edges("gap.csv", n=2, base_folder=tmp_path)


def test_codes_are_labels_in_other_words(people: Path) -> None:
    labels = load_labels(str(people), "town", n=4)
    codes = load_codes(str(people), "town", n=4)
    assert [labels[codes == code].tolist() for code in range(3)] == [["north", "north"], ["south"], ["west"]]
    kept = np.array([False, True, True, True])
    assert sorted(load_codes(str(people), "town", n=3, kept=kept).tolist()) == [0, 1, 2]
    with pytest.raises(DataError, match=r"public column 'answer' of .*: 1 of 4 records are missing"):
        load_codes(str(people), "answer", n=4)
