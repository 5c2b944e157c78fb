"""`hushuffle estimate`: what it prints is told from noise, and holds as often as it says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.collection.estimate import noise_warning
from hushuffle.estimation import heavy_hitters
from hushuffle.report.frequency_chart import Frequencies
from hushuffle.tables.frequency_files import in_cell

PLAIN = ["-1.5", "+2", "yes"]
FORMULAS = ['=HYPERLINK("http://x";"y")', "+1+1", "-no", "@SUM(A1)", "\tx", " =1", "'quoted", "\uff1d1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    key = tmp_path / "town.key"
    key.write_text("5e" * 32, encoding="ascii")
    key.chmod(0o600)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def collected(values: list[int], k: int, epsilon: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Collect values 0..k-1 under a key, so that every run has the same reports."""
    Path("town.toml").write_text(
        f"""
        population = {{ n = 2, k = {k} }}
        randomizer = {{ kind = "randomized-response", epsilon = {epsilon} }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6 }}
        """,
        encoding="utf-8",
    )
    pl.DataFrame({"id": range(len(values)), "value": values}).write_parquet("people.parquet")
    options = ["--input", "people.parquet", "--column", "value", "--key-file", "town.key", "--id", "id", "--new-key"]
    assert main(["collect", "town.toml", "--out", "out", *options]) == Exit.DONE
    capsys.readouterr()


def printed(text: str) -> list[str]:
    """Return the first cell of every row of the table."""
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("──"))
    rows = [line for line in lines[start + 1 :] if " to " in line]
    return [row.split()[0] for row in rows]


def test_values_that_hardly_anybody_holds_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the 20 most frequent estimates, 19 were of values that a handful of people hold, with confident intervals."""
    collected([7] * 12_000 + [2 * one % 2_000 for one in range(2_000)], 2_000, 2.0, capsys)
    assert main(["estimate", "out", "--out", "all.csv", "--json"]) == Exit.DONE
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    table = pl.read_csv("all.csv")
    assert table.columns == ["value", "frequency", "standard_error", "low", "high", "above_threshold"]
    assert table.filter("above_threshold")["value"].to_list() == [7]
    assert [row["above_threshold"] for row in document["frequencies"]] == table["above_threshold"].to_list()
    top = table.sort("frequency", descending=True).head(20)
    assert (top["frequency"] > 0.1).all()  # as of 800 people each, where 2 hold each of them, or nobody
    assert (top["low"] > 0.01).sum() > 10
    assert 0.2 < document["threshold"] < 0.6
    for options, count in (([], 1), (["--all"], 2_000)):
        assert main(["estimate", "out", *options]) == Exit.DONE
        shown = capsys.readouterr()
        assert len(printed(shown.out)) == count
        assert printed(shown.out)[0] == "7"
        assert shown.err.startswith("hushuffle: warning: standard errors are near or above the shares (0.0")
        assert f"95% interval, {'each' if options else 'all at once'}" in shown.out
        words = " ".join(shown.out.split())
        assert ("1,999 of 2,000 values are not shown: their estimates cannot be told from noise." in words) != bool(
            options
        )


def test_a_plain_survey_is_printed_without_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    collected([0] * 500 + [1] * 300 + [2] * 200, 3, 3.0, capsys)
    assert main(["estimate", "out"]) == Exit.DONE
    shown = capsys.readouterr()
    assert sorted(printed(shown.out)) == ["0", "1", "2"]
    assert "not shown" not in shown.out
    assert shown.err == ""


def test_many_values_that_count(capsys: pytest.CaptureFixture[str]) -> None:
    collected([one % 30 for one in range(3_000)], 30, 8.0, capsys)
    assert main(["estimate", "out"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert len(printed(shown)) == 20
    assert "10 more values are told from noise; --out writes all." in shown


def test_nothing_to_print(capsys: pytest.CaptureFixture[str]) -> None:
    collected([0, 1, 1], 3, 0.1, capsys)
    assert main(["estimate", "out", "--chart", "shares.svg"]) == Exit.DONE
    shown = capsys.readouterr()
    assert "3 of 3 values are not shown" in shown.out
    assert "Share" not in shown.out
    assert "not even a value that everybody holds would show; an even share is 33 %" in shown.err
    assert "none is told from noise" in Path("shares.svg").read_text(encoding="utf-8")


def _protocols() -> list[tuple[hs.Protocol, list[int], int]]:
    """Return protocols, how many people hold each value, and how often to try.

    Few categories; some 20 false reports for each of many, where a count is far from normal; hashing; dummies.
    """
    rare = [3000, 1500, 700, 300, *[0] * 196, *[12] * 200]
    rare[0] += 8000 - sum(rare)
    uniform, scrambler = hs.UniformShuffle(), hs.Scrambler(dummies=200)
    few, many = hs.RandomizedResponse(k=5, epsilon=1.0), hs.RandomizedResponse(k=400, epsilon=2.0)
    hashing, twenty = hs.LocalHashing(k=400, g=8, epsilon=2.0), hs.RandomizedResponse(k=20, epsilon=1.0)
    return [
        (hs.Protocol(randomizer=few, shuffler=uniform, n=2000), [1000, 600, 300, 100, 0], 500),
        (hs.Protocol(randomizer=many, shuffler=uniform, n=8000), rare, 400),
        (hs.Protocol(randomizer=hashing, shuffler=uniform, n=8000), rare, 150),
        (hs.Protocol(randomizer=twenty, shuffler=scrambler, n=1000), [600, 400, *[0] * 18], 100),
    ]


@pytest.mark.parametrize(("protocol", "counts", "times"), _protocols())
def test_what_is_printed_holds_as_often_as_it_says(protocol: hs.Protocol, counts: list[int], times: int) -> None:
    """A value that nobody holds is among those printed in 5 % of collections at most, a wrong interval too."""
    values, coins, truth = np.repeat(np.arange(len(counts)), counts), hs.reproducible(15), np.array(counts) / protocol.n
    false_alarms = wrong_intervals = 0
    for _ in range(times):
        estimate = hs.estimate(protocol.collect(values, rng=coins), protocol=protocol)
        found = heavy_hitters(estimate, protocol=protocol, level=0.05)
        low, high = found.intervals.T
        held = truth[found.values]
        false_alarms += bool(np.any(held == 0))
        wrong_intervals += bool(np.any((held < low) | (held > high)))
    print(false_alarms / times, wrong_intervals / times)
    most = binom.ppf(1 - 1e-4, times, 0.05)
    assert false_alarms <= most
    assert wrong_intervals <= most


def test_the_warning_is_about_an_even_share() -> None:
    """Four values: an even share is 25 %."""
    for n, warned in ((60, True), (2000, False)):
        protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=4, epsilon=1.0), shuffler=hs.UniformShuffle(), n=n)
        estimate = hs.estimate(np.arange(n) % 4, protocol=protocol)
        found = heavy_hitters(estimate, protocol=protocol)
        assert (found.threshold > 0.25) == warned
        assert len(list(noise_warning(estimate, found))) == warned


def test_charts_of_many_values_draw_those_that_count() -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=40, epsilon=9.0), shuffler=hs.UniformShuffle(), n=400)
    estimate = hs.estimate(np.arange(400) % 40, protocol=protocol)
    above = np.isin(np.arange(40), [3, 5])
    labels = [f"{one}" for one in range(40)]
    chart = Frequencies(title="", estimate=estimate, labels=labels, confidence=0.95, people=400, above=above)
    assert sorted(chart.rows) == [3, 5]
    assert chart.caption.startswith("the 2 most frequent of 40 values; 400 people")
    none = Frequencies(title="", estimate=estimate, labels=labels, confidence=0.95, people=400, above=above & False)
    assert len(none.rows) == 30
    assert "none is told from noise" in none.caption


def test_no_cell_is_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    collected([0] * 400, 2, 1.0, capsys)
    manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
    labels = ['=HYPERLINK("http://x";"y")', "-no"]
    written = manifest["specification"]
    assert "k = 2" in written
    manifest["specification"] = written.replace("k = 2", f"categories = {json.dumps(labels)}")
    Path("out/manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for name in ("shares.csv", "shares.parquet", "shares.json"):
        assert main(["estimate", "out", "--out", name]) == Exit.DONE
    assert pl.read_csv("shares.csv")["value"].to_list() == [f"'{label}" for label in labels]
    assert pl.read_parquet("shares.parquet")["value"].to_list() == labels
    rows = json.loads(Path("shares.json").read_text(encoding="utf-8"))["frequencies"]
    assert [row["value"] for row in rows] == labels


def test_cells_come_back() -> None:
    assert [in_cell(label) for label in PLAIN] == PLAIN
    assert [in_cell(label) for label in FORMULAS] == [f"'{label}" for label in FORMULAS]
