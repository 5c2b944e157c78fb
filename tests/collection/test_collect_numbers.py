"""Numbers, from a specification to a report, a release and an estimate."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.collection.engines import local
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.model import NumberGrid, number
from hushuffle.randomness import reproducible
from hushuffle.tables.categories import Answers
from hushuffle.tables.private import load_column

REST = '[shuffler]\nkind = "uniform"\n[targets]\ndelta = 1e-6\n'
GRID = NumberGrid(low=0, high=10, levels=5)


def survey(folder: Path, *, epsilon: str = '"inf"', data: str = "people.csv", more: str = "") -> Path:
    path = folder / "survey.toml"
    path.write_text(
        f'[population]\ndata = "{data}"\ncolumn = "x"\nkind = "number"\nlow = 0\nhigh = 10\nlevels = 5\n{more}'
        f'[randomizer]\nkind = "randomized-response"\nepsilon = {epsilon}\n{REST}[run]\nrepetitions = 0\n',
        encoding="utf-8",
    )
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def estimated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    capsys.readouterr()
    assert main(["estimate", *arguments, "--json"]) == Exit.DONE
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_numbers_are_collected_and_their_mean_and_quantiles_estimated(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "secure", lambda: reproducible(1))  # an interval misses the mean in one run of twenty
    numbers = np.linspace(0, 8, 4000)
    pl.DataFrame({"x": numbers}).write_csv("people.csv")
    assert main(["collect", str(survey(folder, epsilon="3.0")), "--out", "made"]) == Exit.DONE
    found = estimated(capsys, "made")["numbers"]
    assert isinstance(found, dict)
    assert found["low"] < numbers.mean() < found["high"]
    assert abs(found["mean"] - 4) < 6 * found["standard_error"] < 1
    assert [one["share"] for one in found["quantiles"]] == [0.1, 0.25, 0.5, 0.75, 0.9]
    assert all(one["low"] <= one["value"] <= one["high"] for one in found["quantiles"])
    assert found["quantiles"][2]["low"] <= 4 <= found["quantiles"][2]["high"]
    assert found["levels"] == [0, 2.5, 5, 7.5, 10]
    assert sum(found["smoothed"]) == pytest.approx(1)
    assert main(["estimate", "made"]) == Exit.DONE
    out = capsys.readouterr().out
    assert "Mean" in out
    assert "Median" in out
    assert "Standard error of the mean" in out
    assert "If 40 Sybil clients (1 in 100) took part, they could move the mean up by at most " in (
        " ".join(out.split())
    )
    assert found["fake_users"]["following_the_protocol"] == pytest.approx(0.1)
    assert found["fake_users"]["raised"] == pytest.approx(found["fake_users"]["lowered"])
    assert 0.1 < found["fake_users"]["raised"] < 0.2


def test_collections_of_different_people_add_up_if_their_levels_are_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("a", 0.0), ("b", 10.0)):
        pl.DataFrame({"x": [value] * 50}).write_csv(f"{name}.csv")
        assert main(["collect", str(survey(folder, data=f"{name}.csv")), "--out", name]) == Exit.DONE
    found = estimated(capsys, "a", "b")["numbers"]
    assert isinstance(found, dict)
    assert found["mean"] == pytest.approx(5)


def test_numbers_outside_are_the_bounds_and_only_their_share_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.DataFrame({"x": [-7.125, 5.0, 5.0, 123456.5]}).write_csv("people.csv")
    path = survey(folder)
    assert main(["collect", str(path), "--out", "made"]) == Exit.DONE
    out = capsys.readouterr().out
    assert "50 % of the numbers were outside the bounds" in " ".join(out.split())
    released = b"".join(file.read_bytes() for file in (folder / "made").iterdir())
    assert b"123456" not in released
    assert b"outside" not in released
    assert pl.read_parquet("made/reports.parquet")["report"].sort().to_list() == [0, 2, 2, 4]
    assert main(["assess", str(path), "--out", "report"]) == Exit.DONE
    text = (folder / "report" / "result.json").read_text(encoding="utf-8")
    assert "50 % of the numbers are outside the bounds" in text
    assert "123456" not in text
    assert "7.125" not in text


def test_assess_tells_the_error_of_the_mean_to_be_expected(folder: Path) -> None:
    pl.DataFrame({"x": [1.0, 2.0, 3.0, 9.0] * 10}).write_csv("people.csv")
    assert main(["assess", str(survey(folder, epsilon="2.0")), "--out", "report"]) == Exit.DONE
    result = json.loads((folder / "report" / "result.json").read_text(encoding="utf-8"))
    (table,) = [table for table in result["tables"] if table["key"] == "mean-of-numbers"]
    error, relative, step = (row[1] for row in table["rows"])
    assert error == pytest.approx(10 * relative)
    assert 0.5 < error < 3
    assert step == 2.5
    shown = f"Standard error of the mean: at most {number(error, up=True)}."
    assert "Numbers from 0 to 10 are rounded stochastically to 5 levels, 2.5 apart;" in result["deployment"]
    assert result["deployment"].endswith(shown)
    assert "small-groups" not in {warned["key"] for warned in result["warnings"]}


@pytest.mark.parametrize("wrong", ["hello 4711", "12,5", "inf", "-Infinity", "1e999"])
def test_what_is_no_number_is_refused_by_its_line_and_not_shown(
    folder: Path, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    (folder / "people.csv").write_text(f'x\n1\n"{wrong}"\n3\n', encoding="utf-8")
    for verb in ("assess", "collect"):
        assert main([verb, str(survey(folder)), "--out", "made"]) != Exit.DONE
        message = " ".join(capsys.readouterr().err.split())
        assert "1 of 3 records hold no finite number (33.3 %; line 3). Values must be numbers with a deci" in message
        assert "categor" not in message
        assert "otherwise" not in message
        assert wrong not in message
        assert not (folder / "made").exists()


def test_missing_numbers_are_refused_or_dropped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "people.csv").write_text("x,y\n1,a\n,b\nNaN,c\n3,d\n", encoding="utf-8")
    assert main(["collect", str(survey(folder)), "--out", "made"]) != Exit.DONE
    message = " ".join(capsys.readouterr().err.split())
    assert '2 of 4 records are missing (50 %; lines 3, 4). Set missing = "drop". Empty fields' in message
    assert main(["collect", str(survey(folder, more='missing = "drop"\n')), "--out", "made"]) == Exit.DONE
    assert pl.read_parquet("made/reports.parquet").height == 2


def test_a_table_reads_positions_as_the_library_does(folder: Path) -> None:
    numbers = [0.0, 0.1, 1.25, 3.3333333, 9.999999, 10.0, -1.0, 11.0, 1e308, -1e308]
    pl.DataFrame({"x": numbers}).write_parquet("people.parquet")
    rule = Answers.of(GRID, "refuse").coding
    codes = pl.read_parquet("people.parquet").select(rule.codes(rule.reading("x", pl.Float64()))).to_series()
    assert codes.to_list() == GRID.positions(numbers).tolist()
    assert rule.grid == GRID
    column = load_column("people.parquet", column="x", categories=GRID, base_folder=folder)
    assert set(column.values.tolist()) <= set(range(5))
    assert column.domain.labels == ("0", "2.5", "5", "7.5", "10")


def test_a_keyed_record_repeats_its_rounding_and_its_report() -> None:
    kernel = Kernel(randomizer=RandomizedResponse(k=5, epsilon=1.0), grid=GRID, key=os.urandom(32))
    places, records = GRID.positions(np.linspace(0, 10, 300)), np.arange(300, dtype=np.uint64)
    whole = kernel.reports(places, records=records)
    turned = np.argsort(-places, kind="stable")
    assert np.array_equal(kernel.reports(places[turned], records=records[turned]), whole[turned])


def test_a_keyed_collection_of_numbers_is_repeated(folder: Path) -> None:
    pl.DataFrame({"id": range(200), "x": np.linspace(0, 10, 200)}).write_csv("people.csv")
    path = str(survey(folder, epsilon="1.0"))
    first = ["collect", path, "--key-file", "key", "--id", "id"]
    assert main([*first, "--new-key", "--out", "a"]) == Exit.DONE
    assert main([*first, "--out", "b"]) == Exit.DONE
    a, b = (pl.read_parquet(f"{name}/reports.parquet")["report"].sort() for name in ("a", "b"))
    assert a.to_list() == b.to_list()
