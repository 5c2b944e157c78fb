"""A random number of dummies in a collection: drawn once for a batch, the same when it is repeated."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.collection import release
from hushuffle.collection.estimate import tally_reports
from hushuffle.collection.released import Manifest, read_manifest
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound
from hushuffle.questions import dp

NUMBERS = [3, 5, 8, 13, 21, 34, 55, 89, 144, 233]
LAW = f'{{ kind = "own", numbers = {NUMBERS}, probabilities = {[0.1] * 10} }}'
TEXT = """
population = {{ data = "people.csv", column = "town", categories = ["a", "b", "c"] }}
randomizer = {{ kind = "randomized-response", epsilon = 1.5 }}
shuffler = {{ kind = "scrambler", dummies = {} }}
targets = {{ delta = 1e-3 }}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(release, "central_of", lambda *_: Bound.exact(1.0, unit="nats"))
    monkeypatch.setattr(dp, "compose", lambda *_, **__: Bound.exact(2.0, unit="nats"))
    people = {"number": range(40), "town": [("a", "b", "c")[number % 3] for number in range(40)]}
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    for name, dummies in (("law", LAW), ("other", "21")):
        (tmp_path / f"{name}.toml").write_text(TEXT.format(dummies), encoding="utf-8")
    (tmp_path / "my.key").write_text(bytes(range(32)).hex(), encoding="ascii")
    (tmp_path / "my.key").chmod(0o600)
    return tmp_path


def collected(place: Path, out: str, *more: str, specification: str = "law") -> int:
    return main(["collect", str(place / f"{specification}.toml"), "--out", str(place / out), "--min-batch", "2", *more])


def keyed(place: Path, number: int, *more: str) -> tuple[str, ...]:
    return ("--key-file", str(place / "my.key"), "--id", "number", "--round", str(number), *more)


def manifest(place: Path, out: str) -> Manifest:
    return read_manifest(place / out / "manifest.json")


def test_a_repeated_batch_has_the_same_number_and_the_same_dummies(place: Path) -> None:
    assert collected(place, "first", *keyed(place, 0, "--new-key")) == 0
    assert collected(place, "again", *keyed(place, 0)) == 0
    reports = [sorted(pl.read_parquet(place / out / "reports.parquet").rows()) for out in ("first", "again")]
    assert reports[0] == reports[1]
    assert manifest(place, "first") == manifest(place, "again")


def test_every_round_draws_its_own_number(place: Path) -> None:
    drawn = set()
    for number in range(6):
        assert collected(place, f"{number}", *keyed(place, number, *(["--new-key"] if number == 0 else []))) == 0
        drawn.add(manifest(place, f"{number}").dummies)
    assert len(drawn) > 1
    assert drawn <= set(NUMBERS)


def test_another_law_of_dummies_is_another_release(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert collected(place, "first", *keyed(place, 0, "--new-key")) == 0
    assert collected(place, "other", *keyed(place, 0), specification="other") != 0
    assert "with another shuffler or another number of dummies" in " ".join(capsys.readouterr().err.split())
    assert not (place / "other").exists()


def test_without_a_key_every_release_draws_afresh_and_says_its_number(place: Path) -> None:
    drawn = set()
    for number in range(12):
        assert collected(place, f"{number}") == 0
        drawn.add(manifest(place, f"{number}").dummies)
        rows = pl.read_parquet(place / f"{number}" / "reports.parquet").height
        assert rows == 40 + manifest(place, f"{number}").dummies
    assert len(drawn) > 1
    assert "from a given distribution" in manifest(place, "0").facts["deployment"]


def test_the_guarantee_is_about_all_numbers(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def central_of(_: object, protocol: Protocol, _total: Bound | None) -> Bound:
        asked.append(protocol)
        return Bound.exact(1.0, unit="nats")

    monkeypatch.setattr(release, "central_of", central_of)
    assert collected(place, "out") == 0
    laws = [protocol.shuffler.dummy_law for protocol in asked]
    assert [law.numbers.tolist() for law in laws if law is not None] == [NUMBERS]


def test_estimates_use_the_number_that_was_drawn(place: Path) -> None:
    for out in ("one", "two"):
        assert collected(place, out) == 0
    whole = tally_reports([place / "one", place / "two"])
    assert whole.manifest.dummies == manifest(place, "one").dummies + manifest(place, "two").dummies
    assert whole.counts.total == 80 + whole.manifest.dummies
    assert whole.estimate().frequencies.sum() == pytest.approx(1.0)
