from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hushuffle.collection import release as collect_release
from hushuffle.collection.collect import run
from hushuffle.collection.estimate import tally_columns, tally_reports
from hushuffle.collection.request import Request
from hushuffle.errors import DataError
from hushuffle.model import Bound
from hushuffle.questions import dp
from hushuffle.specification.reading import parse_collection


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect_release, "central_of", lambda *_: Bound.exact(1.0, unit="nats"))
    monkeypatch.setattr(dp, "compose", lambda *_, **__: Bound.exact(2.0, unit="nats"))


def collected(folder: Path, out: str, *names: str) -> Path:
    columns = "".join(
        f"""
        [[columns]]
        column = "{name}"
        categories = ["no", "yes"]
        randomizer = {{ kind = "randomized-response", epsilon = 1.0 }}
        """
        for name in names
    )
    specification = parse_collection(f"""
        population = {{ data = "people.csv" }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6 }}
        {columns}
    """)
    pl.DataFrame({name: ["no", "yes"] * 50 for name in names}).write_csv(folder / "people.csv")
    run(specification, out=folder / out, request=Request(base_folder=folder))
    return folder / out


def test_columns_are_added_up_one_by_one(tmp_path: Path) -> None:
    outs = [collected(tmp_path, "one", "a", "b"), collected(tmp_path, "two", "b", "a")]
    told: list[float] = []
    found = tally_columns(outs, progress=lambda _, share: told.append(share))
    assert told == sorted(told)
    assert list(found) == ["a", "b"]
    assert found["a"].counts == tally_reports([out / "a" for out in outs]).counts
    assert found["b"].manifest.people == 200
    alone = tally_columns([outs[0] / "a"])
    assert list(alone) == [""]
    assert alone[""].counts == tally_reports([outs[0] / "a"]).counts


def test_what_does_not_fit_together(tmp_path: Path) -> None:
    one, other = collected(tmp_path, "one", "a", "b"), collected(tmp_path, "other", "a", "c")
    with pytest.raises(DataError, match="The releases have different columns"):
        tally_columns([one, other])
    with pytest.raises(DataError, match="The releases have different columns"):
        tally_columns([one, one / "a" / "reports.parquet"])
    with pytest.raises(DataError, match="Remove it: each column has its own"):
        tally_columns([one], manifest=one / "manifest.json")
    with pytest.raises(DataError, match="does not exist"):
        tally_columns([tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="does not exist"):
        tally_columns([tmp_path / "empty"])
