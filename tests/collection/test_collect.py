from __future__ import annotations

import json
import math
import secrets
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import hushuffle as hs
from hushuffle.collection import collect as publishing
from hushuffle.collection import release as module
from hushuffle.collection.collect import Collected, collect
from hushuffle.collection.engines import local
from hushuffle.collection.released import write_reports
from hushuffle.collection.request import Keys
from hushuffle.errors import DataError, InvalidInputError, SpecificationError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import support_law
from hushuffle.model import Bound
from hushuffle.randomness import reproducible
from hushuffle.specification import Specification, parse
from key_memory import ledgers, new_key, no_figure

RESPONSE = '{ kind = "randomized-response", epsilon = 2.0 }'
SUBSETS = '{ kind = "subset-selection", epsilon = 1.0 }'
BITS = '{ kind = "unary-encoding", epsilon = 1.0 }'
HASHING = '{ kind = "local-hashing", epsilon = 2.0, g = 4 }'
TRUTH = '{ kind = "randomized-response", epsilon = "inf" }'


def survey(
    *,
    population: str = '{ data = "people.csv", column = "answer", categories = ["a", "b", "c"] }',
    randomizer: str = RESPONSE,
    shuffler: str = '{ kind = "uniform" }',
    more: str = "",
) -> Specification:
    return parse(f"""
        population = {population}
        randomizer = {randomizer}
        shuffler = {shuffler}
        targets = {{ delta = 1e-6{more} }}
    """)


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute figures where they are looked at."""
    if not request.node.name.startswith(("test_what_", "test_too_few", "test_the_folder")):
        monkeypatch.setattr(module, "central_of", lambda *_: Bound.exact(1.0, unit="nats"))
        monkeypatch.setattr(publishing, "rounds_of", no_figure)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    answers = np.random.default_rng(3).choice(["a", "b", "c"], 600, p=[0.5, 0.3, 0.2])
    pl.DataFrame({"id": np.arange(600), "secret": np.arange(600), "answer": answers}).write_csv(tmp_path / "people.csv")
    new_key(tmp_path / "my.key")
    return tmp_path


def run(folder: Path, specification: Specification | None = None, *, out: str = "out", **more: Any) -> Collected:
    return collect(specification or survey(), out=folder / out, base_folder=folder, **more)


def reports(folder: Path, out: str = "out") -> list[tuple[int, ...]]:
    return pl.read_parquet(folder / out / "reports.parquet").rows()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".used")


def test_what_is_written(folder: Path) -> None:
    told: list[float] = []
    collected = run(folder, progress=lambda _, share: told.append(share))
    assert names(folder / "out") == ["manifest.json", "reports.parquet"]
    assert pl.read_parquet_schema(folder / "out" / "reports.parquet") == {"report": pl.UInt8}
    assert len(reports(folder)) == 600
    assert told == sorted(told)
    assert told[-1] == 1.0
    document = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert (document["people"], document["dummies"], document["coins"]) == (600, 0, "secure")
    assert document["local_epsilon"] == 2.0
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=2.0), shuffler=hs.UniformShuffle(), n=600)
    assert document["central"]["epsilon"]["upper"] == hs.dp.epsilon(protocol, delta=1e-6).upper
    assert collected.central.upper == document["central"]["epsilon"]["upper"]
    again = parse(document["specification"])
    assert again.population.read(folder).population.labels == ("a", "b", "c")
    assert "people.csv" not in json.dumps(document)
    assert names(folder) == ["my.key", "out", "people.csv"]


@pytest.mark.parametrize("randomizer", [RESPONSE, HASHING, SUBSETS, BITS])
def test_reports_have_the_law_of_the_protocol(folder: Path, randomizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many reports support each value, against their mean and variance; |z| < 6, six times: false alarm 2e-8."""
    specification = survey(randomizer=randomizer, shuffler='{ kind = "scrambler", dummies = 300 }')
    for turn in range(5):
        monkeypatch.setattr(local, "secure", lambda turn=turn: reproducible(turn))
        run(folder, specification, out=f"out{turn}", memory=100)
    mechanism = specification.randomizer.build(3)
    rows = np.concatenate([np.array(reports(folder, f"out{turn}"), dtype=np.int64) for turn in range(5)])
    rows = rows[:, 0] if rows.shape[1] == 1 else rows
    assert rows.shape[0] == 5 * 900
    found = mechanism.counts(rows).counts
    law = support_law(mechanism, for_what="a test")
    answers = Counter(pl.read_csv(folder / "people.csv")["answer"])
    for code, label in enumerate("abc"):
        parts = [(answers[label], law.true), (600 - answers[label], law.false), (300, law.dummy)]
        mean = 5 * sum(size * chance for size, chance in parts)
        variance = 5 * sum(size * chance * (1 - chance) for size, chance in parts)
        assert abs(found[code] - mean) < 6 * math.sqrt(variance)


def everybody_different(folder: Path, n: int) -> Specification:
    """Return a collection without noise in which a report names its sender: only the order could be read."""
    pl.DataFrame({"value": np.arange(n)}).write_parquet(folder / "different.parquet")
    return survey(population=f"{{ n = {n}, k = {n} }}", randomizer=TRUTH)


def test_linkability(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What guesses senders from the order does no better than chance, over 12 collections of 1000 people.

    Everything else in the folder is a function of the sequence of reports and of public numbers: see
    `test_the_folder_is_a_function_of_the_sequence`. Four statistics, each with a false-alarm rate of 1e-6; seeds fixed.
    """
    n, turns = 1000, 12
    specification = everybody_different(folder, n)
    own = near = 0
    scores, table = [], np.zeros((10, 10))
    for turn in range(turns):
        monkeypatch.setattr(local, "secure", lambda turn=turn: reproducible(100 + turn))
        memory = 300 if turn % 2 else 1 << 20  # spilled to the disk, or not
        sources = [str(folder / "different.parquet")]
        run(folder, specification, out=f"out{turn}", sources=sources, column="value", memory=memory)
        order = np.array(reports(folder, f"out{turn}"))[:, 0]
        assert np.array_equal(np.sort(order), np.arange(n))
        own += int(np.sum(order == np.arange(n)))  # "the report in place i is that of person i"
        near += int(np.sum(np.abs(np.diff(order.astype(int))) == 1))  # "neighbours stay neighbours"
        scores.append(stats.spearmanr(order, np.arange(n)).statistic * math.sqrt(n - 1))
        np.add.at(table, (order * 10 // n, np.arange(n) * 10 // n), 1)
    assert own < stats.poisson.isf(1e-6, turns)
    assert near < stats.poisson.isf(1e-6, 2 * turns)
    assert abs(sum(scores)) / math.sqrt(turns) < stats.norm.isf(5e-7)
    expected = n * turns / 100
    assert np.sum((table - expected) ** 2 / expected) < stats.chi2.isf(1e-6, 81)


def test_the_folder_is_a_function_of_the_sequence(folder: Path) -> None:
    """Nothing but the sequence of reports is in the file, and nothing about the senders in the manifest."""
    n = 400
    specification = everybody_different(folder, n)
    pl.DataFrame({"other": ["x"] * n, "value": np.arange(n)[::-1]}).write_csv(folder / "reversed.csv")
    for out, file in (("first", "different.parquet"), ("second", "reversed.csv")):
        run(folder, specification, out=out, sources=[str(folder / file)], column="value")
        layout = specification.randomizer.build(n).layout
        packed = layout.pack(np.array(reports(folder, out), dtype=np.int64))
        write_reports(folder / "again.parquet", [packed], layout=layout)
        assert (folder / "again.parquet").read_bytes() == (folder / out / "reports.parquet").read_bytes()
    first, second = (folder / out / "manifest.json" for out in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert reports(folder, "first") != reports(folder, "second")


@pytest.mark.parametrize("shuffler", ['{ kind = "uniform" }', '{ kind = "scrambler", dummies = 50 }'])
def test_a_key_repeats_reports_and_not_their_order(folder: Path, shuffler: str) -> None:
    specification, keys = survey(shuffler=shuffler), Keys(file=folder / "my.key", ids="id", round=3)
    first = run(folder, specification, keys=keys)
    pl.read_csv(folder / "people.csv").reverse().write_parquet(folder / "people.parquet")
    again = run(folder, specification, keys=keys, out="again", sources=[str(folder / "people.parquet")])
    assert (first.repeated, again.repeated) == (False, True)
    assert sorted(reports(folder)) == sorted(reports(folder, "again"))
    assert reports(folder) != reports(folder, "again")
    for out in ("out", "again"):
        assert names(folder / out) == ["manifest.json", "reports.parquet"]
    text = (folder / "out" / "manifest.json").read_text(encoding="utf-8")
    assert '"coins": "keyed, round 3"' in text
    assert (folder / "my.key").read_text(encoding="ascii") not in text


def change_one(folder: Path) -> None:
    table = pl.read_csv(folder / "people.csv")
    edited = table["answer"].to_list()
    edited[0] = "a" if edited[0] == "b" else "b"
    table.with_columns(pl.Series("answer", edited)).write_csv(folder / "people.csv")


@pytest.mark.parametrize("how", ["edited", "fewer", "randomizer", "twice"])
def test_coins_are_not_used_again(folder: Path, how: str) -> None:
    keys = Keys(file=folder / "my.key", ids="id")
    run(folder, keys=keys)
    before = ledgers()
    specification = (
        survey(randomizer='{ kind = "randomized-response", epsilon = 1.0 }') if how == "randomizer" else None
    )
    message = "with other values, categories or another randomizer.*new `--round`"
    if how == "edited":
        change_one(folder)
    elif how == "fewer":
        pl.read_csv(folder / "people.csv").head(500).write_csv(folder / "people.csv")
        message = "500 people are in an earlier, different batch"
    elif how == "twice":
        table = pl.read_csv(folder / "people.csv")
        pl.concat([table, table.head(1)]).write_csv(folder / "people.csv")
        message = "records have the same id"
    with pytest.raises(DataError, match=message):
        run(folder, specification, keys=keys, out="again")
    assert names(folder) == ["my.key", "out", "people.csv"]
    assert ledgers() == before
    if how == "edited":
        run(folder, keys=Keys(file=folder / "my.key", ids="id", round=1), out="again")


def test_another_number_of_dummies_is_another_release(folder: Path) -> None:
    """The difference of two releases would be the dummies, and the smaller figure a false one."""
    keys = Keys(file=folder / "my.key", ids="id")
    run(folder, survey(shuffler='{ kind = "scrambler", dummies = 50 }'), keys=keys)
    for shuffler in ('{ kind = "uniform" }', '{ kind = "scrambler", dummies = 51 }'):
        with pytest.raises(DataError, match="with another shuffler or another number of dummies"):
            run(folder, survey(shuffler=shuffler), keys=keys, out="again")
    assert names(folder) == ["my.key", "out", "people.csv"]


def test_a_link_to_the_key_finds_the_ledger(folder: Path) -> None:
    run(folder, keys=Keys(file=folder / "my.key", ids="id"))
    change_one(folder)
    (folder / "mounted").mkdir()
    (folder / "mounted" / "link.key").symlink_to(folder / "my.key")
    (folder / "mounted" / "copy.key").write_bytes((folder / "my.key").read_bytes())
    (folder / "mounted" / "copy.key").chmod(0o400)
    for name in ("link.key", "copy.key"):
        with pytest.raises(DataError, match=r"^1 people have reported under this key and round with other values"):
            run(folder, keys=Keys(file=folder / "mounted" / name, ids="id"), out="again")


def test_a_key_without_a_ledger(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHUFFLE_STATE", str(folder / "elsewhere"))
    (folder / "other.key").write_text(secrets.token_hex(32), encoding="ascii")
    (folder / "other.key").chmod(0o600)
    with pytest.raises(DataError, match=r"other\.key has no ledger"):
        run(folder, keys=Keys(file=folder / "other.key", ids="id"))
    with pytest.raises(DataError, match=r"used says that .*my\.key was used before, and its ledger is not at"):
        run(folder, keys=Keys(file=folder / "my.key", ids="id", new=True))
    with pytest.raises(DataError, match=r"none\.key does not exist\. To create a key, pass `--new-key`"):
        run(folder, keys=Keys(file=folder / "none.key", ids="id"))
    assert names(folder) == ["my.key", "other.key", "people.csv"]
    run(folder, keys=Keys(file=folder / "none.key", ids="id", new=True))
    assert (folder / "none.key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(DataError, match=r"none\.key is not a new key"):
        run(folder, keys=Keys(file=folder / "none.key", ids="id", new=True), out="again")
    assert run(folder, keys=Keys(file=folder / "none.key", ids="id"), out="again").repeated


def test_what_all_rounds_say_together(folder: Path) -> None:
    pl.DataFrame({"id": range(20), "answer": ["a"] * 20}).write_csv(folder / "people.csv")
    figures = []
    for number in range(2):
        collected = run(folder, keys=Keys(file=folder / "my.key", ids="id", round=number), out=f"out{number}")
        document = json.loads((folder / f"out{number}" / "manifest.json").read_text(encoding="utf-8"))
        assert document == json.loads(collected.manifest.text())
        assert document["key"]["collections"] == number + 1
        assert document["key"]["delta"] == 1e-6
        assert collected.rounds is not None
        figures.append(document["key"]["epsilon"]["upper"])
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=2.0), shuffler=hs.UniformShuffle(), n=20)
    assert figures == [hs.dp.compose([(protocol, times)], delta=1e-6).upper for times in (1, 2)]


def test_keys_that_cannot_be_used(folder: Path) -> None:
    keys = Keys(file=folder / "my.key", ids="id")
    (folder / "my.key").chmod(0o644)
    with pytest.raises(DataError, match="all users of this machine can read it"):
        run(folder, keys=keys)
    (folder / "my.key").write_text("00" * 31, encoding="ascii")
    (folder / "my.key").chmod(0o600)
    with pytest.raises(DataError, match="must hold 64 hexadecimal digits"):
        run(folder, keys=keys)
    with pytest.raises(DataError, match="cannot be its private column"):
        run(folder, keys=Keys(file=folder / "my.key", ids="answer"))
    with pytest.raises(DataError, match="has no column 'person'"):
        run(folder, keys=Keys(file=folder / "my.key", ids="person"))
    with pytest.raises(InvalidInputError, match="`round`"):
        Keys(file=folder / "my.key", ids="id", round=-1)
    assert names(folder) == ["my.key", "people.csv"]


def test_a_local_epsilon_above_the_target_is_refused_before_anything_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = survey(more=", local_epsilon = 0.5")
    local = wanted.randomizer.build(3).local_epsilon
    monkeypatch.setattr("hushuffle.collection.collect.release", lambda *_, **__: pytest.fail("was read"))
    with pytest.raises(DataError) as error:
        run(folder, wanted)
    assert str(error.value).startswith(
        f"The local epsilon of all reports of one person is {local:.4g}, above targets.local_epsilon = 0.5: no data"
    )
    assert names(folder) == ["my.key", "people.csv"]


def test_too_few_people(folder: Path) -> None:
    with pytest.raises(DataError, match=r"600 people are fewer than the 1,000 that targets\.people requires"):
        run(folder, survey(more=", people = 1000"))
    with pytest.raises(DataError, match="600 people are fewer than the 601 that --min-batch requires"):
        run(folder, min_batch=601)
    with pytest.raises(DataError, match=r"above targets.epsilon = 0.01: nothing was released"):
        run(folder, survey(more=", epsilon = 0.01"))
    assert names(folder) == ["my.key", "people.csv"]
    assert run(folder, survey(more=", epsilon = 1.0"), min_batch=600).columns[""].manifest.people == 600


def test_missing_answers(folder: Path) -> None:
    pl.DataFrame({"answer": ["a", None, "b"] * 100}).write_csv(folder / "people.csv")
    with pytest.raises(DataError, match="records are missing"):
        run(folder)
    population = '{ data = "people.csv", column = "answer", categories = ["a", "b", "c"], missing = "drop" }'
    collected = run(folder, survey(population=population))
    assert (collected.dropped, collected.columns[""].manifest.people) == (100, 200)
    assert "dropped" not in collected.manifest.text()


def test_bad_data(folder: Path) -> None:
    population = '{{ data = "people.csv", column = "{}", categories = ["a", "b"] }}'
    with pytest.raises(DataError, match="match no category"):
        run(folder, survey(population=population.format("answer")))
    with pytest.raises(DataError, match="has no column 'reply'"):
        run(folder, survey(population=population.format("reply")))
    (folder / "bad.parquet").write_bytes(b"PAR1PAR1")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        run(folder, sources=[str(folder / "bad.parquet")])
    assert names(folder) == ["bad.parquet", "my.key", "people.csv"]


def test_specifications_that_cannot_be_collected(folder: Path) -> None:
    numbered = survey(population="{ n = 10, k = 3 }")
    with pytest.raises(SpecificationError, match="must have data and column for a collection"):
        run(folder, numbered)
    with pytest.raises(SpecificationError, match="must be the same column as --column, got answer"):
        run(folder, column="other")
    with pytest.raises(UnsupportedProtocolError, match="Without a shuffler"):
        run(folder, survey(shuffler='{ kind = "none" }'))
    reach = survey(
        population="{ bits = 128, people = 50, audiences = { tv = 10, web = 9 } }",
        randomizer='{ kind = "bit-flipping", p = 0.2 }',
    )
    with pytest.raises(SpecificationError, match="must be people with one value each"):
        run(folder, reach)
    named = survey(population='{ n = 10, categories = ["a", "b", "c"] }')
    assert run(folder, named, sources=[str(folder / "people.csv")], column="answer").columns[""].manifest.people == 600
    assert names(folder) == ["my.key", "out", "people.csv"]


def test_places_that_cannot_be_written(folder: Path) -> None:
    with pytest.raises(DataError, match="cannot be written: Not a directory"):
        run(folder, out="people.csv/deeper/out")
    with pytest.raises(DataError, match=r"people.csv exists and is not empty\. Reports are never overwritten"):
        run(folder, out="people.csv")
    (folder / "out").mkdir()
    run(folder)  # an empty folder will do
    before = reports(folder)
    with pytest.raises(DataError, match="exists and is not empty"):
        run(folder)
    assert reports(folder) == before
    run(folder, out="new/folder")
    assert names(folder / "new") == ["folder"]


@pytest.mark.parametrize("what", ["_gathered", "central_of", "write_reports", "opened", "publish"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), MemoryError()])
def test_all_or_nothing(folder: Path, what: str, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    keys = Keys(file=folder / "my.key", ids="id")
    with monkeypatch.context() as broken:
        broken.setattr(publishing if what in ("opened", "publish") else module, what, fail)
        with pytest.raises(DataError if isinstance(error, OSError) else type(error)) as caught:
            run(folder, out="new/out", keys=keys, memory=10)
    if isinstance(error, OSError):
        assert str(caught.value).endswith("out failed: No space left on device. Nothing was released.")
    assert names(folder) == ["my.key", "people.csv"]
    run(folder, out="new/out", keys=keys)  # a rerun starts cleanly
    assert len(reports(folder, "new/out")) == 600


def test_spilled_reports_are_private(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look(*_: Any) -> Any:
        for place in folder.glob(".out.*.collecting"):
            seen.extend([place.stat().st_mode & 0o777, len(list((place / "spill-0").iterdir()))])
        return Bound.exact(1.0, unit="nats")

    monkeypatch.setattr(module, "central_of", look)
    run(folder, memory=100)
    assert seen[0] == 0o700
    assert 150 < seen[1] <= 256  # of so many buckets, those that got a report


def test_the_number_of_buckets_is_written_down(folder: Path) -> None:
    collected = run(folder, survey(randomizer='{ kind = "local-hashing", epsilon = 2.0 }'))
    assert "g = 8" in collected.columns[""].manifest.specification
    assert pl.read_parquet(collected.files[0]).columns == ["hash", "bucket"]
