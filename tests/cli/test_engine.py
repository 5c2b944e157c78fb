from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from spark_session import NEEDS_SPARK, session

SPECIFICATION = """
population = { data = "people.parquet", column = "answer", categories = ["no", "yes"], missing = "drop" }
randomizer = { kind = "randomized-response", epsilon = 2.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "town.toml").write_text(SPECIFICATION, encoding="utf-8")
    pl.DataFrame({"id": range(301), "answer": [*["yes", "no", "no"] * 100, None]}).write_parquet(
        tmp_path / "people.parquet"
    )
    key = tmp_path / "town.key"
    key.write_text("1f" * 32, encoding="ascii")
    key.chmod(0o600)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", [["collect", "town.toml", "--out", "out"], ["estimate", "out"]])
def test_a_cluster_goes_with_spark(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--master", "local[2]"]) == Exit.USAGE
    assert "--master needs --engine spark" in capsys.readouterr().err


def test_spark_is_not_installed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util  # noqa: PLC0415 - only here

    find: Any = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyspark" else find(name))
    assert main(["collect", "town.toml", "--out", "out", "--engine", "spark"]) == Exit.FAILED
    assert 'pip install "hushuffle[spark]"' in capsys.readouterr().err
    assert not Path("out").exists()


class TestWithSpark:
    pytestmark = NEEDS_SPARK

    def test_both_engines(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        session()
        key = ["--key-file", "town.key", "--id", "id"]
        assert main(["collect", "town.toml", "--out", "out", *key, "--new-key", "--engine", "spark"]) == Exit.DONE
        shown = capsys.readouterr().out
        assert "300 people" in shown
        assert "Dropped 1 record without an answer" in shown
        assert sorted(path.name for path in Path("out").iterdir()) == ["manifest.json", "reports.parquet"]
        assert main(["collect", "town.toml", "--out", "again", *key]) == Exit.DONE
        assert "This batch was collected before" in capsys.readouterr().out
        first, again = (pl.read_parquet(f"{out}/reports.parquet")["report"].sort() for out in ("out", "again"))
        assert first.equals(again)
        for more in ([], ["--engine", "spark", "--master", "local[2]"]):
            assert main(["estimate", "out", "--json", *more]) == Exit.DONE
        one, other = capsys.readouterr().out.split("}\n{")
        assert one.strip("{}\n") == other.strip("{}\n")
        Path("out/reports.parquet").unlink()
        assert main(["estimate", "out", "--engine", "spark"]) == Exit.FAILED
        assert "reports.parquet does not exist" in capsys.readouterr().err

    def test_several_columns(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("several.toml").write_text(
            """
            population = { data = "people.parquet" }
            shuffler = { kind = "uniform" }
            targets = { delta = 1e-6 }
            [[columns]]
            column = "answer"
            categories = ["no", "yes"]
            missing = "drop"
            randomizer = { kind = "randomized-response", epsilon = 1.0 }
            """,
            encoding="utf-8",
        )
        assert main(["collect", "several.toml", "--out", "out", "--engine", "spark"]) == Exit.DONE
        assert "Dropped 1" in capsys.readouterr().out
        assert sorted(str(path.relative_to("out")) for path in Path("out").rglob("*.*")) == [
            "answer/manifest.json",
            "answer/reports.parquet",
            "manifest.json",
        ]
