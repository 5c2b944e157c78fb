from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pickle
import signal
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats

from hushuffle.collection.engines import spark as module
from hushuffle.collection.engines import spark_tasks
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.local import LocalCollection
from hushuffle.collection.engines.spark import SparkCollection, count_reports
from hushuffle.collection.engines.spark_session import check_installed, failure, plainly, started
from hushuffle.collection.engines.spark_tasks import MARKS, NAMELESS, SENT, TWICE, Count, Pack, Randomize, Reader
from hushuffle.collection.record_tags import Tags
from hushuffle.collection.released import write_reports
from hushuffle.errors import DataError, InvalidInputError, MissingDependencyError
from hushuffle.mechanisms.randomizers import (
    HadamardResponse,
    LocalHashing,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from hushuffle.mechanisms.shufflers import Scrambler
from hushuffle.randomness import Randomness, reproducible
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN, Answers
from spark_session import NEEDS_SPARK, folder, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = NEEDS_SPARK

KEY = bytes(range(100, 132))
MECHANISMS = [
    RandomizedResponse(k=300, epsilon=2.0),
    LocalHashing(k=300, g=4, epsilon=2.0),
    LocalHashing(k=300, g=5, epsilon=2.0),
    SubsetSelection(k=300, w=3, epsilon=2.0),
    UnaryEncoding(k=300, epsilon=2.0),
    HadamardResponse(k=300, epsilon=2.0),
]
RESPONSE = MECHANISMS[0]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    cloudpickle: Any = importlib.import_module("pyspark.cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not know this file
    yield session()
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def reader(k: int = 300, *, ids: bool = True) -> Reader:
    return Reader(answers=Answers.of(k, "refuse"), ids=ids)


def task(randomizer: Mechanism = RESPONSE, *, ids: bool = True, order_key: bytes = bytes(32)) -> Randomize:
    kernel = Kernel(randomizer=randomizer, key=KEY, round=1)
    mechanism = "m" if ids else None
    return Randomize(reader=reader(ids=ids), kernel=kernel, order_key=order_key, mechanism=mechanism)


def people_of(n: int, k: int = 300) -> pl.DataFrame:
    return pl.DataFrame({"id": np.arange(n) + 10**6, "value": np.arange(n) * k // n})


def frame(spark: SparkSession, path: Path, n: int = 3000, k: int = 300) -> DataFrame:
    """Return people in four files: two partitions."""
    place = path / f"people-{n}-{k}"
    if not place.exists():
        place.mkdir()
        for part, rows in enumerate(people_of(n, k).iter_slices(n // 4)):
            rows.write_parquet(place / f"{part}.parquet")
    data = spark.read.parquet(str(place)).select("value", "id")
    assert data.rdd.getNumPartitions() > 1
    return data


def batches(rows: pl.DataFrame, size: int) -> Iterator[Any]:
    return iter(rows.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches(max_chunksize=size))


def rows(sent: Iterable[Mapping[str, Any]], work: Randomize) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Return the report (and tags, if there are any) at each bucket and place of what tasks have sent."""
    at: dict[tuple[int, int], tuple[Any, ...]] = {}
    for row in sent:
        places = np.frombuffer(row["places"], dtype="<u8").tolist()
        reports = np.frombuffer(row["reports"], dtype=work.kernel.layout.dtype).tolist()
        pairs = np.frombuffer(row["tags"], dtype="<u8").reshape(-1, 2)
        tags = pairs.tolist() if pairs.size else [[]] * len(places)
        for place, report, pair in zip(places, reports, tags, strict=True):
            at[row["bucket"], place] = (*report, *pair)
    return at


def drawn(work: Randomize, people: pl.DataFrame, size: int) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Return what a task sends of people who come so many at a time."""
    return rows((row for batch in work(batches(people, size)) for row in batch.to_pylist()), work)


@pytest.mark.parametrize("randomizer", MECHANISMS)
def test_a_row_is_a_function_of_its_record(randomizer: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    people = people_of(300)
    work = replace(task(randomizer), buckets=7)
    whole = drawn(work, people, 300)
    assert drawn(work, people.sample(fraction=1.0, shuffle=True, seed=1), 7) == whole
    sent: Randomize = pickle.loads(pickle.dumps(work))  # noqa: S301 - as Spark does
    monkeypatch.setattr(spark_tasks, "_HELD", 500)
    assert drawn(sent, people, 50) == whole
    assert repr(KEY) not in repr(work)
    assert repr(bytes(32)) not in repr(work)
    assert {bucket for bucket, _ in whole} == set(range(7))
    records = people["id"].to_numpy().astype(np.uint64)
    packed = work.kernel.reports(people["value"].to_numpy(), records=records)
    pairs = Tags(key=KEY, round_number=1, mechanism="m").of(records, people["value"].to_numpy())
    expected = [(*report, *pair) for report, pair in zip(packed.tolist(), pairs.tolist(), strict=True)]
    places = zip(*(column.tolist() for column in work.places(records)), strict=True)
    assert whole == dict(zip(places, expected, strict=True))


def test_records_without_ids_are_numbered_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    people, work = people_of(300).drop("id"), task(ids=False)
    monkeypatch.setattr(spark_tasks, "partition", lambda: 3)
    whole = drawn(work, people, 300)
    assert drawn(work, people, 11) == whole
    records = (3 << 40) + np.arange(300, dtype=np.uint64)
    packed = work.kernel.reports(people["value"].to_numpy(), records=records)
    assert [whole[0, place] for place in work.places(records)[1].tolist()] == packed.tolist()
    monkeypatch.setattr(spark_tasks, "partition", lambda: 4)
    assert not drawn(work, people, 300).keys() & whole.keys()


def test_marks() -> None:
    answers = Answers.of({"low": "< 5", "high": "> 3"}, "refuse")
    people = pl.DataFrame({"id": ["a", "b", "c", "", None, "d", "e", "d"], "value": [1.0, 4, None, 9, 2, 7, 8, 6]})
    kernel = Kernel(randomizer=RandomizedResponse(k=2, epsilon=1.0), key=KEY)
    work = Randomize(reader=Reader(answers=answers, ids=True), kernel=kernel, order_key=bytes(32), mechanism="m")
    (packed,) = [row for batch in Pack(layout=kernel.layout)(work(batches(people, 8))) for row in batch.to_pylist()]
    assert np.frombuffer(packed["reports"], dtype=kernel.layout.dtype).size == 2
    assert np.frombuffer(packed["tags"], dtype=np.uint64).size == 4
    read, records, *marks = np.frombuffer(packed["counts"], dtype=np.int64).tolist()
    assert read == records == 8
    assert dict(zip(MARKS, marks, strict=True)) == {MISSING: 1, UNSEEN: 0, OVERLAP: 1, NAMELESS: 2, TWICE: 2}


def test_nobody() -> None:
    (sent,) = task()(iter([]))
    (packed,) = Pack(layout=RESPONSE.layout)(iter([sent]))
    assert packed.to_pylist() == [{"reports": b"", "tags": b"", "counts": bytes(8 * (2 + len(MARKS)))}]


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_rows_are_sorted_by_place(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places that agree in all but their lowest bits too; equal ones are refused."""
    monkeypatch.setattr(spark_tasks, "_PIECE", 300)
    places, no_tags = reproducible(3).words(size), np.empty(0, dtype=np.uint64)
    assert spark_tasks._order(places, no_tags)[0].tolist() == np.argsort(places).tolist()
    near = ((places >> np.uint64(48)) * np.uint64(1000) + np.arange(size, dtype=np.uint64)).astype(np.uint64)
    assert spark_tasks._order(near, no_tags)[0].tolist() == np.argsort(near).tolist()
    if size:
        twice = np.concatenate([near, near[:1]])
        tags = twice + np.uint64(1)
        order, left_out = spark_tasks._order(twice, tags)
        assert (order.tolist(), left_out) == ((np.argsort(near[1:]) + 1).tolist(), 2)
        for other in (no_tags, np.arange(size + 1, dtype=np.uint64)):
            with pytest.raises(DataError, match="two records drew the same random place"):
                spark_tasks._order(twice, other)
    people, work = people_of(max(size, 1)), task()
    packed = [row for batch in Pack(layout=RESPONSE.layout)(work(batches(people, 90))) for row in batch.to_pylist()]
    assert len(packed) == -(-max(size, 1) // 300)
    ordered = sorted(drawn(work, people, 90).items())
    reports = np.frombuffer(b"".join(row["reports"] for row in packed), dtype=RESPONSE.layout.dtype)
    assert reports["report"].tolist() == [report for _, (report, *_) in ordered]
    pairs = np.frombuffer(b"".join(row["tags"] for row in packed), dtype=np.uint64).reshape(-1, 2)
    assert pairs.tolist() == [pair for _, (_, *pair) in ordered]
    assert sum(np.frombuffer(row["counts"], dtype=np.int64)[1] for row in packed) == people.height


def test_missing_answers_may_be_a_category() -> None:
    people = pl.DataFrame({"value": ["b", None, "x", ""]})
    ((found, ids),) = Reader(answers=Answers.of(["a", "b"], "none")).read(next(batches(people, 4)))
    assert found.tolist() == [1, 2, UNSEEN, 2]
    assert ids is None


def test_unsigned_ids_arrive_as_decimals() -> None:
    people = pl.DataFrame({"id": pl.Series([Decimal(7), Decimal(2**64 - 1)], dtype=pl.Decimal(20, 0)), "value": [1, 2]})
    ((_, ids),) = reader().read(next(batches(people, 2)))
    assert ids is not None
    assert ids.to_list() == ["7", str(2**64 - 1)]


def test_what_libraries_say_is_not_passed_on() -> None:
    def fail() -> None:
        message = "the secret is 17"
        raise ValueError(message)

    with pytest.raises(DataError, match=r"a task of hushuffle failed \(ValueError\)\.") as caught:
        spark_tasks.quietly(fail)
    assert caught.value.__suppress_context__

    def panic() -> None:
        raise pl.exceptions.PanicException

    with pytest.raises(DataError, match=r"a task of hushuffle failed \(PanicException\)\."):
        spark_tasks.quietly(panic)

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spark_tasks.quietly(stop)


def test_all_orders_are_equally_likely() -> None:
    """Four records, 12,000 keys, 24 orders: chi-square; false alarm 1e-6."""
    people = people_of(4)
    seen: Counter[tuple[int, ...]] = Counter()
    for turn in range(12_000):
        work = replace(task(order_key=hashlib.sha256(b"%d" % turn).digest()), buckets=3)
        buckets, places = work.places(people["id"].to_numpy().astype(np.uint64))
        seen[tuple(np.lexsort((places, buckets)).tolist())] += 1
    assert len(seen) == 24
    assert stats.chisquare(list(seen.values())).pvalue > 1e-6


@pytest.mark.parametrize("randomizer", MECHANISMS)
def test_counts_add_up(randomizer: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "_COUNTED", 160)
    drawn = randomizer.randomize(np.arange(300), rng=reproducible(1))
    layout = randomizer.layout
    reports = pl.DataFrame(layout.columns(layout.pack(drawn)))
    count = Count(counter=randomizer, layout=layout)
    (row,) = [row for batch in count(batches(reports, 50)) for row in batch.to_pylist()]
    counted = np.frombuffer(row["counted"], dtype=np.int64)
    assert counted[0] == 300
    assert np.array_equal(counted[1:], randomizer.counts(drawn).counts)
    assert list(count(batches(reports.head(0), 50))) == []
    with pytest.raises(DataError, match="must hold integers"):
        list(count(batches(reports.with_columns(pl.lit(-1).alias(layout.names[-1])), 50)))


def test_what_must_go_together(tmp_path: Path) -> None:
    frame: Any = None
    with pytest.raises(InvalidInputError, match="Spark may execute a task twice"):
        SparkCollection(frame, reader(), Kernel(randomizer=RESPONSE), tmp_path, mechanism="m")
    with pytest.raises(InvalidInputError, match="`mechanism`"):
        SparkCollection(frame, reader(), Kernel(randomizer=RESPONSE, key=KEY), tmp_path)


def test_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyspark" else name)
    with pytest.raises(
        MissingDependencyError, match=r'needs pyspark. Install it with: pip install "hushuffle\[spark\]"'
    ):
        check_installed()


def collected(
    data: DataFrame, kernel: Kernel, folder: Path, *, ids: bool = True, dummies: int = 0
) -> tuple[npt.NDArray[np.void], SparkCollection]:
    folder.mkdir()
    k = kernel.randomizer.inputs
    engine = SparkCollection(data, reader(k, ids=ids), kernel, folder, mechanism="m" if ids else None)
    told: list[tuple[int, int]] = []
    engine.run(lambda count, total: told.append((count, total)))
    assert told[-1] == (engine.people, engine.people)
    dummy_key = bytes(32) if ids else None
    return np.concatenate(list(engine.blocks(Scrambler(dummies=dummies), dummy_key))), engine


def on_this_machine(people: pl.DataFrame, kernel: Kernel, folder: Path, dummies: int = 0) -> npt.NDArray[np.void]:
    engine = LocalCollection(kernel, folder)
    engine.add(people["value"].to_numpy(), people["id"].to_numpy().astype(np.uint64))
    return np.concatenate(list(engine.blocks(Scrambler(dummies=dummies), bytes(32))))


@pytest.mark.parametrize("randomizer", MECHANISMS)
def test_the_same_key_gives_the_reports_of_the_local_engine(
    randomizer: Mechanism, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BUCKET", 26_000)
    kernel = Kernel(randomizer=randomizer, key=KEY, round=4)
    found, engine = collected(frame(spark, tmp_path), kernel, tmp_path / "spill", dummies=500)
    assert (engine.people, set(engine.marks.values())) == (3000, {0})
    wanted = on_this_machine(people_of(3000), kernel, tmp_path, dummies=500)
    assert np.array_equal(np.sort(found), np.sort(wanted))
    assert not np.array_equal(found, wanted)
    assert sorted(path.name for path in (tmp_path / "spill").iterdir()) == ["reports", "tags"]


@dataclass(frozen=True, kw_only=True)
class Mortal(RandomizedResponse):
    """Kills the process in the middle of its work, once."""

    marker: str

    def _step(self, truth: npt.NDArray[np.int64], rng: Randomness) -> npt.NDArray[np.int64]:
        if bool((truth == self.k - 2).any()) and not Path(self.marker).exists():
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._step(truth, rng)


def test_a_task_that_dies_in_the_middle(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BUCKET", 26_000)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    marker = tmp_path / "dead"
    kernel = Kernel(randomizer=Mortal(k=300, epsilon=2.0, marker=str(marker)), key=KEY, round=4)
    try:
        found, engine = collected(frame(spark, tmp_path), kernel, tmp_path / "spill")
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
    assert marker.exists()
    assert engine.people == 3000
    wanted = on_this_machine(people_of(3000), Kernel(randomizer=RESPONSE, key=KEY, round=4), tmp_path)
    assert np.array_equal(np.sort(found), np.sort(wanted))


@dataclass(frozen=True, kw_only=True)
class Saboteur(Pack):
    """Removes what the tasks before it have written, once: Spark must execute them again."""

    folder: str
    marker: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        if not Path(self.marker).exists():
            Path(self.marker).touch()
            for file in Path(self.folder).rglob("shuffle_*.data"):
                file.unlink()
        yield from super().__call__(batches)


@pytest.mark.parametrize("ids", [True, False])
def test_tasks_that_are_executed_again(
    ids: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written is lost after some of it was read: the rest comes from a second execution, and fits."""
    again = tmp_path / "again"
    executed = spark.sparkContext.accumulator(0)

    def counted(rows: Iterator[Any]) -> Iterator[Any]:
        for batch in rows:
            executed.add(batch.num_rows)
            yield batch

    monkeypatch.setattr(module, "_BUCKET", 6_000)
    kernel = Kernel(randomizer=RESPONSE, key=KEY, round=4)
    data = frame(spark, tmp_path)
    whole, _ = collected(data, kernel, tmp_path / "quiet", ids=ids)
    monkeypatch.setattr(
        module, "Pack", lambda layout: Saboteur(layout=layout, folder=str(folder() / "local"), marker=str(again))
    )
    found, engine = collected(data.mapInArrow(counted, data.schema), kernel, tmp_path / "spill", ids=ids)
    assert again.exists()
    assert executed.value > 2 * 3000  # to count the rows, to randomize them, and some again
    assert engine.people == 3000
    assert np.array_equal(np.sort(found), np.sort(whole))
    assert not np.array_equal(found, whole)


def test_a_repeated_execution_has_the_same_order(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is kept: everything is read, randomized and sorted once more."""
    (tmp_path / "spill").mkdir()
    kernel = Kernel(randomizer=RESPONSE, key=KEY)
    engine = SparkCollection(frame(spark, tmp_path), reader(), kernel, tmp_path / "spill", mechanism="m")
    first, second = (engine._shuffled(3).collect() for _ in range(2))
    assert len(first) == 3
    assert first == second


@pytest.mark.parametrize("lost", [0, 1])
def test_a_table_that_changes_meanwhile(
    lost: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the first bucket are lost, with all counts, or those of the second."""
    rows = module._rows
    monkeypatch.setattr(module, "_BUCKET", 26_000)
    monkeypatch.setattr(module, "_rows", lambda frame: [row for place, row in enumerate(rows(frame)) if place != lost])
    kernel = Kernel(randomizer=RESPONSE, key=KEY)
    engine = SparkCollection(frame(spark, tmp_path), reader(), kernel, tmp_path, mechanism="m")
    with pytest.raises(DataError, match="has changed while it was read"):
        engine.run()


def test_no_secret_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """Neither in plans, nor in the event log, nor on a command line, in no spelling."""
    key = hashlib.sha256(b"a secret that nothing else has").digest()
    (tmp_path / "spill").mkdir()
    kernel = Kernel(randomizer=RESPONSE, key=key)
    engine = SparkCollection(frame(spark, tmp_path), reader(), kernel, tmp_path / "spill", mechanism="m")
    engine.run()
    order = engine._task.order_key
    plan = engine._shuffled(2)._jdf.queryExecution()
    told = [plan.toString(), plan.logical().treeString(), plan.executedPlan().treeString(), plan.logical().toJSON()]
    told += [
        path.read_text(encoding="utf-8", errors="replace")
        for path in (folder() / "events").rglob("*")
        if path.is_file()
    ]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        told.append(process.read_bytes().decode(errors="replace"))
    assert sum(len(text) for text in told) > 10_000
    assert any("SparkListenerSQLExecutionStart" in text and "Randomize" in text for text in told)
    for secret in (key, order):
        for part in (secret[:6], secret[13:19], secret[-6:]):  # a piece is enough to find it
            signed = [byte - 256 if byte > 127 else byte for byte in part]
            spellings = [part.hex(), part.hex(" "), ", ".join(map(str, part)), ",".join(map(str, part))]
            spellings += [", ".join(map(str, signed)), ",".join(map(str, signed)), part.decode("latin-1")]
            spellings += [part.decode(errors="replace"), repr(part)[2:-1]]
            for text in told:
                assert not any(spelling in text or spelling.upper() in text for spelling in spellings)
        for text in told:
            assert b64encode(secret).decode()[:40] not in text


def test_the_law_of_reports_and_of_their_order(spark: SparkSession, tmp_path: Path) -> None:
    """Reports against their law (chi-square), order against chance (three statistics); false alarm 4e-6 in all.

    Without noise a report names its sender, so that only the order hides anything.
    """
    n, k = 40_000, 8
    kernel = Kernel(randomizer=RandomizedResponse(k=k, epsilon=1.0), key=hashlib.sha256(b"1").digest())
    found, _ = collected(frame(spark, tmp_path, n, k), kernel, tmp_path / "noisy", ids=False)
    counts = np.bincount(found["report"], minlength=k)
    assert stats.chisquare(counts, np.full(k, n / k)).pvalue > 1e-6  # everybody's value is uniform, so is the report
    truthful = Kernel(randomizer=RandomizedResponse(k=n, epsilon=float("inf")), key=KEY)
    sent, _ = collected(frame(spark, tmp_path, n, n), truthful, tmp_path / "truthful", ids=False)
    senders = sent["report"].astype(np.int64)
    assert np.array_equal(np.sort(senders), np.arange(n))
    cells = np.histogram2d(np.arange(n), senders, bins=10)[0]
    assert stats.chi2_contingency(cells).pvalue > 1e-6
    assert stats.spearmanr(np.arange(n), senders).pvalue > 1e-6
    # Neighbours in the file are not nearer to each other than others: the steps of a random permutation.
    steps = np.abs(np.diff(senders))
    near = int(np.count_nonzero(steps <= 50))
    chance = np.sum(2 * (n - np.arange(1, 51))) / (n * (n - 1))
    assert stats.binomtest(near, n - 1, float(chance)).pvalue > 1e-6


def test_reports_of_people_depend_on_their_values(spark: SparkSession, tmp_path: Path) -> None:
    """Reports by value against the channel, chi-square; false alarm 1e-6."""
    n, k = 30_000, 3
    mechanism = RandomizedResponse(k=k, epsilon=1.0)
    kernel = Kernel(randomizer=mechanism, key=hashlib.sha256(b"2").digest())
    work = Randomize(reader=reader(k), kernel=kernel, order_key=bytes(32), mechanism="m", buckets=3)
    with plainly():
        at = rows((row.asDict() for row in frame(spark, tmp_path, n, k).mapInArrow(work, SENT).collect()), work)
    assert len(at) == n
    people = people_of(n, k)
    places = zip(*(part.tolist() for part in work.places(people["id"].to_numpy().astype(np.uint64))), strict=True)
    found, senders = np.array([at[place][0] for place in places]), people["value"].to_numpy()
    table = np.histogram2d(senders, found, bins=[np.arange(k + 1), np.arange(k + 1)])[0]
    expected = np.asarray(mechanism.channel().matrix) * (n // k)
    assert stats.chisquare(table.ravel(), expected.ravel(), ddof=k - 1).pvalue > 1e-6


@pytest.mark.parametrize("randomizer", [*MECHANISMS[:2], *MECHANISMS[-2:]])
def test_counting_on_the_cluster(randomizer: Mechanism, spark: SparkSession, tmp_path: Path) -> None:
    layout = randomizer.layout
    drawn = randomizer.randomize(np.arange(4000) % 300, rng=reproducible(6))
    for part in range(4):
        block = layout.pack(drawn[part * 1000 : (part + 1) * 1000])
        write_reports(tmp_path / f"part-{part}.parquet", [block], layout=layout)
    size, counts = count_reports(spark.read.parquet(str(tmp_path)), randomizer)
    assert size == 4000
    assert np.array_equal(counts.counts, randomizer.counts(drawn).counts)
    pl.DataFrame({name: [2**62] for name in layout.names}).write_parquet(tmp_path / "bad.parquet")
    with pytest.raises(DataError, match=r"Spark stopped: column '.*' must hold integers"):
        count_reports(spark.read.parquet(str(tmp_path / "bad.parquet")), randomizer)


def test_a_session_that_runs_is_used(spark: SparkSession) -> None:
    with started("local[7]") as other:
        assert other is spark
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("python", [None, "python-of-the-cluster"])
def test_a_session_of_its_own(python: str | None, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A builder that remembers in place of Spark's: no second session can be started beside the first."""
    builder: Any = Builder()
    monkeypatch.setattr(type(spark), "getActiveSession", lambda: None)
    monkeypatch.setattr(type(spark), "builder", builder)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if python is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", python)
    with started("local[3]", settings={"spark.ui.enabled": "true"}) as own:
        assert id(own) == id(builder)
    assert builder.said[-2:] == ["ERROR", "stopped"]
    assert builder.said[:2] == ["local[3]", "hushuffle"]
    assert builder.settings["spark.ui.enabled"] == "true"
    assert builder.settings["spark.driver.host"] == "127.0.0.1"
    assert builder.python == (python or sys.executable)
    assert os.environ.get("PYSPARK_PYTHON") == python
    with started("spark://head:7077") as own:
        assert id(own) == id(builder)
    assert builder.python == python
    with pytest.raises(MissingDependencyError, match="needs Java 17 or later"):
        builder.fail("JAVA_GATEWAY_EXITED")
    with pytest.raises(DataError, match=r"Spark failed \(MASTER_URL_INVALID\)"):
        builder.fail("MASTER_URL_INVALID")


class Builder:
    """Spark's builder, session and context in one."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.settings: dict[str, str] = {}
        self.error: Exception | None = None
        self.python: str | None = None
        self.sparkContext = self

    def master(self, name: str) -> Builder:
        self.said.append(name)
        return self

    appName = setLogLevel = master  # noqa: N815 - Spark's names

    def config(self, key: str, value: str) -> Builder:
        self.settings[key] = value
        return self

    def getOrCreate(self) -> Builder:  # noqa: N802
        if self.error is not None:
            raise self.error
        self.python = os.environ.get("PYSPARK_PYTHON")
        return self

    def stop(self) -> None:
        self.said.append("stopped")

    def fail(self, condition: str) -> None:
        errors: Any = importlib.import_module("pyspark.errors")
        self.error = errors.PySparkRuntimeError(errorClass=condition, messageParameters={})
        with started("spark://head:7077"):
            pass


def test_failures_in_plain_words(spark: SparkSession) -> None:
    with pytest.raises(DataError, match=r"Spark failed \(PATH_NOT_FOUND\)"), plainly():
        spark.read.parquet("/nowhere/at/all")
    with pytest.raises(DataError, match="workers lack hushuffle"):
        raise failure(RuntimeError("ModuleNotFoundError: No module named 'hushuffle'"))
    with pytest.raises(DataError, match=r"out of memory\. Raise spark\.driver\.memory"):
        raise failure(RuntimeError("java.lang.OutOfMemoryError: Java heap space, the value is 17"))
    with pytest.raises(DataError, match=r"Spark failed \(RuntimeError\)"):
        raise failure(RuntimeError("the value is 17"))
