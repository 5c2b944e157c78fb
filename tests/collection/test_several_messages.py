"""Collections in which people send further messages: from records to estimates, with a key and without."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.collection.estimate import tally_reports
from hushuffle.collection.released import read_manifest

TEXT = """
population = {{ data = "people.csv", column = "town", categories = ["a", "b", "c", "d"] }}
randomizer = {{ kind = "randomized-response", epsilon = "inf" }}
shuffler = {{ {} }}
targets = {{ delta = 1e-4{} }}
"""
KINDS = {"blanket": 'kind = "blanket-messages", p = 0.5, trials = 2', "fakes": 'kind = "fakes-per-value", p = 0.25'}
every = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    towns = np.repeat(["a", "b", "c"], [300, 200, 100])
    pl.DataFrame({"number": range(600), "town": towns}).write_csv(tmp_path / "people.csv")
    for kind, shuffler in KINDS.items():
        (tmp_path / f"{kind}.toml").write_text(TEXT.format(shuffler, ""), encoding="utf-8")
    (tmp_path / "my.key").write_text(bytes(range(32)).hex(), encoding="ascii")
    (tmp_path / "my.key").chmod(0o600)
    return tmp_path


def collected(place: Path, kind: str, out: str, *more: str) -> int:
    return main(["collect", str(place / f"{kind}.toml"), "--out", str(place / out), *more])


@every
def test_estimates_are_those_of_the_people(place: Path, kind: str) -> None:
    assert collected(place, kind, "out") == 0
    manifest = read_manifest(place / "out" / "manifest.json")
    reports = pl.read_parquet(place / "out" / "reports.parquet")
    assert reports.height == manifest.people + manifest.dummies
    assert abs(manifest.dummies - 600) < 6 * np.sqrt(600)
    tally = tally_reports([place / "out"])
    estimate = tally.estimate()
    # Six standard errors.
    assert np.all(abs(estimate.frequencies - [1 / 2, 1 / 3, 1 / 6, 0]) < 6 * estimate.standard_errors)
    besides = {"blanket": 1 + 2 * 3 / 4, "fakes": 1 + 4 - 0.25}[kind]
    assert tally.poisoning().raised.upper == pytest.approx(6 / 600 * besides)


@every
def test_the_same_key_gives_the_same_messages(place: Path, kind: str) -> None:
    keyed = ("--key-file", str(place / "my.key"), "--id", "number", "--round", "0")
    assert collected(place, kind, "first", *keyed, "--new-key") == 0
    assert collected(place, kind, "again", *keyed) == 0
    reports = [sorted(pl.read_parquet(place / out / "reports.parquet").rows()) for out in ("first", "again")]
    assert reports[0] == reports[1]


@every
def test_tallies_add_up(place: Path, kind: str) -> None:
    assert collected(place, kind, "one") == collected(place, kind, "two") == 0
    both = tally_reports([place / "one", place / "two"])
    assert both.manifest.people == 1200
    estimate = both.estimate()
    assert np.all(abs(estimate.frequencies - [1 / 2, 1 / 3, 1 / 6, 0]) < 6 * estimate.standard_errors)


@every
def test_a_target_that_too_few_people_meet_lets_nothing_leave(
    place: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / f"{kind}.toml").write_text(TEXT.format(KINDS[kind], ", epsilon = 0.01"), encoding="utf-8")
    assert collected(place, kind, "out") != 0
    assert "nothing was released" in capsys.readouterr().err
    assert not (place / "out").exists()


def test_noise_on_the_device_goes_with_blanket_messages_only(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, code in (("blanket", 0), ("fakes", 2)):
        text = TEXT.format(KINDS[kind], "").replace('"inf"', "3.0")
        (place / f"{kind}.toml").write_text(text, encoding="utf-8")
        assert collected(place, kind, kind) == code
    assert "needs true reports" in capsys.readouterr().err


@every
def test_kept_reports_take_no_further_messages(place: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = "rounds = 3\nmemoised = true\n" + TEXT.format(KINDS[kind], "")
    (place / f"{kind}.toml").write_text(text, encoding="utf-8")
    assert main(["assess", str(place / f"{kind}.toml"), "--out", str(place / "out")]) == 2
    assert "must be a shuffler without dummies for memoised reports" in capsys.readouterr().err


@every
def test_calibrate_says_how_few_messages_are_enough(place: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = place / f"{kind}.toml"
    file.write_text(TEXT.format(KINDS[kind], ", epsilon = 0.8, standard_error = 1e-9"), encoding="utf-8")
    assert main(["calibrate", str(file), "--json", "--strict"]) == 3
    found = json.loads(capsys.readouterr().out)
    least = found["fewest_for_privacy"]
    assert 0.79 < least["central_epsilon"]["upper"] <= 0.8
    assert not found["met"]
    # What is printed keeps its promise.
    kept = KINDS[kind].replace("p = 0.5" if kind == "blanket" else "p = 0.25", f"p = {least['p']!r}")
    file.write_text(TEXT.format(kept, ", epsilon = 0.8"), encoding="utf-8")
    assert main(["calibrate", str(file), "--strict"]) == 0
    assert f"p = {least['p']:.9g} meets the privacy target" in " ".join(capsys.readouterr().out.split())
    file.write_text(TEXT.format(KINDS[kind], ", epsilon = 1e-9"), encoding="utf-8")
    assert main(["calibrate", str(file)]) == 2
    assert "must be a value that some number of messages achieves" in capsys.readouterr().err
    file.write_text(TEXT.format(KINDS[kind], ""), encoding="utf-8")
    assert main(["calibrate", str(file)]) == 2


@every
def test_an_assessment_says_what_a_person_sends_and_what_is_left_without_the_shuffler(
    place: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TEXT.format(KINDS[kind] + ", honest = 0.5", "").replace(
        'data = "people.csv", column = "town", ', "n = 600, "
    )
    (place / f"{kind}.toml").write_text(text, encoding="utf-8")
    assert main(["assess", str(place / f"{kind}.toml"), "--out", str(place / "out"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    tables = {table["key"]: table for table in result["tables"]}
    assert [row[1] for row in tables["messages"]["rows"]] == [2.0, {"blanket": 3, "fakes": 5}[kind], 2.0, 4.0]
    assert {chart["key"] for chart in result["charts"]} >= {"privacy-against-messages", "accuracy-against-messages"}
    assert any("answers can be read" in warned["sentence"] for warned in result["warnings"])
    assert "a share of 0.5 of the people send their additional messages" in json.dumps(result["statement"])


def test_the_smallest_batch_is_one_whose_messages_are_enough(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = place / "blanket.toml"
    file.write_text(TEXT.format(KINDS["blanket"], ", epsilon = 0.8"), encoding="utf-8")
    assert main(["minimum-batch", str(file)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    batch = int(words.partition("Smallest batch: ")[2].partition(" ")[0].replace(",", ""))
    survey = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=4, epsilon=float("inf")),
        shuffler=hs.BlanketMessages(p=0.5, trials=2),
        n=batch,
    )
    assert hs.dp.epsilon(survey, delta=1e-4).upper <= 0.8 * (1 + 1e-6)
    assert hs.dp.epsilon(replace(survey, n=batch - 2), delta=1e-4).upper > 0.8


@pytest.mark.parametrize("p", [0.5, 1.0])
def test_messages_that_people_did_not_send_are_missed_by_nobody(place: Path, p: float) -> None:
    """Half of the people send nothing besides: as many messages are counted as there are."""
    settings = f'kind = "blanket-messages", p = {p}, honest = 0.5'
    (place / "blanket.toml").write_text(TEXT.format(settings, ""), encoding="utf-8")
    assert collected(place, "blanket", "out") == 0
    folder, rng = place / "out", hs.reproducible(4)
    held = np.repeat([0, 1, 2], [300, 200, 100])
    sent = np.concatenate([held, rng.integers(4, size=round(300 * p))])
    reports = pl.read_parquet(folder / "reports.parquet")
    pl.DataFrame({reports.columns[0]: sent}, schema=reports.schema).write_parquet(folder / "reports.parquet")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, "dummies": sent.size - 600}), encoding="utf-8")
    estimate = tally_reports([folder]).estimate()
    assert np.all(abs(estimate.frequencies - [1 / 2, 1 / 3, 1 / 6, 0]) < 6 * estimate.standard_errors)
