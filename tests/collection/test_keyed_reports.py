"""What a key gives, from the file of people to the files of reports: it must never change."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.collection import collect, release
from hushuffle.model import Bound
from hushuffle.questions import dp
from key_memory import no_figure

REST = 'shuffler = { kind = "scrambler", dummies = 25 }\ntargets = { delta = 1e-6 }\n'
TOWN = 'column = "town"\ncategories = ["a", "b", "c"]\nmissing = "drop"\n'
AGE = 'column = "age"\ncategories = { young = "< 30", old = ">= 30" }\nmissing = "unknown"\n'
RESPONSE = 'randomizer = { kind = "randomized-response", epsilon = 1.5 }\n'
HASHING = 'randomizer = { kind = "local-hashing", epsilon = 2.0, g = 4 }\n'
SPECIFICATIONS = {
    "one": f"{REST}{RESPONSE}[population]\ndata = 'people.csv'\n{TOWN}",
    "several": f"{REST}[population]\ndata = 'people.csv'\n[[columns]]\n{TOWN}{RESPONSE}[[columns]]\n{AGE}{HASHING}",
}
DIGESTS: dict[str, dict[str, str]] = {
    "one name": {"reports.parquet": "900bfe32cdc1a63f", "manifest.json": "e9e09720b4b515da"},
    "one number": {"reports.parquet": "a3d80a4d5c04c616", "manifest.json": "e9e09720b4b515da"},
    "several name": {
        "age/reports.parquet": "1755e693ee930ec2",
        "town/reports.parquet": "fda29e4b1acd5226",
        "age/manifest.json": "f2effbd1f34e7c08",
        "manifest.json": "af022c1a2a3589f8",
        "town/manifest.json": "2e86ea03d79b14f1",
    },
    "several number": {
        "age/reports.parquet": "b417da35ef0d637c",
        "town/reports.parquet": "4a6ba0cffe529216",
        "age/manifest.json": "f2effbd1f34e7c08",
        "manifest.json": "af022c1a2a3589f8",
        "town/manifest.json": "2e86ea03d79b14f1",
    },
}


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of the sorted reports in each file of them, and of the manifests without words."""
    found = {}
    for path in sorted(folder.rglob("*.parquet")):
        table = pl.read_parquet(path)
        text = repr((table.schema, sorted(table.rows())))
        found[str(path.relative_to(folder))] = hashlib.sha256(text.encode()).hexdigest()[:16]
    for path in sorted(folder.rglob("*.json")):
        document = json.loads(path.read_bytes())
        document.pop("deployment", None)
        document["central"].pop("assumed", None)
        del document["software"]
        found[str(path.relative_to(folder))] = hashlib.sha256(json.dumps(document).encode()).hexdigest()[:16]
    return found


@pytest.mark.parametrize("name", ["one", "several"])
@pytest.mark.parametrize("ids", ["number", "name"])
def test_what_a_key_gives(name: str, ids: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "central_of", lambda *_: Bound.exact(1.0, unit="nats"))
    monkeypatch.setattr(dp, "compose", lambda *_, **__: Bound.exact(2.0, unit="nats"))
    monkeypatch.setattr(collect, "rounds_of", no_figure)
    people = {
        "number": np.arange(400) * 7 + 3,
        "name": [f"person {number}" for number in range(400)],
        "town": [("a", "b", "c", "")[number % 4] for number in range(400)],
        "age": [("12", "30", "", "77", "5")[number % 5] for number in range(400)],
    }
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    (tmp_path / "town.toml").write_text(SPECIFICATIONS[name], encoding="utf-8")
    (tmp_path / "my.key").write_text(bytes(range(32)).hex(), encoding="ascii")
    (tmp_path / "my.key").chmod(0o600)
    key = ("--key-file", str(tmp_path / "my.key"), "--new-key", "--id", ids, "--round", "3")
    assert main(["collect", str(tmp_path / "town.toml"), "--out", str(tmp_path / "out"), *key]) == 0
    assert digests(tmp_path / "out") == DIGESTS[f"{name} {ids}"]
