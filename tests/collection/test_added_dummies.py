"""Collections whose shuffler samples reports and adds dummies: from records to estimates, and what nothing may say."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.collection import spark
from hushuffle.collection.estimate import tally_reports
from hushuffle.collection.released import read_manifest
from hushuffle.errors import DataError, UnsupportedProtocolError
from hushuffle.specification import parse

pytestmark = pytest.mark.usefixtures("no_charts")
TEXT = """
population = {{ data = "people.csv", column = "town", categories = ["a", "b", "c", "d"] }}
randomizer = {{ kind = "randomized-response", epsilon = "inf" }}
shuffler = {{ kind = "augmented", trusted = true, {} }}
targets = {{ delta = 1e-4{} }}
"""
LAWS = {
    "binomial": 'each = { kind = "binomial", trials = 80, p = 0.5 }',
    "sampled": 'each = { kind = "endless-geometric", ratio = 0.9 }, kept = 0.75',
    "pure": "pure_epsilon = 1.5",
}
every = pytest.mark.parametrize("law", LAWS)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    towns = np.repeat(["a", "b", "c"], [1200, 600, 200])
    pl.DataFrame({"number": range(2000), "town": towns}).write_csv(tmp_path / "people.csv")
    for law, shuffler in LAWS.items():
        (tmp_path / f"{law}.toml").write_text(TEXT.format(shuffler, ""), encoding="utf-8")
    (tmp_path / "my.key").write_text(bytes(range(32)).hex(), encoding="ascii")
    (tmp_path / "my.key").chmod(0o600)
    return tmp_path


def collected(place: Path, law: str, out: str, *more: str) -> Path:
    assert main(["collect", str(place / f"{law}.toml"), "--out", str(place / out), *more]) == 0
    return place / out


@every
def test_estimates_are_those_of_the_people(place: Path, law: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = collected(place, law, "out")
    manifest, reports = read_manifest(folder / "manifest.json"), pl.read_parquet(folder / "reports.parquet")
    assert (manifest.people, reports.height) == (2000, manifest.reports)
    tally = tally_reports([folder])
    estimate = tally.estimate()
    assert np.all(abs(estimate.frequencies - [0.6, 0.3, 0.1, 0]) < 6 * estimate.standard_errors)
    assert tally.poisoning().raised.upper == pytest.approx(20 / 2000)
    assert main(["estimate", str(folder), "--counts-only", "--out", str(place / "counts.json")]) == 0
    assert np.all(tally_reports([place / "counts.json"]).estimate().frequencies == estimate.frequencies)
    capsys.readouterr()
    assert main(["estimate", str(folder)]) == 0
    dummies = f"{manifest.dummies:,} dummies."
    said = dummies if law == "binomial" else f"{reports.height:,} messages: sampled reports and dummies."
    assert f"2,000 people, {said}" in capsys.readouterr().out


@pytest.mark.parametrize("law", ["sampled", "pure"])
def test_nothing_says_how_many_reports_were_kept(place: Path, law: str) -> None:
    """The number of dummies would, and whoever knows all others' coins would know that of the last one."""
    folder = collected(place, law, "out")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["people"], manifest["dummies"]) == (2000, 0)
    assert manifest["sampled_messages"] == pl.read_parquet(folder / "reports.parquet").height
    assert main(["estimate", str(folder), "--out", str(place / "shares.json"), "--all"]) == 0
    found = json.loads((place / "shares.json").read_text(encoding="utf-8"))
    assert found["dummies"] is None


def test_samples_and_dummies_are_drawn_as_described(place: Path) -> None:
    sizes = [pl.read_parquet(collected(place, "sampled", f"out-{run}") / "reports.parquet").height for run in range(40)]
    mean, variance = 2000 * 0.75 + 4 * 9, 2000 * 0.75 * 0.25 + 4 * 90
    assert abs(np.mean(sizes) - mean) < 6 * np.sqrt(variance / 40)
    assert 0.3 < np.var(sizes) / variance < 2.5


@every
def test_the_same_key_gives_the_same_sample_and_dummies(place: Path, law: str) -> None:
    keyed = ("--key-file", str(place / "my.key"), "--id", "number", "--round")
    first = collected(place, law, "first", *keyed, "0", "--new-key")
    again, other = collected(place, law, "again", *keyed, "0"), collected(place, law, "other", *keyed, "1")
    reports = [sorted(pl.read_parquet(folder / "reports.parquet").rows()) for folder in (first, again, other)]
    assert reports[0] == reports[1] != reports[2]


def test_releases_are_not_added_up(place: Path) -> None:
    """Each has dummies of its own: two have twice as many."""
    folders = [collected(place, "pure", out) for out in ("one", "two")]
    with pytest.raises(DataError, match=r"Each release has its own dummies or noise\. Estimate each separately"):
        tally_reports(folders)


def test_an_edited_number_of_messages_is_refused(place: Path) -> None:
    folder = collected(place, "pure", "out")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for number, words in ((manifest["sampled_messages"] + 1, "it belongs to other"), ("many", "may have been edited")):
        text = json.dumps({**manifest, "sampled_messages": number})
        (folder / "manifest.json").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=words):
            tally_reports([folder])


def test_a_cluster_takes_no_samples(place: Path) -> None:
    with patch.object(spark, "check_installed"):
        spark.check(parse((place / "binomial.toml").read_text(encoding="utf-8")))
        with pytest.raises(UnsupportedProtocolError, match="samples the reports runs on one machine only"):
            spark.check(parse((place / "pure.toml").read_text(encoding="utf-8")))


def test_a_target_that_the_dummies_do_not_meet_lets_nothing_leave(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "pure.toml").write_text(TEXT.format(LAWS["pure"], ", epsilon = 1.0"), encoding="utf-8")
    assert main(["collect", str(place / "pure.toml"), "--out", str(place / "out")]) == 1
    assert "above targets.epsilon = 1: nothing was released" in capsys.readouterr().err
    assert not (place / "out").exists()


@every
def test_an_assessment_says_who_adds_dummies(place: Path, law: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = place / f"{law}.toml"
    text = TEXT.format(LAWS[law], ", epsilon = 0.1").replace('data = "people.csv", column = "town", ', "n = 2000, ")
    file.write_text(text, encoding="utf-8")
    assert main(["assess", str(file), "--out", str(place / "out"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    rows = {row[0]: row[1] for table in result["tables"] if table["key"] == "added-dummies" for row in table["rows"]}
    pure = rows["epsilon of one release at delta = 0"]
    assert {"binomial": "no guarantee", "pure": "exact", "sampled": "exact"}[law] in (
        pure,
        pure["kind"] if law != "binomial" else "",
    )
    if law == "pure":
        assert pure["upper"] == pytest.approx(1.5)
    said = json.dumps(result["statement"])
    assert "It is also trusted to sample reports, to draw the number of dummies of each category" in said
    assert "It adds the described dummies, and keeps their number secret." in said
    warned = {one["key"]: one for one in result["warnings"]}
    assert "adds fewer dummies or reveals their number" in warned["no-noise"]["sentence"]
    assert "Let the shuffler add more dummies" in warned["privacy-target-missed"]["advice"]


@pytest.mark.parametrize(
    ("shuffler", "more", "refusal"),
    [
        ("trusted = true", "", "must have either pure_epsilon or each"),
        (f"trusted = true, pure_epsilon = 1.0, {LAWS['binomial']}", "", "must have either pure_epsilon or each"),
        (
            "trusted = true, pure_epsilon = 1.0, kept = 0.5",
            "",
            "shuffler.kept: must be left out beside pure_epsilon",
        ),
        ("pure_epsilon = 1.0", "", "shuffler.trusted"),
        ("trusted = false, pure_epsilon = 1.0", "", "shuffler.trusted"),
        (
            "trusted = true, pure_epsilon = 1.0",
            "rounds = 3\nmemoised = true",
            "must be a shuffler without dummies for memoised",
        ),
        ('trusted = true, each = { kind = "own", numbers = [1, 1], probabilities = [0.5, 0.5] }', "", "as many"),
        (
            'trusted = true, each = { kind = "discrete-laplace", center = 100_000, scale = 9.0 }',
            "k = 1_000_000",
            "must have a mean of at most",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str], shuffler: str, more: str, refusal: str
) -> None:
    text = TEXT.format("", "").replace("trusted = true, ", shuffler)
    if more.startswith("k"):
        text = text.replace('data = "people.csv", column = "town", categories = ["a", "b", "c", "d"]', f"n = 9, {more}")
        more = ""
    (place / "odd.toml").write_text(f"{more}\n{text}", encoding="utf-8")
    assert main(["assess", str(place / "odd.toml"), "--out", str(place / "out")]) == 2
    assert refusal in capsys.readouterr().err


def test_noise_on_devices_and_what_is_solved_for_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TEXT.format(LAWS["pure"], ", epsilon = 1.0")
    (place / "pure.toml").write_text(text, encoding="utf-8")
    assert main(["calibrate", str(place / "pure.toml")]) == 2
    assert "already set the guarantee" in capsys.readouterr().err
    assert main(["minimum-batch", str(place / "pure.toml")]) == 2
    assert "protection of the shuffler's dummies does not grow with n" in capsys.readouterr().err
    (place / "noisy.toml").write_text(text.replace('"inf"', "2.0"), encoding="utf-8")
    assert main(["assess", str(place / "noisy.toml"), "--out", str(place / "out")]) == 2
    assert "needs true reports" in capsys.readouterr().err
