"""Pictures and numbers of a report as files of their own."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import polars as pl
import pytest

from hushuffle import report
from hushuffle.model import Bound, Chart, Report, Series, Table
from hushuffle.report.figures import figure_files
from report.studies import BRACKET, study


def test_every_picture_and_every_table_has_its_files() -> None:
    made = study()
    files = figure_files(made)
    pictures = len(made.charts) + len(made.heat_maps) + len(made.maps) + len(made.diagrams)
    assert sum(name.endswith(".svg") for name in files) == pictures
    assert sum(name.endswith(".png") for name in files) == pictures
    assert sum(name.startswith("table-") for name in files) == 2 * len(made.tables)
    for name, content in files.items():
        if name.endswith(".svg"):
            assert ET.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own
            assert b"http" not in content.replace(b"http://www.w3.org/2000/svg", b"")
        if name.endswith(".png"):
            assert content.startswith(b"\x89PNG")


def test_numbers_of_a_chart_are_its_points() -> None:
    lines = (Series.through("a bracket", (1.0, 2.0), (BRACKET, 0.5)), Series.through("b", (1.0,), (0.25,)))
    chart = Chart(key="Two lines", title="T", caption="", x_label="x", y_label="y", series=lines)
    files = figure_files(Report(title="T", question="Q?", key="a/b", charts=(chart,)))
    table = pl.read_parquet(io.BytesIO(files["figure-two-lines.parquet"]))
    assert table.rows() == [
        ("a bracket", 1.0, BRACKET.lower, BRACKET.upper),
        ("a bracket", 2.0, 0.5, 0.5),
        ("b", 1.0, 0.25, 0.25),
    ]
    assert pl.read_csv(files["figure-two-lines.csv"]).rows() == table.rows()


def test_a_figure_in_a_table_keeps_both_ends_and_its_kind() -> None:
    upper = Bound(lower=0.0, upper=0.5, kind="upper", unit="nats")
    rows = (("a", 1, BRACKET, 0.5), ("b", 2, upper, 1), ("c", 3, "none", 2), ("d", 4, 7.0, 3))
    made = Table(key="t", title="T", caption="", columns=("name", "n", "epsilon", "x"), rows=rows)
    files = figure_files(Report(title="T", question="Q?", key="a/b", tables=(made, made)))
    table = pl.read_csv(files["table-t.csv"])
    assert table.columns == ["name", "n", "epsilon, lower", "epsilon, upper", "epsilon, kind", "x"]
    assert table["epsilon, kind"].to_list() == ["bracket", "upper", "none", "number"]
    assert table["epsilon, upper"].to_list() == [BRACKET.upper, 0.5, None, 7.0]
    assert table["n"].to_list() == [1, 2, 3, 4]
    assert files["table-t-2.csv"] == files["table-t.csv"]


def test_an_upper_bound_is_one_line_and_a_bracket_a_band() -> None:
    upper = Bound(lower=0.0, upper=0.5, kind="upper", unit="nats")
    lower = Bound(lower=0.25, upper=1.0, kind="lower", unit="probability")
    line = Series.through("figures", (1, 2, 3, 4), (upper, lower, BRACKET, 3.0))
    assert line.lower == (0.5, 0.25, BRACKET.lower, 3.0)
    assert line.upper == (0.5, 0.25, BRACKET.upper, 3.0)


def test_files_are_written_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report.write(study(), tmp_path / "a", figures=True)
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert {"study.html", "study.json"} < names
    assert any(name.endswith(".png") for name in names)
    json.loads((tmp_path / "a" / "study.json").read_text())
    monkeypatch.setattr("hushuffle.report.files.to_json", lambda _report: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.write(study(), tmp_path / "b", figures=True)
    assert not (tmp_path / "b").exists()
