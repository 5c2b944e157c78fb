"""A matrix in a file: what is read, and what is refused, with the place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.errors import DataError
from hushuffle.tables import value_files as matrix_files
from hushuffle.tables.value_files import load_matrix

HUGE = (
    b"\x93NUMPY\x01\x00v\x00"
    + b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1000000000000), }".ljust(117)
    + b"\n"
)
ROWS = [[0.5, 0.25, 0.25], [0.1, 0.7, 0.2]]


def test_every_format_gives_the_same_rows(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "m.csv", ROWS, delimiter=",")
    np.save(tmp_path / "m.npy", np.array(ROWS))
    pl.DataFrame(ROWS, schema=["a", "b", "c"], orient="row").write_parquet(tmp_path / "m.parquet")
    for name in ("m.csv", "m.npy", "m.parquet"):
        assert load_matrix(name, base_folder=tmp_path) == ROWS


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.csv", b"0.5,0.5\n0.1,x\n", r"m\.csv, line 2: write numbers, separated by commas, without a header"),
        ("m.csv", b"0.5,0.5\n\n0.1\n", r"m\.csv, line 3: 1 numbers, but 2 in the first line"),
        ("m.csv", b"\xff\xfe\x00", r"m\.csv is not text"),
        ("m.csv", b'"' + b"a" * 200_000, r"m\.csv is not a CSV file of numbers"),
        ("m.npy", b"nonsense", r"m\.npy is not a NumPy file of numbers"),
        ("m.npy", b"", r"m\.npy is not a NumPy file of numbers"),
        ("m.parquet", b"nonsense", r"m\.parquet is not a readable Parquet file"),
        ("m.txt", b"1 0", r"m\.txt must end in \.csv, \.parquet, \.npy"),
        ("m.csv", b"", r"m\.csv must have a row for each of two or more values, and has 0"),
        ("m.csv", b"0.5,0.5\n", r"m\.csv must have a row for each of two or more values, and has 1"),
        ("m.csv", b"0.5,0.5\n34.5,61\n", r"m\.csv, row 2: a number is not a probability from 0 to 1"),
        ("m.csv", b"0.5,0.5\nnan,1\n", r"m\.csv, row 2: a number is not a probability"),
        ("m.csv", b"0.5,0.5\n0.3,0.6\n", r"m\.csv, row 2: the probabilities do not sum to 1\. Rows are values"),
        ("m.csv", b"0.5,0.5\n0.3333333,0.6666666\n", r"m\.csv, row 2: .* Save it in double precision"),
        ("m.csv", (b"0," * 10_000 + b"1\n") * 2, r"m\.csv must have at most 20,000 numbers, and has 2 rows of 10,001"),
        ("m.npy", HUGE, r"m\.npy is not a NumPy file of numbers"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as refused:
        load_matrix(name, base_folder=tmp_path)
    assert "34.5" not in str(refused.value)


def test_other_tables_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "line.npy", np.array([1.0, 0.0]))
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    np.savez(tmp_path / "several.npz", a=np.eye(2))
    (tmp_path / "several.npz").rename(tmp_path / "several.npy")
    for name in ("line.npy", "words.npy", "several.npy"):
        with pytest.raises(DataError, match="must hold one array of numbers with two dimensions"):
            load_matrix(name, base_folder=tmp_path)
    pl.DataFrame({"a": ["x"], "b": [1.0]}).write_parquet(tmp_path / "words.parquet")
    pl.DataFrame({"a": [None, 0.5], "b": [1.0, 0.5]}).write_parquet(tmp_path / "gaps.parquet")
    for name in ("words.parquet", "gaps.parquet"):
        with pytest.raises(DataError, match="must have columns of numbers only, none missing"):
            load_matrix(name, base_folder=tmp_path)
    with pytest.raises(DataError, match=r"absent\.csv cannot be read: "):
        load_matrix("absent.csv", base_folder=tmp_path)
    (tmp_path / "zeros.csv").symlink_to("/dev/zero")
    (tmp_path / "folder.csv").mkdir()
    for name in ("zeros.csv", "folder.csv"):
        with pytest.raises(DataError, match="is not a regular file"):
            load_matrix(name, base_folder=tmp_path)
    monkeypatch.setattr(matrix_files, "_LARGEST_FILE", 1)
    with pytest.raises(DataError, match=r"line\.npy is too large for a matrix"):
        load_matrix("line.npy", base_folder=tmp_path)


@pytest.mark.parametrize("name", ["aborts.parquet", "panics.parquet"])
def test_a_parquet_file_that_ends_its_reader_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="not a readable Parquet file"):
        load_matrix(name, base_folder=Path(__file__).parents[1] / "fuzz" / "corpus")


def test_a_header_that_is_no_python_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.eye(2))
    content = (tmp_path / "m.npy").read_bytes()
    (tmp_path / "m.npy").write_bytes(content.replace(b"}     ", b"} 9 ( "))
    with pytest.raises(DataError, match="not a NumPy file of numbers"):
        load_matrix("m.npy", base_folder=tmp_path)
