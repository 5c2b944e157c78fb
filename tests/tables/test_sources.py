from __future__ import annotations

import gzip
import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hushuffle.errors import DataError, MissingDependencyError
from hushuffle.tables import csv_form
from hushuffle.tables.categories import ANYTHING
from hushuffle.tables.csv_form import CsvForm, UnreadableFile, irregular_records
from hushuffle.tables.private import load_column, load_table
from hushuffle.tables.reader import TableReader, open_source

YES_NO = ("no", "yes")


def refused(source: str, folder: Path, column: str = "x") -> str:
    """Return the message, after checking that nothing of the data is in it, however it is printed."""
    with pytest.raises(DataError) as caught:
        load_column(source, column=column, categories=YES_NO, base_folder=folder)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def put(folder: Path, content: str | bytes, name: str = "people.csv") -> None:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nobody.csv", "nobody.csv does not exist. Relative paths start at the folder of the specification."),
        ("*.csv", "*.csv matches no file."),
        ("folder", "folder is a folder. Give the files in it, for example folder/*.csv."),
        ("folder/", "folder/ is a folder. Give the files in it, for example folder/*.csv."),
        ("fold*", "fold* matches no file."),
        ("notes.txt", "notes.txt: unsupported format (use .csv, .csv.gz, .tsv, .tsv.gz, .parquet)."),
        ("https://example.org/people.csv", "is not understood. Give a file on this machine"),
        ("statsmodels:fare", "statsmodels:fare is not a bundled data set. Did you mean 'fair'?"),
        ("statsmodels:os.path", "statsmodels:os.path is not a bundled data set."),
    ],
)
def test_nothing_there(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    put(tmp_path, "", "notes.txt")
    assert message in refused(source, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "people.csv is empty"),
        ("x,y\n", "no records."),
        (
            "a,b,answers\nSECRET,no,no\n",
            "people.csv has no column 'x' (number of columns: 3). Its first line must hold the names",
        ),
        ("id,X\n1,no\n", "(number of columns: 2). A column has almost this name: capital letters and spaces"),
        ("SECRET,hiv\nbob,no\n", "Check that this line is there and that it closes each quotation mark."),
        ('id,"ans,SECRET\n1,SECRET+,no\n2,SECRET,yes\n', "(number of columns: 2). Its first line must hold the names"),
        ("id;x\n1;SECRET\n", "its fields are not separated by commas."),
        ("x,y,x\nno,SECRET,no\n", "column 'x' occurs twice"),
        ("x,name\nno,Smith, SECRET\n", "more than the "),
        ("x,y,z\nno,SECRET,no\nno,SECRET,no,no\n", "more than the "),
        ('x\nno\n"SECRET\nno\n', "a quotation mark is never closed"),
        ("x\nno\nñSECRET\n".encode("latin1"), "people.csv is not UTF-8 text. Save it as UTF-8, for example: iconv"),
        ("x,y\nno,ñSECRET\n".encode("latin1"), "is not UTF-8 text"),
        ("x\nno\n".encode("utf-16"), "is not UTF-8 text"),
    ],
)
def test_broken_csv(tmp_path: Path, content: str | bytes, message: str) -> None:
    put(tmp_path, content)
    assert message in refused("people.csv", tmp_path)


def test_a_stray_quotation_mark_shows_no_record(tmp_path: Path) -> None:
    """All records are then names of columns."""
    put(tmp_path, 'id,"ans,name\n' + "".join(f"{one},SECRET+,patient SECRET{one}\n" for one in range(5000)))
    assert len(refused("people.csv", tmp_path)) < 300


def test_types_show_no_value(tmp_path: Path) -> None:
    odd = pl.Series([{"SECRET": "no"}]), pl.Series(["no"], dtype=pl.Enum(["SECRET", "no"]))
    pl.DataFrame({"x": odd[0], "y": odd[1]}).write_parquet(tmp_path / "odd.parquet")
    assert "column 'x' is of type Struct. It must hold" in refused("odd.parquet", tmp_path)
    with pytest.raises(DataError, match=r"column 'y' is of type Enum\. It must hold numbers") as caught:
        load_table("odd.parquet", categories={}, numbers=["y"], base_folder=tmp_path)
    assert "SECRET" not in str(caught.value)


def test_a_found_file_is_called_by_its_name(tmp_path: Path) -> None:
    put(tmp_path, "x\nno\n", "monday.csv")
    put(tmp_path, "x\nmaybe\n", "tuesday.csv")
    assert "line 2 of tuesday.csv)" in refused("*.csv", tmp_path)


@pytest.mark.parametrize("form", [CsvForm(), CsvForm(encoding="utf-16"), CsvForm(separator=";")])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ["no,a,b", "no,a,b,c"],
            "the number of fields in the row that begins in line 4 is 4, more than the 3 names in the first line.",
        ),
        (
            ["no,a,b", "no,a"],
            "the number of fields in the row that begins in line 4 is 2, less than the 3 names in the first line.",
        ),
        (
            ["no,a,b", "no"],
            "the number of fields in the row that begins in line 4 is 1, less than the 3 names in the first line.",
        ),
        (
            ['no,"a\n\n",b', "no,a"],
            "the number of fields in the row that begins in line 6 is 2, less than the 3 names in the first line.",
        ),
        (['no,"a,b', "no,a,b"], "a quotation mark is never closed in the row that begins in line 3."),
        (['no,"a,b', 'no,"a",b', 'no,"a",b'], "line 3"),
        (
            ["no,a,b", "", "no,a,b,c"],
            "the number of fields in the row that begins in line 5 is 4, more than the 3 names in the first line.",
        ),
    ],
)
def test_a_row_that_does_not_fit_is_named_by_its_line(
    tmp_path: Path, rows: list[str], message: str, form: CsvForm
) -> None:
    text = "".join(f"{row}\n" for row in ["", "x,y,z", *rows, *["no,a,b"] * 5])
    path = tmp_path / "people.csv"
    path.write_bytes((text.replace(",", ";") if form.separator else text).encode(form.encoding))
    for columns in (["x"], ["x", "y"]):
        wanted = {column: (column, ANYTHING) for column in columns}
        for size in (None, 2):
            with pytest.raises(UnreadableFile) as caught:
                list(TableReader(open_source("people.csv", base_folder=tmp_path, form=form), wanted).blocks(rows=size))
            assert message in str(caught.value)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 22])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_rows_that_fit_are_all_read(tmp_path: Path, block: int, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_form, "_BLOCK", block)
    text = '\ufeff\nx,"y ""q"" ,"\nno,\n"no","a,\n""b"\n\n,\nno,last'.replace("\n", ending)
    put(tmp_path, text.encode())
    assert not list(irregular_records(tmp_path / "people.csv", CsvForm()))
    found = load_column("people.csv", column="x", categories=YES_NO, base_folder=tmp_path, missing="?")
    assert found.population().counts == (3, 0, 2)
    put(tmp_path, f"{text}{ending}no".encode())
    (odd,) = irregular_records(tmp_path / "people.csv", CsvForm())
    assert (odd.line, odd.fields, odd.names, odd.several, odd.open) == (9, 1, 2, False, False)


def test_broken_parquet(tmp_path: Path) -> None:
    put(tmp_path, b"", "a.parquet")
    put(tmp_path, b"PAR1" + b"SECRET" * 40 + b"PAR1", "b.parquet")
    pl.DataFrame({"x": ["no"] * 5000, "y": range(5000)}).write_parquet(tmp_path / "c.parquet")
    content = (tmp_path / "c.parquet").read_bytes()
    put(tmp_path, content[:-100], "c.parquet")
    for name in ("a", "b", "c"):
        assert f"{name}.parquet is not a readable Parquet file" in refused(f"{name}.parquet", tmp_path)
    pl.DataFrame({"y": [1]}).write_parquet(tmp_path / "d.parquet")
    assert "d.parquet has no column 'x' (number of columns: 1). Capital letters and spaces matter." in refused(
        "d.parquet", tmp_path
    )


def test_broken_packing(tmp_path: Path) -> None:
    whole = gzip.compress(b"x\n" + b"no\n" * 10_000)
    for content in (b"\x1f\x8b\x08\x00SECRET", whole[:-20], whole[:20] + b"SECRET" + whole[20:]):
        put(tmp_path, content, "people.csv.gz")
        assert refused("people.csv.gz", tmp_path).startswith("people.csv.gz cannot be ")
    numbers = np.random.default_rng(1).integers(10**9, size=200_000)
    put(tmp_path, gzip.compress(b"y\n" + "\n".join(map(str, numbers)).encode(), 1)[:-20], "people.csv.gz")
    assert "people.csv.gz cannot be unpacked" in refused("people.csv.gz", tmp_path)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "x\nno\n")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pl.LazyFrame, "collect_schema", refuse)
    assert refused("people.csv", tmp_path) == "people.csv cannot be read: Permission denied."


def test_names_with_brackets_are_names_first(tmp_path: Path) -> None:
    put(tmp_path, "x\nno\n", "people[1].csv")
    put(tmp_path, "x\nyes\n", "people1.csv")
    found = load_column("people[1].csv", column="x", categories=YES_NO, base_folder=tmp_path)
    assert found.population().counts == (1, 0)


def test_relative_and_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep[er]" / "down").mkdir(parents=True)
    put(tmp_path / "deep[er]", "x\nyes\n", "down/people.csv")
    monkeypatch.chdir(tmp_path / "deep[er]")
    for source, folder in (("down/people.csv", None), ("**/*.csv", None), (str(tmp_path / "*/*/*.csv"), Path("zzz"))):
        assert load_column(source, column="x", categories=YES_NO, base_folder=folder).n == 1


def test_text_and_missing_values_of_a_bundled_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"x": ["no", None, "yes", float("nan")], 7: [1, 2, 3, 4]})
    fake = ModuleType("statsmodels.datasets.fair")
    fake.load_pandas = lambda: type("Dataset", (), {"data": table})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "statsmodels.datasets.fair", fake)
    found = load_column("statsmodels:fair", column="x", categories=YES_NO, missing="?")
    assert found.population().counts == (1, 1, 2)
    assert load_column("statsmodels:fair", column="7", categories={"a": "< 3", "b": ">= 3"}).n == 4


def test_statsmodels_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> ModuleType:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingDependencyError, match=r"hushuffle\[examples\]"):
        load_column("statsmodels:fair", column="affairs", categories=YES_NO)


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252"])
def test_quotation_marks_in_the_name_of_a_column(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "quoted.csv"
    path.write_text('id,"a ""b"" c"\n1,x\n2,"y ""z"""\n', encoding=encoding)
    (part,) = open_source("quoted.csv", base_folder=tmp_path, form=CsvForm(encoding=encoding))
    assert part.schema().names() == ["id", 'a "b" c']
    assert part.collect(pl.col('a "b" c')).to_series().to_list() == ["x", 'y "z"']
    path.write_bytes(path.read_bytes()[:5] + b'""')
    (part,) = open_source("quoted.csv", base_folder=tmp_path)
    with pytest.raises(DataError, match="has no column 'b'"):
        part.columns("b")
    packed = tmp_path / "cut.csv.gz"
    packed.write_bytes(gzip.compress(b'"a""b"\n' * 1000)[:40])
    (part,) = open_source("cut.csv.gz", base_folder=tmp_path)
    with pytest.raises(DataError, match=r"cut\.csv\.gz cannot be"):
        part.collect(pl.all())
