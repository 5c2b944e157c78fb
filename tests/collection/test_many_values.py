"""Hashed values among blanket messages, where there are too many values for messages of each: records to estimates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.collection.estimate import tally_reports
from hushuffle.collection.released import read_manifest

PAGES = [f"page {number}" for number in range(100)]
TEXT = f"""
population = {{ data = "people.csv", column = "page", categories = {json.dumps(PAGES)} }}
randomizer = {{ kind = "local-hashing", epsilon = "inf", g = 12 }}
shuffler = {{ kind = "blanket-messages", p = 0.5, trials = 2 }}
targets = {{ delta = 1e-4, epsilon = 1.5 }}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    held = np.repeat(PAGES[:3], [300, 200, 100])
    pl.DataFrame({"number": range(600), "page": held}).write_csv(tmp_path / "people.csv")
    (tmp_path / "many.toml").write_text(TEXT, encoding="utf-8")
    (tmp_path / "my.key").write_text(bytes(range(32)).hex(), encoding="ascii")
    (tmp_path / "my.key").chmod(0o600)
    return tmp_path


def collected(place: Path, out: str, *more: str) -> Path:
    assert main(["collect", str(place / "many.toml"), "--out", str(place / out), *more]) == 0
    return place / out


def test_estimates_are_those_of_the_people(place: Path) -> None:
    folders = [collected(place, out) for out in ("one", "two")]
    for folder in folders:
        manifest = read_manifest(folder / "manifest.json")
        assert pl.read_parquet(folder / "reports.parquet").height == 600 + manifest.dummies
        assert abs(manifest.dummies - 600) < 6 * np.sqrt(300)
    shares = np.repeat([1 / 2, 1 / 3, 1 / 6, 0], [1, 1, 1, 97])
    for sources in (folders[:1], folders):
        estimate = tally_reports(sources).estimate()
        assert np.all(abs(estimate.frequencies - shares) < 6 * estimate.standard_errors)
    listed = tally_reports(folders).told_from_noise(estimate, confidence=0.95)
    # With probability up to 0.05 a value that nobody has is listed, and the rare one may be missed.
    assert {0, 1} <= set(listed.values.tolist())
    assert listed.values.size <= 5


def test_the_same_key_gives_the_same_hashes(place: Path) -> None:
    keyed = ("--key-file", str(place / "my.key"), "--id", "number", "--round", "0")
    first, again = collected(place, "first", *keyed, "--new-key"), collected(place, "again", *keyed)
    reports = [sorted(pl.read_parquet(folder / "reports.parquet").rows()) for folder in (first, again)]
    assert reports[0] == reports[1]


def test_an_assessment_says_what_a_person_sends(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = place / "many.toml"
    file.write_text(TEXT.replace('data = "people.csv", column = "page"', "n = 600"), encoding="utf-8")
    assert main(["assess", str(file), "--out", str(place / "out"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    tables = {table["key"]: table for table in result["tables"]}
    bits = np.log2(101) * 2 + np.log2(12)  # a hash u x + v modulo the next prime, and a bucket
    assert [row[1] for row in tables["messages"]["rows"]] == pytest.approx([2, 3, bits, 2 * bits])
    assert {chart["key"] for chart in result["charts"]} >= {"privacy-against-messages", "accuracy-against-messages"}
    said = [warned["sentence"] + warned["advice"] for warned in result["warnings"]]
    assert any("answers can be read" in words for words in said)
    # More accurate mechanisms would need more messages.
    assert not any("has a smaller standard error at the same local epsilon" in words for words in said)


def test_calibrate_says_how_few_messages_are_enough(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(place / "many.toml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["met"]
    assert 1.49 < found["fewest_for_privacy"]["central_epsilon"]["upper"] <= 1.5
    assert found["fewest_for_privacy"]["messages"] < 1
