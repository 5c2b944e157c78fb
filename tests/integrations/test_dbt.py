"""The example of dbt: its model gives shuffled reports, and never twice."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from hushuffle.errors import DataError

EXAMPLE = Path(__file__).parents[2] / "examples" / "dbt"


def of_duckdb(query: str) -> Any:
    pytest.importorskip("pyarrow")
    return pytest.importorskip("duckdb").sql(query)


def of_polars(query: str) -> Any:
    assert "person % 3 = 0" in query
    return pl.DataFrame({"vote": ["no" if person % 3 else "yes" for person in range(300)]})


@pytest.mark.parametrize("table", [of_polars, of_duckdb])
def test_the_model_returns_shuffled_reports_only_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: Any
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "dbt")
    monkeypatch.chdir(tmp_path / "dbt")
    refs = {"votes": table(Path("models/votes.sql").read_text(encoding="utf-8"))}
    dbt = SimpleNamespace(config=lambda **_: None, ref=refs.__getitem__)
    model = runpy.run_path("models/reports.py")["model"]
    reports = model(dbt, None)
    assert (reports.columns, reports.height) == (["report"], 300)
    assert 50 < int(reports["report"].sum()) < 170
    with pytest.raises(DataError, match="wave-1 exists"):
        model(dbt, None)


@pytest.mark.skipif("HUSHUFFLE_DBT" not in os.environ, reason="HUSHUFFLE_DBT names no dbt with duckdb")
def test_dbt_builds_the_model_only_once(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "dbt")
    built, again = (
        subprocess.run(
            [os.environ["HUSHUFFLE_DBT"], "build", "--profiles-dir", "."],
            cwd=tmp_path / "dbt",
            capture_output=True,
            text=True,
            check=False,
        )
        for _ in range(2)
    )
    assert "PASS=2 WARN=0 ERROR=0" in built.stdout
    assert "wave-1 exists and is not empty" in again.stdout
    assert (tmp_path / "dbt" / "wave-1" / "manifest.json").is_file()
