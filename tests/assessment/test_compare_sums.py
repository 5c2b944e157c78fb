"""Sums beside each other and beside one message of each person: the figures are those of assess and of the library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hushuffle as hs
from hushuffle.assessment.chapters import Compared
from hushuffle.assessment.compare import compare, comparison_report
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.specification import build_protocol, load
from hushuffle.specification.sums import parse_sum

NUMBERS = 'n = 500\nkind = "number"\nlow = 0\nhigh = 120\nlevels = 5\n'
SUM = f"[population]\n{NUMBERS}[sum]\nepsilon = 1.0\ndelta = 1e-6\nhonest = HONEST\n"
MEAN = f"""
targets = {{ delta = 1e-6, epsilon = 0.1 }}
randomizer = {{ kind = "randomized-response", epsilon = 4.0 }}
shuffler = {{ kind = "uniform" }}
[population]
{NUMBERS}
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    texts = {"careful": SUM.replace("HONEST", "0.8"), "bold": SUM.replace("HONEST", "1.0"), "mean": MEAN}
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    return [tmp_path / f"{name}.toml" for name in texts]


def rows(compared: tuple[Compared, ...]) -> dict[str, tuple[object, ...]]:
    return {str(row[0]): row[1:] for row in comparison_report(compared).tables[0].rows}


def test_sums_and_means_stand_side_by_side_in_one_unit(files: list[Path]) -> None:
    found = compare(files)
    shown = rows(found)
    careful, bold = (parse_sum(file.read_text("utf-8")).build(500) for file in files[:2])
    mean = build_protocol(load(files[2]), n=500, k=5)
    error = hs.mean_error(mean, grid=hs.NumberGrid(low=0, high=120, levels=5))
    expected = [careful.standard_error(), bold.standard_error(), 500 * error]
    for cell, value in zip(shown["standard error of the sum"], expected, strict=False):
        assert isinstance(cell, hs.Bound)
        assert cell.upper == pytest.approx(value, rel=1e-12)
    for cell, value in zip(shown["standard error of the mean"], expected, strict=False):
        assert isinstance(cell, hs.Bound)
        assert cell.kind == "upper"
        assert cell.upper == pytest.approx(value / 500, rel=1e-12)
    assert shown["numbers"] == ("0 to 120, 5 levels",) * 3 + ("",)
    assert shown["messages of each person"][:3] == (str(careful.messages), str(bold.messages), "1")
    assert shown["bits of each person"][:2] == (str(careful.bits_per_person), str(bold.bits_per_person))
    assert shown["central epsilon"][:3] == (
        hs.dp.epsilon(careful, delta=1e-6),
        hs.dp.epsilon(bold, delta=1e-6),
        hs.dp.epsilon(mean, delta=1e-6),
    )
    assert shown["local epsilon"][:2] == (hs.dp.local_epsilon(careful), hs.dp.local_epsilon(bold))
    assert shown["delta"] == ("1e-06",) * 3 + ("",)
    fewer = hs.Protocol(randomizer=mean.randomizer, shuffler=mean.shuffler, n=400)
    colluded = shown["central epsilon, 100 colluders"]
    assert colluded[:2] == (hs.dp.epsilon(careful, delta=1e-6), "no guarantee")
    assert colluded[2] == hs.dp.epsilon(fewer, delta=1e-6)
    report = comparison_report(found)
    assert "in the unit of the numbers" in report.tables[0].caption
    changed = {str(row[0]): row[1:] for table in report.tables[2:] for row in table.rows}
    assert changed["sum.honest"] == ("0.8", "1.0", "")
    assert "statement.colluders" not in changed


def test_without_colluders_or_numbers_the_rows_are_left_out(files: list[Path], tmp_path: Path) -> None:
    assert not [row for row in rows(compare([files[1], files[1]])) if "colluders" in row]
    plain = tmp_path / "plain.toml"
    plain.write_text(
        'population = { n = 300, k = 3 }\nrandomizer = { kind = "randomized-response", epsilon = 1.0 }\n'
        'shuffler = { kind = "uniform" }\ntargets = { delta = 1e-6 }\n',
        encoding="utf-8",
    )
    report = comparison_report(compare([plain, plain]))
    assert report.tables[0].caption == ""
    assert not [row for row in report.tables[0].rows if "mean" in str(row[0])]


def test_the_program_takes_sums(files: list[Path], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "new"
    assert main(["compare", str(files[0]), str(files[2]), "--out", str(out), "--strict"]) == Exit.MISSED
    document = json.loads((out / "study.json").read_text(encoding="utf-8"))
    assert document["tables"][0]["columns"] == ["", "careful", "mean", "differs"]
    assert "sum by several messages" in capsys.readouterr().out
