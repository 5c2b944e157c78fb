"""CSV files as they come: other encodings and separators, and on which line a record stands."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.tables import csv_form
from hushuffle.tables.csv_form import CsvForm, lines_of
from hushuffle.tables.private import load_column
from hushuffle.tables.published import load_labels
from hushuffle.tables.reader import open_source
from oracles.csv_lines import first_lines

TEXT = 'town;note\nZürich;"two\nlines"\nGenève;x\nZürich;\n'
TOWNS = ("Zürich", "Genève")


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "utf-16", "utf-16-le", "cp850", "UTF-8", "utf-8-sig"])
@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
def test_every_encoding_gives_the_same_values(tmp_path: Path, encoding: str, name: str) -> None:
    content = TEXT.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    form = CsvForm(encoding=encoding, separator=";")
    found = load_column(name, column="town", categories=TOWNS, form=form, base_folder=tmp_path)
    assert found.values.tolist() == [0, 1, 0]
    assert load_labels(name, "town", n=3, base_folder=tmp_path, form=form).tolist() == ["Zürich", "Genève", "Zürich"]
    (part,) = open_source(name, base_folder=tmp_path, form=form)
    assert (part.count(), part.lines([1, 2, 3])) == (3, [2, 4, 5])


def test_blocks_are_cut_between_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [f"é{row}\n{row}" if row % 3 else f"é{row}" for row in range(200)]
    text = "\r\n\n" + "a,b\n" + "".join(f'{row},"{value}"\n' for row, value in enumerate(expected))
    (tmp_path / "x.csv").write_bytes(text.encode("latin-1"))
    for size in (3, 64, 1 << 22):
        monkeypatch.setattr(csv_form, "_BLOCK", size)
        (part,) = open_source("x.csv", base_folder=tmp_path, form=CsvForm(encoding="latin-1"))
        assert part.collect(pl.col("b"))["b"].to_list() == expected
        frames = list(part.batches(pl.col("a"), rows=50))
        assert pl.concat(frames)["a"].to_list() == [str(row) for row in range(200)]
        assert part.frame.head(2).collect().height == 2


@settings(deadline=None, max_examples=80)
@given(
    rows=st.lists(st.sampled_from(["a", "", '"x\ny"', '"q""q"', '"\n\n"', "é"]), max_size=30),
    blank=st.booleans(),
    size=st.integers(1, 40),
)
def test_lines_of_records_are_those_of_pythons_reader(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], blank: bool, size: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.csv"
    body = "names,z\n" + "".join(f"{row},1\n" for row in rows)
    path.write_text(("\n\n" if blank else "") + body, encoding="utf-8")
    expected = [line + 2 * blank for line in first_lines(body)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_form, "_BLOCK", size)
        assert lines_of(path, "utf-8", range(1, len(rows) + 1)) == expected


def test_tabs_separate_the_fields_of_a_tsv_file(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("id\tanswer\n1\tyes\n2\tno\n", encoding="utf-8")
    assert load_column("x.tsv", column="answer", categories=["no", "yes"], base_folder=tmp_path).values.tolist() == [
        1,
        0,
    ]


@pytest.mark.parametrize("encoding", ["klingon", "base64", "utf\0", ""])
def test_what_is_no_encoding(encoding: str) -> None:
    with pytest.raises(InvalidInputError, match='`encoding` must be the name of an encoding, such as "utf-8"'):
        CsvForm(encoding=encoding)


@pytest.mark.parametrize("separator", ["", "ab", '"', "\n", "x", "7", "§"])
def test_what_separates_no_fields(separator: str) -> None:
    with pytest.raises(InvalidInputError, match="`separator` must be one character"):
        CsvForm(separator=separator)


def test_a_file_of_another_encoding_than_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"answer\nyes\n" + b"\x81\n")
    with pytest.raises(DataError, match=r"x\.csv is not text in the specified encoding windows-1252") as caught:
        load_column(
            "x.csv",
            column="answer",
            categories=["yes", "no"],
            form=CsvForm(encoding="windows-1252"),
            base_folder=tmp_path,
        )
    assert "x81" not in str(caught.value)


def test_a_row_that_is_too_long_is_noticed_in_every_encoding(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes("a;b\né;1;2\n".encode("latin-1"))
    form = CsvForm(encoding="latin-1", separator=";")
    with pytest.raises(DataError, match="fields that contain semicolons"):
        load_column("x.csv", column="a", categories=["é", "x"], form=form, base_folder=tmp_path)


def test_a_packed_file_that_is_cut_off(tmp_path: Path) -> None:
    packed = gzip.compress("a\né\n".encode("latin-1") * 9999)
    (tmp_path / "x.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="cannot be unpacked: it may be cut off or damaged"):
        load_column(
            "x.csv.gz", column="a", categories=["é", "x"], form=CsvForm(encoding="latin-1"), base_folder=tmp_path
        )


def test_an_empty_file_of_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\n")
    with pytest.raises(DataError, match=r"x\.csv is empty"):
        load_column("x.csv", column="a", categories=["é", "x"], form=CsvForm(encoding="latin-1"), base_folder=tmp_path)


def test_lines_are_counted_in_a_file_with_other_bytes_where_nobody_reads(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"x,\xff\xfe\na,1\nSECRET,2\n")
    with pytest.raises(DataError, match=r"1 of 2 records match no category \(50 %; line 3\)"):
        load_column("x.csv", column="x", categories=["a", "b"], base_folder=tmp_path)
