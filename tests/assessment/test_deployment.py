"""Each verb asks a deployment, whatever kind it is: its figures are those of the report on it."""

from __future__ import annotations

from pathlib import Path

import pytest

import hushuffle as hs
from hushuffle.assessment.compare import compare, comparison_report
from hushuffle.assessment.deployment import opened
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import SpecificationError

COLUMNS = """
rounds = 2
population = { n = 100 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-3, epsilon = 0.9 }
[[columns]]
name = "one"
categories = ["a", "b"]
randomizer = { kind = "randomized-response", epsilon = 1.0 }
[[columns]]
name = "two"
categories = ["a", "b", "c"]
randomizer = { kind = "subset-selection", epsilon = 1.5, w = 1 }
"""
REACH = """
population = { people = 10_000, audiences = { tv = 3000, web = 2000 }, bits = 10_000 }
randomizer = { kind = "bit-flipping", p = 0.2 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6, epsilon = 0.5, standard_error = 0.05 }
run = { repetitions = 0 }
"""


def written(folder: Path, text: str, name: str = "deployment.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_several_columns_are_compared_by_the_figures_of_their_report(tmp_path: Path) -> None:
    looser = COLUMNS.replace("epsilon = 1.0", "epsilon = 2.0")
    files = [written(tmp_path, COLUMNS, "tight.toml"), written(tmp_path, looser, "loose.toml")]
    compared = compare(files)
    for file, one in zip(files, compared, strict=True):
        report = hs.assess(file)
        assert one.figures["central-dp"] == report.findings[0].figure
        assert one.facts["standard error"].upper == max(float(row[-1]) for row in report.tables[0].rows)  # type: ignore[union-attr, arg-type]
        assert one.k == 3
    rows = {str(row[0]): row[1:] for row in comparison_report(compared).tables[0].rows}
    assert rows["mechanism"][0] == "2 columns: randomized-response, subset-selection"
    assert rows["reports of each person"][0] == "4"
    assert rows["bits of each person"][0] == "5.17"
    assert rows["messages of each person"][0] == "4"
    changed = {str(row[0]): row[1:] for row in comparison_report(compared).tables[-1].rows}
    assert changed == {"columns.one.randomizer.epsilon": ("1.0", "2.0")}


def test_colluders_of_a_sum_are_assumed_for_columns_too(tmp_path: Path) -> None:
    population = 'population = { n = 100, kind = "number", low = 0, high = 120, levels = 5 }\n'
    total = written(tmp_path, f"{population}sum = {{ epsilon = 1.0, delta = 1e-6, honest = 0.9 }}\n", "sum.toml")
    _, columns = compare([total, written(tmp_path, COLUMNS)])
    colluding = columns.facts["central epsilon, 10 colluders"]
    assert isinstance(colluding, hs.Bound)
    assert colluding.upper > columns.figures["central-dp"].upper


def test_a_reach_study_is_calibrated_to_what_its_report_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, REACH)
    choice = opened(file).calibrate()
    assert choice.private is not None
    assert choice.accurate is not None
    for point in (choice.private, choice.accurate):
        p = point.settings["p"]
        report = hs.assess(written(tmp_path, REACH.replace("p = 0.2", f"p = {p!r}"), "chosen.toml"))
        assert report.findings[0].bound.upper == point.central.upper
        error = next(target.got for target in report.targets if target.key == "standard_error")
        assert error is not None
        assert error.upper == point.standard_error
    assert choice.private.central.upper <= 0.5
    assert choice.accurate.standard_error <= 0.05
    assert choice.met
    assert main(["calibrate", str(file)]) == Exit.DONE
    shown = capsys.readouterr().out
    assert f"Proposed: randomizer.p = {choice.private.settings['p']!r}." in shown


def test_a_reach_study_is_calibrated_for_accuracy_alone(tmp_path: Path) -> None:
    choice = opened(written(tmp_path, REACH.replace("epsilon = 0.5, ", ""))).calibrate()
    assert choice.private is None
    assert choice.proposed.standard_error == pytest.approx(0.05, rel=1e-3)
    with pytest.raises(SpecificationError, match="must be a value that some amount of noise achieves"):
        opened(
            written(tmp_path, REACH.replace("epsilon = 0.5, standard_error = 0.05", "standard_error = 1e-9"))
        ).calibrate()
    with pytest.raises(SpecificationError, match="must be given to calibrate"):
        opened(written(tmp_path, REACH.replace(", epsilon = 0.5, standard_error = 0.05", ""))).calibrate()


def test_each_column_is_audited_and_refuted_claims_name_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, COLUMNS.replace("rounds = 2\n", ""))
    words = ["audit", str(file), "--trials", "300", "--seed", "1", "--out", str(tmp_path / "audit")]
    assert main(words) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "one: Claims" in shown
    assert "two: Claims" in shown
    assert "at most 2.5 %" in shown
    assert "the guarantee of all columns together is composed from theirs" in shown.lower()


def test_additional_messages_of_several_columns_are_counted(tmp_path: Path) -> None:
    changes = {
        'kind = "uniform"': 'kind = "blanket-messages", p = 0.5',
        'kind = "subset-selection", epsilon = 1.5, w = 1': 'kind = "randomized-response", epsilon = 1.5',
        "n = 100": "n = 10",
        "delta = 1e-3": "delta = 1e-2",
    }
    blanket = COLUMNS
    for old, new in changes.items():
        blanket = blanket.replace(old, new)
    facts = opened(written(tmp_path, blanket)).compared("columns", 0).facts
    assert facts["messages of each person"] == "6"  # two columns in two rounds, 1.5 messages each
    assert facts["bits of each person"] == "7.755"  # 1 bit and log2(3) bits
