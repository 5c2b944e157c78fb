from __future__ import annotations

import gzip
import json
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from hushuffle.collection import collect as publishing
from hushuffle.collection import release as collect_release
from hushuffle.collection import spark as spark_files
from hushuffle.collection.collect import Prepared, collect
from hushuffle.collection.collect import run as run_collection
from hushuffle.collection.engines import spark as engine
from hushuffle.collection.release import Release
from hushuffle.collection.request import Keys, Request, TooFewPeople
from hushuffle.errors import DataError, SpecificationError, UnsupportedProtocolError
from hushuffle.model import Bound
from hushuffle.specification import Specification, parse
from hushuffle.specification.reading import parse_collection
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
def test_reports_that_are_kept_are_those_of_this_machine(folder: Path) -> None:
    """One round here, the next on Spark: the same people send the same reports, and one ledger knows both."""
    kept = parse(f"""
        rounds = 2
        memoised = true
        population = {LABELS.replace(" }", ', person = "id" }')}
        randomizer = {{ kind = "randomized-response", epsilon = 2.0 }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6 }}
    """)
    rounds = [Keys(file=folder / "my.key", ids="id", round=number) for number in (1, 2)]
    collect(kept, out=folder / "local", base_folder=folder, keys=rounds[0])
    found = collect(kept, out=folder / "spark", base_folder=folder, keys=rounds[1], master="local[2]")
    assert reports(folder, "spark") == reports(folder, "local")
    assert found.rounds is not None
    assert (found.rounds.collections, found.rounds.kept) == (2, found.columns[""].persons)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("randomizer", "shuffler"),
    [
        ('"randomized-response"', '{ kind = "fakes-per-value", p = 0.25 }'),
        ('"randomized-response"', '{ kind = "blanket-messages", p = 0.5, trials = 2 }'),
        (
            '"randomized-response"',
            '{ kind = "augmented", trusted = true, each = { kind = "binomial", trials = 90, p = 0.5 } }',
        ),
        ('"local-hashing", g = 16', '{ kind = "blanket-messages", p = 0.5, trials = 2 }'),
    ],
)
def test_messages_of_people_are_those_of_the_local_engine(folder: Path, randomizer: str, shuffler: str) -> None:
    specification = survey(randomizer=f'{{ kind = {randomizer}, epsilon = "inf" }}', shuffler=shuffler)
    keys = Keys(file=folder / "my.key", ids="id", round=5)
    found = run(folder, specification, keys=keys)
    collect(specification, out=folder / "local", base_folder=folder, keys=keys)
    assert found.manifest.dummies > 100
    assert reports(folder, "out") == reports(folder, "local")


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
    with pytest.raises(DataError, match="A file is given twice"):
        run(folder, specification, out="third", sources=[*sources, str(folder / "codes-*.parquet")], column="a.b")
    assert not list((folder / "third").glob("*.*"))
    with pytest.raises(TooFewPeople, match="600 people are fewer than the 601"):
        run(folder, specification, out="fourth", sources=[str(folder / "codes-*")], column="a.b", min_batch=601)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("population", "message"),
    [
        (LABELS.replace(', "c"', ""), "match no category. Labels must match exactly as text"),
        (LABELS.replace(', missing = "drop"', ""), "are missing"),
        (LABELS.replace('"answer"', '"reply"'), r"has no column 'reply' \(number of columns: 3\)"),
        (LABELS.replace('"answer"', '"id"'), "match no category"),
        (LABELS.replace("people.parquet", "nobody.csv"), "PATH_NOT_FOUND"),
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
        "share their id with another record": pl.concat([people, people.head(1)]),
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
    with pytest.raises(DataError, match=r"1,200 of 1,200 records \(100 %\) share their id with another record"):
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
    with pytest.raises(SpecificationError, match="must have data and column"):
        run(folder, survey("{ n = 10, k = 3 }"), out="d")
    with pytest.raises(SpecificationError, match="must be the same column as --column"):
        run(folder, column="secret", out="e")
    reach = survey(
        "{ bits = 128, people = 50, audiences = { tv = 10, web = 9 } }",
        randomizer='{ kind = "bit-flipping", p = 0.2 }',
        shuffler='{ kind = "uniform" }',
    )
    with pytest.raises(SpecificationError, match="must be people with one value each"):
        run(folder, reach, out="f")


def written(folder: Path, name: str, text: str, *, encoding: str = "utf-8") -> str:
    content = text.encode(encoding)
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return str(folder / name)


def lines(name: str, separator: str = ",") -> str:
    """Return rows with a quoted answer, a line break and a separator in quotation marks, and a blank line above all."""
    rows = [f'"{"äbc"[i % 3]}"{separator}"{name}{i}"{separator}"two\n{separator} lines"' for i in range(50)]
    return "\n".join(["", f"answer{separator}id{separator}text", *rows, ""])


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("keyed", [True, False])
def test_csv_files(keyed: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is read as the local engine reads it: packed ones, tabs, line breaks in quotation marks."""
    files = [
        written(folder, name, lines(name, "\t" if ".tsv" in name else ",")) for name in ("a.csv", "b.csv.gz", "c.tsv")
    ]
    specification = survey('{ n = 1, categories = ["ä", "b", "c"] }')
    monkeypatch.setattr(engine, "_BUCKET", 2000)
    keys = Keys(file=folder / "my.key", ids="id") if keyed else None
    found = run(folder, specification, sources=files, column="answer", keys=keys)
    assert found.protocol.n == 150
    collect(specification, out=folder / "local", sources=files, column="answer", keys=keys)
    assert (reports(folder, "out") == reports(folder, "local")) == keyed


@pytest.mark.usefixtures("spark")
def test_csv_of_another_form(folder: Path) -> None:
    """Encoding and separator are those that the specification says."""
    written(folder, "a.csv", lines("a", ";"), encoding="windows-1252")
    form = '{ data = "*.csv", column = "answer", categories = ["ä", "b", "c"], separator = ";", encoding = "cp1252" }'
    keys = Keys(file=folder / "my.key", ids="id")
    run(folder, survey(form), keys=keys)
    collect(survey(form), out=folder / "local", base_folder=folder, keys=keys)
    assert reports(folder, "out") == reports(folder, "local")


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"answer,id\na,1\nb,2,secret\n", "is not a well-formed CSV file: the number of fields"),
        (b'answer,id\na,1\n"b,secret\n', "is not a well-formed CSV file"),
        (b"reply,id\na,1\n", "has no column 'answer'"),
        (b"answer,id,answer\na,1,secret\n", "column 'answer' occurs twice"),
        (b"", "1 of 1 files are empty: they have no line"),
        (b"\n\n", "is empty: not even a line"),
        (b"answer,id\n\xe4,secret\n", "is not UTF-8 text"),
        (b"answer,id\nsecret,1\na,2\n", r"1 of 2 records \(50 %\) match no category"),
        (b"answer,id\n,secret\na,2\n", r"1 of 2 records \(50 %\) are missing"),
    ],
)
def test_bad_csv(content: bytes, message: str, folder: Path) -> None:
    """The true cause, with no value in it."""
    (folder / "a.csv").write_bytes(content)
    specification = survey('{ data = "a.csv", column = "answer", categories = ["a", "b"] }')
    with pytest.raises(DataError, match=message) as caught:
        run(folder, specification)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert not list((folder / "out").glob("*.*"))


@pytest.mark.usefixtures("spark")
def test_csv_files_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specification = survey('{ n = 1, categories = ["a", "b"] }')
    plain = written(folder, "a.csv", "answer\na\n")
    packed = written(folder, "b.csv.gz", "answer\na\n")
    Path(packed).write_bytes(Path(packed).read_bytes()[:-9])

    def refused(message: str, *sources: str) -> None:
        out = f"out{len(list(folder.iterdir()))}"
        with pytest.raises(DataError, match=message):
            run(folder, specification, sources=sources, column="answer", out=out)

    refused(r"b\.csv\.gz cannot be unpacked", plain, packed)
    refused("1 of 2 files are empty", plain, written(folder, "c.csv", ""))
    refused("A file is given twice", plain, str(folder / "a*.csv"))
    refused("all files must be CSV, or all Parquet", plain, str(folder / "people.parquet"))
    monkeypatch.setattr(spark_files, "_LARGEST_CSV", 8)
    refused("with Spark a CSV file may have", plain)


COLUMNS = """
population = {{ data = "people.parquet" }}
shuffler = {{ kind = "scrambler", dummies = 20 }}
targets = {{ delta = 1e-6 }}
[[columns]]
column = "answer"
categories = {categories}
missing = "drop"
randomizer = {{ kind = "randomized-response", epsilon = 1.0 }}
[[columns]]
name = "shade"
column = "colour"
categories = {categories}
randomizer = {{ kind = "subset-selection", epsilon = 2.0, w = 2 }}
"""


@pytest.mark.usefixtures("spark")
def test_several_columns(folder: Path) -> None:
    """The reports of each column are those of the local engine, coins of its own included."""
    people = pl.read_parquet(folder / "people.parquet").with_columns(pl.col("answer").fill_null("c").alias("colour"))
    people.write_parquet(folder / "people.parquet")
    people.write_csv(folder / "people.csv")
    keys = Keys(file=folder / "my.key", ids="id")
    collection = parse_collection(COLUMNS.format(categories='["a", "b", "c"]'))
    written_as_csv = parse_collection(COLUMNS.format(categories='["a", "b", "c"]').replace("parquet", "csv"))
    told: list[float] = []
    request = Request(base_folder=folder, keys=keys, progress=lambda _, share: told.append(share))
    local = run_collection(collection, out=folder / "local", request=request)
    for out, asked in (("spark", collection), ("csv", written_as_csv)):
        found = run_collection(asked, out=folder / out, request=replace(request, master="local[2]"))
        assert found.repeated  # the same batch, says the ledger
        assert found.dropped == local.dropped
        for name in ("answer", "shade"):
            assert reports(folder, f"{out}/{name}") == reports(folder, f"local/{name}")
    broken = parse_collection(COLUMNS.format(categories='["a", "b", "x"]'))
    with pytest.raises(DataError) as caught:
        run_collection(broken, out=folder / "broken", request=replace(request, keys=None, master="local[2]"))
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == ["column 'answer'", "column 'colour'"]
    assert not (folder / "broken").exists()
