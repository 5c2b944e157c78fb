"""Tables in memory: the reports are those of the files, and tables of Polars, pandas, DuckDB and pyarrow are alike."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hushuffle.collection.collect import collect
from hushuffle.collection.request import Keys
from hushuffle.errors import DataError, InvalidInputError, UnsupportedProtocolError
from hushuffle.integrations.frames import collect_table
from hushuffle.specification import parse

SURVEY = """
population = {{ n = 300, categories = ["no", "yes"], {more} }}
randomizer = {{ kind = "{kind}", epsilon = 1.0 }}
shuffler = {{ kind = "{shuffler}" }}
targets = {{ delta = 1e-4 }}
"""
VOTES = pl.DataFrame({"id": range(300), "vote": ["no", "yes", "no"] * 100, "name": ["anna"] * 300})


def written(folder: Path, *, kind: str = "randomized-response", shuffler: str = "uniform") -> Path:
    path = folder / "survey.toml"
    path.write_text(SURVEY.format(kind=kind, shuffler=shuffler, more="").replace(",  }", " }"), encoding="utf-8")
    return path


def keys(folder: Path) -> Keys:
    return Keys(file=folder / "key", ids="id", new=not (folder / "key").exists())


def of_pandas(frame: pl.DataFrame) -> Any:
    pytest.importorskip("pyarrow")
    return pytest.importorskip("pandas").DataFrame(frame.to_dict(as_series=False))


def of_duckdb(frame: pl.DataFrame) -> Any:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    votes = frame.to_arrow()
    return duckdb.sql("select * from votes") if votes is not None else None


def of_pyarrow(frame: pl.DataFrame) -> Any:
    pytest.importorskip("pyarrow")
    return frame.to_arrow()


@pytest.mark.parametrize("table", [lambda frame: frame, of_pandas, of_duckdb, of_pyarrow])
def test_all_tables_have_the_reports_of_the_file(tmp_path: Path, table: Any) -> None:
    survey = written(tmp_path)
    VOTES.write_parquet(tmp_path / "votes.parquet")
    options: Any = {"out": tmp_path / "file", "sources": [str(tmp_path / "votes.parquet")], "keys": keys(tmp_path)}
    collect(parse(survey.read_text(encoding="utf-8")), column="vote", **options)
    reports = collect_table(table(VOTES), survey, out=tmp_path / "table", column="vote", keys=keys(tmp_path))
    own = pl.read_parquet(tmp_path / "file" / "reports.parquet")
    assert reports.columns == own.columns == ["report"]
    assert reports["report"].sort().equals(own["report"].sort())
    assert {path.name for path in tmp_path.iterdir()} >= {"file", "table"}
    assert not list(tmp_path.glob(".*"))


def test_duckdb_reads_the_reports(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    reports = collect_table(VOTES, written(tmp_path), out=tmp_path / "wave", column="vote")
    assert reports.height == 300
    assert duckdb.sql("select count(*) from reports").fetchall() == [(300,)]


def test_a_frame_has_the_namespace(tmp_path: Path) -> None:
    importlib.import_module("hushuffle.integrations.frames")
    reports = VOTES.shuffle.collect(written(tmp_path), out=tmp_path / "wave", column="vote")  # type: ignore[attr-defined]
    assert reports.shape == (300, 1)
    assert (tmp_path / "wave" / "manifest.json").exists()


def test_what_is_refused(tmp_path: Path) -> None:
    survey, out = written(tmp_path), tmp_path / "wave"
    with pytest.raises(InvalidInputError, match="Arrow interface"):
        collect_table([1, 2], survey, out=out, column="vote")
    with pytest.raises(DataError, match="the table") as refused:
        collect_table(VOTES.with_columns(vote=pl.lit("perhaps")), survey, out=out, column="vote")
    assert "anna" not in str(refused.value)
    with pytest.raises(DataError, match="age"):
        collect_table(VOTES, survey, out=out, column="age")
    with pytest.raises(DataError, match="--min-batch"):
        collect_table(VOTES, survey, out=out, column="vote", min_batch=1000)
    sums = written(tmp_path, kind="unary-encoding", shuffler="secure-aggregation")
    with pytest.raises(UnsupportedProtocolError, match="sums"):
        collect_table(VOTES, sums, out=out, column="vote")
    assert not out.exists()
