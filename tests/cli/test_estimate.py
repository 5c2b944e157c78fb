"""`hushuffle estimate`: what it prints is told from noise, and holds as often as it says."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.estimation import heavy_hitters
from hushuffle.report.frequency_chart import Frequencies
from hushuffle.tables.value_files import in_cell

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
    shares = ["value", "frequency", "standard_error", "low", "high", "above_threshold"]
    assert table.columns == [*shares, "people", "people_low", "people_high"]
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
        assert shown.err.startswith("hushuffle: warning: Standard errors are large: 0.0")
        assert (
            'kind = "local-hashing" has a smaller standard error at the same local epsilon: 0.0072, a value'
            in shown.err
        )
        words = " ".join(shown.out.split())
        assert ("The intervals hold each by itself." if options else "The intervals hold all at once.") in words
        assert max(map(len, shown.out.splitlines())) <= 80
        assert ("1,999 of 2,000 values are not shown: they are not statistically significant" in words) != bool(options)


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
    assert "10 more values are statistically significant; --out writes all." in shown


def test_nothing_to_print(capsys: pytest.CaptureFixture[str]) -> None:
    collected([0, 1, 1], 3, 0.1, capsys)
    assert main(["estimate", "out", "--chart", "shares.svg"]) == Exit.DONE
    shown = capsys.readouterr()
    assert "3 of 3 values are not shown" in shown.out
    assert "Share" not in shown.out
    assert "not even a value that all people have is statistically significant" in shown.err
    assert "each of 3 equally frequent categories has a share of 0.33" in shown.err
    assert "none is statistically significant" in Path("shares.svg").read_text(encoding="utf-8")


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
    most = binom.ppf(1 - 1e-4, times, 0.05)
    assert false_alarms <= most
    assert wrong_intervals <= most


def test_people_stand_beside_shares(capsys: pytest.CaptureFixture[str]) -> None:
    collected([0] * 5000 + [1] * 3000 + [2] * 2000, 3, 3.0, capsys)
    assert main(["estimate", "out", "--json", "--chart", "shares.svg"]) == Exit.DONE
    document = json.loads(capsys.readouterr().out)
    assert (document["people"], document["intervals"], document["values"]) == (10_000, "each", 3)
    for row in document["frequencies"]:
        for number, share in (("people", "frequency"), ("people_low", "low"), ("people_high", "high")):
            assert row[number] == pytest.approx(10_000 * row[share])
    held = f"{document['frequencies'][0]['people']:,.0f}"
    assert f"0: {held}" in Path("shares.svg").read_text(encoding="utf-8")
    assert main(["estimate", "out"]) == Exit.DONE
    assert f" {held} " in capsys.readouterr().out


def test_heavy_hitters_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Files, JSON and picture hold what is told from noise, by name, with the intervals that are printed."""
    collected([7] * 12_000 + [2 * one % 2_000 for one in range(2_000)], 2_000, 2.0, capsys)
    assert main(["estimate", "out", "--heavy-hitters", "--json", "--out", "few.csv", "--chart", "few.svg"]) == Exit.DONE
    document = json.loads(capsys.readouterr().out)
    assert (document["values"], document["intervals"]) == (2_000, "all at once")
    assert [row["value"] for row in document["frequencies"]] == ["7"]
    table = pl.read_csv("few.csv")
    assert table["value"].to_list() == [7]
    assert main(["estimate", "out"]) == Exit.DONE
    low, high = (f"{table[end].item():.4f}" for end in ("low", "high"))
    assert f"{low} to {high}" in capsys.readouterr().out
    assert "all at once" in Path("few.svg").read_text(encoding="utf-8").replace("</text>", " ")
    assert main(["estimate", "out", "--heavy-hitters", "--all"]) == Exit.USAGE
    assert "--all and --heavy-hitters exclude each other" in capsys.readouterr().err
    for option in ("--all", "--heavy-hitters", "--simplex"):
        assert main(["estimate", "out", "--counts-only", "--out", "counts.json", option]) == Exit.USAGE
        assert "--counts-only makes no estimates" in capsys.readouterr().err


def test_nobody_is_a_heavy_hitter(capsys: pytest.CaptureFixture[str]) -> None:
    collected([0, 1, 1], 3, 0.1, capsys)
    for name in ("none.csv", "none.parquet", "none.json"):
        assert main(["estimate", "out", "--heavy-hitters", "--out", name]) == Exit.DONE
    assert pl.read_parquet("none.parquet").height == 0
    assert pl.read_csv("none.csv").columns == pl.read_parquet("none.parquet").columns
    assert json.loads(Path("none.json").read_text(encoding="utf-8"))["frequencies"] == []


def test_shares_on_the_simplex(capsys: pytest.CaptureFixture[str]) -> None:
    """They sum to 1, stand beside the unbiased ones, and claim no interval."""
    collected([7] * 12_000 + [2 * one % 2_000 for one in range(2_000)], 2_000, 2.0, capsys)
    assert main(["estimate", "out", "--json"]) == Exit.DONE
    plain = json.loads(capsys.readouterr().out)
    assert main(["estimate", "out", "--simplex", "--json", "--chart", "simplex.html"]) == Exit.DONE
    document = json.loads(capsys.readouterr().out)
    rows = document["frequencies"]
    shares = np.array([row["simplex_frequency"] for row in rows])
    assert shares.min() == 0
    assert shares.sum() == pytest.approx(1)
    assert sum(row["simplex_people"] for row in rows) == pytest.approx(14_000)
    assert [{key: row[key] for key in before} for row, before in zip(rows, plain["frequencies"], strict=True)] == (
        plain["frequencies"]
    )
    done = document["simplex"]
    assert done["set_to_zero"] == int((shares == 0).sum())
    kept = [row for row in rows if row["simplex_frequency"] > 0]
    for row in kept:
        assert row["frequency"] - row["simplex_frequency"] == pytest.approx(done["others_lowered_by"])
    picture = " ".join(Path("simplex.html").read_text(encoding="utf-8").split())
    assert "interval of the" in picture
    assert main(["estimate", "out", "--simplex"]) == Exit.DONE
    words = " ".join(capsys.readouterr().out.split())
    assert "Value Share Unbiased 95% interval" in words
    assert f"Of 2,000 values {done['set_to_zero']:,} became 0; the others are lower by" in words
    assert "Standard errors and intervals belong to the unbiased shares" in words


def test_what_fake_users_could_do_stands_below_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    collected([0] * 300 + [1] * 200, 3, 1.0, capsys)
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.UniformShuffle(), n=500)
    gain = hs.poisoning_gain(protocol, fakes=5)
    for options in ([], ["--all"]):
        assert main(["estimate", "out", *options]) == Exit.DONE
        words = " ".join(capsys.readouterr().out.split())
        assert f"If 5 Sybil clients (1 in 100) took part, they could move {gain.words}." in words
    assert main(["estimate", "out", "--json"]) == Exit.DONE
    found = json.loads(capsys.readouterr().out)["fake_users"]
    assert found["fakes"] == 5
    assert (found["raised"], found["lowered"]) == (gain.raised.upper, gain.lowered.upper)
    assert (found["following_the_protocol"], found["values_at_once"]) == (0.01, 1)


def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of reports does not exist: had the work begun, that would be said."""
    assert main(["estimate", "missing", "--out", "nowhere/shares.csv"]) == Exit.FAILED
    assert (
        capsys.readouterr().err
        == "hushuffle: nowhere/shares.csv cannot be written: the folder nowhere does not exist.\n"
    )

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("hushuffle.files.private_files.os.write", full)
    assert main(["estimate", "missing", "--chart", "shares.svg"]) == Exit.FAILED
    assert capsys.readouterr().err == "hushuffle: shares.svg cannot be written: No space left on device.\n"


def test_charts_of_many_values_draw_those_that_count() -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=40, epsilon=9.0), shuffler=hs.UniformShuffle(), n=400)
    estimate = hs.estimate(np.arange(400) % 40, protocol=protocol)
    above = np.isin(np.arange(40), [3, 5])
    labels = [f"{one}" for one in range(40)]
    chart = Frequencies(title="", estimate=estimate, labels=labels, confidence=0.95, people=400, above=above)
    assert sorted(chart.rows) == [3, 5]
    assert chart.caption.startswith("the 2 most frequent of 40 values; 400 people")
    few = Frequencies(
        title="", estimate=estimate, labels=labels, confidence=0.95, people=400, above=above, at_once=True
    )
    assert few.drawn_confidence == pytest.approx(1 - 0.05 / 40)
    none = Frequencies(title="", estimate=estimate, labels=labels, confidence=0.95, people=400, above=above & False)
    assert len(none.rows) == 30
    assert "none is statistically significant" in none.caption


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


@pytest.mark.parametrize(
    ("levels", "epsilon", "words"),
    [(5, 6.0, "all of them come from rounding"), (60, 1.5, "2 steps come from rounding and ")],
)
def test_the_width_of_an_interval_of_a_quantile_is_explained(
    levels: int, epsilon: float, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    minutes = "\n".join(str(number % 100) for number in range(4000))
    Path("people.csv").write_text(f"minutes\n{minutes}\n", encoding="utf-8")
    Path("survey.toml").write_text(
        f"""
        [population]
        data = "people.csv"
        column = "minutes"
        kind = "number"
        low = 0
        high = 100
        levels = {levels}
        [randomizer]
        kind = "randomized-response"
        epsilon = {epsilon}
        [shuffler]
        kind = "uniform"
        [targets]
        delta = 1e-6
        """,
        encoding="utf-8",
    )
    assert main(["collect", "survey.toml", "--out", "numbers"]) == Exit.DONE
    capsys.readouterr()
    assert main(["estimate", "numbers"]) == Exit.DONE
    text = " ".join(capsys.readouterr().out.split())
    assert f"steps of {100 / (levels - 1):.4g} between levels" in text
    assert words in text
