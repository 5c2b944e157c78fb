"""Sums by several messages with Spark: under a key the very messages of one machine; nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushuffle.collection.request import Keys, Request, TooFewPeople
from hushuffle.collection.sums import CollectedSum, collect_sum, estimate_folder
from hushuffle.errors import DataError
from hushuffle.specification.sums import parse_sum
from key_memory import new_key
from spark_session import NEEDS_SPARK, session

pytestmark = [*NEEDS_SPARK, pytest.mark.slow]

PEOPLE = 900
TEXT = """
sum = { epsilon = 1.0, delta = 1e-8, honest = 0.9 }
[population]
data = "people.parquet"
column = "hours"
kind = "number"
low = 0
high = 24
levels = 97
missing = "drop"
"""


@pytest.fixture(scope="module", autouse=True)
def _spark() -> None:
    session()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    hours = [*np.linspace(-1, 20, PEOPLE).tolist(), None, None]
    people = pl.DataFrame({"hours": hours, "name": [f"secret {place}" for place in range(PEOPLE + 2)]})
    people.write_parquet(tmp_path / "people.parquet")
    people.write_csv(tmp_path / "people.csv")
    monkeypatch.setenv("HUSHUFFLE_STATE", str(tmp_path / "state"))
    return tmp_path


def run(folder: Path, out: str, *, text: str = TEXT, keys: Keys | None = None, **asked: Any) -> CollectedSum:
    request = Request(**{"base_folder": folder, "master": "local[2]", "keys": keys, **asked})
    return collect_sum(parse_sum(text), out=folder / out, request=request)


def messages(folder: Path, out: str) -> list[int]:
    found: list[int] = pl.read_parquet(folder / out / "messages.parquet")["message"].to_list()
    return found


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_under_a_key_messages_are_those_of_one_machine(folder: Path, kind: str) -> None:
    new_key(folder / "key")
    text = TEXT.replace("parquet", kind)
    here = run(folder, "here", text=text, keys=Keys(file=folder / "key", ids="name"), master=None)
    there = run(folder, "there", text=text, keys=Keys(file=folder / "key", ids="name"))
    assert (here.repeated, there.repeated) == (False, True)  # the ledger holds them for the same
    assert sorted(messages(folder, "here")) == sorted(messages(folder, "there"))
    assert messages(folder, "here") != messages(folder, "there")
    assert (there.dropped, there.clipped) == (here.dropped, here.clipped) == (2, 43)
    assert there.protocol == here.protocol
    assert (folder / "here" / "manifest.json").read_bytes() == (folder / "there" / "manifest.json").read_bytes()


def test_without_a_key_the_sum_comes_back_and_messages_are_fresh(folder: Path) -> None:
    run(folder, "one")
    run(folder, "two")
    assert sorted(messages(folder, "one")) != sorted(messages(folder, "two"))
    truth = float(np.clip(np.linspace(-1, 20, PEOPLE), 0, 24).sum())
    found = estimate_folder(folder / "one")[1]
    assert abs(float(found.total[0]) - truth) < 6 * found.standard_error
    assert found.people == PEOPLE
    assert sorted(path.name for path in folder.iterdir()) == ["one", "people.csv", "people.parquet", "two"]


def test_what_is_refused_leaves_nothing(folder: Path) -> None:
    with pytest.raises(TooFewPeople, match="--min-batch"):
        run(folder, "out", min_batch=PEOPLE + 1)
    with pytest.raises(DataError, match="2 of 902 records") as refused:
        run(folder, "out", text=TEXT.replace('"drop"', '"refuse"'))
    assert "secret" not in str(refused.value)
    table = pl.read_parquet(folder / "people.parquet").with_columns(name=pl.lit("secret"))
    table.write_parquet(folder / "people.parquet")
    new_key(folder / "key")
    with pytest.raises(DataError, match="share their id with another record"):
        run(folder, "out", keys=Keys(file=folder / "key", ids="name"))
    assert not (folder / "out").exists()
