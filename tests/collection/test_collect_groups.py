"""Files with [[groups]]: what they say, what is wrong with them, their report, their release and its estimate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.assessment.deployment import assess
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import SpecificationError
from hushuffle.estimation.readout import ByGroups
from hushuffle.model import Bound
from hushuffle.questions import dp
from hushuffle.specification import load_collection
from hushuffle.specification.mixed import MixedSpecification, is_mixed, load_deployment, parse_mixed

pytestmark = pytest.mark.usefixtures("no_charts")
EXAMPLE = Path(__file__).parents[2] / "examples" / "groups.toml"
LABELS = ["foot", "bicycle", "bus", "car"]
TEXT = """
group_column = "tier"
[population]
data = "people.csv"
column = "travel"
categories = ["foot", "bicycle", "bus", "car"]
missing = "drop"
[[groups]]
name = "careful"
randomizer = { kind = "randomized-response", epsilon = 1.0 }
[[groups]]
name = "open"
randomizer = { kind = "randomized-response", epsilon = 6.0 }
[shuffler]
kind = "uniform"
[targets]
delta = 1e-4
"""
SIZES = (1500, 500)
DUMMIES = ('kind = "uniform"', 'kind = "scrambler"\ndummies = 40')


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(2)
    tier = rng.permutation(np.repeat(["careful", "open", "open"], [*SIZES, 3]))
    travel = np.where(tier == "open", rng.choice(LABELS, 2003, p=[0.1, 0.1, 0.1, 0.7]), rng.choice(LABELS, 2003))
    travel[np.flatnonzero(tier == "open")[:3]] = ""
    pl.DataFrame({"tier": tier, "travel": travel}).write_csv(tmp_path / "people.csv")
    (tmp_path / "groups.toml").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def altered(folder: Path, *changes: tuple[str, str]) -> str:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "altered.toml").write_text(text, encoding="utf-8")
    return "altered.toml"


def test_the_example_is_read_and_written_out() -> None:
    planned = load_deployment(EXAMPLE)
    assert isinstance(planned, MixedSpecification)
    assert parse_mixed(planned.effective()) == planned
    assert [(group.name, group.people) for group in planned.groups] == [("careful", 7000), ("open", 3000)]
    assert not is_mixed("no TOML [")
    with pytest.raises(SpecificationError, match="Only assess, collect, compare and estimate accept groups"):
        load_collection(EXAMPLE)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (
            "people = 7_000",
            "people = 7_001",
            "population.n: must be the sum of `people` of all groups, got 10000.",
        ),
        ("people = 7_000", "people = -1", "groups[0].people: must be greater than or equal to 0, got -1"),
        ("people = 7_000\n", "", "groups[0].people: must be given if there is no data, got nothing"),
        ("people = 7_000", "people = 7_000\nsize = 2", "groups[0].size: is not a key here"),
        ('name = "open"', 'name = "careful"', "groups[1].name: must be distinct"),
        ("epsilon = 3.0 }", "epsilon = 0 }", "groups[1].randomizer.epsilon: must be a number from 0 (excluded)"),
        (
            'response", epsilon = 3.0',
            'response", p = 0.5',
            "groups[1].randomizer: may differ from the randomizer of the first",
        ),
        ('randomized-response", epsilon = 3.0', 'hadamard-response", epsilon = 3.0', "only in `epsilon`"),
        ('kind = "uniform"', 'kind = "none"', 'shuffler.kind: must be "uniform" or'),
        ('kind = "uniform"', 'kind = "scrambler"\ndummies = {kind="geometric", mean=3.0}', "shuffler.kind: must be"),
        ("[population]", "rounds = 2\n[population]", "rounds: is not a key here, got 2. Groups with different"),
        ("[population]", 'colour = "red"\n[population]', "colour: is not a key here"),
        ("[population]", 'group_column = "tier"\n[population]', "group_column: is allowed only with data"),
        ("n = 10_000", 'data = "x.csv"\ncolumn = "y"', "group_column: must be a public column of the data"),
        ("n = 10_000", 'data = "x.csv"\ncolumn = "y"', "groups[0].people: is not allowed together with data"),
        ("n = 10_000", 'data = "x.csv"\ncolumn = "y"\nperson = "z"', 'population.person: must be "none" with'),
        ("n = 10_000", "n = 10_000\nreports_per_person = 2", "population.reports_per_person: must be 1 with"),
        ("delta = 1e-6", "delta = 1e-6\nguessing = 0.5", "targets.guessing: is not a key here, got 0.5"),
        ("delta = 1e-6", "delta = 2.0", "targets.delta: must be less than 1"),
    ],
)
def test_everything_wrong_is_said(old: str, new: str, word: str) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(SpecificationError) as refused:
        parse_mixed(text.replace(old, new, 1))
    assert word in str(refused.value)


def test_a_file_without_a_list_of_groups_and_reports_without_counts_are_refused() -> None:
    shared = 'population = { n = 9, k = 4 }\nshuffler = { kind = "uniform" }\ntargets = { delta = 0.01 }\n'
    with pytest.raises(SpecificationError, match="groups: must be a list, got 3"):
        parse_mixed(f"groups = 3\n{shared}")
    one = '[[groups]]\nname = "a"\npeople = 9\nrandomizer = {{ kind = "{}", {} }}\n'
    numbers = parse_mixed(shared + one.format("discrete-laplace", "epsilon = 1.0"))
    with pytest.raises(SpecificationError, match="must be a randomizer whose reports support values"):
        numbers.build([9], 4)
    subsets = parse_mixed(shared + one.format("subset-selection", "epsilon = 1.0, w = 3"))
    with pytest.raises(SpecificationError, match=r"groups\[0\].randomizer.w: must be"):
        subsets.build([9], 3)
    with pytest.raises(SpecificationError, match="groups: must be groups with at least one person"):
        subsets.build([0], 4)


def test_the_report_has_the_figures_of_all_people_and_of_each_group(folder: Path) -> None:
    report = assess(folder / "groups.toml")
    parts = [(n, hs.RandomizedResponse(k=4, epsilon=each)) for n, each in zip(SIZES, (1.0, 6.0), strict=True)]
    crowd = hs.MixedProtocol(groups=parts, shuffler=hs.UniformShuffle())
    figures = {row.question: row.bound for row in report.findings}
    assert figures == {"central-dp": dp.epsilon(crowd, delta=1e-4), "local-dp": dp.local_epsilon(crowd)}
    (table,) = report.tables
    assert [row[:2] for row in table.rows] == [("careful", 1500), ("open", 500)]
    assert [row[3] for row in table.rows] == [dp.epsilon(crowd.member(group), delta=1e-4) for group in (0, 1)]
    assert [row[4] for row in table.rows] == list(ByGroups.of(parts).weights)
    assert {row.question for row in report.unanswered} == {"vulnerability", "re-identification"}
    assert [warned.key for warned in report.warnings if warned.key == "weighted-groups"]
    assert report.statement is not None
    assert report.statement.unit.endswith("The group of each person is public, and does not depend on the answer.")
    planned = hs.assess(
        {
            "population": {"n": 2000, "categories": LABELS},
            "groups": [
                {"name": name, "people": n, "randomizer": {"kind": "randomized-response", "epsilon": each}}
                for name, n, each in (("careful", 1500, 1.0), ("open", 500, 6.0), ("absent", 0, 2.0))
            ],
            "shuffler": {"kind": "uniform"},
            "targets": {"delta": 1e-4, "epsilon": 2.0, "local_epsilon": 5.0, "standard_error": 0.5, "people": 100},
        }
    )
    assert planned.findings[0].bound == report.findings[0].bound
    assert planned.tables[0].rows[2][1:4:2] == (0, "no figure")
    met = {target.key: target.met for target in planned.targets}
    assert met == {"epsilon": True, "delta": True, "local_epsilon": False, "people": True, "standard_error": True}


def test_a_release_reveals_the_sizes_of_groups_and_no_reports_group(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = altered(folder, DUMMIES)
    assert main(["collect", file, "--out", "made"]) == Exit.DONE
    shown = capsys.readouterr()
    assert "Dropped 3 records without an answer" in shown.out
    assert "The estimate weights people with less noise more" in shown.err
    document = json.loads((folder / "made" / "manifest.json").read_text(encoding="utf-8"))
    assert [(one["name"], one["people"]) for one in document["groups"]] == [("careful", 1500), ("open", 500)]
    assert "people.csv" not in json.dumps(document)
    assert "tier" not in json.dumps(document)
    reports = pl.read_parquet(folder / "made" / "reports.parquet")
    assert (reports.columns, reports.height) == (["report"], 2040)

    assert main(["estimate", "made", "--json"]) == Exit.DONE
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    weights = [one["weight"] for one in facts["groups"]]
    data = pl.read_csv(folder / "people.csv").drop_nulls("travel")
    for row in facts["frequencies"]:
        own = [
            data.filter((pl.col("tier") == tier) & (pl.col("travel") == row["value"])).height / size
            for tier, size in zip(("careful", "open"), SIZES, strict=True)
        ]
        wanted = float(np.dot(weights, own))
        assert abs(row["frequency"] - wanted) < 5 * row["standard_error"]
    assert facts["largest_bias"] == pytest.approx(weights[1] - 0.25)

    assert main(["estimate", "made", "--counts-only", "--out", "counts.json"]) == Exit.DONE
    capsys.readouterr()
    assert main(["estimate", "counts.json", "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out) == facts
    assert main(["estimate", "made"]) == Exit.DONE
    assert main(["collect", "groups.toml", "--out", "again"]) == Exit.DONE
    assert main(["estimate", "made", "again"]) == Exit.FAILED
    assert "do not add up" in capsys.readouterr().err


def test_the_frequencies_are_right_over_many_releases(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean over 40 collections: each person's report is from the randomizer of the person's group."""
    monkeypatch.setattr(dp, "epsilon", lambda *_, **__: Bound.exact(1.0, unit="nats"))  # takes seconds
    sums, file = np.zeros(4), altered(folder, DUMMIES)
    for number in range(40):
        assert main(["collect", file, "--out", f"out{number}"]) == Exit.DONE
        sums += np.bincount(pl.read_parquet(folder / f"out{number}" / "reports.parquet")["report"], minlength=4)
    data = pl.read_csv(folder / "people.csv").filter(pl.col("travel") != "")
    wanted = np.full(4, 10.0)
    for tier, epsilon in (("careful", 1.0), ("open", 6.0)):
        law = (np.ones((4, 4)) + (np.exp(epsilon) - 1) * np.eye(4)) / (np.exp(epsilon) + 3)
        chosen = data.filter(pl.col("tier") == tier)["travel"].to_list()
        wanted += np.bincount([LABELS.index(each) for each in chosen], minlength=4) @ law
    assert np.all(np.abs(sums / 40 - wanted) < 5 * np.sqrt(2040 / 4 / 40))


@pytest.mark.parametrize(
    ("changes", "options", "word"),
    [
        ((('name = "open"', 'name = "Open"'),), (), "500 of 2,000 records have a group in column 'tier'"),
        ((('"tier"', '"level"'),), (), "has no column 'level'"),
        ((("delta = 1e-4", "delta = 1e-4\nepsilon = 0.01"),), (), "above targets.epsilon = 0.01"),
        ((("delta = 1e-4", "delta = 1e-4\npeople = 3000"),), (), "2,000 people are fewer than the 3,000"),
        ((), ("--min-batch", "2001"), "2,000 people are fewer than the 2,001 that --min-batch"),
        ((), ("--batches",), "--batches: [[groups]] are collected in one run on this machine"),
        ((), ("--budget", "budget.toml"), "--budget: [[groups]]"),
        ((), ("--key-file", "my.key", "--id", "tier"), "--key-file: [[groups]]"),
        ((), ("--engine", "spark"), "--engine spark: [[groups]]"),
        ((), ("--min-batch", "0"), "`min_batch` must be"),
    ],
)
def test_what_cannot_be_collected_is_refused_and_writes_nothing(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    changes: tuple[tuple[str, str], ...],
    options: tuple[str, ...],
    word: str,
) -> None:
    assert main(["collect", altered(folder, *changes), "--out", "made", *options]) != Exit.DONE
    assert word in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["altered.toml", "groups.toml", "people.csv"]


@pytest.mark.usefixtures("folder")
def test_a_plan_without_data_cannot_be_collected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", str(EXAMPLE), "--out", "made"]) == Exit.USAGE
    assert "must have data and column for a collection" in capsys.readouterr().err
    assert main(["collect", str(EXAMPLE), "--out", "made", "--input", "people.csv", "--column", "travel"]) == Exit.USAGE
    assert "group_column: must be given for a collection" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["calibrate", "minimum-batch", "audit", "explore", "choose", "verify"])
def test_other_commands_refuse_groups_in_one_sentence(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "groups.toml"]) == Exit.USAGE
    assert command == "verify" or "groups: must be left out" in capsys.readouterr().err


def test_groups_are_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    altered(folder, ("epsilon = 6.0", "epsilon = 2.0"))
    assert main(["compare", "groups.toml", "altered.toml"]) == Exit.DONE
    assert "central epsilon" in capsys.readouterr().out
