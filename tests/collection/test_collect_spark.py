from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from hushuffle.collection import collect as publishing
from hushuffle.collection import release as collect_release
from hushuffle.collection.collect import Prepared, collect
from hushuffle.collection.release import Release
from hushuffle.collection.request import Keys, Request, TooFewPeople
from hushuffle.errors import DataError, SpecificationError, UnsupportedProtocolError
from hushuffle.model import Bound
from hushuffle.specification import Specification, parse
from key_memory import new_key, no_figure
from spark_session import NEEDS_SPARK, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK

LABELS = '{ data = "people.parquet", column = "answer", categories = ["a", "b", "c"], missing = "drop" }'


def survey(
    population: str = LABELS,
    *,
    randomizer: str = '{ kind = "randomized-response", epsilon = 2.0 }',
    shuffler: str = '{ kind = "scrambler", dummies = 50 }',
    more: str = "",
) -> Specification:
    return parse(f"""
        population = {population}
        randomizer = {randomizer}
        shuffler = {shuffler}
        targets = {{ delta = 1e-6{more} }}
    """)


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return session()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(collect_release, "central_of", lambda *_: Bound.exact(1.0, unit="nats"))
    monkeypatch.setattr(publishing, "rounds_of", no_figure)
    answers = [("a", "b", "c", None)[code] for code in np.random.default_rng(3).integers(0, 4, 600)]
    people = pl.DataFrame({"id": [f"p{i}" for i in range(600)], "secret": np.arange(600), "answer": answers})
    people.write_parquet(tmp_path / "people.parquet")
    new_key(tmp_path / "my.key")
    return tmp_path


def run(
    folder: Path, specification: Specification | None = None, *, out: str = "out", name: str = "", **more: Any
) -> Release:
    (folder / out / "spill").mkdir(parents=True)
    request = Request(**{"base_folder": folder, "master": "local[2]", **more})
    specification = specification or survey()
    return collect_release.release(specification, request, name=name, spill=folder / out / "spill", target=folder / out)


def reports(folder: Path, out: str) -> list[tuple[int, ...]]:
    return sorted(pl.read_parquet(folder / out / "reports.parquet").rows())


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("kind", ['"randomized-response", epsilon = 2.0', '"local-hashing", epsilon = 2.0, g = 4'])
def test_what_the_local_engine_would_release(folder: Path, kind: str) -> None:
    """Reports, manifest and ledger; only the order differs."""
    specification, keys = survey(randomizer=f"{{ kind = {kind} }}"), Keys(file=folder / "my.key", ids="id", round=3)
    told: list[float] = []
    found = run(folder, specification, keys=keys, progress=lambda _, share: told.append(share))
    more: dict[str, Any] = {"base_folder": folder, "keys": keys}
    local = collect(specification, out=folder / "local", **more)
    assert told == sorted(told)
    assert reports(folder, "out") == reports(folder, "local")
    manifests = [json.loads((folder / out / "manifest.json").read_text(encoding="utf-8")) for out in ("out", "local")]
    assert manifests[1].pop("key") == no_figure().facts()
    assert manifests[0] == manifests[1]
    assert found.dropped == local.dropped > 0
    prepared = Prepared(releases={"": found}, manifest=found.manifest, central=found.central, folder=folder / "out")
    assert prepared.admitted(Request(keys=keys)).releases[""].repeated  # this very batch is there already
    with pytest.raises(DataError, match="with another shuffler or another number of dummies"):
        collect(survey(randomizer=f"{{ kind = {kind} }}", shuffler='{ kind = "uniform" }'), out=folder / "more", **more)
    first, second = ((folder / out / "reports.parquet").read_bytes() for out in ("out", "local"))
    assert first != second


@pytest.mark.usefixtures("spark")
def test_without_a_key(folder: Path) -> None:
    """Codes in two files; what is released is not repeated."""
    for part in (1, 2):
        pl.DataFrame({"a.b": np.arange(300) % 5}).write_parquet(folder / f"codes-{part}.parquet")
    specification = survey("{ n = 1, k = 5 }", shuffler='{ kind = "uniform" }')
    sources = [str(folder / "codes-1.parquet"), str(folder / "codes-2.parquet")]
    for out in ("first", "second"):
        found = run(folder, specification, out=out, sources=sources, column="a.b")
        assert (found.manifest.people, found.entries) == (600, None)
        assert '"coins": "secure"' in (folder / out / "manifest.json").read_text(encoding="utf-8")
    assert reports(folder, "first") != reports(folder, "second")
    with pytest.raises(DataError, match="A file is there twice"):
        run(folder, specification, out="third", sources=[*sources, str(folder / "codes-*.parquet")], column="a.b")
    assert not list((folder / "third").glob("*.*"))
    with pytest.raises(TooFewPeople, match="There are 600 people, fewer than the 601"):
        run(folder, specification, out="fourth", sources=[str(folder / "codes-*")], column="a.b", min_batch=601)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("population", "message"),
    [
        (LABELS.replace(', "c"', ""), "match no category. Labels are compared as text"),
        (LABELS.replace(', missing = "drop"', ""), "are missing"),
        (LABELS.replace('"answer"', '"reply"'), r"has no column 'reply' \(number of columns: 3\)"),
        (LABELS.replace('"answer"', '"id"'), "match no category"),
        (LABELS.replace("people.parquet", "people.csv"), "mends broken rows silently"),
        (LABELS.replace("people.parquet", "nobody.parquet"), "PATH_NOT_FOUND"),
        (LABELS.replace("people.parquet", "broken.parquet"), "Spark failed"),
        (LABELS.replace("people.parquet", "dates.parquet"), "of type Date"),
    ],
)
def test_bad_data(population: str, message: str, folder: Path) -> None:
    (folder / "broken.parquet").write_bytes(b"PAR1PAR1PAR1")
    pl.DataFrame({"answer": [None]}, schema={"answer": pl.Date}).write_parquet(folder / "dates.parquet")
    with pytest.raises(DataError, match=message) as caught:
        run(folder, survey(population))
    assert "secret" not in "".join(traceback.format_exception(caught.value))  # a column that was not asked for


@pytest.mark.usefixtures("spark")
def test_bad_ids(folder: Path) -> None:
    people = pl.read_parquet(folder / "people.parquet").with_columns(pl.lit("a").alias("answer"))
    keys = Keys(file=folder / "my.key", ids="id")
    edited = {
        "have no id": people.with_columns(pl.when(pl.col("secret") == 7).then(pl.lit("")).otherwise("id").alias("id")),
        "have an id that another record has": pl.concat([people, people.head(1)]),
        "Ids must be text or integers": people.with_columns(pl.lit(0.5).alias("id")),
    }
    for number, (message, table) in enumerate(edited.items()):
        table.write_parquet(folder / "people.parquet")
        with pytest.raises(DataError, match=message):
            run(folder, keys=keys, out=f"out{number}")
    # In different batches of rows, it is found out where their places are sorted.
    (folder / "people").mkdir()
    for part in (1, 2):
        people.write_parquet(folder / "people" / f"{part}.parquet")
    with pytest.raises(DataError, match=r"1,200 of 1,200 records \(100 %\) have an id that another record has"):
        run(folder, survey(LABELS.replace("people.parquet", "people")), keys=keys)
    with pytest.raises(DataError, match="cannot be its private column"):
        run(folder, keys=Keys(file=folder / "my.key", ids="answer"), out="own")
    people.with_columns(pl.int_range(600).cast(pl.UInt64).alias("id")).write_parquet(folder / "people.parquet")
    found = run(folder, keys=keys, out="numbers")
    local = collect(survey(), out=folder / "local", base_folder=folder, keys=keys)
    assert local.manifest.facts == {**found.manifest.facts, "key": no_figure().facts()}
    assert reports(folder, "numbers") == reports(folder, "local")


def test_what_spark_does_not_collect(folder: Path) -> None:
    mallows = survey(shuffler='{ kind = "mallows", alpha = 3.0, groups = { column = "secret" } }')
    with pytest.raises(UnsupportedProtocolError, match="--engine local"):
        run(folder, mallows, out="a")
    with pytest.raises(UnsupportedProtocolError, match="Without a shuffler"):
        run(folder, survey(shuffler='{ kind = "none" }'), out="b")
    with pytest.raises(UnsupportedProtocolError, match="Several columns"):
        run(folder, name="answer", out="c")
    with pytest.raises(SpecificationError, match="must have data and column"):
        run(folder, survey("{ n = 10, k = 3 }"), out="d")
    with pytest.raises(SpecificationError, match="must be the column that is asked for"):
        run(folder, column="secret", out="e")
    reach = survey(
        "{ bits = 128, people = 50, audiences = { tv = 10, web = 9 } }",
        randomizer='{ kind = "bit-flipping", p = 0.2 }',
        shuffler='{ kind = "uniform" }',
    )
    with pytest.raises(SpecificationError, match="must be people with one value each"):
        run(folder, reach, out="f")
