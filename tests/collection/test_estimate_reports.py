from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.collection import release as collecting
from hushuffle.collection.collect import collect
from hushuffle.collection.engines import local
from hushuffle.collection.estimate import tally_reports
from hushuffle.collection.released import counts_text
from hushuffle.errors import DataError
from hushuffle.specification import parse

SUBSETS = 'kind = "subset-selection", epsilon = 2.0, w = 2'
BITS = 'kind = "unary-encoding", encoding = "symmetric", epsilon = 2.0'
ROWS = 'kind = "hadamard-response", epsilon = 2.0'
OWN = 'kind = "matrix", matrix = [[0.6, 0.2, 0.1, 0.1], [0.2, 0.5, 0.2, 0.1], [0.1, 0.2, 0.1, 0.6]]'
HASHING = 'kind = "local-hashing", epsilon = 2.0, g = 4'


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "central_of", lambda *_: hs.Bound.exact(1.0, unit="nats"))


def collected(
    folder: Path,
    out: str,
    *,
    n: int = 400,
    k: int = 5,
    randomizer: str = 'kind = "randomized-response", epsilon = 2.0',
    shuffler: str = 'kind = "uniform"',
) -> Path:
    specification = parse(f"""
        population = {{ n = 1, k = {k} }}
        randomizer = {{ {randomizer} }}
        shuffler = {{ {shuffler} }}
        targets = {{ delta = 1e-6 }}
    """)
    pl.DataFrame({"value": np.arange(n) % 3}).write_parquet(folder / "values.parquet")
    collect(specification, out=folder / out, sources=[str(folder / "values.parquet")], column="value")
    return folder / out


@pytest.mark.parametrize("randomizer", ['kind = "randomized-response", epsilon = 2.0', HASHING, SUBSETS, BITS, ROWS])
def test_estimates_are_those_of_the_library(tmp_path: Path, randomizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "secure", lambda: hs.reproducible(1))
    out = collected(tmp_path, "out", randomizer=randomizer, shuffler='kind = "scrambler", dummies = 30')
    tally = tally_reports([out])
    protocol = hs.Protocol(randomizer=tally.randomizer, shuffler=hs.Scrambler(dummies=30), n=400)
    rows = pl.read_parquet(out / "reports.parquet").to_numpy().astype(np.int64)
    expected = hs.estimate(rows[:, 0] if rows.shape[1] == 1 else rows, protocol=protocol)
    assert np.array_equal(tally.estimate().frequencies, expected.frequencies)
    assert tally.labels == ("0", "1", "2", "3", "4")
    truth = np.array([134, 133, 133, 0, 0]) / 400
    # Five normal errors within six standard errors: false alarm 1e-8 for each randomizer.
    assert np.all(np.abs(tally.estimate().frequencies - truth) < 6 * tally.estimate().standard_errors)


def test_several_collections_and_machines_add_up(tmp_path: Path) -> None:
    outs = [collected(tmp_path, f"out{one}", n=200 + one) for one in range(3)]
    told: list[float] = []
    whole = tally_reports(outs, progress=lambda _, share: told.append(share))
    assert (whole.manifest.people, whole.counts.total, told[-1]) == (603, 603, 1.0)
    part = tally_reports(outs[:2])
    counts = tmp_path / "counts.json"
    counts.write_text(counts_text(part.manifest, part.counts.counts), encoding="utf-8")
    merged = tally_reports([counts, outs[2] / "reports.parquet"])
    assert merged.counts == whole.counts
    assert merged.manifest.people == 603
    assert parse(merged.manifest.specification) == parse(whole.manifest.specification)


def test_one_manifest_for_the_parts_of_a_collection(tmp_path: Path) -> None:
    out = collected(tmp_path, "out")
    table = pl.read_parquet(out / "reports.parquet")
    table.head(100).write_parquet(tmp_path / "one.parquet")
    table.tail(300).write_parquet(tmp_path / "two.parquet")
    parts = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    assert tally_reports(parts, manifest=out / "manifest.json").counts == tally_reports([out]).counts
    with pytest.raises(DataError, match="describes 400 reports, but there are 100: it belongs to other"):
        tally_reports(parts[:1], manifest=out / "manifest.json")
    with pytest.raises(DataError, match=r"manifest.json does not exist\. Reports need the manifest"):
        tally_reports(parts)


@pytest.mark.parametrize(
    "other", [{"k": 6}, {"randomizer": 'kind = "randomized-response", epsilon = 1.0'}, {"randomizer": HASHING}]
)
def test_reports_that_were_made_otherwise(tmp_path: Path, other: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="different randomizers or categories"):
        tally_reports([collected(tmp_path, "out"), collected(tmp_path, "other", **other)])


def test_counts_that_no_reports_give(tmp_path: Path) -> None:
    """Each report counts once, by a matrix as by randomized response; and a report 0 has a chance of .6 at most."""
    for randomizer, k in ((OWN, 3), ('kind = "randomized-response", epsilon = 2.0', 5)):
        out = collected(tmp_path, f"out{k}", k=k, randomizer=randomizer, n=3000)
        tally = tally_reports([out])
        assert not [warned for warned in tally.warnings(confidence=0.95) if warned.key == "implausible-shares"]
        document = json.loads(counts_text(tally.manifest, tally.counts.counts))
        file = tmp_path / "counts.json"
        document["counts"] = [3000] + [0] * (len(document["counts"]) - 1)
        file.write_text(json.dumps(document))
        (first, *_) = tally_reports([file]).warnings(confidence=0.95)
        assert first.key == "implausible-shares"
        assert "too far outside 0 to 1 to be chance: the reports do not match the manifest" in first.sentence
        document["counts"][0] -= 7
        file.write_text(json.dumps(document))
        with pytest.raises(
            DataError, match="the counts are impossible for 3,000 reports: the file may have been edited"
        ):
            tally_reports([file])


def test_what_does_not_fit_together(tmp_path: Path) -> None:
    out = collected(tmp_path, "out")
    with pytest.raises(DataError, match="The same reports are given twice"):
        tally_reports([out, out / "reports.parquet"])
    with pytest.raises(DataError, match="There are no reports"):
        tally_reports([])
    manifest = out / "manifest.json"
    document = json.loads(manifest.read_text(encoding="utf-8"))
    for change, message in (
        ({"people": 399}, "`people` and `specification` contradict each other"),
        ({"specification": "a = 1"}, "the specification in .*manifest.json: "),
    ):
        manifest.write_text(json.dumps(document | change), encoding="utf-8")
        with pytest.raises(DataError, match=message):
            tally_reports([out])
    counts = tmp_path / "counts.json"
    counts.write_text(json.dumps(document | {"content": "support counts", "counts": [1, 2]}), encoding="utf-8")
    with pytest.raises(DataError, match="has 2 counts for 5 categories"):
        tally_reports([counts])
