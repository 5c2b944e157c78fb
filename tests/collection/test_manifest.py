from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.collection.estimate import tally_reports
from hushuffle.collection.released import Manifest, counts_text, read_counts, read_manifest
from hushuffle.errors import DataError, InvalidInputError
from hushuffle.model import Bound, Citation, Estimate
from hushuffle.tables.value_files import check_kind, frequency_table, save_tables, save_text

MANIFEST = Manifest(specification="a = 1\n", people=5, dummies=2, facts={"local_epsilon": 1.0})


def test_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(MANIFEST.text(), encoding="utf-8")
    back = read_manifest(path)
    assert (back.specification, back.people, back.dummies) == ("a = 1\n", 5, 2)
    assert back.facts["local_epsilon"] == 1.0
    path.write_text(counts_text(MANIFEST, np.array([3, 4])), encoding="utf-8")
    counted, counts = read_counts(path)
    assert (counted.people, counts.tolist()) == (5, [3, 4])
    with pytest.raises(InvalidInputError, match="`people`"):
        Manifest(specification="", people=0, dummies=0, facts={})


def test_figures() -> None:
    source = Citation(key="x", text="Somebody (2020)", where="Theorem 1")
    bound = Bound(lower=1.0, upper=math.inf, kind="lower", unit="nats", sources=(source,))
    assert bound.as_dict()["upper"] == "infinity"
    assert bound.as_dict()["sources"] == ["Somebody (2020) Theorem 1"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"content": "other"}, "contains no manifest of hushuffle collect"),
        ({"schema_version": 2}, "written by another version"),
        ({"people": 0}, "must have `specification`, `people` and `dummies`"),
        ({"people": True}, "must have"),
        ({"dummies": -1}, "must have"),
        ({"specification": 3}, "must have"),
    ],
)
def test_what_is_no_manifest(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(json.loads(MANIFEST.text()) | change), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_manifest(path)


@pytest.mark.parametrize("counts", [None, [], ["1"], [-(2**53)], 3])
def test_what_are_no_counts(tmp_path: Path, counts: Any) -> None:
    path = tmp_path / "counts.json"
    path.write_text(json.dumps(json.loads(counts_text(MANIFEST, np.array([1]))) | {"counts": counts}), encoding="utf-8")
    with pytest.raises(DataError, match="has no valid support counts"):
        read_counts(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with pytest.raises(DataError, match=r"does not exist\. Reports need the manifest"):
        read_manifest(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_manifest(tmp_path)
    for text in ('{"content', "[" * 100_000, "[]"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"not valid JSON|contains no manifest"):
            read_manifest(path)


SURVEY = """population = { n = 5, k = 2 }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 0.01 }
"""


@pytest.mark.parametrize("counts", [[6, -1], [6, 2]])
def test_counts_that_no_reports_have(tmp_path: Path, counts: list[int]) -> None:
    path = tmp_path / "counts.json"
    written = replace(MANIFEST, specification=SURVEY, dummies=0)
    path.write_text(counts_text(written, np.array(counts)), encoding="utf-8")
    with pytest.raises(DataError, match="a support count is below 0, or exceeds the number of reports"):
        tally_reports([path])


def test_tables_of_frequencies(tmp_path: Path) -> None:
    shares = np.array([0.3, 0.7])
    estimate = Estimate(frequencies=shares, raw=shares, n=10, variance_intercept=0.01, variance_slope=0.0)
    table = frequency_table(estimate, ["no", "yes"], confidence=0.9, above=np.array([True, True]))
    for name in ("a.csv", "a.parquet", "a.json"):
        save_tables(tmp_path / name, {"": table}, {"": {"people": 10}})
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[
        0
    ] == "value,frequency,standard_error,low,high,above_threshold,people,people_low,people_high"
    document = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert document["people"] == 10
    assert document["frequencies"][1]["value"] == "yes"
    assert document["frequencies"][1]["standard_error"] == pytest.approx(0.1)
    save_text(tmp_path / "a.json", "text")
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(InvalidInputError, match="`out` must be a file of these kinds"):
        check_kind(tmp_path / "a.xlsx")
    with pytest.raises(FileNotFoundError):
        save_text(tmp_path / "absent" / "a.json", "text")
